// Kernels for nets of images, compiled by NVRTC: weights in use, group normalisation, and every
// example's kept gradient: its norm and the clipped sum. Shapes as in `kernels.cu`; no sum depends
// on timing.

typedef unsigned int u32;
typedef unsigned long long u64;

// What a product of `convolution.cu` reads: with ROUNDED (TF32), to the nearest number of 11 bits. A
// NaN stays one.
__device__ __forceinline__ float operand(float x) {
#ifdef ROUNDED
    return x == x ? __uint_as_float((__float_as_uint(x) + 4096) & 0xFFFFE000u) : x;
#else
    return x;
#endif
}

#define LANES 32  // columns of a block of `weights_in_use` and `pull_back`
#define DEEP 32   // threads for each of these columns

// ---------------------------------------------------------------------------------------------
// Weights in use of every layer in one launch. A block takes LANES columns of one layer. With
// `standardised` column v = s (w - mean w), s = 1 / sqrt(sum (w - mean w)^2 + 1e-5), otherwise w.
// `used` is [patch][output]; `forward` and `backward`, where they are wanted, are packed for the
// products of `convolution.cu`.
struct Weights {
    float *used, *forward, *backward;
    double *scales, *lengths;
    int weight, rows, columns, first, inputs, standardised;
};

__device__ __forceinline__ double column_total(double (*part)[LANES], double value) {
    const int lane = threadIdx.x % LANES, deep = threadIdx.x / LANES;
    __syncthreads();
    part[deep][lane] = value;
    __syncthreads();
    for (int half = DEEP / 2; half > 0; half >>= 1) {
        if (deep < half) part[deep][lane] += part[deep + half][lane];
        __syncthreads();
    }
    return part[0][lane];
}

extern "C" __global__ void __launch_bounds__(LANES * DEEP) weights_in_use(
    const Weights *table, const float *parameters, u64 stride) {
    __shared__ double part[DEEP][LANES];
    __shared__ float turn[DEEP][LANES + 1];
    const Weights t = table[blockIdx.x];
    const u64 replica = blockIdx.y;
    const int lane = threadIdx.x % LANES, deep = threadIdx.x / LANES, column = t.first + lane;
    const bool there = column < t.columns;
    const float *w = parameters + replica * stride + t.weight + column;
    double mean = 0.0, scale = 1.0;
    if (t.standardised) {
        double sum = 0.0, square = 0.0;
        if (there)
            for (int row = deep; row < t.rows; row += DEEP) sum += w[(u64)row * t.columns];
        mean = column_total(part, sum) / t.rows;
        if (there)
            for (int row = deep; row < t.rows; row += DEEP) {
                const double d = (double)w[(u64)row * t.columns] - mean;
                square += d * d;
            }
        square = column_total(part, square);
        scale = 1.0 / sqrt(square + 1e-5);
        if (there && deep == 0) {
            t.scales[replica * t.columns + column] = scale;
            t.lengths[replica * t.columns + column] = square * scale * scale;
        }
    }
    const u64 size = (u64)t.rows * t.columns, base = replica * size;
    for (int first = 0; first < t.rows; first += DEEP) {
        const int row = first + deep;
        float v = 0.0f;
        if (there && row < t.rows) {
            v = t.standardised ? (float)(((double)w[(u64)row * t.columns] - mean) * scale)
                               : w[(u64)row * t.columns];
            if (t.used) t.used[base + (u64)row * t.columns + column] = v;
            if (t.backward) {
                const int tap = row / t.inputs, input = row % t.inputs, taps = t.rows / t.inputs;
                t.backward[base + ((u64)input * taps + tap) * t.columns + column] = operand(v);
            }
        }
        if (t.forward) {
            __syncthreads();
            turn[deep][lane] = operand(v);
            __syncthreads();
            const int other = t.first + deep, along = first + lane;
            if (other < t.columns && along < t.rows)
                t.forward[base + (u64)other * t.rows + along] = turn[lane][deep];
        }
    }
}

