// Attention that never forms its matrix (Dao et al. 2022), for bf16 and heads of HEAD numbers: 16,
// 32, 48 or 64. Follows `kernels.cu`. Blocks of 128 threads work on tiles of 64 places; each of
// their four warps has 16 rows, multiplied by `mma.sync`. Products round their operands to bf16;
// scores, sums and the softmax are f32. Going back, scores are computed again from queries, keys
// and the logarithms of the softmax' sums, once for the queries' gradients and once for those of
// keys and values: nothing is added in an order that depends on timing.
//
// A block is one tile of one head; the tiles of a head are neighbours, so that what they share is in the
// second cache.
#if defined(BF16) && __CUDA_ARCH__ >= 800
#define TILES
__device__ __forceinline__ u32 shared_place(const void *p) { return (u32)__cvta_generic_to_shared(p); }

__device__ __forceinline__ void matrices(u32 r[4], const u16 *at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_place(at)) : "memory");
}
__device__ __forceinline__ void transposed(u32 r[4], const u16 *at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(shared_place(at)) : "memory");
}
// c += a b: 16 x 16 by 16 x 8.
__device__ __forceinline__ void multiply(float c[4], const u32 a[4], u32 b0, u32 b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
// Two results of 8 columns each as the left operand of the next product.
__device__ __forceinline__ void operand(u32 a[4], const float s[4], const float t[4]) {
    a[0] = pair(s[0], s[1]);
    a[1] = pair(s[2], s[3]);
    a[2] = pair(t[0], t[1]);
    a[3] = pair(t[2], t[3]);
}
__device__ __forceinline__ void fetched() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Until all but the last group are there.
__device__ __forceinline__ void arrived() {
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
}
#endif

#ifdef HEAD
#define TILE 64
// Rows of a tile lie so that eight of them begin in different banks.
#define PITCH (HEAD + 8)
#define LOG2E 1.4426950408889634f

// Where a lane reads: 16 rows as a left operand, or rows of a right operand that is not turned
// round; rows of a right operand that is.
__device__ __forceinline__ const u16 *of_rows(const u16 *tile, int row, int column) {
    const int lane = threadIdx.x & 31;
    return tile + (row + (lane & 15)) * PITCH + column + (lane >> 4) * 8;
}
__device__ __forceinline__ const u16 *of_columns(const u16 *tile, int row, int column) {
    const int lane = threadIdx.x & 31;
    return tile + (row + (lane & 7) + (lane >> 4) * 8) * PITCH + column + ((lane >> 3) & 1) * 8;
}

// 64 rows of a matrix, `stride` apart, from row `from` on; those from `length` on become zeros.
// The number of turns is known when this is compiled, so that addresses are sums.
__device__ __forceinline__ void fetch(u16 *tile, const u16 *matrix, u32 stride, u32 from, u32 length) {
    const u32 pieces = HEAD / 8;
#pragma unroll
    for (u32 turn = 0; turn < TILE * pieces / 128; ++turn) {
        const u32 i = threadIdx.x + 128 * turn, row = i / pieces, column = 8 * (i % pieces);
        const bool there = from + row < length;
        const u16 *at = matrix + (there ? (from + row) * stride : 0) + column;
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                     :: "r"(shared_place(tile + row * PITCH + column)), "l"(at), "r"(there ? 16 : 0)
                     : "memory");
    }
}
__device__ __forceinline__ void fetch_number(float *to, const float *from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;"
                 :: "r"(shared_place(to)), "l"(from), "r"(there ? 4 : 0) : "memory");
}
// Where a head's numbers of a place are: heads first, or in rows of `columns` numbers.
__device__ __forceinline__ size_t spot(
    int sequence, int head, int heads, int place, int length, int columns) {
    if (columns) return ((size_t)sequence * length + place) * columns + (size_t)head * HEAD;
    return (((size_t)sequence * heads + head) * length + place) * HEAD;
}

