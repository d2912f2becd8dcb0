// What one call of a soft kernel works on: one video with its ideals in the lanes, or LANES videos of one procedure.
//
// A column holds everything after one clip: for each group, PARTS vectors that sum up its ideals; the same for a group that is
// never reached; then one vector per slot with the values of its states; then, where tables are small enough for it, what the
// forward pass knows of the gradients of each slot. Columns are kept relative to the smallest sum of the column before, so that float32 stays
// exact where it matters however many clips there are.
#pragma once
#include "job.hpp"

namespace g2v {

// How the states of a procedure lie in slots: one vector of states each, in the lanes of the ideals that they belong to.
struct SoftSlots {
    const int64_t *group_slot;    // [groups + 1]
    const int64_t *mixed;         // [groups]: the first mixed slot of each; those before it are straight
    const int32_t *slot_source;   // [slots]: straight: the group it is entered from, lane by lane; mixed: its row
    const int32_t *slot_step;     // [slots]: straight: the step of all lanes
    const int32_t *mixed_source;  // [rows][LANES]: group * LANES + lane that each lane is entered from
                                  // (the group that is never reached: no state)
    const int32_t *mixed_step;    // [rows][LANES]; the number of steps stands for "no state"
};

// Where states are entered from when steps may be waived: several ideals, each at the cost of the steps it still lacks.
struct Entries {
    const int64_t *slot_entry;  // [slots + 1]; null: each slot is entered from its group alone
    const int32_t *group;       // [entries]
    const int32_t *waived;      // [entries]: the set of steps that is waived; set 0 is empty
};

template <class T> struct SoftJob {
    Pause pause;
    bool videos, contiguous, smooth;
    bool notes;  // whether a column notes shares for the backward pass
    T gamma;
    int n_steps;
    int64_t groups, n_slots;
    SoftSlots slots;
    const T *group_unused;  // [groups][LANES]: +inf in lanes that hold no ideal, else -inf
    const T *group_start;   // [groups][LANES]: 0 in the lane of the ideal with nothing done, else +inf
    Entries entries;
    const T *waived;  // [sets][LANES]: the cost of each set
    const T *begin;   // [slots][LANES]: the cost of entering each state; null: none

    // Clip by clip, with one step more than there are, which is +inf. One number, or one per video.
    const T *match;  // [clips][steps + 1]
    const T *drop;   // [clips]

    T *match_grad;   // [clips][steps + 1][LANES]
    T *start_grad;   // the same: of steps that begin at a clip; null: not wanted
    T *drop_grad;    // [clips][LANES]
    T *waived_grad;  // [sets][LANES]
    // Gradients of the column that the backward pass has come to.
    T *weights;                       // [most slots of a group][LANES]: working memory
    T *slot_grad;                     // [slots][LANES]
    T *group_grad, *group_grad_prev;  // [groups + 1][GRADS][LANES]; the latter is zero before a clip

    int parts() const { return !contiguous && smooth ? 3 : 1; }
    int grads() const { return !contiguous && smooth ? 2 : 1; }
    // Per slot: the share of the state itself one clip before, its e in its group; not contiguous: the share of
    // background; sets: what is sent to the two parts of the set it is entered from.
    int noted() const { return !notes ? 0 : contiguous ? 2 : smooth ? 5 : 3; }
    int64_t column_numbers() const { return ((groups + 1) * parts() + n_slots * (1 + noted())) * LANES<T>; }
};

template <class T> struct SoftKernels {
    // Column `after` from column `before` by clip `clip` (from 0). `shift` [LANES] is what has to come off `before`;
    // `next_shift` receives what has to come off `after`.
    void (*forward)(const SoftJob<T> &, int64_t clip, const T *before, T *after, const T *shift, T *next_shift);
    // From the gradients of column `after` to those of column `before`, and of the costs of the clip.
    void (*backward)(const SoftJob<T> &, int64_t clip, const T *before, const T *after, const T *shift);
};

struct SoftKernelsOf {
    SoftKernels<float> f32;
    SoftKernels<double> f64;
};
SoftKernelsOf soft_kernels_base();
#if defined(G2V_HAVE_AVX2)
SoftKernelsOf soft_kernels_avx2();
#endif

}  // namespace g2v
