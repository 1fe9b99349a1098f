// The first convolution of a net of images: windows of 3 x 3 over INPUTS channels, stride 1,
// padding 1, sixteen output channels for a block. Too few channels for tensor cores, and its
// patches would be nine times the image: a block holds one image in shared memory, plane by plane
// with a border of zeros, and multiplies in f32 in every precision. Sums are always taken in the
// same order. Compiled by NVRTC.

typedef unsigned int u32;
typedef unsigned long long u64;
struct Layer {
    int input_height, input_width, input_channels, output_height, output_width, output_channels;
    int kernel, stride, padding;
};

#define ALONG 8  // positions of a row that a thread takes together
#define TAPS 9

__device__ __forceinline__ float activate(float x, int kind) {
    if (kind == 1) return x < 0.0f ? 0.0f : x;
    if (kind == 2) return tanhf(x);
    return x;
}

// Numbers of a row in shared memory, with its border and what the last positions read beyond it.
__device__ __forceinline__ int pitch_of(int width) { return (width + ALONG - 1) / ALONG * ALONG + 4; }

// A warp takes one row after another, so that nothing is divided but by INPUTS.
__device__ __forceinline__ void hold(float *planes, const float *x, int height, int width, int pitch) {
    const int plane = (height + 2) * pitch, lane = threadIdx.x & 31;
    for (int row = threadIdx.x / 32; row < height + 2; row += blockDim.x / 32) {
        const bool there = (u32)(row - 1) < (u32)height;
        float *to = planes + row * pitch;
        for (int i = lane; i < pitch; i += 32)
            if (!there || (u32)(i - 1) >= (u32)width)
#pragma unroll
                for (int channel = 0; channel < INPUTS; ++channel) to[channel * plane + i] = 0.0f;
        if (!there) continue;
        const float *from = x + (row - 1) * width * INPUTS;
        for (int i = lane; i < INPUTS * width; i += 32)
            to[i % INPUTS * plane + i / INPUTS + 1] = from[i];
    }
}

// The numbers that a window's row reads at ALONG positions.
__device__ __forceinline__ void take(float (&v)[ALONG + 2], const float *from) {
    *(float4 *)v = *(const float4 *)from;
    *(float4 *)(v + 4) = *(const float4 *)(from + 4);
    *(float2 *)(v + 8) = *(const float2 *)(from + 8);
}

__device__ __forceinline__ void add_product(float4 &sum, float a, const float4 &b) {
    sum.x += a * b.x;
    sum.y += a * b.y;
    sum.z += a * b.z;
    sum.w += a * b.w;
}

// A thread takes ALONG positions and four channels.
extern "C" __global__ void __launch_bounds__(256, 3) first_forward(
    float *y, const float *x, const float *weights, u64 weights_stride, const float *parameters,
    u64 stride, int bias, const int *order, const Layer l, int rows, int kind) {
    extern __shared__ float4 shared4[];
    float4 *held = shared4;  // weights: [tap][input][four channels]
    float *planes = (float *)(shared4 + TAPS * INPUTS * 4);
    const int height = l.input_height, width = l.input_width, pitch = pitch_of(width);
    const int outputs = l.output_channels, n0 = 16 * blockIdx.y;
    const u64 example = blockIdx.x, replica = order[blockIdx.x / rows];
    const float *w = weights + replica * weights_stride + n0;
    for (int i = threadIdx.x; i < TAPS * INPUTS * 16; i += blockDim.x)
        ((float *)held)[i] = w[(u64)(i / 16) * outputs + i % 16];
    hold(planes, x + example * height * width * INPUTS, height, width, pitch);
    __syncthreads();
    const int quad = threadIdx.x & 3, groups = (width + ALONG - 1) / ALONG;
    const int plane = (height + 2) * pitch;
    const float *own = parameters + replica * stride + bias + n0 + 4 * quad;
    const float4 begin = make_float4(own[0], own[1], own[2], own[3]);
    for (int task = threadIdx.x >> 2; task < height * groups; task += blockDim.x >> 2) {
        const int at_y = task / groups, at_x = task % groups * ALONG;
        float4 sum[ALONG];
#pragma unroll
        for (int j = 0; j < ALONG; ++j) sum[j] = begin;
        asm volatile("" ::: "memory");  // weights stay in shared memory: registers are short
#pragma unroll
        for (int channel = 0; channel < INPUTS; ++channel)
#pragma unroll
            for (int u = 0; u < 3; ++u) {
                float v[ALONG + 2];
                take(v, planes + channel * plane + (at_y + u) * pitch + at_x);
#pragma unroll
                for (int k = 0; k < 3; ++k) {
                    const float4 factor = held[((3 * u + k) * INPUTS + channel) * 4 + quad];
#pragma unroll
                    for (int j = 0; j < ALONG; ++j) add_product(sum[j], v[j + k], factor);
                }
            }
        float *to = y + ((example * height + at_y) * width + at_x) * outputs + n0 + 4 * quad;
#pragma unroll
        for (int j = 0; j < ALONG; ++j)
            if (at_x + j < width) {
                const float4 s = sum[j];
                *(float4 *)(to + (u64)j * outputs) = make_float4(
                    activate(s.x, kind), activate(s.y, kind), activate(s.z, kind), activate(s.w, kind));
            }
    }
}

