// What the kernels share that work with packs: videos of one procedure side by side in a block. Compiled after common.cuh;
// beside what it lists:
//   THREADS, BLOCKS  the most threads of a block, and the blocks that a multiprocessor should hold
//   ROWS             ideals per thread whose states it has in registers; 0: states are in shared memory
//   WIDTH            the most states of an ideal
//   GROUP            threads that add up the gradients of one label together; 0: the kernel is `forward`, not `backward`
//   TOGETHER         clips whose gradients are added up at a time
//   STAGES           columns that are read ahead, or that wait to be written; a power of two
//   ALONE            1 few blocks, of one video each: all lanes do alike, so that no one waits for a branch
//
// All values are costs times log2(e) / gamma, so that exp(-cost / gamma) is exp2(-value). They are kept relative to the
// cheapest label of each clip, and every CHUNK clips to the best ideal of the video. What is infinite is FAR: so large that
// nothing finite counts beside it, and still a number, so that nothing has to be asked for.
//
// Forward, the lane of an ideal has the states that end in it: it reads where each was entered from. Backward, it has the
// states that are entered from it: it reads the ideal that each ends in, and adds up what they pass on in registers. So
// each direction has one barrier per clip. Lanes are sorted by their number of states. A column of the table is what the
// backward pass needs for one clip, laid out as it reads it; forward, it is put together in shared memory and copied as a
// whole; backward, those of procedures in registers are copied into shared memory some clips ahead.
//
// With SHARES, a column holds no values but how gradients pass: of each state, which share of its ideal it is, and which
// share of itself began in this clip, both in half precision; of each ideal, the share of remaining in it. Of two parts that
// make up a whole, the smaller one is kept, negative where it is the rest: either part then has the precision of a half.

#define FLAT (SMOOTH && !CONTIGUOUS)
#define SHARES (KEEP && !DOUBLE && SMOOTHING == 1 && CONTIGUOUS)
// What a column keeps of an ideal: the soft minimum of its states, and (smoothmin) their mean.
#define PARTS (SMOOTH ? 2 : 1)
// What others read of an ideal forward: where sets of states are averaged as a whole, both.
#define TOLD (FLAT ? 2 : 1)
#define LN2 ((real)0.6931471805599453)
#define FAR (HARD ? INFINITE : (real)(DOUBLE ? 1e300 : 1e30))
#define MOST ((real)(DOUBLE ? 1e290 : 1e24))  // of a finite cost, in values

struct Pack {
    int steps, ideals, videos, lanes, full, empty, sums;
    int column;              // numbers of a column, a multiple of 4; the last 4 belong to no one
#if ROWS
    const int *lane;         // [lanes]: video * ideals + ideal
    // Places in bytes: an address is then one addition.
    const int *own;          // [lanes]: where it is among what ideals tell one another
    const int *enter;        // [WIDTH][lanes]: where the ideal is that a state is entered from; there is one for no state
    const int *label;        // [WIDTH][lanes]: where its cost is
    const int *slot;         // [WIDTH + 1][lanes]: where it is in a column, or what belongs to no one; last, where the
                             // ideal is, whose mean is `lanes` further on
    const int *back_lane;    // the same, backward
    const int *back_own;
    const int *back_target;  // [WIDTH][lanes]: where the ideal is that each state ends in
    const int *back_label;
    const int *back_slot;
    const int *back_sum;     // [WIDTH][lanes]: where its gradient goes, to be added up by label
    const int *sum_start;    // [sums + 1]: the gradients of each video's steps, in numbers
#else
    // Of one video. The w-th states of all ideals that have one lie side by side, from place[w] on.
    const int *place;        // [WIDTH + 1]
    const int *own;          // [ideals]: the place of each among what ideals tell one another, in bytes
    const int *value_slot;   // [ideals]: where it is in a column, in bytes
    const int2 *link;        // [states]: the place of the ideal that each is entered from and, above 16 bits, of its cost;
                             // where it is in a column, all in bytes
    const int *back_place;   // the same, backward: as columns are laid out
    const int *back_own;
    const int *back_lane;    // [ideals]: the ideal
    const unsigned *back_link;  // [states]: the place of the ideal that each ends in, in bytes, and, above 16 bits, of its
                                // gradient, in numbers
    const int *sum_start;    // [sums + 1]: the gradients of each step
#endif
};

__device__ __forceinline__ real least(real a, real b) { return DOUBLE ? fmin(a, b) : fminf(a, b); }

#if SHARES
// Two shares in half precision; of one above a half, what is left of it, negative.
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
#endif

extern __shared__ double shared_memory[];