// The device's own power of 2: its operands here are at most a few bits from 0 where it matters.
__device__ __forceinline__ float power2(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// out (rows of all heads, `out_columns` apart) = softmax(scale q.k) v over the places up to each own;
// logs: the logarithm to base 2 of each softmax' sum, with its scale. `columns` as for `spot`, of
// queries, keys and values.
extern "C" __global__ void __launch_bounds__(128, 4) attention(
    real *out, float *logs, const real *queries, const real *keys, const real *values, int columns,
    int out_columns, int length, int heads, int key_heads, float scale) {
    __shared__ __align__(16) u16 room[5][TILE * PITCH];
    const int tiles = (length + TILE - 1) / TILE, own_head = blockIdx.x / tiles;
    const int tile = tiles - 1 - blockIdx.x % tiles, from = TILE * tile;
    const int sequence = own_head / heads, head = own_head % heads;
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const size_t own = spot(sequence, head / (heads / key_heads), key_heads, 0, length, columns);
    const int stride = columns ? columns : HEAD;
    const real *k = keys + own, *v = values + own;
    fetch(room[0], queries + spot(sequence, head, heads, 0, length, columns), stride, from, length);
    fetch(room[1], k, stride, 0, length);
    fetch(room[3], v, stride, 0, length);
    fetched();
    u32 query[HEAD / 16][4];
    float o[HEAD / 8][4], top[2], sum[2];
#pragma unroll
    for (int n = 0; n < HEAD / 8; ++n) o[n][0] = o[n][1] = o[n][2] = o[n][3] = 0.0f;
    top[0] = top[1] = -__int_as_float(0x7f800000);
    sum[0] = sum[1] = 0.0f;
    const float factor = scale * LOG2E;
    for (int block = 0; block <= tile; ++block) {
        const int now = block & 1;
        if (block < tile) {
            fetch(room[2 - now], k, stride, TILE * (block + 1), length);
            fetch(room[4 - now], v, stride, TILE * (block + 1), length);
        }
        fetched();
        arrived();
        if (block == 0) {
#pragma unroll
            for (int d = 0; d < HEAD / 16; ++d) matrices(query[d], of_rows(room[0], 16 * warp, 16 * d));
        }
        const u16 *key = room[1 + now], *value = room[3 + now];
        float s[TILE / 8][4];
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n) s[n][0] = s[n][1] = s[n][2] = s[n][3] = 0.0f;
#pragma unroll
        for (int d = 0; d < HEAD / 16; ++d) {
#pragma unroll
            for (int n = 0; n < TILE / 16; ++n) {
                u32 b[4];
                matrices(b, of_columns(key, 16 * n, 16 * d));
                multiply(s[2 * n], query[d], b[0], b[1]);
                multiply(s[2 * n + 1], query[d], b[2], b[3]);
            }
        }
        if (block == tile) {
#pragma unroll
            for (int n = 0; n < TILE / 8; ++n) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int row = 16 * warp + lane / 4 + 8 * (i / 2);
                    if (8 * n + 2 * (lane & 3) + (i & 1) > row) s[n][i] = -__int_as_float(0x7f800000);
                }
            }
        }
        float high[2] = {top[0], top[1]};
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n) {
            high[0] = fmaxf(high[0], fmaxf(s[n][0], s[n][1]));
            high[1] = fmaxf(high[1], fmaxf(s[n][2], s[n][3]));
        }
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            high[r] = fmaxf(high[r], __shfl_xor_sync(0xFFFFFFFFu, high[r], 1));
            high[r] = fmaxf(high[r], __shfl_xor_sync(0xFFFFFFFFu, high[r], 2));
            const float less = power2((top[r] - high[r]) * factor);
            sum[r] *= less;
            top[r] = high[r];
            high[r] *= factor;
#pragma unroll
            for (int n = 0; n < HEAD / 8; ++n) { o[n][2 * r] *= less; o[n][2 * r + 1] *= less; }
        }
#pragma unroll
        for (int n = 0; n < TILE / 8; ++n) {
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                s[n][i] = power2(s[n][i] * factor - high[i / 2]);
                sum[i / 2] += s[n][i];
            }
        }
