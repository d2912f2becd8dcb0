// The least cost of being at the nodes of an automaton, where segments have durations and nothing but the table is wanted: in
// blocks of times, slot by slot, so that most of what a slot needs stays in registers, and much need not be looked at.
//
// The numbers in the table are those of automaton_recursion.hpp, bit by bit. Rounding never turns an order around, so the least
// may be taken before a sum is formed or after it. And a segment that ends no cheaper than going on with background changes
// nothing, neither what the node costs nor what it costs without the segment of one step: it may be left out. So may one
// that cannot become cheaper than background any more, wherever it ends: the outlook tells of each step how cheap a segment can
// be. Its sums are formed in another order; what rounding may make of that is on the safe side.
#pragma once
#include "automaton_recursion.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

template <class T> constexpr T EPSILON = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);
template <class T> G2V_INLINE V<T> size_of(V<T> x) { return most(x, -x); }

// How far sums over all clips, formed one way or the other, are from one another at the most, in parts of what is summed up.
template <class T> G2V_INLINE T uncertainty(int64_t clips) { return static_cast<T>(clips + 16) * (8 * EPSILON<T>); }

// What there is to do, in parts of a block of times of a slot: what it takes to work it out, and to look for repeats. If there is
// more than that to do in each, it takes as long as doing all of them clip by clip.
constexpr int64_t WORKED_OUT = 5, REPEATED = 8, WORTHWHILE = 4;

