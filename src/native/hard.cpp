// The hard (min, +) recursion, many states at once. Compiled once per instruction set (see CMakeLists.txt), each time in
// a namespace of its own: no template of the standard library may appear here, or the linker could merge its copies.
#include "simd.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

// Whole tiles are unrolled, and two groups run at once, only where a vector is one register.
#if defined(__AVX2__)
constexpr int UNROLL = 8;
#else
constexpr int UNROLL = 1;
#endif
constexpr bool PAIRS = UNROLL > 1;

// The costs of LANES clips, each lane with a step of its own.
template <class T> G2V_INLINE void mixed_costs(V<T> *c, const Job<T> &job, int64_t slot, int64_t clip) {
    const int32_t *step = job.slots.crossed_steps + job.slots.slot_row[slot] * LANES<T>;
    for (int l = 0; l < LANES<T>; ++l) c[l] = load(job.match + step[l] * job.match_stride + clip);
    transpose(c);
}
template <class T> G2V_INLINE V<T> mixed_skips(const Job<T> &job, int64_t slot) {
    const int32_t *step = job.slots.crossed_steps + job.slots.slot_row[slot] * LANES<T>;
    T z[LANES<T>];
    for (int l = 0; l < LANES<T>; ++l) z[l] = job.skip[step[l]];
    return load(z);
}

