// Costs of grounding, and their gradients, of procedures whose states fit into registers. A thread, a lane, has ROWS ideals of
// the pack; with SKIPS, one. Compiled after packs.cuh.

#define EACH_ROW(r) _Pragma("unroll") for (int r = 0; r < ROWS; ++r)

// Places of the states of an ideal, in bytes; two in one register, where there are few of these.
#define TIGHT (NODES && PASSES && THREADS * BLOCKS * 56 > 65536)
struct Places {
#if TIGHT
    unsigned pair[(WIDTH + 1) / 2];
    __device__ __forceinline__ unsigned operator[](int w) const { return w % 2 ? high_half(pair[w / 2]) : low_half(pair[w / 2]); }
    __device__ __forceinline__ void set(int w, unsigned place) { pair[w / 2] = w % 2 ? low_half(pair[w / 2]) | place << 16 : place; }
#else
    unsigned place[WIDTH];
    __device__ __forceinline__ unsigned operator[](int w) const { return place[w]; }
    __device__ __forceinline__ void set(int w, unsigned place_) { place[w] = place_; }
#endif
};

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

#if SLOPES
// How a state passes gradients on, in halves: its share of its ideal, and how much larger the share of entering is than its slope;
// the slopes of showing the step, not background, and of entering, or those of the others where these are smaller. All but the
// differences are less than 2, so that a bit is free: OTHER.
#define OTHER 0x4000u
struct __align__(2 * sizeof(real)) Passing {
    unsigned share, slopes;
};
// Of two parts of a mean, so far apart, how much less than its share the slope of the first one is. What is impossible is far
// apart, or near by chance: it stays a number.
__device__ __forceinline__ real less(real minor, real apart) {
    const real found = (minor - minor * minor) * LN2 * apart;
    return least(found > -1024 ? found : -1024, 1024);
}
__device__ __forceinline__ unsigned halves(real a, real b) { return __float_as_int(both(a, b)); }
// OTHER, where what is kept, the lesser part, is not that of the first.
__device__ __forceinline__ unsigned other(const Pair &pair) { return (unsigned)__float_as_int(pair.gap) >> 17 & OTHER; }
__device__ __forceinline__ real first_half(unsigned kept) { return from_half(kept & (0xffffu ^ OTHER)); }
__device__ __forceinline__ real slope_of(real kept, unsigned whose) { return whose & OTHER ? 1 - kept : kept; }
__device__ __forceinline__ real second_half(unsigned kept) { return from_half(kept >> 16); }
// How far the mean of an ideal is above its minimum and, in its last bits, what its states' shares lack of a whole, as they are
// rounded: else what passes through many ideals would become more, or less.
#define LAST_BITS 127
struct Spread {
    real above, rest;
    __device__ __forceinline__ Spread(real above, real rest) : above(above), rest(rest) {}
    __device__ __forceinline__ explicit Spread(real kept)
        : above(__int_as_float(__float_as_int(kept) & ~LAST_BITS)), rest(((__float_as_int(kept) & LAST_BITS) - 64) * (1.0f / 32768)) {}
    __device__ __forceinline__ real kept() const {
        return __int_as_float(__float_as_int(above) + 64 & ~LAST_BITS | (int)rintf(rest * 32768) + 64 & LAST_BITS);
    }
};
// Behind the column of a part of a video, the means of ideals.
#define MEANS_LEFT (ideals + 3 & ~3)
#else
#define MEANS_LEFT 0
#endif

#if NODES
// What each lane of a warp has in rows, taken one after the other. Each is read one ahead.
template <class Item> struct Rows {
    const Item *const items;
    const int end;
    Item coming;
    __device__ __forceinline__ Rows(const Item *all, unsigned thread, int begin, int end) : items(all + thread % 32), end(end), coming() {
        if (begin < end) coming = items[32 * begin];
    }
    __device__ __forceinline__ Item take(int n) {
        const Item one = coming;
        if (n + 1 < end) coming = items[32 * (n + 1)];
        return one;
    }
};

#if PASSES
// What a column keeps where all goes to the first part, and to the second one.
#define NOTHING (SHARES ? (Kept)0x7c00 : (Kept)0)
#define ALL (SHARES ? (Kept)0xfc00 : (Kept)both(-0.0f, 0))
#endif
// Where the nodes are in a column, in numbers. Behind them are two that are none, and what is no one's; then all means.
__device__ __forceinline__ int nodes_at(const Pack &pack) { return pack.column - 4 - ((int)(NODE_SPACE * KEPT * sizeof(Kept) / sizeof(real)) + 3 & ~3); }
#endif

#if NODES && GROUP == 0
// A node, of its parts: the first, and the second one.
struct Beside {
    real low, gap, mean, passing;
    __device__ __forceinline__ Beside() : low(0), gap(0), mean(0), passing(0) {}
    __device__ __forceinline__ Beside(real a, real a_mean, real b, real b_mean) : low(least(a, b)), gap(b - a), mean(0), passing(0) {
#if !HARD
        const real far = exp2_(-fabs(gap));
        low -= log2_(1 + far);
#if FLAT
        const real minor = far * inverse_(1 + far);
        mean = gap > 0 ? a_mean + (b_mean - a_mean) * minor : b_mean + (a_mean - b_mean) * minor;
#if SLOPES
        passing = both(copysign(minor, gap), less(minor, a_mean - b_mean));
#endif
#endif
#endif
    }
    // What a column keeps of it: how far its parts are apart, the share of the second one, or its value.
    __device__ __forceinline__ Kept kept() const {
#if SHARES
        return to_half(gap);
#elif SLOPES
        return passing;
#else
        return low;
#endif
    }
};
#endif

