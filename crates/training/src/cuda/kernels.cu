// Kernels of the CUDA back end, compiled by NVRTC when a device is opened. Everything is f32
// except norms, which are summed in f64 as on the CPU. No kernel adds in an order that depends
// on timing: a run gives the same bits again on the same device.
//
// Shapes: a chunk of `slots` replicas is worked on at a time; slot s holds replica order[s]. A
// buffer is [slot][row][numbers] with `rows` rows reserved for each slot; parameters are
// [replica][stride]. HIDDEN and CLASSES are the sizes of the fused head, when there is one.

typedef unsigned int u32;
typedef unsigned long long u64;

// Philox4x32-10, as specified in the crate `random`.
__device__ __forceinline__ uint4 philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll
    for (int round = 0; round < 10; ++round) {
        const u32 h0 = __umulhi(0xD2511F53u, c0), l0 = 0xD2511F53u * c0;
        const u32 h1 = __umulhi(0xCD9E8D57u, c2), l1 = 0xCD9E8D57u * c2;
        c0 = h1 ^ c1 ^ k0;
        c1 = l1;
        c2 = h0 ^ c3 ^ k1;
        c3 = l0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return make_uint4(c0, c1, c2, c3);
}

// The f32 Gaussians of the crate `random`, to the bit: every operation rounded on its own.
#define MUL(a, b) __fmul_rn(a, b)
#define ADD(a, b) __fadd_rn(a, b)
#define SUB(a, b) __fsub_rn(a, b)

__device__ __forceinline__ float logarithm(float x) {
    const u32 half_root = 0x3F3504F3u;
    const u32 shifted = __float_as_uint(x) - half_root + (127u << 23);
    const float exponent = (float)((int)(shifted >> 23) - 127);
    const float m = __uint_as_float((shifted & 0x007FFFFFu) + half_root);
    const float f = SUB(m, 1.0f);
    const float s = __fdiv_rn(f, ADD(m, 1.0f));
    const float z = MUL(s, s);
    float series = ADD(MUL((float)(1.0f / 9.0f), z), (float)(1.0f / 7.0f));
    series = ADD(MUL(series, z), (float)(1.0f / 5.0f));
    series = ADD(MUL(series, z), (float)(1.0f / 3.0f));
    const float tail = MUL(2.0f, MUL(z, series));
    return ADD(MUL(exponent, 0.693147180559945309417f), SUB(f, MUL(s, SUB(f, tail))));
}

__device__ __forceinline__ float2 box_muller(u32 a, u32 b) {
    const float low = MUL(ADD((float)(int)(b & 255u), 0.5f), 1.0f / 256.0f);
    const float u = MUL(ADD((float)(int)(a >> 1), low), 1.0f / 2147483648.0f);
    const float radius = __fsqrt_rn(MUL(-2.0f, logarithm(u)));
    const u32 offset = b + (1u << 29);
    const u32 quarter = offset >> 30;
    const int rest = (int)((offset >> 8) & 0x003FFFFFu);
    const float r = MUL((float)(rest - (1 << 21)), 1.0f / 16777216.0f);
    const float z = MUL(r, r);
    float sine = 42.058693f;
    sine = SUB(MUL(sine, z), 76.70586f);
    sine = ADD(MUL(sine, z), 81.60525f);
    sine = SUB(MUL(sine, z), 41.3417f);
    sine = ADD(MUL(sine, z), 6.28318530717958647693f);
    sine = MUL(sine, r);
    float cosine = 60.24464f;
    cosine = SUB(MUL(cosine, z), 85.45682f);
    cosine = ADD(MUL(cosine, z), 64.9394f);
    cosine = SUB(MUL(cosine, z), 19.739208f);
    cosine = ADD(MUL(cosine, z), 1.0f);
    const float first = (quarter & 1u) ? cosine : sine;
    const float second = (quarter & 1u) ? sine : cosine;
    const u32 sine_sign = (quarter >> 1) << 31;
    const u32 cosine_sign = ((quarter ^ (quarter >> 1)) & 1u) << 31;
    const float s = __uint_as_float(__float_as_uint(first) ^ sine_sign);
    const float c = __uint_as_float(__float_as_uint(second) ^ cosine_sign);
    return make_float2(MUL(radius, c), MUL(radius, s));
}

__device__ __forceinline__ double warp_sum(double x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

__device__ __forceinline__ float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) x += __shfl_xor_sync(0xFFFFFFFFu, x, step);
    return x;
}

// ---------------------------------------------------------------------------------------------
// Poisson batches. One block of 256 threads for each replica (x) and step ahead (y). Coins are
// counted in order, so a batch lists its records in increasing order. `natural` is 0 when the
// records contribute nothing. A canary's kind: >= 0 the row of its example, -1 absent, -2 a
// gradient, whose hit is noted.
struct Coins { u64 row; u64 high; u32 low; u32 unused; };
#define STASH 12

__device__ __forceinline__ bool absent(const int *without, int length, int record) {
    int low = 0, high = length;
    while (low < high) {
        const int middle = (low + high) >> 1;
        if (without[middle] < record) low = middle + 1; else high = middle;
    }
    return low < length && without[low] == record;
}

