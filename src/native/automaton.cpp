// The recursion on an automaton, node by node: a node waits for smaller ones alone, and for its own past where steps are
// repeated. The states of a node stand side by side in vectors. Compiled once per instruction set (see CMakeLists.txt), each
// time in a namespace of its own: no template of the standard library may appear here, or the linker could merge its copies.
#include "automaton.hpp"

#include "soft_math.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

template <class T> G2V_INLINE T smaller(T a, T b) { return b < a ? b : a; }
template <class T> G2V_INLINE T larger(T a, T b) { return a < b ? b : a; }
G2V_INLINE double sum_of(V<double> v) { return (v[0] + v[1]) + (v[2] + v[3]); }
template <class T> G2V_INLINE void fill(T *p, int64_t count, T x) {
    for (int64_t i = 0; i < count; ++i) p[i] = x;
}

// Both ways to bring alternatives together: the least of them, or the sum of their exp(-x).
template <class Number> struct Least {
    using T = Number;
    using Vec = V<T>;
    static constexpr int64_t WORK = 1;  // of an operation, beside others
    static G2V_INLINE Vec plus(Vec a, Vec b) { return least(a, b); }

    // Bring `rest` and x[0 .. width) together in all, and for each i all but x[i].
    static T others(T rest, const T *x, int64_t width, T *ex) {
        Vec best = full<T>(INF<T>), second = full<T>(INF<T>);
        best[0] = rest;
        for (int64_t i = 0; i < width; i += LANES<T>) {
            const Vec v = load(x + i);
            second = least(second, most(best, v));
            best = least(best, v);
        }
        T low = INF<T>, next = INF<T>;
        for (int lane = 0; lane < LANES<T>; ++lane) {
            next = smaller(smaller(next, T(second[lane])), larger(low, T(best[lane])));
            low = smaller(low, T(best[lane]));
        }
        if (ex)  // where several are the least, the next is as small
            for (int64_t i = 0; i < width; i += LANES<T>)
                store(ex + i, where<T>(load(x + i) == full<T>(low), full<T>(next), full<T>(low)));
        return low;
    }

    // Rows a[1] + f[0], a[2] + f[1], …, brought together: a segment of 1, 2, … clips. The rows of `a` may run backwards.
    static G2V_INLINE Vec lengths(const T *a, int64_t a_stride, const T *f, int64_t f_stride, int64_t count) {
        Vec low = full<T>(INF<T>);
        for (int64_t k = 0; k < count; ++k) low = least(low, load(a + (k + 1) * a_stride) + load(f + k * f_stride));
        return low;
    }
};

struct Sum {
    using T = double;
    using Vec = V<double>;
    static constexpr int64_t WORK = 8;
    static constexpr int64_t LANE = LANES<double>;
    static constexpr double NEVER = INF<double>;
    static G2V_INLINE Vec plus(Vec a, Vec b) {
        const Vec low = least(a, b), from = finite_or_zero<double>(low);
        return low - log_to_two<double>(exp_negative<double>(from - most(a, b)) + 1.0);
    }
    static G2V_INLINE Vec log_sum(Vec z) { return log_positive<double>(most(z, full<double>(1.0))); }

    static double others(double rest, const double *x, int64_t width, double *ex) {
        double low = rest, next = NEVER;
        for (int64_t i = 0; i < width; ++i) {
            next = smaller(next, larger(low, x[i]));
            low = smaller(low, x[i]);
        }
        const Vec from = finite_or_zero<double>(full<double>(low)), after = finite_or_zero<double>(full<double>(next));
        Vec z = exp_negative<double>(from - Vec{rest, NEVER, NEVER, NEVER}), z_next{};
        if (rest > low) z_next = exp_negative<double>(after - Vec{rest, NEVER, NEVER, NEVER});
        for (int64_t i = 0; i < width; i += LANE) {
            const Vec v = load(x + i);
            z += exp_negative<double>(from - v);
            if (ex) {
                const Vec without = where<double>(v > full<double>(low), v, full<double>(NEVER));
                z_next += exp_negative<double>(after - without);
            }
        }
        const double all = sum_of(z);
        if (ex) {
            const bool alone = low < next;  // what is the least is so by itself
            const Vec but_least = next - log_sum(full<double>(sum_of(z_next)));
            for (int64_t i = 0; i < width; i += LANE) {
                const Vec v = load(x + i);
                const Vec but_this = low - log_sum(all - exp_negative<double>(from - v));
                store(ex + i, alone ? where<double>(v == full<double>(low), but_least, but_this) : but_this);
            }
        }
        return low - log_sum(full<double>(all))[0];
    }