#if GROUP == 0
// From the column before clip `first` to that after clip `last - 1`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) forward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Pack &pack = block.pack;
    const int ideals = block.ideals, told_each = NODES ? NODES_TOLD + TOLD_SPACE : ideals + 1, told_size = TOLD * told_each;
    const real scale = HARD ? 1 : 1.4426950408889634 / batch.gamma;
    real *table = KEEP ? batch.table + batch.table_at[blockIdx.x] : nullptr;
    real *told = block.working;  // two of them, for even clips and for odd ones
    real *column = block.working + ((2 * told_size + 3) & ~3);  // STAGES of them
    const int column_end = (pack.column - 4) * sizeof(real);
    __syncthreads();
#if NODES
    block.prepare_skips(batch, scale);
    const int warp = __reduce_max_sync(~0u, threadIdx.x / 32), column_nodes = nodes_at(pack);
    const int loose = warp * 32 < pack.lanes ? pack.loose_rows[warp] : 0;
    const int loose_end = warp * 32 < pack.lanes ? pack.loose_rows[warp + 1] : 0;
    real skip[WIDTH];      // of the step of each state
    const unsigned thread = SHARES ? number_of_thread() : threadIdx.x;  // smoothmin has no register left to keep it in
    int level = 0;
    unsigned cost_at = 0;  // where the costs of its clip are
#if KEEP && !SHARES
    unsigned tied[WIDTH];  // in bytes
#endif
    const unsigned cost_end = CHUNKS * CHUNK * block.stride;
#endif
    const int last = block.last(batch);

    real x[ROWS][WIDTH], own[ROWS], mean_[ROWS];
    Places enter[ROWS], label[ROWS], slot[ROWS];
    unsigned value_slot[ROWS], drop_at[ROWS], own_at[ROWS];  // in bytes
    unsigned mean_slot[ROWS];
    int video[ROWS], until[ROWS], widest[ROWS];
    bool empty[ROWS], full[ROWS];
    if (threadIdx.x < 2 * TOLD) told[threadIdx.x * told_each + ideals] = FAR;
    // Of the first column too, what belongs to no one is a number: lanes that have fewer states than others read it.
    if (KEEP && !PASSES && threadIdx.x < 4) table[pack.column - 4 + threadIdx.x] = FAR;
    EACH_ROW(r) {
        const int lane = r * blockDim.x + threadIdx.x;
        const int index = lane < pack.lanes ? pack.lane[lane] : -1;
        own_at[r] = index < 0 ? ideals * sizeof(real) : pack.own[lane];
        video[r] = index < 0 ? 0 : index / pack.ideals;
        empty[r] = index == video[r] * pack.ideals + pack.empty;
        drop_at[r] = (video[r] * block.labels + pack.steps) * sizeof(real);
        full[r] = index == video[r] * pack.ideals + pack.full;
        until[r] = index < 0 || video[r] >= block.videos ? 0 : block.clips[video[r]];
#if NODES
        level = index < 0 ? 0 : pack.level[lane];
        cost_at = (batch.first + CHUNKS * CHUNK - level) % (CHUNKS * CHUNK) * block.stride;
#endif
        value_slot[r] = index < 0 ? column_end : pack.slot[WIDTH * pack.lanes + lane];
        mean_slot[r] = SLOPES ? (pack.column + lane) * sizeof(real) : value_slot[r] + (index < 0 ? 0 : ideals * sizeof(real));
        int count = 0;
        EACH_STATE(w, WIDTH) {
            const int n = w * pack.lanes + lane;
            slot[r].set(w, index < 0 ? column_end : pack.slot[n]);
            enter[r].set(w, index < 0 ? ideals * sizeof(real) : pack.enter[n]);
            label[r].set(w, index < 0 ? 0 : pack.label[n]);
#if NODES
#if KEEP && !SHARES
            tied[w] = index < 0 ? (pack.nodes + 2) * sizeof(Kept) : pack.tied[n];
#endif
            const int label_ = label[r][w] / sizeof(real) - video[r] * block.labels;
            skip[w] = label_ < pack.steps ? block.skips[video[r] * pack.steps + label_] : FAR;
#endif
            x[r][w] = FAR;
            if (slot[r][w] == column_end || until[r] == 0) continue;
            count = w + 1;
            if (batch.first > 0) x[r][w] = at(batch.resumed, slot[r][w]);
            if (KEEP && !PASSES) at(table, slot[r][w]) = x[r][w];
        }
        widest[r] = widest_of(count);
        mean_[r] = own[r] = empty[r] ? (real)0 : FAR;
        if (until[r]) {
            if (batch.first > 0) {
                own[r] = at(batch.resumed, value_slot[r]);
                if (SMOOTH) mean_[r] = at(batch.resumed, mean_slot[r]);
            }
            if (KEEP && !PASSES) {
                at(table, value_slot[r]) = own[r];
                if (SMOOTH) at(table, mean_slot[r]) = mean_[r];
            }
            at(told, own_at[r]) = SMOOTH && !FLAT ? mean_[r] : own[r];
            if (FLAT) at(told + told_each, own_at[r]) = mean_[r];
        }
    }
#if NODES
    // What was told before, and what is late of the last column.
    const int told_rounded = told_size + 3 & ~3;
    const real *const resumed = batch.resumed + pack.column + MEANS_LEFT;
    __syncthreads();
    for (int n = threadIdx.x; batch.first > 0 && n < told_size; n += blockDim.x) told[n] = resumed[n];
#if KEEP
    for (int n = threadIdx.x; batch.first > 0 && n < pack.column; n += blockDim.x) {
        column[n] = resumed[told_rounded + n];
        if (!PASSES) table[n] = resumed[told_rounded + pack.column + n];
    }
    __syncthreads();
