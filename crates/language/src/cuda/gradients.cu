// Gradients of decoders: norms, clipping, sums. Follows `kernels.cu`, which says how numbers lie.

// ---------------------------------------------------------------------------------------------
// Squared norms of the examples' gradients, in `gridDim.x` parts; one block of 256 for each part.
extern "C" __global__ void __launch_bounds__(256) square_parts(
    double *parts, const float *gradients, u64 size) {
    __shared__ double sums[256];
    const float *g = gradients + (u64)blockIdx.y * size;
    double sum = 0.0;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < size; i += (u64)gridDim.x * 256) {
        const double v = g[i];
        sum += v * v;
    }
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int half = 128; half > 0; half >>= 1) {
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) parts[(u64)blockIdx.y * gridDim.x + blockIdx.x] = sums[0];
}

// Norms, and min(1, C/norm) rounded down; a gradient that is not finite counts as nothing. `more`,
// where it is not null: the square of what the parts leave out, and what times `unit` is added to
// the norm because numbers are rounded after they are scaled.
extern "C" __global__ void clip_factors(
    float *factors, double *norms, const double *parts, const double2 *more, int examples, int count,
    double clip, double unit) {
    const int example = blockIdx.x * blockDim.x + threadIdx.x;
    if (example >= examples) return;
    double square = 0.0;
    for (int i = 0; i < count; ++i) square += parts[(size_t)example * count + i];
    if (more) square += more[example].x;
    // Rounding may leave less than nothing; what is no number stays none.
    const double norm = sqrt(square < 0.0 ? 0.0 : square) + (more ? unit * more[example].y : 0.0);
    norms[example] = norm;
    factors[example] = !isfinite(norm) ? 0.0f : norm <= clip ? 1.0f : __double2float_rd(clip / norm);
}

// sum (+)= the sum over the examples of factor x gradient, in f64.
extern "C" __global__ void clipped_sum(
    double *sum, const float *gradients, const float *factors, int examples, u64 size, int again) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < size; i += (u64)gridDim.x * blockDim.x) {
        double total = again ? sum[i] : 0.0;
        for (int example = 0; example < examples; ++example) {
            const float factor = factors[example];
            if (factor > 0.0f) total += (double)(factor * gradients[(u64)example * size + i]);
        }
        sum[i] = total;
    }
}

// ---------------------------------------------------------------------------------------------
// Ghosts: squared norms of gradients that are never formed, piece by piece. A partial is (sum, S, R)
// for each example, piece and part: the sum of products of inner products; S, the sum over places
// of |input||slope|, which bounds what rounding after scaling may change; R, the same for what is
// added without rounding. A piece's square is its sum and 2^-16 of (S + R)^2, which its terms are
// at most: they are sums in f32 that may cancel.
#define PARTIAL 3

__device__ __forceinline__ void leave_partial(double *out, double sum, double sizes, double rows) {
    __shared__ double sums[8][PARTIAL];
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    for (int step = 16; step > 0; step >>= 1) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, step);
    if (lane == 0) { sums[warp][0] = sum; sums[warp][1] = sizes; sums[warp][2] = rows; }
    __syncthreads();
    if (threadIdx.x >= PARTIAL) return;
    double total = 0.0;
    for (int i = 0; i < 8; ++i) total += sums[i][threadIdx.x];
    out[threadIdx.x] = total;
}

__device__ __forceinline__ double *partial_of(double *partials, int piece, int pieces) {
    return partials + (((size_t)blockIdx.y * pieces + piece) * gridDim.x + blockIdx.x) * PARTIAL;
}

// A linear map: inner products of an example's inputs, and of its slopes. One block of 256 for a
// part (x) of an example (y).
extern "C" __global__ void __launch_bounds__(256) ghost(
    double *partials, const float *inputs, const float *slopes, int piece, int pieces, int length) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const size_t first = (size_t)blockIdx.y * length * length;
    double sum = 0.0, sizes = 0.0;
    for (int s = 8 * blockIdx.x + warp; s < length; s += 8 * gridDim.x) {
        const float *a = inputs + first + (size_t)s * length, *b = slopes + first + (size_t)s * length;
        for (int t = lane; t < length; t += 32) sum += (double)a[t] * (double)b[t];
        sizes += sqrt((double)a[s] * (double)b[s]);
    }
    leave_partial(partial_of(partials, piece, pieces), sum, sizes, 0.0);
}

