// Kernels of decoders, compiled by NVRTC together with `gradients.cu` when a device is opened. `real` is how activations are
// stored: f32, or bf16 with -DBF16. Residual streams, norms, scores, logits and losses are f32;
// norms of gradients are summed in f64. No kernel adds in an order that depends on timing.
//
// Rows are places: row = sequence * length + place. Heads first ("headed") means
// [sequence][head][place][number]; otherwise a row holds all heads side by side. Four numbers are
// read and written at a time: widths, and lengths of padded sequences, are multiples of four.
// Inputs of linear maps, and gradients of their outputs, have the low-rank numbers of adapters after
// each row: rows of such a matrix are `leading` numbers apart.

typedef unsigned int u32;
typedef unsigned long long u64;
typedef unsigned short u16;

__device__ __forceinline__ float4 load4(const float *p) { return *(const float4 *)p; }
__device__ __forceinline__ void store4(float *p, float4 v) { *(float4 *)p = v; }
__device__ __forceinline__ float load(const float *p) { return *p; }
__device__ __forceinline__ void store(float *p, float v) { *p = v; }

#ifdef BF16
typedef u16 real;
__device__ __forceinline__ float wide(u16 x) { return __uint_as_float((u32)x << 16); }
// Two numbers, to nearest, ties to even; a NaN stays one.
#if __CUDA_ARCH__ >= 800
__device__ __forceinline__ u32 pair(float low, float high) {
    u32 r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
__device__ __forceinline__ u16 narrow(float x) { return (u16)pair(x, 0.0f); }
#else
__device__ __forceinline__ u16 narrow(float x) {
    const u32 bits = __float_as_uint(x);
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return (u16)((bits >> 16) | 0x40u);
    return (u16)((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}
__device__ __forceinline__ u32 pair(float low, float high) { return narrow(low) | ((u32)narrow(high) << 16); }
#endif
__device__ __forceinline__ float load(const u16 *p) { return wide(*p); }
__device__ __forceinline__ void store(u16 *p, float v) { *p = narrow(v); }
__device__ __forceinline__ float4 load4(const u16 *p) {
    const ushort4 v = *(const ushort4 *)p;
    return make_float4(wide(v.x), wide(v.y), wide(v.z), wide(v.w));
}
__device__ __forceinline__ void store4(u16 *p, float4 v) {
    *(uint2 *)p = make_uint2(pair(v.x, v.y), pair(v.z, v.w));
}
#else
typedef float real;
#endif

__device__ __forceinline__ float4 add4(float4 a, float4 b) {
    return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w);
}
__device__ __forceinline__ float sum4(float4 a) { return (a.x + a.y) + (a.z + a.w); }
__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}
__device__ __forceinline__ float warp_max(float x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
    return x;
}

// out = stored as `real`; for weights and adapters.
extern "C" __global__ void convert(real *out, const float *x, u64 length) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < length; i += (u64)gridDim.x * blockDim.x)
        store(out + i, x[i]);
}

// x = embedding of the token (+ that of its place); `at` are the places, where they are not those
// within the row's sequence.
extern "C" __global__ void embed(
    float *x, const u32 *tokens, const float *embedding, const float *positions, const int *at,
    int rows, int length, int width, int context) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const float *own = embedding + (size_t)tokens[row] * width;
    // Padding may lie beyond the context; nothing sees it.
    const int number = at ? at[row] : row % length;
    const float *place = positions ? positions + (size_t)min(number, context - 1) * width : 0;
    for (int i = 4 * lane; i < width; i += 128) {
        float4 v = load4(own + i);
        if (place) v = add4(v, load4(place + i));
        store4(x + (size_t)row * width + i, v);
    }
}

// x = before + delta + bias (delta may be null: x is before), h = norm(x); moments: (mean, scale). A
// warp holds its row of WIDTH numbers, four at a time. `leading` is that of h.
#define HELD ((WIDTH + 127) / 128)
extern "C" __global__ void add_norm(
    float *x, real *h, float2 *moments, const float *before, const real *delta, const float *bias,
    const float *weight, const float *shift, int rows, int leading, float epsilon, int centred) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const size_t base = (size_t)row * WIDTH;
    h += (size_t)row * leading;
    float4 v[HELD];
    float sum = 0.0f;
