// Costs of grounding on the GPU, and their gradients, of procedures of any size, with or without skip costs: states stay in
// memory. One block per video.
//
// Compiled at run time after common.cuh, once for each combination that is needed; beside what common.cuh lists:
//   THREADS     the most threads of a block
//   SPILL       1 what ideals and states tell one another does not fit into shared memory
//   SKIPS       1 steps may be left out, at a cost
//
// A column of the table holds the value of each state, then PARTS values for each ideal that sum up its states. Ideals are
// sorted by their number of states, most first; the w-th states of all ideals that have one lie side by side, so that
// neighbouring threads touch neighbouring numbers. Without a gradient there are two columns, used in turn.
//
// With SKIPS a state has several arcs: from the ideal without its step, and from every smaller one that lacks nothing but
// ancestors of the step, which are waived as the step begins. What is never shown is waived after the last clip. So each
// sequence of labels is counted once.

// Where sets of states are averaged as a whole, an ideal needs their soft minimum and their mean.
#define FLAT (SMOOTH && !CONTIGUOUS)
#define PARTS (FLAT ? 2 : 1)
// Where a state is entered from is such a set, too.
#define SETS (SMOOTH && (FLAT || SKIPS))

struct Graph {
    int steps, states, ideals, width, empty, full;
    const int *place;      // [width + 1]: where the w-th states begin in a column
    const int *count;      // [ideals]: how many states each has
    const int *from;       // [states]: the ideal that each is entered from
    const int *step;       // [states]
    const int *out_start;  // [ideals + 1]
    const int *out;        // [states]: the states that are entered from each ideal; with SKIPS, [arcs]: the arcs
    const int *of_start;   // [steps + 1]
    const int *of_step;    // [states]: the states of each step
#if SKIPS
    int arcs, waivers, words, wides;
    const int *arc_start;   // [states + 1]
    const int *arc_from;    // [arcs]: the ideal each comes from
    const int *arc_waived;  // [arcs]: the set of steps that it waives
    const int *end_waived;    // [ideals]: the set that is waived by ending there
    const int *wide;          // [wides]: the states of so many arcs that a warp takes them together
    const int *wide_at;       // [states]: their places in it; -1: no such state
    const unsigned long long *waived;  // [waivers][words]: the sets, a bit for each step
    __device__ bool waives(int set, int step) const { return waived[(long long)set * words + step / 64] >> step % 64 & 1; }
#endif
};

#define EACH_IDEAL(i) for (int i = threadIdx.x; i < graph.ideals; i += blockDim.x)
#define EACH_STATE(w, n) for (int w = 0; w < (n); ++w)

struct Soft {
    real scale, per_bit, inverse;  // exp(-a / gamma) = exp2(a * scale)
    __device__ explicit Soft(double gamma)
        : scale(-1.4426950408889634 / gamma), per_bit(-0.6931471805599453 * gamma), inverse(1 / gamma) {}
    __device__ real weight(real above) const { return exp2_(above * scale); }
    // How a mean changes with one of its members, a, of this share; what is infinite is no member.
    __device__ real slope(real share, real a, real mean) const {
        return share > 0 && a < INFINITE ? share * (1 - (a - mean) * inverse) : 0;
    }
    __device__ real log(real total) const { return log2_(total) * per_bit; }  // -gamma ln(total)
};

// Two values: their minimum, and how much each of them counts.
struct Pair {
    real low, high, p_low, p_high;
    bool first_low;
    __device__ Pair(const Soft &soft, real a, real b) {
        first_low = a <= b;
        low = first_low ? a : b;
        high = first_low ? b : a;
        const real far = high < INFINITE ? soft.weight(high - low) : 0;
        p_low = inverse_(1 + far);
        p_high = far * p_low;
    }
    __device__ real p_first() const { return first_low ? p_low : p_high; }
    __device__ real p_second() const { return first_low ? p_high : p_low; }
    __device__ real mean() const { return p_high > 0 ? low + (high - low) * p_high : low; }
};

