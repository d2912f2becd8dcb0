// Costs of grounding with skip costs, and their gradients: hard or softmin, each step one segment of clips, in float. A block
// has one video, a thread one ideal. Compiled after common.cuh; beside what it lists:
//   THREADS, BLOCKS  the most threads of a block, and the blocks that a multiprocessor should hold
//   WIDTH            the most states that end in an ideal, or are entered from it
//   GROUP            threads that add up the gradients of one label together; 0: the kernel is `forward`, not `backward`
//
// A state is entered from every ideal that lacks nothing but ancestors of its step, which are waived. The minimum over them is
// a node: of two values, one of the same ideal with less waived (its base), one of an ideal that is smaller by a step, the
// last that is waived (its child). Everything that an ideal needs is told by ideals that are smaller by one step. So time is
// skewed: in step t, an ideal of n steps does clip t - n, and no node waits within a clip. The states that are entered from an
// ideal have a node each, their root, unless nothing can be waived; what roots have as base or child beside is extra.
//
// Values are costs times log2(e) / gamma; what is infinite is FAR. The column of step t holds what the pass back needs in its
// step t: of each state that is entered from an ideal, one clip later, which share of its ideal it is and which share of itself
// began there, in half precision; the share of remaining, one clip later; of each node, the share of its base.

#define FAR (HARD ? INFINITE : 1e30f)
#define MOST 1e24f
#define EACH_STATE(w) _Pragma("unroll") for (int w = 0; w < WIDTH; ++w)

struct Extra {
    int place, child, skip, slot;  // in bytes: where it tells, where its child does, the cost of its step, its share
    int base;                      // where its base tells: the ideal, or an extra before it
    int pass, parents;             // where it passes its gradient; where those of its parents begin, and above 16 bits how many
    int step;
};

struct Levels {
    int steps, ideals, empty, column, told, passes, items, shown;
    const unsigned long long *mask;                       // [ideals]: its steps
    const int *enter, *label, *slot;                      // [WIDTH][ideals]: of the states that end in it, in bytes
    const int *stay;                                      // [ideals]: where the share of remaining is, in bytes
    const int *place, *child, *base, *skip, *share;       // [WIDTH][ideals]: of the roots of the states that are entered from it
    const int *extra_start;                               // [ideals + 1]
    const Extra *extra;
    const int *target, *out_slot, *sum, *pass, *parents, *step;  // [WIDTH][ideals]: backward, of those states and their roots
    const int *plain_parents;                             // [ideals]
    const int *item;                                      // [items][4]: gradients from, to; label; level
};

extern __shared__ double shared_memory[];
template <class T> __device__ __forceinline__ T &at(T *base, unsigned bytes) { return *(T *)((const char *)base + bytes); }
__device__ __forceinline__ real signed_share(real share) { return share > 0.5f ? -(1 - share) : share; }
__device__ __forceinline__ real whole_share(real kept) { return __float_as_int(kept) < 0 ? 1 + kept : kept; }
__device__ __forceinline__ real both(real a, real b) {
    real kept;
    asm("{.reg .f16 a, b; cvt.rn.f16.f32 a, %1; cvt.rn.f16.f32 b, %2; mov.b32 %0, {a, b};}" : "=f"(kept) : "f"(a), "f"(b));
    return kept;
}
__device__ __forceinline__ void apart(real kept, real &a, real &b) {
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}" : "=f"(a), "=f"(b) : "f"(kept));
}

template <class Join> __device__ real of_block(real value, real *scratch, real none, const Join &join) {
    for (int o = 16; o; o /= 2) value = join(value, __shfl_xor_sync(~0u, value, o));
    __syncthreads();
    if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = value;
    __syncthreads();
    value = none;
    for (int n = 0; n < blockDim.x / 32; ++n) value = join(value, scratch[n]);
    return value;
}
struct Least {
    __device__ real operator()(real a, real b) const { return fminf(a, b); }
};
struct Plus {
    __device__ real operator()(real a, real b) const { return a + b; }
};