#pragma unroll
    for (int j = 0; j < HELD; ++j) {
        const int i = 4 * lane + 128 * j;
        if (i >= WIDTH) break;
        v[j] = load4(before + base + i);
        if (delta) {
            v[j] = add4(v[j], load4(delta + base + i));
            if (bias) v[j] = add4(v[j], load4(bias + i));
        }
        sum += sum4(v[j]);
    }
    const float mean = centred ? warp_sum(sum) / (float)WIDTH : 0.0f;
    float square = 0.0f;
#pragma unroll
    for (int j = 0; j < HELD; ++j) {
        if (4 * lane + 128 * j >= WIDTH) break;
        const float a = v[j].x - mean, b = v[j].y - mean, c = v[j].z - mean, d = v[j].w - mean;
        square += (a * a + b * b) + (c * c + d * d);
    }
    const float scale = 1.0f / sqrtf(warp_sum(square) / (float)WIDTH + epsilon);
    if (lane == 0) moments[row] = make_float2(mean, scale);
#pragma unroll
    for (int j = 0; j < HELD; ++j) {
        const int i = 4 * lane + 128 * j;
        if (i >= WIDTH) break;
        const float4 w = load4(weight + i);
        // Not before all of the row is read, so that no load waits for a store.
        if (delta) store4(x + base + i, v[j]);
        float4 y = make_float4(
            (v[j].x - mean) * scale * w.x, (v[j].y - mean) * scale * w.y, (v[j].z - mean) * scale * w.z,
            (v[j].w - mean) * scale * w.w);
        if (shift) y = add4(y, load4(shift + i));
        store4(h + i, y);
    }
}

// dx = s (g - mean(g) [centred] - y mean(g y)), with y = s (x - m) and g = dy w, and `before`, where it
// is not null: what the stream's gradient was. It goes to `whole` in f32, where that is not null, and
// otherwise to `dx`, which may be `before`.
extern "C" __global__ void norm_backward(
    real *dx, float *whole, const real *before, const float *x, const float2 *moments, const real *dy,
    const float *weight, int rows, int leading, int before_leading, int centred) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const size_t base = (size_t)row * WIDTH;
    dx += (size_t)row * leading;
    if (before) before += (size_t)row * before_leading;
    const float2 m = moments[row];
    float4 y[HELD], g[HELD], d[HELD];
    float along = 0.0f, centre = 0.0f;
    // All that is read is asked for at once.
#pragma unroll
    for (int j = 0; j < HELD; ++j) {
        const int i = 4 * lane + 128 * j;
        d[j] = before && i < WIDTH ? load4(before + i) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    }
#pragma unroll
    for (int j = 0; j < HELD; ++j) {
        const int i = 4 * lane + 128 * j;
        if (i >= WIDTH) break;
        const float4 v = load4(x + base + i), slope = load4(dy + base + i), w = load4(weight + i);
        y[j] = make_float4((v.x - m.x) * m.y, (v.y - m.x) * m.y, (v.z - m.x) * m.y, (v.w - m.x) * m.y);
        g[j] = make_float4(slope.x * w.x, slope.y * w.y, slope.z * w.z, slope.w * w.w);
        centre += sum4(g[j]);
        along += (g[j].x * y[j].x + g[j].y * y[j].y) + (g[j].z * y[j].z + g[j].w * y[j].w);
    }
    along = warp_sum(along) / (float)WIDTH;
    centre = centred ? warp_sum(centre) / (float)WIDTH : 0.0f;
#pragma unroll
    for (int j = 0; j < HELD; ++j) {
        const int i = 4 * lane + 128 * j;
        if (i >= WIDTH) break;
        const float4 sum = add4(d[j], make_float4(
            m.y * (g[j].x - centre - y[j].x * along), m.y * (g[j].y - centre - y[j].y * along),
            m.y * (g[j].z - centre - y[j].z * along), m.y * (g[j].w - centre - y[j].w * along)));
        if (whole) store4(whole + base + i, sum);
        else store4(dx + i, sum);
    }
}