__device__ __forceinline__ real minimum(const Soft &soft, real a, real b) {
    const real low = a < b ? a : b;
#if HARD
    return low;
#elif SMOOTH
    return Pair(soft, a, b).mean();
#else
    const real high = a < b ? b : a;
    return high < INFINITE ? low + soft.log(1 + soft.weight(high - low)) : low;
#endif
}

__device__ __forceinline__ real times(real weight, real value) { return weight > 0 ? weight * value : 0; }

// The costs of the clips of a chunk, relative to the cheapest label of each: [CHUNK][steps + 1], drop last.
struct Costs {
    real *at;
    int stride;
    // Returns what was taken off, in all threads: NaN where a cost is NaN or -inf. Begins and ends with a barrier.
    __device__ double stage(const Batch &batch, int video, int steps, int first, int clips, double *sum) {
        stride = steps + 1;
        __syncthreads();
        for (int n = threadIdx.x; n < stride * CHUNK; n += blockDim.x) {
            const int k = n / CHUNK, j = n % CHUNK;
            if (j >= clips) continue;
            at[j * stride + k] = k < steps ? batch.match[((long long)video * batch.rows + k) * batch.columns + first + j]
                                           : batch.drop[(long long)video * batch.columns + first + j];
        }
        __syncthreads();
        if (threadIdx.x < 32) {
            real low = INFINITE;
            bool strange = false;
            if (threadIdx.x < clips) {
                real *own = at + threadIdx.x * stride;
                for (int k = 0; k < stride; ++k) {
                    low = own[k] < low ? own[k] : low;
                    strange |= !(own[k] > -INFINITE);
                }
                if (low < INFINITE)
                    for (int k = 0; k < stride; ++k) own[k] -= low;
            }
            double total = strange ? NOT_A_NUMBER : low < INFINITE ? (double)low : 0.0;
            for (int o = 16; o; o /= 2) total += __shfl_xor_sync(~0u, total, o);
            if (threadIdx.x == 0) *sum = total;
        }
        __syncthreads();
        return *sum;
    }
};

__device__ __forceinline__ real lowest(real value, real *scratch) {
    for (int o = 16; o; o /= 2) {
        const real other = __shfl_xor_sync(~0u, value, o);
        value = other < value ? other : value;
    }
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    for (int n = 0; n < blockDim.x / 32; ++n) value = scratch[n] < value ? scratch[n] : value;
    return value;
}

__device__ __forceinline__ real sum_of(real value, real *scratch) {
    for (int o = 16; o; o /= 2) value += __shfl_xor_sync(~0u, value, o);
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0;
    for (int n = 0; n < blockDim.x / 32; ++n) value += scratch[n];
    return value;
}

#if SKIPS
__device__ void put_waiver_costs(const Batch &batch, const Graph &graph, int video, real *waiver_cost) {
    for (int set = threadIdx.x; set < graph.waivers; set += blockDim.x) {
        real total = 0;
        for (int k = 0; k < graph.steps; ++k)
            if (graph.waives(set, k)) total += batch.skip[(long long)video * batch.rows + k];
        waiver_cost[set] = total;
    }
}

// Ideals taken together, each with the cost of what is waived: the minimum, and (SMOOTH) the mean of their members.
struct Waiving {
    const Graph &graph;
    const Soft &soft;
    const real *value, *mean;  // of the ideals
    const real *waiver_cost;
    real lost;
    __device__ real of(int ideal, int set) const { return value[ideal] - lost + waiver_cost[set]; }
    __device__ real mean_of(int ideal, int set) const { return mean[ideal] - lost + waiver_cost[set]; }
};

template <int LANES> __device__ __forceinline__ real lowest_of_lanes(real value) {
    for (int o = LANES / 2; o; o /= 2) {
        const real other = __shfl_xor_sync(~0u, value, o);
        value = other < value ? other : value;
    }
    return value;
}

template <int LANES> __device__ __forceinline__ real sum_of_lanes(real value) {
    for (int o = LANES / 2; o; o /= 2) value += __shfl_xor_sync(~0u, value, o);
    return value;
}

struct Minimum {
    real value, mean;
};

