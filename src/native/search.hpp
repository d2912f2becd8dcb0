// The anytime search: cheapest relaxed alignments, and the beam over ideals that their costs guide. The readable versions
// are in graph2vid/alignment/relaxed.py.
#pragma once
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <tuple>

#include "search_job.hpp"
#include "solve.hpp"

namespace g2v {

inline Relax relax_kernel() {
#if defined(G2V_HAVE_AVX2)
    if (std::string_view(kernels().name) == "avx2") return relax_avx2();
#endif
    return relax_base();
}

struct Stretch {
    int64_t step, start, stop;
};

// The segments of the cheapest relaxed alignment, in order.
inline std::vector<Stretch> relaxed_segments(const Relaxed &r) {
    std::vector<Stretch> found;
    int64_t current = -1;
    for (int64_t clip = 0; clip < r.clips; ++clip) {
        const double *match = r.match + clip * r.width, *begin = r.begin + clip * r.width;
        const double *after = r.going + (clip + 1) * r.width;
        if (current >= 0) {
            const double here = r.going[clip * r.width + current];
            if (match[current] + after[current] == here) continue;
            if (!r.contiguous && r.drop[clip] + after[current] == here) continue;
            found.back().stop = clip;
        }
        double least = r.drop[clip] + r.free[clip + 1];
        int64_t begun = -1;
        for (int64_t k = 0; k < r.width; ++k) {
            const double entered = match[k] + after[k] + begin[k];
            if (k != current && entered < least) {
                least = entered;
                begun = k;
            }
        }
        if (begun >= 0) found.push_back({begun, clip, r.clips});
        current = begun;
    }
    return found;
}

// Multipliers on their way to a better bound; see Climb in graph2vid/alignment/relaxed.py.
struct ClimbSettings {
    double by_clip, momentum, shorter, expect;
    int64_t patience;
};

class Climb {
    static constexpr double INF = std::numeric_limits<double>::infinity();

public:
    // match [clips][width], drop [clips], skip [steps], edges [edges] each
    Climb(std::vector<double> match, std::vector<double> drop, std::vector<double> skip, std::vector<int64_t> earlier,
          std::vector<int64_t> later, std::vector<double> when, bool contiguous, ClimbSettings settings)
        : when(std::move(when)), steps_(static_cast<int64_t>(skip.size())), clips_(static_cast<int64_t>(drop.size())),
          width_(static_cast<int64_t>(match.size()) / clips_), edges_(static_cast<int64_t>(later.size())),
          contiguous_(contiguous), match_(std::move(match)), drop_(std::move(drop)), skip_(std::move(skip)),
          earlier_(std::move(earlier)), later_(std::move(later)), set_(settings), now_(steps_, edges_ * clips_), best_(now_),
          direction_(now_), begin_((clips_ + 1) * width_), end_(begin_.size()), going_(begin_.size()), free_(clips_ + 1),
          sums_(clips_ + 1), shown_(steps_), starts_(steps_) {}

    // Go on from the best multipliers so far, with changes of another size.
    void start(double daring) {
        now_ = best_;
        direction_ = Multipliers(steps_, edges_ * clips_);
        daring_ = daring;
        idle_ = 0;
        bound_ = -INF;
    }
    // Change the multipliers some times, towards a bound of `target`; return how often, and whether the last alignment is legal.
    std::tuple<int64_t, bool> run(int64_t rounds, double target, double close, Poll &poll) {
        for (int64_t round = 1; round <= rounds; ++round) {
            poll(20 * (edges_ + width_) * clips_);
            const double bound = solve(poll);
            if (bound > bound_) {
                bound_ = bound;
                best_ = now_;
                idle_ = 0;
            } else if (++idle_ == set_.patience) {
                daring_ *= set_.shorter;
                idle_ = 0;
            }
            if (!std::isfinite(bound) || !(bound < target - close)) return {round, false};
            const bool is_legal = expect();
            const double length = turn();
            if (length == 0.0) return {round, is_legal};
            const double size = daring_ * (target - bound) / length;
            for (int64_t k = 0; k < steps_; ++k) now_.once[k] += size * direction_.once[k];
            const double by_clip = size * set_.by_clip;
            for (size_t i = 0; i < now_.order.size(); ++i)
                now_.order[i] = std::max(now_.order[i] + by_clip * direction_.order[i], 0.0);
            if (is_legal) return {round, true};
        }
        return {rounds, false};
    }
    double bound() const { return bound_; }
    const std::vector<double> &once() const { return best_.once; }
    const std::vector<double> &order() const { return best_.order; }