#if PASSES
    // What belongs to no one is read by lanes that have fewer states than others, in columns, too, that no lane wrote it in.
    for (int n = threadIdx.x; n < 4 * STAGES; n += blockDim.x) column[n / 4 * pack.column + pack.column - 4 + n % 4] = 0;
    // The share of nothing, and of all.
    if (threadIdx.x < 2 * STAGES)
        ((Kept *)(column + threadIdx.x / 2 * pack.column + column_nodes))[pack.nodes + threadIdx.x % 2] = threadIdx.x % 2 ? ALL : NOTHING;
#else
    if (batch.first == 0 && until[0]) {
        at(column, value_slot[0]) = own[0];
        if (SMOOTH) at(column, mean_slot[0]) = mean_[0];
    }
#endif
#endif
#endif

    real *kept = table + (PASSES ? 0 : pack.column);  // where the next column goes
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
#if NODES
                EACH_STATE(w, WIDTH) {
                    told[NODES_TOLD + w * ideals + threadIdx.x] -= lost;
                    if (FLAT) told[told_each + NODES_TOLD + w * ideals + threadIdx.x] -= lost;
                }
                for (int n = loose; n < loose_end; ++n) {
                    const unsigned to = block.loose[32 * n + threadIdx.x % 32].to & 0xffff;
                    at(told, to) -= lost;
                    if (FLAT) at(told + told_each, to) -= lost;
                }
#endif
            }
            __syncthreads();
        }
        const real *cost = block.costs, *now = told + (begin & 1) * told_size;
        real *next = told + (1 - (begin & 1)) * told_size;
        for (int j = begin; j < end; ++j, cost += block.stride) {
            real *after = column + (j & STAGES - 1) * pack.column;
#if NODES
            now = told + (j & 1) * told_size;  // here that takes fewer instructions than to exchange them
            next = told + (1 - (j & 1)) * told_size;
            cost = block.ring + cost_at;
            cost_at += block.stride;
            if (cost_at == cost_end) cost_at = 0;
            real *const late = column + (j + 1 & STAGES - 1) * pack.column;  // where what is late by one goes
            const bool is_on = (unsigned)(j - level) < (unsigned)until[0];
            Kept *const of_nodes = (Kept *)((PASSES ? late : after) + column_nodes);
#else
            real *const late = after;
            constexpr bool is_on = true;
#endif
            EACH_ROW(r) if (is_on && (ALONE || until[r])) {
                const real before = SMOOTH && !FLAT ? mean_[r] : own[r], before_mean = mean_[r];
                if (NODES || ALONE || j < until[r]) for_states(widest[r], [&](auto count) {
                    constexpr int N = decltype(count)::states;
                    const real drop = at(cost, drop_at[r]);
                    const real idle = CONTIGUOUS || empty[r] ? drop + before : FAR;
                    real low = idle;
#if NODES
                    Beside beside[2 * PAIRS]{};
#endif
#if CONTIGUOUS && SMOOTHING == 1
                    real both_[N], least_[N], began[N];
                    EACH_STATE(w, N) {
                        const real old = x[r][w], in = at(now, enter[r][w]), gap = in - old;
                        const real far = exp2_(-fabs(gap));
#if NODES
                        beside[w] = Beside(before, 0, in + skip[w], 0);
#endif
                        both_[w] = 1 + far;
                        if (SHARES) began[w] = copysign(far, gap);
                        least_[w] = at(cost, label[r][w]) + least(in, old);
                        low = least(least_[w], low);
                        x[r][w] = least_[w] - log2_(both_[w]);
                    }
#if SHARES
                    // One reciprocal for two of them.
                    EACH_STATE(w, N) if (w % 2) {
                        const real inverse = inverse_(both_[w - 1] * both_[w]);
                        began[w - 1] *= inverse * both_[w];
                        began[w] *= inverse * both_[w - 1];
                    } else if (w == N - 1) began[w] *= inverse_(both_[w]);
#endif
                    real total = exp2_(low - idle);
                    const real left = total;
                    EACH_STATE(w, N) {
                        both_[w] *= exp2_(low - least_[w]);
                        total += both_[w];
                    }
                    own[r] = low - log2_(total);
#if SHARES
                    const real inverse = inverse_(total);
                    EACH_STATE(w, N) at(after, slot[r][w]) = both(signed_share(__saturatef(both_[w] * inverse)), began[w]);
                    at(late, value_slot[r]) = left * inverse;
#endif
#else
#if SLOPES
                    real differs_[N], share_[N];
                    Passing passing[N];
#endif
                    EACH_STATE(w, N) {
                        const real old = x[r][w], in = at(now, enter[r][w]);
                        const real in_mean = FLAT ? at(now + told_each, enter[r][w]) : 0;
#if NODES
                        beside[w] = Beside(before, before_mean, in + skip[w], in_mean + skip[w]);
#endif
#if FLAT
                        const Pair pair(in, old);
                        real value = at(cost, label[r][w]) + pair.first() * in_mean + pair.second() * old;
#else
                        real value = at(cost, label[r][w]) + minimum(in, old);
#endif
#if SLOPES
                        const Pair which(value, drop + old);
                        const real differs = less(pair.minor, in_mean - old);
                        differs_[w] = differs;
                        const real entering = pair.minor - (pair.gap > 0 ? differs : -differs);
                        const bool is_more = entering > (real)0.5;
                        passing[w].share = other(pair) ^ (is_more ? OTHER : 0);
                        passing[w].slopes = halves(which.minor - less(which.minor, fabs(which.gap)), is_more ? 1 - entering : entering) | other(which);
                        value = which.mean();
#else
                        if (!CONTIGUOUS) value = minimum(value, drop + old);
#endif
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
#if SLOPES
                        share_[w] = share;
#endif
                    }
                    own[r] = low - log2_(total);
                    if (SMOOTH) mean_[r] = low + moment * inverse_(total);
#if SLOPES
                    real rest = 1;
                    EACH_STATE(w, N) {
                        passing[w].share |= halves(signed_share(__saturatef(share_[w] * inverse_(total))), differs_[w]);
                        at((Passing *)after, slot[r][w]) = passing[w];
                        rest -= whole_share(first_half(passing[w].share));
                    }
                    at(late, value_slot[r]) = Spread(mean_[r] - own[r], rest).kept();
#endif
#endif
#endif
#if NODES
                    EACH_STATE(w, N) {
                        real *const to = next + NODES_TOLD + w * ideals + thread;
                        *to = beside[w].low;
                        if (FLAT) to[told_each] = beside[w].mean;
#if SHARES
                        if (w % 2 == 0) ((real *)of_nodes)[w / 2 * ideals + thread] = both(beside[w].gap, beside[w + 1].gap);
#elif KEEP
                        at(of_nodes, tied[w]) = beside[w].kept();
                        if (FLAT && !SLOPES) at(of_nodes + NODE_SPACE, tied[w]) = beside[w].mean;
#endif
                    }
#endif
                    if (KEEP && !SHARES && !NODES) {
                        EACH_STATE(w, N) at(after, slot[r][w]) = x[r][w];
                        at(after, value_slot[r]) = own[r];
                        if (SMOOTH) at(after, mean_slot[r]) = mean_[r];
                    }
                });
                at(next, own_at[r]) = NODES ? before : SMOOTH && !FLAT ? mean_[r] : own[r];
                if (FLAT) at(next + told_each, own_at[r]) = NODES ? before_mean : mean_[r];
#if NODES
                Rows<Node> rows(block.loose, thread, loose, loose_end);
                _Pragma("unroll 1") for (int n = loose; n < loose_end; ++n) {
                    const Node node = rows.take(n);
                    const unsigned first = node.parts & 0xffff, second = node.parts >> 16, to = node.to & 0xffff, slot_ = node.to >> 16;
                    const real b = at(now, second) + node.cost, b_mean = FLAT ? at(now + told_each, second) + node.cost : 0;
                    const Beside found(at(next, first), FLAT ? at(next + told_each, first) : 0, b, b_mean);
                    at(next, to) = found.low;
                    if (FLAT) at(next + told_each, to) = found.mean;
                    if (KEEP) at(of_nodes, slot_) = found.kept();
                    if (KEEP && FLAT && !SLOPES) at(of_nodes + NODE_SPACE, slot_) = found.mean;
                }
#endif
            }
#if NODES && KEEP && !PASSES
            if (until[0]) {  // before its first clip and after its last one, too
                EACH_STATE(w, WIDTH) at(after, slot[0][w]) = x[0][w];
                at(late, value_slot[0]) = own[0];
                if (SMOOTH) at(late, mean_slot[0]) = mean_[0];
            }
#endif
            // Half of the ring goes to the table at a time, when what was in the other half has left it. With nodes what is late is in
            // the next column already; of large columns two would not have left by then: each goes when it is complete.
            constexpr bool each = NODES && THREADS > 512;
            constexpr int half = each ? 1 : STAGES / 2;
            const int of_half = j & half - 1;
            if (KEEP && (of_half == half - 1 || j + 1 == last)) {
                complete_column();
                if (!NODES || half == 1) written<each>();
                __syncthreads();
                const int columns = (of_half + 1) * pack.column;
                write_column(kept, each ? after : after + pack.column - columns, columns);
                kept += columns;
            } else {
                if (NODES && KEEP && of_half == half - 2) written();
                __syncthreads();
            }
#if !NODES
            real *other = (real *)now;
            now = next;
            next = other;
#endif
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
#if NODES
        const real *const now = told + (last & 1) * told_size;
        real *const left = batch.to_resume + pack.column + MEANS_LEFT;
        for (int n = threadIdx.x; n < told_size; n += blockDim.x) left[n] = now[n];
        for (int n = threadIdx.x; KEEP && n < pack.column; n += blockDim.x) {
            left[told_rounded + n] = column[(last & STAGES - 1) * pack.column + n];
            if (!PASSES) left[told_rounded + pack.column + n] = column[(last - 1 & STAGES - 1) * pack.column + n];
        }
        __syncthreads();
#endif
    }
    if (threadIdx.x < block.videos) batch.base[block.start + threadIdx.x] = block.base[threadIdx.x];