// The minimum over a set of ideals; each thread takes every `stride`-th member, and all threads of the set get the result.
template <class Set> __device__ __forceinline__ Minimum minimum_over(const Waiving &from, const Set &set) {
    Minimum found{INFINITE, INFINITE};
    for (int n = set.begin; n < set.end; n += set.stride) {
        const real a = from.of(set.ideal(n), set.waived(n));
        found.value = a < found.value ? a : found.value;
    }
    found.value = set.lowest(found.value);
#if !HARD
    if (found.value == INFINITE) return found;
    real total = 0, moment = 0;
    for (int n = set.begin; n < set.end; n += set.stride) {
        const real weight = from.soft.weight(from.of(set.ideal(n), set.waived(n)) - found.value);
        total += weight;
        if (SMOOTH) moment += times(weight, from.mean_of(set.ideal(n), set.waived(n)) - found.value);
    }
    total = set.sum(total);
    if (SMOOTH) found.mean = found.value + set.sum(moment) * inverse_(total);
    found.value += from.soft.log(total);
#endif
    return found;
}

// The arcs of a state, by one thread or by the lanes of a warp.
template <int LANES> struct Arcs {
    const Graph &graph;
    int begin, end;
    static const int stride = LANES;
    __device__ Arcs(const Graph &graph, int state)
        : graph(graph), begin(graph.arc_start[state] + threadIdx.x % LANES), end(graph.arc_start[state + 1]) {}
    __device__ int ideal(int arc) const { return graph.arc_from[arc]; }
    __device__ int waived(int arc) const { return graph.arc_waived[arc]; }
    __device__ real lowest(real value) const { return lowest_of_lanes<LANES>(value); }
    __device__ real sum(real value) const { return sum_of_lanes<LANES>(value); }
};

// All ideals, by all threads of a block: what is missing is waived at the end.
struct Ends {
    const Graph &graph;
    real *scratch;
    int begin, end, stride;
    __device__ Ends(const Graph &graph, real *scratch)
        : graph(graph), scratch(scratch), begin(threadIdx.x), end(graph.ideals), stride(blockDim.x) {}
    __device__ int ideal(int ideal) const { return ideal; }
    __device__ int waived(int ideal) const { return graph.end_waived[ideal]; }
    __device__ real lowest(real value) const {
        __syncthreads();
        return ::lowest(value, scratch);
    }
    __device__ real sum(real value) const { return sum_of(value, scratch); }
};

// The wide states, by all threads of a block: [WIDE_PARTS][wides]. Ends with a barrier.
enum { WIDE_VALUE, WIDE_MEAN, WIDE_SHOWN, WIDE_SHARE, WIDE_CHOSEN, WIDE_PARTS };
__device__ void enter_wide(const Waiving &from, real *wide) {
    const int wides = from.graph.wides;
    for (int n = threadIdx.x / 32; n < wides; n += blockDim.x / 32) {
        const Minimum in = minimum_over(from, Arcs<32>(from.graph, from.graph.wide[n]));
        if (threadIdx.x % 32) continue;
        wide[WIDE_VALUE * wides + n] = in.value;
        wide[WIDE_MEAN * wides + n] = in.mean;
    }
    __syncthreads();
}

__device__ __forceinline__ Minimum entered(const Waiving &from, const real *wide, int state) {
    const int n = from.graph.wide_at[state], wides = from.graph.wides;
    if (n < 0) return minimum_over(from, Arcs<1>(from.graph, state));
    return {wide[WIDE_VALUE * wides + n], wide[WIDE_MEAN * wides + n]};
}

// The gradient of a state as shown, passed on to where it was entered from. `to_enter` is the share of its arcs, `chosen`
// what they gave with the state one clip before.
template <int LANES>
__device__ void pass_to_arcs(const Waiving &from, int state, real shown, real enter, real to_enter, real chosen, real *pass,
                                long long pass_stride, real *of_arc) {
    const Graph &graph = from.graph;
    for (int e = graph.arc_start[state] + threadIdx.x % LANES; e < graph.arc_start[state + 1]; e += LANES) {
        const int ideal = graph.arc_from[e], set = graph.arc_waived[e];
        const real share = enter < INFINITE ? to_enter * from.soft.weight(from.of(ideal, set) - enter) : (real)0;
        const real sloped = SMOOTH ? from.soft.slope(share, from.mean_of(ideal, set), chosen) : share;
        pass[e] = shown * (FLAT ? share : sloped);
        if (FLAT) pass[pass_stride + e] = shown * sloped;
        of_arc[e] += shown * sloped;
    }
}
#endif

