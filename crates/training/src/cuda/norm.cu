// Group normalisation as a stream, follows `images.cu`: a block takes one part of an image after
// another (whole groups of at most 64 channels), holds it in registers, and fetches the next part
// into shared memory meanwhile, so that memory is never idle. A thread holds HELD times four
// channels of a position. Two normalisations of the same numbers, at the branches of a residual
// block, are one pass.

#define HELD 8

struct Norms {
    int positions, channels, groups, chunk, active, rows, examples;
    int scale, shift, other_scale, other_shift;
    // Positions of a row; and the stride at which results and their gradients are there: 2 where a
    // convolution of single pixels reads every second position of every second row.
    int image_width, every, other_every;
};

// 16 bytes into shared memory; zeros when `there` is not set. Read back by the same thread only.
__device__ __forceinline__ void fetch(float4 *to, const float *from, bool there) {
    const u32 place = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(place), "l"(from),
                 "r"(there ? 16 : 0)
                 : "memory");
}
__device__ __forceinline__ void wait_for_fetches() {
    asm volatile("cp.async.wait_all;\n" ::: "memory");
}

// Which part of which image, and where this thread's numbers are.
struct Part4 {
    int quads, quad, row, parts, width, spread;
    u32 step, length;  // numbers from one position of a thread to its next; of an image
    __device__ __forceinline__ Part4(const Norms &g) {
        quads = g.chunk / 4;
        quad = threadIdx.x % quads;
        row = threadIdx.x / quads;
        parts = g.channels / g.chunk;
        width = g.channels / g.groups;
        spread = max(1, width / 4);
        step = blockDim.x / quads * g.channels;
        length = g.positions * g.channels;
    }
    __device__ __forceinline__ int example(int number) const { return number / parts; }
    __device__ __forceinline__ int channel(const Norms &g, int number) const {
        return number % parts * g.chunk + 4 * quad;
    }
    __device__ __forceinline__ u64 place(const Norms &g, int number) const {
        return (u64)example(number) * g.positions * g.channels + channel(g, number);
    }
};

// Where a position's numbers are within an image of which positions at the stride `every` are there;
// -1 if they are not. `at` is where they are in a whole image.
__device__ __forceinline__ int among(const Norms &g, int every, u32 at) {
    if (every == 1) return at;
    const int p = at / g.channels, at_y = p / g.image_width, at_x = p % g.image_width;
    if (at_y % every || at_x % every) return -1;
    return (at_y / every * ((g.image_width + every - 1) / every) + at_x / every) * g.channels;
}

// Numbers of an image then.
__device__ __forceinline__ u32 left_of(const Norms &g, int every) {
    const int height = g.positions / g.image_width;
    return (u32)((height + every - 1) / every) * ((g.image_width + every - 1) / every) * g.channels;
}

__device__ __forceinline__ float &of(float4 &v, int c) { return (&v.x)[c]; }
__device__ __forceinline__ float of(const float4 &v, int c) { return (&v.x)[c]; }

__device__ __forceinline__ float4 four(const float *p) { return make_float4(p[0], p[1], p[2], p[3]); }

__device__ __forceinline__ float4 normalised(
    float4 v, float4 centre, float4 inverse, float4 scale, float4 shift) {
    float4 y;
#pragma unroll
    for (int c = 0; c < 4; ++c)
        of(y, c) = operand((of(v, c) - of(centre, c)) * of(inverse, c) * of(scale, c) + of(shift, c));
    return y;
}