#if NODES
    if (until[0]) {  // what is never shown is waived
        const real rest = block.waived(pack.missing[threadIdx.x] | (unsigned long long)video[0] << 56);
        at(told, own_at[0]) = own[0] + rest;
        if (FLAT) at(told + told_each, own_at[0]) = mean_[0] + rest;
    }
    __syncthreads();
    block.end(batch, told, told_each, last, scale);
#else
    EACH_ROW(r) if (full[r] && until[r] && until[r] <= last) {
        const real value = SMOOTH ? mean_[r] : own[r];
        block.write_cost(batch, video[r], value, value < FAR / 2, scale);
    }
#endif
}

#else
// What the states that end in an ideal read of it.
struct __align__(SLOPES ? 2 * sizeof(real) : SMOOTH ? 4 * sizeof(real) : SHARES ? sizeof(real) : 2 * sizeof(real)) Told {
    real pull;
#if !PASSES
    real value;
#endif
#if SMOOTH
    real pull_mean;
#endif
#if SMOOTH && !SLOPES
    real mean;
#endif
};

// Columns are copied from the table ahead of their use. Where they are large one thread asks the unit for them, and waits before a
// barrier until they are there. Of few blocks, where that wait counts, all threads copy.
#define ASKED (BULK && !ALONE && (NODES || THREADS > 224))
struct Ahead {
    unsigned long long *const arrived;  // [STAGES]
    const real *from;                   // the column to be copied next
    const int numbers, top;             // of a column; the first one that is read
    const bool asks;                    // whether this is the warp that does

