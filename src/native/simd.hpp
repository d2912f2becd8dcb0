// Vectors of 32 bytes: how they are loaded, compared and shuffled. Included by the kernels, which are compiled once per
// instruction set, each time in a namespace of its own.
#pragma once
#include "job.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define G2V_INLINE inline __attribute__((always_inline))
#define G2V_JOIN2(a, b) a##b
#define G2V_JOIN(a, b) G2V_JOIN2(a, b)
#define G2V_TEXT2(a) #a
#define G2V_TEXT(a) G2V_TEXT2(a)

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

// The longest vectors that the instruction set has, where the order of sums does not ask for others.
#if defined(__AVX512F__)
typedef float Wide __attribute__((vector_size(64)));
// With a mask of ones: GCC takes what the plain ones leave undefined for a mistake.
G2V_INLINE Wide least(Wide a, Wide b) { return (Wide)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b); }
G2V_INLINE Wide most(Wide a, Wide b) { return (Wide)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b); }
#else
using Wide = V<float>;
#endif

// Lanes of a vector in another order, +inf in lanes without a state. A shuffle across the whole vector is slow on many
// processors; within the halves, of the vector and of its swapped twin, it is not.
template <class T> struct Pick {
#if defined(__AVX2__)
    __m256i same, other, absent;
    G2V_INLINE explicit Pick(const Pattern &p)
        : same(_mm256_load_si256((const __m256i *)p.same)), other(_mm256_load_si256((const __m256i *)p.other)),
          absent(_mm256_load_si256((const __m256i *)p.absent)) {}
    template <bool CROSS> G2V_INLINE V<T> of(V<T> v) const {
        const __m256i here = (__m256i)v;
        const __m256i stay = _mm256_or_si256(_mm256_shuffle_epi8(here, same), absent);
        if constexpr (!CROSS) return (V<T>)stay;
        const __m256i swapped = _mm256_permute2x128_si256(here, here, 1);
        return (V<T>)_mm256_or_si256(stay, _mm256_shuffle_epi8(swapped, other));
    }
#else
    const int32_t *lane;
    G2V_INLINE explicit Pick(const Pattern &p) : lane(p.lane) {}
    template <bool CROSS> G2V_INLINE V<T> of(V<T> v) const {
        T in[LANES<T>], out[LANES<T>];
        store(in, v);
        reorder(in, out, lane);
        return load(out);
    }
    __attribute__((noinline)) static void reorder(const T *in, T *out, const int32_t *lane) {
        for (int l = 0; l < LANES<T>; ++l) out[l] = lane[l] < 0 ? static_cast<T>(__builtin_inf()) : in[lane[l]];
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

}  // namespace
}  // namespace G2V_ARCH
}  // namespace g2v
