// Costs of grounding, and their gradients, of procedures with more states than fit into registers: hard or softmin, each step
// one segment of clips, in float. A block has one video, whose states are in shared memory. Compiled after packs.cuh.

// What both directions have in shared memory of the procedure.
struct Rows {
    int *const place;  // [WIDTH + 1]: as in Pack
    int *const width;  // [ideals / 32, rounded up]: the most states of the ideals that a warp takes together
    __device__ __forceinline__ Rows(void *at, const int *places, int ideals) : place((int *)at), width(place + WIDTH + 1) {
        for (int w = threadIdx.x; w <= WIDTH; w += blockDim.x) place[w] = places[w];
        for (int n = threadIdx.x; n * 32 < ideals; n += blockDim.x) {
            width[n] = 0;  // ideals are sorted by their number of states
            while (width[n] < WIDTH && n * 32 < places[width[n] + 1] - places[width[n]]) ++width[n];
        }
    }
    __device__ __forceinline__ bool has(int ideal, int w) const { return ideal < place[w + 1] - place[w]; }
};

// The ideals of a thread; warps that have none are left out.
#define EACH_IDEAL(i) for (int i = threadIdx.x; i - (int)threadIdx.x % 32 < ideals; i += blockDim.x)

#if GROUP == 0
// From the column before clip `first` to that after clip `last - 1`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) forward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Pack &pack = block.pack;
    const int ideals = pack.ideals, states = pack.place[WIDTH], told_size = ideals + 1;
    const real scale = HARD ? 1 : 1.4426950408889634 / batch.gamma;
    real *kept = KEEP ? batch.table + batch.table_at[blockIdx.x] : nullptr;  // where the next column goes
    real *told = block.working;                            // [2][ideals + 1]
    real *column = told + ((2 * told_size + 3) & ~3);    // what is kept of this clip
    real *x = column + (KEEP ? pack.column : 0);           // [states]
    const Rows rows(x + states, pack.place, ideals);
    __syncthreads();
    const int last = block.last(batch);
    for (int s = threadIdx.x; s < states; s += blockDim.x) x[s] = batch.first > 0 ? batch.resumed[pack.link[s].y] : FAR;
    for (int i = threadIdx.x; i < ideals; i += blockDim.x)
        told[pack.own[i]] = batch.first > 0 ? batch.resumed[pack.value_slot[i]] : i == pack.empty ? (real)0 : FAR;
    if (threadIdx.x < 2) told[threadIdx.x * told_size + ideals] = FAR;  // of no ideal

    for (int begin = batch.first; begin < last; begin += CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
        block.stage(batch, begin, end, scale);
        if (begin > 0) {
            if (threadIdx.x < 32) {
                real low = INFINITE;
                for (int i = threadIdx.x; i < ideals; i += 32) low = least(told[i], low);
                for (int o = 16; o; o /= 2) low = least(__shfl_xor_sync(~0u, low, o), low);
                if (threadIdx.x == 0) {
                    block.shift[0] = low = low < FAR / 2 ? low : 0;
                    block.base[0] += (double)low / scale;
                    if (KEEP) batch.shift[block.shift_at(batch, 0, begin)] = low;
                }
            }
            __syncthreads();
            for (int s = threadIdx.x; s < states; s += blockDim.x) x[s] -= block.shift[0];
            for (int i = threadIdx.x; i < ideals; i += blockDim.x) told[i] -= block.shift[0];
            __syncthreads();
        }
        for (int j = begin; j < end; ++j) {
            const real *cost = block.costs + (j - begin) * block.stride;
            const real *now = told + (j & 1) * told_size;
            real *next = told + (1 - (j & 1)) * told_size;
            EACH_IDEAL(i) for_states(rows.width[i / 32], [&](auto count) {
                constexpr int N = decltype(count)::states;
                const int own_at = i < ideals ? pack.own[i] : ideals;
                int2 link[N];
                EACH_STATE(w, N) link[w] = rows.has(i, w) ? pack.link[rows.place[w] + i] : make_int2(ideals, 0);
                const real idle = cost[pack.steps] + now[own_at];
                real both_[N], least_[N], began[N], after[N], low = idle;
                EACH_STATE(w, N) {
                    const real old = rows.has(i, w) ? x[rows.place[w] + i] : FAR, in = now[link[w].x & 0xffff];
                    least_[w] = cost[(unsigned)link[w].x >> 16] + least(in, old);
                    low = least(least_[w], low);
                    const real far = HARD ? (real)0 : exp2_(-fabs(in - old));
                    both_[w] = 1 + far;
                    if (SHARES) began[w] = copysign(far * inverse_(both_[w]), in - old);
                    after[w] = HARD ? least_[w] : least_[w] - log2_(both_[w]);
                }
                EACH_STATE(w, N) if (rows.has(i, w)) x[rows.place[w] + i] = after[w];
                real own = low;
#if !HARD
                real total = exp2_(low - idle);
                const real left = total;
                EACH_STATE(w, N) {
                    both_[w] *= exp2_(low - least_[w]);
                    total += both_[w];
                }
                own -= log2_(total);
#endif
                if (i >= ideals) return;
                next[own_at] = own;
#if SHARES
                const real inverse = inverse_(total);
                EACH_STATE(w, N)
                    if (rows.has(i, w)) column[link[w].y] = both(signed_share(both_[w] * inverse), began[w]);
                column[pack.value_slot[i]] = left * inverse;
#endif
            });
            if (KEEP) complete_column();
            __syncthreads();
            if (KEEP) {
                write_column(kept, column, pack.column);
                kept += pack.column;
                written<0>();
                __syncthreads();
            }
        }
    }