// From the summed gradient of the weights in use to that of the parameters, in place.
extern "C" __global__ void __launch_bounds__(LANES * DEEP) pull_back(
    const Weights *table, float *sums, u64 stride) {
    __shared__ double part[DEEP][LANES];
    const Weights t = table[blockIdx.x];
    if (!t.standardised) return;
    const u64 replica = blockIdx.y;
    const int lane = threadIdx.x % LANES, deep = threadIdx.x / LANES, column = t.first + lane;
    const bool there = column < t.columns;
    float *g = sums + replica * stride + t.weight + column;
    const float *v = t.used + replica * t.rows * t.columns + column;
    double sum = 0.0, dot = 0.0;
    if (there)
        for (int row = deep; row < t.rows; row += DEEP) {
            const double a = g[(u64)row * t.columns], b = v[(u64)row * t.columns];
            sum += a;
            dot += a * b;
        }
    const double mean = column_total(part, sum) / t.rows;
    dot = column_total(part, dot);
    if (!there) return;
    const double scale = t.scales[replica * t.columns + column];
    for (int row = deep; row < t.rows; row += DEEP) {
        const u64 place = (u64)row * t.columns;
        g[place] = (float)(scale * ((double)g[place] - mean - (double)v[place] * dot));
    }
}

// ---------------------------------------------------------------------------------------------
// Group normalisation. A block takes one example (x) and `chunk` channels (y), which are whole
// groups, or one group alone. With `active` the input passes a ReLU first. PER is the number of
// positions that a thread keeps in registers between its two passes; 0: it reads them again.
// Blocks are as large as the work.
struct Groups { int positions, channels, groups, scale, shift, rows, chunk, active; };
#define NORM 1024
#define ROUNDS 8

// Two sums over the threads of each lane, into `columns`; lanes are channels.
template <typename T>
__device__ __forceinline__ void lane_sums(
    T (*part)[NORM], T (*some)[32 * ROUNDS], T (*columns)[32], T first, T second, int lanes, int deep) {
    const int lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
    __syncthreads();
    part[0][threadIdx.x] = first;
    part[1][threadIdx.x] = second;
    __syncthreads();
    if (row < ROUNDS) {
        first = second = 0;
        for (int i = row; i < deep; i += ROUNDS) {
            first += part[0][i * lanes + lane];
            second += part[1][i * lanes + lane];
        }
        some[0][row * lanes + lane] = first;
        some[1][row * lanes + lane] = second;
    }
    __syncthreads();
    if (threadIdx.x < lanes) {
        first = second = 0;
        for (int i = 0; i < min(ROUNDS, deep); ++i) {
            first += some[0][i * lanes + lane];
            second += some[1][i * lanes + lane];
        }
        columns[0][lane] = first;
        columns[1][lane] = second;
    }
    __syncthreads();
}

__device__ __forceinline__ float passed(float x, int active) { return active && x < 0.0f ? 0.0f : x; }

template <int PER>
__device__ __forceinline__ void normalise(
    float *y, float2 *statistics, const float *x, const float *parameters, const int *order,
    u64 stride, const Groups &g) {
    __shared__ double part[2][NORM], some[2][32 * ROUNDS], columns[2][32];
    const int lanes = min(g.chunk, 32), deep = blockDim.x / lanes;
    const int lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
    const int width = g.channels / g.groups, example = blockIdx.x, first = blockIdx.y * g.chunk;
    const bool there = row < deep;
    const u64 base = (u64)example * g.positions * g.channels + first;
    const float *own = parameters + (u64)order[example / g.rows] * stride;
    const double count = (double)width * g.positions;
    const int together = min(width, lanes);
    float kept[PER > 0 ? PER : 1];
    double sum = 0.0, square = 0.0;
    if (PER > 0) {
#pragma unroll
        for (int k = 0; k < PER; ++k) {
            const int p = row + k * deep;
            kept[k] = there && p < g.positions ? passed(x[base + (u64)p * g.channels + lane], g.active) : 0.0f;
        }
#pragma unroll
        for (int k = 0; k < PER; ++k) {
            sum += kept[k];
            square += (double)kept[k] * (double)kept[k];
        }
    } else if (there) {
        for (int c = lane; c < g.chunk; c += lanes)
            for (int p = row; p < g.positions; p += deep) {
                const double v = passed(x[base + (u64)p * g.channels + c], g.active);
                sum += v;
                square += v * v;
            }
    }
    lane_sums(part, some, columns, sum, square, lanes, deep);
    sum = square = 0.0;
    const int begin = lane / together * together;
    for (int i = begin; i < begin + together; ++i) {
        sum += columns[0][i];
        square += columns[1][i];
    }
    const double mean = sum / count;
    const float inverse = (float)(1.0 / sqrt(fmax(square / count - mean * mean, 0.0) + 1e-5));
    const float centre = (float)mean;
    if (threadIdx.x < lanes && lane % together == 0)
        statistics[(u64)example * g.groups + (first + lane) / width] = make_float2(centre, inverse);
    if (!there) return;
    if (PER > 0) {
        const float scale = own[g.scale + first + lane], shift = own[g.shift + first + lane];
#pragma unroll
        for (int k = 0; k < PER; ++k) {
            const int p = row + k * deep;
            if (p < g.positions)
                y[base + (u64)p * g.channels + lane] =
                    operand((kept[k] - centre) * inverse * scale + shift);
        }
    } else {
        for (int c = lane; c < g.chunk; c += lanes) {
            const float scale = own[g.scale + first + c], shift = own[g.shift + first + c];
            for (int p = row; p < g.positions; p += deep) {
                const u64 place = base + (u64)p * g.channels + c;
                y[place] = operand((passed(x[place], g.active) - centre) * inverse * scale + shift);
            }
        }
    }
}

