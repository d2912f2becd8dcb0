// The traceback: from the table of bests to the labels, with the tie rule of the product: among optimal alignments, the
// label sequence that is lexicographically smallest read from the last clip backwards, background (-1) first.
//
// States are not stored, only the best of each ideal; what little the traceback needs of them is computed again, with the
// same operations and therefore the same numbers.
#pragma once
#include "forward.hpp"

namespace g2v {

template <class T> class Traceback {
public:
    Traceback(Forward<T> &forward, int64_t n_clips, int lane, int64_t *labels)
        : f_(forward), g_(forward.procedure()), n_(n_clips), lane_(lane), labels_(labels) {}

    void run() {
        if (f_.skips() && !g_.state_cost.empty()) side_by_side();
        else f_.contiguous() ? contiguous() : loose();
    }

private:
    static constexpr T INF = std::numeric_limits<T>::infinity();
    static constexpr int BACKGROUND = -1;
    // A state that explains the clips up to now, and the cost of the steps waived after it.
    struct Candidate {
        int64_t state;  // -1: nothing is done yet
        T waived;
    };
    // A state's values after clips first .. last, and what it could be entered at there, its cost of beginning included.
    struct Row {
        int64_t state, first, last, offset;  // clip `offset` is at the start of the memory
        std::vector<T> values, from;
        T value(int64_t j) const { return values[static_cast<size_t>(j - offset)]; }
        T enter(int64_t j) const { return from[static_cast<size_t>(j - offset)]; }
    };

    Forward<T> &f_;
    const Procedure &g_;
    int64_t n_;
    int lane_;
    int64_t *labels_;
    std::vector<Row> &rows_ = spare_rows();
    size_t used_ = 0;          // rows in use; the others keep their memory
    std::vector<int> waived_;  // after the states that are looked at
    int64_t rows_window_ = -1;

    // Rows keep their memory from one call to the next.
    static std::vector<Row> &spare_rows() {
        static thread_local std::vector<Row> rows;
        return rows;
    }
    int step(int64_t state) const { return state < 0 ? BACKGROUND : g_.state_step[state]; }
    T best(int64_t ideal, int64_t clip) const { return f_.best(ideal, clip, lane_); }

    // Make clip j and the column before it available.
    void want(int64_t j) {
        f_.want(j);
        f_.poll()(16 * g_.n_steps);
        const size_t enough = 2 * static_cast<size_t>(g_.n_steps) + 2;
        if (rows_window_ != f_.window_first() || used_ > enough) used_ = 0;
        rows_window_ = f_.window_first();
    }

    // The value of a state (or of "nothing done") after clip j.
    T value(int64_t state, int64_t j) { return state < 0 ? best(0, j) : row(state, j).value(j); }

    // A row that holds the state's value after clip j.
    const Row &row(int64_t state, int64_t j) {
        for (size_t i = 0; i < used_; ++i)
            if (rows_[i].state == state && rows_[i].first <= j && j <= rows_[i].last) return rows_[i];
        if (used_ == rows_.size()) rows_.emplace_back();
        Row &r = rows_[used_++];
        for (int64_t length = 16;; length *= 4)
            if (compute(r, state, std::max(f_.window_first(), j - length), j)) return r;
    }

    // Fill a row from clip `first` to `last`. Where its first value is not known, it is bounded from both sides: by +inf,
    // and by the best of the state's ideal. Rounding is monotone, so where the two meet, the values are exact. Returns
    // false where they do not meet.
    bool compute(Row &r, int64_t state, int64_t first, int64_t last) {
        const int step = g_.state_step[state];
        const size_t n = static_cast<size_t>(last - first + 1);
        f_.poll()(static_cast<int64_t>(4 * n));
        if (r.values.size() < n) {
            r.values.resize(n);
            r.from.resize(n);
        }
        f_.best_row(g_.state_from[state], first, last, lane_, r.from.data());
        if (!g_.state_cost.empty())
            for (size_t i = 0; i < n; ++i) r.from[i] += g_.begin_cost<T>(state);
        const bool known = first == f_.window_first();
        T high = known ? f_.start_of(state, lane_) : INF;
        T low = known ? high : f_.best(g_.ideal_of(state), first, lane_);
        int64_t exact = low == high ? first : last + 1;
        T *values = r.values.data();
        const T *from = r.from.data();
        values[0] = high;
        for (int64_t j = first + 1; j <= last; ++j, ++from) {
            const T match = f_.match(step, j, lane_);
            const T shown_high = match + std::min(*from, high), shown_low = match + std::min(*from, low);
            if (f_.contiguous()) {
                high = shown_high;
                low = shown_low;
            } else {
                const T drop = f_.drop(j, lane_);
                high = std::min(shown_high, drop + high);
                low = std::min(shown_low, drop + low);
            }
            *++values = high;
            if (low != high) exact = last + 1;
            else if (exact > last) exact = j;
        }
        r.state = state;
        r.first = exact;
        r.last = last;
        r.offset = first;
        return exact <= last;
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
                const Row &known = row(state, j);
                const T stay = known.value(j), leave = known.enter(j);
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
            const T stay = value(shown, j - 1), leave = best(g_.state_from[shown], j - 1) + g_.begin_cost<T>(shown);
            tied.clear();
            least = INF;
            if (leave <= stay) add_behind(g_.state_from[shown], j - 1);
            if (stay <= leave) tied.push_back({shown, T(0)});
        }
    }

