// Convolutions of 3 x 3 windows, stride 1 and padding 1 of few channels, follows `each.cu`. A block
// takes one image of a replica after another, BAND rows of positions at a time; the weights of all
// windows stay in shared memory, and the next rows are fetched while these are multiplied. A warp
// has four rows of sixteen positions (of eight, two rows make one of the tensor cores' tiles) and
// sixteen outputs: a row of pixels that it has read serves the windows above, at and below it.

template <int CI, int CO, int WIDE, bool BACK>
__device__ __forceinline__ void convolve_band(
    float *y, const float *x, const float *weights, u64 weights_stride, const float *parameters,
    u64 stride, int bias, const float *other, const int *order, const Layer &l, int rows, int kind) {
    constexpr bool EIGHT = WIDE == 8;
    constexpr int ACROSS = EIGHT ? 1 : WIDE / 16, PARTS = CO / 16, THREADS = 2 * ACROSS * PARTS * 32;
    constexpr int MI = EIGHT ? 2 : 4, HALVES = EIGHT ? 1 : 2;
    constexpr int SLABS = CI / DEPTH, HIGH = BAND + 2, PLACES = HIGH * (WIDE + 2);
    constexpr int STAGE = SLABS * PLACES * DEPTH;
    extern __shared__ float4 shared4[];
    float *held = (float *)shared4;                       // [tap][slab][output][DEPTH]
    float *images_in = held + 9 * SLABS * CO * DEPTH;     // [stage][slab][place][DEPTH]
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const int part = warp % PARTS, across = warp / PARTS % ACROSS, down = warp / PARTS / ACROSS;
    const int height = l.input_height, width = l.input_width, wide = width + 2;
    const int slot = blockIdx.y, bands = (height + BAND - 1) / BAND, work = rows * bands;
    const u64 replica = order[slot];
    const float *w = weights + replica * weights_stride;
    const float *source = x + (u64)slot * rows * height * width * CI;

    for (int i = thread; i < 9 * SLABS * CO * 4; i += THREADS) {
        const int quarter = i & 3, n = i / 4 % CO, slab = i / (4 * CO) % SLABS, tap = i / (4 * CO * SLABS);
        fetch(place_of(held + 4 * i), w + (n * 9 + tap) * CI + slab * DEPTH + 4 * quarter, 16);
    }
    auto load = [&](int stage, int number) {
        float *a = images_in + stage * STAGE;
        const int top = number % bands * BAND - 1;
        const float *image = source + (u64)(number / bands) * height * width * CI;
        // A row of places after the other, so that nothing is divided but by constants.
        for (int row = warp; row < HIGH; row += THREADS / 32) {
            const int at_y = top + row;
            for (int i = lane; i < wide * (CI / 4); i += 32) {
                const int at_x = i / (CI / 4) - 1, quarter = i % (CI / 4);
                const bool inside = (u32)at_y < (u32)height && (u32)at_x < (u32)width;
                float *to = a + ((quarter / 4) * PLACES + row * wide + at_x + 1) * DEPTH + 4 * (quarter & 3);
                fetch(place_of(to), image + (inside ? (at_y * width + at_x) * CI + 4 * quarter : 0),
                      inside ? 16 : 0);
            }
        }
        close_stage();
    };

    const int g = lane >> 2, q = lane & 3, n0 = 16 * part;
    const float *own = parameters ? parameters + replica * stride + bias + n0 : 0;
    float2 begin[2];
#pragma unroll
    for (int j = 0; j < 2; ++j)
        begin[j] = own ? make_float2(own[8 * j + 2 * q], own[8 * j + 2 * q + 1]) : make_float2(0, 0);
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
        const int top = number % bands * BAND + 4 * down;
        const u64 image = (u64)slot * rows + number / bands;
        float *to = y + image * height * width * CO;
        // What is added is on its way while the products are taken.
        float2 more[MI][2][2];
        if (other)
#pragma unroll
            for (int i = 0; i < MI; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    const int at_y = top + (EIGHT ? 2 * i + half : i);
                    const int at_x = 16 * across + (EIGHT ? 0 : 8 * half) + g;
                    const bool there = at_y < height && at_x < width;
                    const float *from = other + image * height * width * CO
                                        + (there ? (at_y * width + at_x) * CO : 0) + n0 + 2 * q;
#pragma unroll
                    for (int j = 0; j < 2; ++j) more[i][half][j] = *(const float2 *)(from + 8 * j);
                }
        float c[MI][2][4];
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int k = 0; k < 4; ++k) c[i][j][k] = 0.0f;
#pragma unroll 1
        for (int slab = 0; slab < SLABS; ++slab)