__device__ __forceinline__ int rounded(int bytes) { return (bytes + 15) & ~15; }
template <class T> __device__ __forceinline__ T &at(T *base, unsigned bytes) { return *(T *)((const char *)base + bytes); }

struct Block {
    const Pack pack;
    const int start, videos, ideals, labels, stride;
    double *const base;   // [pack.videos]: what the values of each have lost
    real *const shift;    // [pack.videos]: what they lose before this chunk
    int *const clips;     // [pack.videos]
    int *const video;     // [pack.videos]: their places in the batch
    real *costs;          // [CHUNK][stride]: relative to the cheapest label
    real *coming;         // the same for the chunk that is read ahead; backward there is none
    real *const working;

    __device__ __forceinline__ explicit Block(const Batch &batch)
        : pack(((const Pack *)batch.graphs)[batch.graph[blockIdx.x]]), start(batch.start[blockIdx.x]),
          videos(batch.start[blockIdx.x + 1] - start), ideals(pack.ideals * pack.videos), labels(pack.steps + 1),
          stride(pack.videos * labels | 1), base(shared_memory), shift((real *)(base + pack.videos)),
          clips((int *)(shift + pack.videos)), video(clips + pack.videos),
          costs((real *)((char *)shared_memory + rounded(pack.videos * (8 + sizeof(real) + 8)))),
          coming((real *)((char *)costs + rounded(stride * CHUNK * sizeof(real)))),
          working((real *)((char *)coming + (GROUP ? 0 : rounded(stride * CHUNK * sizeof(real))))) {
        if (threadIdx.x < videos) {
            clips[threadIdx.x] = batch.clips[start + threadIdx.x];
            video[threadIdx.x] = batch.video[start + threadIdx.x];
            base[threadIdx.x] = batch.first > 0 ? batch.base[start + threadIdx.x] : 0;
        }
    }

    // The first clip that is not to be done; the same register for all lanes of a warp.
    __device__ int last(const Batch &batch) const {
        int most = 0;
        for (int v = 0; v < videos; ++v) most = clips[v] > most ? clips[v] : most;
        return __reduce_max_sync(~0u, batch.last < most ? batch.last : most);
    }

    __device__ long long shift_at(const Batch &batch, int video, int begin) const {
        return (start + video) * (long long)((batch.columns + CHUNK - 1) / CHUNK) + begin / CHUNK;
    }

    // Reads the costs of a chunk; where the device can, without waiting for them.
    __device__ void read(const Batch &batch, int begin, int end, real *to) const {
        const int clip = begin + threadIdx.x % 32;
        for (int v = 0; v < videos; ++v) {
            if (clip >= end || clip >= clips[v]) continue;
            const real *match = batch.match + (long long)video[v] * batch.rows * batch.columns + clip;
            const real *drop = batch.drop + (long long)video[v] * batch.columns + clip;
            real *own = to + threadIdx.x % 32 * stride + v * labels;
            for (int k = threadIdx.x / 32; k < labels; k += blockDim.x / 32) {
                const real *from = k < pack.steps ? match + k * (long long)batch.columns : drop;
#if __CUDA_ARCH__ >= 800 && GROUP == 0
                asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"((unsigned)__cvta_generic_to_shared(own + k)),
                             "l"(from), "n"((int)sizeof(real))
                             : "memory");
#else
                own[k] = *from;
#endif
            }
        }
    }

    // The costs of a chunk. Begins and ends with a barrier. Forward, chunks follow one another up to `last`.
    __device__ void stage(const Batch &batch, int begin, int end, int last, real scale) {
#if GROUP == 0
        if (begin == batch.first) read(batch, begin, end, coming);
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_all;" ::: "memory");
#endif
        real *const staged = coming;
        coming = costs;
        costs = staged;
        __syncthreads();
        if (end < last) read(batch, end, end + CHUNK < last ? end + CHUNK : last, coming);
#else
        __syncthreads();
        read(batch, begin, end, costs);
        __syncthreads();
#endif
        const int j = threadIdx.x % 32;
        for (int v = threadIdx.x / 32; v < videos; v += blockDim.x / 32) {
            double taken = 0;
            if (begin + j < end && begin + j < clips[v]) {
                real *own = costs + j * stride + v * labels, low = INFINITE;
                bool strange = false;
                for (int k = 0; k < labels; ++k) {
                    low = own[k] < low ? own[k] : low;
                    strange |= !(own[k] > -INFINITE);
                }
                for (int k = 0; k < labels; ++k)
                    own[k] = !(own[k] < INFINITE) ? FAR : HARD ? own[k] - low : least((own[k] - low) * scale, MOST);
                taken = strange ? NOT_A_NUMBER : low < INFINITE ? (double)low : 0;
            }
            for (int o = 16; o; o /= 2) taken += __shfl_xor_sync(~0u, taken, o);
            if (j == 0) base[v] += taken;
        }
        __syncthreads();
    }

