// An automaton as the solvers see it, and from its costs to cost and labels, or to the posterior: nodes are worked out level by
// level, those of one level by several workers.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <compare>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <span>
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

    Automaton(int steps, std::vector<int64_t> states, std::vector<int32_t> state_steps, std::vector<int64_t> arcs,
              std::vector<int32_t> from)
        : n_steps(steps), state_start(std::move(states)), arc_start(std::move(arcs)), state_step(std::move(state_steps)),
          arc_from(std::move(from)) {
        int64_t first = 0;
        const auto close = [&](int64_t last) {
            groups8_.add_level(state_start, first, last, 8);
            groups4_.add_level(state_start, first, last, 4);
            first = last;
        };
        for (int64_t node = 0; node < nodes(); ++node) {
            widest_ = std::max(widest_, states_of(node));
            for (int64_t a = arc_start[state_start[node]]; a < arc_start[state_start[node + 1]]; ++a)
                if (arc_from[a] != node && arc_from[a] >= first) {
                    close(node);
                    break;
                }
        }
        close(nodes());
    }
    int64_t nodes() const { return static_cast<int64_t>(state_start.size()) - 1; }
    int64_t states_of(int64_t node) const { return state_start[node + 1] - state_start[node]; }

    // The nodes in groups for vectors of so many lanes.
    struct Groups {
        std::vector<NodeGroup> all;
        std::vector<size_t> level_start{0};  // groups of one level do not wait for one another
        int64_t most_slots = 0;

        // Spread the nodes of a level over lanes such that there is least to do: each of a node's vectors is some work, and
        // so is what nodes have beside their states, and bringing the lanes of a node together.
        void add_level(const std::vector<int64_t> &state_start, int64_t first, int64_t last, int lanes) {
            std::vector<int32_t> order(static_cast<size_t>(last - first));
            std::iota(order.begin(), order.end(), static_cast<int32_t>(first));
            const auto states = [&](int32_t node) { return state_start[node + 1] - state_start[node]; };
            std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return states(a) > states(b); });
            int64_t least = std::numeric_limits<int64_t>::max();
            int spread = 1;
            for (int tried = 1, log = 0; tried <= lanes; tried *= 2, ++log) {
                int64_t work = 0;
                for (size_t i = 0; i < order.size(); i += static_cast<size_t>(lanes / tried))
                    work += 10 * round_up(states(order[i]), tried) / tried + 12 + 8 * log;
                if (work < least) {
                    least = work;
                    spread = tried;
                }
            }
            for (size_t i = 0; i < order.size(); i += static_cast<size_t>(lanes / spread)) {
                NodeGroup group{{}, 0, spread, round_up(states(order[i]), spread) / spread};
                while (group.nodes < lanes / spread && i + static_cast<size_t>(group.nodes) < order.size()) {
                    group.node[group.nodes] = order[i + static_cast<size_t>(group.nodes)];
                    ++group.nodes;
                }
                most_slots = std::max(most_slots, group.slots);
                all.push_back(group);
            }
            level_start.push_back(all.size());
        }
    };
    template <class T> const Groups &groups() const { return LANES<T> == 8 ? groups8_ : groups4_; }

    // The slots that a group has at most; lanes being videos, each has one node.
    template <class T> int64_t most_slots(bool videos) const { return videos ? widest_ : groups<T>().most_slots; }

private:
    Groups groups8_, groups4_;
    int64_t widest_ = 0;  // states of one node at the most
};

inline AutomatonKernels automaton_kernels() {
#if defined(G2V_HAVE_AVX2)
    if (std::string_view(kernels().name) == "avx2") return automaton_kernels_avx2();
#endif
    return automaton_kernels_base();
}
inline SoftAutomatonKernels soft_automaton_kernels() {
#if defined(G2V_HAVE_AVX2)
    if (std::string_view(kernels().name) == "avx2") return soft_automaton_kernels_avx2();
#endif
    return soft_automaton_kernels_base();
}

// One video as the caller has it: match [steps][clips], drop [clips], arc [arcs], end [nodes], length [steps][longest] and
// tail [steps]; and what is found of it.
template <class T> struct AutomatonVideo {
    const T *match, *drop, *arc, *end, *length, *tail;
    int64_t clips;
    T cost;
    int64_t *labels;         // [clips], or null
    T *probability, *start;  // [steps + 1][clips] and [steps][clips], or null
};