extern "C" __global__ void __launch_bounds__(256) draw(
    int *batch, int *counts, unsigned char *hits, const uint4 *keys, const Coins *steps,
    int records, int natural, int capacity, int most_canaries,
    const int *canary_start, const int *canary_kind, const int *without_start, const int *without) {
    __shared__ int stash[STASH][256];
    __shared__ int totals[8];
    const int replica = blockIdx.x, thread = threadIdx.x;
    const int place = blockIdx.y * gridDim.x + replica;
    const Coins step = steps[blockIdx.y];
    const uint4 key = keys[replica];
    const int canaries = canary_start[replica + 1] - canary_start[replica];
    const int *kinds = canary_kind + canary_start[replica];
    const int missing = without_start[replica + 1] - without_start[replica];
    const int *gone = without + without_start[replica];
    const int total = records + canaries;
    const int first_block = natural ? 0 : records / 4;
    const int blocks = (total + 3) / 4 - first_block;
    const int share = (blocks + 255) / 256;
    const int from = first_block + thread * share;
    const int end = min(from + share, first_block + blocks);
    int *out = batch + (size_t)place * capacity;
    unsigned char *noted = hits + (size_t)place * most_canaries;
    for (int canary = thread; canary < most_canaries; canary += 256) noted[canary] = 0;
    __syncthreads();
    int count = 0, offset = 0;
    for (int pass = 0; pass < 2; ++pass) {
        if (pass == 1 && count <= STASH) break;
        int found = 0;
        for (int block = from; block < end; ++block) {
            const uint4 w = philox(block, 0, (u32)step.row, (u32)(step.row >> 32), key.x, key.y);
            const u32 words[4] = {w.x, w.y, w.z, w.w};
#pragma unroll
            for (int lane = 0; lane < 4; ++lane) {
                bool hit = (u64)words[lane] < step.high;
                if ((u64)words[lane] == step.high) {
                    const uint4 t =
                        philox(block, 0, (u32)step.row, (u32)(step.row >> 32), key.z, key.w);
                    const u32 ties[4] = {t.x, t.y, t.z, t.w};
                    hit = ties[lane] < step.low;
                }
                const int index = 4 * block + lane;
                if (!hit || index >= total) continue;
                int record = index;
                if (index >= records) {
                    record = kinds[index - records];
                    if (record == -2) noted[index - records] = 1;
                    if (record < 0) continue;
                } else if (!natural || (missing && absent(gone, missing, index))) {
                    continue;
                }
                if (pass == 0) {
                    if (found < STASH) stash[found][thread] = record;
                } else if (offset + found < capacity) {
                    out[offset + found] = record;
                }
                ++found;
            }
        }
        if (pass == 0) {
            count = found;
            // Where this thread's records begin: all threads before it.
            int before = count;
#pragma unroll
            for (int step = 1; step < 32; step <<= 1) {
                const int other = __shfl_up_sync(0xFFFFFFFFu, before, step);
                if ((thread & 31) >= step) before += other;
            }
            if ((thread & 31) == 31) totals[thread >> 5] = before;
            __syncthreads();
            for (int warp = 0; warp < (thread >> 5); ++warp) offset += totals[warp];
            if (thread == 255) counts[place] = offset + before;
            offset += before - count;
            if (count <= STASH)
                for (int i = 0; i < count; ++i)
                    if (offset + i < capacity) out[offset + i] = stash[i][thread];
        }
    }
}

// ---------------------------------------------------------------------------------------------
// Rows `first ..` of each slot's batch into the input buffer; rows beyond the batch become zero
// with label -1. One warp for each row. `squares` are |x|^2 of the records.
extern "C" __global__ void gather(
    float *x, int *labels, double *row_squares, const float *data, const int *data_labels,
    const double *data_squares, const int *batch, const int *counts, const int *order,
    int capacity, int first, int rows, int inputs) {
    const int slot = blockIdx.y, row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const int replica = order[slot];
    const bool there = first + row < counts[replica];
    const int record = there ? batch[(size_t)replica * capacity + first + row] : 0;
    const size_t place = (size_t)slot * rows + row;
    float *out = x + place * inputs;
    const float *in = data + (size_t)record * inputs;
    if ((inputs & 3) == 0) {
        const float4 zero = make_float4(0, 0, 0, 0);
        for (int i = lane; i < inputs / 4; i += 32)
            ((float4 *)out)[i] = there ? ((const float4 *)in)[i] : zero;
    } else {
        for (int i = lane; i < inputs; i += 32) out[i] = there ? in[i] : 0.0f;
    }
    if (lane == 0) {
        labels[place] = there ? data_labels[record] : -1;
        row_squares[place] = there ? data_squares[record] : 0.0;
    }
}

// The same rows for every slot: evaluation.
extern "C" __global__ void gather_same(
    float *x, int *labels, const float *data, const int *data_labels, int first, int there,
    int rows, int inputs) {
    const int slot = blockIdx.y, row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const size_t place = (size_t)slot * rows + row;
    float *out = x + place * inputs;
    const float *in = data + (size_t)(first + row) * inputs;
    for (int i = lane; i < inputs; i += 32) out[i] = row < there ? in[i] : 0.0f;
    if (lane == 0) labels[place] = row < there ? data_labels[first + row] : -1;
}

extern "C" __global__ void squared_rows(double *out, const float *x, int rows, int width) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    double sum = 0.0;
    for (int i = lane; i < width; i += 32) {
        const double v = x[(size_t)row * width + i];
        sum += v * v;
    }
    sum = warp_sum(sum);
    if (lane == 0) out[row] = sum;
}

// Addresses of three operands of a batched product: base + number * stride, the number being the
// slot or its replica.
extern "C" __global__ void addresses(
    u64 *out, const int *order, int count, u64 a, u64 a_stride, int a_replica, u64 b, u64 b_stride,
    int b_replica, u64 c, u64 c_stride, int c_replica) {
    const int slot = blockIdx.x * blockDim.x + threadIdx.x;
    if (slot >= count) return;
    const u64 replica = order[slot];
    out[slot] = a + (a_replica ? replica : slot) * a_stride;
    out[count + slot] = b + (b_replica ? replica : slot) * b_stride;
    out[2 * count + slot] = c + (c_replica ? replica : slot) * c_stride;
}