// ---------------------------------------------------------------------------------------------
// Rotation of the numbers at..at+4 of a head; `other` are those half a head away. pairs: 0 none,
// 1 neighbours, 2 halves. angles: (cos, sin) of the place, one for each of half a head.
__device__ __forceinline__ float4 rotate4(
    float4 v, float4 other, const float2 *angles, int at, int half, int pairs, float sign) {
    if (pairs == 1) {
        const float2 a = angles[at / 2], b = angles[at / 2 + 1];
        const float s = sign * a.y, t = sign * b.y;
        return make_float4(v.x * a.x - v.y * s, v.x * s + v.y * a.x, v.z * b.x - v.w * t, v.z * t + v.w * b.x);
    }
    const bool low = at < half;
    const float2 *own = angles + (low ? at : at - half);
    // First of a pair: x cos - y sin; second: x sin + y cos.
    const float s = low ? -sign : sign;
    return make_float4(
        v.x * own[0].x + s * own[0].y * other.x, v.y * own[1].x + s * own[1].y * other.y,
        v.z * own[2].x + s * own[2].y * other.z, v.w * own[3].x + s * own[3].y * other.w);
}

// Where four numbers of a row of queries, keys and values lie headed. `column` counts the numbers of
// a row: first all queries, then all keys, then all values.
struct Headed { size_t place; int at; int part; };
__device__ __forceinline__ Headed headed(
    int row, int column, int length, int heads, int key_heads, int width) {
    const int sequence = row / length, place = row % length;
    int head = column / width;
    Headed h;
    h.at = column % width;
    h.part = head < heads ? 0 : head < heads + key_heads ? 1 : 2;
    const int count = h.part == 0 ? heads : key_heads;
    head -= h.part == 0 ? 0 : h.part == 1 ? heads : heads + key_heads;
    h.place = (((size_t)sequence * count + head) * length + place) * width + h.at;
    return h;
}

// Queries, keys and values of rows, with their bias, rotated, heads first.
extern "C" __global__ void split_heads(
    real *queries, real *keys, real *values, const real *joint, const real *bias,
    const float2 *angles, int rows, int length, int heads, int key_heads, int width, int pairs) {
    const int columns = (heads + 2 * key_heads) * width, half = width / 2;
    const u32 all = (u32)rows * (columns / 4);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
        const int row = (int)(i / (columns / 4)), column = 4 * (int)(i % (columns / 4));
        const Headed h = headed(row, column, length, heads, key_heads, width);
        const real *in = joint + (size_t)row * columns + column;
        float4 v = load4(in);
        if (bias) v = add4(v, load4(bias + column));
        if (pairs && h.part < 2) {
            float4 other = v;
            if (pairs == 2) {
                const int away = h.at < half ? half : -half;
                other = load4(in + away);
                if (bias) other = add4(other, load4(bias + column + away));
            }
            v = rotate4(v, other, angles + (size_t)(row % length) * half, h.at, half, pairs, 1.0f);
        }
        store4((h.part == 0 ? queries : h.part == 1 ? keys : values) + h.place, v);
    }
}

// Its derivative: gradients heads first, rotated back, into rows.
extern "C" __global__ void join_heads(
    real *joint, const real *queries, const real *keys, const real *values, const float2 *angles,
    int leading, int rows, int length, int heads, int key_heads, int width, int pairs) {
    const int columns = (heads + 2 * key_heads) * width, half = width / 2;
    const u32 all = (u32)rows * (columns / 4);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
        const int row = (int)(i / (columns / 4)), column = 4 * (int)(i % (columns / 4));
        const Headed h = headed(row, column, length, heads, key_heads, width);
        const real *in = (h.part == 0 ? queries : h.part == 1 ? keys : values) + h.place;
        float4 v = load4(in);
        if (pairs && h.part < 2) {
            const float4 other = pairs == 2 ? load4(in + (h.at < half ? half : -half)) : v;
            v = rotate4(v, other, angles + (size_t)(row % length) * half, h.at, half, pairs, -1.0f);
        }
        store4(joint + (size_t)row * leading + column, v);
    }
}