struct Block {
    const Levels graph;
    const int video, clips, lane, level, stride;
    const bool there;
    const unsigned long long mask;
    double *const base;
    real *const shift;    // [2]
    real *const scratch;  // [32]
    real *const skips;    // [steps + 1], rounded up to 4: the last is of no step
    real *const costs;    // [2 * CHUNK][stride]
    real *const working;
    __device__ __forceinline__ explicit Block(const Batch &batch)
        : graph(((const Levels *)batch.graphs)[batch.graph[blockIdx.x]]), video(batch.video[blockIdx.x]),
          clips(batch.clips[blockIdx.x]), lane(threadIdx.x < graph.ideals ? threadIdx.x : graph.ideals - 1),
          level(__popcll(graph.mask[lane])), stride(graph.steps + 1 | 1), there(threadIdx.x < graph.ideals), mask(graph.mask[lane]),
          base(shared_memory), shift((real *)(base + 1)), scratch(shift + 2), skips(scratch + 32),
          costs(skips + (graph.steps + 4 & ~3)), working(costs + 2 * CHUNK * stride) {}

    __device__ real skip(const Batch &batch, int step, real scale) const {
        const real given = batch.skip[(long long)video * batch.rows + step];
        return !(given < INFINITE) ? FAR : HARD ? given : fminf(given * scale, MOST);
    }
};

#if GROUP == 0
#define BULK (__CUDA_ARCH__ >= 900)
// The minimum of a base and a child with what it waives, and the share of the base.
__device__ __forceinline__ real joined(real base, real child, real &share) {
#if HARD
    return fminf(base, child);
#else
    const real gap = child - base, far = exp2_(-fabs(gap)), inverse = inverse_(1 + far);
    share = gap > 0 ? inverse : far * inverse;
    return fminf(base, child) - log2_(1 + far);
#endif
}