// ---------------------------------------------------------------------------------------------
// Activations: 0 none, 1 ReLU, 2 tanh. A NaN passes, and is found by its loss.
__device__ __forceinline__ float activate(float x, int kind) {
    if (kind == 1) return x < 0.0f ? 0.0f : x;
    if (kind == 2) return tanhf(x);
    return x;
}

// y = activation(x + bias of the slot's replica), `width` numbers repeating; x may be y.
extern "C" __global__ void bias_activate(
    float *y, const float *x, const float *parameters, const int *order, u64 stride, int bias,
    int rows, int width, int kind) {
    const int slot = blockIdx.y;
    const float *b = parameters + (u64)order[slot] * stride + bias;
    const size_t length = (size_t)rows * width, base = slot * length;
    for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < length;
         i += (size_t)gridDim.x * blockDim.x)
        y[base + i] = activate(x[base + i] + (bias >= 0 ? b[i % width] : 0.0f), kind);
}

// dx (+)= dy times the derivative, told by y.
extern "C" __global__ void activate_backward(
    float *dx, const float *dy, const float *y, u64 length, int kind, int again) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < length;
         i += (u64)gridDim.x * blockDim.x) {
        const float slope = kind == 1 ? (y[i] > 0.0f ? 1.0f : 0.0f) : 1.0f - y[i] * y[i];
        const float value = kind == 1 ? (y[i] > 0.0f ? dy[i] : 0.0f) : dy[i] * slope;
        dx[i] = again ? dx[i] + value : value;
    }
}

// out = a + b, or out += a when b is null.
extern "C" __global__ void add(float *out, const float *a, const float *b, u64 length) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < length;
         i += (u64)gridDim.x * blockDim.x)
        out[i] = a[i] + (b ? b[i] : out[i]);
}

extern "C" __global__ void copy(float *out, const float *a, u64 length) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < length;
         i += (u64)gridDim.x * blockDim.x)
        out[i] = a[i];
}

// ---------------------------------------------------------------------------------------------
// Softmax cross-entropy; one warp for each row. The gradient of the label's logit is minus the
// sum of the other probabilities, without cancellation.
extern "C" __global__ void cross_entropy(
    float *gradient, float *losses, unsigned char *correct, const float *logits, const int *labels,
    int rows, int classes) {
    const int slot = blockIdx.y, row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const size_t place = (size_t)slot * rows + row;
    const float *z = logits + place * classes;
    float *g = gradient ? gradient + place * classes : 0;
    const int label = labels[place];
    if (label < 0) {
        if (g) for (int c = lane; c < classes; c += 32) g[c] = 0.0f;
        if (lane == 0) { losses[place] = 0.0f; correct[place] = 0; }
        return;
    }
    float largest = -__int_as_float(0x7f800000);
    int winner = 0;
    for (int c = lane; c < classes; c += 32)
        if (z[c] > largest) { largest = z[c]; winner = c; }
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        const float other = __shfl_xor_sync(0xFFFFFFFFu, largest, step);
        const int index = __shfl_xor_sync(0xFFFFFFFFu, winner, step);
        if (other > largest || (other == largest && index < winner)) { largest = other; winner = index; }
    }
    float total = 0.0f, others = 0.0f;
    for (int c = lane; c < classes; c += 32) {
        const float e = expf(z[c] - largest);
        total += e;
        if (c != label) others += e;
    }
    total = warp_sum(total);
    others = warp_sum(others);
    const float scale = 1.0f / total;
    if (g)
        for (int c = lane; c < classes; c += 32)
            g[c] = c == label ? -(others * scale) : expf(z[c] - largest) * scale;
    if (lane == 0) {
        losses[place] = logf(total) - (z[label] - largest);
        correct[place] = winner == label;
    }
}

// ---------------------------------------------------------------------------------------------
// min(1, C/r) rounded down, in f64 and then f32; C <= 0 switches clipping off.
__device__ __forceinline__ float clipping_factor(double norm, double clip) {
    if (clip <= 0.0 || norm <= clip) return 1.0f;
    return __double2float_rd(clip / norm);
}

struct Notes { double *norms; float *losses; unsigned char *correct; u64 *failed; };

__device__ __forceinline__ void note(
    const Notes &notes, double norm, float loss, unsigned char correct, int replica, int index,
    int capacity, u64 step) {
    if (!(isfinite(norm) && isfinite(loss))) atomicMin(notes.failed + replica, step);
    if (notes.norms) {
        const size_t place = (size_t)replica * capacity + index;
        notes.norms[place] = norm;
        notes.losses[place] = loss;
        notes.correct[place] = correct;
    }
}

// squares (+)= (|x|^2 + 1) |dy|^2: the squared gradient norm of a linear layer.
extern "C" __global__ void linear_norms(
    double *squares, const float *x, const double *x_squares, const float *dy, int total, int inputs,
    int outputs, int again) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= total) return;
    double left = 0.0, right = 0.0;
    if (!x_squares)
        for (int i = lane; i < inputs; i += 32) {
            const double v = x[(size_t)row * inputs + i];
            left += v * v;
        }
    for (int i = lane; i < outputs; i += 32) {
        const double v = dy[(size_t)row * outputs + i];
        right += v * v;
    }
    left = x_squares ? x_squares[row] : warp_sum(left);
    right = warp_sum(right);
    if (lane == 0) {
        const double square = (left + 1.0) * right;
        squares[row] = again ? squares[row] + square : square;
    }
}