// Heads first to rows that are `leading` apart (`back`: the other way).
extern "C" __global__ void merge_heads(
    real *out, const real *in, int leading, int rows, int length, int heads, int width, int back) {
    const int columns = heads * width;
    const u32 all = (u32)rows * (columns / 4);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
        const int row = (int)(i / (columns / 4)), column = 4 * (int)(i % (columns / 4));
        const Headed h = headed(row, column, length, heads, 0, width);
        const size_t flat = (size_t)row * leading + column;
        if (back) store4(out + h.place, load4(in + flat));
        else store4(out + flat, load4(in + h.place));
    }
}

// Softmax of scale x row over the places up to its own; the others become 0. One warp for a row.
extern "C" __global__ void softmax(
    real *out, const float *scores, u64 rows, int length, float scale) {
    const u64 row = (u64)blockIdx.x * 8 + threadIdx.x / 32;
    const int lane = threadIdx.x & 31;
    if (row >= rows) return;
    const int visible = (int)(row % length) + 1;
    const float *z = scores + row * length;
    real *p = out + row * length;
    float largest = -__int_as_float(0x7f800000);
    for (int i = lane; i < visible; i += 32) largest = fmaxf(largest, z[i]);
    largest = warp_max(largest);
    float sum = 0.0f;
    for (int i = lane; i < visible; i += 32) sum += expf((z[i] - largest) * scale);
    const float share = 1.0f / warp_sum(sum);
    for (int i = 4 * lane; i < length; i += 128) {
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i < visible) {
            const float4 s = load4(z + i);
            v.x = expf((s.x - largest) * scale) * share;
            if (i + 1 < visible) v.y = expf((s.y - largest) * scale) * share;
            if (i + 2 < visible) v.z = expf((s.z - largest) * scale) * share;
            if (i + 3 < visible) v.w = expf((s.w - largest) * scale) * share;
        }
        store4(p + i, v);
    }
}

// ds = scale p (dp - sum(dp p)); ds may be dp.
extern "C" __global__ void softmax_backward(
    real *ds, const float *dp, const real *probabilities, u64 rows, int length, float scale) {
    const u64 row = (u64)blockIdx.x * 8 + threadIdx.x / 32;
    const int lane = threadIdx.x & 31;
    if (row >= rows) return;
    const int visible = (int)(row % length) + 1;
    const float *d = dp + row * length;
    const real *p = probabilities + row * length;
    real *out = ds + row * length;
    float sum = 0.0f;
    for (int i = 4 * lane; i < visible; i += 128) {
        const float4 a = load4(d + i), b = load4(p + i);
        sum += (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
    }
    sum = warp_sum(sum);
    for (int i = 4 * lane; i < length; i += 128) {
        float4 v = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        if (i < visible) {
            const float4 a = load4(d + i), b = load4(p + i);
            v = make_float4(
                scale * b.x * (a.x - sum), scale * b.y * (a.y - sum), scale * b.z * (a.z - sum),
                scale * b.w * (a.w - sum));
        }
        store4(out + i, v);
    }
}

// ---------------------------------------------------------------------------------------------
// Activations in bf16 have 8 bits: the device's own exponential has more than enough.
#ifdef BF16
__device__ __forceinline__ float power(float x) { return __expf(x); }
__device__ __forceinline__ float ratio(float x, float y) { return __fdividef(x, y); }
#else
__device__ __forceinline__ float power(float x) { return expf(x); }
__device__ __forceinline__ float ratio(float x, float y) { return x / y; }
#endif
__device__ __forceinline__ float sigmoid(float x) { return ratio(1.0f, 1.0f + power(-x)); }

// gelu(x) = x (1 + tanh(u)) / 2 = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3).
#define ROOT 0.7978845608028654f
__device__ __forceinline__ float gelu_of(float x) {
    return x * sigmoid(2.0f * ROOT * (x + 0.044715f * x * x * x));
}
__device__ __forceinline__ float gelu_slope(float x) {
    const float s = sigmoid(2.0f * ROOT * (x + 0.044715f * x * x * x));
    return s + 2.0f * x * s * (1.0f - s) * ROOT * (1.0f + 3.0f * 0.044715f * x * x);
}

// x += bias: rows of `columns` numbers.
extern "C" __global__ void add_bias(real *x, const real *bias, u64 rows, int columns) {
    const u64 all = rows * (columns / 4);
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (u64)gridDim.x * blockDim.x)
        store4(x + 4 * i, add4(load4(x + 4 * i), load4(bias + 4 * (i % (columns / 4)))));
}