// One group on its way through a block.
template <class T, bool VIDEOS, bool CONTIGUOUS, bool SKIPS, bool BEGIN, int KIND> struct Sweep {
    static constexpr int L = LANES<T>;
    static constexpr int HALF = INSIDE[KIND].half, INNER = HALF + INSIDE[KIND].cross;
    const Job<T> job;  // a copy: what is stored through pointers cannot change it, and it stays in registers
    int64_t group, straight, crossed, inner;
    int64_t waiver = 0, waivers_end = 0;
    T *own;
    V<T> unused;  // +inf in lanes that hold no ideal, else -inf
    V<T> start;   // 0 in the lane of the ideal with nothing done, else +inf
    V<T> b;       // best of the group's ideals before the next clip
    V<T> reached[L], waived[L];
    V<T> inner_value[INNER + 1];
    const T *inner_cost[INNER + 1];

    G2V_INLINE Sweep(const Job<T> &j, int64_t g) : job(j), group(g) {
        const Slots &slots = job.slots;
        straight = slots.group_slot[g];
        crossed = VIDEOS ? slots.group_slot[g + 1] : slots.crossed[g];
        inner = VIDEOS ? crossed : slots.inner[g];
        if constexpr (SKIPS && !VIDEOS) {
            waiver = slots.group_waiver[g];
            waivers_end = slots.group_waiver[g + 1];
        }
        own = job.block + g * job.row * L;
        b = load(own);
        const T infinite = static_cast<T>(__builtin_inf());
        T is_unused[L], is_start[L];
        for (int l = 0; l < L; ++l) {
            const int64_t ideal = slots.group_ideal[VIDEOS ? g : g * L + l];
            is_unused[l] = ideal < 0 ? infinite : -infinite;
            is_start[l] = ideal == 0 ? 0 : infinite;
        }
        unused = load(is_unused);
        start = load(is_start);
    }

    G2V_INLINE const T *from(int64_t slot, int64_t column) const {
        return job.block + (job.slots.slot_group[slot] * job.row + column) * L;
    }
    // Best of where the slot is entered from, after all LANES clips of the tile.
    G2V_INLINE V<T> after(int64_t slot, int64_t column) const {
        if (column + L < job.width) return load(from(slot, column + L));
        if (job.next) return load(job.next + job.slots.slot_group[slot] * job.next_stride * L);
        return all(static_cast<T>(__builtin_inf()));  // beyond the last clip
    }

    // Bests of ideals, plus the cost of entering a slot from them.
    G2V_INLINE V<T> begun(int64_t slot, V<T> best) const {
        if constexpr (!BEGIN) return best;
        else if constexpr (VIDEOS) return best + all(job.begin[slot]);
        else return best + load(job.begin + slot * L);
    }

    // COUNT straight slots at once, over LANES clips: each waits for its own last value, so several fill the time.
    template <int COUNT> G2V_INLINE void enter_straight(int64_t slot, int64_t column, V<T> *r, V<T> *w) const {
        const int64_t clip = job.first + column;
        const T *x[COUNT], *c[COUNT];
        V<T> m[COUNT];
        for (int k = 0; k < COUNT; ++k) {
            const int64_t step = job.slots.slot_step[slot + k];
            x[k] = from(slot + k, column);
            c[k] = job.match + (step * job.match_stride + clip) * (VIDEOS ? L : 1);
            m[k] = load(job.carry + (slot + k) * L);
            if constexpr (SKIPS) {
                const V<T> z = cost<T, VIDEOS>(job.skip, step);
                for (int i = 0; i + 1 < L; ++i) w[i] = least(w[i], load(x[k] + (i + 1) * L) + z);
                w[L - 1] = least(w[L - 1], after(slot + k, column) + z);
            }
        }
#pragma GCC unroll UNROLL
        for (int i = 0; i < L; ++i) {
            V<T> best = r[i];
#pragma GCC unroll 4
            for (int k = 0; k < COUNT; ++k) {
                const V<T> shown = cost<T, VIDEOS>(c[k], i) + least(begun(slot + k, load(x[k] + i * L)), m[k]);
                m[k] = CONTIGUOUS ? shown : least(shown, cost<T, VIDEOS>(job.drop, clip + i) + m[k]);
                best = least(best, m[k]);
            }
            r[i] = best;
        }
        for (int k = 0; k < COUNT; ++k) store(job.carry + (slot + k) * L, m[k]);
    }

    G2V_INLINE const Pattern &pattern(int64_t slot) const { return job.slots.patterns[job.slots.slot_pattern[slot]]; }

    // Get ready for the moves inside the group during LANES clips.
    G2V_INLINE void load_inner(int64_t clip) {
        for (int k = 0; k < INNER; ++k) {
            const int64_t slot = inner + k;
            inner_value[k] = load(job.carry + slot * L);
            inner_cost[k] = job.inner_match + (job.slots.slot_row[slot] * job.match_stride + clip) * L;
        }
    }

    // What comes in from other groups during LANES clips: their rows are there already.
    G2V_INLINE void enter(int64_t column) {
        const int64_t clip = job.first + column;
        const T *drop = job.drop + clip * (VIDEOS ? L : 1);
        V<T> r[L], w[L];
        for (int i = 0; i < L; ++i) r[i] = w[i] = all(static_cast<T>(__builtin_inf()));
        int64_t slot = straight;
        for (; slot + 4 <= crossed; slot += 4) enter_straight<4>(slot, column, r, w);
        for (; slot < crossed; ++slot) enter_straight<1>(slot, column, r, w);
        if constexpr (!VIDEOS)
            for (int64_t slot = crossed; slot < inner; ++slot) {
                const Pick<T> pick(pattern(slot));
                const T *x = from(slot, column);
                V<T> c[L];
                mixed_costs(c, job, slot, clip);
                V<T> m = load(job.carry + slot * L);
                for (int i = 0; i < L; ++i) {
                    const V<T> shown = c[i] + least(begun(slot, pick.template of<true>(load(x + i * L))), m);
                    m = CONTIGUOUS ? shown : least(shown, cost<T, VIDEOS>(drop, i) + m);
                    r[i] = least(r[i], m);
                }
                store(job.carry + slot * L, m);
                if constexpr (SKIPS) {
                    const V<T> z = mixed_skips(job, slot);
                    for (int i = 0; i + 1 < L; ++i) w[i] = least(w[i], pick.template of<true>(load(x + (i + 1) * L)) + z);
                    w[L - 1] = least(w[L - 1], pick.template of<true>(after(slot, column)) + z);
                }
            }
        for (int i = 0; i < L; ++i) {
            reached[i] = VIDEOS ? r[i] : most(r[i], unused);
            if constexpr (SKIPS) waived[i] = VIDEOS ? w[i] : most(w[i], unused);
        }
        load_inner(clip);
    }

    // Clip i of the tile: what moves inside the group depends on the column before.
    G2V_INLINE void move(int64_t column, int i, const Pick<T> *picks) {
        store(own + (column + i) * L, b);
        const V<T> d = cost<T, VIDEOS>(job.drop, job.first + column + i);
        V<T> next = least(reached[i], CONTIGUOUS ? d + b : d + b + start);
        inside<0>(picks, [&](int k, V<T> from) __attribute__((always_inline)) {
            const V<T> shown = load(inner_cost[k] + i * L) + least(begun(inner + k, from), inner_value[k]);
            inner_value[k] = CONTIGUOUS ? shown : least(shown, d + inner_value[k]);
            next = least(next, inner_value[k]);
        });
        b = next;
        if constexpr (SKIPS) {
            b = least(b, waived[i]);
            if constexpr (INNER > 0) {
                for (int64_t k = waiver; k < waivers_end; ++k) {
                    const Pick<T> pick(job.slots.patterns[job.slots.waiver_pattern[k]]);
                    b = least(b, pick.template of<true>(b) + all(job.skip[job.slots.waiver_step[k]]));
                }
                b = most(b, unused);
            }
        }
    }

    // Call visit(k, where inner slot k is entered from) for each inner slot.
    template <int K, class Visit> G2V_INLINE void inside(const Pick<T> *picks, Visit visit) {
        if constexpr (K < INNER) {
            visit(K, picks[K].template of<(K >= HALF)>(b));
            inside<K + 1>(picks, visit);
        }
    }

    G2V_INLINE void end_tile() {
        for (int k = 0; k < INNER; ++k) store(job.carry + (inner + k) * L, inner_value[k]);
    }
    G2V_INLINE void end_block(int64_t column) {
        if (column < job.width) store(own + column * L, b);
        else if (job.next) store(job.next + group * job.next_stride * L, b);
    }
};

