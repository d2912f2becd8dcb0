// The recursion on an automaton, group of nodes by group: nodes wait for smaller ones alone, and for their own past where
// steps are repeated. Included by the kernels that find the least (automaton.cpp) and those that form sums (automaton_soft.cpp),
// which are compiled once per instruction set (see CMakeLists.txt), each time in a namespace of its own: no template of the
// standard library may appear here, or the linker could merge its copies.
#pragma once
#include "automaton.hpp"

#include "soft_math.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

constexpr int64_t B = LENGTHS_BLOCK;

template <class T> G2V_INLINE T smaller(T a, T b) { return b < a ? b : a; }
template <class T> G2V_INLINE T larger(T a, T b) { return a < b ? b : a; }
template <class T> G2V_INLINE void fill(T *p, int64_t count, T x) {
    for (int64_t i = 0; i < count; ++i) p[i] = x;
}
template <class T> using Mask = typename Whole<T>::V;
#if defined(__AVX2__)
template <class T> G2V_INLINE bool any(Mask<T> m) { return _mm256_movemask_epi8((__m256i)m) != 0; }
#else
template <class T> G2V_INLINE bool any(Mask<T> m) {
    Int64 bits = (Int64)m;
    return (bits[0] | bits[1] | bits[2] | bits[3]) != 0;
}
#endif
// The lanes in pairs swapped, `apart` lanes from one another.
G2V_INLINE V<float> swapped(V<float> v, int apart) {
    if (apart == 1) return __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6);
    if (apart == 2) return __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5);
    return __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3);
}
G2V_INLINE V<double> swapped(V<double> v, int apart) {
    if (apart == 1) return __builtin_shufflevector(v, v, 1, 0, 3, 2);
    return __builtin_shufflevector(v, v, 2, 3, 0, 1);
}

// The states of nodes: `slots` vectors, `stride` numbers apart (rows of NowRow, the first of them NOW_ENDED). Lanes of one node are brought together, or (videos) slots
// are in as many parts, so that sums are formed in the same order.
struct Spread {
    int64_t slots, stride;
    int lanes, parts;
};

// How the lengths of segments of one slot are brought together: in[j] + length[L - 1] for a segment of L clips from time j.
template <class T> struct Lengths {
    int64_t longest;
    T *now, *in, *low, *share;
    const T *length, *shortest, *weight;
    // Blocks before that count, of the block that begins at `time`.
    G2V_INLINE int64_t blocks(int64_t time) const { return smaller(time / B, (longest + B - 2) / B); }
    // The least beginning of the block before `time`.
    G2V_INLINE V<T> close(int64_t time) const {
        V<T> least_one = load(now + NOW_BEGUN * LANES<T>);
        for (int64_t b = 1; b < B; ++b) least_one = least(least_one, load(now + (NOW_BEGUN + b) * LANES<T>));
        store(low + (time / B - 1) * LANES<T>, least_one);
        return least_one;
    }
};