// out = gelu(x + bias). `leading` is that of out; x has none.
extern "C" __global__ void gelu(real *out, const real *x, const real *bias, u64 rows, int leading) {
    const u32 all = (u32)rows * (HIDDEN / 4);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
        float4 v = load4(x + 4 * (size_t)i);
        if (bias) v = add4(v, load4(bias + 4 * (i % (HIDDEN / 4))));
        store4(out + (size_t)(i / (HIDDEN / 4)) * leading + 4 * (i % (HIDDEN / 4)),
               make_float4(gelu_of(v.x), gelu_of(v.y), gelu_of(v.z), gelu_of(v.w)));
    }
}

// d (of gelu's output) becomes that of its input. `leading` is that of d.
extern "C" __global__ void gelu_backward(real *d, const real *x, const real *bias, u64 rows, int leading) {
    const u32 all = (u32)rows * (HIDDEN / 4);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
        float4 v = load4(x + 4 * (size_t)i);
        if (bias) v = add4(v, load4(bias + 4 * (i % (HIDDEN / 4))));
        real *own = d + (size_t)(i / (HIDDEN / 4)) * leading + 4 * (i % (HIDDEN / 4));
        const float4 g = load4(own);
        store4(own, make_float4(
            g.x * gelu_slope(v.x), g.y * gelu_slope(v.y), g.z * gelu_slope(v.z), g.w * gelu_slope(v.w)));
    }
}

// out = silu(gate) up; a row of `both` holds gate, then up; `bias` likewise. `leading` is that of out.
extern "C" __global__ void swiglu(real *out, const real *both, const real *bias, u64 rows, int leading) {
    const u32 all = (u32)rows * (HIDDEN / 4);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
        const size_t row = i / (HIDDEN / 4);
        const int column = 4 * (int)(i % (HIDDEN / 4));
        const real *in = both + row * 2 * HIDDEN + column;
        float4 g = load4(in), u = load4(in + HIDDEN);
        if (bias) { g = add4(g, load4(bias + column)); u = add4(u, load4(bias + HIDDEN + column)); }
        store4(out + row * leading + column, make_float4(
            g.x * sigmoid(g.x) * u.x, g.y * sigmoid(g.y) * u.y, g.z * sigmoid(g.z) * u.z,
            g.w * sigmoid(g.w) * u.w));
    }
}

__device__ __forceinline__ float silu_slope(float x) {
    const float s = sigmoid(x);
    return s * (1.0f + x * (1.0f - s));
}

// d_both from the gradient of the output. `leading` is that of d_both.
extern "C" __global__ void swiglu_backward(
    real *d_both, const real *d, const real *both, const real *bias, u64 rows, int leading) {
    const u32 all = (u32)rows * (HIDDEN / 4);
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < all; i += gridDim.x * blockDim.x) {
        const size_t row = i / (HIDDEN / 4);
        const int column = 4 * (int)(i % (HIDDEN / 4));
        const real *in = both + row * 2 * HIDDEN + column;
        float4 g = load4(in), u = load4(in + HIDDEN);
        if (bias) { g = add4(g, load4(bias + column)); u = add4(u, load4(bias + HIDDEN + column)); }
        const float4 o = load4(d + row * HIDDEN + column);
        real *out = d_both + row * leading + column;
        store4(out, make_float4(
            o.x * u.x * silu_slope(g.x), o.y * u.y * silu_slope(g.y), o.z * u.z * silu_slope(g.z),
            o.w * u.w * silu_slope(g.w)));
        store4(out + HIDDEN, make_float4(
            o.x * g.x * sigmoid(g.x), o.y * g.y * sigmoid(g.y), o.z * g.z * sigmoid(g.z),
            o.w * g.w * sigmoid(g.w)));
    }
}

// ---------------------------------------------------------------------------------------------
// Keys and values of texts that grow by a token at a time: [sequence][head][places][width], of which
// at[sequence] are there before the new one.