// A trained embedding that is the head too. For the places s of an example: residuals p_s (a row of
// the logits' gradient), states h_s, and x_s, the gradient of the embedded token. The example's
// gradient is sum_s p_s h_s' + sum_s e(token_s) x_s', and its squared norm
//   sum_st (p_s.p_t)(h_s.h_t) + [token_s = token_t] x_s.x_t + 2 p_t[token_s] x_s.h_t.
// The inner products are given.
extern "C" __global__ void __launch_bounds__(256) embedding_ghost(
    double *partials, const float *residual_products, const float *state_products,
    const float *row_products, const float *cross_products, const real *residuals,
    const u32 *tokens, int piece, int pieces, int length, int padded) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const size_t first = (size_t)blockIdx.y * length;
    double sum = 0.0, sizes = 0.0, rows = 0.0;
    for (int s = 8 * blockIdx.x + warp; s < length; s += 8 * gridDim.x) {
        const size_t base = (first + s) * length;
        const u32 token = tokens[first + s];
        for (int t = lane; t < length; t += 32) {
            const double residual = load(residuals + (first + t) * padded + token);
            sum += (double)residual_products[base + t] * (double)state_products[base + t];
            sum += 2.0 * residual * (double)cross_products[base + t];
            if (tokens[first + t] == token) sum += (double)row_products[base + t];
        }
        sizes += sqrt((double)residual_products[base + s] * (double)state_products[base + s]);
        rows += sqrt((double)row_products[base + s]);
    }
    leave_partial(partial_of(partials, piece, pieces), sum, sizes, rows);
}

// Numbers that are kept as they are: `size` of each example, `stride` from one to the next.
extern "C" __global__ void __launch_bounds__(256) whole_ghost(
    double *partials, const float *numbers, u64 size, u64 stride, int piece, int pieces) {
    const float *own = numbers + blockIdx.y * stride;
    double sum = 0.0;
    for (u64 i = (u64)blockIdx.x * 256 + threadIdx.x; i < size; i += (u64)gridDim.x * 256)
        sum += (double)own[i] * (double)own[i];
    leave_partial(partial_of(partials, piece, pieces), sum, 0.0, 0.0);
}

// found = (square of all pieces, size by which rounding after scaling moves them). One warp for an
// example.
extern "C" __global__ void ghost_total(
    double2 *found, const double *partials, int examples, int pieces, int parts) {
    const int example = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (example >= examples) return;
    double square = 0.0, rounding = 0.0;
    for (int piece = lane; piece < pieces; piece += 32) {
        const double *p = partials + ((size_t)example * pieces + piece) * parts * PARTIAL;
        double sum = 0.0, sizes = 0.0, rows = 0.0;
        for (int i = 0; i < parts; ++i) {
            sum += p[PARTIAL * i];
            sizes += p[PARTIAL * i + 1];
            rows += p[PARTIAL * i + 2];
        }
        square += sum + (sizes + rows) * (sizes + rows) / 65536.0;
        rounding += sizes * sizes;
    }
    for (int step = 16; step > 0; step >>= 1) {
        square += __shfl_xor_sync(0xFFFFFFFFu, square, step);
        rounding += __shfl_xor_sync(0xFFFFFFFFu, rounding, step);
    }
    if (lane == 0) found[example] = make_double2(square, sqrt(rounding));
}

// Numbers as f32.
extern "C" __global__ void widen(float *out, const real *x, u64 length) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < length; i += (u64)gridDim.x * blockDim.x)
        out[i] = load(x + i);
}

// ---------------------------------------------------------------------------------------------
// Vectors of a whole model: every example's own gradient is formed, of `size` numbers in all.

__device__ __forceinline__ float four_rows(float value) {
    __shared__ float part[4][64];
    __syncthreads();
    part[threadIdx.x >> 6][threadIdx.x & 63] = value;
    __syncthreads();
    const int column = threadIdx.x & 63;
    return (part[0][column] + part[1][column]) + (part[2][column] + part[3][column]);
}

// Of a bias: slopes summed over an example's places. 64 columns (x) of an example (y).
extern "C" __global__ void __launch_bounds__(256) bias_gradients(
    float *gradients, u64 size, int at, const real *slopes, int leading, int length, int columns) {
    const int column = 64 * blockIdx.x + (threadIdx.x & 63);
    const size_t first = (size_t)blockIdx.y * length;
    float sum = 0.0f;
    if (column < columns)
#pragma unroll 8
        for (int t = threadIdx.x >> 6; t < length; t += 4)
            sum += load(slopes + (first + t) * leading + column);
    sum = four_rows(sum);
    if (threadIdx.x < 64 && column < columns) gradients[blockIdx.y * size + at + column] = sum;
}

