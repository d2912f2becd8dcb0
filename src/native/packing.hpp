// Ideals in lanes. Ideals that differ only in a few steps A (a "family") go into one vector: then almost every state of the
// vector is entered from the same lane of another vector, by the same step, and nothing need be gathered.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "job.hpp"

namespace g2v {

struct Packing {
    int lanes = 0;
    std::vector<int64_t> group_slot, crossed, inner;
    std::vector<int32_t> slot_group, slot_step, slot_pattern, group_ideal;
    std::vector<uint8_t> slot_mixed, paired;
    std::vector<Pattern> patterns;
    std::vector<int64_t> ideal_place;  // group * lanes + lane
    std::vector<int64_t> state_place;  // slot * lanes + lane
    int64_t groups() const { return static_cast<int64_t>(group_slot.size()) - 1; }
    int64_t n_slots() const { return group_slot.back(); }
    Slots view() const {
        return {group_slot.data(),   crossed.data(),      inner.data(),    slot_group.data(),  slot_step.data(),
                slot_mixed.data(),   slot_pattern.data(), patterns.data(), group_ideal.data(), paired.data()};
    }
};

template <class Graph> class Packer {
public:
    Packer(const Graph &g, int lanes) : g_(g), lanes_(lanes) {}

    Packing run() {
        std::vector<int64_t> rest(static_cast<size_t>(g_.ideals()));
        std::iota(rest.begin(), rest.end(), 0);
        for (int family = 0; family < MAX_FAMILIES && !rest.empty(); ++family)
            if (!take_family(rest)) break;
        take_singles(rest);
        order_groups();
        return make_slots();
    }

private:
    static constexpr int MAX_FAMILIES = 12;
    static constexpr size_t NEAR = 8;  // groups looked at for one that can be run beside the last
    using Group = std::vector<int64_t>;  // ideal of each lane, -1: unused

    const Graph &g_;
    int lanes_;
    std::vector<Group> groups_;

    // Subsets of the steps `chosen` that are closed under "must come before" within it, as bits.
    std::vector<int> legal_subsets(const std::vector<int> &chosen) const {
        std::vector<int> legal;
        for (int subset = 0; subset < 1 << chosen.size(); ++subset) {
            bool closed = true;
            for (size_t a = 0; a < chosen.size(); ++a)
                for (size_t b = 0; b < chosen.size(); ++b)
                    if (subset >> b & 1 && !(subset >> a & 1) && g_.follows(chosen[a], chosen[b])) closed = false;
            if (closed) legal.push_back(subset);
        }
        return legal;
    }

    // The steps whose doing or not doing tells apart the lanes: always the step that is last in most ideals that no step
    // chosen so far is last in, since each such ideal joins the group of another one.
    std::vector<int> choose_steps(const std::vector<int64_t> &rest) const {
        std::vector<int> chosen;
        std::vector<char> joined(static_cast<size_t>(g_.ideals()), 1);
        for (int64_t ideal : rest) joined[ideal] = 0;
        while (static_cast<int>(chosen.size()) + 1 < lanes_) {
            std::vector<int64_t> gain(static_cast<size_t>(g_.n_steps), 0);
            for (int64_t ideal : rest)
                if (!joined[ideal])
                    for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s) ++gain[g_.state_step[s]];
            int best = -1;
            size_t best_size = 0;
            for (int step = 0; step < g_.n_steps; ++step) {
                if (gain[step] == 0 || (best >= 0 && gain[step] < gain[best])) continue;
                auto more = chosen;
                more.push_back(step);
                const size_t size = legal_subsets(more).size();
                if (size > static_cast<size_t>(lanes_)) continue;
                if (best < 0 || gain[step] > gain[best] || size < best_size) {
                    best = step;
                    best_size = size;
                }
            }
            if (best < 0) break;
            chosen.push_back(best);
            for (int64_t ideal : rest)
                if (g_.state_of(ideal, best) >= 0) joined[ideal] = 1;
        }
        return chosen;
    }