// Both ways to bring alternatives together: the least of them, or the sum of their exp(-x).
template <class Number> struct Least {
    using T = Number;
    using Vec = V<T>;
    static constexpr int64_t L = LANES<T>;
    static constexpr int64_t WORK = 1;  // of an operation, beside others
    static constexpr bool SUMS = false;
    static G2V_INLINE Vec plus(Vec a, Vec b) { return least(a, b); }

    // The two least of each node.
    static G2V_INLINE void two_least(Vec rest, const T *x, Spread s, Vec &low, Vec &second) {
        low = second = full<T>(INF<T>);
        for (int64_t k = 0; k < s.slots; ++k) {
            const Vec v = load(x + k * s.stride);
            second = least(second, most(low, v));
            low = least(low, v);
        }
        for (int apart = 1; apart < s.lanes; apart *= 2) {
            const Vec other = swapped(low, apart);
            second = least(least(second, swapped(second, apart)), most(low, other));
            low = least(low, other);
        }
        second = least(second, most(low, rest));
        low = least(low, rest);
    }

    // `rest` and all states x of a node brought together, and all but one of them.
    struct All {
        Vec value, next;
        G2V_INLINE Vec but(const T *one) const { return where<T>(load(one) == value, next, value); }  // a second least is `next`
    };
    static G2V_INLINE All all_of(Vec rest, T *x, Spread s, bool) {
        All found;
        two_least(rest, x, s, found.value, found.next);
        return found;
    }

    // Segments that end within the block that begins at `time` and began before it. Blocks of beginnings that cannot be less
    // than what is found are passed over: sums of least numbers are never more than the sums that they stand for.
    static void before_block(const Lengths<T> &of, int64_t time) {
        Vec best[B], worst = full<T>(INF<T>);
        for (int64_t i = 0; i < B; ++i) best[i] = worst;
        if (time) of.close(time);
        for (int64_t back = 1; back <= of.blocks(time); ++back) {
            const int64_t begin = time - back * B;
            const Vec lower = load(of.low + begin / B * L) + load(of.shortest + back * L);
            if (!any<T>(lower < worst)) continue;
#pragma GCC unroll 8
            for (int64_t b = 0; b < B; ++b) {
                const Vec x = load(of.in + (begin + b) * L);
                const T *length = of.length + (back * B - b) * L;
#pragma GCC unroll 8
                for (int64_t i = 0; i < B; ++i) best[i] = least(best[i], x + load(length + i * L));
            }
            worst = best[0];
            for (int64_t i = 1; i < B; ++i) worst = most(worst, best[i]);
        }
        for (int64_t i = 0; i < B; ++i) store(of.now + (NOW_SO_FAR + i) * L, best[i]);
    }
    // All segments that end after the clip i of the block.
    static G2V_INLINE Vec ending(const T *now, int i) {
        Vec low = load(now + (NOW_SO_FAR + i) * L);
#pragma GCC unroll 8
        for (int b = 0; b <= i; ++b) low = least(low, load(now + (NOW_BEGUN + b) * L) + load(now + (NOW_LENGTH + i - b) * L));
        return low;
    }
};

struct Sum {
    using T = double;
    using Vec = V<double>;
    static constexpr int64_t L = LANES<double>;
    static constexpr int64_t WORK = 8;
    static constexpr bool SUMS = true;
    static constexpr double NEVER = INF<double>;
    static G2V_INLINE Vec plus(Vec a, Vec b) {
        const Vec low = least(a, b), from = finite_or_zero<double>(low);
        return low - log_to_two<double>(exp_negative(from - most(a, b)) + 1.0);
    }
    static G2V_INLINE Vec log_sum(Vec z) { return log_positive<double>(most(z, full<double>(1.0))); }

    // The sum of terms of all slots of a node; term(k).
    template <class Term> static G2V_INLINE Vec sum(Spread s, Term term) {
        Vec part[L] = {};
        for (int64_t k = 0; k < s.slots; k += s.parts)
            for (int i = 0; i < s.parts && k + i < s.slots; ++i) part[i] += term(k + i);
        for (int apart = 1; apart < s.parts; apart *= 2)
            for (int i = 0; i < s.parts; i += 2 * apart) part[i] += part[i + apart];
        for (int apart = 1; apart < s.lanes; apart *= 2) part[0] += swapped(part[0], apart);
        return part[0];
    }

    struct All {
        Vec value, low, next, sum, but_least;
        G2V_INLINE Vec but(const double *one) const {
            const Vec rest = low - log_sum(sum - load(one + NOW_TERM * L));
            return where<double>((load(one) == low) & (low < next), but_least, rest);
        }
    };
    static G2V_INLINE All all_of(Vec rest, double *x, Spread s, bool but_one) {
        All a;
        Least<double>::two_least(rest, x, s, a.low, a.next);
        const Vec from = finite_or_zero<double>(a.low);
        const auto term = [&](Vec v) { return exp_negative(from - v); };
        const auto keep_term = [&](double *one) {
            const Vec found = term(load(one));
            store(one + NOW_TERM * L, found);
            return found;
        };
        a.sum = sum(s, [&](int64_t k) { return keep_term(x + k * s.stride); }) + term(rest);
        a.value = a.low - log_sum(a.sum);
        if (but_one) {
            const Vec after = finite_or_zero<double>(a.next), never = full<double>(NEVER);
            const auto above = [&](Vec v) { return exp_negative(after - where<double>(v > a.low, v, never)); };
            a.but_least = a.next - log_sum(sum(s, [&](int64_t k) { return above(load(x + k * s.stride)); }) + above(rest));
        }
        return a;
    }

