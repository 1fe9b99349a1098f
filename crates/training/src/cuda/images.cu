// Kernels for nets of images, compiled by NVRTC: weights in use, group normalisation, and every
// example's kept gradient: its norm and the clipped sum. Shapes as in `kernels.cu`; no sum depends
// on timing.

typedef unsigned int u32;
typedef unsigned long long u64;

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
                t.backward[base + ((u64)input * taps + tap) * t.columns + column] = v;
            }
        }
        if (t.forward) {
            __syncthreads();
            turn[deep][lane] = v;
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
// groups, or one group alone. With `active` the input passes a ReLU first.
struct Groups { int positions, channels, groups, scale, shift, rows, chunk, active; };
#define NORM 512

// The sum of `value` over the threads of a lane's group; lanes are channels.
__device__ __forceinline__ double group_total(
    double *part, double *columns, double value, int lanes, int deep, int width) {
    const int lane = threadIdx.x % lanes;
    __syncthreads();
    part[threadIdx.x] = value;
    __syncthreads();
    if (threadIdx.x < lanes) {
        double sum = 0.0;
        for (int i = 0; i < deep; ++i) sum += part[i * lanes + lane];
        columns[lane] = sum;
    }
    __syncthreads();
    double sum = 0.0;
    const int first = lane / width * width;
    for (int i = first; i < first + width; ++i) sum += columns[i];
    return sum;
}

extern "C" __global__ void __launch_bounds__(NORM) group_norm(
    float *y, float2 *statistics, const float *x, const float *parameters, const int *order,
    u64 stride, const Groups g) {
    __shared__ double part[NORM], columns[32];
    const int lanes = min(g.chunk, 32), deep = NORM / lanes;
    const int lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
    const int width = g.channels / g.groups, example = blockIdx.x, first = blockIdx.y * g.chunk;
    const bool there = row < deep;
    const u64 base = (u64)example * g.positions * g.channels + first;
    const float *own = parameters + (u64)order[example / g.rows] * stride;
    const double count = (double)width * g.positions;
    const int together = min(width, lanes);
    double sum = 0.0;
    if (there)
        for (int c = lane; c < g.chunk; c += lanes)
#pragma unroll 8
            for (int p = row; p < g.positions; p += deep) {
                const float v = x[base + (u64)p * g.channels + c];
                sum += g.active && v < 0.0f ? 0.0f : v;
            }
    const double mean = group_total(part, columns, sum, lanes, deep, together) / count;
    double square = 0.0;
    if (there)
        for (int c = lane; c < g.chunk; c += lanes)
#pragma unroll 8
            for (int p = row; p < g.positions; p += deep) {
                const float v = x[base + (u64)p * g.channels + c];
                const double d = (g.active && v < 0.0f ? 0.0f : v) - mean;
                square += d * d;
            }
    square = group_total(part, columns, square, lanes, deep, together);
    const float inverse = (float)(1.0 / sqrt(square / count + 1e-5)), centre = (float)mean;
    if (threadIdx.x < lanes && lane % together == 0)
        statistics[(u64)example * g.groups + (first + lane) / width] = make_float2(centre, inverse);
    if (there)
        for (int c = lane; c < g.chunk; c += lanes) {
            const float scale = own[g.scale + first + c], shift = own[g.shift + first + c];
#pragma unroll 8
            for (int p = row; p < g.positions; p += deep) {
                const u64 place = base + (u64)p * g.channels + c;
                const float v = x[place];
                y[place] = ((g.active && v < 0.0f ? 0.0f : v) - centre) * inverse * scale + shift;
            }
        }
}

// Gradients of scale and shift of each example into its kept gradient, and that of the input (with
// `base` added) unless dx is null.
extern "C" __global__ void __launch_bounds__(NORM) group_norm_backward(
    float *dx, const float *base, float *kept, u64 kept_stride, const float *dy, const float *x,
    const float2 *statistics, const float *parameters, const int *order, u64 stride, const Groups g) {
    __shared__ float part[2][NORM];
    __shared__ float columns[2][32];
    const int lanes = min(g.chunk, 32), deep = NORM / lanes;
    const int lane = threadIdx.x % lanes, row = threadIdx.x / lanes;
    const int width = g.channels / g.groups, example = blockIdx.x, first = blockIdx.y * g.chunk;
    const bool there = row < deep;
    const u64 start = (u64)example * g.positions * g.channels + first;
    const float *scale = parameters + (u64)order[example / g.rows] * stride + g.scale + first;
    float *own = kept + (u64)example * kept_stride + first;
    const float count = (float)width * (float)g.positions;
    const int together = min(width, lanes);
    const float2 known = statistics[(u64)example * g.groups + (first + lane) / width];
    float mean = 0.0f, along = 0.0f;
    for (int block = 0; block < g.chunk; block += lanes) {
        const int c = block + lane;
        const bool here = there && c < g.chunk;
        float of_scale = 0.0f, of_shift = 0.0f;
        if (here)
#pragma unroll 8
            for (int p = row; p < g.positions; p += deep) {
                const u64 place = start + (u64)p * g.channels + c;
                const float v = x[place], d = dy[place];
                of_scale += d * (((g.active && v < 0.0f ? 0.0f : v) - known.x) * known.y);
                of_shift += d;
            }
        __syncthreads();
        part[0][threadIdx.x] = of_scale;
        part[1][threadIdx.x] = of_shift;
        __syncthreads();
        if (threadIdx.x < lanes) {
            of_scale = of_shift = 0.0f;
            for (int i = 0; i < deep; ++i) {
                of_scale += part[0][i * lanes + lane];
                of_shift += part[1][i * lanes + lane];
            }
            if (c < g.chunk) {
                own[c] = of_scale;
                own[g.channels + c] = of_shift;
            }
            columns[0][lane] = c < g.chunk ? scale[c] * of_scale / count : 0.0f;
            columns[1][lane] = c < g.chunk ? scale[c] * of_shift / count : 0.0f;
        }
        __syncthreads();
        const int begin = lane / together * together;
        for (int i = begin; i < begin + together; ++i) {
            along += columns[0][i];
            mean += columns[1][i];
        }
    }
    if (!dx || !there) return;
    for (int c = lane; c < g.chunk; c += lanes) {
        const float factor = scale[c];
#pragma unroll 8
        for (int p = row; p < g.positions; p += deep) {
            const u64 place = start + (u64)p * g.channels + c;
            const float raw = x[place], v = g.active && raw < 0.0f ? 0.0f : raw;
            const float z = (v - known.x) * known.y;
            float slope = known.y * (factor * dy[place] - mean - z * along);
            if (g.active && !(raw > 0.0f)) slope = 0.0f;
            dx[place] = base ? base[place] + slope : slope;
        }
    }
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

// Squared norms of kept gradients, part by part: 64 columns of one tensor, for each example (x) and
// part (y). Of standardised weights, what the map to the parameters makes of them: `total` after
// the map, `plain` its length without the projection, which bounds the map's rounding.
struct Part {
    const float *used;
    const double *scales, *lengths;
    int offset, rows, columns, first;
};
extern "C" __global__ void __launch_bounds__(256) part_norms(
    double2 *norms, const Part *table, const float *kept, u64 kept_stride, const int *order,
    int slot_rows) {
    __shared__ double shared[3][4][64];
    const Part t = table[blockIdx.y];
    const u64 example = blockIdx.x, replica = order[example / slot_rows];
    const int lane = threadIdx.x & 63, row0 = threadIdx.x >> 6, column = t.first + lane;
    const float *g = kept + example * kept_stride + t.offset + column;
    const float *v = t.used + replica * t.rows * t.columns + column;
    double sum = 0.0, dot = 0.0, square = 0.0;
    if (column < t.columns) {
        if (t.used) {
#pragma unroll 8
            for (int row = row0; row < t.rows; row += 4) {
                const double a = g[(u64)row * t.columns], b = v[(u64)row * t.columns];
                sum += a;
                dot += a * b;
                square += a * a;
            }
        } else {
#pragma unroll 8
            for (int row = row0; row < t.rows; row += 4) {
                const double a = g[(u64)row * t.columns];
                square += a * a;
            }
        }
    }
    shared[0][row0][lane] = sum;
    shared[1][row0][lane] = dot;
    shared[2][row0][lane] = square;
    __syncthreads();
    double total = 0.0, plain = 0.0;
    if (row0 == 0 && column < t.columns) {
        for (int i = 1; i < 4; ++i) {
            sum += shared[0][i][lane];
            dot += shared[1][i][lane];
            square += shared[2][i][lane];
        }
        total = square;
        if (t.used) {
            const double s = t.scales[replica * t.columns + column];
            const double projected = square - sum * sum / t.rows
                                     - (2.0 - t.lengths[replica * t.columns + column]) * dot * dot;
            total = s * s * fmax(projected, 0.0);
            plain = s * s * square;
        }
    }
    __syncthreads();
    if (row0 == 0) {
        shared[0][0][lane] = total;
        shared[1][0][lane] = plain;
    }
    __syncthreads();
    for (int half = 32; half > 0; half >>= 1) {
        if (threadIdx.x < half) {
            shared[0][0][threadIdx.x] += shared[0][0][threadIdx.x + half];
            shared[1][0][threadIdx.x] += shared[1][0][threadIdx.x + half];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0)
        norms[example * gridDim.y + blockIdx.y] = make_double2(shared[0][0][0], shared[1][0][0]);
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

// sums[replica][offset + i] (+)= sum over the slot's rows of factor times kept gradient. A row that
// is not there has factor 0 and may hold anything.
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