template <class T> struct Blocks : Recursion<Least<T>> {
    using Base = Recursion<Least<T>>;
    using Vec = V<T>;
    using Base::at, Base::drop, Base::g, Base::get, Base::L, Base::n, Base::NEVER, Base::set, Base::v;
    const bool known;  // there is an outlook
    const T part;

    G2V_INLINE Blocks(const AutomatonCosts<T> &costs, const NodeGroup &group, const GroupRows<T> &rows)
        : Base(costs, group, rows), known(costs.outlook.gain), part(uncertainty<T>(costs.clips)) {}

    G2V_INLINE void forward(T *best) {
        Base::template prepare<true>();
        for (int64_t k = 0; k < g.slots; ++k) {
            begin(k);
            enter(best, k);
            if (known) look_out(best, k);
        }
        if (n.repeats) clips<true>();
        else clips<false>();
        Base::write(best);
        if (known) write_lows();
    }

    // The least of vectors [rows] above background from the first clip on, block by block.
    G2V_INLINE void lows_of(const T *vectors, T *out) const {
        for (int64_t block = 0; block < v.blocks; ++block) {
            Vec low = full<T>(NEVER);
            if (block < v.rows / B)
                for (int64_t j = block * B; j < (block + 1) * B; ++j) low = least(low, load(vectors + j * L) - dropped(j));
            store(out + block * L, low);
        }
    }
    // Note of the nodes what their outlook needs, whichever way they were worked out.
    G2V_INLINE void write_lows() const {
        T *lows = v.outlook.lows;
        if (v.videos) {
            lows_of(n.own, lows + g.node[0] * v.blocks * L);
            return;
        }
        lows_of(n.own, n.on);
        apart(n.on, v.blocks, n.lane_rows);
        for (int at = 0; at < g.nodes; ++at)
            for (int64_t b = 0; b < v.blocks; b += L)
                store(lows + g.node[at] * v.blocks + b, load(n.lane_rows + at * g.spread * v.blocks + b));
    }
    // Drop costs before a time.
    G2V_INLINE Vec dropped(int64_t time) const { return cost_at(v.outlook.drops, time); }
    G2V_INLINE Vec cost_at(const T *costs, int64_t at) const { return v.videos ? load(costs + at * L) : all(costs[at]); }

private:
    // What `now` has of a slot while a block of times is worked out.
    enum Row : int64_t {
        LAST = NOW_ENDED,     // segments that ended after the last clip before the block
        ARC = NOW_TERM,       // the cost of the arc
        BEFORE = NOW_SUM,     // the sum of match costs before the block
        AFTER = NOW_BEGUN,    // and after each of its clips
        ENDED = NOW_SO_FAR,   // segments that end after each of its clips
        OVER = NOW_LENGTH,    // a segment longer than `longest`, less the sum before the block
        LONGER = NOW_LONGER,  // (longest < block) what a clip costs in a segment longer than `longest`
    };
    // What `outlook` has of a slot, block by block: the least that a segment costs by way of the arc, or of a repeat, more than
    // background from the first clip on; and for what began before, `lead` and `later`.
    enum OutlookRow : int64_t { BY_ARC, BY_REPEAT, LEAD, LATER, OUTLOOKS };

    G2V_INLINE const T **from(int64_t k, int rows) const { return n.from + (3 * k + rows) * L; }
    G2V_INLINE T *outlook(int64_t k, int64_t row, int64_t block) const {
        return n.outlook + ((OUTLOOKS * k + row) * v.blocks + block) * L;
    }

    G2V_INLINE void begin(int64_t k) {
        const int64_t times = v.rows + B;
        if (v.videos) from(k, 1)[0] = v.outlook.sums + v.state_step[v.state_start[g.node[0]] + k] * times * L;
        for (int l = 0; l < L && !v.videos; ++l) {
            const int64_t s = Base::state(k, l);
            from(k, 1)[l] = v.outlook.sums + (s < 0 ? 0 : v.state_step[s]) * times;
        }
        for (int i = 0; i < B; ++i) set(k, ENDED + i, full<T>(NEVER));
        set(k, OVER, full<T>(NEVER));
        n.newest[k] = -1;
        n.busy[k] = false;
    }

    // What begins a segment by arcs from other nodes: where it is one row for each lane, that stays where it is.
    G2V_INLINE void enter(const T *best, int64_t k) {
        n.vectors[k] = true;
        set(k, ARC, Vec{});
        if (v.videos) {
            const int64_t a = only_arc(k);
            if (a >= 0) {
                from(k, 2)[0] = best + v.arc_from[a] * v.rows * L;
                set(k, ARC, load(v.arc + a * L));
                return;
            }
            Base::enter(best, k);
        } else {
            T cost[L];
            if (Base::entered_from(best, k, from(k, 2), cost)) {
                n.vectors[k] = false;
                set(k, ARC, load(cost));
                return;
            }
            together(from(k, 2), v.rows, load(cost), at(n.enter, k, 0));
        }
        from(k, 2)[0] = at(n.enter, k, 0);
    }
    // Of lanes that are videos: the only arc from another node, or -1.
    G2V_INLINE int64_t only_arc(int64_t k) const {
        const int64_t s = v.state_start[g.node[0]] + k;
        int64_t found = -1;
        for (int64_t a = v.arc_start[s]; a < v.arc_start[s + 1]; ++a)
            if (v.arc_from[a] != g.node[0]) {
                if (found >= 0) return -1;
                found = a;
            }
        return found;
    }

    G2V_INLINE void look_out(const T *best, int64_t k) {
        const Outlook<T> &all = v.outlook;
        const Vec arc = get(k, ARC), self = get(k, NOW_SELF);
        T *by_arc = outlook(k, BY_ARC, 0), *by_repeat = outlook(k, BY_REPEAT, 0);
        if (v.videos) {
            const int64_t step = v.state_step[v.state_start[g.node[0]] + k] * v.blocks * L;
            for (int64_t b = 0; b < v.blocks * L; b += L) {
                store(by_repeat + b, load(all.gain + step + b));
                store(outlook(k, LEAD, 0) + b, load(all.lead + step + b));
                store(outlook(k, LATER, 0) + b, load(all.later + step + b));
            }
        } else {
            const T *gain[L], *lead[L], *later[L];
            for (int l = 0; l < L; ++l) {
                const int64_t s = Base::state(k, l), step = (s < 0 ? 0 : v.state_step[s]) * v.blocks;
                gain[l] = all.gain + step;
                lead[l] = all.lead + step;
                later[l] = all.later + step;
            }
            together(gain, v.blocks, Vec{}, by_repeat);
            together(lead, v.blocks, Vec{}, outlook(k, LEAD, 0));
            together(later, v.blocks, Vec{}, outlook(k, LATER, 0));
        }
        if (!n.vectors[k]) {
            const T *low[L];
            for (int l = 0; l < L; ++l) {
                const int64_t node = from(k, 2)[l] == n.never ? -1 : (from(k, 2)[l] - best) / v.rows;
                low[l] = node < 0 ? n.never : all.lows + node * v.blocks;
            }
            together(low, v.blocks, arc, by_arc);
        } else if (const int64_t a = v.videos ? only_arc(k) : -1; a >= 0) {
            for (int64_t b = 0; b < v.blocks * L; b += L)
                store(by_arc + b, arc + load(all.lows + v.arc_from[a] * v.blocks * L + b));
        } else {
            lows_of(at(n.enter, k, 0), by_arc);
        }
        for (int64_t b = 0; b < v.blocks * L; b += L) {
            const Vec gain = load(by_repeat + b);
            store(by_arc + b, load(by_arc + b) + gain);
            store(by_repeat + b, self + gain);
        }
    }

    template <bool REPEATS> G2V_INLINE void clips() {
        Vec own = Base::start(), rest = own;
        store(n.own, own);
        for (int64_t j = 0; j < v.clips; j += B) {
            if (j % 64 == 0) v.pause(64 * g.slots * L * (4 + smaller(v.longest, v.clips) / 8));
            Vec low[B], background[B];
            for (int i = 0; i < B; ++i) {
                low[i] = full<T>(NEVER);
                background[i] = drop(j + i) + (i ? background[i - 1] : own);
            }
            // What is not less than this, above background from the first clip on, cannot become cheaper than background.
            const Vec limit = own - dropped(j) + size_of<T>(own) * part;
            int64_t repeated = 0;
            n.looked += g.slots;
            for (int64_t k = 0; k < g.slots; ++k) {
                if constexpr (REPEATS) {
                    set(k, LAST, get(k, ENDED + B - 1));
                    n.repeated[repeated] = k;
                    const bool pays = known ? any<T>(load(outlook(k, BY_REPEAT, j / B)) < size_of<T>(own) * part)
                                            : any<T>(get(k, NOW_SELF) < full<T>(NEVER));
                    repeated += pays;
                    n.done += pays ? REPEATED : 0;
                    slot<true>(k, j, pays, limit, background, low);
                } else {
                    slot<false>(k, j, false, limit, background, low);
                }
            }
            for (int i = 0; i < B; ++i) {
                if (REPEATS && repeated) repeat(repeated, j, i, rest, low);
                Vec ended = low[i];
                for (int apart = 1; apart < (v.videos ? 1 : g.spread); apart *= 2) ended = least(ended, swapped(ended, apart));
                rest = drop(j + i) + own;
                own = least(ended, rest);
                store(n.own + (j + i + 1) * L, own);
                if (j + i + 1 == v.clips) return;
            }
        }
    }

    // Numbers of a block of times, as vectors.
    G2V_INLINE void fetch(const T *const *row, bool vectors, int64_t j, Vec *out) const {
        if (vectors) {
            for (int i = 0; i < B; ++i) out[i] = load(row[0] + (j + i) * L);
            return;
        }
#pragma GCC unroll 2
        for (int i = 0; i < B; i += L) {
            for (int l = 0; l < L; ++l) out[i + l] = load(row[l] + j + i);
            transpose(out + i);
        }
    }

    // A block of times of a slot, without repeats.
    template <bool REPEATS> G2V_INLINE void slot(int64_t k, int64_t j, bool must, Vec limit, const Vec *background, Vec *low) {
        const Lengths<T> of = Base::lengths_of(k);
        const int64_t block = j / B;
        bool begins = true, longer = j + B > v.longest;
        int64_t first = 1;  // of the blocks before, the nearest that counts
        const int64_t last = of.blocks(j);
        if (known) {
            begins = must || any<T>(load(outlook(k, BY_ARC, block)) < limit);
            const Vec bound = limit + load(outlook(k, LEAD, block));
            first = larger<int64_t>(first, block - n.newest[k]);
            while (first <= last && !any<T>(load(of.low + (block - first) * L) + load(of.shortest + first * L) < bound)) ++first;
            if (longer && !(begins && v.longest < B)) {
                const Vec later = limit + load(outlook(k, LATER, block));
                longer = any<T>(least(get(k, OVER), just_long(of, j)) < later);
                if (!longer) {
                    set(k, NOW_OVER, full<T>(NEVER));
                    set(k, OVER, full<T>(NEVER));
                }
            }
            if (!begins) store(of.low + block * L, full<T>(NEVER));
            if (!begins && !longer && first > last) {
                if (REPEATS && n.busy[k])
                    for (int i = 0; i < B; ++i) set(k, ENDED + i, full<T>(NEVER));
                n.busy[k] = false;
                return;
            }
        }
        n.busy[k] = true;
        n.done += WORKED_OUT;
        if (begins && !n.vectors[k])  // rows of the table are far away, and what begins once is likely to begin again
            for (int l = 0; l < L; ++l) __builtin_prefetch(from(k, 2)[l] + j + 2 * B);
        work_out<REPEATS>(k, j, begins, longer, first, background, low);
    }
    // The least beginning of those that get as long as `longest` in a block, and the cost of that length.
    G2V_INLINE Vec just_long(const Lengths<T> &of, int64_t j) const {
        const int64_t first = larger<int64_t>(0, j - v.longest), end = j + B - v.longest;
        Vec low = full<T>(NEVER);
        for (int64_t b = first / B; b * B < end && b < j / B; ++b) low = least(low, load(of.low + b * L));
        return low + load(of.now + NOW_LONGEST * L);
    }

    template <bool REPEATS>
    G2V_INLINE void work_out(int64_t k, int64_t j, bool begins, bool longer, int64_t first, const Vec *background, Vec *low) {
        T *now = n.now + k * NOW_ROWS * L, *begun = at(n.begun, k, 0);
        const Lengths<T> of = Base::lengths_of(k);
        Vec sum[B], best[B], bound = full<T>(-NEVER);
        fetch_sums(k, j, sum);
#pragma GCC unroll 8
        for (int i = 0; i < B; ++i) {
            bound = most(bound, background[i] - sum[i]);
            store(now + (AFTER + i) * L, sum[i]);
            best[i] = full<T>(NEVER);
        }
        // No length can end cheaper than background if it is not less than this, however the difference was rounded.
        bound += size_of<T>(bound) * (2 * EPSILON<T>);
        if (begins) {
            n.newest[k] = j / B;
            Vec x[B], least_one = full<T>(NEVER);
            fetch(from(k, 2), n.vectors[k], j, x);
            const Vec arc = get(k, ARC);
#pragma GCC unroll 8
            for (int i = 0; i < B; ++i) {
                x[i] = (x[i] + arc) - (i ? sum[i - 1] : load(now + BEFORE * L));
                store(begun + (j + i) * L, x[i]);
                least_one = least(least_one, x[i]);
            }
            store(of.low + j / B * L, least_one);
#pragma GCC unroll 8
            for (int b = 0; b < B; ++b) {
#pragma GCC unroll 8
                for (int i = b; i < B; ++i) best[i] = least(best[i], x[b] + load(of.length + (i - b) * L));
            }
        }
        const int64_t last = of.blocks(j);
        for (int64_t back = first; back <= last; ++back) {
            const int64_t begin = j - back * B;
            if (!any<T>(load(of.low + begin / B * L) + load(of.shortest + back * L) < bound)) continue;
#pragma GCC unroll 8
            for (int64_t b = 0; b < B; ++b) {
                const Vec x = load(begun + (begin + b) * L);
                const T *length = of.length + (back * B - b) * L;
#pragma GCC unroll 8
                for (int64_t i = 0; i < B; ++i) best[i] = least(best[i], x + load(length + i * L));
            }
            Vec worst = best[0];
            for (int64_t i = 1; i < B; ++i) worst = most(worst, best[i]);
            bound = least(bound, worst);
        }
        if (!longer) {
#pragma GCC unroll 8
            for (int i = 0; i < B; ++i) {
                const Vec ended = load(now + (AFTER + i) * L) + best[i];
                if constexpr (REPEATS) store(now + (ENDED + i) * L, ended);
                low[i] = least(low[i], ended);
            }
            return;
        }
        const Vec tail = get(k, NOW_TAIL), longest = get(k, NOW_LONGEST);
        Vec cost[B], over = get(k, NOW_OVER);
        fetch(from(k, 0), v.videos, j, cost);
        if (known) forget_others(of, begun, j);
#pragma GCC unroll 8
        for (int i = 0; i < B; ++i) {
            if (j + i >= v.longest)  // of `longest` clips, just now
                over =
                    least(over, load(now + (i ? AFTER + i - 1 : BEFORE) * L) + (load(begun + (j + i - v.longest) * L) + longest));
            const Vec more = cost[i] + tail;
            if (v.longest < B) store(now + (LONGER + i) * L, more);
            over = more + over;
            const Vec ended = least(load(now + (AFTER + i) * L) + best[i], over);
            if constexpr (REPEATS) store(now + (ENDED + i) * L, ended);
            low[i] = least(low[i], ended);
        }
        set(k, NOW_OVER, over);
        set(k, OVER, over - get(k, AFTER + B - 1));
    }
    // Where no segment began that counts, there is nothing to be found of those that get as long as `longest`.
    G2V_INLINE void forget_others(const Lengths<T> &of, T *begun, int64_t j) const {
        for (int64_t b = larger<int64_t>(0, j - v.longest) / B; b * B < j + B - v.longest; ++b)
            if (!any<T>(load(of.low + b * L) < full<T>(NEVER))) fill(begun + b * B * L, B * L, NEVER);
    }
    // Sums of match costs before and after the clips of a block.
    G2V_INLINE void fetch_sums(int64_t k, int64_t j, Vec *after) const {
        const T *const *row = from(k, 1);
        set(k, BEFORE, v.videos ? load(row[0] + j * L) : gather<T>([&](int l) { return row[l][j]; }));
        fetch(row, v.videos, j + 1, after);
    }

    // Segments that begin at time i of the block by repeating a step.
    void repeat(int64_t count, int64_t j, int i, Vec rest, Vec *low) const {
        const int64_t ended = i ? ENDED + i - 1 : LAST;
        const auto all = Least<T>::all_of(rest, n.now + ended * L, Base::spread(NOW_ROWS * L), true);
        for (int64_t r = 0; r < count; ++r) {
            const int64_t k = n.repeated[r];
            T *now = n.now + k * NOW_ROWS * L, *begun = at(n.begun, k, j + i);
            const Vec entered = get(k, NOW_SELF) + all.but(now + ended * L);
            const Vec x = entered - get(k, i ? AFTER + i - 1 : BEFORE);
            if (!any<T>(x < load(begun))) continue;
            const Lengths<T> of = Base::lengths_of(k);
            T *least_one = of.low + j / B * L;
            store(begun, least(x, load(begun)));
            store(least_one, least(x, load(least_one)));
            const auto end = [&](int at, Vec sum) {
                T *to = now + (ENDED + at) * L;
                store(to, least(load(to), sum));
                low[at] = least(low[at], sum);
            };
            for (int at = i; at < B; ++at) end(at, get(k, AFTER + at) + (x + load(of.length + (at - i) * L)));
            if (i + v.longest >= B) continue;
            int at = i + static_cast<int>(v.longest);
            Vec over = get(k, AFTER + at - 1) + (x + get(k, NOW_LONGEST));
            for (; at < B; ++at) {
                over = get(k, LONGER + at) + over;
                end(at, over);
            }
            set(k, NOW_OVER, least(over, get(k, NOW_OVER)));
            set(k, OVER, get(k, NOW_OVER) - get(k, AFTER + B - 1));
        }
    }
};

