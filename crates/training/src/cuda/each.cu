// Every example's gradient of a convolution of few channels, follows `halo.cu`. A block takes one
// example, BAND rows of positions at a time: pixels (with a border where TAPS is 9) and slopes lie
// in shared memory once, and every window reads them there: `each_gradient` fetches a pixel nine
// times. A warp has sixteen inputs, sixteen outputs and all windows, and with others of the same
// tile a share of the positions.

#define BAND 8

// 3 x 3 windows of stride 1 and padding 1 (TAPS 9), or single pixels at a stride (TAPS 1). Widths are
// multiples of 16 up to WIDE. Rows in shared memory are longer by four numbers: lanes that read
// every second position meet no bank twice.
template <int CI, int CO, int WIDE, int TAPS>
__device__ __forceinline__ void each_band(
    float *gradients, u64 gradients_stride, const float *x, const float *dy, const Layer &l) {
    constexpr int WARPS = 8, TILES = CI / 16 * (CO / 16), SPLIT = WARPS / TILES;
    constexpr int EDGE = TAPS == 9 ? 1 : 0, HIGH = BAND + 2 * EDGE, LONG = WIDE + 2 * EDGE;
    constexpr int A_ROW = CI + 4, B_ROW = CO + 4, U = TAPS == 9 ? 3 : 1;
    constexpr int STAGE = HIGH * LONG * A_ROW + BAND * WIDE * B_ROW;
    extern __shared__ float4 shared4[];
    float *shared = (float *)shared4;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const int tile = warp / SPLIT, share = warp % SPLIT;
    const int m0 = tile / (CO / 16) * 16, n0 = tile % (CO / 16) * 16;
    const int width = l.output_width, height = l.output_height, wide = width + 2 * EDGE;
    const u64 example = blockIdx.x;
    const float *image = x + example * l.input_height * l.input_width * CI;
    const float *slope = dy + example * height * width * CO;

    auto load = [&](int stage, int top) {
        float *a = shared + stage * STAGE, *b = a + HIGH * LONG * A_ROW;
        for (int i = thread; i < HIGH * wide * (CI / 4); i += WARPS * 32) {
            const int place = i / (CI / 4), quarter = i % (CI / 4);
            const int at_y = (top + place / wide - EDGE) * l.stride;
            const int at_x = (place % wide - EDGE) * l.stride;
            const bool inside = (u32)at_y < (u32)l.input_height && (u32)at_x < (u32)l.input_width;
            fetch(place_of(a + place * A_ROW + 4 * quarter),
                  image + (inside ? (at_y * l.input_width + at_x) * CI + 4 * quarter : 0),
                  inside ? 16 : 0);
        }
        for (int i = thread; i < BAND * width * (CO / 4); i += WARPS * 32) {
            const int place = i / (CO / 4), quarter = i % (CO / 4);
            const bool inside = top * width + place < height * width;
            fetch(place_of(b + place * B_ROW + 4 * quarter),
                  slope + (inside ? (top * width + place) * CO + 4 * quarter : 0), inside ? 16 : 0);
        }
        close_stage();
    };

    float c[U][U][2][4], bias[2] = {0.0f, 0.0f};
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
        for (int v = 0; v < U; ++v)
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int k = 0; k < 4; ++k) c[u][v][j][k] = 0.0f;
    const int g = lane >> 2, q = lane & 3, bands = (height + BAND - 1) / BAND;
    const int groups = width / 16;  // of sixteen positions in a row
    load(0, 0);
    for (int band = 0; band < bands; ++band) {
        if (band + 1 < bands) {
            load((band + 1) & 1, (band + 1) * BAND);
            wait_for_stage<1>();
        } else {
            wait_for_stage<0>();
        }
        __syncthreads();
        const float *a = shared + (band & 1) * STAGE, *b = a + HIGH * LONG * A_ROW;
        for (int piece = share; piece < BAND * groups; piece += SPLIT) {
            const int row = piece / groups, first = piece % groups * 16 + 2 * q;
            // Four of the sixteen positions: two in each half.
            float right[2][4];
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const int position = row * width + first + (k & 1) + 8 * (k >> 1);
                    right[j][k] = b[position * B_ROW + n0 + 8 * j + g];
                    bias[j] += right[j][k];
                }
#pragma unroll
            for (int u = 0; u < U; ++u) {
                float pixels[2][U + 1][2];
#pragma unroll
                for (int part = 0; part < 2; ++part)
#pragma unroll
                    for (int t = 0; t < U + 1; ++t)
#pragma unroll
                        for (int half = 0; half < 2; ++half) {
                            const int place = (row + u) * wide + first + 8 * part + t;
                            pixels[part][t][half] = a[place * A_ROW + m0 + 8 * half + g];
                        }
                float left[U][2][4];
#pragma unroll
                for (int v = 0; v < U; ++v)
#pragma unroll
                    for (int half = 0; half < 2; ++half)
#pragma unroll
                        for (int k = 0; k < 4; ++k)
                            left[v][half][k] = pixels[k >> 1][v + (k & 1)][half];
                multiply_stage(c[u], left, right);
            }
        }
        // Whoever fetches the band after the next one overwrites this one.
        __syncthreads();
    }

    // The shares of a tile are added up in shared memory, always in the same order.
    constexpr int NUMBERS = TAPS * CI * CO;
