// The least cost of being at the nodes of an automaton, where segments have durations and nothing but the table is wanted: in
// blocks of times, slot by slot, so that most of what a slot needs stays in registers.
//
// The numbers in the table are those of automaton_recursion.hpp, bit by bit. Rounding never turns an order around, so the least
// may be taken before a sum is formed or after it. And a segment that ends no cheaper than going on with background changes
// nothing, neither what the node costs nor what it costs without the segment of one step: it is left out.
#pragma once
#include "automaton_recursion.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

template <class T> constexpr T EPSILON = sizeof(T) == 4 ? T(0x1p-23) : T(0x1p-52);
template <class T> G2V_INLINE V<T> size_of(V<T> x) { return most(x, -x); }

// How far sums over all clips, formed one way or the other, are from one another at the most, in parts of what is summed up.
template <class T> G2V_INLINE T uncertainty(int64_t clips) { return static_cast<T>(clips + 16) * (8 * EPSILON<T>); }

template <class T> struct Blocks : Recursion<Least<T>> {
    using Base = Recursion<Least<T>>;
    using Vec = V<T>;
    using Base::at, Base::drop, Base::g, Base::get, Base::L, Base::n, Base::NEVER, Base::set, Base::v;
    using Base::Base;

    G2V_INLINE void forward(T *best) {
        Base::template prepare<true>();
        for (int64_t k = 0; k < g.slots; ++k) enter(best, k);
        if (n.repeats) {
            find_pays();
            clips<true>();
        } else {
            clips<false>();
        }
        Base::write(best);
    }

private:
    // What `now` has of a slot while a block of times is worked out.
    enum Row : int64_t {
        LAST = NOW_ENDED,     // segments that ended after the last clip before the block
        ARC = NOW_TERM,       // the cost of the arc
        BEFORE = NOW_SUM,     // the sum of match costs before the block
        AFTER = NOW_BEGUN,    // and after each of its clips
        ENDED = NOW_SO_FAR,   // segments that end after each of its clips
        LONGER = NOW_LONGER,  // (longest < block) what a clip costs in a segment longer than `longest`
    };

    // What begins a segment by arcs from other nodes: where it is one row for each lane, that stays where it is.
    G2V_INLINE void enter(const T *best, int64_t k) {
        const T **from = n.from + (2 * k + 1) * L;
        n.vectors[k] = true;
        set(k, ARC, Vec{});
        set(k, AFTER + B - 1, Vec{});
        set(k, ENDED + B - 1, full<T>(NEVER));
        if (v.videos) {
            const int64_t s = v.state_start[g.node[0]] + k;
            int64_t others = 0, other = 0;
            for (int64_t a = v.arc_start[s]; a < v.arc_start[s + 1]; ++a)
                if (v.arc_from[a] != g.node[0]) {
                    ++others;
                    other = a;
                }
            if (others == 1) {
                from[0] = best + v.arc_from[other] * v.rows * L;
                set(k, ARC, load(v.arc + other * L));
                return;
            }
            Base::enter(best, k);
        } else {
            T cost[L];
            if (Base::entered_from(best, k, from, cost)) {
                n.vectors[k] = false;
                set(k, ARC, load(cost));
                return;
            }
            together(from, v.rows, load(cost), at(n.enter, k, 0));
        }
        from[0] = at(n.enter, k, 0);
    }

    // What repeats cost more than background, at the least, in each block.
    G2V_INLINE void find_pays() {
        if (!v.gain) return;
        for (int64_t k = 0; k < g.slots; ++k) {
            T *pays = n.pays + k * v.blocks * L;
            const Vec self = get(k, NOW_SELF);
            if (v.videos) {
                const T *gain = v.gain + v.state_step[v.state_start[g.node[0]] + k] * v.blocks * L;
                for (int64_t b = 0; b < v.blocks * L; b += L) store(pays + b, self + load(gain + b));
                continue;
            }
            const T *row[L];
            for (int l = 0; l < L; ++l) {
                const int64_t s = Base::state(k, l);
                row[l] = v.gain + (s < 0 ? 0 : v.state_step[s]) * v.blocks;
            }
            together(row, v.blocks, self, pays);
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
            for (int64_t k = 0; k < g.slots; ++k) {
                if constexpr (REPEATS) set(k, LAST, get(k, ENDED + B - 1));
                slot(k, j, background, low);
            }
            const int64_t repeated = REPEATS ? find_repeated(j, own) : 0;
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

    // The slots whose repeats may be cheaper than background; how many there are.
    G2V_INLINE int64_t find_repeated(int64_t j, Vec own) {
        int64_t found = 0;
        const Vec least_gain = size_of<T>(own) * uncertainty<T>(v.clips);
        for (int64_t k = 0; k < g.slots; ++k) {
            n.repeated[found] = k;
            found += v.gain ? any<T>(load(n.pays + (k * v.blocks + j / B) * L) < least_gain)
                            : any<T>(get(k, NOW_SELF) < full<T>(NEVER));
        }
        return found;
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
    G2V_INLINE void slot(int64_t k, int64_t j, const Vec *background, Vec *low) {
        T *now = n.now + k * NOW_ROWS * L, *begun = at(n.begun, k, 0);
        const Lengths<T> of = Base::lengths_of(k);
        Vec cost[B], x[B], best[B];
        fetch(n.from + 2 * k * L, v.videos, j, cost);
        fetch(n.from + (2 * k + 1) * L, n.vectors[k], j, x);
        if (!n.vectors[k])  // of the next block but one; lines of the table are far away
            for (int l = 0; l < L; ++l) __builtin_prefetch(n.from[(2 * k + 1) * L + l] + j + 2 * 64 / sizeof(T));

        const Vec arc = get(k, ARC);
        Vec sum = load(now + (AFTER + B - 1) * L), least_one = full<T>(NEVER), bound = full<T>(-NEVER);
        store(now + BEFORE * L, sum);
#pragma GCC unroll 8
        for (int i = 0; i < B; ++i) {
            x[i] = (x[i] + arc) - sum;
            store(begun + (j + i) * L, x[i]);
            least_one = least(least_one, x[i]);
            sum += cost[i];
            store(now + (AFTER + i) * L, sum);
            bound = most(bound, background[i] - sum);
        }
        store(of.low + j / B * L, least_one);
        // No length can end cheaper than background if it is not less than this, however the difference was rounded.
        bound += size_of<T>(bound) * (2 * EPSILON<T>);

#pragma GCC unroll 8
        for (int i = 0; i < B; ++i) best[i] = full<T>(NEVER);
        if (any<T>(least_one + load(of.shortest) < bound)) {
#pragma GCC unroll 8
            for (int b = 0; b < B; ++b) {
#pragma GCC unroll 8
                for (int i = b; i < B; ++i) best[i] = least(best[i], x[b] + load(of.length + (i - b) * L));
            }
        }
        for (int64_t back = 1; back <= of.blocks(j); ++back) {
            const int64_t begin = j - back * B;
            if (!any<T>(load(of.low + begin / B * L) + load(of.shortest + back * L) < bound)) continue;
#pragma GCC unroll 8
            for (int64_t b = 0; b < B; ++b) {
                const Vec from = load(begun + (begin + b) * L);
                const T *length = of.length + (back * B - b) * L;
#pragma GCC unroll 8
                for (int64_t i = 0; i < B; ++i) best[i] = least(best[i], from + load(length + i * L));
            }
            Vec worst = best[0];
            for (int64_t i = 1; i < B; ++i) worst = most(worst, best[i]);
            bound = least(bound, worst);
        }
        if (j + B <= v.longest) {  // none is longer than `longest`
#pragma GCC unroll 8
            for (int i = 0; i < B; ++i) {
                const Vec ended = load(now + (AFTER + i) * L) + best[i];
                store(now + (ENDED + i) * L, ended);
                low[i] = least(low[i], ended);
            }
            return;
        }
        const Vec tail = get(k, NOW_TAIL), longest = get(k, NOW_LONGEST);
        Vec over = get(k, NOW_OVER);
        if (v.longest < B)  // they are needed again
            for (int i = 0; i < B; ++i) store(now + (LONGER + i) * L, cost[i] + tail);
#pragma GCC unroll 8
        for (int i = 0; i < B; ++i) {
            if (j + i >= v.longest)  // of `longest` clips, just now
                over = least(over, load(now + (i ? AFTER + i - 1 : BEFORE) * L) +
                                       (load(begun + (j + i - v.longest) * L) + longest));
            over = cost[i] + tail + over;
            const Vec ended = least(load(now + (AFTER + i) * L) + best[i], over);
            store(now + (ENDED + i) * L, ended);
            low[i] = least(low[i], ended);
        }
        set(k, NOW_OVER, over);
    }

    // Segments that begin at time i of the block by repeating a step.
    void repeat(int64_t count, int64_t j, int i, Vec rest, Vec *low) const {
        const auto all = Least<T>::all_of(rest, n.now + (i ? ENDED + i - 1 : LAST) * L, Base::spread(NOW_ROWS * L), true);
        for (int64_t r = 0; r < count; ++r) {
            const int64_t k = n.repeated[r];
            T *now = n.now + k * NOW_ROWS * L, *begun = at(n.begun, k, j + i);
            const Vec entered = get(k, NOW_SELF) + all.but(now + (i ? ENDED + i - 1 : LAST) * L);
            const Vec x = entered - load(now + (i ? AFTER + i - 1 : BEFORE) * L);
            if (!any<T>(x < load(begun))) continue;
            const Lengths<T> of = Base::lengths_of(k);
            T *least_one = of.low + j / B * L;
            store(begun, least(x, load(begun)));
            store(least_one, least(x, load(least_one)));
            const auto end = [&](int at, Vec ended) {
                T *to = now + (ENDED + at) * L;
                store(to, least(load(to), ended));
                low[at] = least(low[at], ended);
            };
            for (int at = i; at < B; ++at) end(at, load(now + (AFTER + at) * L) + (x + load(of.length + (at - i) * L)));
            if (i + v.longest >= B) continue;
            int at = i + static_cast<int>(v.longest);
            Vec over = load(now + (AFTER + at - 1) * L) + (x + get(k, NOW_LONGEST));
            for (; at < B; ++at) {
                over = load(now + (LONGER + at) * L) + over;
                end(at, over);
            }
            set(k, NOW_OVER, least(over, get(k, NOW_OVER)));
        }
    }
};

// What segments cost more than background in place of their clips, at the least: of those of each step that begin within each block
// of times. Subtracted from it is what rounding may change of any such difference, but for its share of the cost so far.
template <class T, bool VIDEOS> G2V_INLINE void find_gains(const AutomatonCosts<T> &v, int64_t arcs, T *room, T *gain) {
    using Vec = V<T>;
    constexpr int64_t L = LANES<T>, E = VIDEOS ? L : 1;  // numbers of a cost
    constexpr int VECTORS = VIDEOS ? B : B / L;          // of a block
    const auto one = [](const T *costs, int64_t i) { return cost<T, VIDEOS>(costs, i); };
    const auto put = [](T *to, int64_t i, Vec x) {
        if constexpr (VIDEOS) store(to + i * L, x);
        else to[i] = x[0];
    };
    const T part = uncertainty<T>(v.clips);
    const Vec zero{}, never = full<T>(INF<T>);
    Vec clips{}, largest{}, below{}, least_one{};  // `below`: what negative costs can add up to
    for (int64_t j = 0; j < v.clips; ++j) clips += size_of<T>(one(v.drop, j));
    for (int64_t a = 0; a < arcs; ++a) least_one = least(least_one, one(v.arc, a));
    for (int64_t step = 0; step < v.steps; ++step) {
        Vec sum{};
        for (int64_t j = 0; j < v.clips; ++j) {
            const Vec x = one(v.match, step * v.rows + j);
            sum += size_of<T>(x);
            below -= least(x, zero);
        }
        largest = most(sum, largest);
        Vec least_length{};
        for (int64_t i = 0; i < v.longest; ++i) least_length = least(least_length, one(v.length, step * v.longest + i));
        least_one = least(least_one, least_length + least(one(v.tail, step), zero));
    }
    const Vec wrong = (clips + largest + below - least_one * static_cast<T>(v.clips)) * part;

    const int64_t times = v.rows + v.longest + B;
    T *sums = room, *over = sums + times * E, *length = over + times * E;
    for (int64_t step = 0; step < v.steps; ++step) {
        v.pause(v.rows * E * (4 + v.longest / 4));
        const auto lowered = [&](Vec x) { return where<T>(x < never, x - size_of<T>(x) * part, x); };
        for (int64_t i = 0; i < v.longest; ++i) put(length, i, lowered(one(v.length, step * v.longest + i)));
        const Vec tail = lowered(one(v.tail, step));
        for (int64_t t = v.clips + 1; t < times; ++t) {
            put(sums, t, never);
            put(over, t, never);
        }
        Vec sum{};
        put(sums, 0, sum);
        for (int64_t j = 0; j < v.clips; ++j) {
            sum += one(v.match, step * v.rows + j) - one(v.drop, j);
            put(sums, j + 1, sum);
        }
        Vec longer = never;  // of segments that end then or later, beyond `longest`
        for (int64_t t = v.clips; t >= 0; --t) {
            longer = least(longer + tail, one(sums, t));
            put(over, t, longer);
        }
        for (int64_t block = 0; block < v.blocks; ++block) {
            Vec low = never;
            if (block * B < v.clips) {
                Vec found[VECTORS];
                const T *from = sums + block * B * E;
                for (int i = 0; i < VECTORS; ++i)
                    found[i] = load(over + (block * B + v.longest) * E + i * L) + one(length, v.longest - 1);
                for (int64_t clips = 1; clips <= v.longest; ++clips)
#pragma GCC unroll 8
                    for (int i = 0; i < VECTORS; ++i)
                        found[i] = least(found[i], load(from + clips * E + i * L) + one(length, clips - 1));
                // At times after the last clip the difference is no number, and the least stays.
                for (int i = 0; i < VECTORS; ++i) low = least(found[i] - load(from + i * L), low);
                if constexpr (!VIDEOS)
                    for (int apart = 1; apart < L; apart *= 2) low = least(low, swapped(low, apart));
            }
            put(gain, step * v.blocks + block, low - wrong);
        }
    }
}
template <class T> void gains(const AutomatonCosts<T> &v, int64_t arcs, T *room, T *gain) {
    if (v.videos) find_gains<T, true>(v, arcs, room, gain);
    else find_gains<T, false>(v, arcs, room, gain);
}

template <class T> void hard(const AutomatonCosts<T> &costs, const NodeGroup &group, T *best, GroupRows<T> &rows) {
    if (costs.longest > 1 && !costs.forbids && !rows.keep) Blocks<T>(costs, group, rows).forward(best);
    else forward<Least<T>>(costs, group, best, rows);
}

}  // namespace
}  // namespace G2V_ARCH
}  // namespace g2v