    // Put ideals of `rest` that fill their group well into groups; the others stay.
    bool take_family(std::vector<int64_t> &rest) {
        const std::vector<int> chosen = choose_steps(rest);
        const std::vector<int> legal = legal_subsets(chosen);
        if (legal.size() < 2) return false;
        std::vector<int> lane_of(size_t{1} << chosen.size(), -1);
        for (size_t lane = 0; lane < legal.size(); ++lane) lane_of[legal[lane]] = static_cast<int>(lane);
        std::vector<char> is_chosen(static_cast<size_t>(g_.n_steps), 0);
        for (int step : chosen) is_chosen[step] = 1;
        // All ideals that differ in chosen steps only have the same smallest one below them.
        std::vector<int64_t> smallest(static_cast<size_t>(g_.ideals()));
        for (int64_t ideal = 0; ideal < g_.ideals(); ++ideal) {
            smallest[ideal] = ideal;
            for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s)
                if (is_chosen[g_.state_step[s]]) {
                    smallest[ideal] = smallest[g_.state_from[s]];
                    break;
                }
        }
        std::vector<int32_t> members(static_cast<size_t>(g_.ideals()), 0);
        int32_t largest = 0;
        for (int64_t ideal : rest) largest = std::max(largest, ++members[smallest[ideal]]);
        if (largest < 2) return false;
        const int32_t enough = std::min<int32_t>(largest, lanes_ / 2);
        std::vector<int64_t> group_of(static_cast<size_t>(g_.ideals()), -1), left;
        for (int64_t ideal : rest) {
            const int64_t key = smallest[ideal];
            if (members[key] < enough) {
                left.push_back(ideal);
                continue;
            }
            if (group_of[key] < 0) {
                group_of[key] = static_cast<int64_t>(groups_.size());
                groups_.emplace_back(lanes_, -1);
            }
            int subset = 0;
            for (size_t i = 0; i < chosen.size(); ++i) subset |= g_.holds(ideal, chosen[i]) << i;
            groups_[group_of[key]][lane_of[subset]] = ideal;
        }
        rest.swap(left);
        return true;
    }

    // What no family takes: ideals of one level side by side.
    void take_singles(const std::vector<int64_t> &rest) {
        std::vector<std::vector<int64_t>> by_level(static_cast<size_t>(g_.n_steps) + 1);
        for (int64_t ideal : rest) by_level[level_of(ideal)].push_back(ideal);
        for (const auto &level : by_level)
            for (size_t first = 0; first < level.size(); first += lanes_) {
                Group group(lanes_, -1);
                for (size_t i = first; i < std::min(level.size(), first + lanes_); ++i) group[i - first] = level[i];
                groups_.push_back(std::move(group));
            }
    }

    int level_of(int64_t ideal) const {
        return static_cast<int>(std::upper_bound(g_.level_start.begin(), g_.level_start.end(), ideal) -
                                g_.level_start.begin()) - 1;
    }

    std::vector<int64_t> group_of_ideal() const {
        std::vector<int64_t> group_of(static_cast<size_t>(g_.ideals()));
        for (size_t group = 0; group < groups_.size(); ++group)
            for (int64_t ideal : groups_[group])
                if (ideal >= 0) group_of[ideal] = static_cast<int64_t>(group);
        return group_of;
    }

    // The groups that each group is entered from.
    std::vector<std::vector<int64_t>> sources() const {
        const auto group_of = group_of_ideal();
        std::vector<std::vector<int64_t>> result(groups_.size());
        for (size_t group = 0; group < groups_.size(); ++group) {
            auto &of_group = result[group];
            for (int64_t ideal : groups_[group])
                if (ideal >= 0)
                    for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s)
                        if (group_of[g_.state_from[s]] != static_cast<int64_t>(group))
                            of_group.push_back(group_of[g_.state_from[s]]);
            std::sort(of_group.begin(), of_group.end());
            of_group.erase(std::unique(of_group.begin(), of_group.end()), of_group.end());
        }
        return result;
    }

    // Whether the set of an ideal, read as a number, is smaller: what is left out comes first, and not long before.
    bool smaller(int64_t a, int64_t b) const {
        for (int w = g_.words - 1; w >= 0; --w)
            if (g_.masks[a * g_.words + w] != g_.masks[b * g_.words + w])
                return g_.masks[a * g_.words + w] < g_.masks[b * g_.words + w];
        return false;
    }

    // Bring the groups into an order in which each comes after those it is entered from; soon after, for the cache, and
    // not at once, so that neighbours can be run together. Groups of several families can wait for one another; those are
    // split by level, which cannot.
    void order_groups() {
        auto least_ideal = [&](const Group &group) {
            return *std::find_if(group.begin(), group.end(), [](int64_t ideal) { return ideal >= 0; });
        };
        while (true) {
            std::sort(groups_.begin(), groups_.end(),
                      [&](const Group &a, const Group &b) { return smaller(least_ideal(a), least_ideal(b)); });
            const auto from = sources();
            const size_t n = groups_.size();
            std::vector<int64_t> place(n, -1), order;
            auto ready = [&](size_t group) {
                return std::all_of(from[group].begin(), from[group].end(), [&](int64_t s) { return place[s] >= 0; });
            };
            auto uses_last = [&](size_t group) {
                return !order.empty() && std::binary_search(from[group].begin(), from[group].end(), order.back());
            };
            size_t first = 0;  // all before it are placed
            while (order.size() < n) {
                // The first ready group that does not need the last one placed; if none is near, the first ready one.
                size_t chosen = n, seen = 0;
                for (size_t group = first; group < n && seen < NEAR; ++group) {
                    if (place[group] >= 0) continue;
                    ++seen;
                    if (!ready(group)) continue;
                    if (chosen == n) chosen = group;
                    if (!uses_last(group)) {
                        chosen = group;
                        break;
                    }
                }
                for (size_t group = first; chosen == n && group < n; ++group)
                    if (place[group] < 0 && ready(group)) chosen = group;
                if (chosen == n) break;
                place[chosen] = static_cast<int64_t>(order.size());
                order.push_back(static_cast<int64_t>(chosen));
                while (first < n && place[first] >= 0) ++first;
            }
            std::vector<Group> done;
            for (int64_t group : order) done.push_back(groups_[group]);
            std::vector<int64_t> stuck;
            for (size_t group = 0; group < n; ++group)
                if (place[group] < 0)
                    std::copy_if(groups_[group].begin(), groups_[group].end(), std::back_inserter(stuck),
                                 [](int64_t ideal) { return ideal >= 0; });
            groups_.swap(done);
            if (stuck.empty()) return;
            std::sort(stuck.begin(), stuck.end());
            take_singles(stuck);
        }
    }

    struct Entry {
        int64_t group;  // entered from
        int step, lane, from_lane;
        int64_t state;
    };

    Packing make_slots() const {
        Packing p;
        p.lanes = lanes_;
        p.ideal_place.resize(static_cast<size_t>(g_.ideals()));
        p.state_place.resize(static_cast<size_t>(g_.states()));
        for (size_t group = 0; group < groups_.size(); ++group)
            for (int lane = 0; lane < lanes_; ++lane)
                if (groups_[group][lane] >= 0)
                    p.ideal_place[groups_[group][lane]] = static_cast<int64_t>(group) * lanes_ + lane;
        p.group_slot.push_back(0);
        for (size_t group = 0; group < groups_.size(); ++group) {
            for (int64_t ideal : groups_[group]) p.group_ideal.push_back(static_cast<int32_t>(ideal));
            add_slots(p, static_cast<int64_t>(group));
        }
        for (int64_t group = 0; group < p.groups(); ++group) p.paired.push_back(can_pair(p, group));
        return p;
    }

    // Whether the next group can be run together with this one: it moves inside like this one, and is not entered from it.
    static bool can_pair(const Packing &p, int64_t group) {
        if (group + 1 >= p.groups()) return false;
        const int64_t count = p.group_slot[group + 1] - p.inner[group];
        if (p.group_slot[group + 2] - p.inner[group + 1] != count) return false;
        for (int64_t k = 0; k < count; ++k)
            if (p.slot_pattern[p.inner[group] + k] != p.slot_pattern[p.inner[group + 1] + k]) return false;
        const auto begin = p.slot_group.begin() + p.group_slot[group + 1], end = p.slot_group.begin() + p.inner[group + 1];
        return std::find(begin, end, static_cast<int32_t>(group)) == end;
    }

    void add_slots(Packing &p, int64_t group) const {
        std::vector<Entry> entries;
        for (int lane = 0; lane < lanes_; ++lane) {
            const int64_t ideal = groups_[group][lane];
            if (ideal < 0) continue;
            for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s) {
                const int64_t from = p.ideal_place[g_.state_from[s]];
                entries.push_back({from / lanes_, g_.state_step[s], lane, static_cast<int>(from % lanes_), s});
            }
        }
        std::stable_sort(entries.begin(), entries.end(), [](const Entry &a, const Entry &b) {
            return a.group != b.group ? a.group < b.group : a.step < b.step;
        });
        std::vector<Entry> crossed, inner;
        for (size_t i = 0; i < entries.size();) {
            size_t end = i;
            while (end < entries.size() && entries[end].group == entries[i].group && entries[end].step == entries[i].step)
                ++end;
            if (entries[i].group == group) inner.insert(inner.end(), entries.begin() + i, entries.begin() + end);
            else if (straight(group, entries, i, end)) put_slot(p, entries.data() + i, entries.data() + end, entries[i].step);
            else crossed.insert(crossed.end(), entries.begin() + i, entries.begin() + end);
            i = end;
        }
        p.crossed.push_back(static_cast<int64_t>(p.slot_group.size()));
        put_mixed(p, crossed);
        p.inner.push_back(static_cast<int64_t>(p.slot_group.size()));
        put_inner(p, inner);
        p.group_slot.push_back(static_cast<int64_t>(p.slot_group.size()));
    }

    // Whether all entries stay in their lane, and no other lane of the group would take in an ideal by mistake.
    bool straight(int64_t group, const std::vector<Entry> &entries, size_t begin, size_t end) const {
        std::vector<char> entered(lanes_, 0);
        for (size_t i = begin; i < end; ++i) {
            if (entries[i].lane != entries[i].from_lane) return false;
            entered[entries[i].lane] = 1;
        }
        for (int lane = 0; lane < lanes_; ++lane)
            if (!entered[lane] && groups_[group][lane] >= 0 && groups_[entries[begin].group][lane] >= 0) return false;
        return true;
    }

    // Slots with lanes of their own: each takes the next entry of every lane, from one group.
    void put_mixed(Packing &p, std::vector<Entry> &entries) const {
        while (!entries.empty()) {
            std::vector<Entry> slot, later;
            std::vector<char> taken(lanes_, 0);
            for (const Entry &e : entries)
                if (e.group == entries[0].group && !taken[e.lane]) {
                    taken[e.lane] = 1;
                    slot.push_back(e);
                } else {
                    later.push_back(e);
                }
            put_slot(p, slot.data(), slot.data() + slot.size(), g_.n_steps);
            entries.swap(later);
        }
    }

    // One slot per step where that is few enough: its costs need no gathering.
    void put_inner(Packing &p, std::vector<Entry> &entries) const {
        std::vector<std::vector<Entry>> by_step;
        for (const Entry &e : entries) {  // sorted by step
            if (by_step.empty() || by_step.back()[0].step != e.step) by_step.emplace_back();
            by_step.back().push_back(e);
        }
        if (by_step.size() > MAX_INNER) return put_mixed(p, entries);
        for (const auto &slot : by_step) put_slot(p, slot.data(), slot.data() + slot.size(), slot[0].step);
    }

    // Lanes without an entry get the step `otherwise`.
    void put_slot(Packing &p, const Entry *begin, const Entry *end, int otherwise) const {
        const size_t place = p.slot_group.size() * lanes_;
        p.slot_group.push_back(static_cast<int32_t>(begin->group));
        p.slot_step.resize(place + lanes_, otherwise);
        p.slot_mixed.push_back(otherwise == g_.n_steps);
        std::vector<int> lane(lanes_, -1);
        for (const Entry *e = begin; e != end; ++e) {
            p.slot_step[place + e->lane] = e->step;
            lane[e->lane] = e->from_lane;
            p.state_place[e->state] = static_cast<int64_t>(place) + e->lane;
        }
        p.slot_pattern.push_back(pattern_of(p, lane));
    }

    int32_t pattern_of(Packing &p, const std::vector<int> &lane) const {
        const auto found = known_.find(lane);
        if (found != known_.end()) return found->second;
        Pattern pattern{};
        const int bytes = 32 / lanes_, half = lanes_ / 2;
        for (int l = 0; l < lanes_; ++l) {
            const int from = std::max(lane[l], 0);
            pattern.lane[l] = from;
            for (int byte = 0; byte < bytes; ++byte) {
                const bool stays = from / half == l / half;
                const uint8_t index = static_cast<uint8_t>(from % half * bytes + byte);
                pattern.same[l * bytes + byte] = stays ? index : 0x80;
                pattern.other[l * bytes + byte] = stays ? 0x80 : index;
            }
            const double absent = lane[l] < 0 ? std::numeric_limits<double>::infinity()
                                              : -std::numeric_limits<double>::infinity();
            const float absent_f32 = static_cast<float>(absent);
            if (lanes_ == 8) std::memcpy(pattern.absent + l * bytes, &absent_f32, sizeof absent_f32);
            else std::memcpy(pattern.absent + l * bytes, &absent, sizeof absent);
        }
        p.patterns.push_back(pattern);
        return known_[lane] = static_cast<int32_t>(p.patterns.size()) - 1;
    }

    mutable std::map<std::vector<int>, int32_t> known_;
};

}  // namespace g2v