#pragma unroll
    for (int u = 0; u < U; ++u)
#pragma unroll
        for (int v = 0; v < U; ++v)
#pragma unroll
            for (int half = 0; half < 2; ++half)
#pragma unroll
                for (int j = 0; j < 2; ++j) {
                    const int row = (u * U + v) * CI + m0 + 8 * half + g;
                    *(float2 *)(shared + share * NUMBERS + row * CO + n0 + 8 * j + 2 * q) =
                        make_float2(c[u][v][j][2 * half], c[u][v][j][2 * half + 1]);
                }
    float *biases = shared + SPLIT * NUMBERS;
    if (m0 == 0)
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            bias[j] += __shfl_xor_sync(0xFFFFFFFFu, bias[j], 1);
            bias[j] += __shfl_xor_sync(0xFFFFFFFFu, bias[j], 2);
            if (q == 0) biases[share * CO + n0 + 8 * j + g] = bias[j];
        }
    __syncthreads();
    float *out = gradients + example * gradients_stride;
    for (int i = thread; i < NUMBERS / 4; i += WARPS * 32) {
        float4 sum = shared4[i];
#pragma unroll
        for (int k = 1; k < SPLIT; ++k) {
            const float4 more = shared4[k * (NUMBERS / 4) + i];
            sum.x += more.x;
            sum.y += more.y;
            sum.z += more.z;
            sum.w += more.w;
        }
        ((float4 *)out)[i] = sum;
    }
    if (thread < CO) {
        float sum = biases[thread];
#pragma unroll
        for (int k = 1; k < SPLIT; ++k) sum += biases[k * CO + thread];
        out[NUMBERS + thread] = sum;
    }
}

