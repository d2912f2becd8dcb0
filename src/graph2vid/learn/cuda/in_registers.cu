// Costs of grounding, and their gradients, of procedures whose states fit into registers. A thread, a lane, has ROWS ideals of
// the pack; with SKIPS, one. Compiled after packs.cuh.

#define EACH_ROW(r) _Pragma("unroll") for (int r = 0; r < ROWS; ++r)

__device__ __forceinline__ int widest_of(int count) { return __reduce_max_sync(~0u, count); }

// Two values: the smaller one, and how much each of them counts.
struct Pair {
    real low, gap, minor;  // minor: the share of the larger one
    __device__ __forceinline__ Pair(real a, real b) : low(least(a, b)), gap(a - b) {
        const real far = exp2_(-fabs(gap));
        minor = far * inverse_(1 + far);
    }
    __device__ __forceinline__ real first() const { return gap > 0 ? minor : 1 - minor; }
    __device__ __forceinline__ real second() const { return gap > 0 ? 1 - minor : minor; }
    __device__ __forceinline__ real mean() const { return low + fabs(gap) * minor; }
};

__device__ __forceinline__ real minimum(real a, real b) {
#if HARD
    return least(a, b);
#elif SMOOTH
    return Pair(a, b).mean();
#else
    return least(a, b) - log2_(1 + exp2_(-fabs(a - b)));
#endif
}

// How a mean changes with one of its members, a, of this share.
__device__ __forceinline__ real slope(real share, real a, real mean) { return share * (1 - (a - mean) * LN2); }

#if SKIPS
// Where the roots are in a column, in numbers.
__device__ __forceinline__ int roots_at(const Pack &pack) { return pack.column - 4 - (TOLD * pack.roots + 3 & ~3); }
#endif

#if GROUP == 0
// From the column before clip `first` to that after clip `last - 1`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) forward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Pack &pack = block.pack;
    const int ideals = block.ideals, told_each = ideals + 1 + ROOTS, told_size = TOLD * told_each;
    const real scale = HARD ? 1 : 1.4426950408889634 / batch.gamma;
    real *table = KEEP ? batch.table + batch.table_at[blockIdx.x] : nullptr;
    real *told = block.working;  // two of them, for even clips and for odd ones
    real *column = block.working + ((2 * told_size + 3) & ~3);  // STAGES of them
    const int column_end = (pack.column - 4) * sizeof(real);
    __syncthreads();
#if SKIPS
    block.prepare_arcs(batch, scale);
    const int warp = __reduce_max_sync(~0u, threadIdx.x / 32), column_roots = roots_at(pack);
    const int job_begin = warp * 32 < pack.lanes ? pack.job_start[warp] : 0;
    const int job_end = warp * 32 < pack.lanes ? pack.job_start[warp + 1] : 0;
    const int4 first_job = job_begin < job_end ? pack.job[job_begin] : make_int4(0, 0, 0, 0);
    const int2 first_path = warp < pack.paths ? pack.path[warp] : make_int2(0, 0);
    bool enters_path = false;  // some state of the warp