#pragma unroll 1
            for (int v = 0; v < 3; ++v) {
                const float *a = images_in + stage * STAGE
                                 + (slab * PLACES + 4 * down * wide + 16 * across + v + g) * DEPTH + 4 * q;
                float pixels[6 * HALVES][4];
#pragma unroll
                for (int row = 0; row < 6; ++row)
#pragma unroll
                    for (int half = 0; half < HALVES; ++half)
                        *(float4 *)pixels[row * HALVES + half] =
                            *(const float4 *)(a + (row * wide + 8 * half) * DEPTH);
#pragma unroll
                for (int u = 0; u < 3; ++u) {
                    const int tap = BACK ? 8 - 3 * u - v : 3 * u + v;
                    const float *b = held + ((tap * SLABS + slab) * CO + n0 + g) * DEPTH + 4 * q;
                    float right[2][4];
#pragma unroll
                    for (int j = 0; j < 2; ++j)
                        *(float4 *)right[j] = *(const float4 *)(b + 8 * j * DEPTH);
                    multiply_stage(c, *(const float (*)[MI][2][4])(pixels + u * HALVES), right);
                }
            }
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const int at_y = top + (EIGHT ? 2 * i + half : i);
                const int at_x = 16 * across + (EIGHT ? 0 : 8 * half) + g;
                if (at_y >= height || at_x >= width) continue;
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    float2 value = make_float2(c[i][j][2 * half] + begin[j].x,
                                               c[i][j][2 * half + 1] + begin[j].y);
                    if (other) {
                        value.x += more[i][half][j].x;
                        value.y += more[i][half][j].y;
                    }
                    if (!BACK && kind) {
                        value.x = activate(value.x, kind);
                        value.y = activate(value.y, kind);
                    }
                    *(float2 *)(to + (at_y * width + at_x) * CO + n0 + 8 * j + 2 * q) = value;
                }
            }
        // Whoever fetches next overwrites these rows.
        __syncthreads();
    }
}

#define BAND_FORWARD(NAME, CI, CO, WIDE, BLOCKS)                                                    \
    extern "C" __global__ void __launch_bounds__(((WIDE) + 8) / 16 * ((CO) / 16) * 64, BLOCKS)       \
        band_forward_##NAME(                                                                         \
            float *y, const float *x, const float *weights, u64 weights_stride,                      \
            const float *parameters, u64 stride, int bias, const float *other, const int *order,     \
            const Layer l, int rows, int kind) {                                                     \
        convolve_band<CI, CO, WIDE, false>(                                                          \
            y, x, weights, weights_stride, parameters, stride, bias, other, order, l, rows, kind);   \
    }
#define BAND_BACKWARD(NAME, CI, CO, WIDE, BLOCKS)                                                   \
    extern "C" __global__ void __launch_bounds__(((WIDE) + 8) / 16 * ((CO) / 16) * 64, BLOCKS)       \
        band_backward_##NAME(                                                                        \
            float *y, const float *x, const float *weights, u64 weights_stride,                      \
            const float *other, const int *order, const Layer l, int rows) {                         \
        convolve_band<CI, CO, WIDE, true>(                                                           \
            y, x, weights, weights_stride, 0, 0, 0, other, order, l, rows, 0);                       \
    }
#if MODE == 0
#define BAND_BLOCKS 3
#else
#define BAND_BLOCKS 4
#endif
#ifdef WANTED_band_forward_16
BAND_FORWARD(16, 16, 16, 32, BAND_BLOCKS)
#endif
#ifdef WANTED_band_backward_16
BAND_BACKWARD(16, 16, 16, 32, BAND_BLOCKS)
#endif
#ifdef WANTED_band_forward_32
BAND_FORWARD(32, 32, 32, 16, 2)
#endif
#ifdef WANTED_band_backward_32
BAND_BACKWARD(32, 32, 32, 16, 2)
#endif
#ifdef WANTED_band_forward_64
BAND_FORWARD(64, 64, 64, 8, 1)
#endif
#ifdef WANTED_band_backward_64
BAND_BACKWARD(64, 64, 64, 8, 1)
#endif
