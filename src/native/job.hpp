// What one call of a hard (min, +) kernel works on: plain pointers only, so that the kernels can be compiled once per
// instruction set and chosen at run time.
#pragma once
#include <cstdint>

namespace g2v {

// What the kernels see of whoever may stop them (watch.hpp): they say how much they have done, in updates.
struct Pause {
    void (*call)(void *, int64_t work);
    void *poll;
    void operator()(int64_t work) const { call(poll, work); }
};

// Every kernel works on vectors of 32 bytes: 8 floats or 4 doubles.
template <class T> constexpr int LANES = 32 / static_cast<int>(sizeof(T));

// A group is what one vector holds: LANES ideals of one video, or one ideal of LANES videos. A slot is one state per lane,
// all entered from ideals of one group. There are three kinds, in this order within a group:
//   straight  from another group, each lane from the same lane, one step for all lanes;
//   crossed   from another group, lanes and steps each of their own;
//   inner     from the group itself, lanes and steps each of their own.
// All lanes being videos, every slot is straight.

// Which lane each lane comes from; most slots share a few of these.
struct Pattern {
    int32_t lane[8];                 // -1: no state in this lane
    alignas(32) uint8_t same[32];    // the same as byte shuffles within the halves of a vector: 0x80 gives zero;
    alignas(32) uint8_t other[32];   // this one is for the vector with its halves swapped
    alignas(32) uint8_t absent[32];  // the bits of +inf in lanes without a state, else 0
};

// How the lanes of a group move inside it; each kind has a kernel of its own.
struct Inside {
    int half;   // slots that stay within the halves of a vector
    int cross;  // slots that may not; they come after the former
};
constexpr Inside INSIDE[] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}, {2, 1}, {0, 3}};
constexpr int INSIDE_KINDS = 6;
constexpr int MAX_INNER = 3;  // inner slots of a group

struct Slots {
    const int64_t *group_slot;     // [groups + 1]
    const int64_t *crossed;        // [groups]: the first crossed slot of each
    const int64_t *inner;          // [groups]: the first inner slot of each
    const int32_t *slot_group;     // [slots]: where it is entered from
    const int32_t *slot_step;      // [slots]: of a straight slot
    const uint8_t *group_inside;   // [groups]: index into INSIDE
    const int32_t *slot_row;       // [slots]: of a crossed slot, its row of `crossed_steps`; of an inner one, of `inner_match`
    const int32_t *crossed_steps;  // [rows][LANES]; the number of steps stands for "no state"
    const int32_t *slot_pattern;   // [slots]
    const Pattern *patterns;
    const int32_t *group_ideal;   // [groups][LANES], -1: unused
    const int64_t *group_waiver;  // [groups + 1]: what can be waived within a group, step by step in a legal order
    const int32_t *waiver_step, *waiver_pattern;  // [waivers]
    const uint8_t *paired;                        // [groups]: whether the next group is like this one and does not depend on it
};

template <class T> struct Job {
    bool videos;      // lanes are videos (else ideals): every cost is a vector
    bool contiguous;  // one unbroken segment per step
    bool skips;       // skip costs are given
    Slots slots;

    // Costs, with one row more than there are steps (+inf), padded to whole vectors of clips. Clip j of the video
    // (1-based, as in the recursion) is at position j - 1.
    const T *match;
    int64_t match_stride;
    const T *drop;
    const T *skip;
    const T *inner_match;  // [rows][match_stride][LANES]: match costs of inner slots, lane by lane
    const T *begin;        // the cost of entering each state: [slots][LANES], or [slots] if lanes are videos; null: none

    T *carry;             // [slots][LANES]: the value of every state at the last clip done
    T *block;             // [groups][row][LANES]: best of every ideal, column c is "after clip first + c"
    T *next;              // the block that follows (receives its first column); null where this one is not full
    int64_t next_stride;  // vectors from one group to the next in `next`
    int64_t width;        // columns of a block, a multiple of LANES
    int64_t row;          // vectors from one group to the next in a block: width and some padding
    int64_t first;        // clips done before this block
    int64_t clips;        // clips to do in this block, at most width
};

// Advance groups [begin, end), in this order, over the clips of one block. All groups before them are done for it.
template <class T> using Advance = void (*)(const Job<T> &, int64_t begin, int64_t end);

// The match costs of LANES steps clip by clip: out [match_stride][LANES] from match [steps][match_stride].
template <class T> using Interleave = void (*)(const T *match, int64_t match_stride, const int32_t *steps, T *out);

struct Kernels {
    const char *name;
    Advance<float> advance_f32;
    Advance<double> advance_f64;
    Interleave<float> interleave_f32;
    Interleave<double> interleave_f64;
};

Kernels kernels_base();
#if defined(G2V_HAVE_AVX2)
Kernels kernels_avx2();
#endif

}  // namespace g2v
