// The machine: nodes (what is done), states (a node with the step whose run led to it), priced entries. It reads label
// sequences run by run; each sequence is one path. What it stands for is told in graph2vid/tsort/automaton.py.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "watch.hpp"

namespace g2v {

struct Machine {
    int n_steps = 0;
    std::vector<int64_t> state_start, entry_start;
    std::vector<int32_t> state_step, entry_from;

    int64_t nodes() const { return static_cast<int64_t>(state_start.size()) - 1; }
    int64_t states_of(int64_t node) const { return state_start[node + 1] - state_start[node]; }
    int64_t widest() const {  // states of one node at the most, in whole vectors
        int64_t most = 0;
        for (int64_t node = 0; node < nodes(); ++node) most = std::max(most, states_of(node));
        return (most + 3) / 4 * 4;
    }
};

// One video. A run of L clips costs, beside its clips, length[L - 1] of its step up to L = longest, and `tail` more for each
// clip beyond. Columns of steps stand side by side: [clips][steps].
struct MachineVideo {
    Pause pause;
    const Machine *machine;
    int64_t clips, longest;
    const double *match;   // [clips][steps]
    const double *drop;    // [clips]
    const double *entry;   // [entries] prices
    const double *end;     // [nodes] prices
    const double *length;  // [longest][steps]
    const double *tail;    // [steps]
};

struct MachineKernels {
    // The least cost, and (unless null) the labels [clips]: among the cheapest, the smallest read backwards.
    double (*hard)(const MachineVideo &, int64_t *labels);
    // The soft minimum of costs that were divided by gamma, and (unless null) probabilities [steps + 1][clips].
    double (*soft)(const MachineVideo &, double *probability);
};
MachineKernels machine_kernels_base();
#if defined(G2V_HAVE_AVX2)
MachineKernels machine_kernels_avx2();
#endif

}  // namespace g2v