    // A point of a cheapest path after some clips: an ideal or a state, and the cost of the rest of the path.
    struct Place {
        bool in_state;
        int64_t number;
        T rest;
        bool operator==(const Place &) const = default;
    };

    // Skip costs and costs of beginning: a step that is waived after the last shown one does not add to what that costs to
    // begin, so many ideals may stand behind one label. Paths of equal labels and cost are followed side by side.
    void side_by_side() {
        std::vector<Place> places{{false, g_.ideals() - 1, T(0)}}, shows, next;
        for (int64_t j = n_; j > 0; --j) {
            want(j);
            T least = INF;
            int label = BACKGROUND;
            next.clear();
            shows.clear();
            auto add = [&](T cost, int step, Place place) {
                if (cost > least || (cost == least && step > label)) return;
                if (cost < least || step < label) {
                    next.clear();
                    shows.clear();
                    least = cost;
                    label = step;
                }
                auto &same = step == BACKGROUND ? next : shows;
                if (std::find(same.begin(), same.end(), place) == same.end()) same.push_back(place);
            };
            auto add_state = [&](int64_t state, T rest) {
                const T drop = f_.drop(j, lane_);
                if (f_.contiguous()) {
                    add(value(state, j) + rest, step(state), {true, state, rest});
                    return;
                }
                add(drop + value(state, j - 1) + rest, BACKGROUND, {true, state, rest + drop});
                const T into = std::min(best(g_.state_from[state], j - 1) + g_.begin_cost<T>(state), value(state, j - 1));
                add(f_.match(step(state), j, lane_) + into + rest, step(state), {true, state, rest});
            };
            for (const Place &place : places) {
                if (place.in_state) {
                    add_state(place.number, place.rest);
                    continue;
                }
                const T drop = f_.drop(j, lane_);
                if (f_.contiguous() || place.number == 0) {
                    const T background = drop + best(place.number, j - 1);
                    add(background + place.rest, BACKGROUND, {false, place.number, place.rest + drop});
                    if (background == best(place.number, j)) continue;
                }
                if (!f_.contiguous()) add_nothing_shown(place, j, drop, add);
                each_behind(place.number, j, [&](Candidate c) { add_state(c.state, c.waived + place.rest); });
            }
            labels_[j - 1] = label;
            for (const Place &shown : shows) {
                const int64_t from = g_.state_from[shown.number];
                const T begun = g_.begin_cost<T>(shown.number), rest = shown.rest + f_.match(label, j, lane_);
                const T stay = value(shown.number, j - 1), leave = best(from, j - 1) + begun;
                if (leave <= stay) next.push_back({false, from, rest + begun});
                if (stay <= leave) next.push_back({true, shown.number, rest});
            }
            places.swap(next);
        }
    }

    // Background inside a step belongs to its state; before the first step, all of an ideal is waived.
    template <class Add> void add_nothing_shown(const Place &place, int64_t j, T drop, Add add) {
        T waived = 0;
        for (int w = 0; w < g_.n_steps; ++w)
            if (g_.holds(place.number, w)) waived += f_.skip(w, lane_);
        if (place.number && waived < INF)
            add(drop + best(0, j - 1) + waived + place.rest, BACKGROUND, {false, 0, place.rest + waived + drop});
    }

    // Call visit(candidate) for the states that may stand behind best[ideal, j], any steps being waived after each that come
    // out cheapest. Steps are waived in falling order, so that each set comes once. Only those are waived after a state that
    // must follow its step, or whose being done would raise its cost, and what must follow these: all others may
    // as well be waived before.
    template <class Visit> void each_behind(int64_t ideal, int64_t j, Visit visit) {
        T size = std::abs(best(ideal, j));
        for (int w = 0; w < g_.n_steps; ++w)
            if (f_.skip(w, lane_) < INF) size += std::abs(f_.skip(w, lane_));
        waived_.clear();
        each_behind(ideal, j, T(0), best(ideal, j) + 64 * g_.n_steps * std::numeric_limits<T>::epsilon() * size, visit);
    }
    template <class Visit> void each_behind(int64_t ideal, int64_t j, T waived, T most, const Visit &visit) {
        f_.poll()(g_.n_steps);
        for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s) {
            const int w = g_.state_step[s];
            const auto matters = [&](int v) {
                return std::any_of(waived_.begin(), waived_.end(), [&](int u) {
                    return (u == v || g_.follows(u, v)) && (g_.follows(w, u) || g_.costs_more_after(w, u));
                });
            };
            if (std::all_of(waived_.begin(), waived_.end(), matters)) visit(Candidate{s, waived});
            const T cost = waived + f_.skip(w, lane_);
            if ((!waived_.empty() && !before(w, waived_.back())) || !(best(g_.state_from[s], j) + cost <= most)) continue;
            waived_.push_back(w);
            each_behind(g_.state_from[s], j, cost, most, visit);
            waived_.pop_back();
        }
    }
    // A fixed linear extension: by number of descendants (more of them: earlier), then by index.
    bool before(int a, int b) const { return std::pair(-g_.n_descendants(a), a) < std::pair(-g_.n_descendants(b), b); }
};

}  // namespace g2v
