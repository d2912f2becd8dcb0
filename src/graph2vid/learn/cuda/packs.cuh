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
// SLOPES is the same for smoothmin with SKIPS. There a gradient is that of a minimum and of a mean; of each state a column holds
// its share of its ideal, how much showing the step here counts beside background, and which share of the former comes from
// entering, of the minimum and (less a difference) of the mean; of each ideal, how far its mean is above its minimum.
//
// With SKIPS, a state is entered from every ideal that lacks nothing but ancestors of its step, which are waived. The minimum
// over these is a node: of an ideal, and of the steps of it that may be waived. A node is the minimum of two: of what has its last
// step (the ideal itself, or a node of the ideal), and of a node, or the ideal, without it. Where states are in registers, the lane
// of an ideal has its nodes, too. They follow from what was told for the same clip by ideals of one step less: so a lane is as
// many clips behind as its ideal has steps, and all still takes one barrier. What it tells of an ideal is its value before the
// clip, with its nodes. Backward, the lane is one clip further behind, since its states are those that others have forward: in a
// column, what is kept of ideals (and shares of nodes) is late by one, so that all that a lane reads is in one. Where states are
// in shared memory, a state that something can be waived for is a root, and warps do jobs, the minima over all its arcs; backward,
// a root tells what it passes on, and an ideal adds up its share of that of every root that it leads to. Of an alignment a step
// either begins or is waived: so the gradient of a skip cost is one less that of beginning the step.

#define FLAT (SMOOTH && !CONTIGUOUS)
#define SHARES (KEEP && !DOUBLE && SMOOTHING == 1 && CONTIGUOUS)
#define NODES (SKIPS && ROWS)
#define SLOPES (KEEP && !DOUBLE && FLAT && NODES)
#define PASSES (SHARES || SLOPES)  // a column holds no values
// What a column keeps of an ideal: the soft minimum of its states, and (smoothmin) their mean.
#define PARTS (SMOOTH && !SLOPES ? 2 : 1)
// What others read of an ideal forward: where sets of states are averaged as a whole, both.
#define TOLD (FLAT ? 2 : 1)
#define LN2 ((real)0.6931471805599453)
#define FAR (HARD ? INFINITE : (real)(DOUBLE ? 1e300 : 1e30))
#define FURTHEST (HARD ? INFINITE : (real)(DOUBLE ? 1e306 : 1e37))  // further than sums of FAR
#define MOST ((real)(DOUBLE ? 1e290 : 1e24))  // of a finite cost, in values

#if NODES
// Adds the gradients of a label that lanes of one level have at a time to those of their clip.
struct __align__(16) Adder {
    int first, pieces;  // where they are, in numbers, and how many pieces of four
    int place;          // among the labels of a clip; with OPENS, none were before
    int behind;         // how many clips the lanes are behind
};
#define OPENS 0x8000
#endif