extern "C" __global__ void clipping_factors(
    float *factors, const double *squares, const float *losses, const unsigned char *correct,
    const int *labels, const int *order, double clip, int rows, int first, int capacity, u64 step,
    Notes notes) {
    const int slot = blockIdx.y, row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const size_t place = (size_t)slot * rows + row;
    if (labels[place] < 0) { factors[place] = 0.0f; return; }
    const double norm = sqrt(squares[place]);
    factors[place] = clipping_factor(norm, clip);
    note(notes, norm, losses[place], correct[place], order[slot], first + row, capacity, step);
}

extern "C" __global__ void scale_rows(float *x, const float *factors, int rows, u64 width) {
    const u64 length = (u64)rows * width;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < length;
         i += (u64)gridDim.x * blockDim.x)
        x[i] *= factors[i / width];
}

// sums[replica][bias + j] (+)= sum over the slot's rows of dy; 32 columns and 8 threads for each.
extern "C" __global__ void column_sums(
    float *sums, const float *dy, const int *order, u64 stride, int bias, int rows, int width,
    int again) {
    __shared__ float part[8][33];
    const int slot = blockIdx.y, column = blockIdx.x * 32 + (threadIdx.x & 31), lane = threadIdx.x / 32;
    float sum = 0.0f;
    if (column < width) {
        const float *in = dy + (size_t)slot * rows * width + column;
        for (int row = lane; row < rows; row += 8) sum += in[(size_t)row * width];
    }
    part[lane][threadIdx.x & 31] = sum;
    __syncthreads();
    if (lane == 0 && column < width) {
        for (int i = 1; i < 8; ++i) sum += part[i][threadIdx.x & 31];
        float *out = sums + (u64)order[slot] * stride + bias + column;
        *out = again ? *out + sum : sum;
    }
}

// sums[replica][offset + i width + j] (+)= sum over the slot's rows of x[from + i] dy[j], i < THIN:
// the few columns of x that a product in large tiles would spend a whole tile on.
#define THIN 16
extern "C" __global__ void __launch_bounds__(128) thin_gradient(
    float *sums, const float *x, const float *dy, const int *order, u64 stride, int offset,
    int rows, int inputs, int width, int from, int again) {
    __shared__ float4 part[32][THIN / 4];
    const int slot = blockIdx.y, column = blockIdx.x * 128 + threadIdx.x, count = inputs - from;
    const float *in = dy + (size_t)slot * rows * width + (column < width ? column : 0);
    const float *left = x + (size_t)slot * rows * inputs + from;
    float sum[THIN];
#pragma unroll
    for (int i = 0; i < THIN; ++i) sum[i] = 0.0f;
    for (int first = 0; first < rows; first += 32) {
        const int there = min(32, rows - first);
        for (int i = threadIdx.x; i < 32 * THIN; i += 128) {
            const int row = i / THIN, place = i % THIN;
            ((float *)part)[i] = row < there && place < count
                                     ? left[(size_t)(first + row) * inputs + place] : 0.0f;
        }
        __syncthreads();
#pragma unroll 8
        for (int row = 0; row < there; ++row) {
            const float d = in[(size_t)(first + row) * width];
#pragma unroll
            for (int i = 0; i < THIN / 4; ++i) {
                const float4 v = part[row][i];
                sum[4 * i] += v.x * d;
                sum[4 * i + 1] += v.y * d;
                sum[4 * i + 2] += v.z * d;
                sum[4 * i + 3] += v.w * d;
            }
        }
        __syncthreads();
    }
    if (column >= width) return;
    float *out = sums + (u64)order[slot] * stride + offset + column;
#pragma unroll
    for (int i = 0; i < THIN; ++i)
        if (i < count) out[(size_t)i * width] = again ? out[(size_t)i * width] + sum[i] : sum[i];
}

extern "C" __global__ void clear(float *sums, const int *order, u64 stride) {
    float *out = sums + (u64)order[blockIdx.y] * stride;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < stride;
         i += (u64)gridDim.x * blockDim.x)
        out[i] = 0.0f;
}

#ifdef HIDDEN
// ---------------------------------------------------------------------------------------------
// The end of a net with one hidden layer, in one pass over its rows: bias and activation, logits,
// loss, both output gradients, the gradient's norm, clipping. `hidden` holds x W1 and becomes the
// clipped gradient of the hidden layer. One warp for a row: a lane holds every 32nd hidden number.
// Squares are summed in f32; each sum is raised by what its roundings can lose.
#define EACH ((HIDDEN + 31) / 32)
#define RAISED (1.0 + (EACH + 6) / 16777216.0)
#if EACH * CLASSES <= SMALL_HEAD
// A small head: one block for each slot, the output's weights in its lanes' registers, and with
// them the sums of the clipped gradients of the output layer and of the hidden bias, so that no
// other pass over the rows is needed. Sums go row by row within a warp, then over the warps in
// pairs: always in the same order.
#define LOGITS (CLASSES <= 2 ? 2 : CLASSES <= 4 ? 4 : CLASSES <= 8 ? 8 : CLASSES <= 16 ? 16 : 32)
#define LANES_OF_CLASS (32 / LOGITS)
#define RAISED_LOGITS (1.0 + (CLASSES + 2) / 16777216.0)
#define ITEMS (EACH * CLASSES + EACH + 1)
extern "C" __global__ void __launch_bounds__(256, 2) head(
    float *hidden, float *, float *, float *losses, const float *parameters, const int *labels,
    const double *x_squares, const int *order, u64 stride, int bias1, int weight2, int bias2,
    double clip, int rows, int first, int capacity, u64 step, Notes notes, float *sums, int again) {
    __shared__ float parts[4][ITEMS][32];
    const int slot = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const int class_of_lane = lane / LANES_OF_CLASS;
    const int replica = order[slot];
    const float *own = parameters + (u64)replica * stride;
    float w[EACH][CLASSES], b1[EACH], sum_w[EACH][CLASSES], sum_b1[EACH], sum_b2 = 0.0f;
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = lane + 32 * k;
        b1[k] = i < HIDDEN ? own[bias1 + i] : 0.0f;
        sum_b1[k] = 0.0f;
#pragma unroll
        for (int c = 0; c < CLASSES; ++c) {
            w[k][c] = i < HIDDEN ? own[weight2 + i * CLASSES + c] : 0.0f;
            sum_w[k][c] = 0.0f;
        }
    }
    const float b2 = class_of_lane < CLASSES ? own[bias2 + class_of_lane] : 0.0f;
    float next[EACH];
    if (warp < rows) {
        const float *h = hidden + ((size_t)slot * rows + warp) * HIDDEN;
#pragma unroll
        for (int k = 0; k < EACH; ++k) next[k] = lane + 32 * k < HIDDEN ? h[lane + 32 * k] : 0.0f;
    }
    for (int row = warp; row < rows; row += 8) {
        const size_t place = (size_t)slot * rows + row;
        const int label = labels[place];
        float *h = hidden + place * HIDDEN;
        float value[EACH];
        float a_square = 0.0f, h_square = 0.0f, d_square = 0.0f;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            value[k] = lane + 32 * k < HIDDEN ? activate(next[k] + b1[k], ACTIVATION) : 0.0f;
            a_square += value[k] * value[k];
        }
        if (row + 8 < rows) {
#pragma unroll
            for (int k = 0; k < EACH; ++k)
                next[k] = lane + 32 * k < HIDDEN ? h[8 * HIDDEN + lane + 32 * k] : 0.0f;
        }
        // Logits: every exchange halves the classes that a lane sums, until it has one.
        float part[LOGITS];