#endif
    const int last = block.last(batch);

    real x[ROWS][WIDTH], own[ROWS], mean_[ROWS];
    unsigned enter[ROWS][WIDTH], label[ROWS][WIDTH], slot[ROWS][WIDTH], value_slot[ROWS], drop_at[ROWS], own_at[ROWS];  // in bytes
    unsigned mean_slot[ROWS];
    int video[ROWS], until[ROWS], widest[ROWS];
    bool empty[ROWS], full[ROWS];
    if (threadIdx.x < 2 * TOLD) told[threadIdx.x * told_each + ideals] = FAR;
    // Of the first column too, what belongs to no one is a number: lanes that have fewer states than others read it.
    if (KEEP && !SHARES && threadIdx.x < 4) table[pack.column - 4 + threadIdx.x] = FAR;
    EACH_ROW(r) {
        const int lane = r * blockDim.x + threadIdx.x;
        const int index = lane < pack.lanes ? pack.lane[lane] : -1;
        own_at[r] = index < 0 ? ideals * sizeof(real) : pack.own[lane];
        video[r] = index < 0 ? 0 : index / pack.ideals;
        empty[r] = index == video[r] * pack.ideals + pack.empty;
        drop_at[r] = (video[r] * block.labels + pack.steps) * sizeof(real);
        full[r] = index == video[r] * pack.ideals + pack.full;
        until[r] = index < 0 || video[r] >= block.videos ? 0 : block.clips[video[r]];
        value_slot[r] = index < 0 ? column_end : pack.slot[WIDTH * pack.lanes + lane];
        mean_slot[r] = value_slot[r] + (index < 0 ? 0 : ideals * sizeof(real));
        int count = 0;
        EACH_STATE(w, WIDTH) {
            const int n = w * pack.lanes + lane;
            slot[r][w] = index < 0 ? column_end : pack.slot[n];
            enter[r][w] = index < 0 ? ideals * sizeof(real) : pack.enter[n];
#if SKIPS
            enters_path |= enter[r][w] - (ideals + 1) * sizeof(real) < pack.chains * sizeof(real);
#endif
            label[r][w] = index < 0 ? 0 : pack.label[n];
            x[r][w] = FAR;
            if (slot[r][w] == column_end || until[r] == 0) continue;
            count = w + 1;
            if (batch.first > 0) x[r][w] = at(batch.resumed, slot[r][w]);
            if (KEEP && !SHARES) at(table, slot[r][w]) = x[r][w];
        }
        widest[r] = widest_of(count);
        mean_[r] = own[r] = empty[r] ? (real)0 : FAR;
        if (until[r]) {
            if (batch.first > 0) {
                own[r] = at(batch.resumed, value_slot[r]);
                if (SMOOTH) mean_[r] = at(batch.resumed, mean_slot[r]);
            }
            if (KEEP && !SHARES) {
                at(table, value_slot[r]) = own[r];
                if (SMOOTH) at(table, mean_slot[r]) = mean_[r];
            }
            at(told, own_at[r]) = SMOOTH && !FLAT ? mean_[r] : own[r];
            if (FLAT) at(told + told_each, own_at[r]) = mean_[r];
        }
    }
#if SKIPS
    enters_path = __any_sync(~0u, enters_path);