__device__ __forceinline__ long long column_size(const Graph &graph) { return graph.states + PARTS * (long long)graph.ideals; }

extern __shared__ double shared_memory[];

// What a block works on, and where; clips `batch.first` ... last - 1 are to be done.
struct Block {
    const int video;
    const Graph graph;
    const int clips, last;
    const Soft soft;
    const long long size;  // of a column
    real *const table;
    double *const sum;     // from here on in shared memory
    real *const scratch;   // [32]
    int *const place;      // as in Graph
    Costs costs;
    real *const working;   // what ideals and states tell one another; may be spilled

    __device__ __forceinline__ explicit Block(const Batch &batch)
        : video(batch.video[blockIdx.x]), graph(((const Graph *)batch.graphs)[batch.graph[blockIdx.x]]), clips(batch.clips[blockIdx.x]),
          last(batch.last < clips ? batch.last : clips), soft(batch.gamma), size(column_size(graph)),
          table(batch.table + batch.table_at[blockIdx.x]), sum(shared_memory),
          scratch((real *)(shared_memory + 1)), place((int *)(scratch + 32)),
          costs{(real *)(place + ((graph.width + 2) & ~1))},
          working(SPILL ? batch.spilled + batch.spilled_at[blockIdx.x] : costs.at + (graph.steps + 1) * CHUNK) {
        for (int w = threadIdx.x; w <= graph.width; w += blockDim.x) place[w] = graph.place[w];
    }
};

// The names of what a block works on, for the body of a kernel.
#define UNPACK(block)                                              \
    const Graph &graph = (block).graph;                            \
    const Soft &soft = (block).soft;                               \
    Costs &costs = (block).costs;                                  \
    const int video = (block).video, clips = (block).clips, last = (block).last; \
    const long long size = (block).size;                           \
    double *const sum = (block).sum;                               \
    real *const scratch = (block).scratch;                         \
    const int *const place = (block).place