    // Products of exp instead of exp of sums, from the least of a block; where they vanish, the sums themselves.
    static void before_block(const Lengths<double> &of, int64_t time) {
        constexpr double scale = 0x1p600;
        Vec low = full<double>(NEVER), sums[B] = {};
        const int64_t blocks = of.blocks(time);
        if (blocks) {  // of what is above the least of the block
            const Vec least_one = finite_or_zero<double>(of.close(time));
            for (int64_t b = time - B; b < time; ++b) store(of.share + b * L, exp_negative(least_one - load(of.in + b * L)));
        }
        for (int64_t back = 1; back <= blocks; ++back) low = least(low, load(of.low + (time / B - back) * L));
        const Vec from = finite_or_zero<double>(low);
        for (int64_t back = 1; back <= blocks; ++back) {
            const int64_t begin = time - back * B;
            const Vec factor = exp_negative(from - load(of.low + begin / B * L));
            if (!any<double>(factor > full<double>(0.0))) continue;
            for (int64_t b = 0; b < B; ++b) {
                const Vec x = load(of.share + (begin + b) * L) * factor;
                const double *weight = of.weight + (back * B - b) * L;
#pragma GCC unroll 8
                for (int64_t i = 0; i < B; ++i) sums[i] += x * load(weight + i * L);
            }
        }
        for (int64_t i = 0; i < B; ++i) {
            const Vec scaled = sums[i] * scale;
            const Mask<double> vanish = (scaled < full<double>(1.0)) & (low < full<double>(NEVER));
            Vec found = low - log_positive<double>(most(scaled, full<double>(1.0)), 600.0);
            if (any<double>(vanish)) found = where<double>(vanish, one_by_one(of, time, i), found);
            store(of.now + (NOW_SO_FAR + i) * L, found);
        }
    }
    static G2V_INLINE Vec ending(const double *now, int i) {
        const Vec low = Least<double>::ending(now, i), from = finite_or_zero<double>(low);
        Vec z = exp_negative(from - load(now + (NOW_SO_FAR + i) * L));
        for (int b = 0; b <= i; ++b)
            z += exp_negative(from - (load(now + (NOW_BEGUN + b) * L) + load(now + (NOW_LENGTH + i - b) * L)));
        return low - log_sum(z);
    }

private:
    static Vec one_by_one(const Lengths<double> &of, int64_t time, int64_t i) {
        Vec low = full<double>(NEVER), z{};
        const int64_t first = time - of.blocks(time) * B;
        const auto term = [&](int64_t b) { return load(of.in + b * L) + load(of.length + (time - b + i) * L); };
        for (int64_t b = first; b < time; ++b) low = least(low, term(b));
        if (!any<double>(low < full<double>(NEVER))) return low;
        const Vec from = finite_or_zero<double>(low);
        for (int64_t b = first; b < time; ++b) z += exp_negative(from - term(b));
        return low - log_sum(z);
    }
};

// into[i] = from[i] + cost, brought together with what is there.
template <class R> void add(const typename R::T *from, typename R::T cost, int64_t count, typename R::T *into) {
    using T = typename R::T;
    if (cost == INF<T>) return;
    int64_t i = 0;
    for (; i + LANES<T> <= count; i += LANES<T>) store(into + i, R::plus(load(into + i), load(from + i) + cost));
    for (; i < count; ++i) into[i] = R::plus(full<T>(into[i]), full<T>(from[i] + cost))[0];
}
template <class R> void add_vectors(const typename R::T *from, V<typename R::T> cost, int64_t count, typename R::T *into) {
    constexpr int64_t L = LANES<typename R::T>;
    for (int64_t i = 0; i < count; ++i) store(into + i * L, R::plus(load(into + i * L), load(from + i * L) + cost));
}

