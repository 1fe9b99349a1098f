// Convolutions as products of matrices that are never written down: the rows of a product are
// gathered from the image while it runs. Compiled by NVRTC with MODE: 0 f32, 1 TF32, 2 bf16.
//
// Tensor cores multiply in every mode and add in f32. In TF32 they read the first 11 bits of each
// operand: weights and normalised inputs are rounded to these when they are stored (`images.cu`),
// gradients are cut off there, as cuBLAS does. bf16 rounds operands to 8 bits here. f32 splits every operand into two numbers of 11 bits and adds three products, which keeps 21
// bits of each operand.
//
// Images are [slot][row][position][channel]. Weights are packed by `weights_in_use` so that the
// numbers that are summed over lie together: [output][window][input] forward, and
// [input][window][output] backward. Sums are always taken in the same order.

typedef unsigned int u32;
typedef unsigned long long u64;
struct Layer {
    int input_height, input_width, input_channels, output_height, output_width, output_channels;
    int kernel, stride, padding;
};

#define DEPTH 16      // numbers that are summed over in one stage
#define AHEAD 4       // stages of `convolve` in flight
#define AHEAD_EACH 3  // stages of `each_gradient` in flight

__device__ __forceinline__ u32 place_of(const void *shared) {
    return (u32)__cvta_generic_to_shared(shared);
}

// 16 bytes into shared memory; zeros when `bytes` is 0.
__device__ __forceinline__ void fetch(u32 to, const float *from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes));
}
__device__ __forceinline__ void close_stage() { asm volatile("cp.async.commit_group;\n"); }
template <int LEFT> __device__ __forceinline__ void wait_for_stage() {
    asm volatile("cp.async.wait_group %0;\n" ::"n"(LEFT));
}

#if MODE == 0
// A number as two of 11 bits. What the second one loses is below 2^-21 of the whole; it is NaN when
// the number is.
__device__ __forceinline__ u32 large_part(float x) {
    return (__float_as_uint(x) + 4096) & 0xFFFFE000u;
}
__device__ __forceinline__ u32 rest(float x, u32 large) {
    return __float_as_uint(x - __uint_as_float(large));
}
#else
__device__ __forceinline__ u32 large_part(float x) { return __float_as_uint(x); }
#endif