// From the column before clip `first` to that after clip `last - 1`.
extern "C" __global__ void __launch_bounds__(THREADS) forward(const __grid_constant__ Batch batch) {
    Block block(batch);
    UNPACK(block);
    if (batch.first >= clips) return;
    const auto column = [&](int j) { return block.table + (KEEP ? j - batch.first : (j - batch.first) & 1) * size; };

    real *best = block.working;
#if SKIPS
    real *waiver_cost = best + 2 * PARTS * (graph.ideals + 1), *wide = waiver_cost + graph.waivers;
    put_waiver_costs(batch, graph, video, waiver_cost);
#endif
    __syncthreads();

    real *before_x, *after_x;
    // States that are not there are entered from an ideal that is never reached.
    const int stride = graph.ideals + 1;
    for (int n = threadIdx.x; n < 2 * PARTS; n += blockDim.x) best[n * stride + graph.ideals] = INFINITE;
    if (batch.first > 0) {
        for (long long n = threadIdx.x; n < size; n += blockDim.x) column(batch.first)[n] = batch.resumed[n];
        __syncthreads();
    }
    // What is done at the start: nothing.
    EACH_IDEAL(i) {
        real value = i == graph.empty ? (real)0 : INFINITE, mean = value;
        if (batch.first > 0) {
            value = column(batch.first)[graph.states + i];
            if (FLAT) mean = column(batch.first)[graph.states + graph.ideals + i];
        }
        best[i] = value;
        if (FLAT) best[stride + i] = mean;
        if (batch.first == 0) {
            const int n = graph.count[i];
            for (int w = 0; w < n; ++w) column(0)[place[w] + i] = INFINITE;
        }
        if (batch.first == 0) {
            column(0)[graph.states + i] = value;
            if (FLAT) column(0)[graph.states + graph.ideals + i] = mean;
        }
    }
    double base = batch.first > 0 ? batch.base[blockIdx.x] : 0;
#if SKIPS
    for (int k = 0; k < graph.steps; ++k)
        if (!(batch.skip[(long long)video * batch.rows + k] > -INFINITE)) base = NOT_A_NUMBER;
#endif
    const real *now = best;
    real *next = best + PARTS * stride;

    for (int begin = batch.first; begin < last; begin += CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
        base += costs.stage(batch, video, graph.steps, begin, end - begin, sum);
        real shift = 0;
        if (begin > 0) {
            real low = INFINITE;
            EACH_IDEAL(i) low = now[i] < low ? now[i] : low;
            low = lowest(low, scratch);
            shift = low < INFINITE ? low : 0;
            base += shift;
            if (threadIdx.x == 0 && KEEP)
                batch.shift[blockIdx.x * (long long)((batch.columns + CHUNK - 1) / CHUNK) + begin / CHUNK] = shift;
        }
        for (int j = begin; j < end; ++j) {
            const real *cost = costs.at + (j - begin) * costs.stride;
            const real drop = cost[graph.steps];
            const real lost = j == begin ? shift : 0;  // what `now` has not lost yet
            real *after = column(j + 1);
            before_x = column(j);
            after_x = after;
#if SKIPS
            const Waiving waiving{graph, soft, now, now + (FLAT ? stride : 0), waiver_cost, lost};
            enter_wide(waiving, wide);
#endif
            EACH_IDEAL(i) {
                const int n = graph.count[i];
                const real rest = now[i] - lost;
                real low = CONTIGUOUS || i == graph.empty ? drop + rest : INFINITE;
                const real idle = low;
                EACH_STATE(w, n) {
                    const real old = before_x[place[w] + i] - lost;
#if SKIPS
                    const Minimum in = entered(waiving, wide, place[w] + i);
                    const real enter = in.value, set_mean = in.mean;
#else
                    const int from = graph.from[place[w] + i];
                    const real enter = now[from] - lost, set_mean = FLAT ? now[stride + from] - lost : 0;
#endif
#if SETS
                    const Pair pair(soft, enter, old);
                    const real p = pair.p_first(), q = pair.p_second();
                    const real mean = pair.low < INFINITE ? times(p, set_mean) + times(q, old) : INFINITE;
                    real value = cost[graph.step[place[w] + i]] + mean;
#else
                    real value = cost[graph.step[place[w] + i]] + minimum(soft, enter, old);
#endif
                    if (!CONTIGUOUS) value = minimum(soft, value, drop + old);
                    after_x[place[w] + i] = value;
                    low = value < low ? value : low;
                }
                real value = low, mean = low;
#if !HARD
                if (low < INFINITE) {
                    real total = idle < INFINITE ? soft.weight(idle - low) : 0, moment = times(total, idle - low);
                    EACH_STATE(w, n) {
                        const real above = after_x[place[w] + i] - low, weight = soft.weight(above);
                        total += weight;
                        if (SMOOTH) moment += times(weight, above);
                    }
                    if (SMOOTH) mean = low + moment * inverse_(total);
                    value = CONTIGUOUS && SMOOTH ? mean : low + soft.log(total);
                }
#endif
                next[i] = value;
                if (FLAT) next[stride + i] = mean;
                after[graph.states + i] = value;
                if (FLAT) after[graph.states + graph.ideals + i] = mean;
            }
            real *other = (real *)now;
            now = next;
            next = other;
            __syncthreads();
        }
    }
    if (batch.to_resume)
        for (long long n = threadIdx.x; n < size; n += blockDim.x) batch.to_resume[n] = column(last)[n];
    if (threadIdx.x == 0) batch.base[blockIdx.x] = base;
    if (last == clips) {
#if SKIPS
        const Minimum end = minimum_over(Waiving{graph, soft, now, now + (FLAT ? stride : 0), waiver_cost, 0}, Ends(graph, scratch));
        const real cost = SMOOTH ? end.mean : end.value;
#else
        const real cost = now[(FLAT ? stride : 0) + graph.full];
#endif
        if (threadIdx.x == 0) batch.cost[video] = (real)(base + (double)cost);
    }
}