// SETS: the groups that four channels lie in. A thread sums its few numbers of a channel in f32;
// everything beyond is summed in f64.
template <int SETS>
__device__ __forceinline__ void normalise_stream(
    float *y, float *other, float2 *statistics, const float *x, const float *parameters,
    const int *order, u64 stride, const Norms &g) {
    extern __shared__ float4 staged[];
    const Part4 t(g);
    const int work = g.examples * t.parts, warps = blockDim.x / 32;
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    float4 *own = staged + threadIdx.x;
    double2 *sums = (double2 *)(staged + HELD * blockDim.x);  // [turn][warp][quad][set]
    const double count = (double)t.width * g.positions;
    auto load = [&](int number) {
        const float *from = x + t.place(g, number);
        u32 at = t.row * g.channels;
#pragma unroll
        for (int k = 0; k < HELD; ++k, at += t.step) {
            const bool there = at < t.length;
            fetch(own + k * blockDim.x, from + (there ? at : 0), there);
        }
    };
    int number = blockIdx.x;
    if (number < work) load(number);
    for (int turn = 0; number < work; number += gridDim.x, turn ^= 1) {
        wait_for_fetches();
        float4 kept[HELD];
#pragma unroll
        for (int k = 0; k < HELD; ++k) kept[k] = own[k * blockDim.x];
        asm volatile("" ::: "memory");
        if (number + (int)gridDim.x < work) load(number + gridDim.x);

        float sum[4] = {0, 0, 0, 0}, square[4] = {0, 0, 0, 0};
#pragma unroll
        for (int k = 0; k < HELD; ++k)
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const float v = of(kept[k], c) = passed(of(kept[k], c), g.active);
                sum[c] += v;
                square[c] += v * v;
            }
        double2 total[SETS];
#pragma unroll
        for (int i = 0; i < SETS; ++i) {
            total[i] = make_double2(0.0, 0.0);
#pragma unroll
            for (int c = i * (4 / SETS); c < (i + 1) * (4 / SETS); ++c) {
                total[i].x += sum[c];
                total[i].y += square[c];
            }
        }
        // Lanes of the same group: the quads of a group, and all positions.
        for (int step = 1; step < 32; step <<= 1) {
            if (step >= t.spread && step < t.quads) continue;
#pragma unroll
            for (int i = 0; i < SETS; ++i) {
                total[i].x += __shfl_xor_sync(0xFFFFFFFFu, total[i].x, step);
                total[i].y += __shfl_xor_sync(0xFFFFFFFFu, total[i].y, step);
            }
        }
        // Written and read in turns, so that one barrier is enough.
        double2 *shared = sums + turn * warps * t.quads * SETS;
        if (lane < t.quads)
#pragma unroll
            for (int i = 0; i < SETS; ++i) shared[(warp * t.quads + lane) * SETS + i] = total[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SETS; ++i) total[i] = make_double2(0.0, 0.0);
        for (int w = 0; w < warps; ++w)
#pragma unroll
            for (int i = 0; i < SETS; ++i) {
                const double2 more = shared[(w * t.quads + t.quad) * SETS + i];
                total[i].x += more.x;
                total[i].y += more.y;
            }

        const int example = t.example(number), channel = t.channel(g, number);
        float4 centre, inverse;
#pragma unroll
        for (int i = 0; i < SETS; ++i) {
            const double mean = total[i].x / count;
            const double variance = fmax(total[i].y / count - mean * mean, 0.0);
            const float2 known = make_float2((float)mean, (float)(1.0 / sqrt(variance + 1e-5)));
            if (t.row == 0 && t.quad % t.spread == 0)
                statistics[(u64)example * g.groups + channel / t.width + i] = known;
#pragma unroll
            for (int c = i * (4 / SETS); c < (i + 1) * (4 / SETS); ++c) {
                of(centre, c) = known.x;
                of(inverse, c) = known.y;
            }
        }
        const float *numbers = parameters + (u64)order[example / g.rows] * stride + channel;
#pragma unroll 1
        for (int pass = 0; pass < 2; ++pass) {
            float *to = pass ? other : y;
            if (!to) break;
            const int every = pass ? g.other_every : g.every;
            to += (u64)example * left_of(g, every) + channel;
            const float4 scale = four(numbers + (pass ? g.other_scale : g.scale));
            const float4 shift = four(numbers + (pass ? g.other_shift : g.shift));
            u32 at = t.row * g.channels;
#pragma unroll
            for (int k = 0; k < HELD; ++k, at += t.step) {
                const int place = at < t.length ? among(g, every, at) : -1;
                if (place >= 0)
                    *(float4 *)(to + place) = normalised(kept[k], centre, inverse, scale, shift);
            }
        }
    }
}