__device__ __forceinline__ void multiply(float (&c)[4], const u32 (&a)[4], const u32 (&b)[2]) {
#if MODE == 2
    asm(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    asm(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, "
        "{%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

#if MODE == 2
__device__ __forceinline__ u32 pair(float low, float high) {
    u32 y;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
    return y;
}
#endif

// c += a b over DEPTH numbers. A lane holds four numbers of each of its rows of a (two for each 16
// rows) and columns of b; which of the sixteen they are does not matter as long as a and b agree.
template <int MI, int NI>
__device__ __forceinline__ void multiply_stage(
    float (&c)[MI][NI][4], const float (&a)[MI][2][4], const float (&b)[NI][4]) {
#if MODE == 2
    u32 left[MI][4], right[NI][2];
#pragma unroll
    for (int i = 0; i < MI; ++i) {
        left[i][0] = pair(a[i][0][0], a[i][0][1]);
        left[i][1] = pair(a[i][1][0], a[i][1][1]);
        left[i][2] = pair(a[i][0][2], a[i][0][3]);
        left[i][3] = pair(a[i][1][2], a[i][1][3]);
    }
#pragma unroll
    for (int j = 0; j < NI; ++j) {
        right[j][0] = pair(b[j][0], b[j][1]);
        right[j][1] = pair(b[j][2], b[j][3]);
    }
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < NI; ++j) multiply(c[i][j], left[i], right[j]);
#else
#pragma unroll
    for (int half = 0; half < 4; half += 2) {
        u32 left[MI][4], right[NI][2];
#pragma unroll
        for (int i = 0; i < MI; ++i) {
            left[i][0] = large_part(a[i][0][half]);
            left[i][1] = large_part(a[i][1][half]);
            left[i][2] = large_part(a[i][0][half + 1]);
            left[i][3] = large_part(a[i][1][half + 1]);
        }
#pragma unroll
        for (int j = 0; j < NI; ++j) {
            right[j][0] = large_part(b[j][half]);
            right[j][1] = large_part(b[j][half + 1]);
        }
#if MODE == 0
        u32 right_rest[NI][2];
#pragma unroll
        for (int j = 0; j < NI; ++j) {
            right_rest[j][0] = rest(b[j][half], right[j][0]);
            right_rest[j][1] = rest(b[j][half + 1], right[j][1]);
        }
#pragma unroll
        for (int i = 0; i < MI; ++i) {
            u32 left_rest[4];
            left_rest[0] = rest(a[i][0][half], left[i][0]);
            left_rest[1] = rest(a[i][1][half], left[i][1]);
            left_rest[2] = rest(a[i][0][half + 1], left[i][2]);
            left_rest[3] = rest(a[i][1][half + 1], left[i][3]);
            // The sum of this stage on its own: tensor cores cut off what does not fit beside a
            // large sum, additions here round it.
            float part[NI][4];
#pragma unroll
            for (int j = 0; j < NI; ++j) {
                part[j][0] = part[j][1] = part[j][2] = part[j][3] = 0.0f;
                multiply(part[j], left_rest, right[j]);
            }
#pragma unroll
            for (int j = 0; j < NI; ++j) multiply(part[j], left[i], right_rest[j]);
#pragma unroll
            for (int j = 0; j < NI; ++j) multiply(part[j], left[i], right[j]);
#pragma unroll
            for (int j = 0; j < NI; ++j)
#pragma unroll
                for (int k = 0; k < 4; ++k) c[i][j][k] += part[j][k];
        }
#else
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int j = 0; j < NI; ++j) multiply(c[i][j], left[i], right[j]);
#endif
    }
#endif
}

__device__ __forceinline__ float activate(float x, int kind) {
    if (kind == 1) return x < 0.0f ? 0.0f : x;
    if (kind == 2) return tanhf(x);
    return x;
}

// y = convolution of x (+ bias) (+ other), or with BACK the gradient of the input from that of the
// output. BM positions and BN channels for a block, WM x WN for a warp. Backward, positions are
// taken by their remainder modulo the stride: those of one class see the same windows.
template <int BM, int BN, int WM, int WN, bool BACK>
__device__ __forceinline__ void convolve(
    float *y, const float *x, const float *weights, u64 weights_stride, const float *parameters,
    u64 stride, int bias, const float *other, const int *order, const Layer &l, int rows, int kind) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32;
    constexpr int MI = WM / 16, NI = WN / 8, STAGE = (BM + BN) * DEPTH;
    constexpr int A_EACH = BM * 4 / THREADS, B_EACH = (BN * 4 + THREADS - 1) / THREADS;
    extern __shared__ float4 shared4[];
    float *shared = (float *)shared4;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const int warp_m = warp / (BN / WN) * WM, warp_n = warp % (BN / WN) * WN;
    const int classes = BACK ? l.stride * l.stride : 1;
    const int slot = blockIdx.y, class_of = blockIdx.x % classes, tile = blockIdx.x / classes;
    const u64 replica = order[slot];

    // Where rows of the product come from: pixel (i first + begin + u towards) of the source.
    const int channels = BACK ? l.output_channels : l.input_channels;
    const int columns = BACK ? l.input_channels : l.output_channels;
    const int height = BACK ? l.output_height : l.input_height;
    const int width = BACK ? l.output_width : l.input_width;
    const int class_y = BACK ? class_of / l.stride : 0, class_x = BACK ? class_of % l.stride : 0;
    const int tap_y = BACK ? (class_y + l.padding) % l.stride : 0;
    const int tap_x = BACK ? (class_x + l.padding) % l.stride : 0;
    const int tap_step = BACK ? l.stride : 1;
    const int taps_y = tap_y < l.kernel ? (l.kernel - tap_y + tap_step - 1) / tap_step : 0;
    const int taps_x = tap_x < l.kernel ? (l.kernel - tap_x + tap_step - 1) / tap_step : 0;
    const int grid_height =
        BACK ? (l.input_height - class_y + l.stride - 1) / l.stride : l.output_height;
    const int grid_width =
        BACK ? (l.input_width - class_x + l.stride - 1) / l.stride : l.output_width;
    const int first = BACK ? 1 : l.stride, towards = BACK ? -1 : 1;
    const int begin_y = BACK ? (class_y + l.padding - tap_y) / l.stride : -l.padding;
    const int begin_x = BACK ? (class_x + l.padding - tap_x) / l.stride : -l.padding;

    const int tiles_n = columns / BN;
    const int m0 = tile / tiles_n * BM, n0 = tile % tiles_n * BN;
    const int positions = grid_height * grid_width, all = rows * positions;
    if (m0 >= all) return;
    const float *source = x + (u64)slot * rows * height * width * channels;
    const int patch = l.kernel * l.kernel * channels;
    const float *w = weights + replica * weights_stride + (u64)n0 * patch;

    const int quarter = thread & 3;
    int pixel[A_EACH], corner[A_EACH];  // offset of the first pixel; its y and x
#pragma unroll
    for (int i = 0; i < A_EACH; ++i) {
        const int m = m0 + (thread >> 2) + i * (THREADS / 4);
        const int example = m / positions, position = m % positions;
        const int at_y = position / grid_width * first + begin_y;
        const int at_x = position % grid_width * first + begin_x;
        pixel[i] = (example * height + at_y) * width + at_x;
        corner[i] = m < all ? (at_y << 16) | (at_x & 0xFFFF) : (int)0xC0000000;
    }

    int u = 0, v = 0, from = 0;  // what is fetched next
    const int stages = taps_y * taps_x * (channels / DEPTH);
    auto load = [&](int stage) {
        float *a = shared + stage * STAGE, *b = a + BM * DEPTH;
        const int step_y = u * towards, step_x = v * towards;
        const int step = step_y * width + step_x;
#pragma unroll
        for (int i = 0; i < A_EACH; ++i) {
            const int at_y = (corner[i] >> 16) + step_y, at_x = (short)corner[i] + step_x;
            const bool inside = (u32)at_y < (u32)height && (u32)at_x < (u32)width;
            const float *p = source + (inside ? (u64)(pixel[i] + step) * channels : 0ull);
            fetch(place_of(a + ((thread >> 2) + i * (THREADS / 4)) * DEPTH + 4 * quarter),
                  p + from + 4 * quarter, inside ? 16 : 0);
        }
        const int tap = (tap_y + tap_step * u) * l.kernel + tap_x + tap_step * v;
        const float *p = w + tap * channels + from + 4 * quarter;
#pragma unroll
        for (int i = 0; i < B_EACH; ++i) {
            const int n = (thread >> 2) + i * (THREADS / 4);
            if (BN * 4 % THREADS == 0 || n < BN)
                fetch(place_of(b + n * DEPTH + 4 * quarter), p + (u64)n * patch, 16);
        }
        from += DEPTH;
        if (from == channels) {
            from = 0;
            if (++v == taps_x) { v = 0; ++u; }
        }
    };

    float c[MI][NI][4];
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < NI; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k) c[i][j][k] = 0.0f;
#pragma unroll
    for (int s = 0; s < AHEAD - 1; ++s) {
        if (s < stages) load(s);
        close_stage();
    }
    const int g = lane >> 2, q = lane & 3;
    for (int s = 0; s < stages; ++s) {
        wait_for_stage<AHEAD - 2>();
        __syncthreads();
        if (s + AHEAD - 1 < stages) load((s + AHEAD - 1) % AHEAD);
        close_stage();
        const float *a = shared + s % AHEAD * STAGE, *b = a + BM * DEPTH;
        float left[MI][2][4], right[NI][4];
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                *(float4 *)left[i][half] =
                    *(const float4 *)(a + (warp_m + 16 * i + 8 * half + g) * DEPTH + 4 * q);
#pragma unroll
        for (int j = 0; j < NI; ++j)
            *(float4 *)right[j] = *(const float4 *)(b + (warp_n + 8 * j + g) * DEPTH + 4 * q);
        multiply_stage(c, left, right);
    }

    const float *own = parameters ? parameters + replica * stride + bias + n0 : 0;
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int m = m0 + warp_m + 16 * i + 8 * half + g;
            if (m >= all) continue;
            u64 target = (u64)slot * all + m;
            if (BACK) {
                const int example = m / positions, position = m % positions;
                const int at_y = position / grid_width * l.stride + class_y;
                const int at_x = position % grid_width * l.stride + class_x;
                target = ((u64)(slot * rows + example) * l.input_height + at_y) * l.input_width + at_x;
            }
