// Every example's gradients of adapters, for bf16. Follows `attention.cu`, whose operands these are.
#ifdef TILES
// Places at a time, outputs of a block, numbers of the other operand at most, and what rows are apart in
// shared memory: eight of them begin in different banks.
#define STEP 32
#define SPAN 128
#define MOST 64
#define LEFT_PITCH (SPAN + 8)
#define RIGHT_PITCH (MOST + 8)

// out[o, r] = the sum over an example's places t of left[t, o] right[t, r], for `width` numbers o and
// `ranks` numbers r, a multiple of 8. Of each example (y): out is `size` numbers from one to the next, and
// o and r are out_left and out_right apart. There are as many such pairs side by side as there are blocks
// (x) for; each begins `width` numbers of left, `ranks` numbers of right and width x ranks numbers of out
// after the one before.
extern "C" __global__ void __launch_bounds__(256) place_products(
    float *out, u64 size, const real *left, const real *right, int left_leading, int right_leading,
    int out_left, int out_right, int width, int ranks, int length) {
    __shared__ __align__(16) u16 room[2][STEP * (LEFT_PITCH + RIGHT_PITCH)];
    const int blocks = (width + SPAN - 1) / SPAN, pair_number = blockIdx.x / blocks;
    const int from = SPAN * (blockIdx.x % blocks), warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    left += (size_t)blockIdx.y * length * left_leading + (size_t)pair_number * width + from;
    right += (size_t)blockIdx.y * length * right_leading + (size_t)pair_number * ranks;
    out += blockIdx.y * size + (size_t)pair_number * width * ranks;
    const int pieces = (ranks + 15) / 16;
    // What is beyond the matrices is zero.
    const auto next = [&](int start, int now) {
        u16 *own = room[now];
#pragma unroll
        for (u32 turn = 0; turn < STEP * SPAN / 8 / 256; ++turn) {
            const u32 i = threadIdx.x + 256 * turn, row = i / (SPAN / 8), column = 8 * (i % (SPAN / 8));
            const bool there = start + (int)row < length && from + (int)column < width;
            const u16 *at = left + (there ? (start + row) * (u32)left_leading + column : 0);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :: "r"(shared_place(own + row * LEFT_PITCH + column)), "l"(at), "r"(there ? 16 : 0)
                         : "memory");
        }
        const u32 row = threadIdx.x / (MOST / 8), column = 8 * (threadIdx.x % (MOST / 8));
        if ((int)column < 16 * pieces) {
            const bool there = start + (int)row < length && (int)column < ranks;
            const u16 *at = right + (there ? (start + row) * (u32)right_leading + column : 0);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                         :: "r"(shared_place(own + STEP * LEFT_PITCH + row * RIGHT_PITCH + column)), "l"(at),
                         "r"(there ? 16 : 0) : "memory");
        }
    };
    float sum[MOST / 8][4];
#pragma unroll
    for (int n = 0; n < MOST / 8; ++n) sum[n][0] = sum[n][1] = sum[n][2] = sum[n][3] = 0.0f;
    next(0, 0);
    fetched();
    for (int start = 0, now = 0; start < length; start += STEP, now = 1 - now) {
        if (start + STEP < length) next(start + STEP, 1 - now);
        fetched();
        arrived();
        const u16 *own = room[now], *other = own + STEP * LEFT_PITCH;
#pragma unroll
        for (int t = 0; t < STEP; t += 16) {
            u32 a[4];
            transposed(a, own + (t + (lane & 7) + (lane >> 4) * 8) * LEFT_PITCH + 16 * warp + ((lane >> 3) & 1) * 8);
#pragma unroll
            for (int n = 0; n < MOST / 16; ++n) {
                if (n >= pieces) break;
                u32 b[4];
                transposed(b, other + (t + (lane & 15)) * RIGHT_PITCH + 16 * n + (lane >> 4) * 8);
                multiply(sum[2 * n], a, b[0], b[1]);
                multiply(sum[2 * n + 1], a, b[2], b[3]);
            }
        }
        __syncthreads();
    }
#pragma unroll
    for (int n = 0; n < MOST / 8; ++n) {
        if (8 * n >= ranks) break;
#pragma unroll
        for (int i = 0; i < 4; ++i) {
            const int o = 16 * warp + lane / 4 + 8 * (i / 2), r = 8 * n + 2 * (lane & 3) + (i & 1);
            if (from + o < width) out[(size_t)(from + o) * out_left + (size_t)r * out_right] = sum[n][i];
        }
    }
}
#endif