#pragma unroll
        for (int c = 0; c < LOGITS; ++c) {
            part[c] = 0.0f;
            if (c < CLASSES) {
#pragma unroll
                for (int k = 0; k < EACH; ++k) part[c] += value[k] * w[k][c < CLASSES ? c : 0];
            }
        }
#pragma unroll
        for (int offset = 16, left = LOGITS / 2; offset > 0; offset >>= 1, left >>= 1) {
            if (left > 0) {
                const bool upper = lane & offset;
#pragma unroll
                for (int c = 0; c < LOGITS / 2; ++c)
                    if (c < left) {
                        const float mine = upper ? part[c + left] : part[c];
                        const float other = upper ? part[c] : part[c + left];
                        part[c] = mine + __shfl_xor_sync(0xFFFFFFFFu, other, offset);
                    }
            } else {
                part[0] += __shfl_xor_sync(0xFFFFFFFFu, part[0], offset);
            }
        }
        const float none = -__int_as_float(0x7f800000);
        const float logit = class_of_lane < CLASSES ? part[0] + b2 : none;
        float largest = logit;
#pragma unroll
        for (int offset = 16; offset > 0; offset >>= 1)
            largest = fmaxf(largest, __shfl_xor_sync(0xFFFFFFFFu, largest, offset));
        const int winner =
            (__ffs(__ballot_sync(0xFFFFFFFFu, logit == largest)) - 1) / LANES_OF_CLASS;
        const float e = expf(logit - largest);
        // Every lane has all classes from here on.
        float z[CLASSES];
        float total = 0.0f, others = 0.0f;
#pragma unroll
        for (int c = 0; c < CLASSES; ++c) {
            z[c] = __shfl_sync(0xFFFFFFFFu, e, c * LANES_OF_CLASS);
            total += z[c];
            others += c == label ? 0.0f : z[c];
        }
        const float scale = 1.0f / total;
        const int lane_of_label = (label < 0 ? 0 : label) * LANES_OF_CLASS;
        const float loss =
            logf(total) - (__shfl_sync(0xFFFFFFFFu, logit, lane_of_label) - largest);
#pragma unroll
        for (int c = 0; c < CLASSES; ++c) {
            z[c] = c == label ? -(others * scale) : z[c] * scale;
            d_square += z[c] * z[c];
        }
        float slope[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            float sum = 0.0f;
#pragma unroll
            for (int c = 0; c < CLASSES; ++c) sum += z[c] * w[k][c];
            slope[k] = ACTIVATION == 1 ? (value[k] > 0.0f ? sum : 0.0f)
                                       : sum * (1.0f - value[k] * value[k]);
            h_square += slope[k] * slope[k];
        }
        a_square = warp_sum(a_square);
        h_square = warp_sum(h_square);
        float factor = 0.0f;
        if (label >= 0) {
            const double norm = sqrt((x_squares[place] + 1.0) * ((double)h_square * RAISED)
                                     + ((double)a_square * RAISED + 1.0)
                                           * ((double)d_square * RAISED_LOGITS));
            factor = clipping_factor(norm, clip);
            if (lane == 0) {
                note(notes, norm, loss, winner == label, replica, first + row, capacity, step);
                losses[place] = loss;
            }
        }
        if (label < 0) {
            // A row that is not there: whatever was computed above must not reach a sum.
#pragma unroll
            for (int k = 0; k < EACH; ++k)
                if (lane + 32 * k < HIDDEN) h[lane + 32 * k] = 0.0f;
            continue;
        }
#pragma unroll
        for (int c = 0; c < CLASSES; ++c) {
            z[c] *= factor;
            if (c == class_of_lane) sum_b2 += z[c];
        }
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const float clipped = slope[k] * factor;
            if (lane + 32 * k < HIDDEN) h[lane + 32 * k] = clipped;
            sum_b1[k] += clipped;
#pragma unroll
            for (int c = 0; c < CLASSES; ++c) sum_w[k][c] += value[k] * z[c];
        }
    }
