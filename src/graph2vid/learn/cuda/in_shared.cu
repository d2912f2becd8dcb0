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
    // Where the w-th state of an ideal is, in bytes of numbers; -1: it has none.
    __device__ __forceinline__ int state(int ideal, int w) const {
        const int found = place[w] + ideal;
        return found < place[w + 1] ? found * (int)sizeof(real) : -1;
    }
};

#if SKIPS && GROUP
// What a state passes on that something can be waived for, and the minimum over all that it is entered from.
struct __align__(2 * sizeof(real)) Root {
    real start, value;
};
#endif

// The ideals of a thread; where there are more than threads, there are THREADS of these. Warps that have none are left out.
// Backward, the last of 32 warps takes the first ideals of the next THREADS: the first ones have most states.
#define EACH_IDEAL(i) for (int i = threadIdx.x; i < (ideals + 31 & ~31); i = (GROUP ? i ^ 31 * 32 : i) + THREADS)

#if GROUP == 0
// From the column before clip `first` to that after clip `last - 1`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) forward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Pack &pack = block.pack;
    const int ideals = pack.ideals, states = pack.place[WIDTH], told_size = ideals + 1, nobody = ideals * sizeof(real);
    const real scale = HARD ? 1 : 1.4426950408889634 / batch.gamma;
    real *kept = KEEP ? batch.table + batch.table_at[blockIdx.x] : nullptr;  // where the next column goes
    real *told = block.working;                            // [2][ideals + 1], then the roots
    real *column = told + ((2 * told_size + ROOT_COUNT + 3) & ~3);  // what is kept of this clip; with SKIPS, of its states alone
    const int column_size = SKIPS ? states + 3 & ~3 : pack.column;
    real *x = column + (KEEP ? column_size : 0);           // [states]
    const Rows rows(x + states, pack.place, ideals);
    __syncthreads();
#if SKIPS
    block.prepare_skips(batch, scale);
    real *const roots = told + 2 * told_size;
    const int job = pack.job_start[threadIdx.x / 32], job_end = pack.job_start[threadIdx.x / 32 + 1];
