// Convolutions of 3 x 3 windows, stride 1 and padding 1, follows `convolution.cu`. A block's
// positions are whole rows of images. They lie in shared memory once, with a border, DEPTH channels
// at a time, and all nine windows read them there: `convolve` fetches every pixel nine times.

template <int BM> struct Halo {
    // Most places of a tile with its border: 8 rows of 32, 16 of 16, or 4 images of 8 x 8.
    static constexpr int PLACES = BM == 256 ? 400 : 204;
};

template <int BM, int BN, int WM, int WN, bool BACK>
__device__ __forceinline__ void convolve_halo(
    float *y, const float *x, const float *weights, u64 weights_stride, const float *parameters,
    u64 stride, int bias, const float *other, const int *order, const Layer &l, int rows, int kind) {
    constexpr int THREADS = BM / WM * (BN / WN) * 32, PLACES = Halo<BM>::PLACES;
    constexpr int MI = WM / 16, NI = WN / 8;
    constexpr int A_EACH = (PLACES * 4 + THREADS - 1) / THREADS;
    constexpr int B_EACH = (BN * 4 + THREADS - 1) / THREADS;
    extern __shared__ float4 shared4[];
    float *images_in = (float *)shared4, *weights_in = images_in + 2 * PLACES * DEPTH;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const int warp_m = warp / (BN / WN) * WM, warp_n = warp % (BN / WN) * WN;
    const int slot = blockIdx.y, tile = blockIdx.x;
    const u64 replica = order[slot];
    const int channels = BACK ? l.output_channels : l.input_channels;
    const int columns = BACK ? l.input_channels : l.output_channels;
    const int height = l.input_height, width = l.input_width, positions = height * width;
    const int tiles_n = columns / BN, all = rows * positions;
    const int m0 = tile / tiles_n * BM, n0 = tile % tiles_n * BN;
    if (m0 >= all) return;
    const float *source = x + (u64)slot * all * channels;
    const int patch = 9 * channels;
    const float *w = weights + replica * weights_stride + (u64)n0 * patch;

    // The tile: `high` rows of each of its images, with a border of one pixel.
    const int first = m0 / positions, top = m0 % positions / width;
    const int high = min(BM, positions) / width;
    const int wide = width + 2, each = wide * (high + 2), places = max(1, BM / positions) * each;
    const int quarter = thread & 3;
    int from[A_EACH];  // what this thread fetches; -1: a border of zeros, -2: nothing
#pragma unroll
    for (int i = 0; i < A_EACH; ++i) {
        const int place = (thread >> 2) + i * (THREADS / 4);
        const int image = place / each, rest = place % each;
        const int at_y = top + rest / wide - 1, at_x = rest % wide - 1, example = first + image;
        const bool inside = (u32)at_y < (u32)height && (u32)at_x < (u32)width && example < rows;
        const int pixel = (example * height + at_y) * width + at_x;
        from[i] = place >= places ? -2 : inside ? pixel * channels + 4 * quarter : -1;
    }
    auto load_images = [&](int slab) {
        float *a = images_in + (slab & 1) * PLACES * DEPTH;
#pragma unroll
        for (int i = 0; i < A_EACH; ++i) {
            if (from[i] == -2) continue;
            const bool inside = from[i] >= 0;
            fetch(place_of(a + ((thread >> 2) + i * (THREADS / 4)) * DEPTH + 4 * quarter),
                  source + (inside ? from[i] + slab * DEPTH : 0),
                  inside ? 16 : 0);
        }
    };
    int next_tap = 0, next_slab = 0;
    auto load_weights = [&](int stage) {
        float *b = weights_in + stage * BN * DEPTH;
        const float *p = w + next_tap * channels + next_slab * DEPTH + 4 * quarter;
#pragma unroll
        for (int i = 0; i < B_EACH; ++i) {
            const int n = (thread >> 2) + i * (THREADS / 4);
            if (BN * 4 % THREADS == 0 || n < BN)
                fetch(place_of(b + n * DEPTH + 4 * quarter), p + (u64)n * patch, 16);
        }
        if (++next_tap == 9) { next_tap = 0; ++next_slab; }
    };

    // Where this lane's rows begin: the window's first corner, or its last one backward.
    const int g = lane >> 2, q = lane & 3;
    int corner[MI][2];
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int m = warp_m + 16 * i + 8 * half + g;
            const int image = m / positions, rest = m % positions;
            const int place = image * each + rest / width * wide + rest % width;
            corner[i][half] = (place + (BACK ? 2 * wide + 2 : 0)) * DEPTH + 4 * q;
        }

    float c[MI][NI][4];
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int j = 0; j < NI; ++j)
#pragma unroll
            for (int k = 0; k < 4; ++k) c[i][j][k] = 0.0f;
    const int slabs = channels / DEPTH, stages = 9 * slabs;
    load_images(0);
