// The relaxation behind the anytime search, all steps at once. Compiled once per instruction set (see CMakeLists.txt): no
// template of the standard library may appear here.
#include "search_job.hpp"
#include "simd.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

// The two smallest of all numbers in the lanes of two vectors.
G2V_INLINE void two_least(V<double> first, V<double> second, double &smallest, double &next) {
    double found[8];
    store(found, first);
    store(found + 4, second);
    smallest = next = __builtin_inf();
    for (int lane = 0; lane < 8; ++lane) {
        next = found[lane] < smallest ? smallest : found[lane] < next ? found[lane] : next;
        smallest = found[lane] < smallest ? found[lane] : smallest;
    }
}

void relax(const Relaxed &r) {
    const int64_t width = r.width;
    r.free[r.clips] = 0.0;
    for (int64_t k = 0; k < width; ++k) r.going[r.clips * width + k] = r.end[r.clips * width + k];
    for (int64_t clip = r.clips - 1; clip >= 0; --clip) {
        if (clip % 64 == 0) r.pause(64 * width);
        const double *match = r.match + clip * width, *begin = r.begin + clip * width, *end = r.end + clip * width;
        const double *after = r.going + (clip + 1) * width;
        double *going = r.going + clip * width;
        V<double> first = all(__builtin_inf()), second = first;
        for (int64_t k = 0; k < width; k += 4) {
            const V<double> entered = load(match + k) + load(after + k) + load(begin + k);
            second = least(second, most(first, entered));
            first = least(first, entered);
        }
        double best, other;
        two_least(first, second, best, other);
        const double rest = r.drop[clip] + r.free[clip + 1];
        r.free[clip] = best < rest ? best : rest;
        // What follows a segment is not another one of the same step.
        const V<double> freely = all(r.free[clip]), else_ = all(other < rest ? other : rest), enters = all(best);
        const V<double> paused = all(r.contiguous ? __builtin_inf() : r.drop[clip]);
        for (int64_t k = 0; k < width; k += 4) {
            const V<double> shown = load(match + k) + load(after + k);
            const V<double> follows = shown + load(begin + k) == enters ? else_ : freely;
            store(going + k, least(least(shown, paused + load(after + k)), load(end + k) + follows));
        }
    }
}

}  // namespace
}  // namespace G2V_ARCH

Relax G2V_JOIN(relax_, G2V_ARCH)() { return G2V_ARCH::relax; }

}  // namespace g2v
