// Picked states, logits and losses. Follows `kernels.cu`, which says how numbers lie.

// out[i] = x[places[i]]: states whose logits are wanted.
extern "C" __global__ void gather_rows(real *out, const real *x, const int *places, int rows, int width) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const real *in = x + (size_t)places[row] * width;
    for (int i = 4 * lane; i < width; i += 128) store4(out + (size_t)row * width + i, load4(in + i));
}

// out[row] = x[from[row]], or zeros where from[row] is negative.
extern "C" __global__ void spread_rows(real *out, const real *x, const int *from, int rows, int width) {
    const int row = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x & 31;
    if (row >= rows) return;
    const int source = from[row];
    for (int i = 4 * lane; i < width; i += 128) {
        const float4 zero = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        store4(out + (size_t)row * width + i,
               source < 0 ? zero : load4(x + (size_t)source * width + i));
    }
}

// Cross-entropy of each row's token; one block of 256 threads for a row of `padded` logits, of which
// `vocabulary` count. gradient = shares[row] (softmax - one-hot), 0 in the padding; it may be the
// logits' own memory. top: whether the token is among the most likely ones.
extern "C" __global__ void __launch_bounds__(256) cross_entropy(
    real *gradient, float *losses, unsigned char *top, const float *logits, const u32 *tokens,
    const float *shares, int vocabulary, int padded, int wants) {
    __shared__ float part[8];
    const size_t row = blockIdx.x;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const float *z = logits + row * padded;
    const int token = (int)tokens[row];
    const float own = z[token];
    const int whole = vocabulary & ~3;
    float largest = -__int_as_float(0x7f800000);
    for (int c = 4 * thread; c < whole; c += 1024) {
        const float4 v = load4(z + c);
        largest = fmaxf(largest, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    if (whole + thread < vocabulary) largest = fmaxf(largest, z[whole + thread]);
    largest = warp_max(largest);
    if (lane == 0) part[warp] = largest;
    __syncthreads();
    for (int i = 0; i < 8; ++i) largest = fmaxf(largest, part[i]);
    __syncthreads();
    float sum = 0.0f;
    for (int c = 4 * thread; c < whole; c += 1024) {
        const float4 v = load4(z + c);
        sum += (expf(v.x - largest) + expf(v.y - largest)) + (expf(v.z - largest) + expf(v.w - largest));
    }
    if (whole + thread < vocabulary) sum += expf(z[whole + thread] - largest);
    sum = warp_sum(sum);
    if (lane == 0) part[warp] = sum;
    __syncthreads();
    sum = 0.0f;
    for (int i = 0; i < 8; ++i) sum += part[i];
    if (thread == 0) {
        losses[row] = logf(sum) + (largest - own);
        top[row] = own == largest;
    }
    if (!wants) return;
    const float share = shares[row], factor = share / sum;
    real *g = gradient + row * padded;
    for (int c = 4 * thread; c < padded; c += 1024) {
        const float4 v = load4(z + c);
        float4 r;
        r.x = c < vocabulary ? expf(v.x - largest) * factor : 0.0f;
        r.y = c + 1 < vocabulary ? expf(v.y - largest) * factor : 0.0f;
        r.z = c + 2 < vocabulary ? expf(v.z - largest) * factor : 0.0f;
        r.w = c + 3 < vocabulary ? expf(v.w - largest) * factor : 0.0f;
        if (token == c) r.x -= share;
        if (token == c + 1) r.y -= share;
        if (token == c + 2) r.z -= share;
        if (token == c + 3) r.w -= share;
        store4(g + c, r);
    }
}

#ifdef BF16
// The same for rows that fit into shared memory in 16 bits, so that logits are read once: blocks of 512
// threads, two on a processor, one of which reads while the other writes. What is held is e^(z - r), r
// being the largest of a warp's 512 numbers. Its rounding is one of the gradient's two: the token's own
// gradient, where p - 1 may cancel, is formed from its logit instead.
#define BATCH 4
#define BATCHES 16
extern "C" __global__ void __launch_bounds__(512, 2) cross_entropy_held(
    real *gradient, float *losses, unsigned char *top, const float *logits, const u32 *tokens,
    const float *shares, int vocabulary, int padded, int wants) {
    extern __shared__ uint2 held[];
    __shared__ float part[2][16], highs[BATCHES][16];
    const size_t row = blockIdx.x;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31, pieces = padded / 4;
    const float *z = logits + row * padded;
    const int token = (int)tokens[row];
    const float own = z[token], none = -__int_as_float(0x7f800000);
    float largest = none, sum = 0.0f;
    for (int from = 0, batch = 0; from < pieces; from += BATCH * 512, ++batch) {
        float4 v[BATCH];
        float high = none;
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            const int c = from + 512 * j + thread;
            v[j] = c < pieces ? load4(z + 4 * c) : make_float4(none, none, none, none);
            if (4 * c + 3 >= vocabulary) {
                if (4 * c >= vocabulary) v[j].x = none;
                if (4 * c + 1 >= vocabulary) v[j].y = none;
                if (4 * c + 2 >= vocabulary) v[j].z = none;
                v[j].w = none;
            }
            high = fmaxf(high, fmaxf(fmaxf(v[j].x, v[j].y), fmaxf(v[j].z, v[j].w)));
        }
        // Finite, so that a batch of padding is 0.
        high = fmaxf(warp_max(high), -3.0e38f);
        if (lane == 0) highs[batch][warp] = high;
        float own_sum = 0.0f;
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            const int c = from + 512 * j + thread;
            const float4 e = make_float4(
                power(v[j].x - high), power(v[j].y - high), power(v[j].z - high), power(v[j].w - high));
            own_sum += sum4(e);
            if (c < pieces) held[c] = make_uint2(pair(e.x, e.y), pair(e.z, e.w));
        }
        if (high > largest) {
            sum *= power(largest - high);
            largest = high;
        }
        sum += own_sum * power(high - largest);
    }
    sum = warp_sum(sum);
    if (lane == 0) { part[0][warp] = largest; part[1][warp] = sum; }
    __syncthreads();
    largest = warp_max(part[0][lane & 15]);
    sum = 0.0f;
#pragma unroll
    for (int i = 0; i < 16; ++i) sum += part[1][i] * power(part[0][i] - largest);
    if (thread == 0) {
        losses[row] = logf(sum) + (largest - own);
        top[row] = own == largest;
    }
    if (!wants) return;
    const float share = shares[row], factor = share / sum;
    const float at_token = share * (power(own - largest) / sum - 1.0f);
    real *g = gradient + row * padded;
    for (int from = 0, batch = 0; from < pieces; from += BATCH * 512, ++batch) {
        const float own_factor = factor * power(highs[batch][warp] - largest);
#pragma unroll
        for (int j = 0; j < BATCH; ++j) {
            const int c = from + 512 * j + thread;
            if (c >= pieces) break;
            const float4 e = load4((const real *)(held + c));
            float4 r = make_float4(e.x * own_factor, e.y * own_factor, e.z * own_factor, e.w * own_factor);
            if (token / 4 == c) {
                const int at = token & 3;
                if (at == 0) r.x = at_token;
                else if (at == 1) r.y = at_token;
                else if (at == 2) r.z = at_token;
                else r.w = at_token;
            }
            store4(g + 4 * c, r);
        }
    }
}
#else
// The same for rows that fit into shared memory, which is filled once: blocks of 1024 threads.
extern "C" __global__ void __launch_bounds__(1024) cross_entropy_held(
    real *gradient, float *losses, unsigned char *top, const float *logits, const u32 *tokens,
    const float *shares, int vocabulary, int padded, int wants) {
    extern __shared__ float4 held[];
    __shared__ float part[2][32];
    const size_t row = blockIdx.x;
    const int thread = threadIdx.x, warp = thread / 32, lane = thread & 31;
    const float *z = logits + row * padded;
    const int token = (int)tokens[row];
    const float own = z[token], none = -__int_as_float(0x7f800000);
    float largest = none;
#pragma unroll 4
    for (int c = thread; c < padded / 4; c += 1024) {
        float4 v = load4(z + 4 * c);
        if (4 * c + 3 >= vocabulary) {
            if (4 * c >= vocabulary) v.x = none;
            if (4 * c + 1 >= vocabulary) v.y = none;
            if (4 * c + 2 >= vocabulary) v.z = none;
            v.w = none;
        }
        held[c] = v;
        largest = fmaxf(largest, fmaxf(fmaxf(v.x, v.y), fmaxf(v.z, v.w)));
    }
    largest = warp_max(largest);
    if (lane == 0) part[0][warp] = largest;
    __syncthreads();
    largest = warp_max(part[0][lane]);
    float sum = 0.0f;
#pragma unroll 4
    for (int c = thread; c < padded / 4; c += 1024) {
        float4 v = held[c];
        v = make_float4(power(v.x - largest), power(v.y - largest), power(v.z - largest), power(v.w - largest));
        held[c] = v;
        sum += sum4(v);
    }
    sum = warp_sum(sum);
    if (lane == 0) part[1][warp] = sum;
    __syncthreads();
    sum = warp_sum(part[1][lane]);
    if (thread == 0) {
        losses[row] = logf(sum) + (largest - own);
        top[row] = own == largest;
    }
    if (!wants) return;
    const float share = shares[row], factor = share / sum;
    real *g = gradient + row * padded;
#pragma unroll 4
    for (int c = thread; c < padded / 4; c += 1024) {
        float4 r = held[c];
        r = make_float4(r.x * factor, r.y * factor, r.z * factor, r.w * factor);
        if (token / 4 == c) {
            const int at = token & 3;
            if (at == 0) r.x -= share;
            else if (at == 1) r.y -= share;
            else if (at == 2) r.z -= share;
            else r.w -= share;
        }
        store4(g + 4 * c, r);
    }
}
#endif
