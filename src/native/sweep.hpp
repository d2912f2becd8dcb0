// The beam over ideals, from those of few steps to those of many. The readable version is in graph2vid/alignment/beam.py.
#pragma once
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <stdexcept>

#include "climb.hpp"

namespace g2v {

// One video for the beam. What is still to come after `clip` clips costs at the least `free` (nothing goes on) or `going` (a step
// may), and the sum of `weight` over the steps that are done.
struct Bounded {
    int64_t steps, clips;
    bool contiguous;
    const double *match, *drop, *skip;    // [steps][clips], [clips], [steps] (+inf: must be shown)
    const double *free, *going, *weight;  // [clips + 1], [steps][clips + 1], [steps][clips + 1]
    const uint64_t *before;               // [steps][words]
};

// How much a sweep may keep: ideals with the same number of steps, and bytes of what they cost.
struct Breadth {
    int64_t width, bytes;
};

struct Swept {
    double cost = std::numeric_limits<double>::infinity(), dropped = cost;
    int64_t expanded = 0;
    std::vector<int64_t> labels;  // empty where nothing was found
};

template <size_t WORDS> class Sweep {
    using Mask = std::array<uint64_t, WORDS>;
    static constexpr double INF = std::numeric_limits<double>::infinity();
    static constexpr int64_t PAD = LANES<double>;  // beyond the last clip, so that vectors may be read there
    static constexpr int64_t AHEAD = 16;           // clips that are looked at before it is known whether segments last so long
    static constexpr int64_t BITS = 4, ROWS = 64 / BITS * static_cast<int64_t>(WORDS);

    // Steps that are done, and what the clips so far cost at the least, after from, from + 1, … clips.
    struct Ideal {
        Mask done;
        const double *best;
        int32_t from, to;
    };
    // An ideal that is yet to be looked at, and the ways to it: a step that begins after another ideal.
    struct Wanted {
        Mask done;
        double bound;
        int32_t first;
    };
    struct Way {
        int32_t ideal, next;
        int32_t step;
    };

    static bool same(const Mask &a, const Mask &b) {
        uint64_t other = 0;
        for (size_t w = 0; w < WORDS; ++w) other |= a[w] ^ b[w];
        return other == 0;
    }

    // The ideals to be looked at that have the same number of steps.
    struct Level {
        std::vector<Wanted> ideals;
        std::vector<Way> ways;
        std::vector<int32_t> slots = std::vector<int32_t>(64, -1);

        void put(const Mask &done, double bound, int32_t ideal, int64_t step) {
            if (2 * (ideals.size() + 1) > slots.size()) {
                slots.assign(2 * slots.size(), -1);
                for (size_t i = 0; i < ideals.size(); ++i) slots[slot_of(ideals[i].done)] = static_cast<int32_t>(i);
            }
            int32_t &slot = slots[slot_of(done)];
            if (slot < 0) {
                slot = static_cast<int32_t>(ideals.size());
                ideals.push_back({done, INF, -1});
            }
            Wanted &wanted = ideals[slot];
            ways.push_back({ideal, wanted.first, static_cast<int32_t>(step)});
            wanted.first = static_cast<int32_t>(ways.size()) - 1;
            wanted.bound = std::min(wanted.bound, bound);
        }
        // Keep the `width` ideals of the least bounds; return the least bound of the others.
        double narrow(size_t width) {
            if (ideals.size() <= width) return INF;
            const auto middle = ideals.begin() + static_cast<std::ptrdiff_t>(width);
            std::nth_element(ideals.begin(), middle, ideals.end(),
                             [](const Wanted &a, const Wanted &b) { return a.bound < b.bound; });
            const double least = middle->bound;
            ideals.resize(width);
            std::vector<Way> kept;
            for (Wanted &wanted : ideals) {
                int32_t first = -1;
                for (int32_t at = wanted.first; at >= 0; at = ways[at].next) {
                    kept.push_back({ways[at].ideal, first, ways[at].step});
                    first = static_cast<int32_t>(kept.size()) - 1;
                }
                wanted.first = first;
            }
            ways = std::move(kept);
            std::fill(slots.begin(), slots.end(), -1);
            for (size_t i = 0; i < ideals.size(); ++i) slots[slot_of(ideals[i].done)] = static_cast<int32_t>(i);
            return least;
        }

    private:
        size_t slot_of(const Mask &done) const {
            uint64_t hash = 0;
            for (const uint64_t word : done) {
                hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
                hash ^= hash >> 32;
            }
            size_t slot = static_cast<size_t>(hash) & (slots.size() - 1);
            while (slots[slot] >= 0 && !same(ideals[slots[slot]].done, done)) slot = (slot + 1) & (slots.size() - 1);
            return slot;
        }
    };

    // Numbers that stay where they are.
    class Store {
        static constexpr size_t CHUNK = 1 << 16;
        std::vector<std::unique_ptr<double[]>> chunks_;
        size_t left_ = 0;

    public:
        const double *keep(const double *numbers, size_t count) {
            if (count > left_) {
                left_ = std::max(CHUNK, count);
                chunks_.push_back(std::make_unique_for_overwrite<double[]>(left_ + PAD));
                next_ = chunks_.back().get();
            }
            double *const kept = next_;
            std::copy_n(numbers, count, kept);
            next_ += count;
            left_ -= count;
            return kept;
        }

    private:
        double *next_ = nullptr;
    };

public:
    Sweep(const Bounded &video, double upper, Breadth breadth, Poll &poll)
        : v_(video), upper_(upper), breadth_(breadth), poll_(poll), stride_(v_.clips + 1 + PAD + AHEAD),
          before_(static_cast<size_t>(v_.steps)), skip_(static_cast<size_t>(v_.steps)), last_(static_cast<size_t>(v_.steps)),
          by_room_(static_cast<size_t>(v_.steps + 1), -1), entry_(static_cast<size_t>(v_.steps * stride_), INF),
          sums_(static_cast<size_t>(((v_.steps + BITS - 1) / BITS << BITS) * stride_)), best_(static_cast<size_t>(stride_), INF),
          given_(best_), reached_(best_), detour_(best_) {
        for (int64_t k = 0; k < v_.steps; ++k) {
            std::copy_n(v_.before + k * static_cast<int64_t>(WORDS), WORDS, before_[k].begin());
            const bool must = v_.skip[k] == INF;
            add(must ? needed_ : may_skip_, k);
            add(all_, k);
            skip_[k] = must ? 0.0 : v_.skip[k];
            const double *match = match_of(k), *going = going_of(k), *weight = weight_of(k);
            for (int64_t clip = 0; clip < v_.clips; ++clip)
                entry_[static_cast<size_t>(k * stride_ + clip)] = match[clip] + going[clip + 1] + weight[clip + 1];
        }
        sum_weights();
        find_room();
    }

    Swept run() {
        std::vector<Level> levels(static_cast<size_t>(v_.steps + 1));
        levels[0].put(Mask{}, -INF, -1, -1);
        for (int64_t size = 0; size <= v_.steps; ++size) {
            const double least = levels[size].narrow(static_cast<size_t>(breadth_.width));
            found_.dropped = std::min(found_.dropped, least);
            limit_ = std::min(upper_, least + (least < INF ? 0.1 * (upper_ - least) : 0.0));
            look_at(levels, size);
            levels[size] = Level();
        }
        if (found_.cost < INF) trace();
        return std::move(found_);
    }

private:
    const Bounded &v_;
    const double upper_;
    double limit_ = INF;
    const Breadth breadth_;
    Poll &poll_;
    const SearchKernels &kernels_ = search_kernels();
    const int64_t stride_;
    std::vector<Mask> before_;
    Mask all_{}, needed_{}, may_skip_{};
    std::vector<double> skip_;
    std::vector<int64_t> last_, by_room_;                  // [steps], [steps + 1]: see find_room
    std::vector<double> entry_;                            // [steps][stride]: bounds of what begins, but for what was before
    std::vector<double> sums_;                             // [rows << BITS][stride], of `weight` over up to BITS steps
    std::vector<double> best_, given_, reached_, detour_;  // [stride], of the ideal that is looked at
    std::vector<Ideal> ideals_;
    Store store_;
    int64_t bytes_ = 0;  // that the ideals take
    int32_t end_ = -1;   // the ideal of the cheapest alignment
    Swept found_;

    static void add(Mask &set, int64_t step) { set[static_cast<size_t>(step / 64)] |= uint64_t{1} << (step % 64); }
    static bool has(const Mask &set, int64_t step) { return set[static_cast<size_t>(step / 64)] >> (step % 64) & 1; }
    static Mask joined(Mask a, const Mask &b) {
        for (size_t w = 0; w < WORDS; ++w) a[w] |= b[w];
        return a;
    }
    static Mask without(Mask a, const Mask &b) {
        for (size_t w = 0; w < WORDS; ++w) a[w] &= ~b[w];
        return a;
    }
    static bool any(const Mask &set) {
        return std::any_of(set.begin(), set.end(), [](uint64_t word) { return word != 0; });
    }
    static int64_t count(const Mask &set) {
        int64_t found = 0;
        for (const uint64_t word : set) found += std::popcount(word);
        return found;
    }
    template <class Each> static void each(const Mask &set, Each call) {
        for (size_t w = 0; w < WORDS; ++w)
            for (uint64_t word = set[w]; word; word &= word - 1) call(static_cast<int64_t>(64 * w) + std::countr_zero(word));
    }
    const double *match_of(int64_t step) const { return v_.match + step * v_.clips; }
    const double *going_of(int64_t step) const { return v_.going + step * (v_.clips + 1); }
    const double *weight_of(int64_t step) const { return v_.weight + step * (v_.clips + 1); }
    double skips(const Mask &waived) const {
        double sum = 0;
        each(waived, [&](int64_t step) { sum += skip_[step]; });
        return sum;
    }
    static int64_t padded(int64_t number) { return (number + PAD - 1) / PAD * PAD; }

    // Tables for the sums of weights over sets.
    void sum_weights() {
        for (int64_t row = 0; row * BITS < v_.steps; ++row)
            for (int64_t bits = 1; bits < 1 << BITS; ++bits) {
                const int64_t step = row * BITS + std::countr_zero(static_cast<uint64_t>(bits));
                const double *const rest = sums_of(row, bits & (bits - 1));
                double *const sum = sums_.data() + ((row << BITS) + bits) * stride_;
                if (step < v_.steps) std::transform(rest, rest + v_.clips + 1, weight_of(step), sum, std::plus<>());
            }
    }
    const double *sums_of(int64_t row, int64_t bits) const { return sums_.data() + ((row << BITS) + bits) * stride_; }
    // Add to `to` the sums of weights over a set, after from, from + 1, … clips.
    void add_weights(double *to, const Mask &set, int64_t from, int64_t number) {
        std::array<const double *, ROWS> rows;
        int64_t n_rows = 0;
        for (size_t w = 0; w < WORDS; ++w)
            for (uint64_t row = w * (64 / BITS), left = set[w]; left; ++row, left >>= BITS)
                if (const uint64_t bits = left & ((1 << BITS) - 1))
                    rows[n_rows++] = sums_of(static_cast<int64_t>(row), static_cast<int64_t>(bits)) + from;
        kernels_.add(to, rows.data(), n_rows, padded(number));
    }

    // After how many clips at the most each step must be done, and as many as are left must.
    void find_room() {
        for (int64_t k = 0; k < v_.steps; ++k) {
            last_[k] = v_.clips;
            while (has(needed_, k) && last_[k] >= 0 && (last_[k] == v_.clips || match_of(k)[last_[k]] == INF)) --last_[k];
        }
        int64_t room = 0;
        for (int64_t clip = v_.clips; clip >= 0; --clip) {
            bool can_show = false;
            for (int64_t k = 0; clip < v_.clips && k < v_.steps; ++k) can_show |= match_of(k)[clip] < INF;
            room += can_show;
            for (int64_t left = std::min(room, v_.steps); left >= 0 && by_room_[left] < 0; --left) by_room_[left] = clip;
        }
    }
    // After how many clips an ideal is of no use.
    int64_t last_of(const Mask &done) const {
        const Mask left = without(needed_, done);
        int64_t last = by_room_[count(left)];
        each(left, [&](int64_t step) { last = std::min(last, last_[step]); });
        return last;
    }

    // Look at all ideals of a level, as far as there is room; from the most promising to the least, where there may be too little.
    void look_at(std::vector<Level> &levels, int64_t size) {
        Level &level = levels[size];
        const int64_t room = breadth_.bytes - bytes_, share = std::min(room / 2, 4 * room / (v_.steps + 1 - size));
        const int64_t most = bytes_ + share, one = 8 * v_.clips + static_cast<int64_t>(2 * sizeof(Ideal));
        if (static_cast<int64_t>(level.ideals.size()) > share / one)
            std::sort(level.ideals.begin(), level.ideals.end(),
                      [](const Wanted &a, const Wanted &b) { return a.bound < b.bound; });
        const int64_t known = bytes_;
        for (const Wanted &wanted : level.ideals) {
            if (bytes_ > known && bytes_ + one > most) {
                found_.dropped = std::min(found_.dropped, wanted.bound);
                return;
            }
            if (look_at(wanted, level.ways)) enter_steps(size, levels);
        }
    }

    // Find what the clips so far cost where the steps of an ideal are done; return whether any of it is worth it.
    bool look_at(const Wanted &wanted, const std::vector<Way> &ways) {
        const int64_t last = last_of(wanted.done);
        int64_t first = v_.clips, to = 0;
        for (int32_t at = wanted.first; at >= 0; at = ways[at].next) {
            if (ways[at].ideal < 0) {
                first = to = 0;
                continue;
            }
            const Ideal &before = ideals_[ways[at].ideal];
            first = std::min<int64_t>(first, before.from + 1);
            to = std::max<int64_t>(to, before.to);
        }
        int64_t ready = first;  // what is still to come is known up to there
        const auto prepare = [&](int64_t until) {
            if (ready >= until) return;
            std::fill(given_.begin() + ready, given_.begin() + padded(until - ready) + ready, 0.0);
            std::fill(best_.begin() + ready, best_.begin() + until, INF);
            add_weights(given_.data() + ready, wanted.done, ready, until - ready);
            ready = until;
        };
        prepare(std::min(to + AHEAD, last) + 1);
        int64_t work = 0;
        for (int32_t at = wanted.first; at >= 0; at = ways[at].next) {
            if (ways[at].ideal < 0) {
                best_[0] = 0.0;
                continue;
            }
            const Ideal &before = ideals_[ways[at].ideal];
            Segments segments = after(before, ways[at].step, wanted.done);
            int64_t next = before.from + 1;
            while (next <= last && (next = kernels_.follow(segments, next, ready - 1, best_.data())) == ready)
                prepare(std::min(ready + AHEAD, last + 1));
            work += next - before.from;
        }
        // Background; what costs too much is left out.
        int64_t from = -1, end = -1;
        double rests = INF;
        for (int64_t clip = first; clip <= last; ++clip) {
            if (clip == ready) {
                if (rests == INF) break;
                prepare(std::min(ready + AHEAD, last + 1));
            }
            double cost = std::min(best_[clip], rests);
            if (!(cost + v_.free[clip] + given_[clip] < limit_)) cost = INF;
            best_[clip] = cost;
            rests = INF;
            if (cost == INF) continue;
            ++found_.expanded;
            if (from < 0) from = clip;
            end = clip + 1;
            if (clip < v_.clips && (v_.contiguous || ways[wanted.first].ideal < 0)) rests = cost + v_.drop[clip];
        }
        poll_(8 * (work + 32));
        if (from < 0) return false;
        const Mask left = without(may_skip_, wanted.done);
        if (end > v_.clips && !any(without(needed_, wanted.done)))
            if (const double cost = best_[v_.clips] + skips(left); cost < found_.cost && cost < upper_) {
                found_.cost = cost;
                end_ = static_cast<int32_t>(ideals_.size());
            }
        const double *kept = store_.keep(best_.data() + from, static_cast<size_t>(end - from));
        ideals_.push_back({wanted.done, kept, static_cast<int32_t>(from), static_cast<int32_t>(end)});
        bytes_ += 8 * (end - from) + static_cast<int64_t>(2 * sizeof(Ideal));
        prepare(std::min(end, v_.clips) + 1);
        return true;
    }
    // Segments of a step after an ideal, which lead to another one.
    Segments after(const Ideal &before, int64_t step, const Mask &done) const {
        Mask waived = without(done, before.done);
        waived[static_cast<size_t>(step / 64)] &= ~(uint64_t{1} << (step % 64));
        return {before.best,   skips(waived), before.from, before.to, match_of(step), v_.drop, going_of(step),
                given_.data(), v_.contiguous, limit_,      INF};
    }

    // Put what the last ideal leads to into the levels.
    void enter_steps(int64_t size, std::vector<Level> &levels) {
        const int32_t at = static_cast<int32_t>(ideals_.size()) - 1;
        const Ideal &ideal = ideals_[at];
        const int64_t number = std::min<int64_t>(ideal.to, v_.clips) - ideal.from;
        if (number <= 0) return;
        const double *const given = given_.data() + ideal.from + 1;
        reach(ideal, number);
        kernels_.add(reached_.data(), &given, 1, padded(number));
        each(without(all_, ideal.done), [&](int64_t step) {
            const Mask waived = without(before_[step], ideal.done);
            if (any(without(waived, may_skip_))) return;
            const bool waives = any(waived);
            if (waives) {
                std::swap(reached_, detour_);
                reach(ideal, number);
                add_weights(reached_.data(), joined(ideal.done, waived), ideal.from + 1, number);
            }
            double bound = kernels_.least_sum(reached_.data(), entry_.data() + step * stride_ + ideal.from, padded(number));
            if (waives) {
                std::swap(reached_, detour_);
                bound += skips(waived);
            }
            if (!(bound < upper_)) return;
            Mask done = joined(ideal.done, waived);
            add(done, step);
            Level &level = levels[size + 1 + (waives ? count(waived) : 0)];
            level.put(done, bound, at, step);
            if (level.ideals.size() > 4 * static_cast<size_t>(breadth_.width) + 1024)
                found_.dropped = std::min(found_.dropped, level.narrow(static_cast<size_t>(breadth_.width)));
        });
        poll_(number * v_.steps / 2 + 64);
    }
    // Write what the clips so far cost.
    void reach(const Ideal &ideal, int64_t number) {
        std::copy_n(ideal.best, number, reached_.begin());
        std::fill(reached_.begin() + number, reached_.begin() + padded(number), INF);
    }

    // Write the labels of the cheapest alignment.
    void trace() {
        found_.labels.assign(static_cast<size_t>(v_.clips), -1);
        int32_t at = end_;
        int64_t clip = v_.clips;
        std::vector<double> shown(static_cast<size_t>(v_.clips + 1));
        while (any(ideals_[at].done)) {
            const Ideal &ideal = ideals_[at];
            const double cost = ideal.best[clip - ideal.from];
            if (v_.contiguous && clip > ideal.from && ideal.best[clip - 1 - ideal.from] + v_.drop[clip - 1] == cost) {
                --clip;  // background
                continue;
            }
            int32_t before = at;
            int64_t step = -1;
            // The last of the ideals, of fewer steps, that leads here.
            while (step < 0) {
                if (--before < 0) throw std::logic_error("an ideal of the beam comes from nowhere");
                const Ideal &other = ideals_[before];
                if (any(without(other.done, ideal.done))) continue;
                each(without(ideal.done, other.done), [&](int64_t k) {
                    if (step >= 0) return;
                    Mask done = joined(other.done, before_[k]);
                    add(done, k);
                    if (same(done, ideal.done) && other.from < clip) {
                        show(after(other, k, ideal.done), clip, shown);
                        if (shown[clip] == cost) step = k;
                    }
                });
            }
            const Segments s = after(ideals_[before], step, ideal.done);
            while (true) {
                const double here = shown[clip];
                --clip;
                const double going = clip > s.from ? shown[clip] : INF;
                if (!s.contiguous && s.drop[clip] + going == here) continue;
                found_.labels[clip] = step;
                if (s.match[clip] + going != here) break;
            }
            at = before;
        }
    }
    // What segments cost that end before each clip from `from` + 1 to `clip`.
    static void show(const Segments &s, int64_t clip, std::vector<double> &shown) {
        shown[s.from] = INF;
        for (int64_t at = s.from + 1; at <= clip; ++at) {
            const double begins = at <= s.to ? s.before[at - 1 - s.from] + s.waived : INF;
            const double carry = shown[at - 1];
            const double cost = s.match[at - 1] + (begins < carry ? begins : carry);
            shown[at] = s.contiguous ? cost : std::min(cost, s.drop[at - 1] + carry);
        }
    }
};

constexpr int64_t MOST_WORDS = 16;

inline Swept sweep(const Bounded &video, int64_t words, double upper, Breadth breadth, Poll &poll) {
    switch (words) {
    case 1:
        return Sweep<1>(video, upper, breadth, poll).run();
    case 2:
        return Sweep<2>(video, upper, breadth, poll).run();
    case 4:
        return Sweep<4>(video, upper, breadth, poll).run();
    default:
        return Sweep<MOST_WORDS>(video, upper, breadth, poll).run();
    }
}

}  // namespace g2v