__device__ __forceinline__ void read_costs(const Batch &batch, const Block &block, int begin) {
    const int clip = begin + threadIdx.x % 32;
    if (clip >= block.clips) return;
    real *own = block.costs + clip % (2 * CHUNK) * block.stride;
    for (int k = threadIdx.x / 32; k <= block.graph.steps; k += blockDim.x / 32) {
        const real *from = k < block.graph.steps ? batch.match + ((long long)block.video * batch.rows + k) * batch.columns
                                                 : batch.drop + (long long)block.video * batch.columns;
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"((unsigned)__cvta_generic_to_shared(own + k)), "l"(from + clip)
                     : "memory");
#else
        own[k] = from[clip];
#endif
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) forward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Levels &graph = block.graph;
    const int lane = block.lane, clips = block.clips, level = block.level, told_size = graph.told + 2;
    const real scale = HARD ? 1 : 1.4426950408889634 / batch.gamma;
    real *const told = block.working;                          // [3][told + 2]: then FAR, and what is told to no one
    real *const columns = told + (3 * told_size + 3 & ~3);     // [4][column]
    real *table = KEEP ? batch.table + batch.table_at[blockIdx.x] : nullptr;
    for (int n = threadIdx.x; n < 3 * told_size; n += blockDim.x) told[n] = FAR;
    bool strange = false;
    for (int k = threadIdx.x; k <= graph.steps; k += blockDim.x) {
        block.skips[k] = k < graph.steps ? block.skip(batch, k, scale) : FAR;
        strange |= k < graph.steps && !(batch.skip[(long long)block.video * batch.rows + k] > -INFINITE);
    }
    strange = __syncthreads_or(strange);
    if (threadIdx.x == 0) *block.base = strange ? NOT_A_NUMBER : 0;

    const unsigned none = graph.told * 4, nobody = none + 4, trash = (graph.column - 4) * 4;
    unsigned enter[WIDTH], label[WIDTH], slot[WIDTH], place[WIDTH], child[WIDTH], base[WIDTH], skip[WIDTH], share_at[WIDTH];
    real x[WIDTH];
    EACH_STATE(w) {
        const int n = w * graph.ideals + lane;
        enter[w] = block.there ? graph.enter[n] : none;
        label[w] = graph.label[n];
        slot[w] = block.there ? graph.slot[n] : trash;
        place[w] = block.there ? graph.place[n] : nobody;
        child[w] = block.there ? graph.child[n] : none;
        base[w] = graph.base[n];
        skip[w] = graph.skip[n];
        share_at[w] = block.there ? graph.share[n] : trash;
        x[w] = FAR;
    }
    const unsigned own_at = block.there ? lane * 4 : nobody, stay_at = block.there ? graph.stay[lane] : trash;
    const int extra_begin = block.there ? graph.extra_start[lane] : 0, extra_end = block.there ? graph.extra_start[lane + 1] : 0;
    real own = block.there && lane == graph.empty ? (real)0 : FAR;
    real *now = told, *before = told + told_size, *next = told + 2 * told_size;  // steps t - 2, t - 1, t
    read_costs(batch, block, 0);

    const int steps = clips + graph.steps;
    for (int t = -1; t < steps; ++t) {
        if (t % CHUNK == 0 && t >= 0 && t < clips) {
            // Level 0 enters a chunk: its costs, relative to the cheapest label, and what values lose before it.
#if __CUDA_ARCH__ >= 800
            asm volatile("cp.async.wait_all;" ::: "memory");
#endif
            __syncthreads();
            if (threadIdx.x < 32) {
                const int clip = t + threadIdx.x;
                double taken = 0;
                if (clip < clips) {
                    real *costs = block.costs + clip % (2 * CHUNK) * block.stride, low = INFINITE;
                    bool odd = false;
                    for (int k = 0; k <= graph.steps; ++k) {
                        low = fminf(costs[k], low);
                        odd |= !(costs[k] > -INFINITE);
                    }
                    for (int k = 0; k <= graph.steps; ++k)
                        costs[k] = !(costs[k] < INFINITE) ? FAR : HARD ? costs[k] - low : fminf((costs[k] - low) * scale, MOST);
                    taken = odd ? NOT_A_NUMBER : low < INFINITE ? (double)low : 0;
                }
                for (int o = 16; o; o /= 2) taken += __shfl_xor_sync(~0u, taken, o);
                real least_ = INFINITE;
                for (int i = threadIdx.x; i < graph.ideals; i += 32) least_ = fminf(before[i], least_);
                for (int o = 16; o; o /= 2) least_ = fminf(__shfl_xor_sync(~0u, least_, o), least_);
                if (threadIdx.x == 0) {
                    least_ = t > 0 && least_ < FAR / 2 ? least_ : 0;
                    block.shift[t / CHUNK % 2] = least_;
                    *block.base += taken + least_ * (HARD ? 1 : batch.gamma * 0.6931471805599453);
                }
            }
            __syncthreads();
        }
        // All have left the chunk before: the next one comes in its place.
        if (t % CHUNK == graph.steps && t - graph.steps + CHUNK < clips) read_costs(batch, block, t - graph.steps + CHUNK);
        const int j = t - level;
        if (j >= -1 && j < clips) {
            real *const column = columns + (t & 3) * graph.column;
            if (j >= 0) {
                const real *cost = block.costs + j % (2 * CHUNK) * block.stride;
                const real lost = j % CHUNK ? (real)0 : block.shift[j / CHUNK % 2];
                const real idle = cost[graph.steps] + (own - lost);
                real both_[WIDTH], least_[WIDTH], began[WIDTH], low = idle;
                EACH_STATE(w) {
                    const real old = x[w] - lost, in = at(now, enter[w]) - lost, gap = in - old;
                    const real far = HARD ? (real)0 : exp2_(-fabs(gap));
                    both_[w] = 1 + far;
                    if (KEEP) began[w] = copysign(far * inverse_(both_[w]), gap);
                    least_[w] = at(cost, label[w]) + fminf(in, old);
                    low = fminf(least_[w], low);
                    x[w] = HARD ? least_[w] : least_[w] - log2_(both_[w]);
                }
                own = low;
#if !HARD
                real total = exp2_(low - idle);
                const real left = total;
                EACH_STATE(w) {
                    both_[w] *= exp2_(low - least_[w]);
                    total += both_[w];
                }
                own -= log2_(total);
#if KEEP
                const real inverse = inverse_(total);
                real *const states = columns + (t - 2 & 3) * graph.column;
                EACH_STATE(w) at(states, slot[w]) = both(signed_share(both_[w] * inverse), began[w]);
                at(columns + (t - 1 & 3) * graph.column, stay_at) = left * inverse;
#endif
#endif
            }
            at(next, own_at) = own;
            real share = 1;
            for (int e = extra_begin; e < extra_end; ++e) {
                const Extra extra = graph.extra[e];
                at(next, extra.place) =
                    joined(at(next, extra.base), at(before, extra.child) + at(block.skips, extra.skip), share);
                if (KEEP) at(column, extra.slot) = share;
            }
            EACH_STATE(w) {
                const real from = base[w] == own_at ? own : at(next, base[w]);
                const real value = joined(from, at(before, child[w]) + at(block.skips, skip[w]), share);
                at(next, place[w]) = value;
                if (KEEP) at(column, share_at[w]) = share;
            }
        }
#if KEEP && BULK
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
        __syncthreads();
        if (KEEP && t >= 1) {  // the column of step t - 2
            const real *from = columns + (t - 2 & 3) * graph.column;
#if BULK
            if (threadIdx.x == 0)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group;" ::"l"(table),
                             "r"((unsigned)__cvta_generic_to_shared(from)), "r"(graph.column * 4)
                             : "memory");
#else
            for (int n = threadIdx.x * 4; n < graph.column; n += blockDim.x * 4) *(int4 *)(table + n) = *(const int4 *)(from + n);
#endif
            table += graph.column;
        }
        real *const oldest = now;
        now = before;
        before = next;
        next = oldest;
    }