#pragma unroll
            for (int j = 0; j < NI; ++j) {
                const int n = warp_n + 8 * j + 2 * q;
                const u64 place = target * columns + n0 + n;
                float2 value = make_float2(c[i][j][2 * half], c[i][j][2 * half + 1]);
                if (own) { value.x += own[n]; value.y += own[n + 1]; }
                if (other) {
                    const float2 more = *(const float2 *)(other + place);
                    value.x += more.x;
                    value.y += more.y;
                }
                if (!BACK && kind) { value.x = activate(value.x, kind); value.y = activate(value.y, kind); }
                *(float2 *)(y + place) = value;
            }
        }
}

// Every example's own gradient of the weights: [window][input] x [output], summed over positions,
// and behind it that of the bias. The tiles of an example lie one after the other. `magic` divides by the output's width.
template <int BM, int BN, int WM, int WN>
__device__ __forceinline__ void each_gradient(
    float *gradients, u64 gradients_stride, const float *x, const float *dy, const Layer &l,
    u32 magic) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32;
    constexpr int MI = WM / 16, NI = WN / 8, A_ROW = BM + 8, B_ROW = BN + 8;
    constexpr int STAGE = (A_ROW + B_ROW) * DEPTH;
    constexpr int A_COLUMNS = BM / 4, A_STEP = THREADS / A_COLUMNS, B_COLUMNS = BN / 4;
    constexpr int B_STEP = THREADS / B_COLUMNS;
    extern __shared__ float4 shared4[];
    float *shared = (float *)shared4;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const int warp_m = warp / (BN / WN) * WM, warp_n = warp % (BN / WN) * WN;
    const int inputs = l.input_channels, outputs = l.output_channels;
    const int patch = l.kernel * l.kernel * inputs, positions = l.output_height * l.output_width;
    const int tiles_n = outputs / BN, tiles = (patch + BM - 1) / BM * tiles_n;
    const int tile = blockIdx.x % tiles, m0 = tile / tiles_n * BM, n0 = tile % tiles_n * BN;
    const u64 example = blockIdx.x / tiles;
    const float *image = x + example * l.input_height * l.input_width * inputs;
    const float *slope = dy + example * positions * outputs + n0;

    const int a_column = thread % A_COLUMNS, a_first = thread / A_COLUMNS;
    const int b_column = thread % B_COLUMNS, b_first = thread / B_COLUMNS;
    const int m = m0 + 4 * a_column, tap = m / inputs, channel = m % inputs;
    const int begin_y = m < patch ? tap / l.kernel - l.padding : -(1 << 20);
    const int begin_x = tap % l.kernel - l.padding;
    const int stages = (positions + DEPTH - 1) / DEPTH;
    auto load = [&](int stage, int number) {
        float *a = shared + stage * STAGE, *b = a + A_ROW * DEPTH;
#pragma unroll
        for (int row = a_first; row < DEPTH; row += A_STEP) {
            if (A_STEP * A_COLUMNS != THREADS && a_first >= A_STEP) break;
            const int position = number * DEPTH + row;
            const int out_y = magic ? (int)__umulhi((u32)position, magic) : position;
            const int out_x = position - out_y * l.output_width;
            const int at_y = out_y * l.stride + begin_y, at_x = out_x * l.stride + begin_x;
            const bool inside = position < positions && (u32)at_y < (u32)l.input_height
                                && (u32)at_x < (u32)l.input_width;
            const int pixel = inside ? at_y * l.input_width + at_x : 0;
            fetch(place_of(a + row * A_ROW + 4 * a_column), image + (inside ? pixel * inputs + channel : 0),
                  inside ? 16 : 0);
        }
#pragma unroll
        for (int row = b_first; row < DEPTH; row += B_STEP) {
            if (B_STEP * B_COLUMNS != THREADS && b_first >= B_STEP) break;
            const int position = number * DEPTH + row;
            const bool inside = position < positions;
            fetch(place_of(b + row * B_ROW + 4 * b_column),
                  slope + (inside ? position * outputs + 4 * b_column : 0), inside ? 16 : 0);
        }
    };

    float c[MI][NI][4], bias = 0.0f;
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < NI; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k) c[i][j][k] = 0.0f;
#pragma unroll
    for (int s = 0; s < AHEAD_EACH - 1; ++s) {
        if (s < stages) load(s, s);
        close_stage();
    }
    const int g = lane >> 2, q = lane & 3;
    for (int s = 0; s < stages; ++s) {
        wait_for_stage<AHEAD_EACH - 2>();
        __syncthreads();
        if (s + AHEAD_EACH - 1 < stages) load((s + AHEAD_EACH - 1) % AHEAD_EACH, s + AHEAD_EACH - 1);
        close_stage();
        const float *a = shared + s % AHEAD_EACH * STAGE, *b = a + A_ROW * DEPTH;
        float left[MI][2][4], right[NI][4];
#pragma unroll
        for (int k = 0; k < 4; ++k) {
#pragma unroll
            for (int i = 0; i < MI; ++i)
#pragma unroll
                for (int half = 0; half < 2; ++half)
                    left[i][half][k] = a[(q + 4 * k) * A_ROW + warp_m + 16 * i + 8 * half + g];
#pragma unroll
            for (int j = 0; j < NI; ++j)
                right[j][k] = b[(q + 4 * k) * B_ROW + warp_n + 8 * j + g];
        }
        multiply_stage(c, left, right);
        if (m0 == 0 && thread < BN)
#pragma unroll
            for (int row = 0; row < DEPTH; ++row) bias += b[row * B_ROW + thread];
    }

    float *out = gradients + example * gradients_stride + n0;
    if (m0 == 0 && thread < BN) out[(u64)patch * outputs + thread] = bias;
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int row = m0 + warp_m + 16 * i + 8 * half + g;
            if (row >= patch) continue;