#endif

    real *kept = table + (SHARES ? 0 : pack.column);  // where the next column goes
    for (int begin = batch.first; begin < last; begin += CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
        block.stage(batch, begin, end, last, scale);
        if (begin > 0) {
            for (int v = threadIdx.x / 32; v < block.videos; v += blockDim.x / 32) {
                real low = INFINITE;
                for (int i = threadIdx.x % 32; i < pack.ideals; i += 32) low = least(told[v * pack.ideals + i], low);
                for (int o = 16; o; o /= 2) low = least(__shfl_xor_sync(~0u, low, o), low);
                if (threadIdx.x % 32) continue;
                block.shift[v] = low = low < FAR / 2 ? low : 0;
                block.base[v] += low * (HARD ? 1 : batch.gamma * 0.6931471805599453);
                if (KEEP) batch.shift[block.shift_at(batch, v, begin)] = low;
            }
            __syncthreads();
            EACH_ROW(r) if (until[r]) {
                const real lost = block.shift[video[r]];
                own[r] -= lost;
                mean_[r] -= lost;
                EACH_STATE(w, WIDTH) x[r][w] -= lost;
                at(told, own_at[r]) -= lost;
                if (FLAT) at(told + told_each, own_at[r]) -= lost;
            }
            __syncthreads();
        }
        const real *cost = block.costs, *now = told + (begin & 1) * told_size;
        real *next = told + (1 - (begin & 1)) * told_size;
        for (int j = begin; j < end; ++j, cost += block.stride) {
            real *after = column + (j & STAGES - 1) * pack.column;
#if SKIPS
            const auto tell = [&](int place, real value, real mean) {
                real *const roots = (real *)now + ideals + 1, *const kept_ = after + column_roots;
                at(roots, place) = value;
                if (FLAT) at(roots + told_each, place) = mean;
                if (KEEP) at(kept_, place) = SHARES && !(value < FAR / 2) ? -FAR : value;
                if (KEEP && FLAT) at(kept_ + pack.roots, place) = mean;
            };
            block.follow_paths(warp, first_path, now, told_each, tell);
            // A warp that enters nothing but wide roots of its own does not wait for paths.
            if (enters_path) asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory");
            else asm volatile("bar.arrive 1, %0;" ::"r"(blockDim.x) : "memory");
            for (int n = job_begin; n < job_end; ++n)
                block.enter_wide(n == job_begin ? first_job : pack.job[n], now, told_each, tell);
            if (job_begin < job_end) __syncwarp();
#endif
            EACH_ROW(r) if (ALONE || until[r]) {
                if (ALONE || j < until[r]) for_states(widest[r], [&](auto count) {
                    constexpr int N = decltype(count)::states;
                    const real drop = at(cost, drop_at[r]);
                    const real rest = SMOOTH && !FLAT ? mean_[r] : own[r];
                    const real idle = CONTIGUOUS || empty[r] ? drop + rest : FAR;
                    real low = idle;
#if CONTIGUOUS && SMOOTHING == 1
                    real both_[N], least_[N], began[N];
                    EACH_STATE(w, N) {
                        const real old = x[r][w], in = at(now, enter[r][w]), gap = in - old;
                        const real far = exp2_(-fabs(gap));
                        both_[w] = 1 + far;
                        if (SHARES) began[w] = copysign(far * inverse_(both_[w]), gap);
                        least_[w] = at(cost, label[r][w]) + least(in, old);
                        low = least(least_[w], low);
                        x[r][w] = least_[w] - log2_(both_[w]);
                    }
                    real total = exp2_(low - idle);
                    const real left = total;
                    EACH_STATE(w, N) {
                        both_[w] *= exp2_(low - least_[w]);
                        total += both_[w];
                    }
                    own[r] = low - log2_(total);
#if SHARES
                    const real inverse = inverse_(total);
                    EACH_STATE(w, N) at(after, slot[r][w]) = both(signed_share(both_[w] * inverse), began[w]);
                    at(after, value_slot[r]) = left * inverse;
                    if (SKIPS) at(after, mean_slot[r]) = rest;
#endif
#else
                    EACH_STATE(w, N) {
                        const real old = x[r][w], in = at(now, enter[r][w]);
#if FLAT
                        const Pair pair(in, old);
                        const real in_mean = at(now + told_each, enter[r][w]);
                        real value = at(cost, label[r][w]) + pair.first() * in_mean + pair.second() * old;
#else
                        real value = at(cost, label[r][w]) + minimum(in, old);
#endif
                        if (!CONTIGUOUS) value = minimum(value, drop + old);
                        x[r][w] = value;
                        low = least(value, low);
                    }
                    own[r] = mean_[r] = low;
#if !HARD
                    real total = exp2_(low - idle), moment = total * (idle - low);
                    EACH_STATE(w, N) {
                        const real above = x[r][w] - low, share = exp2_(-above);
                        total += share;
                        if (SMOOTH) moment += share * above;
                    }
                    own[r] = low - log2_(total);
                    if (SMOOTH) mean_[r] = low + moment * inverse_(total);
#endif
#endif
                    if (KEEP && !SHARES) {
                        EACH_STATE(w, N) at(after, slot[r][w]) = x[r][w];
                        at(after, value_slot[r]) = own[r];
                        if (SMOOTH) at(after, mean_slot[r]) = mean_[r];
                    }
                });
                at(next, own_at[r]) = SMOOTH && !FLAT ? mean_[r] : own[r];
                if (FLAT) at(next + told_each, own_at[r]) = mean_[r];
            }
            // Half of the ring goes to the table at a time, when what was in the other half has left it.
            constexpr int half = STAGES / 2;
            const bool full_ = KEEP && (j % half == half - 1 || j + 1 == last);
            if (full_) {
                complete_column();
                written();
            }
            __syncthreads();
            if (full_) {
                const int columns = (j % half + 1) * pack.column;
                write_column(kept, after + pack.column - columns, columns);
                kept += columns;
            }
            real *other = (real *)now;
            now = next;
            next = other;
        }
    }