    static G2V_INLINE Vec lengths(const double *a, int64_t a_stride, const double *f, int64_t f_stride, int64_t count) {
        const Vec low = Least<double>::lengths(a, a_stride, f, f_stride, count), from = finite_or_zero<double>(low);
        Vec z{};
        for (int64_t k = 0; k < count; ++k)
            z += exp_negative<double>(from - (load(a + (k + 1) * a_stride) + load(f + k * f_stride)));
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

// One node of one video.
template <class R> struct Recursion {
    using T = typename R::T;
    using Vec = V<T>;
    static constexpr int64_t L = LANES<T>;
    static constexpr T NEVER = INF<T>;
    const AutomatonVideo<T> v;  // copies: what is stored through pointers cannot change them, and they stay in registers
    NodeRows<T> n;
    const int64_t node, rows;

    G2V_INLINE Recursion(const AutomatonVideo<T> &video, int64_t at, const NodeRows<T> &of_node)
        : v(video), n(of_node), node(at), rows(video.clips + 1) {}

    G2V_INLINE void forward(T *best) {
        prepare();
        fill(n.enter, rows * n.width, NEVER);
        fill(n.ended, n.width, NEVER);
        if (v.longest > 1) {
            fill(n.begun, rows * n.width, NEVER);
            fill(n.over, n.width, NEVER);
        }
        for (int64_t k = 0; k < n.states; ++k) {
            v.pause(2 * rows * (arcs(k).end - arcs(k).begin + 4) * R::WORK);
            fill(n.row, rows, NEVER);
            for (int64_t a = arcs(k).begin; a < arcs(k).end; ++a)
                if (v.arc_from[a] != node) add<R>(best + v.arc_from[a] * rows, v.arc[a], rows, n.row);
            for (int64_t j = 0; j < rows; ++j) n.enter[j * n.width + k] = n.row[j];
        }
        T *own = best + node * rows;
        for (int64_t j = 0;; ++j) {
            const T rest = j ? v.drop[j - 1] + own[j - 1] : node ? NEVER : T(0);
            own[j] = R::others(rest, at(n.ended, j), n.width, n.repeats ? n.others : nullptr);
            if (n.repeats)
                for (int64_t i = 0; i < n.width; i += L)
                    store(at(n.enter, j) + i, R::plus(load(at(n.enter, j) + i), load(n.self + i) + load(n.others + i)));
            if (j == v.clips) return;
            now_and_then(j);
            v.longest > 1 ? advance_long(j) : advance(j);
        }
    }

    // From `after` [nodes][clips + 1], complete for this node.
    G2V_INLINE void backward(const T *after) {
        fill(n.begin, rows * n.width, NEVER);
        const T *out = after + node * rows;
        T *stay = n.over, *ended = n.begun;  // being in a segment that may go on; (longest > 1) leave + sum
        fill(stay, (rows + 1) * n.width, NEVER);
        fill(ended, rows * n.width, NEVER);
        for (int64_t j = v.clips; j >= 0; --j) {
            T rest = out[j];
            if (j < v.clips) rest = R::plus(full<T>(rest), full<T>(v.drop[j] + n.on[j + 1]))[0];
            for (int64_t i = 0; i < n.width; ++i) n.others[i] = n.self[i] + at(n.begin, j)[i];
            n.on[j] = R::others(rest, n.others, n.width, at(n.leave, j));
            if (j == 0) return;
            now_and_then(j);
            v.longest > 1 ? retreat_long(j, ended, stay) : retreat(j, stay);
        }
    }

private:
    struct Range {
        int64_t begin, end;
    };
    G2V_INLINE Range arcs(int64_t k) const { return {v.arc_start[n.first + k], v.arc_start[n.first + k + 1]}; }
    G2V_INLINE T *at(T *numbers, int64_t row) const { return numbers + row * n.width; }

    // Every 64 clips of a node.
    G2V_INLINE void now_and_then(int64_t j) const {
        if (j % 64 == 63) v.pause(64 * n.width * (4 + (v.longest > 1 ? smaller(v.longest, v.clips) : 0)) * R::WORK);
    }

    G2V_INLINE void prepare() {
        n.first = v.state_start[node];
        n.states = v.state_start[node + 1] - n.first;
        n.width = (n.states + L - 1) / L * L;
        n.repeats = false;
        fill(n.self, n.width, NEVER);
        fill(n.tail, n.width, T(0));
        fill(n.others, n.width, NEVER);
        fill(n.match, v.clips * n.width, NEVER);
        fill(n.length, v.longest * n.width, NEVER);
        for (int64_t k = 0; k < n.states; ++k) {
            const int64_t step = v.state_step[n.first + k];
            n.tail[k] = v.tail[step];
            for (int64_t a = arcs(k).begin; a < arcs(k).end; ++a)
                if (v.arc_from[a] == node) n.self[k] = v.arc[a];
            n.repeats |= n.self[k] < NEVER;
            for (int64_t j = 0; j < v.clips; ++j) at(n.match, j)[k] = v.match[j * v.steps + step];
            for (int64_t l = 0; l < v.longest; ++l) at(n.length, l)[k] = v.length[l * v.steps + step];
        }
        if (v.longest > 1) {
            fill(n.sum, n.width, T(0));
            for (int64_t j = 0; j < v.clips; ++j)
                for (int64_t i = 0; i < n.width; i += L)
                    store(at(n.sum, j + 1) + i, load(at(n.sum, j) + i) + finite_or_zero<T>(load(at(n.match, j) + i)));
        }
    }

    G2V_INLINE void advance(int64_t j) {
        for (int64_t i = 0; i < n.width; i += L) {
            const Vec began = load(at(n.enter, j) + i) + load(n.length + i);
            const Vec went_on = load(at(n.ended, j) + i) + load(n.tail + i);
            store(at(n.ended, j + 1) + i, load(at(n.match, j) + i) + R::plus(began, went_on));
        }
    }

    G2V_INLINE void advance_long(int64_t j) {
        const int64_t count = smaller(v.longest, j + 1);
        for (int64_t i = 0; i < n.width; ++i)  // no segment goes across a forbidden clip
            if (at(n.match, j)[i] == NEVER) {
                for (int64_t t = larger<int64_t>(0, j + 1 - v.longest); t < j; ++t) at(n.begun, t)[i] = NEVER;
                at(n.enter, j)[i] = NEVER;
            }
        for (int64_t i = 0; i < n.width; i += L) {
            const Vec cost = load(at(n.match, j) + i);
            store(at(n.begun, j) + i, load(at(n.enter, j) + i) - load(at(n.sum, j) + i));
            Vec over = load(at(n.over, j) + i);
            if (j >= v.longest) over = R::plus(over, exactly_longest(j, i));
            over = cost + load(n.tail + i) + over;
            store(at(n.over, j + 1) + i, over);
            const Vec all = R::lengths(at(n.begun, j + 1) + i, -n.width, n.length + i, n.width, count);
            store(at(n.ended, j + 1) + i, R::plus(load(at(n.sum, j + 1) + i) + all, over));
        }
    }
    // A segment of `longest` clips that ends at time j.
    G2V_INLINE Vec exactly_longest(int64_t j, int64_t i) const {
        return load(at(n.sum, j) + i) + (load(at(n.begun, j - v.longest) + i) + load(at(n.length, v.longest - 1) + i));
    }

    G2V_INLINE void retreat(int64_t j, T *stay) {
        for (int64_t i = 0; i < n.width; i += L) {
            Vec here = load(at(n.leave, j) + i);
            if (j < v.clips) here = R::plus(here, load(n.tail + i) + load(at(n.match, j) + i) + load(at(stay, j + 1) + i));
            store(at(stay, j) + i, here);
            store(at(n.begin, j - 1) + i, load(at(n.match, j - 1) + i) + load(n.length + i) + here);
        }
    }

    G2V_INLINE void retreat_long(int64_t j, T *ended, T *stay) {
        const int64_t count = smaller(v.longest, v.clips - j + 1);
        for (int64_t i = 0; i < n.width; i += L) {
            store(at(ended, j) + i, load(at(n.leave, j) + i) + load(at(n.sum, j) + i));
            Vec longer = full<T>(NEVER);  // one clip more, in a segment that is as long as `longest` already
            if (j < v.clips)
                longer = load(n.tail + i) + load(at(n.match, j) + i) +
                         R::plus(load(at(n.leave, j + 1) + i), load(at(stay, j + 1) + i));
            store(at(stay, j) + i, longer);
        }
        for (int64_t i = 0; i < n.width; ++i)
            if (at(n.match, j - 1)[i] == NEVER)
                for (int64_t t = j; t < j + v.longest && t <= v.clips; ++t) at(ended, t)[i] = at(stay, t)[i] = NEVER;
        for (int64_t i = 0; i < n.width; i += L) {
            const Vec before = load(at(n.sum, j - 1) + i);
            Vec all = R::lengths(at(ended, j - 1) + i, n.width, n.length + i, n.width, count) - before;
            if (j - 1 + v.longest <= v.clips) {
                const int64_t t = j - 1 + v.longest;
                const Vec long_one = load(at(n.sum, t) + i) - before + load(at(n.length, v.longest - 1) + i);
                all = R::plus(all, long_one + load(at(stay, t) + i));
            }
            store(at(n.begin, j - 1) + i, all);
        }
    }
};

template <class R>
void forward(const AutomatonVideo<typename R::T> &video, int64_t node, typename R::T *best, NodeRows<typename R::T> &rows) {
    Recursion<R> recursion(video, node, rows);
    recursion.forward(best);
    rows = recursion.n;
}
void soft_back(const AutomatonVideo<double> &video, int64_t node, double *after, NodeRows<double> &rows) {
    Recursion<Sum>(video, node, rows).backward(after);
}

}  // namespace
}  // namespace G2V_ARCH

AutomatonKernels G2V_JOIN(automaton_kernels_, G2V_ARCH)() {
    using namespace G2V_ARCH;
    return {forward<Least<float>>, forward<Least<double>>, forward<Sum>, soft_back, add<Sum>};
}

}  // namespace g2v