#if KEEP
#if BULK
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
#endif
    for (int t = steps - 2; t < steps; ++t, table += graph.column)  // the last two
        for (int n = threadIdx.x * 4; n < graph.column; n += blockDim.x * 4)
            *(int4 *)(table + n) = *(const int4 *)(columns + (t & 3) * graph.column + n);
#endif
    // What is never shown is waived at the end.
    real rest = own;
    for (int k = 0; k < graph.steps; ++k)
        if (!(block.mask >> k & 1)) rest += block.skips[k];
    if (!block.there) rest = INFINITE;
    const real low = of_block(rest, block.scratch, INFINITE, Least());
    const real part = HARD ? (real)1 : exp2_(low - rest), total = HARD ? (real)1 : of_block(part, block.scratch, 0, Plus());
    const real cost = HARD ? low : low - log2_(total);
    const bool possible = cost < FAR / 2;
    if (KEEP && block.there) batch.carry[batch.carry_at[blockIdx.x] + lane] = possible ? part / total : 0;
    if (threadIdx.x == 0)
        batch.cost[block.video] = possible || *block.base != *block.base ? (real)(*block.base + (double)cost / scale) : INFINITE;
}

#else
// Copies the column of a step from the table ahead of its use, by all threads.
__device__ __forceinline__ void fetch(real *to, const real *from, int numbers) {
    for (int n = threadIdx.x * 4; n < numbers; n += blockDim.x * 4) {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((unsigned)__cvta_generic_to_shared(to + n)), "l"(from + n)
                     : "memory");
#else
        *(int4 *)(to + n) = *(const int4 *)(from + n);
#endif
    }
}