// Of a norm's weight and shift (unless `shift_at` is negative).
extern "C" __global__ void __launch_bounds__(256) norm_gradients(
    float *gradients, u64 size, int weight_at, int shift_at, const float *x, const float2 *moments,
    const real *slopes, int length, int width) {
    const int column = 64 * blockIdx.x + (threadIdx.x & 63);
    const size_t first = (size_t)blockIdx.y * length;
    float weight = 0.0f, shift = 0.0f;
    if (column < width)
#pragma unroll 4
        for (int t = threadIdx.x >> 6; t < length; t += 4) {
            const float2 m = moments[first + t];
            const float d = load(slopes + (first + t) * width + column);
            weight += d * ((x[(first + t) * width + column] - m.x) * m.y);
            shift += d;
        }
    weight = four_rows(weight);
    shift = four_rows(shift);
    if (threadIdx.x >= 64 || column >= width) return;
    gradients[blockIdx.y * size + weight_at + column] = weight;
    if (shift_at >= 0) gradients[blockIdx.y * size + shift_at + column] = shift;
}

// Of the positions: dx itself. out[place] += the sum over the examples of factor x dx.
extern "C" __global__ void position_rows(
    float *out, const float *dx, const float *factors, int examples, int length, int width,
    int context) {
    const u64 all = (u64)min(length, context) * width;
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < all; i += (u64)gridDim.x * blockDim.x) {
        double total = out[i];
        for (int example = 0; example < examples; ++example) {
            const float factor = factors[example];
            if (factor > 0.0f) total += (double)(factor * dx[(u64)example * length * width + i]);
        }
        out[i] = (float)total;
    }
}

// Trained numbers to where products and kernels read them: (to, from, count, whether as `real`).
struct Part { u64 to, from, count, stored; };
extern "C" __global__ void put_parts(const Part *table, const float *numbers) {
    const Part part = table[blockIdx.y];
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < part.count; i += (u64)gridDim.x * blockDim.x) {
        const float x = numbers[part.from + i];
        if (part.stored) store((real *)part.to + i, x);
        else ((float *)part.to)[i] = x;
    }
}

// Trained numbers of adapters to the rows of a matrix, which are `leading` apart: (to, from, count,
// columns, leading).
struct Rows { u64 to, from, count, columns, leading; };
extern "C" __global__ void put_rows(const Rows *table, const float *numbers) {
    const Rows part = table[blockIdx.y];
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < part.count; i += (u64)gridDim.x * blockDim.x)
        store((real *)part.to + (i / part.columns) * part.leading + i % part.columns, numbers[part.from + i]);
}

// A matrix into rows that are `leading` apart.
extern "C" __global__ void lay_rows(real *out, const real *in, u64 count, int columns, int leading) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < count; i += (u64)gridDim.x * blockDim.x)
        out[(i / columns) * leading + i % columns] = in[i];
}

// Sums of vectors to their places among all trained numbers: (to, from, count, 0).
extern "C" __global__ void take_parts(float *out, const Part *table, const double *sums) {
    const Part part = table[blockIdx.y];
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < part.count; i += (u64)gridDim.x * blockDim.x)
        out[part.to + i] = (float)sums[part.from + i];
}

// `scaled` times their example's factor; one that counts as nothing loses the `other` operand, too.
// One block for a row.
extern "C" __global__ void scale_rows(
    real *scaled, real *other, const float *factors, int length, int width, int other_width) {
    const size_t row = blockIdx.x;
    const float factor = factors[row / length];
    if (factor == 1.0f) return;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        real *own = scaled + row * width + i;
        store(own, factor > 0.0f ? factor * load(own) : 0.0f);
    }
    if (factor > 0.0f) return;
    for (int i = threadIdx.x; i < other_width; i += blockDim.x)
        store(other + row * other_width + i, 0.0f);
}

// sum[token] += the sum over its places, in order, of factor x dx; one warp for a token, whose places
// are those from starts[number] to starts[number + 1].
extern "C" __global__ void embedding_rows(
    float *sum, const float *dx, const float *factors, const int *tokens, const int *starts,
    const int *places, int count, int length, int width) {
    const int number = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (number >= count) return;
    float *out = sum + (size_t)tokens[number] * width;
    for (int i = lane; i < width; i += 32) {
        double total = out[i];
        for (int at = starts[number]; at < starts[number + 1]; ++at) {
            const float factor = factors[places[at] / length];
            if (factor > 0.0f) total += (double)(factor * dx[(size_t)places[at] * width + i]);
        }
        out[i] = (float)total;
    }
}

extern "C" __global__ void clear(float *out, u64 length) {
    for (u64 i = (u64)blockIdx.x * blockDim.x + threadIdx.x; i < length; i += (u64)gridDim.x * blockDim.x)
        out[i] = 0.0f;
}