struct Pack {
    int steps, ideals, videos, lanes, full, empty, sums;
    int column;              // numbers of a column, a multiple of 4; the last 4 belong to no one
#if NODES
    int told_nodes, nodes, inner, places, loose_count, gather_count, adders;
#elif SKIPS
    int roots, rows, back_row_count;
#endif
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
#if NODES
    const unsigned long long *missing;  // [lanes]: the steps that are waived by ending with an ideal
    const int *level;        // [lanes]: how many clips each is behind
    const int *back_level;
    const int *tied;         // [WIDTH][lanes]: where the node of a state is in a column, in bytes; not for shares
    const int4 *loose;       // [loose_count][32]: nodes that are tied to no state: the skip cost, the places of first and, above 16
                             // bits, second part, its own, and that in a column
    const int *loose_rows;   // [warps + 1]: where those of each warp begin
    const int *back_to;      // [WIDTH][lanes]: where the second part goes of the node that a state is entered from, in bytes
    const int *back_node;    // [WIDTH][lanes]: where the node is in a column, in bytes; behind the last: none
    const int4 *gather;      // [gather_count][32]: what goes back to other nodes, and to one that gets what such a node leaves: the
                             // place of what is added and, above 16 bits, of the second part; of what is left and, above 16 bits, of
                             // the node in a column; of the second part of the other node and, above 16 bits, of that node; that of
                             // what is left in a column and, above 16 bits, of what else is added; all in bytes, with INNER, OPEN,
                             // PULL, CARRIED and ALSO
    const int *gather_rows;
    const Adder *adder;      // [adders]
    const int *back_end;     // [lanes]: where the ideal is among what is told forward, in bytes
#elif SKIPS
    const unsigned long long *missing;      // [lanes]: the steps that are waived by ending with an ideal
    // Of arcs: the steps that each waives; all bits are set where there is none.
    const unsigned long long *wide_waived;  // [rows][32]
    const unsigned long long *back_waived;  // [back_row_count][32]
    const int4 *job;         // the first row; rows, a multiple of AHEAD; lanes of a root, the power of 2, and from bit 8 on how many
                             // roots; the first of them. Those of a warp lie side by side, as their rows do
    const int *job_start;    // [warps + 1]: where those of each warp begin
    const int *wide_arc;     // [rows][32]: where the ideal is that it comes from, in bytes
    const int *back_arc;     // [back_row_count][32]: the root that it leads to, in bytes of what is passed
    const int *back_rows;    // [warps + 1]: where the rows of each warp of lanes begin
    const int *back_root;    // [states]: the root, in bytes, or what is no one's
    const int *back_end;     // [lanes]: where the ideal is among what is told forward, in bytes
#endif
};

__device__ __forceinline__ real least(real a, real b) { return DOUBLE ? fmin(a, b) : fminf(a, b); }
__device__ __forceinline__ real weight(real above) { return exp2_(least(-above, 0)); }

#if PASSES
// Two shares in half precision; of one above a half, what is left of it, negative: so none may be more than all.
__device__ __forceinline__ real signed_share(real share) { return share > 0.5f ? -(1 - share) : share; }
__device__ __forceinline__ real whole_share(real kept) { return __float_as_int(kept) < 0 ? 1 + kept : kept; }
#endif

extern __shared__ double shared_memory[];

__device__ __forceinline__ int rounded(int bytes) { return (bytes + 15) & ~15; }
template <class T> __device__ __forceinline__ T &at(T *base, unsigned bytes) { return *(T *)((const char *)base + bytes); }

#if NODES
// Behind the ideals among what is told, the nodes of the lanes' w-th states lie side by side, and then those that are tied to no
// state. In a column shares lie so, too, but in pairs.
#define PAIRS ((WIDTH + 1) / 2)
#define NODES_TOLD (ideals + 5 & ~3)
#define TOLD_SPACE (pack.told_nodes + 4 & ~3)
#define NODE_SPACE (pack.nodes + 6 & ~3)  // in a column
// A node that is tied to no state, with places in bytes.
struct __align__(16) Node {
    unsigned parts;  // the places of its first and, above 16 bits, second part
    unsigned to;     // its own and, above 16 bits, that in a column
    real cost;       // of its step
};
// What a node, or an ideal, adds up, with places in bytes. Of these the last bits are free.
#define INNER 1u  // of what is added: the lane itself has told it at this clip
#define OPEN 2u   // more is to be added before anything is passed on
#define PULL 1u   // of first parts: the ideal itself
#define CARRIED 2u  // of the same: what is added is the first part that the row before left
#define ALSO 2u   // of what else is added: there is such a thing
typedef uint4 Gathered;
#if SHARES
typedef unsigned short Kept;  // of a node, in a column
#else
typedef real Kept;
#endif
#define KEPT (SLOPES ? 1 : TOLD)  // of them
// How many clips the last lane is behind backward.
#define LAG (pack.steps + 1)
#define CHUNKS (GROUP ? (pack.steps <= CHUNK ? 2 : 4) : 2 + (pack.steps + CHUNK - 1) / CHUNK)
#else
#define LAG 0
#define NODES_TOLD 0
#define TOLD_SPACE 0
#define CHUNKS (GROUP ? 1 : 2)
#endif
#if SKIPS && !ROWS
#define ROOT_COUNT (pack.roots)
// A way to enter a root: where it comes from, or where it leads to, in bytes, and what it waives.
struct __align__(2 * sizeof(real)) Arc {
    real cost;
    int place;
};
#define AHEAD 4  // of them are read before the first is used
#define EACH_AHEAD(m) _Pragma("unroll") for (int m = 0; m < AHEAD; ++m)
#else
#define ROOT_COUNT 0
#endif