    __device__ __forceinline__ Ahead(unsigned long long *arrived, const real *from, int numbers, int top)
        : arrived(arrived), from(from), numbers(numbers), top(top), asks(is_last_warp()) {
#if ASKED
        if (asks && is_chosen()) {
            for (int n = 0; n < STAGES; ++n)
                asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"((unsigned)__cvta_generic_to_shared(arrived + n)) : "memory");
            asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
        }
#endif
    }

    // Asks for column j, by all threads, in the order in which they are read.
    __device__ __forceinline__ void fetch(int j, bool there, real *to) {
        if (there) {
#if ASKED
            if (asks && is_chosen())
                asm volatile("{.reg .b64 state;"
                             "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;"
                             "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%2], [%3], %1, [%0];}" ::"r"(
                                 (unsigned)__cvta_generic_to_shared(arrived + (j & STAGES - 1))),
                             "r"(numbers * (int)sizeof(real)), "r"((unsigned)__cvta_generic_to_shared(to)), "l"(from)
                             : "memory");
#else
            constexpr int each = 16 / sizeof(real);
#if NODES
            constexpr int of_nodes = 2 * PAIRS * TOLD * sizeof(Kept) / sizeof(real);
#else
            constexpr int of_nodes = 0;
#endif
            constexpr int most = (ROWS * (WIDTH + PARTS) + of_nodes + each - 1) / each;  // pieces of a thread
            const auto piece = [&](int m) {
                if (m >= numbers) return;
#if __CUDA_ARCH__ >= 800
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to + m)), "l"(from + m) : "memory");
#else
                *(int4 *)(to + m) = *(const int4 *)(from + m);
#endif
            };
            _Pragma("unroll") for (int n = 0; n < most; ++n) piece((n * blockDim.x + threadIdx.x) * each);
            if (NODES)  // those that are tied to no state
                for (int m = (most * blockDim.x + threadIdx.x) * each; m < numbers; m += blockDim.x * each) piece(m);
#endif
        }
#if __CUDA_ARCH__ >= 800 && !ASKED
        asm volatile("cp.async.commit_group;" ::: "memory");
#endif
        from -= numbers;
    }
    // Before a barrier, after which column j is there.
    __device__ __forceinline__ void await(int j) const {
#if ASKED
        if (asks && is_chosen())
            asm volatile("{.reg .pred done; again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1; @!done bra again;}" ::"r"(
                             (unsigned)__cvta_generic_to_shared(arrived + (j & STAGES - 1))),
                         "r"((top - j) / STAGES & 1)
                         : "memory");
#elif __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_group %0;" ::"n"(STAGES - 2) : "memory");
#endif
    }
};

#if NODES
// What lanes pass on to nodes of others, or to their own.
struct __align__(TOLD * sizeof(real)) Passed {
    real pull;
#if FLAT
    real pull_mean;
#endif
    __device__ __forceinline__ void add(const Passed &other) {
        pull += other.pull;
#if FLAT
        pull_mean += other.pull_mean;
#endif
    }
};
#if SHARES
__device__ __forceinline__ real share_of_second(Kept kept) { return inverse_(1 + exp2_(from_half(kept))); }
#elif SLOPES
// What goes to the second part of a node.
__device__ __forceinline__ Passed to_second(const Passed &all, Kept kept) {
    real share, moved;
    apart(kept, share, moved);
    share = whole_share(share);
    return Passed{all.pull * share, all.pull_mean * share + all.pull * moved};
}
#endif
#endif

// From the gradients of the column after clip `last - 1` to those of the column before clip `first`.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) backward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Pack &pack = block.pack;
    const int ideals = block.ideals, none = pack.sum_start[pack.sums];
    const int shown_spaced = (none + 32 & ~31) + 32 / TOGETHER;  // no two clips in one bank
#if !NODES
    // The threads that have least to do add gradients up.
    const int item = blockDim.x - 1 - threadIdx.x ^ 31;
    const int items = pack.sums * TOGETHER * GROUP;
    const Sum sum_(pack, item, shown_spaced, block.stride);
#endif
    const real scale = 1.4426950408889634 / batch.gamma;
    const real *table = batch.table + batch.table_at[blockIdx.x];
    const int column_end = (pack.column - 4) * sizeof(real);
    real *ring = block.working + STAGES * 8 / sizeof(real);  // [STAGES][pack.column], behind what says that they are there
    Told *told = (Told *)(ring + STAGES * pack.column);  // [2][ideals + 1]
#if NODES
    // Two of them, each followed by what nodes are passed.
    const int told_bytes = rounded((ideals + 1) * sizeof(Told)), told_all = told_bytes + rounded((pack.places + 1) * sizeof(Passed));
    real *shown = (real *)((char *)told + 2 * told_all);
    const int column_nodes = nodes_at(pack);
    for (int n = threadIdx.x; n < 2 * told_all / (int)sizeof(real); n += blockDim.x) ((real *)told)[n] = 0;
#else
    const int told_all = (ideals + 1) * sizeof(Told);
    real *shown = (real *)((char *)told + rounded(2 * told_all));  // [2 * TOGETHER][shown_spaced]
#endif
    for (int n = threadIdx.x; n < 2 * TOGETHER * shown_spaced; n += blockDim.x) shown[n] = 0;
    for (int n = threadIdx.x; n < 4 * STAGES; n += blockDim.x) ring[n / 4 * pack.column + pack.column - 4 + n % 4] = 0;
    __syncthreads();
#if NODES
    block.prepare_skips(batch, scale);