#pragma unroll
    for (int half = 4; half > 0; half >>= 1) {
        if (warp >= half && warp < 2 * half) {
            int item = 0;
#pragma unroll
            for (int k = 0; k < EACH; ++k) {
                parts[warp - half][item++][lane] = sum_b1[k];
#pragma unroll
                for (int c = 0; c < CLASSES; ++c) parts[warp - half][item++][lane] = sum_w[k][c];
            }
            parts[warp - half][item][lane] = sum_b2;
        }
        __syncthreads();
        if (warp < half) {
            int item = 0;
#pragma unroll
            for (int k = 0; k < EACH; ++k) {
                sum_b1[k] += parts[warp][item++][lane];
#pragma unroll
                for (int c = 0; c < CLASSES; ++c) sum_w[k][c] += parts[warp][item++][lane];
            }
            sum_b2 += parts[warp][item][lane];
        }
        __syncthreads();
    }
    if (warp > 0) return;
    float *out = sums + (u64)replica * stride;
    if (class_of_lane < CLASSES && lane % LANES_OF_CLASS == 0) {
        float *to = out + bias2 + class_of_lane;
        *to = again ? *to + sum_b2 : sum_b2;
    }
#pragma unroll
    for (int k = 0; k < EACH; ++k) {
        const int i = lane + 32 * k;
        if (i < HIDDEN) {
            out[bias1 + i] = again ? out[bias1 + i] + sum_b1[k] : sum_b1[k];
#pragma unroll
            for (int c = 0; c < CLASSES; ++c) {
                float *to = out + weight2 + i * CLASSES + c;
                *to = again ? *to + sum_w[k][c] : sum_w[k][c];
            }
        }
    }
}
#else
// A large head: the output's weights in shared memory; the sums are left to products. `active`
// becomes the activations, `output` the clipped gradient of the logits.
extern "C" __global__ void __launch_bounds__(256) head(
    float *hidden, float *active, float *output, float *losses, const float *parameters,
    const int *labels, const double *x_squares, const int *order, u64 stride, int bias1,
    int weight2, int bias2, double clip, int rows, int first, int capacity, u64 step, Notes notes,
    float *sums, int again) {
    __shared__ float w[HIDDEN * CLASSES];
    __shared__ float b1[HIDDEN], b2[CLASSES];
    const int slot = blockIdx.y, warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const int replica = order[slot];
    const float *own = parameters + (u64)replica * stride;
    for (int i = threadIdx.x; i < HIDDEN * CLASSES; i += 256) w[i] = own[weight2 + i];
    for (int i = threadIdx.x; i < HIDDEN; i += 256) b1[i] = own[bias1 + i];
    for (int i = threadIdx.x; i < CLASSES; i += 256) b2[i] = own[bias2 + i];
    __syncthreads();
    for (int row = blockIdx.x * 8 + warp; row < rows; row += gridDim.x * 8) {
        const size_t place = (size_t)slot * rows + row;
        const int label = labels[place];
        float *h = hidden + place * HIDDEN, *a = active + place * HIDDEN;
        float value[EACH];
        float a_part = 0.0f, h_part = 0.0f;
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const int i = lane + 32 * k;
            value[k] = i < HIDDEN ? activate(h[i] + b1[i], ACTIVATION) : 0.0f;
            a_part += value[k] * value[k];
        }
        float largest = -__int_as_float(0x7f800000), logit = 0.0f;
        int winner = 0;
#pragma unroll
        for (int c = 0; c < CLASSES; ++c) {
            float sum = 0.0f;
#pragma unroll
            for (int k = 0; k < EACH; ++k) {
                const int i = lane + 32 * k;
                if (i < HIDDEN) sum += value[k] * w[i * CLASSES + c];
            }
            sum = warp_sum(sum) + b2[c];
            if (sum > largest) { largest = sum; winner = c; }
            if (lane == c) logit = sum;
        }
        const float e = lane < CLASSES ? expf(logit - largest) : 0.0f;
        const float total = warp_sum(e), others = warp_sum(lane == label ? 0.0f : e);
        const float scale = 1.0f / total;
        const float slope_of_logit = lane == label ? -(others * scale) : e * scale;
        const float loss =
            logf(total) - (__shfl_sync(0xFFFFFFFFu, logit, label < 0 ? 0 : label) - largest);
        float z[CLASSES];
#pragma unroll
        for (int c = 0; c < CLASSES; ++c) z[c] = __shfl_sync(0xFFFFFFFFu, slope_of_logit, c);
        float slope[EACH];
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const int i = lane + 32 * k;
            float sum = 0.0f;
            if (i < HIDDEN) {
#pragma unroll
                for (int c = 0; c < CLASSES; ++c) sum += z[c] * w[i * CLASSES + c];
            }
            slope[k] = ACTIVATION == 1 ? (value[k] > 0.0f ? sum : 0.0f)
                                       : sum * (1.0f - value[k] * value[k]);
            h_part += slope[k] * slope[k];
        }
        const double a_square = warp_sum((double)a_part) * RAISED;
        const double h_square = warp_sum((double)h_part) * RAISED;
        const double d_square =
            warp_sum((double)slope_of_logit * (double)slope_of_logit);
        float factor = 0.0f;
        if (label >= 0) {
            const double norm =
                sqrt((x_squares[place] + 1.0) * h_square + (a_square + 1.0) * d_square);
            factor = clipping_factor(norm, clip);
            if (lane == 0)
                note(notes, norm, loss, winner == label, replica, first + row, capacity, step);
        }