// Rows of numbers, one for each lane, as vectors; and back.
template <class T> G2V_INLINE void together(const T *const *row, int64_t rows, V<T> more, T *out) {
    constexpr int L = LANES<T>;
    for (int64_t j = 0; j < rows; j += L) {
        V<T> tile[L];
        for (int l = 0; l < L; ++l) tile[l] = load(row[l] + j);
        transpose(tile);
        for (int l = 0; l < L; ++l) store(out + (j + l) * L, tile[l] + more);
    }
}
template <class T> void apart(const T *vectors, int64_t rows, T *out) {
    constexpr int L = LANES<T>;
    for (int64_t j = 0; j < rows; j += L) {
        V<T> tile[L];
        for (int l = 0; l < L; ++l) tile[l] = load(vectors + (j + l) * L);
        transpose(tile);
        for (int l = 0; l < L; ++l) store(out + l * rows + j, tile[l]);
    }
}

// One group of nodes.
template <class R> struct Recursion {
    using T = typename R::T;
    using Vec = V<T>;
    static constexpr int64_t L = LANES<T>;
    static constexpr T NEVER = INF<T>;
    const AutomatonCosts<T> v;  // copies: what is stored through pointers cannot change them, and they stay in registers
    const NodeGroup g;
    GroupRows<T> n;
    const int64_t lengths;  // rows of a slot's table of lengths

    G2V_INLINE Recursion(const AutomatonCosts<T> &costs, const NodeGroup &group, const GroupRows<T> &rows)
        : v(costs), g(group), n(rows), lengths(costs.longest + 2 * B) {}

    G2V_INLINE void forward(T *best) {
        prepare<false>();
        for (int64_t k = 0; k < g.slots; ++k) enter(best, k);
        if (v.longest > 1) clips<true>();
        else clips<false>();
        write(best);
    }

    // To the table what was found of the nodes.
    G2V_INLINE void write(T *best) {
        for (int64_t j = v.clips + 1; j < v.rows; ++j) store(n.own + j * L, full<T>(NEVER));
        if (v.videos) {
            T *row = best + g.node[0] * v.rows * L;
            for (int64_t i = 0; i < v.rows * L; i += L) store(row + i, load(n.own + i));
            return;
        }
        apart(n.own, v.rows, n.lane_rows);
        for (int at = 0; at < g.nodes; ++at)
            for (int64_t j = 0; j < v.rows; j += L)
                store(best + g.node[at] * v.rows + j, load(n.lane_rows + at * g.spread * v.rows + j));
    }

    // From `after` [nodes][rows], complete for these nodes.
    G2V_INLINE void backward(const T *after) {
        T *out = n.lane_rows;
        gather_after(after, out);
        const Spread states = spread(NOW_ROWS * L);
        for (int64_t k = 0; k < g.slots; ++k) {
            store(at(n.begin, k, v.clips), full<T>(NEVER));
            if (v.longest == 1) continue;
            R::before_block(lengths_of(k), 0);
            for (int64_t j = from_end(v.clips) - 1; j >= 0; --j) put(k, j, static_cast<int>(j), full<T>(NEVER));
        }
        for (int64_t j = v.clips; j >= 0; --j) {
            Vec rest = load(out + j * L);
            if (j < v.clips) rest = R::plus(rest, drop(j) + load(n.on + (j + 1) * L));
            if (n.repeats) {
                for (int64_t k = 0; k < g.slots; ++k) set(k, NOW_ENDED, get(k, NOW_SELF) + load(at(n.begin, k, j)));
                const auto all = R::all_of(rest, n.now, states, true);
                store(n.on + j * L, all.value);
                for (int64_t k = 0; k < g.slots; ++k) store(at(n.leave, k, j), all.but(n.now + k * NOW_ROWS * L));
            } else {
                store(n.on + j * L, rest);
                for (int64_t k = 0; k < g.slots; ++k) store(at(n.leave, k, j), rest);
            }
            if (j == 0) return;
            if (j % 64 == 0) v.pause(64 * g.slots * L * (4 + (v.longest > 1 ? smaller(v.longest, v.clips) / 8 : 0)) * R::WORK);
            for (int64_t k = 0; k < g.slots; ++k) v.longest > 1 ? retreat_long(k, j) : retreat(k, j);
        }
    }

    // The mass of alignments, in place of what it is worked out of.
    G2V_INLINE void mass(const T *total) {
        const Vec all = finite_or_zero<T>(load(total));
        const auto of = [&](Vec a, Vec b) { return exp_negative(all - a - b); };
        for (int64_t k = 0; k < g.slots; ++k) {
            v.pause(20 * v.clips);
            Vec going{};  // of segments that cover the clip
            for (int64_t j = 0; j < v.clips; ++j) {
                const Vec begun = of(load(at(n.enter, k, j)), load(at(n.begin, k, j)));
                if (j) going -= of(load(at(n.ended, k, j)), load(at(n.leave, k, j)));
                going += begun;
                store(at(n.ended, k, j), most(going, full<T>(0)));
                store(at(n.leave, k, j), begun);
            }
        }
        for (int64_t j = 0; j < v.clips; ++j) store(n.own + j * L, of(load(n.own + j * L), drop(j) + load(n.on + (j + 1) * L)));
    }

protected:
    G2V_INLINE T *at(T *numbers, int64_t slot, int64_t row) const { return numbers + (slot * v.stride + row) * L; }
    G2V_INLINE Vec get(int64_t slot, int64_t row) const { return load(n.now + (slot * NOW_ROWS + row) * L); }
    G2V_INLINE void set(int64_t slot, int64_t row, Vec x) const { store(n.now + (slot * NOW_ROWS + row) * L, x); }

    // All clips, block by block.
    template <bool LONG> G2V_INLINE void clips() {
        Vec own = start();
        for (int64_t j = 0;; j += B) {
            if (j % 64 == 0) v.pause(64 * g.slots * L * (4 + (LONG ? smaller(v.longest, v.clips) / 8 : 0)) * R::WORK);
            if constexpr (LONG)
                for (int64_t k = 0; k < g.slots; ++k) R::before_block(lengths_of(k), j);
#pragma GCC unroll 8
            for (int i = 0; i < B; ++i)
                if (!clip<LONG>(j + i, i, own)) return;
        }
    }
    // One clip; whether there is another one.
    template <bool LONG> G2V_INLINE bool clip(int64_t j, int i, Vec &own) {
        const auto all = R::all_of(j ? drop(j - 1) + own : own, n.now, spread(NOW_ROWS * L), n.repeats);
        own = all.value;
        store(n.own + j * L, own);
        if (j == v.clips) return false;
        for (int64_t k = 0; k < g.slots; ++k) {
            Vec entered = load(at(n.enter, k, j));
            if (n.repeats) entered = R::plus(entered, get(k, NOW_SELF) + all.but(n.now + k * NOW_ROWS * L));
            if constexpr (LONG) advance_long(k, j, i, entered);
            else advance(k, j, entered);
        }
        return true;
    }
    G2V_INLINE Vec drop(int64_t clip) const { return v.videos ? load(v.drop + clip * L) : all(v.drop[clip]); }
    G2V_INLINE Spread spread(int64_t stride) const { return {g.slots, stride, v.videos ? 1 : g.spread, v.videos ? g.spread : 1}; }
    G2V_INLINE Vec start() const { return full<T>(g.node[0] ? NEVER : T(0)); }  // the first node is a group by itself

    // The state of a lane of a slot, or -1.
    G2V_INLINE int64_t state(int64_t slot, int lane) const {
        const int at = lane / g.spread;
        if (at >= g.nodes) return -1;
        const int64_t s = v.state_start[g.node[at]] + slot * g.spread + lane % g.spread;
        return s < v.state_start[g.node[at] + 1] ? s : -1;
    }

    // In blocks (automaton_blocks.hpp) match costs stay where they are.
    template <bool BLOCKS> G2V_INLINE void prepare() {
        n.repeats = false;
        for (int64_t k = 0; k < g.slots; ++k) {
            v.pause(2 * v.rows * L);
            const T *match[L], *length[L];
            T self[L], tail[L];
            if (v.videos) {
                const int64_t s = v.state_start[g.node[0]] + k, step = v.state_step[s];
                const T *row = v.match + step * v.rows * L;
                if constexpr (BLOCKS) n.from[3 * k * L] = row;
                else
                    for (int64_t i = 0; i < v.rows * L; i += L) store(at(n.match, k, 0) + i, load(row + i));
                set(k, NOW_TAIL, load(v.tail + step * L));
                set(k, NOW_SELF, full<T>(NEVER));
                for (int64_t a = v.arc_start[s]; a < v.arc_start[s + 1]; ++a)
                    if (v.arc_from[a] == g.node[0]) set(k, NOW_SELF, load(v.arc + a * L));
                for (int64_t i = 0; i < v.longest * L; i += L)
                    store(n.length + k * lengths * L + i, load(v.length + step * v.longest * L + i));
            } else {
                for (int l = 0; l < L; ++l) {
                    const int64_t s = state(k, l), step = s < 0 ? 0 : v.state_step[s];
                    match[l] = s < 0 ? n.zero : v.match + step * v.rows;
                    length[l] = v.length + step * v.longest;
                    tail[l] = s < 0 ? T(0) : v.tail[step];
                    self[l] = NEVER;
                    for (int64_t a = s < 0 ? 0 : v.arc_start[s]; s >= 0 && a < v.arc_start[s + 1]; ++a)
                        if (v.arc_from[a] == g.node[l / g.spread]) self[l] = v.arc[a];
                }
                if constexpr (BLOCKS)
                    for (int l = 0; l < L; ++l) n.from[3 * k * L + l] = match[l];
                else together(match, v.rows, Vec{}, at(n.match, k, 0));
                set(k, NOW_SELF, load(self));
                set(k, NOW_TAIL, load(tail));
                const int64_t whole = v.longest / L * L;
                together(length, whole, Vec{}, n.length + k * lengths * L);
                for (int64_t i = whole; i < v.longest; ++i)
                    for (int l = 0; l < L; ++l) n.length[(k * lengths + i) * L + l] = length[l][i];
            }
            n.repeats |= any<T>(get(k, NOW_SELF) < full<T>(NEVER));
            set(k, NOW_ENDED, full<T>(NEVER));
            prepare_lengths(k);
        }
    }

    G2V_INLINE void prepare_lengths(int64_t k) {
        T *length = n.length + k * lengths * L;
        fill(length + v.longest * L, 2 * B * L, NEVER);
        for (int64_t i = 0; i < B; ++i) set(k, NOW_LENGTH + i, load(length + i * L));
        set(k, NOW_LONGEST, load(length + (v.longest - 1) * L));
        set(k, NOW_SUM, Vec{});
        set(k, NOW_OVER, full<T>(NEVER));
        if (n.keep && v.longest > 1) {
            store(at(n.sum, k, 0), Vec{});
            store(at(n.over, k, 0), full<T>(NEVER));
        }
        if (n.keep) store(at(n.ended, k, 0), full<T>(NEVER));
        const Lengths<T> of = lengths_of(k);
        if constexpr (R::SUMS)
            for (int64_t i = 0; i < lengths * L; i += L) store(n.weight + k * lengths * L + i, exp_negative(-load(length + i)));
        for (int64_t back = 1; back <= of.blocks(v.rows); ++back) {
            Vec low = full<T>(NEVER);
            for (int64_t i = back * B - B + 1; i < back * B + B; ++i) low = least(low, load(length + i * L));
            store(n.shortest + (k * (lengths / B) + back) * L, low);
        }
    }
    G2V_INLINE Lengths<T> lengths_of(int64_t k) const {
        return {v.longest,
                n.now + k * NOW_ROWS * L,
                at(n.begun, k, 0),
                n.low + k * (v.rows / B + 1) * L,
                n.share + k * v.stride * L,
                n.length + k * lengths * L,
                n.shortest + k * (lengths / B) * L,
                n.weight + k * lengths * L};
    }

    // What begins a segment by arcs from other nodes.
    G2V_INLINE void enter(const T *best, int64_t k) {
        if (!v.videos) {
            const T *row[L];
            T cost[L];
            entered_from(best, k, row, cost);
            together(row, v.rows, load(cost), at(n.enter, k, 0));
            return;
        }
        const int64_t s = v.state_start[g.node[0]] + k;
        fill(at(n.enter, k, 0), v.rows * L, NEVER);
        v.pause(2 * v.rows * L * (v.arc_start[s + 1] - v.arc_start[s]) * R::WORK);
        for (int64_t a = v.arc_start[s]; a < v.arc_start[s + 1]; ++a)
            if (v.arc_from[a] != g.node[0])
                add_vectors<R>(best + v.arc_from[a] * v.rows * L, load(v.arc + a * L), v.rows, at(n.enter, k, 0));
    }
    // The same of lanes that are states: for each a row and what is more than it; whether all of them are rows of the table.
    G2V_INLINE bool entered_from(const T *best, int64_t k, const T **row, T *cost) {
        bool of_table = true;
        for (int l = 0; l < L; ++l) {
            const int64_t s = state(k, l);
            row[l] = n.never;
            cost[l] = 0;
            for (int64_t a = s < 0 ? 0 : v.arc_start[s]; s >= 0 && a < v.arc_start[s + 1]; ++a) {
                if (v.arc_from[a] == g.node[l / g.spread] || v.arc[a] == NEVER) continue;
                const T *from = best + v.arc_from[a] * v.rows;
                if (row[l] == n.never) {
                    row[l] = from;
                    cost[l] = v.arc[a];
                    continue;
                }
                T *sum = n.lane_rows + l * v.rows;
                v.pause(2 * v.rows * R::WORK);
                if (row[l] != sum)
                    for (int64_t j = 0; j < v.rows; j += L) store(sum + j, load(row[l] + j) + cost[l]);
                row[l] = sum;
                cost[l] = 0;
                of_table = false;
                add<R>(from, v.arc[a], v.rows, sum);
            }
        }
        return of_table;
    }

    G2V_INLINE void gather_after(const T *after, T *out) const {
        if (v.videos) {
            for (int64_t i = 0; i < v.rows * L; i += L) store(out + i, load(after + g.node[0] * v.rows * L + i));
            return;
        }
        const T *row[L];
        for (int l = 0; l < L; ++l) row[l] = l / g.spread < g.nodes ? after + g.node[l / g.spread] * v.rows : n.never;
        together(row, v.rows, Vec{}, out);
    }

    G2V_INLINE void advance(int64_t k, int64_t j, Vec entered) {
        const Vec began = entered + get(k, NOW_LENGTH), went_on = get(k, NOW_ENDED) + get(k, NOW_TAIL);
        const Vec ended = load(at(n.match, k, j)) + R::plus(began, went_on);
        set(k, NOW_ENDED, ended);
        if (!n.keep) return;
        store(at(n.enter, k, j), entered);
        store(at(n.ended, k, j + 1), ended);
    }

    G2V_INLINE void advance_long(int64_t k, int64_t j, int i, Vec entered) {
        const Vec cost = load(at(n.match, k, j)), sum = get(k, NOW_SUM);
        Vec next = sum + cost;
        if (v.forbids) {  // no segment goes across a forbidden clip
            const Mask<T> forbidden = cost == full<T>(NEVER);
            next = sum + finite_or_zero<T>(cost);
            if (any<T>(forbidden)) {
                forbid(k, j, forbidden & ~(j ? load(at(n.match, k, j - 1)) == full<T>(NEVER) : Mask<T>{}));
                entered = where<T>(forbidden, full<T>(NEVER), entered);
            }
        }
        put(k, j, i, entered - sum);
        Vec over = get(k, NOW_OVER);
        if (j >= v.longest)  // of `longest` clips, just now
            over = R::plus(over, sum + (load(at(n.begun, k, j - v.longest)) + get(k, NOW_LONGEST)));
        over = cost + get(k, NOW_TAIL) + over;
        const Vec ended = R::plus(next + R::ending(n.now + k * NOW_ROWS * L, i), over);
        set(k, NOW_SUM, next);
        set(k, NOW_OVER, over);
        set(k, NOW_ENDED, ended);
        if (!n.keep) return;
        store(at(n.enter, k, j), entered);
        store(at(n.sum, k, j + 1), next);
        store(at(n.over, k, j + 1), over);
        store(at(n.ended, k, j + 1), ended);
    }

    G2V_INLINE void put(int64_t k, int64_t j, int i, Vec x) const {
        store(at(n.begun, k, j), x);
        set(k, NOW_BEGUN + i, x);
    }
    // What began before `j` does not go on; in lanes that are left out all is done with already.
    void forbid(int64_t k, int64_t j, Mask<T> lanes) const {
        if (!any<T>(lanes)) return;
        const auto forget = [&](T *p, T x) { store(p, where<T>(lanes, full<T>(x), load(p))); };
        T *now = n.now + k * NOW_ROWS * L;
        // All of this block, as in `now`, whose least its shares are taken of; before it, what is not too long ago.
        for (int64_t b = smaller(larger<int64_t>(0, j + 1 - v.longest), j - j % B); b < j; ++b) {
            forget(at(n.begun, k, b), NEVER);
            if constexpr (R::SUMS) forget(at(n.share, k, b), 0);
        }
        for (int64_t i = 0; i < j % B; ++i) forget(now + (NOW_BEGUN + i) * L, NEVER);
        for (int64_t i = j % B; i < B; ++i) forget(now + (NOW_SO_FAR + i) * L, NEVER);
    }

    // Times counted from the end, which is put so that blocks are those of times: for a shorter video, too.
    G2V_INLINE int64_t from_end(int64_t j) const { return (v.clips + B - 1) / B * B - j; }

    G2V_INLINE void retreat(int64_t k, int64_t j) {
        Vec here = load(at(n.leave, k, j));
        if (j < v.clips) here = R::plus(here, get(k, NOW_TAIL) + load(at(n.match, k, j)) + load(at(n.over, k, j + 1)));
        store(at(n.over, k, j), here);
        store(at(n.begin, k, j - 1), load(at(n.match, k, j - 1)) + get(k, NOW_LENGTH) + here);
    }

    G2V_INLINE void retreat_long(int64_t k, int64_t j) {
        const int64_t back = from_end(j);
        if (back % B == 0) R::before_block(lengths_of(k), back);
        Vec longer = full<T>(NEVER);  // one clip more, in a segment that is as long as `longest` already
        if (j < v.clips)
            longer =
                get(k, NOW_TAIL) + load(at(n.match, k, j)) + R::plus(load(at(n.leave, k, j + 1)), load(at(n.over, k, j + 1)));
        store(at(n.over, k, j), longer);
        Vec ended = load(at(n.leave, k, j)) + load(at(n.sum, k, j));
        const Mask<T> forbidden = load(at(n.match, k, j - 1)) == full<T>(NEVER);
        if (any<T>(forbidden)) {
            forbid(k, back, forbidden & ~(j < v.clips ? load(at(n.match, k, j)) == full<T>(NEVER) : Mask<T>{}));
            ended = where<T>(forbidden, full<T>(NEVER), ended);
            for (int64_t t = j; t < j + v.longest && t <= v.clips; ++t)
                store(at(n.over, k, t), where<T>(forbidden, full<T>(NEVER), load(at(n.over, k, t))));
        }
        put(k, back, static_cast<int>(back % B), ended);
        const Vec before = load(at(n.sum, k, j - 1));
        Vec all = R::ending(n.now + k * NOW_ROWS * L, static_cast<int>(back % B)) - before;
        if (const int64_t t = j - 1 + v.longest; t <= v.clips) {
            const Vec long_one = load(at(n.sum, k, t)) - before + get(k, NOW_LONGEST);
            all = R::plus(all, long_one + load(at(n.over, k, t)));
        }
        store(at(n.begin, k, j - 1), all);
    }
};

template <class R> void forward(const AutomatonCosts<typename R::T> &costs, const NodeGroup &group, typename R::T *best,
                                GroupRows<typename R::T> &rows) {
    Recursion<R> recursion(costs, group, rows);
    recursion.forward(best);
    rows.repeats = recursion.n.repeats;
}

}  // namespace
}  // namespace G2V_ARCH
}  // namespace g2v