#endif
    const int last = block.last(batch);
    // What is beyond all of its videos, chunk by chunk.
    for (int begin = last > batch.first ? last : batch.first, end; begin < batch.last; begin = end) {
        end = begin / CHUNK * CHUNK + CHUNK;
        block.write_gradients(batch, begin, end < batch.last ? end : batch.last);
    }
    if (batch.first >= last) return;
    Ahead ahead((unsigned long long *)block.working, table + (last - 1 - batch.first) * (long long)pack.column, pack.column, last - 1);
    __syncthreads();
    for (int j = last - 1; j > last - 1 - STAGES; --j) ahead.fetch(j, j >= batch.first, ring + (j & STAGES - 1) * pack.column);
    real *carry = batch.carry ? batch.carry + batch.carry_at[blockIdx.x] : nullptr;

    real grad[ROWS][WIDTH];
    Told own[ROWS];
    Places target[ROWS], slot[ROWS], sum[ROWS];
    unsigned value_slot[ROWS], own_at[ROWS];  // in bytes
    unsigned mean_slot[ROWS];
#if !PASSES
    real x[ROWS][WIDTH];
    unsigned label[ROWS][WIDTH];
#endif
    int video[ROWS], until[ROWS], widest[ROWS];
#if NODES
    real begun[WIDTH];  // the gradients of all beginnings
    Places passes_to, node;
    const unsigned passed_at = number_of_thread() * sizeof(Passed);
    const int values_at = __reduce_max_sync(~0u, pack.back_slot[WIDTH * ideals]);  // of the first lane; of the others in their order
    int level = 0;
    const int warp = __reduce_max_sync(~0u, threadIdx.x / 32);
    const int gathered = warp * 32 < ideals ? pack.gather_rows[warp] : 0;
    const int gathered_end = warp * 32 < ideals ? pack.gather_rows[warp + 1] : 0;