template <class T> void hard(const AutomatonCosts<T> &costs, const NodeGroup &group, T *best, GroupRows<T> &rows) {
    if (!costs.outlook.sums || rows.keep) {
        forward<Least<T>>(costs, group, best, rows);
        return;
    }
    // Where little was left out of the last groups that were worked out in blocks, it is tried again ever more rarely.
    const bool try_again = rows.passed >= 16 && (rows.passed & (rows.passed - 1)) == 0;
    if (rows.done <= WORTHWHILE * rows.looked) rows.passed = 0;
    else ++rows.passed;
    if (rows.passed && !try_again) {
        forward<Least<T>>(costs, group, best, rows);
        if (costs.outlook.gain) Blocks<T>(costs, group, rows).write_lows();
        return;
    }
    Blocks<T> blocks(costs, group, rows);
    blocks.forward(best);
    rows.looked = blocks.n.looked / 2;
    rows.done = blocks.n.done / 2;
}

// Sums of costs from the first clip on.
template <class T, bool VIDEOS> G2V_INLINE void sum_up(const T *costs, int64_t count, int64_t times, T *sums) {
    constexpr int64_t E = VIDEOS ? LANES<T> : 1;
    for (int64_t i = 0; i < E; ++i) sums[i] = 0;
    for (int64_t i = E; i < times * E; ++i) sums[i] = sums[i - E] + (i <= count * E ? costs[i - E] : T(0));
}