#if KEEP && BULK
    if (asks()) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
    if (batch.to_resume) {
        EACH_ROW(r) if (until[r]) {
            EACH_STATE(w, WIDTH) if (slot[r][w] < column_end) at(batch.to_resume, slot[r][w]) = x[r][w];
            at(batch.to_resume, value_slot[r]) = own[r];
            if (SMOOTH) at(batch.to_resume, mean_slot[r]) = mean_[r];
        }
    }
    if (threadIdx.x < block.videos) batch.base[block.start + threadIdx.x] = block.base[threadIdx.x];
#if SKIPS
    if (until[0]) {  // what is never shown is waived
        const real rest = block.waived(pack.missing[threadIdx.x] | (unsigned long long)video[0] << 56);
        at(told, own_at[0]) = own[0] + rest;
        if (FLAT) at(told + told_each, own_at[0]) = mean_[0] + rest;
    }
    __syncthreads();
    block.end(batch, told, told_each, last, scale);
#else
    EACH_ROW(r) if (full[r] && until[r] && until[r] <= last) {
        const double base = block.base[video[r]];
        const real cost = SMOOTH ? mean_[r] : own[r];
        batch.cost[batch.video[block.start + video[r]]] =
            cost < FAR / 2 || base != base ? (real)(base + (double)cost / scale) : INFINITE;
    }
#endif
}

#else
// What the states that end in an ideal read of it.
struct __align__(SMOOTH ? 4 * sizeof(real) : SHARES ? sizeof(real) : 2 * sizeof(real)) Told {
    real pull;
#if !SHARES
    real value;
#endif
#if SMOOTH
    real pull_mean, mean;
#endif
};

// Copies a column from the table ahead of its use, by all threads, in pieces of 16 bytes.
__device__ __forceinline__ void fetch(real *to, const real *from, int numbers) {
    constexpr int numbers_ = WIDTH * (SKIPS ? 1 + TOLD : 1) + PARTS, each = 16 / sizeof(real);
    constexpr int most = (ROWS * numbers_ + each - 1) / each + SKIPS;  // pieces of a thread
    _Pragma("unroll") for (int n = 0; n < most; ++n) {
        const int m = (n * blockDim.x + threadIdx.x) * each;
        if (m >= numbers) continue;
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to + m)), "l"(from + m) : "memory");
#else
        *(int4 *)(to + m) = *(const int4 *)(from + m);
#endif
    }
}
// The end of what was fetched for one clip.
__device__ __forceinline__ void fetched() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}
// Before a barrier, after which all is there but what was fetched for the last STAGES - 2 clips.
__device__ __forceinline__ void await() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
#endif
}

#if SKIPS
// What a root passes on to all that it is entered from, and what their values are compared with (SHARES: a column has it).
struct __align__(FLAT ? 4 * sizeof(real) : SHARES ? sizeof(real) : 2 * sizeof(real)) Passed {
    real part;
#if !SHARES
    real all;
#endif
#if FLAT
    real chosen;
#endif
};
#endif