// Every example's own gradient of the weights, [tap][input] x [output], and behind it that of the
// bias. A thread takes every 32nd row of positions, all taps, and four channels.
#define SUMS (TAPS * INPUTS * 4 + 4)
#define ROOM ((SUMS + 7) / 8 * 8)
extern "C" __global__ void __launch_bounds__(128, 3) first_gradient(
    float *gradients, u64 gradients_stride, const float *x, const float *dy, const Layer l) {
    extern __shared__ float4 shared4[];
    float *planes = (float *)shared4;
    const int height = l.input_height, width = l.input_width, pitch = pitch_of(width);
    const int outputs = l.output_channels, n0 = 16 * blockIdx.y, plane = (height + 2) * pitch;
    const u64 example = blockIdx.x;
    const int quad = threadIdx.x & 3, lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    hold(planes, x + example * height * width * INPUTS, height, width, pitch);
    __syncthreads();
    const float *slopes = dy + example * height * width * outputs + n0 + 4 * quad;
    float sum[ROOM];
#pragma unroll
    for (int i = 0; i < ROOM; ++i) sum[i] = 0.0f;
    for (int at_y = threadIdx.x >> 2; at_y < height; at_y += 32)
        for (int at_x = 0; at_x < width; at_x += ALONG) {
            float4 d[ALONG];
#pragma unroll
            for (int j = 0; j < ALONG; ++j)
                d[j] = at_x + j < width
                           ? *(const float4 *)(slopes + (u64)(at_y * width + at_x + j) * outputs)
                           : make_float4(0, 0, 0, 0);
#pragma unroll
            for (int channel = 0; channel < INPUTS; ++channel)
#pragma unroll
                for (int u = 0; u < 3; ++u) {
                    float v[ALONG + 2];
                    take(v, planes + channel * plane + (at_y + u) * pitch + at_x);
#pragma unroll
                    for (int k = 0; k < 3; ++k) {
                        float4 &to = *(float4 *)(sum + ((3 * u + k) * INPUTS + channel) * 4);
#pragma unroll
                        for (int j = 0; j < ALONG; ++j) add_product(to, v[j + k], d[j]);
                    }
                }
#pragma unroll
            for (int j = 0; j < ALONG; ++j) add_product(*(float4 *)(sum + TAPS * INPUTS * 4), 1.0f, d[j]);
        }
    // Over the eight rows of a warp: every exchange halves the sums that a lane holds.
#pragma unroll
    for (int step = 16, left = ROOM / 2; step >= 4; step >>= 1, left >>= 1) {
        const bool upper = lane & step;
#pragma unroll
        for (int i = 0; i < ROOM / 2; ++i)
            if (i < left) {
                const float mine = upper ? sum[i + left] : sum[i];
                const float other = upper ? sum[i] : sum[i + left];
                sum[i] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, step);
            }
    }
    __syncthreads();
    float *part = (float *)shared4;  // [warp][quad][sum]
    const int first =
        (lane & 16 ? ROOM / 2 : 0) + (lane & 8 ? ROOM / 4 : 0) + (lane & 4 ? ROOM / 8 : 0);
#pragma unroll
    for (int i = 0; i < ROOM / 8; ++i) part[(warp * 4 + quad) * ROOM + first + i] = sum[i];
    __syncthreads();
    float *out = gradients + example * gradients_stride + n0;
    for (int i = threadIdx.x; i < (TAPS * INPUTS + 1) * 16; i += 128) {
        const int row = i / 16, column = i % 16;
        const float *from = part + column / 4 * ROOM + row * 4 + column % 4;
        out[(u64)row * outputs + column] =
            (from[0] + from[4 * ROOM]) + (from[8 * ROOM] + from[12 * ROOM]);
    }
}
