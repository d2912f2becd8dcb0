// Cheapest relaxed alignments, and multipliers that raise their costs. The readable version is in
// graph2vid/alignment/relaxed.py.
#pragma once
#include <cmath>
#include <limits>
#include <tuple>

#include "search_job.hpp"
#include "solve.hpp"

namespace g2v {

inline const SearchKernels &search_kernels() {
#if defined(G2V_HAVE_AVX2)
    if (std::string_view(kernels().name) == "avx2") return search_avx2();
#endif
    return search_base();
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

// What the rest of the video costs at the least; see Completions in graph2vid/alignment/relaxed.py.
struct Completions {
    std::vector<double> free, going, weight;  // [clips + 1], [steps][clips + 1], [steps][clips + 1]
};

class Climb {
    static constexpr double INF = std::numeric_limits<double>::infinity(), TIE = 1e-10;

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

    // Go on from the best multipliers so far, with large changes again.
    void start() {
        now_ = best_;
        direction_ = Multipliers(steps_, edges_ * clips_);
        daring_ = 1.0;
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
    // What the rest of the video costs at the least, from everywhere, at the best multipliers.
    Completions completions(Poll &poll) {
        const Relaxed at = recur(best_, poll);
        const int64_t points = clips_ + 1;
        Completions found{std::vector<double>(at.free, at.free + points), std::vector<double>(steps_ * points), {}};
        found.weight.resize(found.going.size());
        std::vector<double> base(points);
        for (int64_t k = 0; k < steps_; ++k) {
            double *going = found.going.data() + k * points, *weight = found.weight.data() + k * points, waived = 0;
            for (int64_t clip = clips_; clip >= 0; --clip) {
                if (skip_[k] < INF) waived = std::min(waived, passed_over(k, clip));
                const double begin = begin_[clip * width_ + k], end = end_[clip * width_ + k];
                base[clip] += best_.once[k] - waived;
                going[clip] = going_[clip * width_ + k] - end;
                weight[clip] = end + begin - waived;
            }
        }
        for (int64_t clip = 0; clip < points; ++clip) {
            found.free[clip] -= base[clip];
            for (int64_t k = 0; k < steps_; ++k) found.going[k * points + clip] -= base[clip];
        }
        return found;
    }

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

    // What the rest of the video costs at the least at some multipliers, beside what is given back.
    Relaxed recur(const Multipliers &at, Poll &poll) {
        for (int64_t clip = 0; clip <= clips_; ++clip) std::copy_n(at.once.begin(), steps_, begin_.begin() + clip * width_);
        std::fill(end_.begin(), end_.end(), 0.0);
        for (int64_t e = 0; e < edges_; ++e) {
            const double *order = at.order.data() + e * clips_;
            double *begin = begin_.data() + later_[e], *end = end_.data() + earlier_[e], sum = 0;
            for (int64_t clip = clips_ - 1; clip >= 0; --clip) {
                sum += order[clip];
                begin[clip * width_] += sum;
                end[clip * width_] -= sum;
            }
        }
        const Relaxed relaxed{poll.pause(), clips_,        width_,      contiguous_,  match_.data(),
                              drop_.data(), begin_.data(), end_.data(), free_.data(), going_.data()};
        search_kernels().relax(relaxed);
        return relaxed;
    }

    // The cheapest alignment at the multipliers, and what it costs.
    double solve(Poll &poll) {
        segments_ = relaxed_segments(recur(now_, poll));
        double bound = free_[0];
        for (int64_t k = 0; k < steps_; ++k) {
            bound -= now_.once[k];
            if (skip_[k] == INF) continue;
            double least = INF;
            for (int64_t clip = 0; clip <= clips_; ++clip) least = std::min(least, passed_over(k, clip));
            if (least < 0) {
                bound += least;
                // Of several points that cost the same, up to rounding, the first.
                const double tie = TIE * (std::abs(now_.once[k]) + std::abs(skip_[k]) - least);
                int64_t where = 0;
                while (passed_over(k, where) > least + tie) ++where;
                segments_.push_back({k, where, where});
            }
        }
        return bound;
    }

    // What it costs to skip a step, if it is passed over at a point of the video.
    double passed_over(int64_t step, int64_t clip) const {
        return begin_[clip * width_ + step] + end_[clip * width_ + step] + skip_[step];
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

}  // namespace g2v