#pragma unroll
        for (int j = 0; j < TILE / 16; ++j) {
            u32 a[4];
            operand(a, s[2 * j], s[2 * j + 1]);
#pragma unroll
            for (int n = 0; n < HEAD / 16; ++n) {
                u32 b[4];
                transposed(b, of_rows(value, 16 * j, 16 * n));
                multiply(o[2 * n], a, b[0], b[1]);
                multiply(o[2 * n + 1], a, b[2], b[3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        sum[r] += __shfl_xor_sync(0xFFFFFFFFu, sum[r], 1);
        sum[r] += __shfl_xor_sync(0xFFFFFFFFu, sum[r], 2);
        const int place = from + 16 * warp + lane / 4 + 8 * r;
        if (place >= length) continue;
        if ((lane & 3) == 0) logs[(size_t)own_head * length + place] = top[r] * factor + log2f(sum[r]);
        const float share = 1.0f / sum[r];
        real *to = out + spot(sequence, head, heads, place, length, out_columns) + 2 * (lane & 3);
#pragma unroll
        for (int n = 0; n < HEAD / 8; ++n)
            *(u32 *)(to + 8 * n) = pair(o[n][2 * r] * share, o[n][2 * r + 1] * share);
    }
}

// Gradients of queries, and the inner product of each output with its gradient (deltas), which
// `attention_keys` reads. d_out and out are rows of all heads; columns as for `spot`: of queries, keys
// and values, and of their gradients.
extern "C" __global__ void __launch_bounds__(128) attention_queries(
    real *d_queries, float *deltas, const real *d_out, const real *out, const float *logs,
    const real *queries, const real *keys, const real *values, int columns, int out_columns,
    int d_columns, int length, int heads, int key_heads, float scale) {
    __shared__ __align__(16) u16 room[4][TILE * PITCH];
    __shared__ float delta[TILE];
    const int tiles = (length + TILE - 1) / TILE, own_head = blockIdx.x / tiles;
    const int tile = tiles - 1 - blockIdx.x % tiles, from = TILE * tile;
    const int sequence = own_head / heads, head = own_head % heads;
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const size_t own = spot(sequence, head / (heads / key_heads), key_heads, 0, length, columns);
    const int stride = columns ? columns : HEAD;
    const real *k = keys + own, *v = values + own;
    const size_t rows = spot(sequence, head, heads, 0, length, heads * HEAD);
    fetch(room[1], queries + spot(sequence, head, heads, 0, length, columns), stride, from, length);
    fetch(room[3], d_out + rows, heads * HEAD, from, length);
    fetched();
    fetch(room[0], k, stride, 0, length);
    fetch(room[2], v, stride, 0, length);
    fetched();
    arrived();
    u32 query[HEAD / 16][4], slope[HEAD / 16][4];
#pragma unroll
    for (int d = 0; d < HEAD / 16; ++d) {
        matrices(query[d], of_rows(room[1], 16 * warp, 16 * d));
        matrices(slope[d], of_rows(room[3], 16 * warp, 16 * d));
    }
    {
        // Two threads for a row.
        const int row = threadIdx.x / 2, half = (threadIdx.x & 1) * (HEAD / 2);
        const bool there = from + row < length;
        const real *o = out + spot(sequence, head, heads, there ? from + row : 0, length, out_columns) + half;
        float sum = 0.0f;
#pragma unroll
        for (int i = 0; i < HEAD / 2; i += 4) {
            const float4 a = load4(o + i), b = load4(room[3] + row * PITCH + half + i);
            sum += (a.x * b.x + a.y * b.y) + (a.z * b.z + a.w * b.w);
        }
        sum += __shfl_xor_sync(0xFFFFFFFFu, sum, 1);
        if (half == 0) {
            delta[row] = there ? sum : 0.0f;
            if (there) deltas[(size_t)own_head * length + from + row] = sum;
        }
    }
    __syncthreads();
    float log[2], less[2], dq[HEAD / 8][4];
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int row = 16 * warp + lane / 4 + 8 * r;
        less[r] = delta[row];
        log[r] = from + row < length ? logs[(size_t)own_head * length + from + row] : 0.0f;
    }
#pragma unroll
    for (int n = 0; n < HEAD / 8; ++n) dq[n][0] = dq[n][1] = dq[n][2] = dq[n][3] = 0.0f;
    const float factor = scale * LOG2E;
    // One tile of keys; `edge`: on the diagonal, where places do not see all of the others. Elsewhere
    // nothing branches, so that its steps overlap.
    const auto back = [&](const bool edge, const u16 *key, const u16 *value) __attribute__((always_inline)) {
#pragma unroll
        for (int j = 0; j < TILE / 16; ++j) {
            if (edge && j > warp) break;
            float s[2][4], p[2][4];
#pragma unroll
            for (int i = 0; i < 4; ++i) s[0][i] = s[1][i] = p[0][i] = p[1][i] = 0.0f;
#pragma unroll
            for (int d = 0; d < HEAD / 16; ++d) {
                u32 b[4];
                matrices(b, of_columns(key, 16 * j, 16 * d));
                multiply(s[0], query[d], b[0], b[1]);
                multiply(s[1], query[d], b[2], b[3]);
                matrices(b, of_columns(value, 16 * j, 16 * d));
                multiply(p[0], slope[d], b[0], b[1]);
                multiply(p[1], slope[d], b[2], b[3]);
            }
#pragma unroll
            for (int e = 0; e < 2; ++e) {
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int row = 16 * warp + lane / 4 + 8 * (i / 2);
                    const int column = 16 * j + 8 * e + 2 * (lane & 3) + (i & 1);
                    const float share = power2(s[e][i] * factor - log[i / 2]);
                    const bool seen = !edge || column <= row;
                    s[e][i] = seen ? share * (p[e][i] - less[i / 2]) : 0.0f;
                }
            }
            u32 a[4];
            operand(a, s[0], s[1]);
#pragma unroll
            for (int n = 0; n < HEAD / 16; ++n) {
                u32 b[4];
                transposed(b, of_rows(key, 16 * j, 16 * n));
                multiply(dq[2 * n], a, b[0], b[1]);
                multiply(dq[2 * n + 1], a, b[2], b[3]);
            }
        }
    };
    for (int block = 0; block <= tile; ++block) {
        const int now = block & 1;
        if (block < tile) {
            fetch(room[1 - now], k, stride, TILE * (block + 1), length);
            fetch(room[3 - now], v, stride, TILE * (block + 1), length);
        }
        fetched();
        arrived();
        const u16 *key = room[now], *value = room[2 + now];
        if (block == tile) back(true, key, value);
        else back(false, key, value);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int place = from + 16 * warp + lane / 4 + 8 * r;
        if (place >= length) continue;
        real *to = d_queries + spot(sequence, head, heads, place, length, d_columns) + 2 * (lane & 3);
#pragma unroll
        for (int n = 0; n < HEAD / 8; ++n)
            *(u32 *)(to + 8 * n) = pair(dq[n][2 * r] * scale, dq[n][2 * r + 1] * scale);
    }
}