// The least of costs, or 0 where all are more.
template <class T, bool VIDEOS> G2V_INLINE V<T> least_of(const T *costs, int64_t count) {
    constexpr int64_t L = LANES<T>, E = VIDEOS ? L : 1, TOGETHER = 4;
    V<T> low[TOGETHER] = {};
    int64_t i = 0;
    for (; i + TOGETHER * L <= count * E; i += TOGETHER * L)
#pragma GCC unroll 4
        for (int64_t at = 0; at < TOGETHER; ++at) low[at] = least(low[at], load(costs + i + at * L));
    for (; i < count * E; i += E) low[0] = least(low[0], cost<T, VIDEOS>(costs, i / E));
    V<T> all = least(least(low[0], low[1]), least(low[2], low[3]));
    for (int apart = 1; apart < (VIDEOS ? 1 : L); apart *= 2) all = least(all, swapped(all, apart));
    return all;
}

template <class T, bool VIDEOS> G2V_INLINE bool find_outlook(const AutomatonCosts<T> &v, int64_t arcs, T *room) {
    using Vec = V<T>;
    constexpr int64_t L = LANES<T>, E = VIDEOS ? L : 1;  // numbers of a cost
    constexpr int VECTORS = VIDEOS ? B : B / L;          // of a block
    const auto one = [](const T *costs, int64_t i) { return cost<T, VIDEOS>(costs, i); };
    const auto put = [](T *to, int64_t i, Vec x) {
        if constexpr (VIDEOS) store(to + i * L, x);
        else to[i] = x[0];
    };
    const int64_t times = v.rows + B, longer = times + v.longest;
    sum_up<T, VIDEOS>(v.drop, v.rows, times, v.outlook.drops);
    for (int64_t step = 0; step < v.steps; ++step)
        sum_up<T, VIDEOS>(v.match + step * v.rows * E, v.rows, times, v.outlook.sums + step * times * E);
    if (!v.outlook.gain) return false;

    // What rounding may change of a difference of sums, but for its share of the cost so far.
    const T part = uncertainty<T>(v.clips);
    const Vec zero{}, never = full<T>(INF<T>);
    Vec clips{}, largest{}, below{};  // `below`: what negative costs can add up to
    for (int64_t j = 0; j < v.clips; ++j) clips += size_of<T>(one(v.drop, j));
    Vec least_one = least_of<T, VIDEOS>(v.arc, arcs);
    for (int64_t step = 0; step < v.steps; ++step) {
        Vec sum{}, least_length{};
        for (int64_t j = 0; j < v.clips; ++j) {
            const Vec x = one(v.match, step * v.rows + j);
            sum += size_of<T>(x);
            below -= least(x, zero);
        }
        largest = most(sum, largest);
        for (int64_t i = 0; i < v.longest; ++i) least_length = least(least_length, one(v.length, step * v.longest + i));
        least_one = least(least_one, least_length + least(one(v.tail, step), zero));
    }
    const Vec wrong = (clips + largest + below - least_one * static_cast<T>(v.clips + 1)) * part;
    if (any<T>(~(wrong < never))) return false;

    T *sums = room, *over = sums + longer * E, *length = over + longer * E;
    for (int64_t step = 0; step < v.steps; ++step) {
        v.pause(v.rows * E * (4 + v.longest / 4));
        const auto lowered = [&](Vec x) { return where<T>(x < never, x - size_of<T>(x) * part, x); };
        for (int64_t i = 0; i < v.longest; ++i) put(length, i, lowered(one(v.length, step * v.longest + i)));
        const Vec tail = lowered(one(v.tail, step));
        for (int64_t t = v.clips + 1; t < longer; ++t) {
            put(sums, t, never);
            put(over, t, never);
        }
        for (int64_t t = 0; t <= v.clips; ++t) put(sums, t, one(v.outlook.sums, step * times + t) - one(v.outlook.drops, t));
        Vec going = never;  // of segments that end then or later, beyond `longest`
        for (int64_t t = v.clips; t >= 0; --t) {
            going = least(going + tail, one(sums, t));
            put(over, t, going);
        }
        for (int64_t block = 0; block < v.blocks; ++block) {
            Vec gain = never, lead = never, later = never;
            for (int64_t t = block * B + 1; t <= block * B + B && t <= v.clips; ++t) {
                lead = least(lead, one(sums, t));
                later = least(later, one(over, t) + tail);
            }
            if (block * B < v.clips) {
                Vec found[VECTORS];
                const T *from = sums + block * B * E;
                for (int i = 0; i < VECTORS; ++i)
                    found[i] = load(over + (block * B + v.longest) * E + i * L) + one(length, v.longest - 1);
                for (int64_t count = 1; count <= v.longest; ++count)
#pragma GCC unroll 8
                    for (int i = 0; i < VECTORS; ++i)
                        found[i] = least(found[i], load(from + count * E + i * L) + one(length, count - 1));
                // At times after the last clip the difference is no number, and the least stays.
                for (int i = 0; i < VECTORS; ++i) gain = least(found[i] - load(from + i * L), gain);
                if constexpr (!VIDEOS)
                    for (int apart = 1; apart < L; apart *= 2) gain = least(gain, swapped(gain, apart));
            }
            put(v.outlook.gain, step * v.blocks + block, gain - wrong);
            put(v.outlook.lead, step * v.blocks + block, wrong - lead);
            put(v.outlook.later, step * v.blocks + block, wrong - later);
        }
    }
    return true;
}
template <class T> bool outlook(const AutomatonCosts<T> &v, int64_t arcs, T *room) {
    return v.videos ? find_outlook<T, true>(v, arcs, room) : find_outlook<T, false>(v, arcs, room);
}

}  // namespace
}  // namespace G2V_ARCH
}  // namespace g2v
