// Ideals in lanes. Ideals that differ only in a few steps A (a "family") go into one vector: then almost every state of the
// vector is entered from the same lane of another vector, by the same step, and nothing need be gathered.
//
// Three steps a, b, c without order, in vectors of 4 lanes: 8 ideals and 12 states. The steps chosen to tell lanes apart are
// A = {a, b}, whose subsets number the lanes; c tells the two groups apart.
//
//     lane        0     1     2     3
//     group 0     {}    a     b     ab
//                  |     |     |     |       one straight slot of group 1: step c, lane by lane
//     group 1     c     ac    bc    abc
//
//     inner slot, in either group:      a is done: lane 1 from lane 0, lane 3 from lane 2 (within the halves of a vector)
//     inner slot, in either group:      b is done: lane 2 from lane 0, lane 3 from lane 1 (across the halves)
//
// That is INSIDE {1, 1}: 4 states in the straight slot, and 2 in each of the 4 inner ones. An edge a -> c would leave ideals c
// and bc out: their lanes of group 1 stay unused. What comes from another lane of another group (of another family) would be a
// crossed slot.
#pragma once
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <numeric>
#include <vector>

#include "job.hpp"
#include "watch.hpp"

namespace g2v {

struct Packing {
    int lanes = 0;
    std::vector<int64_t> group_slot, crossed, inner;
    std::vector<int32_t> slot_group, slot_step, slot_row, slot_pattern, group_ideal;
    std::vector<int32_t> row_steps;      // [rows][lanes]: the steps of inner slots that have the same
    std::vector<int32_t> crossed_steps;  // [crossed slots][lanes]
    std::vector<uint8_t> group_inside, paired;
    std::vector<int64_t> group_waiver;
    std::vector<int32_t> waiver_step, waiver_pattern;
    std::vector<Pattern> patterns;
    std::vector<int64_t> ideal_place;  // group * lanes + lane
    std::vector<int64_t> state_place;  // slot * lanes + lane
    int64_t groups() const { return static_cast<int64_t>(group_slot.size()) - 1; }
    int64_t n_slots() const { return group_slot.back(); }
    int64_t n_rows() const { return static_cast<int64_t>(row_steps.size()) / lanes; }
    Slots view() const {
        return {.group_slot = group_slot.data(),
                .crossed = crossed.data(),
                .inner = inner.data(),
                .slot_group = slot_group.data(),
                .slot_step = slot_step.data(),
                .group_inside = group_inside.data(),
                .slot_row = slot_row.data(),
                .crossed_steps = crossed_steps.data(),
                .slot_pattern = slot_pattern.data(),
                .patterns = patterns.data(),
                .group_ideal = group_ideal.data(),
                .group_waiver = group_waiver.data(),
                .waiver_step = waiver_step.data(),
                .waiver_pattern = waiver_pattern.data(),
                .paired = paired.data()};
    }
};

template <class Graph> class Packer {
public:
    Packer(const Graph &g, int lanes, Poll &poll) : g_(g), lanes_(lanes), poll_(poll) {}

    Packing run() {
        std::vector<int64_t> rest(static_cast<size_t>(g_.ideals()));
        std::iota(rest.begin(), rest.end(), 0);
        // Each family costs a pass over the ideals, so large procedures get few.
        const int64_t families = std::clamp<int64_t>(20'000'000 / g_.ideals(), 4, 512);
        for (int64_t family = 0; family < families && !rest.empty(); ++family)
            if (!take_family(rest)) break;
        take_singles(rest);
        order_groups();
        return make_slots();
    }

private:
    static constexpr size_t NEAR = 8;    // groups looked at for one that can be run beside the last
    using Group = std::vector<int64_t>;  // ideal of each lane, -1: unused

    const Graph &g_;
    int lanes_;
    Poll &poll_;
    std::vector<Group> groups_;

    // After each of many small things of about `each` updates.
    void now_and_then(int64_t number, int64_t each) const {
        if (number % 1024 == 1023) poll_(1024 * each);
    }

    // Steps chosen to tell lanes apart, and the subsets of them that are closed under "must come before" (as bits): each
    // is a lane.
    struct Chosen {
        std::vector<int> steps;
        std::vector<int> legal{0};
    };

    // The legal subsets with one more step.
    std::vector<int> legal_with(const Chosen &chosen, int step) const {
        int before = 0, after = 0;
        for (size_t i = 0; i < chosen.steps.size(); ++i) {
            if (g_.follows(chosen.steps[i], step)) before |= 1 << i;
            if (g_.follows(step, chosen.steps[i])) after |= 1 << i;
        }
        std::vector<int> legal;
        for (int subset : chosen.legal)
            if (!(subset & after)) legal.push_back(subset);
        for (int subset : chosen.legal)
            if ((subset & before) == before) legal.push_back(subset | 1 << chosen.steps.size());
        return legal;
    }
    Chosen chosen_in_order(const std::vector<int> &steps) const {
        Chosen chosen;
        for (int step : steps) {
            chosen.legal = legal_with(chosen, step);
            chosen.steps.push_back(step);
        }
        std::sort(chosen.legal.begin(), chosen.legal.end());
        return chosen;
    }

    struct Choice {
        std::vector<int> steps;
        int64_t joined = 0;  // ideals that share a group with a smaller one
    };

    // The steps whose doing or not doing tells apart the lanes. An ideal in which one of them is last joins the group of
    // a smaller one; so the best next step is the one that is last in most ideals that have not joined. For small
    // procedures every first step is tried.
    std::vector<int> choose_steps(const std::vector<int64_t> &rest) const {
        if (lanes_ == 1) return {};
        Choice best = choose_after({}, rest);
        if (g_.n_steps > 24 || g_.n_steps * g_.states() > 100'000) return best.steps;
        for (int first = 0; first < g_.n_steps; ++first) {
            const Choice other = choose_after({first}, rest);
            const bool fewer_steps = other.joined == best.joined && other.steps.size() < best.steps.size();
            if (other.joined > best.joined || fewer_steps) best = other;
        }
        return best.steps;
    }

    Choice choose_after(const std::vector<int> &first, const std::vector<int64_t> &rest) const {
        Chosen chosen = chosen_in_order(first);
        std::vector<int64_t> apart = rest;  // ideals that have not joined
        auto join = [&](int step) {
            std::erase_if(apart, [&](int64_t ideal) {
                now_and_then(ideal, 8);
                return g_.state_of(ideal, step) >= 0;
            });
        };
        for (int step : first) join(step);
        while (static_cast<int>(chosen.legal.size()) < lanes_) {
            std::vector<int64_t> gain(static_cast<size_t>(g_.n_steps), 0);
            for (int64_t ideal : apart) {
                now_and_then(ideal, 8);
                for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s) ++gain[g_.state_step[s]];
            }
            int best = -1;
            size_t best_size = 0;
            for (int step = 0; step < g_.n_steps; ++step) {
                if (gain[step] == 0 || (best >= 0 && gain[step] < gain[best])) continue;
                const size_t size = legal_with(chosen, step).size();
                if (size > static_cast<size_t>(lanes_)) continue;
                if (best < 0 || gain[step] > gain[best] || size < best_size) {
                    best = step;
                    best_size = size;
                }
            }
            if (best < 0) break;
            chosen.legal = legal_with(chosen, best);
            chosen.steps.push_back(best);
            join(best);
        }
        return {chosen.steps, static_cast<int64_t>(rest.size() - apart.size())};
    }

    // Put ideals of `rest` that fill their group well into groups; the others stay.
    bool take_family(std::vector<int64_t> &rest) {
        std::vector<int> chosen = choose_steps(rest);
        // Steps in order with one another count first: their moves then stay within the halves of a vector.
        auto related = [&](int step) {
            return std::count_if(chosen.begin(), chosen.end(),
                                 [&](int other) { return g_.follows(step, other) || g_.follows(other, step); });
        };
        std::vector<std::pair<int64_t, int>> ranked;
        for (int step : chosen) ranked.emplace_back(-related(step), step);
        std::stable_sort(ranked.begin(), ranked.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
        for (size_t i = 0; i < chosen.size(); ++i) chosen[i] = ranked[i].second;
        const std::vector<int> legal = chosen_in_order(chosen).legal;
        if (legal.size() < 2) return false;
        std::vector<int> lane_of(size_t{1} << chosen.size(), -1);
        for (size_t lane = 0; lane < legal.size(); ++lane) lane_of[legal[lane]] = static_cast<int>(lane);
        std::vector<char> is_chosen(static_cast<size_t>(g_.n_steps), 0);
        for (int step : chosen) is_chosen[step] = 1;
        // All ideals that differ in chosen steps only have the same smallest one below them.
        std::vector<int64_t> smallest(static_cast<size_t>(g_.ideals()));
        for (int64_t ideal = 0; ideal < g_.ideals(); ++ideal) {
            now_and_then(ideal, 8);
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
            now_and_then(ideal, 16);
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
        for (int64_t ideal : rest) {
            now_and_then(ideal, 16);
            by_level[level_of(ideal)].push_back(ideal);
        }
        for (const auto &level : by_level)
            for (size_t first = 0; first < level.size(); first += lanes_) {
                Group group(lanes_, -1);
                for (size_t i = first; i < std::min(level.size(), first + lanes_); ++i) group[i - first] = level[i];
                groups_.push_back(std::move(group));
            }
    }

    int level_of(int64_t ideal) const {
        return static_cast<int>(std::upper_bound(g_.level_start.begin(), g_.level_start.end(), ideal) - g_.level_start.begin()) -
               1;
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
            now_and_then(static_cast<int64_t>(group), 64 * lanes_);
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
            int64_t compared = 0;
            std::sort(groups_.begin(), groups_.end(), [&](const Group &a, const Group &b) {
                now_and_then(++compared, 16);
                return smaller(least_ideal(a), least_ideal(b));
            });
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
                now_and_then(static_cast<int64_t>(order.size()), 64);
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
                for (size_t group = first; chosen == n && group < n; ++group) {
                    now_and_then(static_cast<int64_t>(group), 16);
                    if (place[group] < 0 && ready(group)) chosen = group;
                }
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
                if (groups_[group][lane] >= 0) p.ideal_place[groups_[group][lane]] = static_cast<int64_t>(group) * lanes_ + lane;
        p.group_slot.push_back(0);
        p.group_waiver.push_back(0);
        for (size_t group = 0; group < groups_.size(); ++group) {
            now_and_then(static_cast<int64_t>(group), 400 * lanes_);
            for (int64_t ideal : groups_[group]) p.group_ideal.push_back(static_cast<int32_t>(ideal));
            add_slots(p, static_cast<int64_t>(group));
        }
        for (int64_t group = 0; group < p.groups(); ++group) p.paired.push_back(can_pair(p, group));
        return p;
    }

    // Whether the next group can be run together with this one: it moves inside like this one, and is not entered from it.
    static bool can_pair(const Packing &p, int64_t group) {
        if (group + 1 >= p.groups()) return false;
        if (p.group_inside[group] != p.group_inside[group + 1]) return false;
        const int64_t count = p.group_slot[group + 1] - p.inner[group];
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
        std::stable_sort(entries.begin(), entries.end(),
                         [](const Entry &a, const Entry &b) { return a.group != b.group ? a.group < b.group : a.step < b.step; });
        std::vector<Entry> crossed, inner;
        for (size_t i = 0; i < entries.size();) {
            size_t end = i;
            while (end < entries.size() && entries[end].group == entries[i].group && entries[end].step == entries[i].step) ++end;
            if (entries[i].group == group) inner.insert(inner.end(), entries.begin() + i, entries.begin() + end);
            else if (straight(group, entries, i, end))
                put_slot(p, entries.data() + i, entries.data() + end, entries[i].step, entries[i].group);
            else crossed.insert(crossed.end(), entries.begin() + i, entries.begin() + end);
            i = end;
        }
        p.crossed.push_back(static_cast<int64_t>(p.slot_group.size()));
        put_crossed(p, crossed);
        p.inner.push_back(static_cast<int64_t>(p.slot_group.size()));
        put_inner(p, group, inner);
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

    // Crossed slots: each takes the next entry of every lane, from one group.
    void put_crossed(Packing &p, std::vector<Entry> &entries) const {
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
            const auto steps = put_slot(p, slot.data(), slot.data() + slot.size(), g_.n_steps, slot[0].group);
            p.slot_row.back() = static_cast<int32_t>(p.crossed_steps.size()) / lanes_;
            p.crossed_steps.insert(p.crossed_steps.end(), steps.begin(), steps.end());
            entries.swap(later);
        }
    }

    // Inner slots: first those that stay within the halves of a vector; then as many empty ones as the kernel expects.
    void put_inner(Packing &p, int64_t group, std::vector<Entry> &entries) const {
        const int half = std::max(lanes_ / 2, 1);
        auto stays = [&](const Entry &e) { return e.lane / half == e.from_lane / half; };
        const auto middle = std::stable_partition(entries.begin(), entries.end(), stays);
        std::vector<std::vector<Entry>> within = cut(std::vector<Entry>(entries.begin(), middle));
        std::vector<std::vector<Entry>> across = cut(std::vector<Entry>(middle, entries.end()));
        if (within.size() + across.size() > MAX_INNER) {
            across = cut(entries);
            within.clear();
        }
        // The first kernel that can do it; a slot within the halves may be run as one across.
        int kind = 0;
        for (;; ++kind) {
            const int free = INSIDE[kind].half - static_cast<int>(within.size());
            const int needed = static_cast<int>(across.size()) - std::min(free, 0);
            if (needed <= INSIDE[kind].cross) break;
        }
        while (static_cast<int>(within.size()) > INSIDE[kind].half) {
            across.push_back(within.back());
            within.pop_back();
        }
        within.resize(INSIDE[kind].half);
        across.resize(INSIDE[kind].cross);
        p.group_inside.push_back(static_cast<uint8_t>(kind));
        put_waivers(p, entries);
        for (const auto *slots : {&within, &across})
            for (const auto &slot : *slots) {
                const auto steps = put_slot(p, slot.data(), slot.data() + slot.size(), g_.n_steps, group);
                p.slot_row.back() = row_of(p, steps);
            }
    }

    // What can be waived within the group: one pattern per step, and what must come before first. Any set of steps that is
    // waived together is then waived in one go through the list.
    void put_waivers(Packing &p, const std::vector<Entry> &entries) const {
        std::vector<int> steps;
        for (const Entry &e : entries) steps.push_back(e.step);
        std::sort(steps.begin(), steps.end(),
                  [&](int a, int b) { return std::pair(-g_.n_descendants(a), a) < std::pair(-g_.n_descendants(b), b); });
        steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
        for (int step : steps) {
            std::vector<int> lane(lanes_, -1);
            for (const Entry &e : entries)
                if (e.step == step) lane[e.lane] = e.from_lane;
            p.waiver_step.push_back(step);
            p.waiver_pattern.push_back(pattern_of(p, lane));
        }
        p.group_waiver.push_back(static_cast<int64_t>(p.waiver_step.size()));
    }

    // The row of an inner slot's steps.
    int32_t row_of(Packing &p, const std::vector<int> &steps) const {
        const auto [found, is_new] = known_rows_.try_emplace(steps, static_cast<int32_t>(p.n_rows()));
        if (is_new) p.row_steps.insert(p.row_steps.end(), steps.begin(), steps.end());
        return found->second;
    }

    // Entries in as few slots as their lanes allow.
    std::vector<std::vector<Entry>> cut(const std::vector<Entry> &entries) const {
        std::vector<std::vector<Entry>> slots;
        std::vector<size_t> next(lanes_, 0);
        for (const Entry &e : entries) {
            const size_t slot = next[e.lane]++;
            if (slot == slots.size()) slots.emplace_back();
            slots[slot].push_back(e);
        }
        return slots;
    }

    // A slot entered from `group`; returns its steps. Lanes without an entry get the step `otherwise`.
    std::vector<int> put_slot(Packing &p, const Entry *begin, const Entry *end, int otherwise, int64_t group) const {
        const size_t place = p.slot_group.size() * lanes_;
        p.slot_group.push_back(static_cast<int32_t>(group));
        p.slot_step.push_back(otherwise);
        std::vector<int> steps(lanes_, otherwise), lane(lanes_, -1);
        for (const Entry *e = begin; e != end; ++e) {
            steps[e->lane] = e->step;
            lane[e->lane] = e->from_lane;
            p.state_place[e->state] = static_cast<int64_t>(place) + e->lane;
        }
        p.slot_pattern.push_back(pattern_of(p, lane));
        p.slot_row.push_back(-1);
        return steps;
    }

    int32_t pattern_of(Packing &p, const std::vector<int> &lane) const {
        const auto found = known_patterns_.find(lane);
        if (found != known_patterns_.end()) return found->second;
        Pattern pattern{};
        const int bytes = 32 / lanes_, half = lanes_ / 2;
        for (int l = 0; l < lanes_ && lanes_ > 1; ++l) {  // with one lane there is nothing to shuffle
            pattern.lane[l] = lane[l];
            for (int byte = 0; byte < bytes; ++byte) {
                const uint8_t index = static_cast<uint8_t>(std::max(lane[l], 0) % half * bytes + byte);
                pattern.same[l * bytes + byte] = lane[l] >= 0 && lane[l] / half == l / half ? index : 0x80;
                pattern.other[l * bytes + byte] = lane[l] >= 0 && lane[l] / half != l / half ? index : 0x80;
            }
            if (lane[l] >= 0) continue;
            const double infinite = std::numeric_limits<double>::infinity();
            const float infinite_f32 = std::numeric_limits<float>::infinity();
            if (lanes_ == 8) std::memcpy(pattern.absent + l * bytes, &infinite_f32, sizeof infinite_f32);
            else std::memcpy(pattern.absent + l * bytes, &infinite, sizeof infinite);
        }
        p.patterns.push_back(pattern);
        return known_patterns_[lane] = static_cast<int32_t>(p.patterns.size()) - 1;
    }

    mutable std::map<std::vector<int>, int32_t> known_patterns_, known_rows_;
};

}  // namespace g2v