// Gradients of scale and shift of each example into its kept gradient, and that of the input (with
// `base` added) unless dx is null.
template <int PER>
__device__ __forceinline__ void normalise_backward(
    float *dx, const float *base, float *kept, u64 kept_stride, const float *dy, const float *x,
    const float2 *statistics, const float *parameters, const int *order, u64 stride, const Groups &g) {
    __shared__ float part[2][NORM], some[2][32 * ROUNDS], columns[2][32];
    const int lanes = min(g.chunk, 32), deep = blockDim.x / lanes;
    const int lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
    const int width = g.channels / g.groups, example = blockIdx.x, first = blockIdx.y * g.chunk;
    const bool there = row < deep;
    const u64 start = (u64)example * g.positions * g.channels + first;
    const float *scale = parameters + (u64)order[example / g.rows] * stride + g.scale + first;
    float *own = kept + (u64)example * kept_stride + first;
    const float count = (float)width * (float)g.positions;
    const int together = min(width, lanes), begin = lane / together * together;
    const float2 known = statistics[(u64)example * g.groups + (first + lane) / width];
    float mean = 0.0f, along = 0.0f;
    float slopes[PER > 0 ? PER : 1], inputs[PER > 0 ? PER : 1];
    for (int block = 0; block < g.chunk; block += lanes) {
        const int c = block + lane;
        float of_scale = 0.0f, of_shift = 0.0f;
        if (PER > 0) {
#pragma unroll
            for (int k = 0; k < PER; ++k) {
                const int p = row + k * deep;
                const u64 place = start + (u64)p * g.channels + lane;
                const bool here = there && p < g.positions;
                slopes[k] = here ? dy[place] : 0.0f;
                inputs[k] = here ? x[place] : 0.0f;
            }
#pragma unroll
            for (int k = 0; k < PER; ++k) {
                of_scale += slopes[k] * ((passed(inputs[k], g.active) - known.x) * known.y);
                of_shift += slopes[k];
            }
        } else if (there && c < g.chunk) {
            for (int p = row; p < g.positions; p += deep) {
                const u64 place = start + (u64)p * g.channels + c;
                const float d = dy[place];
                of_scale += d * ((passed(x[place], g.active) - known.x) * known.y);
                of_shift += d;
            }
        }
        lane_sums(part, some, columns, of_scale, of_shift, lanes, deep);
        if (threadIdx.x < lanes) {
            if (c < g.chunk) {
                own[c] = columns[0][lane];
                own[g.channels + c] = columns[1][lane];
            }
            const float factor = c < g.chunk ? scale[c] / count : 0.0f;
            columns[0][lane] *= factor;
            columns[1][lane] *= factor;
        }
        __syncthreads();
        for (int i = begin; i < begin + together; ++i) {
            along += columns[0][i];
            mean += columns[1][i];
        }
    }
    if (!dx || !there) return;
    if (PER > 0) {
        const float factor = scale[lane];
#pragma unroll
        for (int k = 0; k < PER; ++k) {
            const int p = row + k * deep;
            if (p >= g.positions) continue;
            const u64 place = start + (u64)p * g.channels + lane;
            const float z = (passed(inputs[k], g.active) - known.x) * known.y;
            float slope = known.y * (factor * slopes[k] - mean - z * along);
            if (g.active && !(inputs[k] > 0.0f)) slope = 0.0f;
            dx[place] = base ? base[place] + slope : slope;
        }
        return;
    }
    for (int c = lane; c < g.chunk; c += lanes) {
        const float factor = scale[c];
        for (int p = row; p < g.positions; p += deep) {
            const u64 place = start + (u64)p * g.channels + c;
            const float raw = x[place], z = (passed(raw, g.active) - known.x) * known.y;
            float slope = known.y * (factor * dy[place] - mean - z * along);
            if (g.active && !(raw > 0.0f)) slope = 0.0f;
            dx[place] = base ? base[place] + slope : slope;
        }
    }
}

