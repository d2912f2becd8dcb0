// The compiled procedure as the solvers see it: ideals in level order and the states of each.
#pragma once
#include <bit>
#include <cstdint>
#include <mutex>
#include <vector>

#include "packing.hpp"
#include "soft_layout.hpp"

namespace g2v {

struct Procedure {
    int n_steps = 0;
    int words = 0;
    std::vector<uint64_t> masks, descendants;  // [ideals][words], [steps][words]
    std::vector<int64_t> level_start, state_start;
    std::vector<int32_t> state_step, state_from;
    std::vector<double> order;       // [steps][steps]: the cost of beginning a step when another is done; empty: nothing
    std::vector<double> state_cost;  // [states]: the sum of these for the step of a state; empty: nothing

    int64_t ideals() const { return static_cast<int64_t>(state_start.size()) - 1; }
    int64_t states() const { return static_cast<int64_t>(state_step.size()); }
    bool holds(int64_t ideal, int step) const { return masks[ideal * words + step / 64] >> (step % 64) & 1; }
    bool follows(int step, int other) const {  // other must come after step
        return descendants[step * words + other / 64] >> (other % 64) & 1;
    }
    bool costs_more_after(int step, int other) const { return order[step * n_steps + other] > 0; }
    int n_descendants(int step) const {
        int count = 0;
        for (int w = 0; w < words; ++w) count += std::popcount(descendants[step * words + w]);
        return count;
    }
    int64_t state_of(int64_t ideal, int step) const {  // the state (step, ideal), or -1
        for (int64_t s = state_start[ideal]; s < state_start[ideal + 1]; ++s)
            if (state_step[s] == step) return s;
        return -1;
    }

    // The cost of beginning the step of a state; what is too large for T counts as impossible.
    template <class T> T begin_cost(int64_t state) const {
        return state_cost.empty() ? T(0) : static_cast<T>(state_cost[static_cast<size_t>(state)]);
    }

    int64_t ideal_of(int64_t state) const {
        return std::upper_bound(state_start.begin(), state_start.end(), state) - state_start.begin() - 1;
    }

    // The ideals in vectors of 8 or 4, or (1) one by one in the order that is best for the cache; made when first asked for.
    const Packing &packing(int lanes, Poll &poll) const {
        Once &once = lanes == 8 ? packed8_ : lanes == 4 ? packed4_ : packed1_;
        std::call_once(once.flag, [&] { once.packing = Packer<Procedure>(*this, lanes, poll).run(); });
        return once.packing;
    }

    // The same for the soft kernels.
    const SoftLayout &soft_layout(int lanes, Poll &poll) const {
        const Packing &base = packing(lanes, poll);
        Once &once = lanes == 8 ? packed8_ : lanes == 4 ? packed4_ : packed1_;
        std::call_once(once.soft_flag, [&] { once.soft = SoftLayout::of(*this, base, poll); });
        return once.soft;
    }

private:
    struct Once {
        std::once_flag flag, soft_flag;
        Packing packing;
        SoftLayout soft;
    };
    mutable Once packed8_, packed4_, packed1_;
};

}  // namespace g2v