#pragma unroll
        for (int k = 0; k < EACH; ++k) {
            const int i = lane + 32 * k;
            if (i < HIDDEN) {
                h[i] = label >= 0 ? slope[k] * factor : 0.0f;
                a[i] = value[k];
            }
        }
        if (lane < CLASSES) output[place * CLASSES + lane] = label >= 0 ? slope_of_logit * factor : 0.0f;
        if (lane == 0) losses[place] = loss;
    }
}
#endif
#endif

// ---------------------------------------------------------------------------------------------
// Canaries that are gradients: added in their order, one block for each replica.
struct Injected { int start; int length; int schedule; int unused; double scale; };
extern "C" __global__ void inject(
    float *sums, const Injected *canaries, const int *canary_start, const int *canary_kind,
    const unsigned char *hits, const int *places, const float *values, const float *factors,
    int most_canaries, u64 stride) {
    const int replica = blockIdx.x;
    float *out = sums + (u64)replica * stride;
    for (int c = canary_start[replica]; c < canary_start[replica + 1]; ++c) {
        const int number = c - canary_start[replica];
        if (canary_kind[c] == -2 && hits[(size_t)replica * most_canaries + number]) {
            const Injected canary = canaries[c];
            const double scale = canary.scale * (double)factors[canary.schedule];
            for (int i = threadIdx.x; i < canary.length; i += blockDim.x)
                out[places[canary.start + i]] += (float)((double)values[canary.start + i] * scale);
        }
        __syncthreads();
    }
}

// ---------------------------------------------------------------------------------------------
// Noise and optimiser in one pass: g = (sum + deviation z) share + decay theta. Four coordinates
// for each thread, which is one block of random words. kind: 0 SGD, 1 momentum, 2 Adam.
struct Update {
    float deviation, share, decay, rate, momentum, beta1, beta2, correction, epsilon, shrink;
    int kind; int parameters; u64 row; u64 stride;
};
extern "C" __global__ void update(
    float *parameters, const float *sums, float *first, float *second, const uint4 *keys,
    const Update u) {
    const int replica = blockIdx.y;
    const uint4 key = keys[replica];
    const u64 base = (u64)replica * u.stride;
    for (int block = blockIdx.x * blockDim.x + threadIdx.x; 4 * block < u.parameters;
         block += gridDim.x * blockDim.x) {
        float noise[4] = {0, 0, 0, 0};
        if (u.deviation != 0.0f) {
            const uint4 w = philox(block, 0, (u32)u.row, (u32)(u.row >> 32), key.x, key.y);
            const float2 low = box_muller(w.x, w.y), high = box_muller(w.z, w.w);
            noise[0] = low.x; noise[1] = low.y; noise[2] = high.x; noise[3] = high.y;
        }
        // The stride is a multiple of 32, so that whole groups of four are there and aligned.
        const u64 place = base + 4 * (u64)block;
        const float4 s4 = *(const float4 *)(sums + place), t4 = *(const float4 *)(parameters + place);
        const float s[4] = {s4.x, s4.y, s4.z, s4.w};
        float t[4] = {t4.x, t4.y, t4.z, t4.w};
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const float g = (s[i] + u.deviation * noise[i]) * u.share + u.decay * t[i];
            if (u.kind == 0) {
                t[i] -= u.rate * g;
            } else if (u.kind == 1) {
                const float v = u.momentum * first[place + i] + g;
                first[place + i] = v;
                t[i] -= u.rate * v;
            } else {
                const float m = u.beta1 * first[place + i] + (1.0f - u.beta1) * g;
                const float v = u.beta2 * second[place + i] + (1.0f - u.beta2) * (g * g);
                first[place + i] = m;
                second[place + i] = v;
                t[i] = t[i] * u.shrink - u.rate * m / (sqrtf(v * u.correction) + u.epsilon);
            }
        }
        *(float4 *)(parameters + place) = make_float4(t[0], t[1], t[2], t[3]);
    }
}

// ---------------------------------------------------------------------------------------------
// Convolutions: patches as rows of a matrix, all channels of a pixel together.
struct Layer {
    int input_height, input_width, input_channels, output_height, output_width, output_channels;
    int kernel, stride, padding;
};
extern "C" __global__ void patches(float *out, const float *x, Layer l, u64 images) {
    // One image for a block at a time: within it 32 bits are enough, and division is cheap.
    const u32 run = l.kernel * l.input_channels, patch = l.kernel * run;
    const u32 length = l.output_height * l.output_width * patch;
    const size_t pixels = (size_t)l.input_height * l.input_width * l.input_channels;
    for (u64 image = blockIdx.x; image < images; image += gridDim.x)
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
            const u32 position = i / patch, within = i % patch;
            const u32 window = within / run, rest = within % run;
            const int y = (int)(position / l.output_width) * l.stride + window - l.padding;
            const int c = (int)(position % l.output_width) * l.stride + rest / l.input_channels - l.padding;
            const bool inside = y >= 0 && y < l.input_height && c >= 0 && c < l.input_width;
            out[image * length + i] =
                inside ? x[image * pixels + (size_t)(y * l.input_width + c) * l.input_channels + rest % l.input_channels]
                       : 0.0f;
        }
}

// The gradient of the image from that of its patches: every pixel asks the windows that read it.
extern "C" __global__ void unpatch(float *dx, const float *dp, Layer l, u64 images, int again) {
    const u32 patch = l.kernel * l.kernel * l.input_channels;
    const u32 pixels = l.input_height * l.input_width * l.input_channels;
    const size_t length = (size_t)l.output_height * l.output_width * patch;
    for (u64 image = blockIdx.x; image < images; image += gridDim.x)
        for (u32 i = threadIdx.x; i < pixels; i += blockDim.x) {
            const int channel = i % l.input_channels, pixel = i / l.input_channels;
            const int y = pixel / l.input_width + l.padding, x = pixel % l.input_width + l.padding;
            const float *own = dp + image * length + channel;
            float sum = 0.0f;
            for (int ky = y % l.stride; ky < l.kernel && ky <= y; ky += l.stride) {
                const int row = (y - ky) / l.stride;
                if (row >= l.output_height) continue;
                for (int kx = x % l.stride; kx < l.kernel && kx <= x; kx += l.stride) {
                    const int column = (x - kx) / l.stride;
                    if (column >= l.output_width) continue;
                    sum += own[(u32)(row * l.output_width + column) * patch
                               + (u32)(ky * l.kernel + kx) * l.input_channels];
                }
            }
            float *to = dx + image * pixels + i;
            *to = again ? *to + sum : sum;
        }
}

