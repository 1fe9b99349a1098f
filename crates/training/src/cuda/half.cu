// The gradient of the input of a convolution of 3 x 3 windows with stride 2 and padding 1 over an
// image of even sides, follows `band.cu`. Every second position of the input meets one window in
// that direction and the others meet two, so that a slope and its neighbours to the right and below
// make four positions: a block reads the slopes once for all of them.

template <int CI, int CO, int WIDE>
__device__ __forceinline__ void convolve_back_half(
    float *dx, const float *dy, const float *weights, u64 weights_stride, const float *base,
    const int *order, const Layer &l, int rows) {
    constexpr int ACROSS = WIDE / 16, PARTS = CI / 16, THREADS = 4 * ACROSS * PARTS * 32;
    constexpr int SLABS = CO / DEPTH, HIGH = BAND + 1, PLACES = HIGH * (WIDE + 1);
    constexpr int STAGE = SLABS * PLACES * DEPTH;
    extern __shared__ float4 shared4[];
    float *held = (float *)shared4;                    // [tap][slab][input][DEPTH]
    float *slopes_in = held + 9 * SLABS * CI * DEPTH;  // [stage][slab][place][DEPTH]
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const int part = warp % PARTS, across = warp / PARTS % ACROSS, down = warp / PARTS / ACROSS;
    const int height = l.output_height, width = l.output_width, wide = width + 1;
    const int slot = blockIdx.y, bands = (height + BAND - 1) / BAND, work = rows * bands;
    const float *w = weights + (u64)order[slot] * weights_stride;
    const float *source = dy + (u64)slot * rows * height * width * CO;

    for (int i = thread; i < 9 * SLABS * CI * 4; i += THREADS) {
        const int quarter = i & 3, n = i / 4 % CI, slab = i / (4 * CI) % SLABS, tap = i / (4 * CI * SLABS);
        fetch(place_of(held + 4 * i), w + (n * 9 + tap) * CO + slab * DEPTH + 4 * quarter, 16);
    }
    auto load = [&](int stage, int number) {
        float *a = slopes_in + stage * STAGE;
        const int top = number % bands * BAND;
        const float *image = source + (u64)(number / bands) * height * width * CO;
        for (int row = warp; row < HIGH; row += THREADS / 32) {
            const int at_y = top + row;
            for (int i = lane; i < wide * (CO / 4); i += 32) {
                const int at_x = i / (CO / 4), quarter = i % (CO / 4);
                const bool inside = at_y < height && at_x < width;
                float *to = a + ((quarter / 4) * PLACES + row * wide + at_x) * DEPTH + 4 * (quarter & 3);
                fetch(place_of(to), image + (inside ? (at_y * width + at_x) * CO + 4 * quarter : 0),
                      inside ? 16 : 0);
            }
        }
        close_stage();
    };

    const int g = lane >> 2, q = lane & 3, n0 = 16 * part;
    int number = blockIdx.x;
    if (number < work) load(0, number);
    for (int stage = 0; number < work; number += gridDim.x, stage ^= 1) {
        if (number + (int)gridDim.x < work) {
            load(stage ^ 1, number + gridDim.x);
            wait_for_stage<1>();
        } else {
            wait_for_stage<0>();
        }
        __syncthreads();
        float c[4][2][2][4];  // by the position's remainders, two rows of slopes
#pragma unroll
        for (int kind = 0; kind < 4; ++kind)
#pragma unroll
            for (int i = 0; i < 2; ++i)
#pragma unroll
                for (int j = 0; j < 2; ++j)
#pragma unroll
                    for (int k = 0; k < 4; ++k) c[kind][i][j][k] = 0.0f;
#pragma unroll 1
        for (int slab = 0; slab < SLABS; ++slab) {
            const float *a = slopes_in + stage * STAGE
                             + (slab * PLACES + 2 * down * wide + 16 * across + g) * DEPTH + 4 * q;
            float slopes[2][3][2][4];  // to the right, rows, halves
#pragma unroll
            for (int right_by = 0; right_by < 2; ++right_by)
#pragma unroll
                for (int row = 0; row < 3; ++row)
#pragma unroll
                    for (int half = 0; half < 2; ++half)
                        *(float4 *)slopes[right_by][row][half] =
                            *(const float4 *)(a + (row * wide + 8 * half + right_by) * DEPTH);
#pragma unroll
            for (int u = 0; u < 3; ++u)
#pragma unroll
                for (int v = 0; v < 3; ++v) {
                    const float *b =
                        held + (((3 * u + v) * SLABS + slab) * CI + n0 + g) * DEPTH + 4 * q;
                    float right[2][4];
#pragma unroll
                    for (int j = 0; j < 2; ++j)
                        *(float4 *)right[j] = *(const float4 *)(b + 8 * j * DEPTH);
                    multiply_stage(c[(u != 1) * 2 + (v != 1)],
                                   *(const float (*)[2][2][4])(slopes[v == 0] + (u == 0)), right);
                }
        }
        const u64 image = ((u64)slot * rows + number / bands) * l.input_height * l.input_width * CI;
#pragma unroll
        for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int at_y = number % bands * BAND + 2 * down + i;
                const int at_x = 16 * across + 8 * half + g;
                if (at_y >= height || at_x >= width) continue;
#pragma unroll
                for (int kind = 0; kind < 4; ++kind)
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const int pixel = (2 * at_y + kind / 2) * l.input_width + 2 * at_x + kind % 2;
                        const u64 place = image + pixel * CI + n0 + 8 * j + 2 * q;
                        float2 value =
                            make_float2(c[kind][i][j][2 * half], c[kind][i][j][2 * half + 1]);
                        if (base) {
                            const float2 more = *(const float2 *)(base + place);
                            value.x += more.x;
                            value.y += more.y;
                        }
                        *(float2 *)(dx + place) = value;
                    }
            }
        // Whoever fetches next overwrites these rows.
        __syncthreads();
    }
}

#ifdef WANTED_half_backward_16
extern "C" __global__ void __launch_bounds__(128, 3) half_backward_16(
    float *y, const float *x, const float *weights, u64 weights_stride, const float *other,
    const int *order, const Layer l, int rows) {
    convolve_back_half<16, 32, 16>(y, x, weights, weights_stride, other, order, l, rows);
}
#endif
