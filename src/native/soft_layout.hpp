// The slots of the soft kernels. Groups and straight slots are those of the packing; all other states of a group fill as few
// slots as the lane with most of them needs, each lane entered from wherever it is.
#pragma once
#include "packing.hpp"
#include "soft_job.hpp"

namespace g2v {

struct SoftLayout {
    std::vector<int64_t> group_slot{0}, mixed;
    std::vector<int32_t> slot_source, slot_step, mixed_source, mixed_step;
    std::vector<int32_t> slot_state;  // [slots][lanes]: the state, -1: none

    int64_t n_slots() const { return group_slot.back(); }
    SoftSlots view() const {
        return {group_slot.data(), mixed.data(), slot_source.data(), slot_step.data(), mixed_source.data(), mixed_step.data()};
    }

    template <class Graph> static SoftLayout of(const Graph &g, const Packing &packing, Poll &poll) {
        SoftLayout layout;
        const int lanes = packing.lanes;
        const int32_t nowhere = static_cast<int32_t>(packing.groups()) * lanes;
        std::vector<int32_t> packed(static_cast<size_t>(packing.n_slots()) * lanes, -1);
        for (size_t s = 0; s < packing.state_place.size(); ++s) packed[packing.state_place[s]] = static_cast<int32_t>(s);
        for (int64_t group = 0; group < packing.groups(); ++group) {
            poll(20 * (packing.group_slot[group + 1] - packing.group_slot[group]) * lanes);
            const int64_t crossed = packing.crossed[group];
            for (int64_t slot = packing.group_slot[group]; slot < crossed; ++slot) {
                layout.slot_source.push_back(packing.slot_group[slot]);
                layout.slot_step.push_back(packing.slot_step[slot]);
                layout.slot_state.insert(layout.slot_state.end(), packed.begin() + slot * lanes,
                                         packed.begin() + (slot + 1) * lanes);
            }
            layout.mixed.push_back(static_cast<int64_t>(layout.slot_source.size()));
            size_t first = layout.mixed_source.size(), slots = 0;
            for (int lane = 0; lane < lanes; ++lane) {
                const int64_t ideal = packing.group_ideal[group * lanes + lane];
                if (ideal < 0) continue;
                size_t taken = 0;
                for (int64_t s = g.state_start[ideal]; s < g.state_start[ideal + 1]; ++s) {
                    if (packing.state_place[s] / lanes < crossed) continue;
                    if (taken == slots) {
                        layout.slot_source.push_back(static_cast<int32_t>(layout.mixed_source.size()) / lanes);
                        layout.slot_step.push_back(g.n_steps);
                        layout.slot_state.resize(layout.slot_state.size() + lanes, -1);
                        layout.mixed_source.resize(layout.mixed_source.size() + lanes, nowhere);
                        layout.mixed_step.resize(layout.mixed_step.size() + lanes, g.n_steps);
                        ++slots;
                    }
                    layout.slot_state[layout.slot_state.size() - (slots - taken) * lanes + lane] = static_cast<int32_t>(s);
                    const size_t place = first + taken++ * lanes + lane;
                    layout.mixed_source[place] = static_cast<int32_t>(packing.ideal_place[g.state_from[s]]);
                    layout.mixed_step[place] = g.state_step[s];
                }
            }
            layout.group_slot.push_back(static_cast<int64_t>(layout.slot_source.size()));
        }
        return layout;
    }
};

}  // namespace g2v