// Gradients of scale and shift of each example into its kept gradient, and that of the input (with
// `base` added) unless dx is null. With PAIR also those of the other normalisation, whose gradient
// is `other` and whose kept numbers are at `other_kept`.
template <int SETS, bool PAIR>
__device__ __forceinline__ void normalise_backward_stream(
    float *dx, const float *base, float *kept, float *other_kept, u64 kept_stride, const float *dy,
    const float *other, const float *x, const float2 *statistics, const float *parameters,
    const int *order, u64 stride, const Norms &g) {
    extern __shared__ float4 staged[];
    constexpr int SUMS = PAIR ? 4 : 2;  // of scale and of shift
    const Part4 t(g);
    const int work = g.examples * t.parts, warps = blockDim.x / 32;
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    float4 *own = staged + threadIdx.x;
    float4 *sums = staged + (PAIR ? 3 : 2) * HELD * blockDim.x;  // [turn][warp][quad][sum]
    const float count = (float)t.width * (float)g.positions;
    // Where the next part's numbers are, and what is fetched of them at a time.
    const float *inputs_from, *slopes_from, *others_from;
    auto turn_to = [&](int number) {
        const u64 example = t.example(number), channel = t.channel(g, number);
        inputs_from = x + t.place(g, number);
        slopes_from = dy + example * left_of(g, g.every) + channel;
        others_from = PAIR ? other + example * left_of(g, g.other_every) + channel : 0;
    };
    auto load = [&](int k) {
        const u32 at = t.row * g.channels + k * t.step;
        const bool there = at < t.length;
        fetch(own + k * blockDim.x, inputs_from + (there ? at : 0), there);
        const int place = there ? among(g, g.every, at) : -1;
        fetch(own + (HELD + k) * blockDim.x, slopes_from + max(place, 0), place >= 0);
        if (PAIR) {
            const int other_place = there ? among(g, g.other_every, at) : -1;
            fetch(own + (2 * HELD + k) * blockDim.x, others_from + max(other_place, 0),
                  other_place >= 0);
        }
    };
    int number = blockIdx.x;
    if (number < work) {
        turn_to(number);
#pragma unroll
        for (int k = 0; k < HELD; ++k) load(k);
    }
    for (int turn = 0; number < work; number += gridDim.x, turn ^= 1) {
        const int example = t.example(number), channel = t.channel(g, number);
        const float *numbers = parameters + (u64)order[example / g.rows] * stride + channel;
        const float4 scale = four(numbers + g.scale);
        float4 other_scale;
        if (PAIR) other_scale = four(numbers + g.other_scale);
        float2 known[SETS];
#pragma unroll
        for (int i = 0; i < SETS; ++i)
            known[i] = statistics[(u64)example * g.groups + channel / t.width + i];
        const bool more_parts = number + (int)gridDim.x < work;
        if (more_parts) turn_to(number + gridDim.x);
        wait_for_fetches();
        // Slopes times scales, added up; and the inputs.
        float4 slopes[HELD], inputs[HELD], total[SUMS];
#pragma unroll
        for (int i = 0; i < SUMS; ++i) total[i] = make_float4(0, 0, 0, 0);
#pragma unroll
        for (int k = 0; k < HELD; ++k) {
            inputs[k] = own[k * blockDim.x];
            const float4 slope = own[(HELD + k) * blockDim.x];
            float4 another;
            if (PAIR) another = own[(2 * HELD + k) * blockDim.x];
            if (more_parts) load(k);
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const float2 norm = known[c * SETS / 4];
                const float z = (passed(of(inputs[k], c), g.active) - norm.x) * norm.y;
                of(total[0], c) += of(slope, c) * z;
                of(total[1], c) += of(slope, c);
                of(slopes[k], c) = of(slope, c) * of(scale, c);
                if (PAIR) {
                    of(total[SUMS - 2], c) += of(another, c) * z;
                    of(total[SUMS - 1], c) += of(another, c);
                    of(slopes[k], c) += of(another, c) * of(other_scale, c);
                }
            }
        }
        for (int step = t.quads; step < 32; step <<= 1)
#pragma unroll
            for (int i = 0; i < SUMS; ++i)
#pragma unroll
                for (int c = 0; c < 4; ++c)
                    of(total[i], c) += __shfl_xor_sync(0xFFFFFFFFu, of(total[i], c), step);
        float4 *shared = sums + turn * warps * t.quads * SUMS;
        if (lane < t.quads)
#pragma unroll
            for (int i = 0; i < SUMS; ++i) shared[(warp * t.quads + lane) * SUMS + i] = total[i];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < SUMS; ++i) total[i] = make_float4(0, 0, 0, 0);
        for (int w = 0; w < warps; ++w)
