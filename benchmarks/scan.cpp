// The floor that speed is measured against: one min and one add per update, one state after the other, one number at a
// time, everything in the first-level cache.
#include <cstdint>

template <class T>
__attribute__((noinline, optimize("no-tree-vectorize"))) static double scan(const T *best, const T *match, int64_t states,
                                                                            int64_t clips) {
    T sum = 0;
    for (int64_t s = 0; s < states; ++s) {
        T m = static_cast<T>(s);
        for (int64_t j = 0; j < clips; ++j) m = match[j] + (best[j] < m ? best[j] : m);
        sum += m;
    }
    return sum;
}

extern "C" double scan_float32(const float *best, const float *match, int64_t states, int64_t clips) {
    return scan(best, match, states, clips);
}

extern "C" double scan_float64(const double *best, const double *match, int64_t states, int64_t clips) {
    return scan(best, match, states, clips);
}