// Those of a whole pass, heads first or in rows of `columns` numbers, into a cache
// [sequence][head][places][width].
extern "C" __global__ void keep_places(
    real *cache, const real *from, int sequences, int heads, int length, int places, int width, int columns) {
    const u64 all = (u64)sequences * heads * length * (width / 4);
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (u64)gridDim.x * blockDim.x) {
        const u64 number = i / ((u64)length * (width / 4)), rest = i % ((u64)length * (width / 4));
        const u64 place = rest / (width / 4), at = 4 * (rest % (width / 4));
        const real *own = from + 4 * i;
        if (columns) own = from + ((number / heads) * length + place) * columns + (number % heads) * width + at;
        store4(cache + (number * places) * width + 4 * rest, load4(own));
    }
}

// As split_heads for one new place of each sequence; keys and values go into the cache.
extern "C" __global__ void split_heads_at(
    real *queries, real *keys, real *values, const real *joint, const real *bias,
    const float2 *angles, const int *at, int rows, int places, int heads, int key_heads, int width,
    int pairs) {
    const int columns = (heads + 2 * key_heads) * width, half = width / 2;
    const u64 all = (u64)rows * (columns / 4);
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (u64)gridDim.x * blockDim.x) {
        const int row = (int)(i / (columns / 4)), column = 4 * (int)(i % (columns / 4));
        const Headed h = headed(row, column, 1, heads, key_heads, width);
        const real *in = joint + (size_t)row * columns + column;
        float4 v = load4(in);
        if (bias) v = add4(v, load4(bias + column));
        if (pairs && h.part < 2) {
            float4 other = v;
            if (pairs == 2) {
                const int away = h.at < half ? half : -half;
                other = load4(in + away);
                if (bias) other = add4(other, load4(bias + column + away));
            }
            v = rotate4(v, other, angles + (size_t)at[row] * half, h.at, half, pairs, 1.0f);
        }
        if (h.part == 0) {
            store4(queries + h.place, v);
        } else {
            const size_t own = (h.place - h.at) / width;
            store4((h.part == 1 ? keys : values) + (own * places + at[row]) * width + h.at, v);
        }
    }
}

// One query a head against the cache: out = softmax(scale q.k) v over the places up to its own. One
// warp for a (sequence, head); heads of at most 256 numbers. The softmax is formed on the way: sums
// so far are scaled down when a larger score comes.
extern "C" __global__ void attend(
    real *out, const real *queries, const real *keys, const real *values, const int *at, int rows,
    int places, int heads, int key_heads, int width, float scale) {
    const int number = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (number >= rows * heads) return;
    const int row = number / heads, head = number % heads, group = heads / key_heads;
    const size_t own = ((size_t)row * key_heads + head / group) * places;
    const real *q = queries + (size_t)number * width;
    const int visible = at[row] + 1;
    float largest = -__int_as_float(0x7f800000), total = 0.0f, found[8];
#pragma unroll
    for (int j = 0; j < 8; ++j) found[j] = 0.0f;
    for (int from = 0; from < visible; from += 32) {
        float score = -__int_as_float(0x7f800000);
        if (from + lane < visible) {
            const real *k = keys + (own + from + lane) * width;
            float sum = 0.0f;
            for (int i = 0; i < width; i += 4) {
                const float4 a = load4(q + i), b = load4(k + i);
                sum += (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
            }
            score = sum * scale;
        }
        const float highest = fmaxf(largest, warp_max(score));
        const float before = expf(largest - highest), weight = expf(score - highest);
        total = total * before + warp_sum(weight);
        largest = highest;
#pragma unroll
        for (int j = 0; j < 8; ++j) found[j] *= before;
        const int count = min(32, visible - from);
        for (int t = 0; t < count; ++t) {
            const float share = __shfl_sync(0xFFFFFFFFu, weight, t);
            const real *v = values + (own + from + t) * width;
#pragma unroll
            for (int j = 0; j < 8; ++j)
                if (32 * j + lane < width) found[j] += share * load(v + 32 * j + lane);
        }
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
        if (32 * j + lane < width) store(out + (size_t)number * width + 32 * j + lane, found[j] / total);
}