// The gradients of the parents of a node, which lie side by side.
__device__ __forceinline__ real gathered(const real *passed, int parents) {
    real total = 0;
    const real *from = passed + (parents & 0xffff);
    for (int n = 0; n < parents >> 16; ++n) total += from[n];
    return total;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) backward(const __grid_constant__ Batch batch) {
    Block block(batch);
    const Levels &graph = block.graph;
    const int lane = block.lane, clips = block.clips, level = block.level;
    const int pull_size = graph.ideals + 2, pass_size = graph.passes + 1;
    real *const sums = block.costs;                             // [2 * CHUNK][stride]: of each label
    real *const pulls = block.working;                          // [3][ideals + 2]: then 0, and what is told to no one
    real *const passed = pulls + 3 * pull_size;                 // [2][passes + 1]
    real *const kept = passed + 2 * pass_size;                  // [told]: what nodes pass to extras that are their base
    real *const waived = kept + graph.told;                     // [told]: of the extras
    real *const shown = (real *)(((size_t)(waived + graph.told) + 15) & ~(size_t)15);  // [shown + 4]
    real *const columns = shown + graph.shown + 4;              // [4][column]
    const real *table = batch.table + batch.table_at[blockIdx.x];
    const int end = (int)(columns - sums);
    for (int n = threadIdx.x; n < end; n += blockDim.x) sums[n] = 0;

    unsigned target[WIDTH], slot[WIDTH], sum[WIDTH], pass[WIDTH], base[WIDTH], share_at[WIDTH];
    int parents[WIDTH];
    real grad[WIDTH], of_root[WIDTH];
    const unsigned trash = (graph.column - 4) * 4;
    EACH_STATE(w) {
        const int n = w * graph.ideals + lane;
        target[w] = block.there ? graph.target[n] : graph.ideals * 4;
        slot[w] = block.there ? graph.out_slot[n] : trash;
        sum[w] = block.there ? graph.sum[n] : graph.shown * 4;
        pass[w] = block.there ? graph.pass[n] : graph.passes * 4;
        parents[w] = block.there ? graph.parents[n] : 0;
        base[w] = graph.base[n];
        share_at[w] = block.there ? graph.share[n] : trash;
        grad[w] = of_root[w] = 0;
    }
    const unsigned own_at = (block.there ? lane : graph.ideals + 1) * 4, stay_at = block.there ? graph.stay[lane] : trash;
    const int extra_begin = block.there ? graph.extra_start[lane] : 0, extra_end = block.there ? graph.extra_start[lane + 1] : 0;
    const int plain_parents = block.there ? graph.plain_parents[lane] : 0;
    const real ends = block.there ? batch.carry[batch.carry_at[blockIdx.x] + lane] : 0;
    real own = ends;
    const bool possible = batch.cost[block.video] < INFINITE;

    const auto write = [&](int begin, int end) {  // the gradients of clips of a chunk
        const int clip = begin / CHUNK * CHUNK + threadIdx.x % CHUNK;
        if (clip < begin || clip >= end) return;
        const bool known = possible && clip < clips;
        real *own = sums + clip % (2 * CHUNK) * block.stride;
        for (int k = threadIdx.x / CHUNK; k <= batch.rows; k += blockDim.x / CHUNK) {
            if (k < batch.rows) {
                batch.match_grad[((long long)block.video * batch.rows + k) * batch.columns + clip] = known && k < graph.steps ? own[k] : 0;
                continue;
            }
            real rest = known;
            for (int m = 0; known && m < graph.steps; ++m) rest -= own[m];
            batch.drop_grad[(long long)block.video * batch.columns + clip] = rest;
        }
    };
    __syncthreads();
    for (int begin = clips, next; begin < batch.columns; begin = next) {  // beyond the video
        next = begin / CHUNK * CHUNK + CHUNK;
        write(begin, next < batch.columns ? next : batch.columns);
    }
    const int last = clips - 1 + graph.steps;
    for (int t = last; t > last - 3; --t) {
        if (t >= -1) fetch(columns + (t & 3) * graph.column, table + (t + 1) * (long long)graph.column, graph.column);
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.commit_group;" ::: "memory");
#endif
    }
    real *next = pulls, *before = pulls + pull_size, *to = pulls + 2 * pull_size;  // steps t, t + 1, t + 2
    for (int t = last; t >= -1; --t) {
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_group 2;" ::: "memory");
#endif
        __syncthreads();
        if (t - 3 >= -1) fetch(columns + (t - 3 & 3) * graph.column, table + (t - 2) * (long long)graph.column, graph.column);
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.commit_group;" ::: "memory");
#endif
        const real *column = columns + (t & 3) * graph.column;
        const real *came = passed + (t + 1 & 1) * pass_size;
        real *const goes = passed + (t & 1) * pass_size;
        const int j = t - level;
        if (j >= -1 && j < clips) {
            real plain = gathered(came, plain_parents), start[WIDTH];
            EACH_STATE(w) start[w] = 0;
            if (j + 1 < clips) {
                plain += own * at(column, stay_at);
                EACH_STATE(w) {
                    real share, began;
                    apart(at(column, slot[w]), share, began);
                    const real g = grad[w] + at(to, target[w]) * whole_share(share);
                    start[w] = g * whole_share(began);
                    grad[w] = g - start[w];
                    at(shown, sum[w]) = STARTS ? start[w] : g;
                }
            }
            EACH_STATE(w) {
                const real g = start[w] + gathered(came, parents[w]), stays = g * at(column, share_at[w]);
                const bool is_root = share_at[w] != trash;
                at(goes, pass[w]) = is_root ? g - stays : 0;
                of_root[w] += is_root ? g - stays : 0;
                if (!is_root) plain += g;
                else if (base[w] == own_at) plain += stays;
                else at(kept, base[w]) += stays;
            }
            for (int e = extra_end - 1; e >= extra_begin; --e) {
                const Extra extra = graph.extra[e];
                const real g = at(kept, extra.place) + gathered(came, extra.parents), stays = g * at(column, extra.slot);
                at(kept, extra.place) = 0;
                at(goes, extra.pass) = g - stays;
                at(waived, extra.place) += g - stays;
                if (extra.base == own_at) plain += stays;
                else at(kept, extra.base) += stays;
            }
            own = j == clips - 1 ? ends : plain;
            at(next, own_at) = own;
        }
        __syncthreads();
        for (int n = threadIdx.x / GROUP; n < (graph.items + blockDim.x / GROUP - 1) / (blockDim.x / GROUP) * (blockDim.x / GROUP);
             n += blockDim.x / GROUP) {
            const int4 item = n < graph.items ? ((const int4 *)graph.item)[n] : make_int4(0, 0, 0, 0);
            const int clip = t - item.w + 1;
            real total = 0;
            for (int m = item.x + threadIdx.x % GROUP * 4; m < item.y; m += 4 * GROUP) {
                const float4 four = *(const float4 *)(shown + m);
                total += four.x + four.y + (four.z + four.w);
            }
            _Pragma("unroll") for (int o = GROUP / 2; o; o /= 2) total += __shfl_xor_sync(~0u, total, o);
            if (n < graph.items && threadIdx.x % GROUP == 0 && clip >= 0 && clip < clips)
                sums[clip % (2 * CHUNK) * block.stride + item.z] += total;
        }
        if ((t + 1) % CHUNK == 0 && t + 1 < clips) {
            __syncthreads();
            write(t + 1, t + 1 + CHUNK < clips ? t + 1 + CHUNK : clips);
            __syncthreads();
            for (int n = threadIdx.x; n < CHUNK * block.stride; n += blockDim.x)
                sums[(t + 1) % (2 * CHUNK) * block.stride + n] = 0;
        }
        real *const oldest = to;
        to = before;
        before = next;
        next = oldest;
    }
    for (int k = 0; k < batch.rows; ++k) {
        real total = k < graph.steps && !(block.mask >> k & 1) ? ends : 0;
        EACH_STATE(w) total += block.there && graph.step[w * graph.ideals + lane] == k ? of_root[w] : 0;
        for (int e = extra_begin; e < extra_end; ++e) total += graph.extra[e].step == k ? at(waived, graph.extra[e].place) : 0;
        total = of_block(total, block.scratch, 0, Plus());
        if (threadIdx.x == 0) batch.skip_grad[(long long)block.video * batch.rows + k] = possible && k < graph.steps ? total : 0;
    }
}
#endif