// The same for 3 x 3 windows over 64 channels of images of 8 x 8: a warp has a tile of its own, two
// rows are sixteen positions, and a block takes one example after another.
__device__ __forceinline__ void each_image(
    float *gradients, u64 gradients_stride, const float *x, const float *dy, int examples) {
    constexpr int C = 64, SIDE = 8, LONG = SIDE + 2, ROW = C + 4, THREADS = 512;
    constexpr int STAGE = (LONG * LONG + SIDE * SIDE) * ROW;
    extern __shared__ float4 shared4[];
    float *shared = (float *)shared4;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const int m0 = warp / 4 * 16, n0 = warp % 4 * 16, g = lane >> 2, q = lane & 3;
    auto load = [&](int stage, int example) {
        float *a = shared + stage * STAGE, *b = a + LONG * LONG * ROW;
        const float *image = x + (u64)example * SIDE * SIDE * C;
        const float *slope = dy + (u64)example * SIDE * SIDE * C;
        for (int i = thread; i < LONG * LONG * (C / 4); i += THREADS) {
            const int place = i / (C / 4), quarter = i % (C / 4);
            const int at_y = place / LONG - 1, at_x = place % LONG - 1;
            const bool inside = (u32)at_y < SIDE && (u32)at_x < SIDE;
            fetch(place_of(a + place * ROW + 4 * quarter),
                  image + (inside ? (at_y * SIDE + at_x) * C + 4 * quarter : 0), inside ? 16 : 0);
        }
        for (int i = thread; i < SIDE * SIDE * (C / 4); i += THREADS)
            fetch(place_of(b + i / (C / 4) * ROW + 4 * (i % (C / 4))), slope + 4 * i, 16);
        close_stage();
    };
    int example = blockIdx.x;
    if (example < examples) load(0, example);
    for (int stage = 0; example < examples; example += gridDim.x, stage ^= 1) {
        if (example + (int)gridDim.x < examples) {
            load(stage ^ 1, example + gridDim.x);
            wait_for_stage<1>();
        } else {
            wait_for_stage<0>();
        }
        __syncthreads();
        const float *a = shared + stage * STAGE, *b = a + LONG * LONG * ROW;
        float c[3][3][2][4], bias[2] = {0.0f, 0.0f};
#pragma unroll
        for (int u = 0; u < 3; ++u)
#pragma unroll
            for (int v = 0; v < 3; ++v)
#pragma unroll
                for (int j = 0; j < 2; ++j)
#pragma unroll
                    for (int k = 0; k < 4; ++k) c[u][v][j][k] = 0.0f;
#pragma unroll 1
        for (int row = 0; row < SIDE; row += 2) {
            float right[2][4];
#pragma unroll
            for (int j = 0; j < 2; ++j)
#pragma unroll
                for (int k = 0; k < 4; ++k) {
                    const int position = (row + (k >> 1)) * SIDE + 2 * q + (k & 1);
                    right[j][k] = b[position * ROW + n0 + 8 * j + g];
                    bias[j] += right[j][k];
                }
#pragma unroll
            for (int u = 0; u < 3; ++u) {
                float pixels[2][4][2];
#pragma unroll
                for (int part = 0; part < 2; ++part)
#pragma unroll
                    for (int t = 0; t < 4; ++t)
#pragma unroll
                        for (int half = 0; half < 2; ++half)
                            pixels[part][t][half] =
                                a[((row + part + u) * LONG + 2 * q + t) * ROW + m0 + 8 * half + g];
                float left[3][2][4];
#pragma unroll
                for (int v = 0; v < 3; ++v)
#pragma unroll
                    for (int half = 0; half < 2; ++half)
#pragma unroll
                        for (int k = 0; k < 4; ++k)
                            left[v][half][k] = pixels[k >> 1][v + (k & 1)][half];
                multiply_stage(c[u], left, right);
            }
        }
        float *out = gradients + (u64)example * gradients_stride;
#pragma unroll
        for (int u = 0; u < 3; ++u)
#pragma unroll
            for (int v = 0; v < 3; ++v)
#pragma unroll
                for (int half = 0; half < 2; ++half)
#pragma unroll
                    for (int j = 0; j < 2; ++j) {
                        const int row = (u * 3 + v) * C + m0 + 8 * half + g;
                        *(float2 *)(out + row * C + n0 + 8 * j + 2 * q) =
                            make_float2(c[u][v][j][2 * half], c[u][v][j][2 * half + 1]);
                    }
        if (m0 == 0)
#pragma unroll
            for (int j = 0; j < 2; ++j) {
                bias[j] += __shfl_xor_sync(0xFFFFFFFFu, bias[j], 1);
                bias[j] += __shfl_xor_sync(0xFFFFFFFFu, bias[j], 2);
                if (q == 0) out[9 * C * C + n0 + 8 * j + g] = bias[j];
            }
        // Whoever fetches the example after the next one overwrites this one.
        __syncthreads();
    }
}

#define EACH_BAND(NAME, CI, CO, WIDE, TAPS)                                                         \
    extern "C" __global__ void __launch_bounds__(256, 2) each_band_##NAME(                           \
        float *gradients, u64 gradients_stride, const float *x, const float *dy, const Layer l,      \
        u32 magic, int) {                                                                            \
        each_band<CI, CO, WIDE, TAPS>(gradients, gradients_stride, x, dy, l);                        \
    }
#ifdef WANTED_each_band_16_9
EACH_BAND(16_9, 16, 16, 32, 9)
#endif
#ifdef WANTED_each_band_32_9
EACH_BAND(32_9, 32, 32, 16, 9)
#endif
#ifdef WANTED_each_band_16_1
EACH_BAND(16_1, 16, 16, 32, 1)
#endif
#ifdef WANTED_each_band_32_1
EACH_BAND(32_1, 16, 32, 16, 1)
#endif
#ifdef WANTED_each_small
extern "C" __global__ void __launch_bounds__(512, 1) each_small(
    float *gradients, u64 gradients_stride, const float *x, const float *dy, const Layer l,
    u32 magic, int examples) {
    each_image(gradients, gradients_stride, x, dy, examples);
}
#endif
