// The hard (min, +) recursion, many states at once. Compiled once per instruction set (see CMakeLists.txt), each time in
// a namespace of its own: no template of the standard library may appear here, or the linker could merge its copies.
#include "job.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define G2V_INLINE inline __attribute__((always_inline))

namespace g2v {
namespace G2V_ARCH {
namespace {

template <class T> struct Lane;
template <> struct Lane<float> {
    typedef float V __attribute__((vector_size(32)));
    typedef float U __attribute__((vector_size(32), aligned(4), may_alias));
};
template <> struct Lane<double> {
    typedef double V __attribute__((vector_size(32)));
    typedef double U __attribute__((vector_size(32), aligned(8), may_alias));
};
template <class T> using V = typename Lane<T>::V;

template <class T> G2V_INLINE V<T> load(const T *p) { return *reinterpret_cast<const typename Lane<T>::U *>(p); }
template <class T> G2V_INLINE void store(T *p, V<T> v) { *reinterpret_cast<typename Lane<T>::U *>(p) = v; }
#if defined(__AVX2__)
G2V_INLINE V<float> all(const float &x) { return (V<float>)_mm256_broadcast_ss(&x); }
G2V_INLINE V<double> all(const double &x) { return (V<double>)_mm256_broadcast_sd(&x); }
#else
template <class T> G2V_INLINE V<T> all(const T &x) { return V<T>{} + x; }
#endif

// Never NaN: -inf and NaN are refused before a kernel runs, and +inf only meets finite numbers or +inf.
#if defined(__AVX2__)
G2V_INLINE V<float> least(V<float> a, V<float> b) { return (V<float>)_mm256_min_ps((__m256)a, (__m256)b); }
G2V_INLINE V<double> least(V<double> a, V<double> b) { return (V<double>)_mm256_min_pd((__m256d)a, (__m256d)b); }
G2V_INLINE V<float> most(V<float> a, V<float> b) { return (V<float>)_mm256_max_ps((__m256)a, (__m256)b); }
G2V_INLINE V<double> most(V<double> a, V<double> b) { return (V<double>)_mm256_max_pd((__m256d)a, (__m256d)b); }
#else
template <class X> G2V_INLINE X least(X a, X b) { return a < b ? a : b; }
template <class X> G2V_INLINE X most(X a, X b) { return a > b ? a : b; }
#endif

// Lanes of a vector in another order. A shuffle across the whole vector is slow on many processors; within the halves, of
// the vector and of its swapped twin, it is not.
template <class T> struct Pick {
#if defined(__AVX2__)
    __m256i same, other;
    G2V_INLINE explicit Pick(const Pattern &p)
        : same(_mm256_load_si256((const __m256i *)p.same)), other(_mm256_load_si256((const __m256i *)p.other)) {}
    G2V_INLINE V<T> operator()(V<T> v) const {
        const __m256i here = (__m256i)v, swapped = _mm256_permute2x128_si256(here, here, 1);
        return (V<T>)_mm256_or_si256(_mm256_shuffle_epi8(here, same), _mm256_shuffle_epi8(swapped, other));
    }
#else
    const int32_t *lane;
    G2V_INLINE explicit Pick(const Pattern &p) : lane(p.lane) {}
    G2V_INLINE V<T> operator()(V<T> v) const {
        V<T> r;
        for (int l = 0; l < LANES<T>; ++l) r[l] = v[lane[l]];
        return r;
    }
#endif
};

// Transpose LANES rows of LANES numbers in registers.
G2V_INLINE void transpose(V<float> *r) {
    V<float> a[8], b[8];
    for (int i = 0; i < 8; i += 2) {
        a[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        a[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4) {
        b[i] = __builtin_shufflevector(a[i], a[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        b[i + 1] = __builtin_shufflevector(a[i], a[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        b[i + 2] = __builtin_shufflevector(a[i + 1], a[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        b[i + 3] = __builtin_shufflevector(a[i + 1], a[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int i = 0; i < 4; ++i) {
        r[i] = __builtin_shufflevector(b[i], b[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        r[i + 4] = __builtin_shufflevector(b[i], b[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}
G2V_INLINE void transpose(V<double> *r) {
    V<double> a = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6);
    V<double> b = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
    V<double> c = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6);
    V<double> d = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

// The costs of one step for all lanes, clip by clip: one number, or one per video.
template <class T, bool VIDEOS> G2V_INLINE V<T> cost(const T *costs, int64_t at) {
    if constexpr (VIDEOS) return load(costs + at * LANES<T>);
    else return all(costs[at]);
}

// The costs of LANES clips, each lane with a step of its own.
template <class T> G2V_INLINE void mixed_costs(V<T> *c, const Job<T> &job, int64_t slot, int64_t clip) {
    const int32_t *step = job.slots.slot_step + slot * LANES<T>;
    for (int l = 0; l < LANES<T>; ++l) c[l] = load(job.match + step[l] * job.match_stride + clip);
    transpose(c);
}
template <class T> G2V_INLINE V<T> mixed_skips(const Job<T> &job, int64_t slot) {
    const int32_t *step = job.slots.slot_step + slot * LANES<T>;
    V<T> z;
    for (int l = 0; l < LANES<T>; ++l) z[l] = job.skip[step[l]];
    return z;
}

// One group on its way through a block.
template <class T, bool VIDEOS, bool CONTIGUOUS, bool SKIPS, int INNER> struct Sweep {
    static constexpr int L = LANES<T>;
    const Job<T> job;  // a copy: what is stored through pointers cannot change it, and it stays in registers
    int64_t group, straight, crossed, inner;
    T *own;
    V<T> unused;  // +inf in lanes that hold no ideal, else -inf
    V<T> start;   // 0 in the lane of the ideal with nothing done, else +inf
    V<T> b;       // best of the group's ideals before the next clip
    V<T> reached[L], waived[L];
    V<T> inner_cost[INNER + 1][L], inner_value[INNER + 1], inner_skip[INNER + 1];

    G2V_INLINE Sweep(const Job<T> &j, int64_t g) : job(j), group(g) {
        const Slots &slots = job.slots;
        straight = slots.group_slot[g];
        crossed = VIDEOS ? slots.group_slot[g + 1] : slots.crossed[g];
        inner = VIDEOS ? crossed : slots.inner[g];
        own = job.block + g * job.width * L;
        b = load(own);
        const V<T> infinite = all(static_cast<T>(__builtin_inf()));
        unused = -infinite;
        start = infinite;
        if constexpr (VIDEOS) {
            if (g == 0) start = V<T>{};
        } else {
            for (int l = 0; l < L; ++l) {
                const int32_t ideal = slots.group_ideal[g * L + l];
                if (ideal < 0) unused[l] = infinite[0];
                if (ideal == 0) start[l] = 0;
            }
        }
    }

    G2V_INLINE const T *from(int64_t slot, int64_t column) const {
        return job.block + (job.slots.slot_group[slot] * job.width + column) * L;
    }
    // Best of where the slot is entered from, after all LANES clips of the tile.
    G2V_INLINE V<T> after(int64_t slot, int64_t column) const {
        if (column + L < job.width) return load(from(slot, column + L));
        return job.next ? load(job.next + job.slots.slot_group[slot] * job.next_stride * L) : unused;
    }

    // COUNT straight slots at once, over LANES clips: each waits for its own last value, so several fill the time.
    template <int COUNT> G2V_INLINE void enter_straight(int64_t slot, int64_t column, V<T> *r, V<T> *w) const {
        const int64_t clip = job.first + column;
        const T *x[COUNT], *c[COUNT];
        V<T> m[COUNT];
        for (int k = 0; k < COUNT; ++k) {
            const int64_t step = job.slots.slot_step[VIDEOS ? slot + k : (slot + k) * L];
            x[k] = from(slot + k, column);
            c[k] = job.match + (step * job.match_stride + clip) * (VIDEOS ? L : 1);
            m[k] = load(job.carry + (slot + k) * L);
            if constexpr (SKIPS) {
                const V<T> z = cost<T, VIDEOS>(job.skip, step);
                for (int i = 0; i + 1 < L; ++i) w[i] = least(w[i], load(x[k] + (i + 1) * L) + z);
                w[L - 1] = least(w[L - 1], after(slot + k, column) + z);
            }
        }
#pragma GCC unroll 8
        for (int i = 0; i < L; ++i) {
            V<T> best = r[i];
#pragma GCC unroll 4
            for (int k = 0; k < COUNT; ++k) {
                const V<T> shown = cost<T, VIDEOS>(c[k], i) + least(load(x[k] + i * L), m[k]);
                m[k] = CONTIGUOUS ? shown : least(shown, cost<T, VIDEOS>(job.drop, clip + i) + m[k]);
                best = least(best, m[k]);
            }
            r[i] = best;
        }
        for (int k = 0; k < COUNT; ++k) store(job.carry + (slot + k) * L, m[k]);
    }

    G2V_INLINE const Pattern &pattern(int64_t slot) const { return job.slots.patterns[job.slots.slot_pattern[slot]]; }

    G2V_INLINE void inner_costs(V<T> *c, int64_t slot, int64_t clip) const {
        if (job.slots.slot_mixed[slot]) {
            mixed_costs(c, job, slot, clip);
            return;
        }
        const T *row = job.match + job.slots.slot_step[slot * L] * job.match_stride + clip;
        const V<T> absent = load(reinterpret_cast<const T *>(pattern(slot).absent));
        for (int i = 0; i < L; ++i) c[i] = most(all(row[i]), absent);
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
                    const V<T> shown = c[i] + least(pick(load(x + i * L)), m);
                    m = CONTIGUOUS ? shown : least(shown, cost<T, VIDEOS>(drop, i) + m);
                    r[i] = least(r[i], m);
                }
                store(job.carry + slot * L, m);
                if constexpr (SKIPS) {
                    const V<T> z = mixed_skips(job, slot);
                    for (int i = 0; i + 1 < L; ++i) w[i] = least(w[i], pick(load(x + (i + 1) * L)) + z);
                    w[L - 1] = least(w[L - 1], pick(after(slot, column)) + z);
                }
            }
        for (int i = 0; i < L; ++i) {
            reached[i] = VIDEOS ? r[i] : most(r[i], unused);
            if constexpr (SKIPS) waived[i] = VIDEOS ? w[i] : most(w[i], unused);
        }
        for (int k = 0; k < INNER; ++k) {
            inner_costs(inner_cost[k], inner + k, clip);
            inner_value[k] = load(job.carry + (inner + k) * L);
            if constexpr (SKIPS) {
                inner_skip[k] = mixed_skips(job, inner + k);
                inner_skip[k] = most(inner_skip[k], load(reinterpret_cast<const T *>(pattern(inner + k).absent)));
            }
        }
    }

    // Clip i of the tile: what moves inside the group depends on the column before.
    G2V_INLINE void move(int64_t column, int i, const Pick<T> *picks) {
        store(own + (column + i) * L, b);
        const V<T> d = cost<T, VIDEOS>(job.drop, job.first + column + i);
        V<T> next = least(reached[i], CONTIGUOUS ? d + b : d + b + start);
        for (int k = 0; k < INNER; ++k) {
            const V<T> shown = inner_cost[k][i] + least(picks[k](b), inner_value[k]);
            inner_value[k] = CONTIGUOUS ? shown : least(shown, d + inner_value[k]);
            next = least(next, inner_value[k]);
        }
        b = next;
        if constexpr (SKIPS) {
            b = least(b, waived[i]);
            for (int pass = 0; pass < (INNER ? MAX_DEPTH : 0); ++pass)
                for (int k = 0; k < INNER; ++k)
                    b = least(b, picks[k](b) + inner_skip[k]);
            if constexpr (INNER > 0) b = most(b, unused);
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
template <class T, bool VIDEOS, bool CONTIGUOUS, bool SKIPS, int INNER, int COUNT>
void sweep_groups(const Job<T> &job, int64_t group) {
    using S = Sweep<T, VIDEOS, CONTIGUOUS, SKIPS, INNER>;
    S one(job, group), two(job, group + COUNT - 1);
    const Pattern nothing{};
    const Pick<T> picks[MAX_INNER] = {Pick<T>(INNER > 0 ? one.pattern(one.inner) : nothing),
                                      Pick<T>(INNER > 1 ? one.pattern(one.inner + 1) : nothing),
                                      Pick<T>(INNER > 2 ? one.pattern(one.inner + 2) : nothing)};
    int64_t column = 0;
    for (; column < job.clips; column += LANES<T>) {
        one.enter(column);
        if constexpr (COUNT == 2) two.enter(column);
#pragma GCC unroll 8
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

template <class T, bool CONTIGUOUS, bool SKIPS, int INNER>
G2V_INLINE int64_t sweep_ideals(const Job<T> &job, int64_t group, bool pair) {
    if (pair) sweep_groups<T, false, CONTIGUOUS, SKIPS, INNER, 2>(job, group);
    else sweep_groups<T, false, CONTIGUOUS, SKIPS, INNER, 1>(job, group);
    return pair ? 2 : 1;
}

template <class T, bool VIDEOS, bool CONTIGUOUS, bool SKIPS>
void sweep(const Job<T> &job, int64_t begin, int64_t end) {
    for (int64_t group = begin; group < end;) {
        if constexpr (VIDEOS) {
            sweep_groups<T, true, CONTIGUOUS, SKIPS, 0, 1>(job, group++);
        } else {
            const bool pair = group + 1 < end && job.slots.paired[group];
            switch (job.slots.group_slot[group + 1] - job.slots.inner[group]) {
                case 0: group += sweep_ideals<T, CONTIGUOUS, SKIPS, 0>(job, group, pair); break;
                case 1: group += sweep_ideals<T, CONTIGUOUS, SKIPS, 1>(job, group, pair); break;
                case 2: group += sweep_ideals<T, CONTIGUOUS, SKIPS, 2>(job, group, pair); break;
                default: group += sweep_ideals<T, CONTIGUOUS, SKIPS, MAX_INNER>(job, group, pair);
            }
        }
    }
}

template <class T, bool VIDEOS> void advance_in(const Job<T> &job, int64_t begin, int64_t end) {
    if (job.contiguous)
        job.skips ? sweep<T, VIDEOS, true, true>(job, begin, end) : sweep<T, VIDEOS, true, false>(job, begin, end);
    else
        job.skips ? sweep<T, VIDEOS, false, true>(job, begin, end) : sweep<T, VIDEOS, false, false>(job, begin, end);
}

template <class T> void advance(const Job<T> &job, int64_t begin, int64_t end) {
    job.videos ? advance_in<T, true>(job, begin, end) : advance_in<T, false>(job, begin, end);
}

}  // namespace
}  // namespace G2V_ARCH

#define G2V_JOIN2(a, b) a##b
#define G2V_JOIN(a, b) G2V_JOIN2(a, b)
#define G2V_TEXT2(a) #a
#define G2V_TEXT(a) G2V_TEXT2(a)

Kernels G2V_JOIN(kernels_, G2V_ARCH)() {
    return {G2V_TEXT(G2V_ARCH), G2V_ARCH::advance<float>, G2V_ARCH::advance<double>};
}

}  // namespace g2v