#pragma unroll
            for (int j = 0; j < NI; ++j)
                *(float2 *)(out + (u64)row * outputs + warp_n + 8 * j + 2 * q) =
                    make_float2(c[i][j][2 * half], c[i][j][2 * half + 1]);
        }
}

#define FORWARD(NAME, BM, BN, WM, WN, BLOCKS)                                                       \
    extern "C" __global__ void __launch_bounds__((BM) / (WM) * ((BN) / (WN)) * 32, BLOCKS)           \
        forward_##NAME(                                                                              \
            float *y, const float *x, const float *weights, u64 weights_stride,                      \
            const float *parameters, u64 stride, int bias, const float *other, const int *order,     \
            const Layer l, int rows, int kind) {                                                     \
        convolve<BM, BN, WM, WN, false>(                                                             \
            y, x, weights, weights_stride, parameters, stride, bias, other, order, l, rows, kind);   \
    }
#define BACKWARD(NAME, BM, BN, WM, WN, BLOCKS)                                                      \
    extern "C" __global__ void __launch_bounds__((BM) / (WM) * ((BN) / (WN)) * 32, BLOCKS)           \
        backward_##NAME(                                                                             \
            float *y, const float *x, const float *weights, u64 weights_stride,                      \
            const float *other, const int *order, const Layer l, int rows) {                         \
        convolve<BM, BN, WM, WN, true>(                                                              \
            y, x, weights, weights_stride, 0, 0, 0, other, order, l, rows, 0);                       \
    }

