// The inner loops of the anytime search. Compiled once per instruction set (see CMakeLists.txt): no template of the standard
// library may appear here.
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

// The relaxation, all steps at once.
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

void add(double *to, const double *const *rows, int64_t n_rows, int64_t count) {
    for (int64_t i = 0; i < count; i += 4) {
        V<double> sum = load(to + i);
        for (int64_t row = 0; row < n_rows; ++row) sum += load(rows[row] + i);
        store(to + i, sum);
    }
}

double least_sum(const double *a, const double *b, int64_t count) {
    V<double> found = all(__builtin_inf());
    for (int64_t i = 0; i < count; i += 4) found = least(found, load(a + i) + load(b + i));
    double lanes[4], smallest = __builtin_inf();
    store(lanes, found);
    for (int lane = 0; lane < 4; ++lane) smallest = lanes[lane] < smallest ? lanes[lane] : smallest;
    return smallest;
}

template <bool CONTIGUOUS> int64_t follow_segments(Segments &s, int64_t at, int64_t last, double *best) {
    double carry = s.carry;
    // Segments begin, or go on.
    for (const int64_t end = s.to < last ? s.to : last; at <= end; ++at) {
        const double begins = s.before[at - 1 - s.from] + s.waived;
        const double shown = s.match[at - 1] + (begins < carry ? begins : carry);
        const double rests = CONTIGUOUS ? shown : s.drop[at - 1] + carry;
        carry = shown < rests ? shown : rests;
        const double at_least = carry + s.going[at] + s.given[at];
        const double found = at_least < s.upper ? carry : __builtin_inf();
        best[at] = found < best[at] ? found : best[at];
    }
    // They only go on.
    for (; at <= last; ++at) {
        const double shown = s.match[at - 1] + carry;
        const double rests = CONTIGUOUS ? shown : s.drop[at - 1] + carry;
        carry = shown < rests ? shown : rests;
        if (!(carry + s.going[at] + s.given[at] < s.upper)) return at;
        best[at] = carry < best[at] ? carry : best[at];
    }
    s.carry = carry;
    return at;
}

int64_t follow(Segments &segments, int64_t at, int64_t last, double *best) {
    return segments.contiguous ? follow_segments<true>(segments, at, last, best)
                               : follow_segments<false>(segments, at, last, best);
}

constexpr SearchKernels KERNELS{relax, add, least_sum, follow};

}  // namespace
}  // namespace G2V_ARCH

const SearchKernels &G2V_JOIN(search_, G2V_ARCH)() { return G2V_ARCH::KERNELS; }

}  // namespace g2v