    std::vector<double> when;  // [steps] each step is expected to begin

private:
    struct Multipliers {
        std::vector<double> once, order;  // [steps], [edges][clips]
        Multipliers(int64_t steps, int64_t order) : once(static_cast<size_t>(steps)), order(static_cast<size_t>(order)) {}
    };
    int64_t steps_, clips_, width_, edges_;
    bool contiguous_;
    std::vector<double> match_, drop_, skip_;
    std::vector<int64_t> earlier_, later_;
    ClimbSettings set_;
    Multipliers now_, best_, direction_;
    std::vector<double> begin_, end_, going_, free_, sums_;
    std::vector<int64_t> shown_;
    std::vector<double> starts_;
    std::vector<Stretch> segments_;
    double daring_ = 1.0, bound_ = -INF;
    int64_t idle_ = 0;

    // The cheapest alignment at the multipliers, and what it costs.
    double solve(Poll &poll) {
        for (int64_t clip = 0; clip <= clips_; ++clip) std::copy_n(now_.once.begin(), steps_, begin_.begin() + clip * width_);
        std::fill(end_.begin(), end_.end(), 0.0);
        for (int64_t e = 0; e < edges_; ++e) {
            const double *order = now_.order.data() + e * clips_;
            double *begin = begin_.data() + later_[e], *end = end_.data() + earlier_[e], sum = 0;
            for (int64_t clip = clips_ - 1; clip >= 0; --clip) {
                sum += order[clip];
                begin[clip * width_] += sum;
                end[clip * width_] -= sum;
            }
        }
        const Relaxed relaxed{poll.pause(), clips_,        width_,      contiguous_,  match_.data(),
                              drop_.data(), begin_.data(), end_.data(), free_.data(), going_.data()};
        relax_kernel()(relaxed);
        segments_ = relaxed_segments(relaxed);
        double bound = free_[0];
        for (int64_t k = 0; k < steps_; ++k) {
            bound -= now_.once[k];
            if (skip_[k] == INF) continue;
            int64_t where = 0;
            double least = INF;
            for (int64_t clip = 0; clip <= clips_; ++clip)
                if (const double passed = begin_[clip * width_ + k] + end_[clip * width_ + k] + skip_[k]; passed < least) {
                    least = passed;
                    where = clip;
                }
            if (least < 0) {
                bound += least;
                segments_.push_back({k, where, where});
            }
        }
        return bound;
    }

    // Learn from the alignment when steps begin; return whether it is legal.
    bool expect() {
        std::fill(shown_.begin(), shown_.end(), 0);
        std::fill(starts_.begin(), starts_.end(), 0.0);
        for (const Stretch &s : segments_) {
            ++shown_[s.step];
            starts_[s.step] += static_cast<double>(s.start);
        }
        bool is_legal = std::all_of(shown_.begin(), shown_.end(), [](int64_t n) { return n == 1; });
        if (is_legal) {
            std::vector<int64_t> start(steps_), stop(steps_);
            for (const Stretch &s : segments_) {
                start[s.step] = s.start;
                stop[s.step] = s.stop;
            }
            for (int64_t e = 0; e < edges_; ++e) is_legal &= stop[earlier_[e]] <= start[later_[e]];
        }
        const double share = is_legal ? 1.0 : set_.expect;
        for (int64_t k = 0; k < steps_; ++k)
            if (shown_[k]) when[k] = (1 - share) * when[k] + share * (starts_[k] / static_cast<double>(shown_[k]));
        return is_legal;
    }