#endif
    const int last = block.last(batch);
    for (int s = threadIdx.x; s < states; s += blockDim.x) x[s] = batch.first > 0 ? at(batch.resumed, pack.link[s].y) : FAR;
    for (int i = threadIdx.x; i < ideals; i += blockDim.x)
        at(told, pack.own[i]) =
            batch.first > 0 ? at(batch.resumed, pack.value_slot[i]) : i == pack.empty ? (real)0 : FAR;
    if (threadIdx.x < 2) told[threadIdx.x * told_size + ideals] = FAR;  // of no ideal

    for (int begin = batch.first; begin < last; begin += CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
        block.stage(batch, begin, end, last, scale);
        if (begin > 0) {
            if (threadIdx.x < 32) {
                real low = INFINITE;
                for (int i = threadIdx.x; i < ideals; i += 32) low = least(told[i], low);
                for (int o = 16; o; o /= 2) low = least(__shfl_xor_sync(~0u, low, o), low);
                if (threadIdx.x == 0) {
                    block.shift[0] = low = low < FAR / 2 ? low : 0;
                    block.base[0] += low * (HARD ? 1 : batch.gamma * 0.6931471805599453);
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
#if SKIPS
            block.enter_roots(job, job_end, now, [&](int place, real value) {
                at(roots, place) = value;
                if (KEEP) at(kept + pack.column - 4 - (pack.roots + 3 & ~3), place) = value;
            });
            __syncthreads();
            // A place of a root is one among those of the first column that is told.
            const int ahead = (const char *)told - (const char *)now;
#endif
            EACH_IDEAL(i) for_states(rows.width[i / 32], [&](auto count) {
                constexpr int N = decltype(count)::states;
                const int own_at = i < ideals ? pack.own[i] : nobody;
                int state[N];
                int2 link[N];
                EACH_STATE(w, N) state[w] = rows.state(i, w);
                EACH_STATE(w, N) link[w] = state[w] < 0 ? make_int2(nobody, 0) : at(pack.link, 2 * state[w]);
                // All is read before the first is written: nothing has to wait.
                const real idle = cost[pack.steps] + at(now, own_at);
                real in[N], old[N], least_[N], low = idle;
#if SKIPS
                EACH_STATE(w, N) {
                    const int place = link[w].x & 0xffff;
                    in[w] = at(now, place > nobody ? place + ahead + (int)(told_size * sizeof(real)) : place);
                }
#else
                EACH_STATE(w, N) in[w] = at(now, link[w].x & 0xffff);
#endif
                EACH_STATE(w, N) old[w] = state[w] < 0 ? FAR : at(x, state[w]);
                EACH_STATE(w, N) least_[w] = at(cost, (unsigned)link[w].x >> 16);
                real both_[N], began[N];
                EACH_STATE(w, N) {
                    least_[w] += least(in[w], old[w]);
                    low = least(least_[w], low);
                    const real far = HARD ? (real)0 : exp2_(-fabs(in[w] - old[w]));
                    both_[w] = 1 + far;
                    if (SHARES) began[w] = copysign(far * inverse_(both_[w]), in[w] - old[w]);
                    if (state[w] >= 0) at(x, state[w]) = HARD ? least_[w] : least_[w] - log2_(both_[w]);
                }
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
#if KEEP
                if (i == threadIdx.x) {  // the column before has been copied
                    written();
                    other_barrier();
                }
#endif
                if (i >= ideals) return;
                at(next, own_at) = own;
#if SHARES
                const real inverse = inverse_(total);
                EACH_STATE(w, N)
                    if (state[w] >= 0) at(column, link[w].y) = both(signed_share(__saturatef(both_[w] * inverse)), began[w]);
                real *const of_ideal = SKIPS ? kept : column;
                at(of_ideal, pack.value_slot[i]) = left * inverse;
                if (SKIPS) at(of_ideal, pack.value_slot[i] + ideals * (int)sizeof(real)) = at(now, own_at);
#endif
            });
#if KEEP
            if (threadIdx.x >= (ideals + 31 & ~31)) {  // as those that have ideals did
                written();
                other_barrier();
            }
            complete_column();
#endif
            __syncthreads();
            if (KEEP) {
                write_column(kept, column, column_size);
                kept += pack.column;
            }
        }
    }
#if KEEP && BULK
    if (asks()) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
    const real *now = told + (last & 1) * told_size;
    if (batch.to_resume) {
        for (int s = threadIdx.x; s < states; s += blockDim.x) at(batch.to_resume, pack.link[s].y) = x[s];
        for (int i = threadIdx.x; i < ideals; i += blockDim.x) at(batch.to_resume, pack.value_slot[i]) = at(now, pack.own[i]);
    }
    if (threadIdx.x == 0) batch.base[block.start] = block.base[0];
#if SKIPS
    for (int i = threadIdx.x; i < ideals; i += blockDim.x) at((real *)now, pack.own[i]) += block.waived(pack.missing[i]);
    __syncthreads();
    block.end(batch, now, 0, last, scale);
#else
    if (threadIdx.x) return;
    const real value = at(now, pack.own[pack.full]);
    if (block.clips[0] <= last) block.write_cost(batch, 0, value, value < FAR / 2, scale);
#endif
}

#else
// From the gradients of the column after clip `last - 1` to those of the column before clip `first`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) backward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Pack &pack = block.pack;
    const int ideals = pack.ideals, states = pack.back_place[WIDTH], told_size = ideals + 1;
    const int nobody = ideals * sizeof(real);
    const int none = pack.sum_start[pack.sums], shown_size = none + 32 & ~31;
    const real *table = batch.table + batch.table_at[blockIdx.x];
    real *told = block.working;                          // [2][ideals + 1]: what is pulled
#if SKIPS
    Root *const roots = (Root *)(told + 2 * told_size);  // [roots + 1]: the last one is nobody's
    real *const begun = (real *)(block.back_arcs + 32 * pack.back_row_count);  // [states], in memory
    real *shown = told + ((2 * (told_size + pack.roots + 1) + 3) & ~3);
#else
    real *shown = told + ((2 * told_size + 3) & ~3);   // [shown_size]: the gradients of this clip
#endif
    real *grad = shown + shown_size;                     // [states]
    const int values = states + 3 & ~3;                  // where the ideals begin in a column
    const Rows rows(grad + states, pack.back_place, ideals);
    const Sum sum_(pack, threadIdx.x, 0, block.stride);
    __syncthreads();
#if SKIPS
    block.prepare_skips(batch, 1.4426950408889634 / batch.gamma);
    for (int s = threadIdx.x; s < states; s += blockDim.x) begun[s] = 0;
    int *const arc_rows = rows.width + (ideals + 31) / 32;
    for (int n = threadIdx.x; n <= (ideals + 31) / 32; n += blockDim.x) arc_rows[n] = pack.back_rows[n];
#endif
    const int last = block.last(batch);
    // What is beyond the video, chunk by chunk.
    for (int begin = last > batch.first ? last : batch.first, end; begin < batch.last; begin = end) {
        end = begin / CHUNK * CHUNK + CHUNK;
        block.write_gradients(batch, begin, end < batch.last ? end : batch.last);
    }
    if (batch.first >= last) return;
    real *carry = batch.carry ? batch.carry + batch.carry_at[blockIdx.x] : nullptr;
    const bool ends = last == block.clips[0], possible = batch.own_cost[batch.video[block.start]] < INFINITE;
    for (int n = threadIdx.x; n < shown_size; n += blockDim.x) shown[n] = 0;
    for (int s = threadIdx.x; s < states; s += blockDim.x) grad[s] = ends ? 0 : carry[s];
    for (int i = threadIdx.x; i < ideals; i += blockDim.x)
        at(told, pack.back_own[i]) = at(told + told_size, pack.back_own[i]) =
#if SKIPS
            ends ? at(block.ends(batch), pack.back_end[i]) : carry[values + i];
#else
            ends ? (real)(pack.back_lane[i] == pack.full && possible) : carry[values + i];
#endif
    if (threadIdx.x < 2) told[threadIdx.x * told_size + ideals] = 0;
    __syncthreads();

    const real *kept = table + (last - 1 - batch.first) * (long long)pack.column;
    for (int begin = (last - 1) / CHUNK * CHUNK; begin >= batch.first; begin -= CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
        for (int j = end - 1; j >= begin; --j, kept -= pack.column) {
            const real *to = told + (j & 1) * told_size;
            real *next = told + (1 - (j & 1)) * told_size;
#if __CUDA_ARCH__ >= 900
            if (threadIdx.x == 0 && j - 2 >= batch.first)  // nearer, some time before it is read
                asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(kept - 2 * (long long)pack.column),
                             "r"(pack.column * (int)sizeof(real)));
#endif
#if SKIPS
            for (int n = threadIdx.x; n < pack.roots; n += blockDim.x)
                roots[n].value = kept[pack.column - 4 - (pack.roots + 3 & ~3) + n];
#endif
            EACH_IDEAL(i) for_states(rows.width[i / 32], [&](auto count) {
                constexpr int N = decltype(count)::states;
                int state[N];
                real share[N], pull[N], g[N];
                unsigned link[N];
                EACH_STATE(w, N) state[w] = rows.state(i, w);
                EACH_STATE(w, N) share[w] = state[w] < 0 ? 0 : at(kept, state[w]);
                EACH_STATE(w, N) link[w] = state[w] < 0 ? nobody : at(pack.back_link, state[w]);
                const int own_at = i < ideals ? pack.back_own[i] : nobody;
                real passed = i < ideals ? at(to, own_at) * kept[values + i] : 0;
                EACH_STATE(w, N) pull[w] = at(to, link[w] & 0xfffc);
                EACH_STATE(w, N) g[w] = state[w] < 0 ? 0 : at(grad, state[w]);
                EACH_STATE(w, N) {
                    real of_ideal, began;
                    apart(share[w], of_ideal, began);
                    g[w] += pull[w] * whole_share(of_ideal);
                    const real start = g[w] * whole_share(began);
                    const bool is_root = SKIPS && link[w] & 1;
                    passed += is_root ? 0 : start;
                    if (state[w] < 0) continue;
#if SKIPS
                    atomicAdd(&at(begun, state[w]), start);  // nobody waits for it
                    if (is_root) at(roots, at(pack.back_root, state[w])).start = start;
#endif
                    at(grad, state[w]) = g[w] - start;
                    shown[link[w] >> 16] = STARTS ? start : g[w];
                }
                if (i < ideals) at(next, own_at) = passed;
            });
            __syncthreads();
#if SKIPS
            EACH_IDEAL(i) {
                // The thread is asked for its number here, since no register is left to keep it in.
                const Arc *arc = block.back_arcs + 32 * arc_rows[i / 32] + number_of_thread() % 32;
                const int count = arc_rows[i / 32 + 1] - arc_rows[i / 32], own_at = i < ideals ? pack.back_own[i] : nobody;
                const real from = i < ideals ? kept[values + ideals + i] : 0;
                real pull = 0;
                for (int n = 0; n < count; n += AHEAD) {
                    Arc out[AHEAD];
                    EACH_AHEAD(m) out[m] = n + m < count ? arc[32 * (n + m)] : Arc{FURTHEST, 0};
                    EACH_AHEAD(m) {
                        const Root root = at(roots, out[m].place);
                        pull += root.start * weight(from + out[m].cost - root.value);
                    }
                }
                if (i < ideals) at(next, own_at) += pull;
            }
#endif
            real *sums = block.costs + (j - begin) * block.stride;
            sum_.add_up(shown, sums);
            for (int first = blockDim.x; first < pack.sums * GROUP; first += blockDim.x)
                Sum(pack, first + threadIdx.x, 0, block.stride).add_up(shown, sums);
            __syncthreads();
        }
        block.write_gradients(batch, begin, end);
    }
#if SKIPS
    __syncthreads();
    for (int s = threadIdx.x; s < states; s += blockDim.x) shown[pack.back_link[s] >> 16] = begun[s];
    __syncthreads();
    block.write_skip_gradients(batch, last, shown, pack.sum_start);
#endif
    if (carry && batch.first > 0) {
        for (int s = threadIdx.x; s < states; s += blockDim.x) carry[s] = grad[s];
        for (int i = threadIdx.x; i < ideals; i += blockDim.x) carry[values + i] = at(told + told_size, pack.back_own[i]);
    }
}
#endif