#if GROUP
    // The gradients of clips of a chunk: what was added up in place of the costs, or zero beyond a video's steps and clips.
    __device__ void write_gradients(const Batch &batch, int begin, int end) const {
        const int clip = begin / CHUNK * CHUNK + threadIdx.x % CHUNK;
        if (clip < begin || clip >= end) return;
        for (int v = 0; v < videos; ++v) {
            const long long at = video[v];
            const bool known = clip < clips[v] && batch.cost[at] < INFINITE;
            const real *sums = costs + clip % CHUNK * stride + v * labels;
            for (int k = threadIdx.x / CHUNK; k <= batch.rows; k += blockDim.x / CHUNK) {
                if (k < batch.rows) {
                    batch.match_grad[(at * batch.rows + k) * batch.columns + clip] = known && k < pack.steps ? sums[k] : 0;
                    continue;
                }
                real rest = known;
                for (int m = 0; known && m < pack.steps; ++m) rest -= sums[m];
                batch.drop_grad[at * batch.columns + clip] = rest;
            }
        }
    }
#endif
};

#define EACH_STATE(w, n) _Pragma("unroll") for (int w = 0; w < (n); ++w)

// Runs what is written for a fixed number of states: as many PIECEs as a warp needs, of WIDTH.
#define PIECE (ROWS ? (WIDTH + 3) / 4 : 1)
template <int N> struct Count {
    static constexpr int states = N;
};
template <int LEAST = 1, int MOST_ = (WIDTH + PIECE - 1) / PIECE, class Body>
__device__ __forceinline__ void for_states(int widest, const Body &body) {
    if constexpr (ALONE || LEAST == MOST_) {
        body(Count<(MOST_ * PIECE < WIDTH ? MOST_ * PIECE : WIDTH)>());
    } else {
        constexpr int middle = ROWS ? MOST_ - 1 : (LEAST + MOST_) / 2;  // most warps need all, or any number
        if (widest <= middle * PIECE) for_states<LEAST, middle>(widest, body);
        else for_states<middle + 1, MOST_>(widest, body);
    }
}

#if GROUP == 0
// Columns go to the table as a whole. Where there is a unit for it, one thread asks it to copy; else all do, in pieces of 16
// bytes.
#define BULK (__CUDA_ARCH__ >= 900)
__device__ __forceinline__ bool asks() { return threadIdx.x == blockDim.x - 32; }  // of the warp that has least to do
// Copies columns into the table, by all threads, after a barrier. After `written` and a barrier they may be overwritten.
__device__ __forceinline__ void write_column(real *to, const real *from, int numbers) {
#if BULK
    if (asks())
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2; cp.async.bulk.commit_group;" ::"l"(to),
                     "r"((unsigned)__cvta_generic_to_shared(from)), "r"(numbers * (int)sizeof(real))
                     : "memory");
#else
    constexpr int each = 16 / sizeof(real);
    for (int n = threadIdx.x * each; n < numbers; n += blockDim.x * each) *(int4 *)(to + n) = *(const int4 *)(from + n);
#endif
}
// Before a barrier: what was put together is seen by the unit.
__device__ __forceinline__ void complete_column() {
#if BULK
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}
__device__ __forceinline__ void written() {
#if BULK
    if (asks()) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
#endif
}

#else
// The gradients of one label in one clip, added up by GROUP threads; those of a label lie side by side, and zeros between.
struct __align__(16) Four {
    real a, b, c, d;
};
struct Sum {
    int from, to, at;
    // The n-th item of all labels in TOGETHER clips.
    __device__ __forceinline__ Sum(const Pack &pack, int n, int spaced, int stride) {
        const int t = n / GROUP % TOGETHER, q = n / (GROUP * TOGETHER);
        const bool there = n < pack.sums * TOGETHER * GROUP;
        from = there ? t * spaced + pack.sum_start[q] + n % GROUP * 4 : 0;
        to = there ? t * spaced + pack.sum_start[q + 1] : 0;
        at = there && n % GROUP == 0 ? t * stride + q + q / pack.steps : -1;
    }
    __device__ __forceinline__ void add_up(const real *shown, real *sums) const {
        real total = 0;
        _Pragma("unroll 2") for (int m = from; m < to; m += 4 * GROUP) {
            const Four four = *(const Four *)(shown + m);
            total += four.a + four.b + (four.c + four.d);
        }
        _Pragma("unroll") for (int o = GROUP / 2; o; o /= 2) total += __shfl_xor_sync(~0u, total, o);
        if (at >= 0) sums[at] = total;
    }
};
#endif
