// What one call of an automaton kernel works on: plain pointers only, so that the kernels can be compiled once per
// instruction set. Nodes say what is done, states are nodes with the step whose segment led to them, arcs lead into states.
// The automaton reads label sequences segment by segment; each sequence is one path. What it stands for is told in
// graph2vid/tsort/automaton.py.
#pragma once
#include "job.hpp"

namespace g2v {

// One video on its automaton. A segment of L clips costs, beside its clips, length[L - 1] of its step up to L = longest, and
// `tail` more for each clip beyond. Columns of steps stand side by side: [clips][steps].
template <class T> struct AutomatonVideo {
    Pause pause;
    int64_t steps, clips, longest;
    const int64_t *state_start, *arc_start;  // [nodes + 1], [states + 1]
    const int32_t *state_step, *arc_from;    // [states], [arcs]
    const T *match;                          // [clips][steps]
    const T *drop;                           // [clips]
    const T *arc;                            // [arcs] costs
    const T *end;                            // [nodes] costs
    const T *length;                         // [longest][steps]
    const T *tail;                           // [steps]
};

// What is worked out of one node: rows of `width` numbers, one per state, padded to whole vectors. What is about clips has a
// row for each; what is about times (0 … clips clips gone by) has one more.
template <class T> struct NodeRows {
    int64_t first, states, width;
    bool repeats;             // some step can be repeated
    T *match, *length, *sum;  // [clips], [longest], [clips + 1]; sum: of the finite match costs so far
    T *enter, *ended;         // [clips + 1]: beginning a segment; one whose last clip is gone by
    T *begun, *over;          // [clips + 1], [clips + 2]: (longest > 1) enter - sum; a segment longer than `longest`
    T *begin, *leave;         // [clips + 1]: of the backward pass: what follows beginning a segment, and ending one
    T *self, *tail, *others;  // [width]: cost of repeating; tail; what is worked out of the other states
    T *on, *row;              // [clips + 1 and a vector], one number a row: all that follows the node; working memory
};

template <class T> using NodeKernel = void (*)(const AutomatonVideo<T> &, int64_t node, T *table, NodeRows<T> &);

struct AutomatonKernels {
    // Work out a node of which all smaller ones are in the table [nodes][clips + 1], and write its row: the least cost of
    // being there, or (soft) -log of the sum of exp(-cost).
    NodeKernel<float> hard_f32;
    NodeKernel<double> hard_f64, soft;
    // The other way round: from what follows a node (its row of the table) `begin`, `leave` and `on`.
    NodeKernel<double> soft_back;
    // into[i] = softmin(into[i], from[i] + cost)
    void (*soft_add)(const double *from, double cost, int64_t count, double *into);
};
AutomatonKernels automaton_kernels_base();
#if defined(G2V_HAVE_AVX2)
AutomatonKernels automaton_kernels_avx2();
#endif

}  // namespace g2v