// ---------------------------------------------------------------------------------------------
struct Pool { int input_height, input_width, channels, output_height, output_width, kernel, stride; };
extern "C" __global__ void max_pool(float *y, unsigned char *winners, const float *x, Pool p, u64 images) {
    const u32 length = p.output_height * p.output_width * p.channels;
    const size_t pixels = (size_t)p.input_height * p.input_width * p.channels;
    for (u64 image = blockIdx.x; image < images; image += gridDim.x)
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
            const int channel = i % p.channels, position = i / p.channels;
            const int row = position / p.output_width, column = position % p.output_width;
            float best = 0.0f;
            int winner = 0;
            for (int ky = 0; ky < p.kernel; ++ky)
                for (int kx = 0; kx < p.kernel; ++kx) {
                    const int pixel = (row * p.stride + ky) * p.input_width + column * p.stride + kx;
                    const float v = x[image * pixels + pixel * p.channels + channel];
                    if ((ky == 0 && kx == 0) || v > best) { best = v; winner = ky * p.kernel + kx; }
                }
            y[image * length + i] = best;
            winners[image * length + i] = winner;
        }
}

// winners == null: averages.
extern "C" __global__ void pool_backward(
    float *dx, const float *dy, const unsigned char *winners, Pool p, u64 images, int again) {
    const u32 pixels = p.input_height * p.input_width * p.channels;
    const size_t length = (size_t)p.output_height * p.output_width * p.channels;
    const float share = 1.0f / (float)(p.kernel * p.kernel);
    for (u64 image = blockIdx.x; image < images; image += gridDim.x)
        for (u32 i = threadIdx.x; i < pixels; i += blockDim.x) {
            const int channel = i % p.channels, pixel = i / p.channels;
            const int y = pixel / p.input_width, x = pixel % p.input_width;
            float sum = 0.0f;
            for (int ky = max(y % p.stride, y - (p.output_height - 1) * p.stride); ky < p.kernel && ky <= y; ky += p.stride) {
                const int row = (y - ky) / p.stride;
                for (int kx = max(x % p.stride, x - (p.output_width - 1) * p.stride); kx < p.kernel && kx <= x; kx += p.stride) {
                    const int column = (x - kx) / p.stride;
                    const size_t o = image * length + (row * p.output_width + column) * p.channels + channel;
                    if (!winners) sum += share * dy[o];
                    else if (winners[o] == ky * p.kernel + kx) sum += dy[o];
                }
            }
            float *to = dx + image * pixels + i;
            *to = again ? *to + sum : sum;
        }
}

// Averages of whole images, with channels in fours.
extern "C" __global__ void average_whole(float *y, const float *x, Pool p, u64 images) {
    const u32 quads = p.channels / 4, positions = p.input_height * p.input_width;
    const float share = 1.0f / (float)(p.kernel * p.kernel);
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < images * quads;
         i += (u64)gridDim.x * blockDim.x) {
        const float4 *from = (const float4 *)x + i / quads * positions * quads + i % quads;
        float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 8
        for (u32 position = 0; position < positions; ++position) {
            const float4 v = from[(u64)position * quads];
            sum.x += share * v.x;
            sum.y += share * v.y;
            sum.z += share * v.z;
            sum.w += share * v.w;
        }
        ((float4 *)y)[i] = sum;
    }
}

// And back: every position gets the same share.
extern "C" __global__ void average_backward(
    float *dx, const float *dy, Pool p, u64 images, int again) {
    const u32 quads = p.channels / 4, length = p.input_height * p.input_width * quads;
    const float share = 1.0f / (float)(p.kernel * p.kernel);
    for (u64 image = blockIdx.x; image < images; image += gridDim.x)
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
            float4 v = ((const float4 *)dy)[image * quads + i % quads];
            float4 *to = (float4 *)dx + image * length + i;
            v = make_float4(share * v.x, share * v.y, share * v.z, share * v.w);
            if (again) {
                const float4 more = *to;
                v = make_float4(more.x + v.x, more.y + v.y, more.z + v.z, more.w + v.w);
            }
            *to = v;
        }
}

extern "C" __global__ void average_pool(float *y, const float *x, Pool p, u64 images) {
    const u32 length = p.output_height * p.output_width * p.channels;
    const size_t pixels = (size_t)p.input_height * p.input_width * p.channels;
    const float share = 1.0f / (float)(p.kernel * p.kernel);
    for (u64 image = blockIdx.x; image < images; image += gridDim.x)
        for (u32 i = threadIdx.x; i < length; i += blockDim.x) {
            const int channel = i % p.channels, position = i / p.channels;
            const int row = position / p.output_width, column = position % p.output_width;
            float sum = 0.0f;
            for (int ky = 0; ky < p.kernel; ++ky)
                for (int kx = 0; kx < p.kernel; ++kx) {
                    const int pixel = (row * p.stride + ky) * p.input_width + column * p.stride + kx;
                    sum += share * x[image * pixels + pixel * p.channels + channel];
                }
            y[image * length + i] = sum;
        }
}
