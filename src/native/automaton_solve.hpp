// An automaton as the solvers see it, and from its costs to cost and labels, or to the posterior: nodes are worked out level by
// level, those of one level by several workers.
#pragma once
#include <algorithm>
#include <cmath>
#include <compare>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "automaton.hpp"
#include "scratch.hpp"
#include "solve.hpp"
#include "watch.hpp"

namespace g2v {

struct Automaton {
    int n_steps = 0;
    std::vector<int64_t> state_start, arc_start;
    std::vector<int32_t> state_step, arc_from;
    std::vector<int64_t> level_start;  // nodes of one level do not wait for one another
    int64_t widest = 0;                // states of one node at the most

    Automaton(int steps, std::vector<int64_t> states, std::vector<int32_t> state_steps, std::vector<int64_t> arcs,
              std::vector<int32_t> from)
        : n_steps(steps), state_start(std::move(states)), arc_start(std::move(arcs)), state_step(std::move(state_steps)),
          arc_from(std::move(from)) {
        level_start.push_back(0);
        for (int64_t node = 0; node < nodes(); ++node) {
            widest = std::max(widest, state_start[node + 1] - state_start[node]);
            for (int64_t a = arc_start[state_start[node]]; a < arc_start[state_start[node + 1]]; ++a)
                if (arc_from[a] != node && arc_from[a] >= level_start.back()) {
                    level_start.push_back(node);
                    break;
                }
        }
        level_start.push_back(nodes());
    }
    int64_t nodes() const { return static_cast<int64_t>(state_start.size()) - 1; }
};

inline const AutomatonKernels &automaton_kernels() {
#if defined(G2V_HAVE_AVX2)
    static const AutomatonKernels avx2 = automaton_kernels_avx2();
    if (std::string_view(kernels().name) == "avx2") return avx2;
#endif
    static const AutomatonKernels base = automaton_kernels_base();
    return base;
}

// Memory for what is worked out of one node, of any of an automaton.
template <class T> class NodeMemory : public NodeRows<T> {
public:
    NodeMemory(int64_t widest, int64_t clips, int64_t longest, bool backward)
        : memory_(sizeof(T) * static_cast<size_t>(numbers(widest, clips, longest, backward))) {
        const int64_t width = round_up(widest, LANES<T>), rows = clips + 1;
        T *next = memory_.as<T>();
        const auto take = [&](int64_t count) { return std::exchange(next, next + count); };
        this->match = take(clips * width);
        this->length = take(longest * width);
        this->sum = take(rows * width);
        this->enter = take(rows * width);
        this->ended = take(rows * width);
        this->begun = take(rows * width);
        this->over = take((rows + 1) * width);
        this->self = take(width);
        this->tail = take(width);
        this->others = take(width);
        this->on = take(rows + LANES<T>);
        this->row = take(rows + LANES<T>);
        this->begin = backward ? take(rows * width) : nullptr;
        this->leave = backward ? take(rows * width) : nullptr;
    }
    static int64_t numbers(int64_t widest, int64_t clips, int64_t longest, bool backward) {
        const int64_t width = round_up(widest, LANES<T>), rows = clips + 1;
        return width * ((backward ? 8 : 6) * rows + longest + 4) + 2 * (rows + LANES<T>);
    }

private:
    Scratch memory_;
};

// Where all workers wait for one another.
class Gate {
public:
    explicit Gate(Poll &poll) : poll_(poll) {}
    void operator()(int64_t team) {
        if (team == 1) return;
        const int64_t now = round_.load(std::memory_order_acquire);
        if (arrived_.fetch_add(1) + 1 == team) {
            arrived_ = 0;
            open();
            return;
        }
        for (int spin = 0; spin < 2000 && round_.load(std::memory_order_acquire) == now; ++spin) {}
        round_.wait(now, std::memory_order_acquire);
        poll_(0);  // another worker may have failed
    }
    void open() {
        round_.fetch_add(1);
        round_.notify_all();
    }

private:
    Poll &poll_;
    std::atomic<int64_t> arrived_{0}, round_{0};
};

template <class T> class AutomatonSolver {
public:
    AutomatonSolver(const Automaton &automaton, AutomatonVideo<T> video, int workers, Poll &poll)
        : m_(automaton), v_(video), workers_(workers), poll_(poll), rows_(video.clips + 1),
          best_(sizeof(T) * static_cast<size_t>(automaton.nodes() * rows_)) {
        v_.pause = poll.pause();
    }

    // The least cost, and (unless null) the labels [clips]: among the cheapest, the smallest read backwards.
    T hard(int64_t *labels);

    // The soft minimum of costs that were divided by gamma, and (unless null) probabilities [steps + 1][clips] of labels,
    // background last, and [steps][clips] of a segment beginning.
    T soft(T *probability, T *start);

private:
    static constexpr T NEVER = std::numeric_limits<T>::infinity();
    const Automaton &m_;
    AutomatonVideo<T> v_;
    int workers_;
    Poll &poll_;
    const int64_t rows_;
    Scratch best_;

    T *best() const { return best_.as<T>(); }

    // Run work(gate, me, team) in all workers; where one fails, nobody waits for it.
    template <class Work> void together(Work work) {
        Gate gate(poll_);
        run_team(workers_, poll_, [&](int64_t me, int64_t team) {
            try {
                work(gate, me, team);
            } catch (...) {
                poll_.stop();
                gate.open();
                throw;
            }
        });
    }

    void forward(NodeKernel<T> kernel) {
        std::atomic<int64_t> next{0};
        together([&](Gate &gate, int64_t, int64_t team) {
            NodeMemory<T> rows(m_.widest, v_.clips, v_.longest, false);
            for (size_t level = 1; level < m_.level_start.size(); ++level) {
                for (int64_t p = next.load(); p < m_.level_start[level];)
                    if (next.compare_exchange_weak(p, p + 1)) {
                        kernel(v_, p, best(), rows);
                        p = next.load();
                    }
                gate(team);
            }
        });
    }
    T end_of(int64_t node) const { return best()[node * rows_ + v_.clips] + v_.end[node]; }
};

// The traceback: among the cheapest label sequences the smallest one, read from the last clip backwards, background (-1) first.
//
// Several paths may be equally cheap, so it keeps all that agree with the labels written so far, and at each clip goes on with
// those that have the smallest label. Values are compared with the very sums that the recursion formed.
template <class T> class AutomatonTraceback {
public:
    AutomatonTraceback(const Automaton &automaton, const AutomatonVideo<T> &video, NodeKernel<T> kernel, T *best, int64_t *labels)
        : m_(automaton), v_(video), kernel_(kernel), best_(best), labels_(labels) {}

    void run(T cost) {
        for (int64_t p = 0; p < m_.nodes(); ++p)
            if (best(p, v_.clips) + v_.end[p] == cost) free_.push_back({p, -1});
        for (int64_t j = v_.clips; j > 0; --j) {
            v_.pause(64 * static_cast<int64_t>(free_.size() + segments_.size() + 1));
            leave_segments(j);
            labels_[j - 1] = step_back(j);
        }
    }

private:
    static constexpr T NEVER = std::numeric_limits<T>::infinity();
    static constexpr int64_t MOST_NUMBERS = int64_t{1} << 26;  // kept of nodes worked out again
    using Node = NodeMemory<T>;
    // Between segments, with `node` done; the segment before must not be of the step `but` (-1: of any).
    struct Free {
        int64_t node;
        int but;
        auto operator<=>(const Free &) const = default;
    };
    // Within the segment of state k of `node` that ends at time `end` and may have any of these lengths, ascending.
    struct Segment {
        int64_t node, k, end;
        std::vector<int64_t> lengths;
        bool operator==(const Segment &other) const { return node == other.node && k == other.k; }
        bool operator<(const Segment &other) const { return std::pair(node, k) < std::pair(other.node, other.k); }
    };

    const Automaton &m_;
    const AutomatonVideo<T> &v_;
    NodeKernel<T> kernel_;
    T *best_;
    int64_t *labels_;
    std::vector<Free> free_;
    std::vector<Segment> segments_;                                 // all of one step and with one end
    std::vector<std::pair<int64_t, std::unique_ptr<Node>>> nodes_;  // worked out again, sorted

    T best(int64_t node, int64_t j) const { return best_[node * (v_.clips + 1) + j]; }
    int step(int64_t node, int64_t k) const { return m_.state_step[m_.state_start[node] + k]; }
    static T get(const Node &n, const T *rows, int64_t row, int64_t k) { return rows[row * n.width + k]; }

    const Node &node(int64_t p) {
        auto place = std::lower_bound(nodes_.begin(), nodes_.end(), p, [](const auto &a, int64_t b) { return a.first < b; });
        if (place != nodes_.end() && place->first == p) return *place->second;
        const int64_t states = m_.state_start[p + 1] - m_.state_start[p],
                      each = Node::numbers(m_.widest, v_.clips, v_.longest, false);
        if ((static_cast<int64_t>(nodes_.size()) + 1) * each > MOST_NUMBERS) {
            nodes_.clear();
            place = nodes_.end();
        }
        auto made = std::make_unique<Node>(states, v_.clips, v_.longest, false);
        kernel_(v_, p, best_, *made);
        return *nodes_.emplace(place, p, std::move(made))->second;
    }

    template <class Item> static void once_each(std::vector<Item> &items) {
        std::sort(items.begin(), items.end());
        items.erase(std::unique(items.begin(), items.end()), items.end());
    }

    // All but the segment of `but` at a node at time j > 0.
    T without(int64_t p, const Node &n, int64_t j, int but) const {
        T low = v_.drop[j - 1] + best(p, j - 1);
        for (int64_t k = 0; k < n.states; ++k)
            if (step(p, k) != but) low = std::min(low, get(n, n.ended, j, k));
        return low;
    }

    // Segments that may have begun at time j: what they were entered from joins the free ones.
    void leave_segments(int64_t j) {
        for (const Segment &s : segments_) {
            if (!std::binary_search(s.lengths.begin(), s.lengths.end(), s.end - j)) continue;
            const Node &n = node(s.node);
            const T entered = get(n, n.enter, j, s.k);
            for (int64_t a = m_.arc_start[n.first + s.k]; a < m_.arc_start[n.first + s.k + 1]; ++a) {
                const int64_t from = m_.arc_from[a];
                const bool again = from == s.node;
                const int but = again ? step(s.node, s.k) : -1;
                const T value = again ? without(from, n, j, but) : best(from, j);
                if (value + v_.arc[a] == entered) free_.push_back({from, but});
            }
        }
        once_each(free_);
        std::erase_if(segments_, [&](const Segment &s) { return s.lengths.back() <= s.end - j; });
    }

    // The smallest label of clip j - 1; keeps what leads to it.
    int64_t step_back(int64_t j) {
        int64_t label = m_.n_steps;  // larger than any
        std::vector<Free> free;
        std::vector<Segment> segments;
        const auto wanted = [&](int64_t found) {
            if (found > label) return false;
            if (found < label) {
                label = found;
                free.clear();
                segments.clear();
            }
            return true;
        };
        for (const Free &f : free_) {
            const Node &n = node(f.node);
            const T value = without(f.node, n, j, f.but);
            if (v_.drop[j - 1] + best(f.node, j - 1) == value && wanted(-1)) free.push_back({f.node, -1});
            for (int64_t k = 0; k < n.states; ++k) {
                const int step_k = step(f.node, k);
                if (step_k != f.but && get(n, n.ended, j, k) == value && wanted(step_k))
                    segments.push_back({f.node, k, j, lengths(n, k, j)});
            }
        }
        for (Segment &s : segments_)
            if (wanted(step(s.node, s.k))) segments.push_back(std::move(s));
        once_each(free);
        once_each(segments);
        free_ = std::move(free);
        segments_ = std::move(segments);
        return label;
    }

    // The lengths that the best segment of state k that ends at time `end` may have.
    std::vector<int64_t> lengths(const Node &n, int64_t k, int64_t end) {
        std::vector<int64_t> found;
        v_.pause(end);
        if (v_.longest == 1) {
            for (int64_t j = end; j > 0; --j) {
                const T began = get(n, n.enter, j - 1, k) + n.length[k], went_on = get(n, n.ended, j - 1, k) + n.tail[k];
                if (began <= went_on) found.push_back(end - j + 1);
                if (went_on > began || went_on == NEVER) break;
            }
            return found;
        }
        for (int64_t length = 1; length <= std::min(v_.longest, end); ++length) {
            if (get(n, n.match, end - length, k) == NEVER) break;
            if (of_length(n, k, end, length) == get(n, n.ended, end, k)) found.push_back(length);
        }
        if (get(n, n.over, end, k) > get(n, n.ended, end, k)) return found;
        for (int64_t j = end - 1; j >= v_.longest; --j) {
            T exact = of_length(n, k, j, v_.longest);
            for (int64_t i = j - v_.longest; i < j; ++i)
                if (get(n, n.match, i, k) == NEVER) exact = NEVER;
            const T over = get(n, n.over, j, k);
            if (exact <= over) found.push_back(end - j + v_.longest);
            if (over > exact || over == NEVER) break;
        }
        return found;
    }
    T of_length(const Node &n, int64_t k, int64_t end, int64_t length) {
        const int64_t j = end - length;
        return get(n, n.sum, end, k) + ((get(n, n.enter, j, k) - get(n, n.sum, j, k)) + get(n, n.length, length - 1, k));
    }
};

template <class T> T AutomatonSolver<T>::hard(int64_t *labels) {
    NodeKernel<T> kernel;
    if constexpr (sizeof(T) == 4) kernel = automaton_kernels().hard_f32;
    else kernel = automaton_kernels().hard_f64;
    forward(kernel);
    T cost = NEVER;
    for (int64_t p = 0; p < m_.nodes(); ++p) cost = std::min(cost, end_of(p));
    if (labels && cost < NEVER) AutomatonTraceback<T>(m_, v_, kernel, best(), labels).run(cost);
    return cost;
}

// The backward pass takes a few nodes of one level at a time. First each is worked out by one worker; then each worker adds what
// was found of all of them to what it has of some clips: so no two write to one number, and the order of all sums is the same
// however many workers there are.
template <class T> T AutomatonSolver<T>::soft(T *probability, T *start) {
    const AutomatonKernels &kernels = automaton_kernels();
    const int64_t clips = v_.clips;
    forward(kernels.soft);
    T low = NEVER, sum = 0;
    for (int64_t p = 0; p < m_.nodes(); ++p) low = std::min(low, end_of(p));
    if (low == NEVER) return NEVER;
    for (int64_t p = 0; p < m_.nodes(); ++p) sum += std::exp(low - end_of(p));
    const T cost = low - std::log(sum);
    if (!probability) return cost;

    const Scratch table(sizeof(T) * static_cast<size_t>(m_.nodes() * rows_));
    T *after = table.as<T>();
    std::fill_n(after, m_.nodes() * rows_, NEVER);
    for (int64_t p = 0; p < m_.nodes(); ++p) after[p * rows_ + clips] = v_.end[p];
    std::fill_n(probability, (m_.n_steps + 1) * clips, T(0));
    std::fill_n(start, m_.n_steps * clips, T(0));
    const auto mass = [&](T a, T b) { return a < NEVER && b < NEVER ? std::exp(cost - a - b) : T(0); };
    struct Found {
        NodeMemory<T> rows;
        std::vector<T> begin, shown, began, background;  // [states][clips + 1], [states][clips] twice, [clips]
    };
    std::vector<std::unique_ptr<Found>> found(static_cast<size_t>(workers_));
    for (auto &one : found) one.reset(new Found{{m_.widest, clips, v_.longest, true}, {}, {}, {}, {}});

    const auto work_out = [&](int64_t p, Found &f) {
        NodeMemory<T> &n = f.rows;
        kernels.soft(v_, p, best(), n);
        kernels.soft_back(v_, p, after, n);
        f.begin.resize(static_cast<size_t>(n.states * rows_));
        f.shown.resize(static_cast<size_t>(n.states * clips));
        f.began.resize(static_cast<size_t>(n.states * clips));
        f.background.resize(static_cast<size_t>(clips));
        for (int64_t k = 0; k < n.states; ++k) {
            v_.pause(20 * clips);
            T going = 0;  // the mass of segments that cover the clip
            for (int64_t j = 0; j < clips; ++j) {
                const int64_t here = j * n.width + k;
                const T begun = mass(n.enter[here], n.begin[here]);
                if (j) going -= mass(n.ended[here], n.leave[here]);
                going += begun;
                f.shown[k * clips + j] = std::max(going, T(0));
                f.began[k * clips + j] = begun;
            }
            for (int64_t j = 0; j < rows_; ++j) f.begin[k * rows_ + j] = n.begin[j * n.width + k];
        }
        for (int64_t j = 0; j < clips; ++j) f.background[j] = mass(best()[p * rows_ + j], v_.drop[j] + n.on[j + 1]);
    };
    // Times [from, to) of a node.
    const auto add_up = [&](int64_t p, const Found &f, int64_t from, int64_t to) {
        const int64_t last = std::min(to, clips), first = f.rows.first;
        for (int64_t k = 0; k < f.rows.states; ++k) {
            const int64_t step = m_.state_step[first + k];
            v_.pause((to - from) * (4 + 8 * (m_.arc_start[first + k + 1] - m_.arc_start[first + k])));
            for (int64_t j = from; j < last; ++j) {
                probability[step * clips + j] += f.shown[k * clips + j];
                start[step * clips + j] += f.began[k * clips + j];
            }
            for (int64_t a = m_.arc_start[first + k]; a < m_.arc_start[first + k + 1]; ++a)
                if (m_.arc_from[a] != p)
                    kernels.soft_add(f.begin.data() + k * rows_ + from, v_.arc[a], to - from,
                                     after + m_.arc_from[a] * rows_ + from);
        }
        for (int64_t j = from; j < last; ++j) probability[m_.n_steps * clips + j] += f.background[j];
    };
    together([&](Gate &gate, int64_t me, int64_t team) {
        const int64_t share = round_up((rows_ + team - 1) / team, LANES<T>);
        const int64_t from = std::min(me * share, rows_), to = std::min(from + share, rows_);
        for (size_t level = m_.level_start.size() - 1; level > 0; --level)
            for (int64_t p = m_.level_start[level]; p > m_.level_start[level - 1]; p -= team) {
                const int64_t count = std::min(team, p - m_.level_start[level - 1]);
                if (me < count) work_out(p - 1 - me, *found[me]);
                gate(team);
                for (int64_t i = 0; i < count; ++i) add_up(p - 1 - i, *found[i], from, to);
                gate(team);
            }
    });
    return cost;
}

}  // namespace g2v