// The costs of a video, or of up to LANES side by side, as the kernels want them.
template <class T> class LaneCosts : public AutomatonCosts<T> {
public:
    LaneCosts(const Automaton &m, std::span<const AutomatonVideo<T>> given, bool videos, int64_t longest, Poll &poll)
        : each_(videos ? LANES<T> : 1), memory_(bytes(m, given, videos, longest)) {
        this->pause = poll.pause();
        this->videos = videos;
        this->steps = m.n_steps;
        this->clips = most_clips(given);
        this->rows = round_up(this->clips + 1, LENGTHS_BLOCK);
        this->stride = this->rows + 2;
        this->blocks = round_up(this->rows / LENGTHS_BLOCK, LANES<T>);
        this->outlook = {};
        this->longest = longest;
        this->state_start = m.state_start.data();
        this->arc_start = m.arc_start.data();
        this->state_step = m.state_step.data();
        this->arc_from = m.arc_from.data();
        T *next = memory_.template as<T>();
        const auto put = [&](int64_t lines, int64_t padded, auto from, auto length) -> const T * {
            if (!videos && padded == length(given[0])) return from(given[0]);  // it lies as it is wanted
            T *to = std::exchange(next, next + lines * padded * each_);
            std::fill_n(to, lines * padded * each_, T(0));
            poll(lines * padded * each_);
            for (size_t lane = 0; lane < given.size(); ++lane)
                for (int64_t line = 0; line < lines; ++line)
                    for (int64_t i = 0, count = length(given[lane]); i < count; ++i)
                        to[(line * padded + i) * each_ + static_cast<int64_t>(lane)] = from(given[lane])[line * count + i];
            return to;
        };
        const auto clips = [](const AutomatonVideo<T> &v) { return v.clips; };
        const auto same = [](int64_t count) { return [count](const AutomatonVideo<T> &) { return count; }; };
        const int64_t arcs = static_cast<int64_t>(m.arc_from.size());
        this->match = put(m.n_steps, this->rows, [](const AutomatonVideo<T> &v) { return v.match; }, clips);
        const T *match = this->match;
        this->forbids = std::any_of(match, match + m.n_steps * this->rows * each_,
                                    [](T x) { return x == std::numeric_limits<T>::infinity(); });
        this->drop = put(1, this->rows, [](const AutomatonVideo<T> &v) { return v.drop; }, clips);
        this->arc = put(1, arcs, [](const AutomatonVideo<T> &v) { return v.arc; }, same(arcs));
        this->end = put(1, m.nodes(), [](const AutomatonVideo<T> &v) { return v.end; }, same(m.nodes()));
        this->length = put(m.n_steps, longest, [](const AutomatonVideo<T> &v) { return v.length; }, same(longest));
        this->tail = put(1, m.n_steps, [](const AutomatonVideo<T> &v) { return v.tail; }, same(m.n_steps));
    }

private:
    int64_t each_;
    Scratch memory_;
    static int64_t most_clips(std::span<const AutomatonVideo<T>> given) {
        int64_t most = 0;
        for (const AutomatonVideo<T> &one : given) most = std::max(most, one.clips);
        return most;
    }
    static size_t bytes(const Automaton &m, std::span<const AutomatonVideo<T>> given, bool videos, int64_t longest) {
        const int64_t rows = round_up(most_clips(given) + 1, LENGTHS_BLOCK), steps = m.n_steps;
        const int64_t numbers = steps * (rows + longest + 1) + rows + static_cast<int64_t>(m.arc_from.size()) + m.nodes();
        return sizeof(T) * static_cast<size_t>(numbers * (videos ? LANES<T> : 1));
    }
};