#define NORMALISE(PER)                                                                               \
    extern "C" __global__ void __launch_bounds__(NORM) group_norm_##PER(                             \
        float *y, float2 *statistics, const float *x, const float *parameters, const int *order,     \
        u64 stride, const Groups g) {                                                                \
        normalise<PER>(y, statistics, x, parameters, order, stride, g);                              \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(NORM) group_norm_backward_##PER(                    \
        float *dx, const float *base, float *kept, u64 kept_stride, const float *dy, const float *x, \
        const float2 *statistics, const float *parameters, const int *order, u64 stride,             \
        const Groups g) {                                                                            \
        normalise_backward<PER>(                                                                     \
            dx, base, kept, kept_stride, dy, x, statistics, parameters, order, stride, g);           \
    }
NORMALISE(0)
NORMALISE(16)

// Large images: two blocks of half the threads on a processor, so that one reads while one writes.
extern "C" __global__ void __launch_bounds__(NORM / 2, 2) group_norm_32(
    float *y, float2 *statistics, const float *x, const float *parameters, const int *order,
    u64 stride, const Groups g) {
    normalise<32>(y, statistics, x, parameters, order, stride, g);
}

// ---------------------------------------------------------------------------------------------
// Every example's gradient of the bias of a convolution: dy summed over positions. A block for
// each example (x) and 64 channels (y).
extern "C" __global__ void __launch_bounds__(256) each_bias(
    float *kept, u64 kept_stride, const float *dy, int positions, int channels) {
    __shared__ float part[4][64];
    const u64 example = blockIdx.x;
    const int lane = threadIdx.x & 63, row = threadIdx.x >> 6, c = blockIdx.y * 64 + lane;
    float sum = 0.0f;
    if (c < channels) {
        const float *in = dy + example * positions * channels + c;
#pragma unroll 8
        for (int p = row; p < positions; p += 4) sum += in[(u64)p * channels];
    }
    part[row][lane] = sum;
    __syncthreads();
    if (row == 0 && c < channels)
        kept[example * kept_stride + c] = (part[0][lane] + part[1][lane]) + (part[2][lane] + part[3][lane]);
}

