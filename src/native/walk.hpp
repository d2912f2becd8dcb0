// The way back: from the table of bests to the labels, with the tie rule of the product: among optimal alignments, the
// label sequence that is lexicographically smallest read from the last clip backwards, background (-1) first.
//
// States are not stored, only the best of each ideal; the few rows that the way back needs are computed again, with the
// same operations and therefore the same numbers.
#pragma once
#include "forward.hpp"

namespace g2v {

template <class T> class Walk {
public:
    Walk(Forward<T> &forward, int64_t n_clips, int lane, int64_t *labels)
        : f_(forward), g_(forward.procedure()), n_(n_clips), lane_(lane), labels_(labels) {}

    void run() { f_.contiguous() ? contiguous() : loose(); }

private:
    static constexpr T INF = std::numeric_limits<T>::infinity();
    static constexpr int BACKGROUND = -1;
    // A state that explains the clips up to now, and the price of the steps waived after it.
    struct Candidate {
        int64_t state;  // -1: nothing is done yet
        T waived;
    };
    struct Row {
        int64_t state;
        std::vector<T> values;
    };

    Forward<T> &f_;
    const Procedure &g_;
    int64_t n_;
    int lane_;
    int64_t *labels_;
    std::vector<Row> rows_;
    std::vector<T> from_;
    int64_t rows_window_ = -1;

    int step(int64_t state) const { return state < 0 ? BACKGROUND : g_.state_step[state]; }
    T best(int64_t ideal, int64_t clip) const { return f_.best(ideal, clip, lane_); }

    // Make clip j and the column before it available.
    void want(int64_t j) {
        f_.want(j);
        const size_t enough = 2 * static_cast<size_t>(g_.n_steps) + 2;
        if (rows_window_ != f_.window_first() || rows_.size() > enough) rows_.clear();
        rows_window_ = f_.window_first();
    }

    // The value of a state (or of "nothing done") after clip j. Rows are computed up to the j of the first call; later
    // calls ask for smaller ones.
    T value(int64_t state, int64_t j) {
        if (state < 0) return best(0, j);
        const int64_t first = f_.window_first();
        for (const Row &row : rows_)
            if (row.state == state && j - first < static_cast<int64_t>(row.values.size())) return row.values[j - first];
        Row row{state, std::vector<T>(static_cast<size_t>(j - first + 1))};
        from_.resize(row.values.size());
        f_.best_row(g_.state_from[state], j, lane_, from_.data());
        T m = f_.start_of(state, lane_);
        row.values[0] = m;
        for (int64_t c = 1; c <= j - first; ++c) {
            const T shown = f_.match(g_.state_step[state], first + c, lane_) + std::min(from_[c - 1], m);
            m = f_.contiguous() ? shown : std::min(shown, f_.drop(first + c, lane_) + m);
            row.values[c] = m;
        }
        rows_.push_back(std::move(row));
        return m;
    }

    // Call visit(candidate) for everything that can stand behind best[ideal]: its states; with skips, for each step of the
    // ideal the state in which just the steps after it are waived (more may be waived later: that loses nothing).
    template <class Visit> void behind(int64_t ideal, Visit visit) {
        if (!f_.skips()) {
            for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s) visit(Candidate{s, T(0)});
            return;
        }
        for (int w = 0; w < g_.n_steps; ++w) {
            if (!g_.holds(ideal, w)) continue;
            int64_t q = ideal;
            T waived = 0;
            for (int64_t s = g_.state_start[q]; s < g_.state_start[q + 1];) {
                if (g_.follows(w, g_.state_step[s])) {
                    waived += f_.skip(g_.state_step[s], lane_);
                    q = g_.state_from[s];
                    s = g_.state_start[q];
                } else {
                    ++s;
                }
            }
            if (waived < INF) visit(Candidate{g_.state_of(q, w), waived});
        }
    }

    // The state that shows clip j in the preferred optimal way to best[ideal, j], or -1 for background.
    int64_t preferred(int64_t ideal, int64_t j) {
        T least = f_.drop(j, lane_) + best(ideal, j - 1);
        int64_t chosen = -1;
        if (least == best(ideal, j)) return chosen;
        behind(ideal, [&](Candidate c) {
            const T cost = value(c.state, j) + c.waived;
            if (cost < least) {
                least = cost;
                chosen = c.state;
            }
        });
        return chosen;
    }

    void contiguous() {
        int64_t ideal = g_.ideals() - 1, state = -1;  // state: shows the clip after j
        for (int64_t j = n_; j > 0; --j) {
            want(j);
            int64_t chosen;
            if (state < 0) {
                chosen = preferred(ideal, j);
            } else {
                const int64_t from = g_.state_from[state];
                const T stay = value(state, j), leave = best(from, j);
                chosen = stay < leave ? state : preferred(from, j);
                if (stay == leave && step(chosen) > step(state)) chosen = state;
                if (chosen != state) ideal = from;
            }
            labels_[j - 1] = step(chosen);
            state = chosen;
        }
    }

    // Background inside a step keeps the state: several tied states are carried along until a label tells them apart.
    void loose() {
        std::vector<Candidate> tied, kept;
        T least;
        auto add = [&](Candidate c, T cost) {
            if (cost < least) tied.clear();
            if (cost <= least && cost < INF) {
                least = cost;
                tied.push_back(c);
            }
        };
        auto add_behind = [&](int64_t ideal, int64_t j) {
            behind(ideal, [&](Candidate c) { add(c, value(c.state, j) + c.waived); });
            T waived = 0;  // nothing was shown before
            for (int w = 0; w < g_.n_steps; ++w)
                if (g_.holds(ideal, w)) waived += f_.skips() ? f_.skip(w, lane_) : INF;
            add({-1, waived}, best(0, j) + waived);
        };
        least = INF;
        want(n_);
        add_behind(g_.ideals() - 1, n_);
        for (int64_t j = n_; j > 0; --j) {
            want(j);
            kept.clear();
            for (Candidate c : tied)
                if (c.state < 0 || value(c.state, j) == f_.drop(j, lane_) + value(c.state, j - 1)) kept.push_back(c);
            if (!kept.empty()) {
                labels_[j - 1] = BACKGROUND;
                tied.swap(kept);
                continue;
            }
            int64_t shown = tied[0].state;
            for (Candidate c : tied)
                if (step(c.state) < step(shown)) shown = c.state;
            labels_[j - 1] = step(shown);
            const T stay = value(shown, j - 1), leave = best(g_.state_from[shown], j - 1);
            tied.clear();
            least = INF;
            if (leave <= stay) add_behind(g_.state_from[shown], j - 1);
            if (stay <= leave) tied.push_back({shown, T(0)});
        }
    }
};

}  // namespace g2v