struct __align__(16) Four {
    real a, b, c, d;
};

struct Block {
    const Pack pack;
    const int start, videos, ideals, labels, stride;
    double *const base;   // [pack.videos]: what the values of each have lost
    real *const shift;    // [pack.videos]: what they lose before this chunk
    int *const clips;     // [pack.videos]
    int *const video;     // [pack.videos]: their places in the batch
    const int chunk;      // numbers of the costs of a chunk
    real *const ring;     // [CHUNKS][chunk]: costs, relative to the cheapest label; those that are read ahead, too
    real *costs;          // [CHUNK][stride]: those of this chunk; or the gradients that take their place
#if NODES
    // Backward gradients are added up apart, since lanes are at different clips.
    real *const ring_of_costs;
    real *const skips;    // [pack.videos][steps], scaled
    Node *const loose;         // [loose_count][32]; forward
    Gathered *const gathered;  // [gather_count][32]; backward
    Adder *const adders;
#elif SKIPS
    real *const skips;
    Arc *const arcs;      // [rows][32], in memory
    Arc *const back_arcs; // [back_row_count][32], in memory
#endif
    real *const working;

    __device__ __forceinline__ explicit Block(const Batch &batch)
        : pack(((const Pack *)batch.graphs)[batch.graph[blockIdx.x]]), start(batch.start[blockIdx.x]),
          videos(batch.start[blockIdx.x + 1] - start), ideals(pack.ideals * pack.videos), labels(pack.steps + 1),
          stride(pack.videos * labels | 1), base(shared_memory), shift((real *)(base + pack.videos)),
          clips((int *)(shift + pack.videos)), video(clips + pack.videos),
          chunk(rounded(stride * CHUNK * sizeof(real)) / sizeof(real)),
          ring((real *)((char *)shared_memory + rounded(pack.videos * (8 + sizeof(real) + 8)))), costs(ring),
#if NODES
          ring_of_costs(ring + (GROUP ? CHUNKS * chunk : 0)),
          skips(ring + CHUNKS * chunk * (GROUP && !PASSES ? 2 : 1)),
          loose((Node *)((char *)skips + rounded(pack.videos * pack.steps * sizeof(real)))), gathered((Gathered *)loose),
          adders((Adder *)(gathered + 32 * pack.gather_count)),
          working(GROUP ? (real *)((char *)adders + rounded(pack.adders * sizeof(Adder))) : (real *)(loose + 32 * pack.loose_count)) {
#elif SKIPS
          skips(ring + CHUNKS * chunk), arcs((Arc *)(ends(batch) + (2 * ideals + 3 & ~3))), back_arcs(arcs + 32 * pack.rows),
          working((real *)((char *)skips + rounded(pack.steps * sizeof(real)))) {
#else
          working(ring + CHUNKS * chunk) {
#endif
        if (threadIdx.x < videos) {
            clips[threadIdx.x] = batch.clips[start + threadIdx.x];
            video[threadIdx.x] = batch.video[start + threadIdx.x];
            base[threadIdx.x] = batch.first > 0 ? batch.base[start + threadIdx.x] : 0;
        }
    }

#if SKIPS
    // In memory: how the videos end, by ideals as they are told forward; of smoothmin, the slopes too.
    __device__ __forceinline__ real *ends(const Batch &batch) const { return batch.spilled + batch.spilled_at[blockIdx.x]; }

    // What is waived, as a value.
    __device__ real waived(unsigned long long set) const {
        const int video = set >> 56;
        if (video >= pack.videos) return FAR;
        real total = 0;
        for (set &= (1ull << 56) - 1; set; set &= set - 1) total += skips[video * pack.steps + __ffsll(set) - 1];
        return least(total, FAR);
    }

    // Begins where videos are known, and ends with a barrier.
    __device__ void prepare_skips(const Batch &batch, real scale) const {
        for (int n = threadIdx.x; n < pack.videos * pack.steps; n += blockDim.x) {
            const int v = n / pack.steps;
            const real given = v < videos ? batch.skip[(long long)video[v] * batch.rows + n % pack.steps] : 0;
            skips[n] = !(given < INFINITE) ? FAR : HARD ? given : least(given * scale, MOST);
            if (!(given > -INFINITE)) base[v] = NOT_A_NUMBER;
        }
        __syncthreads();
#if NODES && GROUP == 0
        for (int n = threadIdx.x; n < 32 * pack.loose_count; n += blockDim.x) {
            const int4 given = pack.loose[n];
            loose[n] = Node{given.y * (unsigned)sizeof(real), given.z * (unsigned)sizeof(real) | given.w * (unsigned)sizeof(Kept) << 16,
                            given.x < 0 ? FAR : skips[given.x]};
        }
#elif NODES
        for (int n = threadIdx.x; n < pack.adders; n += blockDim.x) adders[n] = pack.adder[n];
        for (int n = threadIdx.x; n < 32 * pack.gather_count; n += blockDim.x) gathered[n] = *(const Gathered *)(pack.gather + n);
#else
        const int count = 32 * (GROUP ? pack.back_row_count : pack.rows);
        const unsigned long long *const sets = GROUP ? pack.back_waived : pack.wide_waived;
        const int *const places = GROUP ? pack.back_arc : pack.wide_arc;
        for (int begin = threadIdx.x; begin < count; begin += 4 * blockDim.x) {
            unsigned long long set[4];
            int place[4];
            _Pragma("unroll") for (int m = 0; m < 4; ++m) {  // all is on its way before the first is used
                const int n = begin + m * blockDim.x;
                set[m] = n < count ? sets[n] : 0;
                place[m] = n < count ? places[n] : 0;
            }
            _Pragma("unroll") for (int m = 0; m < 4; ++m)
                if (begin + m * blockDim.x < count) (GROUP ? back_arcs : arcs)[begin + m * blockDim.x] = Arc{waived(set[m]), place[m]};
        }
#endif
        __syncthreads();
    }

#if GROUP == 0 && !ROWS
    // The minima over all that roots are entered from, of the jobs of a warp: put(place of a root, value).
    template <class Put> __device__ __forceinline__ void enter_roots(int job, int end, const real *values, const Put &put) const {
        if (job == end) return;
        int4 own = pack.job[job];
        const int lane = threadIdx.x % 32;
        const Arc *arc = arcs + 32 * own.x + lane;
        Arc coming[AHEAD];
        EACH_AHEAD(m) coming[m] = arc[32 * m];
        while (true) {
            const bool is_last = ++job == end;
            const int4 next = is_last ? own : pack.job[job];
            real low = FURTHEST, total = 0;
            for (int rows = own.y; rows; rows -= AHEAD) {
                real x[AHEAD], least_ = low;
                EACH_AHEAD(m) x[m] = at(values, coming[m].place) + coming[m].cost;
                arc += 32 * AHEAD;
                if (!is_last || rows > AHEAD) EACH_AHEAD(m) coming[m] = arc[32 * m];
                EACH_AHEAD(m) least_ = least(x[m], least_);
                if (!HARD) {
                    total *= exp2_(least_ - low);
                    EACH_AHEAD(m) total += exp2_(least_ - x[m]);
                }
                low = least_;
            }
            const int lanes = 1 << (own.z & 7), root = lane >> (own.z & 7);  // lanes of a root
            real all = low;
            _Pragma("unroll 1") for (int o = lanes / 2; o; o /= 2) all = least(__shfl_xor_sync(~0u, all, o), all);
            if (!HARD) {
                total *= exp2_(all - low);
                _Pragma("unroll 1") for (int o = lanes / 2; o; o /= 2) total += __shfl_xor_sync(~0u, total, o);
            }
            if (root < own.z >> 8 && lane % lanes == 0)
                put((own.w + root) * (int)sizeof(real), HARD ? all : least(all - log2_(total), FAR));
            if (is_last) return;
            own = next;
        }
    }
#endif

#if GROUP == 0
    // The costs of videos that end, from what ideals tell with all that is missing waived, and how they end.
    __device__ void end(const Batch &batch, const real *told, int mean, int last, real scale) const {
        for (int v = threadIdx.x / 32; v < videos; v += blockDim.x / 32) {
            if (clips[v] + LAG > last) continue;
            const real *values = told + v * pack.ideals;
            real low = FURTHEST, total = 0, moment = 0;
            for (int i = threadIdx.x % 32; i < pack.ideals; i += 32) low = least(values[i], low);
            for (int o = 16; o; o /= 2) low = least(__shfl_xor_sync(~0u, low, o), low);
            for (int i = threadIdx.x % 32; !HARD && i < pack.ideals; i += 32) {
                const real share = exp2_(low - values[i]);
                total += share;
                if (FLAT) moment += share * values[mean + i];
            }
            for (int o = 16; o; o /= 2) {
                total += __shfl_xor_sync(~0u, total, o);
                moment += __shfl_xor_sync(~0u, moment, o);
            }
            const real inverse = 1 / total, cost = HARD ? low : FLAT ? moment * inverse : low - log2_(total);
            const bool possible = low < FAR / 2;
            if (threadIdx.x % 32 == 0) write_cost(batch, v, cost, possible, scale);
            real *const to = ends(batch) + v * pack.ideals;
            for (int i = threadIdx.x % 32; KEEP && i < pack.ideals; i += 32) {
                const real share = possible ? exp2_(low - values[i]) * inverse : 0;
                to[i] = share;
                if (FLAT) to[ideals + i] = share * (1 - (values[mean + i] - cost) * LN2);
            }
        }
    }
#else
    // The gradients of skip costs: one less those of all beginnings, which lie side by side for each label.
    __device__ void write_skip_gradients(const Batch &batch, int last, const real *begun, const int *starts) const {
        for (int q = threadIdx.x / 32; q < videos * batch.rows; q += blockDim.x / 32) {
            const int v = q / batch.rows, k = q % batch.rows;
            real total = 0;
            if (k < pack.steps)
                for (int n = starts[v * pack.steps + k] + threadIdx.x % 32; n < starts[v * pack.steps + k + 1]; n += 32) total += begun[n];
            for (int o = 16; o; o /= 2) total += __shfl_xor_sync(~0u, total, o);
            if (threadIdx.x % 32) continue;
            real *const to = batch.skip_grad + (long long)video[v] * batch.rows + k;
            const bool known = k < pack.steps && batch.own_cost[video[v]] < INFINITE && skips[v * pack.steps + k] < FAR;
            const real waived = (clips[v] + LAG <= last ? 1 : *to) - total;
            // A probability, but with smoothmin. The last to be done, the first clips, see that it is one.
            *to = !known ? 0 : (SMOOTH || batch.first > 0 ? waived : least(waived > 0 ? waived : 0, 1)) * arrives(batch, video[v]);
        }
    }
#endif
#endif

    // The cost of a video, from its value.
    __device__ void write_cost(const Batch &batch, int v, real value, bool possible, real scale) const {
        const real cost = possible || base[v] != base[v] ? (real)(base[v] + (double)value / scale) : INFINITE;
        batch.cost[video[v]] = batch.own_cost[video[v]] = cost;
    }

    // The first column that is not to be done; the same register for all lanes of a warp.
    __device__ int last(const Batch &batch) const {
        int most = 0;
        for (int v = 0; v < videos; ++v) most = clips[v] > most ? clips[v] : most;
        most += LAG;
        return __reduce_max_sync(~0u, batch.last < most ? batch.last : most);
    }

    __device__ long long shift_at(const Batch &batch, int video, int begin) const {
        return (start + video) * (long long)((batch.columns + CHUNK - 1) / CHUNK + 2) + begin / CHUNK;
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

    // Where the costs of a chunk are, or the gradients that are added up.
    __device__ __forceinline__ real *chunk_of(real *chunks, int begin) const { return chunks + begin / CHUNK % CHUNKS * chunk; }

    // Makes the costs of a chunk that were read relative to the cheapest label; what they lose is a video's base.
    __device__ void make_relative(real *chunk_, int begin, int end, real scale, bool counts) const {
        const int j = threadIdx.x % 32;
        for (int v = threadIdx.x / 32; v < videos; v += blockDim.x / 32) {
            double taken = 0;
            if (begin + j < end && begin + j < clips[v]) {
                real *own = chunk_ + j * stride + v * labels, low = INFINITE;
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
            if (j == 0 && counts) base[v] += taken;
        }
    }

    // The costs of a chunk. Begins and ends with a barrier. Forward, chunks follow one another up to `last`.
    __device__ void stage(const Batch &batch, int begin, int end, int last, real scale) {
#if GROUP == 0
        costs = chunk_of(ring, begin);
        // What lanes that are behind still need of a video that is done in parts, too.
        for (int back = begin == batch.first && begin > 0 ? CHUNKS - 2 : 0; back; --back)
            if (begin >= back * CHUNK) read(batch, begin - back * CHUNK, begin - (back - 1) * CHUNK, chunk_of(ring, begin - back * CHUNK));
        if (begin == batch.first) read(batch, begin, end, costs);
#if __CUDA_ARCH__ >= 800
        asm volatile("cp.async.wait_all;" ::: "memory");
#endif
        __syncthreads();
        for (int back = begin == batch.first && begin > 0 ? CHUNKS - 2 : 0; back; --back)
            if (begin >= back * CHUNK)
                make_relative(chunk_of(ring, begin - back * CHUNK), begin - back * CHUNK, begin - (back - 1) * CHUNK, scale, false);
        if (end < last) read(batch, end, end + CHUNK < last ? end + CHUNK : last, chunk_of(ring, end));
        make_relative(costs, begin, end, scale, true);
#elif NODES
        // The last chunk that lanes come to; at first, all that they are in.
        const int behind = (pack.steps + CHUNK - 1) / CHUNK * CHUNK;
        __syncthreads();
        for (int from = end == last ? begin : begin - behind; from >= 0 && from >= begin - behind; from -= CHUNK) 
            read(batch, from, from + CHUNK, chunk_of(ring_of_costs, from));
        __syncthreads();
        for (int from = end == last ? begin : begin - behind; from >= 0 && from >= begin - behind; from -= CHUNK)
            make_relative(chunk_of(ring_of_costs, from), from, from + CHUNK, scale, false);
#else
        __syncthreads();
        read(batch, begin, end, costs);
        __syncthreads();
        make_relative(costs, begin, end, scale, false);
#endif
        __syncthreads();
    }

#if GROUP
    // The gradients of clips of a chunk: what was added up in place of the costs, or zero beyond a video's steps and clips.
    __device__ void write_gradients(const Batch &batch, int begin, int end) const {
        if (batch.above) write_gradients(batch, begin, end, [&](long long at) { return arrives(batch, at); });
        else write_gradients(batch, begin, end, [](long long) { return (real)1; });  // nothing is multiplied
    }
    template <class Arrives> __device__ void write_gradients(const Batch &batch, int begin, int end, const Arrives &arrives) const {
        const int clip = begin / CHUNK * CHUNK + threadIdx.x % CHUNK;
        if (clip < begin || clip >= end || clip >= batch.columns) return;
        for (int v = 0; v < videos; ++v) {
            const long long at = video[v];
            const bool known = clip < clips[v] && batch.own_cost[at] < INFINITE;
            const real above = arrives(at);
            const real *sums = chunk_of(ring, clip) + clip % CHUNK * stride + v * labels;
            for (int k = threadIdx.x / CHUNK; k <= batch.rows; k += blockDim.x / CHUNK) {
                if (k < batch.rows) {
                    batch.match_grad[(at * batch.rows + k) * batch.columns + clip] = known && k < pack.steps ? sums[k] * above : 0;
                    continue;
                }
                real rest = known;
                for (int m = 0; known && m < pack.steps; ++m) rest -= sums[m];
                if (known) rest *= above;  // else 0, whatever arrives
                batch.drop_grad[at * batch.columns + clip] = rest;
            }
        }
    }
#if NODES
    // Where a clip's sums are.
    __device__ __forceinline__ real *sums_of(int clip) const { return ring + (clip & CHUNKS * CHUNK - 1) * stride; }
    // What was added up so far of clips that a part of a video leaves to the next is kept where it will be written.
    template <class Move> __device__ void unfinished(const Batch &batch, int end, const Move &move) const {
        const int begin = end > LAG ? end - LAG : 0, count = (end < clips[0] ? end : clips[0]) - begin;
        for (int n = threadIdx.x; n < count * pack.steps; n += blockDim.x) {
            const int k = n / count, clip = begin + n % count;
            move(sums_of(clip)[k], batch.match_grad[((long long)video[0] * batch.rows + k) * batch.columns + clip]);
        }
    }
    // Adds the gradients that lanes have of column j.
    __device__ __forceinline__ void add_up(int n, int j, const real *shown) const {
        const Adder own = adders[n];
        const real *from = shown + own.first;
        real total = 0;
        _Pragma("unroll 1") for (int left = own.pieces; left > 0; --left, from += 4) {
            const Four four = *(const Four *)from;
            total += four.a + four.b + (four.c + four.d);
        }
        // Before the first clip this is a place that nobody needs any more.
        real &sum = sums_of(j - own.behind)[own.place & OPENS - 1];
        sum = own.place & OPENS ? total : sum + total;
    }
#endif
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

// Columns go to the table and back as a whole. Where there is a unit for it, one thread asks it to copy; else all copy, in
// pieces of 16 bytes.
#define BULK (__CUDA_ARCH__ >= 900)
__device__ __forceinline__ bool asks() { return threadIdx.x == blockDim.x - 32; }  // of the warp that has least to do
// The same warp, the same register for all of its lanes: in a loop the other warps then pass by with one branch.
__device__ __forceinline__ bool is_last_warp() { return __reduce_max_sync(~0u, threadIdx.x / 32) == blockDim.x / 32 - 1; }

#if GROUP == 0
// Copies columns into the table, by all threads, after a barrier. After `written` and a barrier they may be overwritten, but for
// those of the last PENDING calls.
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
template <int PENDING = 0> __device__ __forceinline__ void written() {
#if BULK
    if (asks()) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
#endif
}

#else
// The gradients of one label in one clip, added up by GROUP threads; those of a label lie side by side, and zeros between.
#if !NODES
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
#endif