// One group, or two alike that do not depend on one another: the second fills the time in which the first waits for itself.
template <class T, bool VIDEOS, bool CONTIGUOUS, bool SKIPS, bool BEGIN, int KIND, int COUNT>
void sweep_groups(const Job<T> &job, int64_t group) {
    using S = Sweep<T, VIDEOS, CONTIGUOUS, SKIPS, BEGIN, KIND>;
    S one(job, group), two(job, group + COUNT - 1);
    const Pattern nothing{};
    const Pick<T> picks[MAX_INNER] = {Pick<T>(S::INNER > 0 ? one.pattern(one.inner) : nothing),
                                      Pick<T>(S::INNER > 1 ? one.pattern(one.inner + 1) : nothing),
                                      Pick<T>(S::INNER > 2 ? one.pattern(one.inner + 2) : nothing)};
    int64_t column = 0;
    for (; column < job.clips; column += LANES<T>) {
        one.enter(column);
        if constexpr (COUNT == 2) two.enter(column);
#pragma GCC unroll UNROLL
        for (int i = 0; i < LANES<T>; ++i) {
            one.move(column, i, picks);
            if constexpr (COUNT == 2) two.move(column, i, picks);
        }
        one.end_tile();
        if constexpr (COUNT == 2) two.end_tile();
    }
    one.end_block(column);
    if constexpr (COUNT == 2) two.end_block(column);
}

// The group, with the next one where they can run together, by the kernel for how its lanes move. Returns how many.
template <class T, bool CONTIGUOUS, bool SKIPS, bool BEGIN, int KIND = 0>
G2V_INLINE int64_t sweep_ideals(const Job<T> &job, int64_t group, bool pair) {
    if constexpr (KIND + 1 < INSIDE_KINDS)
        if (job.slots.group_inside[group] != KIND) return sweep_ideals<T, CONTIGUOUS, SKIPS, BEGIN, KIND + 1>(job, group, pair);
    if constexpr (PAIRS && sizeof(T) == 4)
        if (pair) {
            sweep_groups<T, false, CONTIGUOUS, SKIPS, BEGIN, KIND, 2>(job, group);
            return 2;
        }
    sweep_groups<T, false, CONTIGUOUS, SKIPS, BEGIN, KIND, 1>(job, group);
    return 1;
}

template <class T, bool VIDEOS, bool CONTIGUOUS, bool SKIPS, bool BEGIN>
void sweep(const Job<T> &job, int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end;) {
        if constexpr (VIDEOS) sweep_groups<T, true, CONTIGUOUS, SKIPS, BEGIN, 0, 1>(job, group++);
        else group += sweep_ideals<T, CONTIGUOUS, SKIPS, BEGIN>(job, group, group + 1 < end && job.slots.paired[group]);
    }
}

template <class T, bool VIDEOS, bool BEGIN> void advance_in(const Job<T> &job, int64_t begin, int64_t end) {
    if (job.contiguous)
        job.skips ? sweep<T, VIDEOS, true, true, BEGIN>(job, begin, end) : sweep<T, VIDEOS, true, false, BEGIN>(job, begin, end);
    else
        job.skips ? sweep<T, VIDEOS, false, true, BEGIN>(job, begin, end)
                  : sweep<T, VIDEOS, false, false, BEGIN>(job, begin, end);
}

template <class T> void advance(const Job<T> &job, int64_t begin, int64_t end) {
    if (job.videos) job.begin ? advance_in<T, true, true>(job, begin, end) : advance_in<T, true, false>(job, begin, end);
    else job.begin ? advance_in<T, false, true>(job, begin, end) : advance_in<T, false, false>(job, begin, end);
}

template <class T> void interleave(const T *match, int64_t match_stride, const int32_t *steps, T *out) {
    constexpr int L = LANES<T>;
    for (int64_t clip = 0; clip < match_stride; clip += L) {
        V<T> c[L];
        for (int l = 0; l < L; ++l) c[l] = load(match + steps[l] * match_stride + clip);
        transpose(c);
        for (int i = 0; i < L; ++i) store(out + (clip + i) * L, c[i]);
    }
}

}  // namespace
}  // namespace G2V_ARCH

Kernels G2V_JOIN(kernels_, G2V_ARCH)() {
    return {G2V_TEXT(G2V_ARCH), G2V_ARCH::advance<float>, G2V_ARCH::advance<double>, G2V_ARCH::interleave<float>,
            G2V_ARCH::interleave<double>};
}

}  // namespace g2v