#define EACH_GRADIENT(NAME, BM, BN, WM, WN, BLOCKS)                                                 \
    extern "C" __global__ void __launch_bounds__((BM) / (WM) * ((BN) / (WN)) * 32, BLOCKS)           \
        each_##NAME(                                                                                 \
            float *gradients, u64 gradients_stride, const float *x, const float *dy, const Layer l,  \
            u32 magic, int) {                                                                        \
        each_gradient<BM, BN, WM, WN>(gradients, gradients_stride, x, dy, l, magic);                 \
    }

// Only what a net needs is compiled. In f32 a warp takes half as many columns.
#if MODE == 0
#define WARP_N 32
#define WARP_M 32
#define BLOCKS 1
#else
#define WARP_N 64
#define WARP_M 64
#define BLOCKS 2
#endif
#ifdef WANTED_forward_128
FORWARD(128, 128, 128, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_backward_128
BACKWARD(128, 128, 128, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_forward_64
FORWARD(64, 256, 64, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_backward_64
BACKWARD(64, 256, 64, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_forward_32
FORWARD(32, 256, 32, WARP_M, 32, BLOCKS)
#endif
#ifdef WANTED_backward_32
BACKWARD(32, 256, 32, WARP_M, 32, BLOCKS)
#endif
#ifdef WANTED_forward_16
FORWARD(16, 256, 16, WARP_M, 16, BLOCKS)
#endif
#ifdef WANTED_backward_16
BACKWARD(16, 256, 16, WARP_M, 16, BLOCKS)
#endif
#ifdef WANTED_each_128
EACH_GRADIENT(128, 128, 128, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_each_64
EACH_GRADIENT(64, 192, 64, 64, 32, BLOCKS)
#endif
#ifdef WANTED_each_32
EACH_GRADIENT(32, 192, 32, 64, WARP_N / 2, BLOCKS)
#endif
#ifdef WANTED_each_16
EACH_GRADIENT(16, 192, 16, 64, 16, BLOCKS)
#endif