#pragma unroll
    for (int s = 0; s < AHEAD - 1; ++s) {
        load_weights(s);
        close_stage();
    }
    int u = 0, v = 0, slab = 0;
    for (int s = 0; s < stages; ++s) {
        wait_for_stage<AHEAD - 2>();
        __syncthreads();
        if (s + AHEAD - 1 < stages) load_weights((s + AHEAD - 1) % AHEAD);
        if (u == 0 && v == 0 && slab + 1 < slabs) load_images(slab + 1);
        close_stage();
        const int step = (u * wide + v) * DEPTH;
        const float *a = images_in + (slab & 1) * PLACES * DEPTH + (BACK ? -step : step);
        const float *b = weights_in + s % AHEAD * BN * DEPTH;
        float left[MI][2][4], right[NI][4];
#pragma unroll
        for (int i = 0; i < MI; ++i)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                *(float4 *)left[i][half] = *(const float4 *)(a + corner[i][half]);
#pragma unroll
        for (int j = 0; j < NI; ++j)
            *(float4 *)right[j] = *(const float4 *)(b + (warp_n + 8 * j + g) * DEPTH + 4 * q);
        multiply_stage(c, left, right);
        if (++v == 3) { v = 0; if (++u == 3) { u = 0; ++slab; } }
    }

    const float *own = parameters ? parameters + replica * stride + bias + n0 : 0;
#pragma unroll
    for (int i = 0; i < MI; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int m = m0 + warp_m + 16 * i + 8 * half + g;
            if (m >= all) continue;
#pragma unroll
            for (int j = 0; j < NI; ++j) {
                const int n = warp_n + 8 * j + 2 * q;
                const u64 place = ((u64)slot * all + m) * columns + n0 + n;
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

#define HALO_FORWARD(NAME, BM, BN, WM, WN, BLOCKS)                                                  \
    extern "C" __global__ void __launch_bounds__((BM) / (WM) * ((BN) / (WN)) * 32, BLOCKS)           \
        halo_forward_##NAME(                                                                         \
            float *y, const float *x, const float *weights, u64 weights_stride,                      \
            const float *parameters, u64 stride, int bias, const float *other, const int *order,     \
            const Layer l, int rows, int kind) {                                                     \
        convolve_halo<BM, BN, WM, WN, false>(                                                        \
            y, x, weights, weights_stride, parameters, stride, bias, other, order, l, rows, kind);   \
    }
#define HALO_BACKWARD(NAME, BM, BN, WM, WN, BLOCKS)                                                 \
    extern "C" __global__ void __launch_bounds__((BM) / (WM) * ((BN) / (WN)) * 32, BLOCKS)           \
        halo_backward_##NAME(                                                                        \
            float *y, const float *x, const float *weights, u64 weights_stride,                      \
            const float *other, const int *order, const Layer l, int rows) {                         \
        convolve_halo<BM, BN, WM, WN, true>(                                                         \
            y, x, weights, weights_stride, 0, 0, 0, other, order, l, rows, 0);                       \
    }
// More blocks of the small tiles on a processor hide each other's fetching.
#if MODE == 0
#define BLOCKS_32 1
#define BLOCKS_16 2
#else
#define BLOCKS_32 3
#define BLOCKS_16 4
#endif
#ifdef WANTED_halo_forward_128
HALO_FORWARD(128, 128, 128, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_halo_backward_128
HALO_BACKWARD(128, 128, 128, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_halo_forward_64
HALO_FORWARD(64, 256, 64, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_halo_backward_64
HALO_BACKWARD(64, 256, 64, 64, WARP_N, BLOCKS)
#endif
#ifdef WANTED_halo_forward_32
HALO_FORWARD(32, 256, 32, WARP_M, 32, BLOCKS_32)
#endif
#ifdef WANTED_halo_backward_32
HALO_BACKWARD(32, 256, 32, WARP_M, 32, BLOCKS_32)
#endif
#ifdef WANTED_halo_forward_16
HALO_FORWARD(16, 256, 16, WARP_M, 16, BLOCKS_16)
#endif
#ifdef WANTED_halo_backward_16
HALO_BACKWARD(16, 256, 16, WARP_M, 16, BLOCKS_16)
#endif