#if KEEP
// From the gradients of the column after clip `last - 1` to those of the column before clip `first`. The value of each state
// in the table gives way to the gradient of its match cost.
extern "C" __global__ void __launch_bounds__(THREADS) backward(const __grid_constant__ Batch batch) {
    Block block(batch);
    UNPACK(block);
    if (batch.first >= clips) return;
    const auto column = [&](int j) { return block.table + (j - batch.first) * size; };

    // Two buffers each: the values of the ideals one clip back, and what states pass to the ideals they were entered from.
    real *values = block.working;
#if SKIPS
    const int passes = graph.arcs;
#else
    const int passes = graph.states;
#endif
    const long long stride = graph.ideals + 1, pass_stride = passes + 1;
    real *passed = values + 2 * PARTS * stride;
    for (int n = threadIdx.x; n < 2 * PARTS; n += blockDim.x) {
        values[n * stride + graph.ideals] = INFINITE;
        passed[n * pass_stride + passes] = 0;
    }
#if SKIPS
    real *waiver_cost = passed + 2 * PARTS * pass_stride, *wide = waiver_cost + graph.waivers;
    put_waiver_costs(batch, graph, video, waiver_cost);
#endif
    __syncthreads();

    real *carry = batch.carry ? batch.carry + batch.carry_at[blockIdx.x] : nullptr;
    const bool ends = last == clips;
    real *pulls = carry + graph.states;  // [PARTS][ideals]
    const real *final_ = column(last) + graph.states;
#if SKIPS
    real *of_arc = pulls + PARTS * graph.ideals, *of_end = of_arc + graph.arcs;  // gradients of what is waived
    const Waiving at_end{graph, soft, final_, final_ + (FLAT ? graph.ideals : 0), waiver_cost, 0};
    const Minimum whole = minimum_over(at_end, Ends(graph, scratch));
    for (int e = threadIdx.x; ends && e < graph.arcs; e += blockDim.x) of_arc[e] = 0;
#else
    const bool possible = final_[graph.full] < INFINITE;
#endif
    EACH_IDEAL(i) {
        if (ends) {
            const int n = graph.count[i];
            for (int w = 0; w < n; ++w) carry[place[w] + i] = 0;
#if SKIPS
            const int set = graph.end_waived[i];
            const real share = whole.value < INFINITE ? soft.weight(at_end.of(i, set) - whole.value) : (real)0;
            const real sloped = SMOOTH ? soft.slope(share, at_end.mean_of(i, set), whole.mean) : share;
            pulls[i] = FLAT ? share : sloped;
            if (FLAT) pulls[graph.ideals + i] = sloped;
            of_end[i] = sloped;
#else
            pulls[i] = i == graph.full && possible;
            if (FLAT) pulls[graph.ideals + i] = pulls[i];
#endif
        }
        values[i] = column(last - 1)[graph.states + i];
        if (FLAT) values[stride + i] = column(last - 1)[graph.states + graph.ideals + i];
    }

    int side = 0;
    for (int begin = (last - 1) / CHUNK * CHUNK; begin >= batch.first; begin -= CHUNK) {
        const int end = begin + CHUNK < last ? begin + CHUNK : last;
        costs.stage(batch, video, graph.steps, begin, end - begin, sum);
        const real shift =
            begin > 0 ? batch.shift[blockIdx.x * (long long)((batch.columns + CHUNK - 1) / CHUNK) + begin / CHUNK] : (real)0;
        for (int j = end - 1; j >= begin; --j) {
            const real *cost = costs.at + (j - begin) * costs.stride;
            const real drop = cost[graph.steps];
            const real lost = j == begin ? shift : 0;
            const real *before = values + side * PARTS * stride;
            real *ahead = values + (1 - side) * PARTS * stride;
            real *pass = passed + side * PARTS * pass_stride;
            real *here = column(j + 1);
            const real *back = column(j);
            const bool more = j > batch.first;
#if SKIPS
            const Waiving waiving{graph, soft, before, before + (FLAT ? stride : 0), waiver_cost, lost};
            enter_wide(waiving, wide);
#endif
            EACH_IDEAL(i) {
                const int n = graph.count[i];
                const real value = here[graph.states + i], value_before = back[graph.states + i] - lost;
                const real mean = FLAT ? here[graph.states + graph.ideals + i] : 0;
                const real g = pulls[i], g_mean = FLAT ? pulls[graph.ideals + i] : 0;
                real stay = 0;  // to the same ideal, one clip back
#if CONTIGUOUS
                const real idle = drop + value_before;
#if SMOOTH
                real low = idle, total = 0;
                EACH_STATE(w, n) low = here[place[w] + i] < low ? here[place[w] + i] : low;
                if (low < INFINITE) {
                    total = soft.weight(idle - low);
                    EACH_STATE(w, n) total += soft.weight(here[place[w] + i] - low);
                    total = inverse_(total);
                }
#define SHARE(a) (low < INFINITE ? soft.slope(soft.weight((a) - low) * total, a, value) : (real)0)
#else
#define SHARE(a) (value < INFINITE ? soft.weight((a) - value) : (real)0)
#endif
                stay = g * SHARE(idle);
#else
#if FLAT
                // Of a set: g is what its members pull together, g_mean the same with the slope at the set's mean.
#define SHARE(a) (value < INFINITE ? times(soft.weight((a) - value), g_mean - g * ((a) - mean) * soft.inverse) : (real)0)
#else
#define SHARE(a) (value < INFINITE ? soft.weight((a) - value) : (real)0)
#endif
#endif
                EACH_STATE(w, n) {
                    const real now = here[place[w] + i], old = back[place[w] + i] - lost;
#if SKIPS
                    const Minimum in = entered(waiving, wide, place[w] + i);
                    const real enter = in.value, set_mean = in.mean;
#else
                    const int from = graph.from[place[w] + i];
                    const real enter = before[from] - lost, set_mean = FLAT ? before[stride + from] - lost : 0;
#endif
                    real g_now = carry[place[w] + i] + (FLAT ? SHARE(now) : g * SHARE(now));
                    const Pair pair(soft, enter, old);
                    real to_enter = pair.p_first(), to_old = pair.p_second(), to_mean = 0, keep = 0;
#if SETS
                    const real joint = pair.low < INFINITE ? times(to_enter, set_mean) + times(to_old, old) : INFINITE;
                    to_mean = soft.slope(to_enter, set_mean, joint);
                    to_old = soft.slope(to_old, old, joint);
                    const real chosen = joint;
#elif SMOOTH
                    const real chosen = pair.mean();
                    to_enter = soft.slope(to_enter, enter, chosen);
                    to_old = soft.slope(to_old, old, chosen);
#else
                    const real chosen = CONTIGUOUS ? (real)0 : minimum(soft, enter, old);
#endif
                    real shown = g_now;
                    if (!CONTIGUOUS) {
                        const Pair label(soft, cost[graph.step[place[w] + i]] + chosen, drop + old);
                        real p = label.p_first(), q = label.p_second();
                        if (SMOOTH) {
                            const real middle = label.mean();
                            p = soft.slope(p, cost[graph.step[place[w] + i]] + chosen, middle);
                            q = soft.slope(q, drop + old, middle);
                        }
                        shown = g_now * p;
                        keep = g_now * q;
                    }
                    carry[place[w] + i] = shown * to_old + keep;
#if SKIPS
                    if (const int n = graph.wide_at[place[w] + i]; n < 0) {
                        pass_to_arcs<1>(waiving, place[w] + i, shown, enter, to_enter, chosen, pass, pass_stride, of_arc);
                    } else {
                        wide[WIDE_SHOWN * graph.wides + n] = shown;
                        wide[WIDE_SHARE * graph.wides + n] = to_enter;
                        wide[WIDE_CHOSEN * graph.wides + n] = chosen;
                    }
#else
                    pass[place[w] + i] = shown * to_enter;
                    if (FLAT) pass[pass_stride + place[w] + i] = shown * to_mean;
#endif
                    here[place[w] + i] = STARTS ? shown * to_enter : shown;
                }
                if (more) {
                    ahead[i] = column(j - 1)[graph.states + i];
                    if (FLAT) ahead[stride + i] = column(j - 1)[graph.states + graph.ideals + i];
                }
                pulls[i] = stay;
            }
            __syncthreads();
#if SKIPS
            for (int n = threadIdx.x / 32; n < graph.wides; n += blockDim.x / 32) {
                const auto part = [&](int kind) { return wide[kind * graph.wides + n]; };
                pass_to_arcs<32>(waiving, graph.wide[n], part(WIDE_SHOWN), part(WIDE_VALUE), part(WIDE_SHARE),
                                    part(WIDE_CHOSEN), pass, pass_stride, of_arc);
            }
            __syncthreads();
#endif
            EACH_IDEAL(i) {
                real g = 0, g_mean = 0;
                for (int n = graph.out_start[i]; n < graph.out_start[i + 1]; ++n) {
                    g += pass[graph.out[n]];
                    if (FLAT) g_mean += pass[pass_stride + graph.out[n]];
                }
                pulls[i] += g;
                if (FLAT) pulls[graph.ideals + i] = g_mean;
            }
            side = 1 - side;
        }
    }
}