// Memory for what is worked out of one group.
template <class T> class GroupMemory : public GroupRows<T> {
public:
    GroupMemory(int64_t slots, const AutomatonCosts<T> &costs, bool keep, bool sums)
        : memory_(sizeof(T) * static_cast<size_t>(numbers(slots, costs.rows, costs.longest, sums))) {
        lay_out(*this, memory_.template as<T>(), slots, costs.rows, costs.longest, sums);
        this->keep = keep;
        std::fill_n(this->zero, costs.rows, T(0));
        std::fill_n(this->never, costs.rows, std::numeric_limits<T>::infinity());
    }
    static int64_t numbers(int64_t slots, int64_t rows, int64_t longest, bool sums) {
        GroupRows<T> nowhere;
        return lay_out(nowhere, nullptr, slots, rows, longest, sums);
    }

private:
    Scratch memory_;

    // Where everything lies, if it lies somewhere; return how many numbers it takes. What is not needed lies nowhere of its own.
    static int64_t lay_out(GroupRows<T> &r, T *first, int64_t slots, int64_t rows, int64_t longest, bool sums) {
        constexpr int64_t L = LANES<T>, B = LENGTHS_BLOCK;
        const int64_t each = slots * (rows + 2) * L, lengths = slots * (longest + 2 * B) * L;
        const bool is_long = longest > 1;
        int64_t used = 0;
        const auto take = [&]<class X>(X *&place, int64_t count, bool needed = true) {
            place = first ? reinterpret_cast<X *>(first + (needed ? used : 0)) : nullptr;
            if (needed) used += round_up(count * static_cast<int64_t>(sizeof(X)), 32) / static_cast<int64_t>(sizeof(T));
        };
        const bool blocks = is_long && !sums;
        take(r.lane_rows, rows * L);
        take(r.zero, rows);
        take(r.never, rows);
        take(r.own, rows * L);
        take(r.on, rows * L);
        take(r.now, slots * NOW_ROWS * L);
        take(r.length, lengths);
        take(r.low, slots * (rows / B + 1) * L);
        take(r.shortest, slots * (longest / B + 2) * L);
        take(r.match, each);
        take(r.enter, each);
        take(r.ended, each);
        take(r.over, each, is_long || sums);
        take(r.sum, each, is_long);
        take(r.begun, each, is_long);
        take(r.begin, each, sums);
        take(r.leave, each, sums);
        take(r.share, each, is_long && sums);
        take(r.weight, lengths, sums);
        take(r.from, 3 * slots * L, blocks);
        take(r.vectors, slots, blocks);
        take(r.newest, slots, blocks);
        take(r.busy, slots, blocks);
        take(r.repeated, slots + 1, blocks);
        take(r.outlook, 4 * slots * round_up(rows / B, L) * L, blocks);
        return used;
    }
};