// From the gradients of the column after clip `last - 1` to those of the column before clip `first`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) backward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Pack &pack = block.pack;
    const int ideals = block.ideals, none = pack.sum_start[pack.sums];
    const int shown_spaced = (none + 32 & ~31) + 32 / TOGETHER;  // no two clips in one bank
    // The threads that have least to do add gradients up.
    const int item = blockDim.x - 1 - threadIdx.x ^ 31, items = pack.sums * TOGETHER * GROUP;
    const Sum sum_(pack, item, shown_spaced, block.stride);
    const real scale = 1.4426950408889634 / batch.gamma;
    const real *table = batch.table + batch.table_at[blockIdx.x];
    const int column_end = (pack.column - 4) * sizeof(real);
    real *ring = block.working;                          // [STAGES][pack.column]
    Told *told = (Told *)(ring + STAGES * pack.column);  // [2][ideals + 1]
    real *shown = (real *)((char *)told + rounded(2 * (ideals + 1) * sizeof(Told)));  // [2 * TOGETHER][shown_spaced]
#if SKIPS
    Passed *const passes = (Passed *)(shown + 2 * TOGETHER * shown_spaced);  // [roots + 1]: the last is no one's
    const unsigned no_root = pack.roots * sizeof(real);
    const int column_roots = roots_at(pack);
#endif
    for (int n = threadIdx.x; n < 2 * TOGETHER * shown_spaced; n += blockDim.x) shown[n] = 0;
    for (int n = threadIdx.x; n < 4 * STAGES; n += blockDim.x) ring[n / 4 * pack.column + pack.column - 4 + n % 4] = 0;
    __syncthreads();
#if SKIPS
    block.prepare_arcs(batch, scale);
#endif
    const int last = block.last(batch);
    // What is beyond all of its videos, chunk by chunk.
    for (int begin = last > batch.first ? last : batch.first, end; begin < batch.last; begin = end) {
        end = begin / CHUNK * CHUNK + CHUNK;
        block.write_gradients(batch, begin, end < batch.last ? end : batch.last);
    }
    if (batch.first >= last) return;
    const real *ahead = table + (last - 1 - batch.first) * (long long)pack.column;  // the column to be fetched next
    for (int n = 0; n < STAGES; ++n, ahead -= pack.column) {
        if (last - 1 - n >= batch.first) fetch(ring + (last - 1 - n & STAGES - 1) * pack.column, ahead, pack.column);
        fetched();
    }
    real *carry = batch.carry ? batch.carry + batch.carry_at[blockIdx.x] : nullptr;

    real grad[ROWS][WIDTH];
    Told own[ROWS];
    unsigned target[ROWS][WIDTH], slot[ROWS][WIDTH], sum[ROWS][WIDTH], value_slot[ROWS], own_at[ROWS];  // in bytes
    unsigned mean_slot[ROWS];
#if !SHARES
    real x[ROWS][WIDTH];
    unsigned label[ROWS][WIDTH];
#endif
    int video[ROWS], until[ROWS], widest[ROWS];
#if SKIPS
    real begun[WIDTH];  // the gradients of all beginnings
    unsigned root[WIDTH];
#if !SHARES
    real entered[WIDTH], entered_mean[WIDTH];  // of roots: what they are entered from at this clip
#endif
    const int warp = __reduce_max_sync(~0u, threadIdx.x / 32);
    const int arcs_begin = warp * 32 < ideals ? pack.back_rows[warp] : 0;
    const int arcs_end = warp * 32 < ideals ? pack.back_rows[warp + 1] : 0;
    constexpr int HELD = 4;  // arcs that a lane has in registers
    Arc held[HELD];
    _Pragma("unroll") for (int n = 0; n < HELD; ++n)
        held[n] = arcs_begin + n < arcs_end ? block.back_arcs[32 * (arcs_begin + n) + threadIdx.x % 32] : Arc{FAR, 0};
