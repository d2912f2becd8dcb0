// What one call of an automaton kernel works on: plain pointers only, so that the kernels can be compiled once per
// instruction set. Nodes say what is done, states are nodes with the step whose segment led to them, arcs lead into states.
// The automaton reads label sequences segment by segment; each sequence is one path. What it stands for is told in
// graph2vid/tsort/automaton.py.
//
// The lanes of a vector are states of nodes that do not wait for one another, or (`videos`) one state of LANES videos.
#pragma once
#include "job.hpp"

namespace g2v {

// What the kernels that find the least know of costs before they begin (automaton_blocks.hpp). Of several videos each number is a
// vector, here too. Where `gain` is null, nothing is known but the sums.
template <class T> struct Outlook {
    T *sums;   // [steps][rows + block]: of match costs before each time
    T *drops;  // [rows + block]: of drop costs
    T *gain;   // [steps][blocks]: what a segment that begins within a block of times costs more than background, at the least
    T *lead;  // [steps][blocks]: how much match costs are below drop costs, summed up to the end of a clip of the block, at the most
    T *later;  // [steps][blocks]: the same to a time after a time of the block, beyond the longest length
    T *lows;   // [nodes][blocks]: the least of the table above background from the first clip on
};

// Costs of a video on its automaton. A segment of L clips costs, beside its clips, length[L - 1] of its step up to
// L = longest, and `tail` more for each clip beyond. Of several videos each number stands there LANES times, once for each;
// after the end of a shorter one follow zeros. `rows` are the times 0 … clips, padded to whole blocks; `stride` is how many are
// between slots: an odd number of cache lines, so that slots do not push one another out.
template <class T> struct AutomatonCosts {
    Pause pause;
    bool videos, forbids;  // forbids: some match costs are infinite
    int64_t steps, clips, rows, stride, longest;
    const int64_t *state_start, *arc_start;  // [nodes + 1], [states + 1]
    const int32_t *state_step, *arc_from;    // [states], [arcs]
    const T *match;                          // [steps][rows]
    const T *drop;                           // [rows]
    const T *arc;                            // [arcs]
    const T *end;                            // [nodes]
    const T *length;                         // [steps][longest]
    const T *tail;                           // [steps]
    int64_t blocks;                          // of times, padded to whole vectors
    Outlook<T> outlook;
};

// Nodes that are worked out side by side, each in `spread` neighbouring lanes: state k of a node stands in lane k % spread of
// its slot k / spread. With lanes that are videos there is one node, state k in slot k; `spread` then tells in which order
// sums are formed, which is the same.
struct NodeGroup {
    int32_t node[8];
    int nodes, spread;
    int64_t slots;
};

// Lengths are looked at in blocks of so many times.
constexpr int64_t LENGTHS_BLOCK = 8;

// What every clip needs of a slot lies together: a segment that has just ended, and (of sums) its exp; the sum of match costs so
// far, a segment longer than `longest`; the cost of repeating, of a clip in the tail and of the longest length; of each time of a block all lengths
// that began before it, and the beginnings within the block; the costs of as many lengths.
enum NowRow : int64_t {
    NOW_ENDED,
    NOW_TERM,
    NOW_SUM,
    NOW_OVER,
    NOW_SELF,
    NOW_TAIL,
    NOW_LONGEST,
    NOW_SO_FAR,
    NOW_BEGUN = NOW_SO_FAR + LENGTHS_BLOCK,
    NOW_LENGTH = NOW_BEGUN + LENGTHS_BLOCK,
    NOW_LONGER = NOW_LENGTH + LENGTHS_BLOCK,  // see automaton_blocks.hpp
    NOW_ROWS = NOW_LONGER + LENGTHS_BLOCK     // an odd number
};

// What is worked out of a group: for each slot rows of one vector. What is about clips or times has `stride` of them.
template <class T> struct GroupRows {
    bool keep;                                 // all of it is wanted, not what is written to the table alone
    bool repeats;                              // some step can be repeated
    int64_t looked = 0, done = 0, passed = 0;  // see automaton_blocks.hpp
    T *match, *enter, *ended;     // [slots][stride]: enter: beginning a segment; ended: one whose last clip is gone by
    T *sum, *over;                // (longest > 1) of the finite match costs so far; a segment longer than `longest`
    T *begun;                     // (longest > 1) enter - sum; the backward pass has its own, from the last clip on
    T *begin, *leave;             // of the backward pass: what follows beginning a segment, and ending one
    T *now, *length;              // [slots][NOW_ROWS], [slots][longest + 2 blocks]
    T *own, *on;                  // [rows]: of the node; all that follows it
    T *low, *shortest;            // [slots][rows / block + 1], [slots][longest / block + 2]: least of `begun` and of `length`
    T *weight, *share;            // [slots][longest + 2 blocks], [slots][stride]: exp of -length and of -begun (of sums)
    T *lane_rows, *zero, *never;  // [LANES][rows], [rows], [rows] numbers, not vectors
    const T **from;               // [slots][3][LANES]: rows of match costs, of their sums, and of what is entered from
    T *outlook;                   // [slots][4][blocks]
    int64_t *vectors, *repeated;  // [slots]: whether what is entered from is vectors; the slots where steps may be repeated
    int64_t *newest, *busy;       // [slots]: the last block of times in which a segment began; whether there are any that may end
};

template <class T> using GroupKernel = void (*)(const AutomatonCosts<T> &, const NodeGroup &, T *table, GroupRows<T> &);

// Work out a group of which all smaller nodes are in the table [nodes][rows], and write its rows there: the least cost of being
// at a node.
struct AutomatonKernels {
    GroupKernel<float> f32;
    GroupKernel<double> f64;
    // Fill the outlook of costs, but for `lows`; with `room` for three rows [rows + longest + block]. Whether there is a gain that can be used.
    bool (*outlook_f32)(const AutomatonCosts<float> &, int64_t arcs, float *room);
    bool (*outlook_f64)(const AutomatonCosts<double> &, int64_t arcs, double *room);
};
struct SoftAutomatonKernels {
    // The same with -log of the sum of exp(-cost).
    GroupKernel<double> forward;
    // The other way round: from what follows the nodes (their rows of the table) `begin`, `leave` and `on`.
    GroupKernel<double> back;
    // From both: the mass of each clip's labels in place of `ended`, of segments that begin there in place of `leave`, of
    // background in place of `own`. `total`: [LANES] the costs of all.
    void (*mass)(const AutomatonCosts<double> &, const NodeGroup &, const double *total, GroupRows<double> &);
    // Vectors [rows] as one row of numbers for each lane, [LANES][rows].
    void (*apart)(const double *vectors, int64_t rows, double *out);
    // into[i] = softmin(into[i], from[i] + cost); of `videos` the numbers are vectors, and `cost` is one.
    void (*add)(const double *from, const double *cost, bool videos, int64_t count, double *into);
};
AutomatonKernels automaton_kernels_base();
SoftAutomatonKernels soft_automaton_kernels_base();
#if defined(G2V_HAVE_AVX2)
AutomatonKernels automaton_kernels_avx2();
SoftAutomatonKernels soft_automaton_kernels_avx2();
#endif

}  // namespace g2v