// Where all workers wait for one another.
class Gate {
public:
    explicit Gate(Poll &poll) : poll_(poll) {}
    void operator()(int64_t team) {
        if (team == 1) return;
        const int64_t now = round_.load(std::memory_order_acquire);
        poll_(0);  // opened by a worker that failed, it does not open again
        if (arrived_.fetch_add(1) + 1 == team) {
            arrived_ = 0;
            open();
            return;
        }
        spin_until([&] { return round_.load(std::memory_order_acquire) != now; });
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

// How many groups are worked out; workers wait until there are enough. One that begins late keeps nobody waiting.
class Progress {
public:
    explicit Progress(Poll &poll) : poll_(poll) {}
    void wait_for(size_t count) {
        size_t done = 0;
        const auto enough = [&] { return (done = done_.load(std::memory_order_acquire)) > count; };
        for (spin_until(enough); !enough();) done_.wait(done, std::memory_order_acquire);
        poll_(0);  // opened by a worker that failed
    }
    // One more; others may wait for as many as `awaited`.
    void add(size_t awaited) {
        if (done_.fetch_add(1) == awaited) done_.notify_all();
    }
    void open() {
        done_ = std::numeric_limits<size_t>::max() / 2;
        done_.notify_all();
    }

private:
    Poll &poll_;
    alignas(64) std::atomic<size_t> done_{0};  // what comes before all groups is the first
};

// Which groups of a level are still to be done. Half of the workers take them from the front, half from the back: so most of what
// a group needs was worked out by the worker that takes it (of two), and lies in its cache.
class LevelQueues {
public:
    explicit LevelQueues(const std::vector<size_t> &level_start) : level_start_(level_start), taken_(level_start.size()) {}
    // One of the level that ends at level_start[level]; nothing where all are taken.
    std::optional<size_t> take(size_t level, bool from_back) {
        const uint64_t before = taken_[level].fetch_add(from_back ? BACK : 1);
        const size_t front = before % BACK, back = before / BACK;
        if (front + back >= level_start_[level] - level_start_[level - 1]) return {};
        return from_back ? level_start_[level] - 1 - back : level_start_[level - 1] + front;
    }

private:
    static constexpr uint64_t BACK = uint64_t{1} << 32;
    const std::vector<size_t> &level_start_;
    std::vector<std::atomic<uint64_t>> taken_;  // from the front, and BACK times those from the back
};

// Videos of one automaton: one, by several workers, or up to LANES side by side.
template <class T> class AutomatonSolver {
public:
    AutomatonSolver(const Automaton &automaton, std::span<AutomatonVideo<T>> videos, bool in_lanes, int64_t longest, int workers,
                    Poll &poll)
        : m_(automaton), videos_(videos), v_(automaton, std::span<const AutomatonVideo<T>>(videos), in_lanes, longest, poll),
          each_(in_lanes ? LANES<T> : 1), workers_(in_lanes ? 1 : workers), poll_(poll),
          best_(sizeof(T) * static_cast<size_t>(automaton.nodes() * v_.rows * each_)),
          ends_(sizeof(T) * static_cast<size_t>(automaton.nodes() * each_)) {}

    // The least costs, and the labels where they are wanted: among the cheapest, the smallest read backwards.
    void hard();

    // The soft minima of costs that were divided by gamma, and where they are wanted probabilities of labels, background last,
    // and of a segment beginning.
    void soft();

    static constexpr int64_t MOST_KEPT = int64_t{16} << 20;  // bytes of what is worked out of all nodes

private:
    static constexpr T NEVER = std::numeric_limits<T>::infinity();
    const Automaton &m_;
    std::span<AutomatonVideo<T>> videos_;
    LaneCosts<T> v_;
    const int64_t each_;  // numbers of a cost
    const int workers_;
    Poll &poll_;
    Scratch best_, ends_;

    T *best() const { return best_.as<T>(); }
    const Automaton::Groups &groups() const { return m_.template groups<T>(); }
    int64_t most_slots() const { return m_.template most_slots<T>(v_.videos); }

    // Call work(group) for a group, or (lanes being videos) for each of its nodes.
    template <class Work> void each_part(const NodeGroup &group, Work work) const {
        if (!v_.videos) {
            work(group);
            return;
        }
        for (int i = 0; i < group.nodes; ++i) work(NodeGroup{{group.node[i]}, 1, group.spread, m_.states_of(group.node[i])});
    }

    // Run work(barrier, me, team) in all workers; where one fails, nobody waits for it.
    template <class Barrier, class Work> void together(Work work) {
        Barrier barrier(poll_);
        run_team(workers_, poll_, [&](int64_t me, int64_t team) {
            try {
                work(barrier, me, team);
            } catch (...) {
                poll_.stop();
                barrier.open();
                throw;
            }
        });
    }

    // What is worked out of all groups, by their first nodes, where that is not much; else nothing.
    using Kept = std::vector<std::unique_ptr<GroupMemory<T>>>;
    Kept keep_all() const {
        int64_t numbers = 0;
        for (const NodeGroup &group : groups().all)
            each_part(group,
                      [&](const NodeGroup &part) { numbers += GroupMemory<T>::numbers(part.slots, v_.rows, v_.longest, true); });
        return Kept(numbers * static_cast<int64_t>(sizeof(T)) <= MOST_KEPT ? static_cast<size_t>(m_.nodes()) : 0);
    }

    // Fill the table, and what ending at nodes costs; first `prepare` by one worker, while the others begin.
    template <class Prepare> void forward(GroupKernel<T> kernel, bool sums, Kept &kept, Prepare prepare) {
        LevelQueues queues(groups().level_start);
        // Taken here and given back the other way round: so a worker has what it had in the last call, in its cache.
        Kept own;
        for (int i = 0; kept.empty() && i < workers_; ++i)
            own.push_back(std::make_unique<GroupMemory<T>>(most_slots(), v_, false, sums));
        together<Progress>([&](Progress &progress, int64_t me, int64_t) {
            if (me == 0) {
                prepare();
                progress.add(0);
            }
            const std::vector<size_t> &level_start = groups().level_start;
            for (size_t level = 1; level < level_start.size();) {
                const std::optional<size_t> at = queues.take(level, me % 2 != 0);
                if (!at) {
                    ++level;
                    continue;
                }
                progress.wait_for(level_start[level - 1]);
                each_part(groups().all[*at], [&](const NodeGroup &part) {
                    if (kept.empty()) {
                        kernel(v_, part, best(), *own[static_cast<size_t>(me)]);
                    } else {
                        auto &rows = kept[static_cast<size_t>(part.node[0])];
                        rows = std::make_unique<GroupMemory<T>>(part.slots, v_, true, sums);
                        kernel(v_, part, best(), *rows);
                    }
                    for (int i = 0; i < part.nodes; ++i) note_end(part.node[i]);
                });
                progress.add(level_start[level]);
            }
        });
        while (!own.empty()) own.pop_back();
    }
    // Find the outlook, in memory of so many bytes.
    size_t look_out(T *memory) {
        const int64_t steps = m_.n_steps, states = static_cast<int64_t>(m_.state_step.size());
        const bool worthwhile = steps * v_.longest <= 4 * states;
        int64_t used = 0;
        const auto take = [&](int64_t count) {
            T *place = memory ? memory + used : nullptr;
            used += count * each_;
            return place;
        };
        const int64_t times = v_.rows + LENGTHS_BLOCK, of_steps = worthwhile ? steps * v_.blocks : 0;
        Outlook<T> found{take(steps * times), take(times),    take(of_steps),
                         take(of_steps),      take(of_steps), take(worthwhile ? m_.nodes() * v_.blocks : 0)};
        T *room = take(3 * (times + v_.longest));
        if (!memory) return sizeof(T) * static_cast<size_t>(used);
        if (!worthwhile) found.gain = nullptr;
        v_.outlook = found;
        const int64_t arcs = static_cast<int64_t>(m_.arc_from.size());
        bool known;
        if constexpr (sizeof(T) == 4) known = automaton_kernels().outlook_f32(v_, arcs, room);
        else known = automaton_kernels().outlook_f64(v_, arcs, room);
        if (!known) v_.outlook.gain = nullptr;
        // With nothing known of repeats, blocks of times are no faster.
        if (!known && has_repeats()) v_.outlook = {};
        return 0;
    }
    bool has_repeats() const {
        for (int64_t p = 0; p < m_.nodes(); ++p)
            for (int64_t a = m_.arc_start[m_.state_start[p]]; a < m_.arc_start[m_.state_start[p + 1]]; ++a)
                if (m_.arc_from[a] == p) return true;
        return false;
    }
    // What ending at a node costs in all, noted while its rows are at hand.
    void note_end(int64_t node) {
        for (size_t lane = 0; lane < videos_.size(); ++lane) {
            const int64_t clips = videos_[lane].clips, l = static_cast<int64_t>(lane);
            ends_.as<T>()[node * each_ + l] = best()[(node * v_.rows + clips) * each_ + l] + v_.end[node * each_ + l];
        }
    }
    T end_of(int64_t node, size_t lane) const { return ends_.as<T>()[node * each_ + static_cast<int64_t>(lane)]; }
};

// The traceback: among the cheapest label sequences the smallest one, read from the last clip backwards, background (-1) first.
//
// Several paths may be equally cheap, so it keeps all that agree with the labels written so far, and at each clip goes on with
// those that have the smallest label. Values are compared with the very sums that the recursion formed.
template <class T> class AutomatonTraceback {
public:
    AutomatonTraceback(const Automaton &automaton, const AutomatonCosts<T> &costs, GroupKernel<T> kernel, T *best)
        : m_(automaton), v_(costs), kernel_(kernel), best_(best), each_(costs.videos ? LANES<T> : 1) {}

    // Write the labels of the video in a lane.
    void run(const AutomatonVideo<T> &video, int64_t lane) {
        lane_ = lane;
        free_.clear();
        segments_.clear();
        for (int64_t p = 0; p < m_.nodes(); ++p)
            if (best(p, video.clips) + v_.end[p * each_ + lane_] == video.cost) free_.push_back({p, -1});
        for (int64_t j = video.clips; j > 0; --j) {
            v_.pause(64 * static_cast<int64_t>(free_.size() + segments_.size() + 1));
            leave_segments(j);
            video.labels[j - 1] = step_back(j);
        }
    }

private:
    static constexpr T NEVER = std::numeric_limits<T>::infinity();
    static constexpr int64_t MOST_NUMBERS = int64_t{1} << 26;  // kept of nodes worked out again
    // A node worked out again, its states spread over all lanes (unless these are videos).
    struct Node {
        int64_t first, states;
        GroupMemory<T> rows;
    };
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
    const AutomatonCosts<T> &v_;
    GroupKernel<T> kernel_;
    T *best_;
    const int64_t each_;
    int64_t lane_ = 0;
    std::vector<Free> free_;
    std::vector<Segment> segments_;                                 // all of one step and with one end
    std::vector<std::pair<int64_t, std::unique_ptr<Node>>> nodes_;  // worked out again, sorted

    T best(int64_t node, int64_t j) const { return best_[(node * v_.rows + j) * each_ + lane_]; }
    T drop(int64_t clip) const { return v_.drop[clip * each_ + lane_]; }
    int step(int64_t node, int64_t k) const { return m_.state_step[m_.state_start[node] + k]; }
    // A row of state k in numbers that have `rows` for each slot.
    T get(const T *numbers, int64_t rows, int64_t row, int64_t k) const {
        constexpr int64_t L = LANES<T>;
        return v_.videos ? numbers[(k * rows + row) * L + lane_] : numbers[(k / L * rows + row) * L + k % L];
    }
    T get(const T *numbers, int64_t row, int64_t k) const { return get(numbers, v_.stride, row, k); }
    T length(const Node &n, int64_t clips, int64_t k) const {
        return get(n.rows.length, v_.longest + 2 * LENGTHS_BLOCK, clips - 1, k);
    }

    const Node &node(int64_t p) {
        auto place = std::lower_bound(nodes_.begin(), nodes_.end(), p, [](const auto &a, int64_t b) { return a.first < b; });
        if (place != nodes_.end() && place->first == p) return *place->second;
        constexpr int L = LANES<T>;
        const int64_t states = m_.states_of(p), slots = v_.videos ? states : round_up(states, L) / L;
        const int64_t most = m_.template most_slots<T>(v_.videos);
        const int64_t each = GroupMemory<T>::numbers(most, v_.rows, v_.longest, false);
        if ((static_cast<int64_t>(nodes_.size()) + 1) * each > MOST_NUMBERS) {
            nodes_.clear();
            place = nodes_.end();
        }
        std::unique_ptr<Node> made(new Node{m_.state_start[p], states, {slots, v_, true, false}});
        kernel_(v_, {{static_cast<int32_t>(p)}, 1, v_.videos ? 1 : L, slots}, best_, made->rows);
        return *nodes_.emplace(place, p, std::move(made))->second;
    }

    template <class Item> static void once_each(std::vector<Item> &items) {
        std::sort(items.begin(), items.end());
        items.erase(std::unique(items.begin(), items.end()), items.end());
    }

    // All but the segment of `but` at a node at time j > 0.
    T without(int64_t p, const Node &n, int64_t j, int but) const {
        T low = drop(j - 1) + best(p, j - 1);
        for (int64_t k = 0; k < n.states; ++k)
            if (step(p, k) != but) low = std::min(low, get(n.rows.ended, j, k));
        return low;
    }

    // Segments that may have begun at time j: what they were entered from joins the free ones.
    void leave_segments(int64_t j) {
        for (const Segment &s : segments_) {
            if (!std::binary_search(s.lengths.begin(), s.lengths.end(), s.end - j)) continue;
            const Node &n = node(s.node);
            const T entered = get(n.rows.enter, j, s.k);
            for (int64_t a = m_.arc_start[n.first + s.k]; a < m_.arc_start[n.first + s.k + 1]; ++a) {
                const int64_t from = m_.arc_from[a];
                const bool again = from == s.node;
                const int but = again ? step(s.node, s.k) : -1;
                const T value = again ? without(from, n, j, but) : best(from, j);
                if (value + v_.arc[a * each_ + lane_] == entered) free_.push_back({from, but});
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
            if (drop(j - 1) + best(f.node, j - 1) == value && wanted(-1)) free.push_back({f.node, -1});
            for (int64_t k = 0; k < n.states; ++k) {
                const int step_k = step(f.node, k);
                if (step_k != f.but && get(n.rows.ended, j, k) == value && wanted(step_k))
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
                const T began = get(n.rows.enter, j - 1, k) + length(n, 1, k),
                        went_on = get(n.rows.ended, j - 1, k) + get(n.rows.now, NOW_ROWS, NOW_TAIL, k);
                if (began <= went_on) found.push_back(end - j + 1);
                if (went_on > began || went_on == NEVER) break;
            }
            return found;
        }
        for (int64_t length = 1; length <= std::min(v_.longest, end); ++length) {
            if (get(n.rows.match, end - length, k) == NEVER) break;
            if (of_length(n, k, end, length) == get(n.rows.ended, end, k)) found.push_back(length);
        }
        if (get(n.rows.over, end, k) > get(n.rows.ended, end, k)) return found;
        for (int64_t j = end - 1; j >= v_.longest; --j) {
            T exact = of_length(n, k, j, v_.longest);
            for (int64_t i = j - v_.longest; i < j; ++i)
                if (get(n.rows.match, i, k) == NEVER) exact = NEVER;
            const T over = get(n.rows.over, j, k);
            if (exact <= over) found.push_back(end - j + v_.longest);
            if (over > exact || over == NEVER) break;
        }
        return found;
    }
    T of_length(const Node &n, int64_t k, int64_t end, int64_t clips) {
        const int64_t j = end - clips;
        return get(n.rows.sum, end, k) + ((get(n.rows.enter, j, k) - get(n.rows.sum, j, k)) + length(n, clips, k));
    }
};

template <class T> void AutomatonSolver<T>::hard() {
    GroupKernel<T> kernel;
    if constexpr (sizeof(T) == 4) kernel = automaton_kernels().f32;
    else kernel = automaton_kernels().f64;
    const bool blocks = v_.longest > 1 && !v_.forbids;
    const Scratch memory(blocks ? look_out(nullptr) : 0);
    Kept none;
    forward(kernel, false, none, [&] {
        if (blocks) look_out(memory.as<T>());
    });
    AutomatonTraceback<T> traceback(m_, v_, kernel, best());
    for (size_t lane = 0; lane < videos_.size(); ++lane) {
        AutomatonVideo<T> &video = videos_[lane];
        video.cost = NEVER;
        for (int64_t p = 0; p < m_.nodes(); ++p) video.cost = std::min(video.cost, end_of(p, lane));
        if (video.labels && video.cost < NEVER) traceback.run(video, static_cast<int64_t>(lane));
    }
}

// The backward pass takes a few groups of one level at a time. First each is worked out by one worker; then each worker adds
// what was found of all of them to what it has of some clips: so no two write to one number, and the order of all sums is the
// same however many workers there are. It is the same, too, for lanes that are videos.
template <class T> void AutomatonSolver<T>::soft() {
    constexpr int64_t L = LANES<T>;
    const SoftAutomatonKernels kernels = soft_automaton_kernels();
    const int64_t clips = v_.clips, rows = v_.rows, steps = m_.n_steps;
    Kept kept = videos_[0].probability ? keep_all() : Kept();
    forward(kernels.forward, true, kept, [] {});
    T total[L];
    std::fill_n(total, L, NEVER);
    for (size_t lane = 0; lane < videos_.size(); ++lane) {
        T low = NEVER, sum = 0;
        for (int64_t p = 0; p < m_.nodes(); ++p) low = std::min(low, end_of(p, lane));
        for (int64_t p = 0; low < NEVER && p < m_.nodes(); ++p) sum += std::exp(low - end_of(p, lane));
        videos_[lane].cost = total[lane] = low < NEVER ? low - std::log(sum) : NEVER;
    }
    if (!videos_[0].probability) return;
    if (!v_.videos) std::fill_n(total, L, total[0]);

    // What follows each node; probabilities as the kernels have them, [steps + 1][rows] and [steps][rows].
    const Scratch table(sizeof(T) * static_cast<size_t>((m_.nodes() + 2 * steps + 1) * rows * each_));
    T *after = table.as<T>(), *shown = after + m_.nodes() * rows * each_, *began = shown + (steps + 1) * rows * each_;
    std::fill_n(after, m_.nodes() * rows * each_, NEVER);
    std::fill_n(shown, (2 * steps + 1) * rows * each_, T(0));
    for (int64_t p = 0; p < m_.nodes(); ++p)
        for (size_t lane = 0; lane < videos_.size(); ++lane) {
            const int64_t l = static_cast<int64_t>(lane);
            after[(p * rows + videos_[lane].clips) * each_ + l] = v_.end[p * each_ + l];
        }
    // A group worked out. Its rows lie apart, [slots][LANES][rows] numbers; those of videos stay vectors, [slots][rows].
    struct Found {
        std::unique_ptr<GroupMemory<T>> rows;
        std::vector<T> begin, shown, began, background;
    };
    std::vector<std::unique_ptr<Found>> found(static_cast<size_t>(workers_));
    const size_t most = v_.videos ? 0 : static_cast<size_t>(most_slots() * L * rows);
    for (auto &one : found)
        one.reset(new Found{kept.empty() ? std::make_unique<GroupMemory<T>>(most_slots(), v_, true, true) : nullptr,
                            std::vector<T>(most), std::vector<T>(most), std::vector<T>(most),
                            std::vector<T>(v_.videos ? 0 : static_cast<size_t>(L * rows))});

    const auto work_out = [&](const NodeGroup &group, Found &f) {
        if (kept.empty()) kernels.forward(v_, group, best(), *f.rows);
        else f.rows = std::move(kept[static_cast<size_t>(group.node[0])]);
        kernels.back(v_, group, after, *f.rows);
        kernels.mass(v_, group, total, *f.rows);
        if (v_.videos) return;
        for (int64_t k = 0; k < group.slots; ++k) {
            v_.pause(8 * rows * L);
            kernels.apart(f.rows->begin + k * v_.stride * L, rows, f.begin.data() + k * L * rows);
            kernels.apart(f.rows->ended + k * v_.stride * L, rows, f.shown.data() + k * L * rows);
            kernels.apart(f.rows->leave + k * v_.stride * L, rows, f.began.data() + k * L * rows);
        }
        kernels.apart(f.rows->own, rows, f.background.data());
    };
    // Times [from, to) of a group.
    const auto add_up = [&](const NodeGroup &group, const Found &f, int64_t from, int64_t to) {
        const T *begins = v_.videos ? f.rows->begin : f.begin.data(), *shows = v_.videos ? f.rows->ended : f.shown.data();
        const T *starts = v_.videos ? f.rows->leave : f.began.data(), *rests = v_.videos ? f.rows->own : f.background.data();
        const int64_t last = std::min(to, clips);
        const auto add = [&](T *to_row, const T *row) {
            for (int64_t i = from * each_; i < last * each_; ++i) to_row[i] += row[i];
        };
        for (int i = 0; i < group.nodes; ++i) {
            const int64_t p = group.node[i], lane = i * group.spread;
            for (int64_t k = 0; k < m_.states_of(p); ++k) {
                const int64_t s = m_.state_start[p] + k, step = m_.state_step[s];
                const int64_t row = v_.videos ? k * v_.stride * L : (k / group.spread * L + lane + k % group.spread) * rows;
                v_.pause((to - from) * each_ * (4 + 8 * (m_.arc_start[s + 1] - m_.arc_start[s])));
                add(shown + step * rows * each_, shows + row);
                add(began + step * rows * each_, starts + row);
                for (int64_t a = m_.arc_start[s]; a < m_.arc_start[s + 1]; ++a)
                    if (m_.arc_from[a] != p)
                        kernels.add(begins + row + from * each_, v_.arc + a * each_, v_.videos, to - from,
                                    after + (m_.arc_from[a] * rows + from) * each_);
            }
            add(shown + steps * rows * each_, rests + (v_.videos ? 0 : lane * rows));
        }
    };
    together<Gate>([&](Gate &gate, int64_t me, int64_t team) {
        const int64_t share = round_up((rows + team - 1) / team, L);
        const int64_t from = std::min(me * share, rows), to = std::min(from + share, rows);
        const std::vector<size_t> &level_start = groups().level_start;
        for (size_t level = level_start.size() - 1; level > 0; --level)
            for (size_t end = level_start[level]; end > level_start[level - 1];) {
                const size_t count = std::min(static_cast<size_t>(team), end - level_start[level - 1]);
                if (v_.videos) {  // one worker
                    each_part(groups().all[end - 1], [&](const NodeGroup &part) {
                        work_out(part, *found[0]);
                        add_up(part, *found[0], 0, rows);
                    });
                } else {
                    if (static_cast<size_t>(me) < count) work_out(groups().all[end - 1 - me], *found[me]);
                    gate(team);
                    for (size_t i = 0; i < count; ++i) add_up(groups().all[end - 1 - i], *found[i], from, to);
                    gate(team);
                }
                end -= count;
            }
    });
    for (size_t lane = 0; lane < videos_.size(); ++lane) {
        const AutomatonVideo<T> &video = videos_[lane];
        const auto copy = [&](const T *from, int64_t lines, T *out) {
            for (int64_t line = 0; line < lines; ++line)
                for (int64_t j = 0; j < video.clips; ++j)
                    out[line * video.clips + j] = from[(line * rows + j) * each_ + static_cast<int64_t>(lane)];
        };
        copy(shown, steps + 1, video.probability);
        copy(began, steps, video.start);
    }
}

// Many videos of one automaton.
template <class T, class Ask> void automaton_many(const Automaton &m, std::vector<AutomatonVideo<T>> &videos, int64_t longest,
                                                  int workers, Poll &poll, Ask ask) {
    side_by_side(videos, LANES<T>, workers, poll, [&](std::vector<AutomatonVideo<T>> &batch) {
        AutomatonSolver<T> solver(m, batch, true, longest, 1, poll);
        ask(solver);
    });
}

}  // namespace g2v