#endif
    EACH_ROW(r) {
        const int lane = r * blockDim.x + threadIdx.x;
        const int index = lane < ideals ? pack.back_lane[lane] : -1;
        own_at[r] = index < 0 ? ideals * sizeof(Told) : pack.back_own[lane];
        video[r] = index < 0 ? 0 : index / pack.ideals;
        until[r] = index < 0 || video[r] >= block.videos ? 0 : block.clips[video[r]];
#if NODES
        level = index < 0 ? 0 : pack.back_level[lane];
        const bool ends = until[r] && until[r] + level <= last;
        if (until[r]) until[r] = until[r] + level < last ? until[r] + level : last;
#else
        until[r] = until[r] < last ? until[r] : last;
        const bool ends = until[r] && until[r] == block.clips[video[r]];
#endif
        const real *after = table + (until[r] - batch.first) * (long long)pack.column;
        int count = 0;
        EACH_STATE(w, WIDTH) {
            const int n = w * ideals + lane;
            slot[r].set(w, index < 0 ? column_end : pack.back_slot[n]);
            const bool there = slot[r][w] < column_end && until[r] > batch.first;
            target[r].set(w, index < 0 ? ideals * sizeof(Told) : pack.back_target[n]);
            sum[r].set(w, index < 0 ? none * sizeof(real) : pack.back_sum[n]);
#if NODES
            passes_to.set(w, index < 0 ? pack.places * sizeof(Passed) : pack.back_to[n]);
            node.set(w, index < 0 ? pack.nodes * sizeof(Kept) : pack.back_node[n]);
            begun[w] = 0;
#endif
            grad[r][w] = there && !ends ? at(carry, slot[r][w]) : 0;
#if !PASSES
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
        mean_slot[r] = SLOPES ? (pack.column + lane) * sizeof(real) : value_slot[r] + ideals * sizeof(real);
        const bool possible = batch.own_cost[batch.video[block.start + video[r]]] < INFINITE;
#if NODES
        own[r].pull = ends ? at(block.ends(batch), pack.back_end[lane]) : at(carry, value_slot[r]);
#else
        own[r].pull = ends ? (real)(index == video[r] * pack.ideals + pack.full && possible) : at(carry, value_slot[r]);
#endif
#if !PASSES
        own[r].value = at(after, value_slot[r]);
#endif
#if SMOOTH
        own[r].pull_mean = ends ? own[r].pull : at(carry, mean_slot[r]);
#if NODES
        if (ends) own[r].pull_mean = at(block.ends(batch) + ideals, pack.back_end[lane]);
#endif
#if !SLOPES
        own[r].mean = at(after, mean_slot[r]);
#endif
#endif
        at(told, own_at[r]) = at((Told *)((char *)told + told_all), own_at[r]) = own[r];
    }
#if NODES
    __syncthreads();
    if (batch.last < block.clips[0] + LAG && carry) {  // what the part of the video after this one has told
        real *const to = (real *)((char *)told + (1 - (last & 1)) * told_all);
        for (int n = threadIdx.x; n < told_all / (int)sizeof(real); n += blockDim.x) to[n] = carry[pack.column + MEANS_LEFT + n];
    }
    if (batch.last < block.clips[0] + LAG && carry) block.unfinished(batch, batch.last, [](real &sum, const real &left) { sum = left; });
#endif
    if (threadIdx.x < 2) {
        Told nobody{};
#if !PASSES
        nobody.value = FAR;
#endif
        ((Told *)((char *)told + threadIdx.x * told_all))[ideals] = nobody;
    }
    ahead.await(last - 1);
    __syncthreads();

    for (int begin = (last - 1) / CHUNK * CHUNK; begin >= batch.first; begin -= CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
#if !PASSES
        if (threadIdx.x < block.videos)
            block.shift[threadIdx.x] = begin > 0 ? batch.shift[block.shift_at(batch, threadIdx.x, begin)] : (real)0;
        block.stage(batch, begin, end, last, scale);
#endif
        Told *next = (Told *)((char *)told + (end & 1) * told_all), *to = (Told *)((char *)told + (1 - (end & 1)) * told_all);
        for (int j = end - 1; j >= begin; --j) {
            real *column = ring + (j & STAGES - 1) * pack.column;
            real *out = shown + (j & (2 * TOGETHER - 1)) * shown_spaced;
#if NODES
            const Kept *const nodes = (const Kept *)(column + column_nodes);
            const Passed *const passed_to = (const Passed *)((const char *)to + told_bytes);
            Passed *const passed_next = (Passed *)((char *)next + told_bytes);
            const bool is_on = j < until[0] && j >= level;
#else
            constexpr bool is_on = true;
#endif
            EACH_ROW(r) if (is_on && (NODES || ALONE || j < until[r])) {
                Told passed{};
                for_states(widest[r], [&](auto count) {
                    constexpr int N = decltype(count)::states;
#if SHARES
#if NODES
                    passed.pull = own[r].pull * at(&at(column, values_at), passed_at);
#else
                    passed.pull = own[r].pull * at(column, value_slot[r]);
#endif
                    real pull[N], kept[N];
                    EACH_STATE(w, N) kept[w] = at(column, slot[r][w]);
                    EACH_STATE(w, N) pull[w] = at(to, target[r][w]).pull;
#if NODES
                    real all[N], of_second[N];
                    EACH_STATE(w, N) all[w] = at(passed_to + w * ideals, passed_at).pull;
                    EACH_STATE(w, N) of_second[w] = share_of_second(at(nodes, node[w]));
#endif
                    EACH_STATE(w, N) {
                        real share, began;
                        apart(kept[w], share, began);
                        const real g = grad[r][w] + pull[w] * whole_share(share), start = g * whole_share(began);
                        grad[r][w] = g - start;
#if NODES
                        begun[w] += start;
                        all[w] += start;
                        of_second[w] *= all[w];
                        passed.pull += all[w] - of_second[w];
#else
                        passed.pull += start;
#endif
                        pull[w] = STARTS ? start : g;
                    }
#if NODES
                    EACH_STATE(w, N) at(passed_next, passes_to[w]).pull = of_second[w];
#endif
                    EACH_STATE(w, N) at(out, sum[r][w]) = pull[w];
#elif SLOPES
                    Passing kept[N];
                    real result[N];
                    Told there[N];
                    Passed all[N];
                    Kept of_node[N];
                    EACH_STATE(w, N) kept[w] = at((const Passing *)column, slot[r][w]);
                    EACH_STATE(w, N) there[w] = at(to, target[r][w]);
                    EACH_STATE(w, N) all[w] = at(passed_to + w * ideals, passed_at);
                    EACH_STATE(w, N) of_node[w] = at(nodes, node[w]);
                    EACH_STATE(w, N) {
                        const real share = whole_share(first_half(kept[w].share));
                        const real g = grad[r][w] + share * (there[w].pull_mean + there[w].pull * log2_(share > (real)1e-8 ? share : (real)1e-8));
                        const real here = g * slope_of(first_half(kept[w].slopes), kept[w].slopes);
                        const real by_mean = here * slope_of(second_half(kept[w].slopes), kept[w].share);
                        const real start = by_mean + here * second_half(kept[w].share);
                        grad[r][w] = g - by_mean;
                        begun[w] += by_mean;
                        all[w].pull += start;
                        all[w].pull_mean += by_mean;
                        const Passed second = to_second(all[w], of_node[w]);
                        passed.pull += all[w].pull - second.pull;
                        passed.pull_mean += all[w].pull_mean - second.pull_mean;
                        at(passed_next, passes_to[w]) = second;
                        result[w] = STARTS ? start : here;
                    }
                    EACH_STATE(w, N) at(out, sum[r][w]) = result[w];
#else
#if NODES
                    const int clip = j - level;
                    const real *cost = block.ring_of_costs + (clip & CHUNKS * CHUNK - 1) * block.stride;
#else
                    const real *cost = block.costs + (j - begin) * block.stride;
#endif
                    // What is late is from before what values lost one column ago.
                    const real lost = j == begin ? block.shift[video[r]] : 0;
                    const real late = NODES && j == begin + 1 ? block.shift[video[r]] : 0;
                    const real drop = cost[video[r] * block.labels + pack.steps];
                    passed.value = at(column, value_slot[r]);
                    const real rest = passed.value - late - (NODES ? 0 : lost), own_in = passed.value - late - lost;
                    real own_mean_in = 0, rest_mean = 0;
#if SMOOTH
                    passed.mean = at(column, mean_slot[r]);
                    own_mean_in = passed.mean - late - lost;
                    rest_mean = passed.mean - late - (NODES ? 0 : lost);
#endif
#if CONTIGUOUS && SMOOTH
                    passed.pull = own[r].pull * slope(weight(drop + rest_mean - own[r].value), drop + rest_mean, own[r].mean);
#elif CONTIGUOUS
                    passed.pull = own[r].pull * weight(drop + rest - own[r].value);
#endif
                    real result[N];
                    EACH_STATE(w, N) {
                        const Told there = at(to, target[r][w]);
                        const real value = x[r][w], match = at(cost, label[r][w]);
                        const real share = weight(value - there.value);
                        x[r][w] = at(column, slot[r][w]);
                        const real old = x[r][w] - lost;
#if NODES
                        const bool is_node = node[w] < pack.nodes * sizeof(Kept);
                        const real in = is_node ? at(nodes, node[w]) - lost : own_in;
                        const real in_mean = !FLAT ? 0 : is_node ? at(nodes + NODE_SPACE, node[w]) - lost : own_mean_in;
#else
                        const real in = own_in, in_mean = own_mean_in;
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
#if NODES
                        // Of the node: the part of the ideal itself, if it is simple.
                        Passed all = at(passed_to + w * ideals, passed_at), second;
                        const bool simple = is_node && passes_to[w] < pack.inner * sizeof(Passed);
                        const real of_first = !is_node ? 1 : simple ? weight(own_in - in) : 0;
                        all.pull += start;
                        second.pull = all.pull - all.pull * of_first;
                        passed.pull += all.pull * of_first;
#if FLAT
                        all.pull_mean += by_mean;
                        const real moved = simple ? all.pull * of_first * (own_mean_in - in_mean) * LN2 : 0;
                        second.pull_mean = all.pull_mean - all.pull_mean * of_first + moved;
                        passed.pull_mean += all.pull_mean * of_first - moved;
                        begun[w] += by_mean;
#else
                        begun[w] += start;
#endif
                        at(passed_next, passes_to[w]) = second;
#else
                        passed.pull += start;
#if FLAT
                        passed.pull_mean += by_mean;
#endif
#endif
                        result[w] = STARTS ? start : g;
                    }
                    EACH_STATE(w, N) at(out, sum[r][w]) = result[w];
#endif
                });
#if NODES
                // The other nodes, and what comes from nodes of others.
                Passed all{}, left{};
#if !PASSES
                const real late = j == begin + 1 ? block.shift[video[0]] : 0;
#endif
                // Takes from what is left the second part of a node, with what a column keeps of it, and where it is and its first part.
                const auto second_of = [&](Kept kept, unsigned node, unsigned of_first) {
                    Passed second{};
#if SHARES
                    second.pull = left.pull * share_of_second(kept);
                    left.pull -= second.pull;
#elif SLOPES
                    second = to_second(left, kept);
                    left.pull -= second.pull;
                    left.pull_mean -= second.pull_mean;
#else
                    const bool is_node = node < pack.nodes * sizeof(Kept), of_node = of_first < pack.nodes * sizeof(Kept);
                    const real share = is_node ? weight((of_node ? at(nodes, of_first) : passed.value - late) - kept) : 1;
                    const Passed whole = left;
                    left.pull *= share;
                    second.pull = whole.pull - left.pull;
#if FLAT
                    const real *const means = nodes + NODE_SPACE;
                    const real moved = is_node ? left.pull * ((of_node ? at(means, of_first) : passed.mean - late) - at(means, node)) * LN2 : 0;
                    left.pull_mean = whole.pull_mean * share - moved;
                    second.pull_mean = whole.pull_mean - left.pull_mean;
#endif
#endif
                    return second;
                };
                Rows<Gathered> rows(block.gathered, passed_at / sizeof(Passed), gathered, gathered_end);
                _Pragma("unroll 1") for (int n = gathered; n < gathered_end; ++n) {
                    const Gathered one = rows.take(n);
                    const unsigned also = one.w >> 16, node = one.y >> 16, other = one.z >> 16, of_first = one.w & 0xffff;
                    // All is read before the first is written: nothing has to wait.
                    const Kept kept = at(nodes, node), kept_of_other = at(nodes, other);
                    const Passed added = at(one.x & INNER ? passed_next : passed_to, one.x & 0xfffc);
                    all.add(one.y & CARRIED ? left : added);
                    if (also & ALSO) all.add(at(also & INNER ? passed_next : passed_to, also & 0xfffc));
                    left = all;
                    // What goes nowhere, or not yet, has a place that is nobody's.
                    const Passed second = second_of(kept, node, other < pack.nodes * sizeof(Kept) ? other : of_first);
                    const Passed second_of_other = second_of(kept_of_other, other, of_first);
                    at(passed_next, one.x >> 16) = second;
                    at(passed_next, one.z & 0xfffc) = second_of_other;
                    at(passed_next, one.y & 0xfffc) = left;
                    if (one.y & PULL) {
                        passed.pull += left.pull;
#if FLAT
                        passed.pull_mean += left.pull_mean;
#endif
                    }
                    if (!(one.x & OPEN)) all = Passed{};
                }
                // Late by one.
#if SLOPES
                // The gradient of a state is that of the mean, and less by that of the minimum times how far it is above the mean.
                const Spread spread(at(column, value_slot[r]));
                const real pull = own[r].pull * LN2, told_ = own[r].pull_mean + pull * spread.above;
                at(next, own_at[r]) = Told{pull, told_ + told_ * spread.rest};
#else
                at(next, own_at[r]) = own[r];
#endif
#else
                at(next, own_at[r]) = passed;
#endif
                own[r] = passed;
            }
            Told *other = to;
            to = next;
            next = other;
            if (j > batch.first) ahead.await(j - 1);
            __syncthreads();
            ahead.fetch(j - STAGES, j - STAGES >= batch.first, column);
            if (j % TOGETHER) continue;
            // The gradients of each label in these clips, added up; they take the place of its costs.
#if NODES
            for (int n = blockDim.x - 1 - passed_at / sizeof(Passed) ^ 31; n < pack.adders; n += blockDim.x) block.add_up(n, j, out);
#else
            real *sums = block.costs + (j - begin) * block.stride;
            sum_.add_up(out, sums);
            for (int first = blockDim.x; first < items; first += blockDim.x)
                Sum(pack, first + item, shown_spaced, block.stride).add_up(out, sums);
#endif
        }
        __syncthreads();
        block.write_gradients(batch, begin, end);
    }
#if NODES
    __syncthreads();
    EACH_STATE(w, WIDTH) at(shown, sum[0][w]) = begun[w];
    __syncthreads();
    block.write_skip_gradients(batch, last, shown, pack.sum_start);
#endif
    if (carry && batch.first > 0) {
#if NODES
        const real *const to = (const real *)((const char *)told + (1 - (batch.first & 1)) * told_all);
        for (int n = threadIdx.x; n < told_all / (int)sizeof(real); n += blockDim.x) carry[pack.column + MEANS_LEFT + n] = to[n];
        block.unfinished(batch, batch.first, [](const real &sum, real &left) { left = sum; });
#endif
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