// Gradients of keys and values: a tile of keys, over all queries that see it, of all heads that share it.
extern "C" __global__ void __launch_bounds__(128, 3) attention_keys(
    real *d_keys, real *d_values, const real *d_out, const float *logs, const float *deltas,
    const real *queries, const real *keys, const real *values, int columns, int d_columns, int length,
    int heads, int key_heads, float scale) {
    __shared__ __align__(16) u16 room[4][TILE * PITCH];
    __shared__ __align__(8) float log[2][TILE], delta[2][TILE];
    const int count = (length + TILE - 1) / TILE, own_head = blockIdx.x / count;
    const int tile = blockIdx.x % count, from = TILE * tile;
    const int sequence = own_head / key_heads, shared = own_head % key_heads;
    const int group = heads / key_heads, tiles = count - tile, all = group * tiles;
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    const int stride = columns ? columns : HEAD;
    // The next tile of queries, into the rooms of `now`.
    int head = shared * group, ahead = tile;
    const auto next = [&](int now) {
        const int start = TILE * ahead;
        const size_t flat = ((size_t)sequence * heads + head) * length;
        fetch(room[now], queries + spot(sequence, head, heads, 0, length, columns), stride, start, length);
        fetch(room[2 + now], d_out + spot(sequence, head, heads, 0, length, heads * HEAD),
              heads * HEAD, start, length);
        const int row = threadIdx.x & (TILE - 1);
        const bool there = start + row < length;
        const size_t at = flat + (there ? start + row : 0);
        if (threadIdx.x < TILE) fetch_number(&log[now][row], logs + at, there);
        else fetch_number(&delta[now][row], deltas + at, there);
        if (++ahead == count) { ahead = tile; ++head; }
    };
    const size_t own = spot(sequence, shared, key_heads, 0, length, columns);
    fetch(room[1], keys + own, stride, from, length);
    fetch(room[3], values + own, stride, from, length);
    fetched();
    next(0);
    fetched();
    arrived();
    u32 key[HEAD / 16][4], value[HEAD / 16][4];
#pragma unroll
    for (int d = 0; d < HEAD / 16; ++d) {
        matrices(key[d], of_rows(room[1], 16 * warp, 16 * d));
        matrices(value[d], of_rows(room[3], 16 * warp, 16 * d));
    }
    __syncthreads();
    float dk[HEAD / 8][4], dv[HEAD / 8][4];
#pragma unroll
    for (int n = 0; n < HEAD / 8; ++n) {
#pragma unroll
        for (int i = 0; i < 4; ++i) dk[n][i] = dv[n][i] = 0.0f;
    }
    const float factor = scale * LOG2E;
    // One tile of queries; `edge` as above.
    const auto back = [&](const bool edge, int now) __attribute__((always_inline)) {
        const u16 *query = room[now], *slope = room[2 + now];
#pragma unroll
        for (int j = 0; j < TILE / 16; ++j) {
            if (edge && j < warp) continue;
            float s[2][4], p[2][4];
#pragma unroll
            for (int i = 0; i < 4; ++i) s[0][i] = s[1][i] = p[0][i] = p[1][i] = 0.0f;
#pragma unroll
            for (int d = 0; d < HEAD / 16; ++d) {
                u32 b[4];
                matrices(b, of_columns(query, 16 * j, 16 * d));
                multiply(s[0], key[d], b[0], b[1]);
                multiply(s[1], key[d], b[2], b[3]);
                matrices(b, of_columns(slope, 16 * j, 16 * d));
                multiply(p[0], value[d], b[0], b[1]);
                multiply(p[1], value[d], b[2], b[3]);
            }
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int first_column = 16 * j + 8 * e + 2 * (lane & 3);
                const float2 logs_there = *(const float2 *)&log[now][first_column];
                const float2 less = *(const float2 *)&delta[now][first_column];
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const int row = 16 * warp + lane / 4 + 8 * (i / 2), column = first_column + (i & 1);
                    const bool seen = !edge || row <= column;
                    const float own_log = i & 1 ? logs_there.y : logs_there.x;
                    const float share = seen ? power2(s[e][i] * factor - own_log) : 0.0f;
                    p[e][i] = seen ? share * (p[e][i] - (i & 1 ? less.y : less.x)) : 0.0f;
                    s[e][i] = share;
                }
            }
            u32 a[4], c[4];
            operand(a, s[0], s[1]);
            operand(c, p[0], p[1]);
#pragma unroll
            for (int n = 0; n < HEAD / 16; ++n) {
                u32 b[4];
                transposed(b, of_rows(slope, 16 * j, 16 * n));
                multiply(dv[2 * n], a, b[0], b[1]);
                multiply(dv[2 * n + 1], a, b[2], b[3]);
                transposed(b, of_rows(query, 16 * j, 16 * n));
                multiply(dk[2 * n], c, b[0], b[1]);
                multiply(dk[2 * n + 1], c, b[2], b[3]);
            }
        }
    };
    for (int number = 0; number < all; ++number) {
        const int now = number & 1;
        // On the diagonal, queries before a warp's keys do not see them.
        const bool diagonal = ahead == tile + 1 || tiles == 1;
        if (number + 1 < all) next(1 - now);
        fetched();
        arrived();
        if (diagonal) back(true, now);
        else back(false, now);
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int place = from + 16 * warp + lane / 4 + 8 * r;
        if (place >= length) continue;
        const size_t at = spot(sequence, shared, key_heads, place, length, d_columns) + 2 * (lane & 3);
#pragma unroll
        for (int n = 0; n < HEAD / 8; ++n) {
            *(u32 *)(d_keys + at + 8 * n) = pair(dk[n][2 * r] * scale, dk[n][2 * r + 1] * scale);
            *(u32 *)(d_values + at + 8 * n) = pair(dv[n][2 * r], dv[n][2 * r + 1]);
        }
    }
}
#endif