// The gradients of the states of each step, added up: of match costs, and of drop costs as what is left of one.
// GROUP threads work on one number. Grid: tiles of clips x steps, and the blocks' videos.
extern "C" __global__ void __launch_bounds__(256) collect(const __grid_constant__ Batch batch, const int group) {
    const int video = batch.video[blockIdx.y];
    const Graph graph = ((const Graph *)batch.graphs)[batch.graph[blockIdx.y]];
    const int clips = batch.clips[blockIdx.y];
    const int lane = threadIdx.x % group;
    const int clip = batch.first + blockIdx.x * (256 / group) + threadIdx.x / group;
    if (clip >= batch.last || clip >= batch.columns) return;
    const real *column = batch.table + batch.table_at[blockIdx.y] + (clip + 1 - batch.first) * column_size(graph);
    const real cost = batch.cost[video];
    const bool shown = clip < clips && cost < INFINITE;
    real all = 0;
    for (int k = 0; k < batch.rows; ++k) {
        real total = 0;
        if (shown && k < graph.steps)
            for (int n = graph.of_start[k] + lane; n < graph.of_start[k + 1]; n += group) total += column[graph.of_step[n]];
        for (int o = group / 2; o; o /= 2) total += __shfl_xor_sync(__activemask(), total, o);
        all += total;
        if (lane == 0) batch.match_grad[((long long)video * batch.rows + k) * batch.columns + clip] = total;
    }
    if (lane == 0) batch.drop_grad[(long long)video * batch.columns + clip] = shown ? 1 - all : 0;
}

#if SKIPS
// The gradients of all sets that a step is in, added up. Grid: steps, and the blocks' videos.
extern "C" __global__ void __launch_bounds__(256) collect_skips(const __grid_constant__ Batch batch) {
    __shared__ real scratch[32];
    const int k = blockIdx.x, video = batch.video[blockIdx.y];
    const Graph graph = ((const Graph *)batch.graphs)[batch.graph[blockIdx.y]];
    const real *of_arc = batch.carry + batch.carry_at[blockIdx.y] + graph.states + PARTS * (long long)graph.ideals;
    const real *of_end = of_arc + graph.arcs;
    real total = 0;
    if (k < graph.steps && batch.cost[video] < INFINITE) {
        for (int e = threadIdx.x; e < graph.arcs; e += blockDim.x)
            if (graph.waives(graph.arc_waived[e], k)) total += of_arc[e];
        for (int i = threadIdx.x; i < graph.ideals; i += blockDim.x)
            if (graph.waives(graph.end_waived[i], k)) total += of_end[i];
    }
    total = sum_of(total, scratch);
    if (threadIdx.x == 0) batch.skip_grad[(long long)video * batch.rows + k] = total;
}
#endif
#endif