#pragma unroll
            for (int i = 0; i < SUMS; ++i) {
                const float4 more = shared[(w * t.quads + t.quad) * SUMS + i];
#pragma unroll
                for (int c = 0; c < 4; ++c) of(total[i], c) += of(more, c);
            }
        if (t.row == 0) {
            const u64 to = (u64)example * kept_stride + channel;
            *(float4 *)(kept + to) = total[0];
            *(float4 *)(kept + to + g.channels) = total[1];
            if (PAIR) {
                *(float4 *)(other_kept + to) = total[SUMS - 2];
                *(float4 *)(other_kept + to + g.channels) = total[SUMS - 1];
            }
        }
        if (!dx) continue;
        float along[SETS], mean[SETS];
#pragma unroll
        for (int i = 0; i < SETS; ++i) {
            along[i] = mean[i] = 0.0f;
#pragma unroll
            for (int c = i * (4 / SETS); c < (i + 1) * (4 / SETS); ++c) {
                along[i] += of(total[0], c) * (of(scale, c) / count);
                mean[i] += of(total[1], c) * (of(scale, c) / count);
                if (PAIR) {
                    along[i] += of(total[SUMS - 2], c) * (of(other_scale, c) / count);
                    mean[i] += of(total[SUMS - 1], c) * (of(other_scale, c) / count);
                }
            }
            for (int step = 1; step < t.spread; step <<= 1) {
                along[i] += __shfl_xor_sync(0xFFFFFFFFu, along[i], step);
                mean[i] += __shfl_xor_sync(0xFFFFFFFFu, mean[i], step);
            }
        }
        const u64 start = t.place(g, number);
        u32 at = t.row * g.channels;
#pragma unroll
        for (int k = 0; k < HELD; ++k, at += t.step) {
            if (at >= t.length) continue;
            const u64 place = start + at;
            float4 slope;
#pragma unroll
            for (int c = 0; c < 4; ++c) {
                const float2 norm = known[c * SETS / 4];
                const float z = (passed(of(inputs[k], c), g.active) - norm.x) * norm.y;
                of(slope, c) = norm.y * (of(slopes[k], c) - mean[c * SETS / 4] - z * along[c * SETS / 4]);
                if (g.active && !(of(inputs[k], c) > 0.0f)) of(slope, c) = 0.0f;
            }
            if (base) {
                const float4 more = *(const float4 *)(base + place);
#pragma unroll
                for (int c = 0; c < 4; ++c) of(slope, c) += of(more, c);
            }
            *(float4 *)(dx + place) = slope;
        }
    }
}

#define NORMALISE_STREAM(SETS)                                                                       \
    extern "C" __global__ void __launch_bounds__(512, 1) norm_##SETS(                                \
        float *y, float *other, float2 *statistics, const float *x, const float *parameters,         \
        const int *order, u64 stride, const Norms g) {                                               \
        normalise_stream<SETS>(y, other, statistics, x, parameters, order, stride, g);               \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(512, 1) norm_backward_##SETS(                       \
        float *dx, const float *base, float *kept, float *other_kept, u64 kept_stride,               \
        const float *dy, const float *other, const float *x, const float2 *statistics,               \
        const float *parameters, const int *order, u64 stride, const Norms g) {                      \
        normalise_backward_stream<SETS, false>(                                                      \
            dx, base, kept, other_kept, kept_stride, dy, other, x, statistics, parameters, order,    \
            stride, g);                                                                              \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(512, 1) norm_backward_pair_##SETS(                  \
        float *dx, const float *base, float *kept, float *other_kept, u64 kept_stride,               \
        const float *dy, const float *other, const float *x, const float2 *statistics,               \
        const float *parameters, const int *order, u64 stride, const Norms g) {                      \
        normalise_backward_stream<SETS, true>(                                                       \
            dx, base, kept, other_kept, kept_stride, dy, other, x, statistics, parameters, order,    \
            stride, g);                                                                              \
    }
NORMALISE_STREAM(1)
NORMALISE_STREAM(2)
NORMALISE_STREAM(4)
