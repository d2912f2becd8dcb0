// exp, log and sets of infinite numbers, in vectors. Included by the soft kernels, compiled once per instruction set.
#pragma once
#include <type_traits>

#include "simd.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

typedef int32_t Int32 __attribute__((vector_size(32)));
typedef int64_t Int64 __attribute__((vector_size(32)));
template <class T> struct Whole;
template <> struct Whole<float> {
    typedef Int32 V;
    typedef uint32_t U __attribute__((vector_size(32)));
};
template <> struct Whole<double> {
    typedef Int64 V;
    typedef uint64_t U __attribute__((vector_size(32)));
};

template <class T> constexpr T INF = static_cast<T>(__builtin_inf());
template <class T> constexpr T BIG = sizeof(T) == 4 ? static_cast<T>(1e30) : static_cast<T>(1e290);

template <class T> G2V_INLINE V<T> full(T x) { return V<T>{} + x; }

// The numbers of a vector of any length.
template <class X> using Number = std::remove_cvref_t<decltype(X{}[0])>;

// c[0] + c[1] x + … + c[DEGREE] x^DEGREE, as four sums side by side: what waits is short.
template <int DEGREE, class X> G2V_INLINE X polynomial(X x, const double *c) {
    typedef Number<X> T;
    const X x2 = x * x, x4 = x2 * x2;
    X part[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) {
        int i = DEGREE - (DEGREE - k) % 4;
        part[k] = X{} + static_cast<T>(k <= DEGREE ? c[i] : 0.0);
#pragma GCC unroll 4
        for (i -= 4; i >= 0; i -= 4) part[k] = part[k] * x4 + static_cast<T>(c[i]);
    }
    return (part[0] + part[1] * x) + (part[2] + part[3] * x) * x2;
}

// exp(x) for x <= 0, to about an ulp; 0 where that would be subnormal.
template <class X> G2V_INLINE X exp_negative(X x) {
    typedef Number<X> T;
    typedef decltype(x < x) I;
    constexpr bool F = sizeof(T) == 4;
    constexpr T least_x = F ? T(-87.3) : T(-708.3);
    constexpr T magic = F ? T(12582912.0) : T(6755399441055744.0);  // adding it rounds to a whole number
    constexpr int bits = F ? 23 : 52;
    const X at = most(x, X{} + least_x);
    const X shifted = at * T(1.4426950408889634074) + magic;
    const X n = shifted - magic;
    constexpr T high = F ? T(0.693359375) : T(0.693147180369123816490);
    constexpr T low = F ? T(-2.12194440054690583e-4) : T(1.90821492927058770002e-10);
    const X r = (at - n * high) - n * low;
    // For |r| <= log(2) / 2: the polynomial of least relative error (2e-9), or the series as far as it counts.
    constexpr double near[7] = {
        1.0, 1.00000003643, 0.499999920559, 0.166664196806, 0.0416682287242, 0.00837485706086, 0.00138367917234};
    constexpr double series[14] = {
        1.0,        1.0,         1.0 / 2,      1.0 / 6,       1.0 / 24,       1.0 / 120,       1.0 / 720,
        1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800.0};
    const X sum = polynomial<F ? 6 : 13>(r, F ? near : series);
    const I power = ((I)shifted - (I)(X{} + magic)) << bits;
    const I found = (I)sum + power;
    const I enough = x >= X{} + least_x;
    return (X)(found & enough);
}

// log(m) for m in [sqrt(1/2), sqrt(2)]: 2 (s + s^3/3 + s^5/5 + ...) with s = (m - 1) / (m + 1), or the polynomial in s^2
// of least relative error (7e-10).
template <class T> G2V_INLINE V<T> log_near_one(V<T> m) {
    const V<T> s = (m - T(1)) / (m + T(1));
    constexpr double near[4] = {2.0, 0.66666816407, 0.399747433143, 0.299270523374};
    constexpr double series[12] = {2.0,      2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                                   2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23};
    constexpr bool F = sizeof(T) == 4;
    return s * polynomial<F ? 3 : 11>(s * s, F ? near : series);
}
constexpr double LOG2 = 0.69314718055994530942, SQRT2 = 1.41421356237309504880;

// log(x) for x in [1, 2].
template <class T> G2V_INLINE V<T> log_to_two(V<T> x) {
    typedef typename Whole<T>::V I;
    const I large = x > full<T>(T(SQRT2));
    const V<T> m = x - (V<T>)((I)(x * T(0.5)) & large);
    return log_near_one<T>(m) + (V<T>)((I)full<T>(T(LOG2)) & large);
}

// log(x / 2^shift) for finite x >= 1.
template <class T> G2V_INLINE V<T> log_positive(V<T> x, T shift = 0) {
    constexpr bool F = sizeof(T) == 4;
    typedef typename Whole<T>::U U;
    constexpr int bits = F ? 23 : 52;
    constexpr T magic = F ? T(8388608.0) : T(4503599627370496.0);  // 2^bits: its lowest bits count ones
    // x = m 2^n with m in [sqrt(1/2), sqrt(2)); n >= 0.
    const U n = ((U)x - (U)full<T>(T(SQRT2 / 2))) >> bits;
    const V<T> m = (V<T>)((U)x - (n << bits));
    const V<T> power = (V<T>)((U)full<T>(magic) | n) - (magic + shift);
    return log_near_one<T>(m) + power * T(LOG2);
}

// The vector of of(0), of(1), …
template <class T, class Of> G2V_INLINE V<T> gather(Of of) {
    if constexpr (sizeof(T) == 4) return V<T>{of(0), of(1), of(2), of(3), of(4), of(5), of(6), of(7)};
    else return V<T>{of(0), of(1), of(2), of(3)};
}

// x where it is finite, else 0: what the elements of a set are measured from.
template <class T> G2V_INLINE V<T> finite_or_zero(V<T> x) {
    typedef typename Whole<T>::V I;
    return (V<T>)((I)x & (I)(x < full<T>(INF<T>)));
}
// a where the condition holds, else b.
template <class T> G2V_INLINE V<T> where(typename Whole<T>::V condition, V<T> a, V<T> b) {
#if defined(__AVX2__)
    return (V<T>)_mm256_blendv_epi8((__m256i)b, (__m256i)a, (__m256i)condition);
#else
    typedef typename Whole<T>::V I;
    return (V<T>)(((I)a & condition) | ((I)b & ~condition));
#endif
}
// x - from, at most BIG: finite even where x is not, so that 0 times it is 0.
template <class T> G2V_INLINE V<T> above(V<T> x, V<T> from) { return least(x - from, full<T>(BIG<T>)); }

}  // namespace
}  // namespace G2V_ARCH
}  // namespace g2v