// Squared norms of kept gradients, part by part: up to 64 columns of one tensor, for NORMED examples
// of one replica (x) and each part (y). Of standardised weights, what the map to the parameters
// makes of them: `total` after the map, `plain` its length without the projection, which bounds the
// map's rounding. `lanes` threads lie along the columns.
#define NORMED 4
struct Part {
    const float *used;
    const double *scales, *lengths;
    int offset, rows, columns, first, lanes, unused;
};
extern "C" __global__ void __launch_bounds__(256, 3) part_norms(
    double2 *norms, const Part *table, const float *kept, u64 kept_stride, const int *order,
    int slot_rows, int examples, int all) {
    __shared__ double parts[3 * NORMED][256], columns[3 * NORMED][64];
    const Part t = table[blockIdx.y];
    const int example = blockIdx.x * NORMED;
    const u64 replica = order[example / slot_rows];
    const int lane = threadIdx.x % t.lanes, row0 = threadIdx.x / t.lanes, deep = 256 / t.lanes;
    const int column = t.first + lane;
    double sum[NORMED], dot[NORMED], square[NORMED];
#pragma unroll
    for (int e = 0; e < NORMED; ++e) sum[e] = dot[e] = square[e] = 0.0;
    if (column < t.columns) {
        const float *g[NORMED];
#pragma unroll
        for (int e = 0; e < NORMED; ++e)
            g[e] = kept + (u64)min(example + e, examples - 1) * kept_stride + t.offset + column;
        if (t.used) {
            const float *v = t.used + replica * t.rows * t.columns + column;
#pragma unroll 4
            for (int row = row0; row < t.rows; row += deep) {
                const int place = row * t.columns;
                const double b = v[place];
#pragma unroll
                for (int e = 0; e < NORMED; ++e) {
                    const double a = g[e][place];
                    sum[e] += a;
                    dot[e] += a * b;
                    square[e] += a * a;
                }
            }
        } else {
#pragma unroll 4
            for (int row = row0; row < t.rows; row += deep) {
                const int place = row * t.columns;
#pragma unroll
                for (int e = 0; e < NORMED; ++e) {
                    const double a = g[e][place];
                    square[e] += a * a;
                }
            }
        }
    }
#pragma unroll
    for (int e = 0; e < NORMED; ++e) {
        parts[3 * e][threadIdx.x] = sum[e];
        parts[3 * e + 1][threadIdx.x] = dot[e];
        parts[3 * e + 2][threadIdx.x] = square[e];
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 3 * NORMED * t.lanes; i += 256) {
        const int which = i / t.lanes, along = i % t.lanes;
        double total = 0.0;
        for (int row = 0; row < deep; ++row) total += parts[which][row * t.lanes + along];
        columns[which][along] = total;
    }
    __syncthreads();
    const int e = threadIdx.x / 32;
    if (e >= NORMED || example + e >= examples) return;
    double total = 0.0, plain = 0.0;
    for (int along = threadIdx.x & 31; along < t.lanes; along += 32) {
        if (t.first + along >= t.columns) break;
        const double s2 = columns[3 * e + 2][along];
        if (t.used) {
            const u64 place = replica * t.columns + t.first + along;
            const double s = t.scales[place], s0 = columns[3 * e][along], s1 = columns[3 * e + 1][along];
            total += s * s * fmax(s2 - s0 * s0 / t.rows - (2.0 - t.lengths[place]) * s1 * s1, 0.0);
            plain += s * s * s2;
        } else {
            total += s2;
        }
    }
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) {
        total += __shfl_xor_sync(0xFFFFFFFFu, total, step);
        plain += __shfl_xor_sync(0xFFFFFFFFu, plain, step);
    }
    if ((threadIdx.x & 31) == 0)
        norms[(u64)(example + e) * all + blockIdx.y] = make_double2(total, plain);
}

// The same of vectors (where each begins, and its length), which are parts from `first` on. One warp
// for each example.
extern "C" __global__ void __launch_bounds__(256) vector_norms(
    double2 *norms, const int2 *vectors, const float *kept, u64 kept_stride, int count, int first,
    int all, int examples) {
    const int example = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (example >= examples) return;
#pragma unroll 4
    for (int i = 0; i < count; ++i) {
        const int2 vector = vectors[i];
        const float *v = kept + (u64)example * kept_stride + vector.x;
        double sum = 0.0;
        for (int k = lane; k < vector.y; k += 32) sum += (double)v[k] * (double)v[k];
#pragma unroll
        for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
        if (lane == 0) norms[(u64)example * all + first + i] = make_double2(sum, 0.0);
    }
}

// squares = the sum over tensors of their squared norm; `tensors` are the first part of each and
// the number of parts. One warp for each example.
extern "C" __global__ void __launch_bounds__(256) kept_norms(
    double *squares, const double2 *norms, const int2 *tensors, int count, int parts, int examples) {
    const int example = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (example >= examples) return;
    double sum = 0.0;
    for (int i = lane; i < count; i += 32) {
        const int2 tensor = tensors[i];
        double total = 0.0, plain = 0.0;
        for (int part = tensor.x; part < tensor.x + tensor.y; ++part) {
            const double2 own = norms[(u64)example * parts + part];
            total += own.x;
            plain += own.y;
        }
        const double norm = sqrt(total) + sqrt(plain) / 4194304.0;
        sum += norm * norm;
    }
#pragma unroll
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
    if (lane == 0) squares[example] = sum;
}

// sums[replica][offset + i] (+)= sum over the slot's rows of factor times kept gradient.
extern "C" __global__ void __launch_bounds__(256) kept_sum(
    float *sums, const float *kept, u64 kept_stride, const float *factors, const int *order,
    u64 stride, int offset, int kept_offset, int rows, int width, int again) {
    const int slot = blockIdx.y, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width) return;
    const float *in = kept + (u64)slot * rows * kept_stride + kept_offset + i;
    const float *f = factors + (u64)slot * rows;
    float sum = 0.0f;
#pragma unroll 8
    for (int row = 0; row < rows; ++row) sum += f[row] * in[(u64)row * kept_stride];
    float *out = sums + (u64)order[slot] * stride + offset + i;
    *out = again ? *out + sum : sum;
}