    // Set the direction of the next change; return its squared length.
    double turn() {
        double length = 0, by_clip = 0;
        for (int64_t k = 0; k < steps_; ++k) {
            double &d = direction_.once[k];
            d = d * set_.momentum + static_cast<double>(shown_[k] - 1);
            length += d * d;
        }
        for (int64_t e = 0; e < edges_; ++e) {
            std::fill(sums_.begin(), sums_.end(), 0.0);
            for (const Stretch &s : segments_) {
                if (s.step == later_[e]) sums_[s.start] += 1;
                if (s.step == earlier_[e]) sums_[s.stop] -= 1;
            }
            const double *at = now_.order.data() + e * clips_;
            double *direction = direction_.order.data() + e * clips_, sum = 0;
            for (int64_t clip = 0; clip < clips_; ++clip) {
                sum += sums_[clip];
                double d = direction[clip] * set_.momentum + sum;
                if (at[clip] == 0 && d < 0) d = 0;
                direction[clip] = d;
                by_clip += d * d;
            }
        }
        return length + set_.by_clip * by_clip;
    }
};

// One video for the beam. What is still to come costs at the least `free` (nothing goes on) or `going` (a step may), and
// the sum of `weight` over the steps that are done.
struct Bounded {
    int64_t steps, clips;
    bool contiguous;
    const double *match, *drop, *skip;    // [clips][steps], [clips], [steps] (+inf: must be shown)
    const double *free, *going, *weight;  // [clips + 1], [clips + 1][steps], [clips + 1][steps]
    const uint64_t *before;               // [steps][words]
};

struct Swept {
    double cost = std::numeric_limits<double>::infinity(), dropped = cost;
    int64_t expanded = 0;
    std::vector<int64_t> labels;  // empty where nothing was found
};

template <size_t WORDS> class Sweep {
    using Mask = std::array<uint64_t, WORDS>;
    static constexpr double INF = std::numeric_limits<double>::infinity();
    struct State {
        double cost, bound;
        int32_t ideal, next;  // the ideal, and its next state
        int32_t from;         // the state before
        int16_t step, label;  // what may go on, or -1; what the clip shows, or -1
    };
    struct Step {
        int32_t from;
        int16_t label;
    };
    struct Ideal {
        Mask done;
        int32_t first;
    };

    // The states after one more clip, by ideal.
    struct Column {
        std::vector<State> states;
        std::vector<Ideal> ideals;
        std::vector<int32_t> slots = std::vector<int32_t>(64, -1);

        void clear(size_t expected) {
            states.clear();
            ideals.clear();
            slots.assign(std::bit_ceil(2 * std::max<size_t>(expected, 32)), -1);
        }
        int32_t ideal_of(const Mask &done) {
            if (2 * (ideals.size() + 1) > slots.size()) {
                slots.assign(2 * slots.size(), -1);
                for (size_t i = 0; i < ideals.size(); ++i) slots[free_slot(ideals[i].done)] = static_cast<int32_t>(i);
            }
            const size_t slot = free_slot(done);
            if (slots[slot] < 0) {
                slots[slot] = static_cast<int32_t>(ideals.size());
                ideals.push_back({done, -1});
            }
            return slots[slot];
        }
        void put(const Mask &done, State state) {
            state.ideal = ideal_of(done);
            for (int32_t at = ideals[state.ideal].first; at >= 0; at = states[at].next)
                if (states[at].step == state.step) {
                    if (state.cost < states[at].cost) {
                        state.next = states[at].next;
                        states[at] = state;
                    }
                    return;
                }
            link(state);
        }
        void link(State state) {
            state.next = ideals[state.ideal].first;
            ideals[state.ideal].first = static_cast<int32_t>(states.size());
            states.push_back(state);
        }
        // Keep the `width` states of the least bounds; return the least bound of the others.
        double narrow(size_t width) {
            if (states.size() <= width) return INF;
            std::vector<double> bounds;
            bounds.reserve(states.size());
            for (const State &s : states) bounds.push_back(s.bound);
            const auto middle = bounds.begin() + static_cast<std::ptrdiff_t>(width);
            std::nth_element(bounds.begin(), middle, bounds.end());
            const double least = *middle;
            size_t below = 0;
            for (const State &s : states) below += s.bound < least;
            size_t equal = width - below;
            const std::vector<State> all = std::move(states);
            const std::vector<Ideal> sets = std::move(ideals);
            clear(width);
            for (State s : all)
                if (s.bound < least || (s.bound == least && equal > 0)) {
                    equal -= s.bound == least;
                    s.ideal = ideal_of(sets[s.ideal].done);
                    link(s);
                }
            return least;
        }

    private:
        size_t free_slot(const Mask &done) const {
            uint64_t hash = 0;
            for (const uint64_t word : done) {
                hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
                hash ^= hash >> 32;
            }
            size_t slot = static_cast<size_t>(hash) & (slots.size() - 1);
            while (slots[slot] >= 0 && ideals[slots[slot]].done != done) slot = (slot + 1) & (slots.size() - 1);
            return slot;
        }
    };

    // Sums of numbers over sets of steps, by tables of eight steps each.
    struct Sums {
        std::array<std::array<double, 256>, 8 * WORDS> of{};
        void set(const double *numbers, int64_t count) {
            for (int64_t table = 0; 8 * table < count; ++table)
                for (int64_t bits = 1; bits < 256; ++bits) {
                    const int64_t at = 8 * table + std::countr_zero(static_cast<uint64_t>(bits));
                    of[table][bits] = of[table][bits & (bits - 1)] + (at < count ? numbers[at] : 0.0);
                }
        }
        double operator()(const Mask &set) const {
            double sum = 0;
            for (size_t w = 0; w < WORDS; ++w)
                for (uint64_t table = 8 * w, left = set[w]; left; ++table, left >>= 8) sum += of[table][left & 255];
            return sum;
        }
    };

public:
    Sweep(const Bounded &video, double upper, int64_t width, Poll &poll)
        : v_(video), upper_(upper), width_(static_cast<size_t>(width)), poll_(poll), before_(static_cast<size_t>(v_.steps)) {
        std::vector<double> skip(static_cast<size_t>(v_.steps));
        for (int64_t k = 0; k < v_.steps; ++k) {
            std::copy_n(v_.before + k * static_cast<int64_t>(WORDS), WORDS, before_[k].begin());
            const bool must = v_.skip[k] == INF;
            add(must ? needed_ : may_skip_, k);
            skip[k] = must ? 0.0 : v_.skip[k];
        }
        skips_.set(skip.data(), v_.steps);
        // From the last clip backwards: in how many a step can be shown at all, and which steps can be shown no more.
        room_.assign(static_cast<size_t>(v_.clips + 1), 0);
        due_.assign(room_.size(), needed_);
        for (int64_t clip = v_.clips - 1; clip >= 0; --clip) {
            due_[clip] = due_[clip + 1];
            bool any = false;
            for (int64_t k = 0; k < v_.steps; ++k)
                if (v_.match[clip * v_.steps + k] < INF) {
                    any = true;
                    due_[clip][static_cast<size_t>(k / 64)] &= ~(uint64_t{1} << (k % 64));
                }
            room_[clip] = room_[clip + 1] + any;
        }
    }

    Swept run() {
        Swept found;
        std::vector<std::vector<Step>> traceback(static_cast<size_t>(v_.clips));
        Column now, next;
        now.clear(1);
        now.put(Mask{}, {0, 0, 0, -1, -1, -1, -1});
        for (int64_t clip = 0; clip < v_.clips; ++clip) {
            found.expanded += static_cast<int64_t>(now.states.size());
            limit_ = upper_;
            next.clear(2 * now.ideals.size());
            advance(now, next, clip, found.dropped);
            found.dropped = std::min(found.dropped, next.narrow(width_));
            if (next.states.empty()) return found;
            std::vector<Step> &kept = traceback[clip];
            kept.reserve(next.states.size());
            for (const State &s : next.states) kept.push_back({s.from, s.label});
            std::swap(now, next);
        }
        int32_t at = -1;
        for (size_t i = 0; i < now.states.size(); ++i) {
            const Mask &done = now.ideals[now.states[i].ideal].done;
            if (left(done) > 0) continue;
            Mask waived;
            for (size_t w = 0; w < WORDS; ++w) waived[w] = may_skip_[w] & ~done[w];
            const double cost = now.states[i].cost + skips_(waived);
            if (cost < found.cost) {
                found.cost = cost;
                at = static_cast<int32_t>(i);
            }
        }
        if (!(found.cost < upper_)) {
            found.cost = INF;
            return found;
        }
        found.labels.resize(static_cast<size_t>(v_.clips));
        for (int64_t clip = v_.clips - 1; clip >= 0; --clip) {
            const Step &step = traceback[clip][at];
            found.labels[clip] = step.label;
            at = step.from;
        }
        return found;
    }

private:
    const Bounded &v_;
    const double upper_;
    const size_t width_;
    Poll &poll_;
    double limit_ = INF;  // bounds from here on are too high: of what is known, or because there is no room
    std::vector<Mask> before_;
    Mask needed_{}, may_skip_{};
    std::vector<int64_t> room_;
    std::vector<Mask> due_;
    Sums skips_, weights_;

    static void add(Mask &set, int64_t step) { set[static_cast<size_t>(step / 64)] |= uint64_t{1} << (step % 64); }
    static bool has(const Mask &set, int64_t step) { return set[static_cast<size_t>(step / 64)] >> (step % 64) & 1; }
    int64_t left(const Mask &done) const {
        int64_t count = 0;
        for (size_t w = 0; w < WORDS; ++w) count += std::popcount(needed_[w] & ~done[w]);
        return count;
    }

    void advance(const Column &now, Column &next, int64_t clip, double &dropped) {
        const double *match = v_.match + clip * v_.steps, drop = v_.drop[clip];
        const double free = v_.free[clip + 1], *going = v_.going + (clip + 1) * v_.steps;
        const double *weight = v_.weight + (clip + 1) * v_.steps;
        const int64_t clips_left = room_[clip + 1];
        const Mask &due = due_[clip + 1];
        weights_.set(weight, v_.steps);
        const auto put = [&](const Mask &done, int64_t step, int64_t label, double cost, double bound, int32_t from) {
            if (!(bound < upper_)) return;
            for (size_t w = 0; w < WORDS; ++w)
                if (due[w] & ~done[w]) return;
            if (!(bound < limit_)) {
                dropped = std::min(dropped, bound);
                return;
            }
            next.put(done, {cost, bound, 0, -1, from, static_cast<int16_t>(step), static_cast<int16_t>(label)});
        };
        for (const Ideal &ideal : now.ideals) {
            poll_(8 * v_.steps);
            if (next.states.size() > 4 * width_ + 1024) {
                limit_ = std::min(limit_, next.narrow(width_));
                dropped = std::min(dropped, limit_);
            }
            const Mask &done = ideal.done;
            const double given = weights_(done);
            int32_t cheapest = ideal.first;
            const int64_t to_show = left(done);
            for (int32_t at = ideal.first; at >= 0; at = now.states[at].next) {
                const State &s = now.states[at];
                if (s.cost < now.states[cheapest].cost) cheapest = at;
                if (to_show > clips_left) continue;  // a clip for each is needed
                if (s.step >= 0) {
                    const double cost = s.cost + match[s.step];
                    put(done, s.step, s.step, cost, cost + going[s.step] + given, at);
                }
                if (!v_.contiguous) {
                    const double cost = s.cost + drop;
                    put(done, s.step, -1, cost, cost + (s.step < 0 ? free : going[s.step]) + given, at);
                }
            }
            const double so_far = now.states[cheapest].cost;
            if (v_.contiguous && to_show <= clips_left) put(done, -1, -1, so_far + drop, so_far + drop + free + given, cheapest);
            for (int64_t step = 0; step < v_.steps; ++step) {
                if (has(done, step) || to_show - has(needed_, step) > clips_left) continue;
                Mask waived;
                bool waives = false, is_open = true;
                for (size_t w = 0; w < WORDS; ++w) {
                    waived[w] = before_[step][w] & ~done[w];
                    waives |= waived[w] != 0;
                    is_open &= !(waived[w] & ~may_skip_[w]);
                }
                if (!is_open) continue;
                Mask after = done;
                add(after, step);
                double cost = so_far + match[step], more = weight[step];
                if (waives) {
                    cost += skips_(waived);
                    more += weights_(waived);
                    for (size_t w = 0; w < WORDS; ++w) after[w] |= waived[w];
                }
                put(after, step, step, cost, cost + going[step] + given + more, cheapest);
            }
        }
    }
};

constexpr int64_t MOST_WORDS = 16;

inline Swept sweep(const Bounded &video, int64_t words, double upper, int64_t width, Poll &poll) {
    switch (words) {
    case 1:
        return Sweep<1>(video, upper, width, poll).run();
    case 2:
        return Sweep<2>(video, upper, width, poll).run();
    case 4:
        return Sweep<4>(video, upper, width, poll).run();
    default:
        return Sweep<MOST_WORDS>(video, upper, width, poll).run();
    }
}

}  // namespace g2v