#if KEEP && BULK
    if (asks()) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
    const real *now = told + (last & 1) * told_size;
    if (batch.to_resume) {
        for (int s = threadIdx.x; s < states; s += blockDim.x) batch.to_resume[pack.link[s].y] = x[s];
        for (int i = threadIdx.x; i < ideals; i += blockDim.x) batch.to_resume[pack.value_slot[i]] = now[pack.own[i]];
    }
    if (threadIdx.x) return;
    const double base = batch.base[block.start] = block.base[0];
    const real cost = now[pack.own[pack.full]];
    if (block.clips[0] <= last)
        batch.cost[batch.video[block.start]] =
            cost < FAR / 2 || base != base ? (real)(base + (double)cost / scale) : INFINITE;
}

#else
// From the gradients of the column after clip `last - 1` to those of the column before clip `first`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) backward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Pack &pack = block.pack;
    const int ideals = pack.ideals, states = pack.back_place[WIDTH], told_size = ideals + 1;
    const int none = pack.sum_start[pack.sums], shown_size = none + 32 & ~31;
    const real *table = batch.table + batch.table_at[blockIdx.x];
    real *told = block.working;                          // [2][ideals + 1]: what is pulled
    real *shown = told + ((2 * told_size + 3) & ~3);   // [shown_size]: the gradients of this clip
    real *grad = shown + shown_size;                     // [states]
    const Rows rows(grad + states, pack.back_place, ideals);
    const Sum sum_(pack, threadIdx.x, 0, block.stride);
    __syncthreads();
    const int last = block.last(batch);
    // What is beyond the video, chunk by chunk.
    for (int begin = last > batch.first ? last : batch.first, end; begin < batch.last; begin = end) {
        end = begin / CHUNK * CHUNK + CHUNK;
        block.write_gradients(batch, begin, end < batch.last ? end : batch.last);
    }
    if (batch.first >= last) return;
    real *carry = batch.carry ? batch.carry + batch.carry_at[blockIdx.x] : nullptr;
    const bool ends = last == block.clips[0], possible = batch.cost[batch.video[block.start]] < INFINITE;
    for (int n = threadIdx.x; n < shown_size; n += blockDim.x) shown[n] = 0;
    for (int s = threadIdx.x; s < states; s += blockDim.x) grad[s] = ends ? 0 : carry[s];
    for (int i = threadIdx.x; i < ideals; i += blockDim.x)
        told[pack.back_own[i]] = told[told_size + pack.back_own[i]] =
            ends ? (real)(pack.back_lane[i] == pack.full && possible) : carry[states + i];
    if (threadIdx.x < 2) told[threadIdx.x * told_size + ideals] = 0;
    __syncthreads();

    for (int begin = (last - 1) / CHUNK * CHUNK; begin >= batch.first; begin -= CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
        for (int j = end - 1; j >= begin; --j) {
            const real *kept = table + (j - batch.first) * (long long)pack.column;
            const real *to = told + (j & 1) * told_size;
            real *next = told + (1 - (j & 1)) * told_size;
#if __CUDA_ARCH__ >= 900
            if (threadIdx.x == 0 && j - 2 >= batch.first)  // nearer, some time before it is read
                asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(kept - 2 * (long long)pack.column),
                             "r"(pack.column * (int)sizeof(real)));
#endif
            EACH_IDEAL(i) for_states(rows.width[i / 32], [&](auto count) {
                constexpr int N = decltype(count)::states;
                real share[N];
                unsigned link[N];
                EACH_STATE(w, N) share[w] = rows.has(i, w) ? kept[rows.place[w] + i] : 0;
                EACH_STATE(w, N) link[w] = rows.has(i, w) ? pack.back_link[rows.place[w] + i] : none << 16 | ideals;
                const int own_at = i < ideals ? pack.back_own[i] : ideals;
                real passed = i < ideals ? to[own_at] * kept[states + i] : 0, before[N];
                EACH_STATE(w, N) {
                    real of_ideal, began;
                    apart(share[w], of_ideal, began);
                    const real old = rows.has(i, w) ? grad[rows.place[w] + i] : 0;
                    const real g = old + to[link[w] & 0xffff] * whole_share(of_ideal), start = g * whole_share(began);
                    before[w] = g - start;
                    passed += start;
                    share[w] = STARTS ? start : g;
                }
                EACH_STATE(w, N) if (rows.has(i, w)) {
                    grad[rows.place[w] + i] = before[w];
                    shown[link[w] >> 16] = share[w];
                }
                if (i < ideals) next[own_at] = passed;
            });
            __syncthreads();
            real *sums = block.costs + (j - begin) * block.stride;
            sum_.add_up(shown, sums);
            for (int first = blockDim.x; first < pack.sums * GROUP; first += blockDim.x)
                Sum(pack, first + threadIdx.x, 0, block.stride).add_up(shown, sums);
            __syncthreads();
        }
        block.write_gradients(batch, begin, end);
    }
    if (carry && batch.first > 0) {
        for (int s = threadIdx.x; s < states; s += blockDim.x) carry[s] = grad[s];
        for (int i = threadIdx.x; i < ideals; i += blockDim.x) carry[states + i] = told[told_size + pack.back_own[i]];
    }
}
#endif