#endif
    EACH_ROW(r) {
        const int lane = r * blockDim.x + threadIdx.x;
        const int index = lane < ideals ? pack.back_lane[lane] : -1;
        own_at[r] = index < 0 ? ideals * sizeof(Told) : pack.back_own[lane];
        video[r] = index < 0 ? 0 : index / pack.ideals;
        until[r] = index < 0 || video[r] >= block.videos ? 0 : block.clips[video[r]];
        until[r] = until[r] < last ? until[r] : last;
        const bool ends = until[r] && until[r] == block.clips[video[r]];
        const real *after = table + (until[r] - batch.first) * (long long)pack.column;
        int count = 0;
        EACH_STATE(w, WIDTH) {
            const int n = w * ideals + lane;
            slot[r][w] = index < 0 ? column_end : pack.back_slot[n];
            const bool there = slot[r][w] < column_end && until[r] > batch.first;
            target[r][w] = index < 0 ? ideals * sizeof(Told) : pack.back_target[n];
            sum[r][w] = index < 0 ? none * sizeof(real) : pack.back_sum[n];
#if SKIPS
            root[w] = index < 0 ? no_root : pack.back_root[n];
            begun[w] = 0;
#if !SHARES
            const bool is_root = there && root[w] < no_root;
            entered[w] = is_root ? at(after + column_roots, root[w]) : 0;
            entered_mean[w] = FLAT && is_root ? at(after + column_roots + pack.roots, root[w]) : 0;
#endif
#endif
            grad[r][w] = there && !ends ? at(carry, slot[r][w]) : 0;
#if !SHARES
            label[r][w] = index < 0 ? 0 : pack.back_label[n];
            x[r][w] = there ? at(after, slot[r][w]) : FAR;
#endif
            if (there) count = w + 1;
        }
        widest[r] = widest_of(count);
        own[r] = Told{};
        value_slot[r] = mean_slot[r] = column_end;
        if (until[r] <= batch.first) {
            until[r] = 0;
            continue;
        }
        value_slot[r] = pack.back_slot[WIDTH * ideals + lane];
        mean_slot[r] = value_slot[r] + ideals * sizeof(real);
        const bool possible = batch.cost[batch.video[block.start + video[r]]] < INFINITE;
#if SKIPS
        own[r].pull = ends ? at(block.ends(batch), pack.back_end[lane]) : at(carry, value_slot[r]);
#else
        own[r].pull = ends ? (real)(index == video[r] * pack.ideals + pack.full && possible) : at(carry, value_slot[r]);
#endif
#if !SHARES
        own[r].value = at(after, value_slot[r]);
#endif
#if SMOOTH
        own[r].pull_mean = ends ? own[r].pull : at(carry, mean_slot[r]);
#if SKIPS
        if (ends) own[r].pull_mean = at(block.ends(batch) + ideals, pack.back_end[lane]);
#endif
        own[r].mean = at(after, mean_slot[r]);
#endif
        at(told, own_at[r]) = at(told + ideals + 1, own_at[r]) = own[r];
    }
    if (threadIdx.x < 2) {
        Told nobody{};
#if !SHARES
        nobody.value = FAR;
#endif
        told[threadIdx.x * (ideals + 1) + ideals] = nobody;
    }
    await();
    __syncthreads();

    for (int begin = (last - 1) / CHUNK * CHUNK; begin >= batch.first; begin -= CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
#if !SHARES
        if (threadIdx.x < block.videos)
            block.shift[threadIdx.x] = begin > 0 ? batch.shift[block.shift_at(batch, threadIdx.x, begin)] : (real)0;
        block.stage(batch, begin, end, last, scale);
#endif
        Told *next = told + (end & 1) * (ideals + 1), *to = told + (1 - (end & 1)) * (ideals + 1);
        for (int j = end - 1; j >= begin; --j) {
            real *column = ring + (j & STAGES - 1) * pack.column;
            real *out = shown + (j & (2 * TOGETHER - 1)) * shown_spaced;
            EACH_ROW(r) if (ALONE || j < until[r]) {
                Told passed{};
                for_states(widest[r], [&](auto count) {
                    constexpr int N = decltype(count)::states;
#if SHARES
                    passed.pull = own[r].pull * at(column, value_slot[r]);
                    real pull[N], kept[N];
                    EACH_STATE(w, N) kept[w] = at(column, slot[r][w]);
                    EACH_STATE(w, N) pull[w] = at(to, target[r][w]).pull;
                    EACH_STATE(w, N) {
                        real share, began;
                        apart(kept[w], share, began);
                        const real g = grad[r][w] + pull[w] * whole_share(share), start = g * whole_share(began);
                        grad[r][w] = g - start;
#if SKIPS
                        begun[w] += start;
                        at(passes, root[w]).part = start;
                        if (root[w] == no_root) passed.pull += start;
#else
                        passed.pull += start;
#endif
                        pull[w] = STARTS ? start : g;
                    }
                    EACH_STATE(w, N) at(out, sum[r][w]) = pull[w];
#else
                    const real *cost = block.costs + (j - begin) * block.stride;
                    const real lost = j == begin ? block.shift[video[r]] : 0;
                    const real drop = cost[video[r] * block.labels + pack.steps];
                    passed.value = at(column, value_slot[r]);
                    const real own_in = passed.value - lost;
#if SMOOTH
                    passed.mean = at(column, mean_slot[r]);
                    const real own_mean = passed.mean - lost;
#endif
#if CONTIGUOUS && SMOOTH
                    passed.pull = own[r].pull * slope(weight(drop + own_mean - own[r].value), drop + own_mean, own[r].mean);
#elif CONTIGUOUS
                    passed.pull = own[r].pull * weight(drop + own_in - own[r].value);
#endif
                    real result[N];
                    EACH_STATE(w, N) {
                        const Told there = at(to, target[r][w]);
                        const real value = x[r][w], match = at(cost, label[r][w]);
                        const real share = weight(value - there.value);
                        x[r][w] = at(column, slot[r][w]);
                        const real old = x[r][w] - lost;
#if SKIPS
                        const bool is_root = root[w] < no_root;
                        const real in = is_root ? entered[w] : own_in;
#if SMOOTH
                        const real in_mean = is_root ? entered_mean[w] : own_mean;
#endif
                        if (is_root) {  // of the clip before
                            entered[w] = at(column + column_roots, root[w]);
                            if (FLAT) entered_mean[w] = at(column + column_roots + pack.roots, root[w]);
                        }
#else
                        const real in = own_in;
#if SMOOTH
                        const real in_mean = own_mean;
#endif
#endif
#if FLAT
                        real g = grad[r][w] + share * (there.pull_mean - there.pull * (value - there.mean) * LN2);
#elif SMOOTH
                        real g = grad[r][w] + there.pull * slope(share, value, there.mean);
#else
                        real g = grad[r][w] + there.pull * share;
#endif
                        real start;  // what is passed on by beginning the step here
#if CONTIGUOUS && !SMOOTH
                        start = g * weight(in - (value - match));
                        grad[r][w] = g - start;
#else
                        real kept = 0;
#if FLAT
                        const Pair pair(in, old);
                        const real to_enter = pair.first(), old_share = pair.second();
                        const real chosen = to_enter * in_mean + old_share * old;
                        const real to_mean = slope(to_enter, in_mean, chosen), to_old = slope(old_share, old, chosen);
#elif SMOOTH
                        const Pair pair(in_mean, old);
                        const real chosen = pair.mean();
                        const real to_enter = slope(pair.first(), in_mean, chosen);
                        const real to_old = slope(pair.second(), old, chosen);
#else
                        const Pair pair(in, old);
                        const real chosen = minimum(in, old), to_enter = pair.first(), to_old = pair.second();
#endif
#if !CONTIGUOUS
                        const Pair which(match + chosen, drop + old);
                        real p = which.first(), q = which.second();
#if SMOOTH
                        const real middle = which.mean();
                        p = slope(p, match + chosen, middle);
                        q = slope(q, drop + old, middle);
#endif
                        kept = g * q;
                        g = g * p;
#endif
                        start = g * to_enter;
                        grad[r][w] = g * to_old + kept;
#if FLAT
                        const real by_mean = g * to_mean;
#endif
#endif
#if SKIPS
                        if (is_root) {
                            Passed passing{start, in < FAR / 2 ? in : -FAR};
#if FLAT
                            passing.chosen = chosen;
#endif
                            at(passes, root[w] * (sizeof(Passed) / sizeof(real))) = passing;
                        }
                        const bool direct = !is_root;
#else
                        const bool direct = true;
#endif
                        if (direct) passed.pull += start;
#if FLAT
                        if (direct) passed.pull_mean += by_mean;
#if SKIPS
                        begun[w] += by_mean;
#endif
#elif SKIPS
                        begun[w] += start;
#endif
                        result[w] = STARTS ? start : g;
                    }
                    EACH_STATE(w, N) at(out, sum[r][w]) = result[w];
#endif
                });
                own[r] = passed;
                if (!SKIPS) at(next, own_at[r]) = passed;
            }
#if SKIPS
            __syncthreads();
            if (ALONE || j < until[0]) {
                const Arc *arc = block.back_arcs + threadIdx.x % 32;
#if SHARES
                const real from = at(column, mean_slot[0]);
#else
                const real lost = j == begin ? block.shift[video[0]] : 0, from = own[0].value - lost;
#endif
                real pull = own[0].pull;
                const auto add = [&](const Arc out_) {
                    const Passed root_ = at(passes, out_.place);
#if SHARES
                    const real all = at(column + column_roots, out_.place);
#else
                    const real all = root_.all;
#endif
                    const real part = root_.part * exp2_(all - from - out_.cost);
                    pull += part;
#if FLAT
                    own[0].pull_mean += part * (1 - (own[0].mean - lost + out_.cost - root_.chosen) * LN2);
#endif
                };
                if (arcs_begin < arcs_end) {
                    _Pragma("unroll") for (int n = 0; n < HELD; ++n) add(held[n]);
                    int n = arcs_begin + HELD;
                    for (; n + 4 <= arcs_end; n += 4) {
                        Arc four[4];
                        _Pragma("unroll") for (int m = 0; m < 4; ++m) four[m] = arc[32 * (n + m)];
                        _Pragma("unroll") for (int m = 0; m < 4; ++m) add(four[m]);
                    }
                    for (; n < arcs_end; ++n) add(arc[32 * n]);
                }
                own[0].pull = pull;
                at(next, own_at[0]) = own[0];
            }
#endif
            Told *other = to;
            to = next;
            next = other;
            await();
            __syncthreads();
            if (j - STAGES >= batch.first) fetch(column, ahead, pack.column);
            fetched();
            ahead -= pack.column;
            if (j % TOGETHER) continue;
            // The gradients of each label in these clips, added up; they take the place of its costs.
            real *sums = block.costs + (j - begin) * block.stride;
            sum_.add_up(out, sums);
            for (int first = blockDim.x; first < items; first += blockDim.x)
                Sum(pack, first + item, shown_spaced, block.stride).add_up(out, sums);
        }
        __syncthreads();
        block.write_gradients(batch, begin, end);
    }
#if SKIPS
    EACH_STATE(w, WIDTH) at(shown, sum[0][w]) = begun[w];
    __syncthreads();
    block.write_skip_gradients(batch, last, shown, pack.sum_start);
#endif
    if (carry && batch.first > 0) {
        EACH_ROW(r) if (until[r]) {
            EACH_STATE(w, WIDTH) if (slot[r][w] < column_end) at(carry, slot[r][w]) = grad[r][w];
            at(carry, value_slot[r]) = own[r].pull;
#if SMOOTH
            at(carry, mean_slot[r]) = own[r].pull_mean;
#endif
        }
    }
}
#endif
