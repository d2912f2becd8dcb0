// The recursion on a machine, node by node: a node waits for smaller ones alone, and for its own past where steps are
// returned to. The states of a node stand side by side in vectors. Compiled once per instruction set.
#include "machine.hpp"

#include <memory>

#include "soft_math.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

constexpr double NEVER = __builtin_inf();
constexpr int64_t LANE = LANES<double>;
typedef V<double> Vec;

G2V_INLINE double least_of(Vec v) { return std::min(std::min(v[0], v[1]), std::min(v[2], v[3])); }
G2V_INLINE double sum_of(Vec v) { return (v[0] + v[1]) + (v[2] + v[3]); }

// Both ways to bring alternatives together: the least of them, or the sum of their exp(-x).
struct Least {
    static constexpr int64_t WORK = 1;  // of an operation, beside others
    static G2V_INLINE Vec plus(Vec a, Vec b) { return least(a, b); }

    // Bring `rest` and x[0 .. width) together in all, and for each i all but x[i].
    static double others(double rest, const double *x, int64_t width, double *ex) {
        Vec best = {rest, NEVER, NEVER, NEVER}, second = full<double>(NEVER);
        for (int64_t i = 0; i < width; i += LANE) {
            const Vec v = load(x + i);
            second = least(second, most(best, v));
            best = least(best, v);
        }
        double low = NEVER, next = NEVER;
        for (int lane = 0; lane < LANE; ++lane) {
            next = std::min({next, second[lane], std::max(low, best[lane])});
            low = std::min(low, best[lane]);
        }
        if (ex)  // where several are the least, the next is as small
            for (int64_t i = 0; i < width; i += LANE)
                store(ex + i, where<double>(load(x + i) == full<double>(low), full<double>(next), full<double>(low)));
        return low;
    }

    // Rows a[1] + f[0], a[2] + f[1], …, brought together: a run of 1, 2, … clips. The rows of `a` may run backwards.
    static G2V_INLINE Vec lengths(const double *a, int64_t a_stride, const double *f, int64_t f_stride, int64_t count) {
        Vec low = full<double>(NEVER);
        for (int64_t k = 0; k < count; ++k) low = least(low, load(a + (k + 1) * a_stride) + load(f + k * f_stride));
        return low;
    }
};

struct Sum {
    static constexpr int64_t WORK = 8;
    static G2V_INLINE Vec plus(Vec a, Vec b) {
        const Vec low = least(a, b), from = finite_or_zero<double>(low);
        return low - log_to_two<double>(exp_negative<double>(from - most(a, b)) + 1.0);
    }
    static G2V_INLINE Vec log_sum(Vec z) { return log_positive<double>(most(z, full<double>(1.0))); }

    static double others(double rest, const double *x, int64_t width, double *ex) {
        double low = rest, next = NEVER;
        for (int64_t i = 0; i < width; ++i) {
            next = std::min(next, std::max(low, x[i]));
            low = std::min(low, x[i]);
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
        const Vec low = Least::lengths(a, a_stride, f, f_stride, count), from = finite_or_zero<double>(low);
        Vec z{};
        for (int64_t k = 0; k < count; ++k)
            z += exp_negative<double>(from - (load(a + (k + 1) * a_stride) + load(f + k * f_stride)));
        return low - log_sum(z);
    }
};

// What is worked out of one node: rows of `width` numbers, one per state, for 0 … clips clips gone by.
struct Rows {
    int64_t width;
    std::vector<double> numbers;
    void shape(int64_t rows, int64_t columns, double fill) {
        width = columns;
        numbers.assign(static_cast<size_t>(rows * columns), fill);
    }
    double *at(int64_t row) { return numbers.data() + row * width; }
};

// A node while it is worked on. Clip j is at row j of what is about clips; what is about times has a row more.
struct Node {
    int64_t first, states, width;
    bool returns;             // some step can be returned to
    Rows match, length, sum;  // of its states, [clips], [longest], [clips + 1]; sum: of the finite match costs so far
    Rows enter, run;          // beginning a run, having ended a clip of one
    Rows begun, over;         // (longest > 1) enter - sum; a run longer than `longest`
    std::vector<double> self, tail, ex;
};

template <class R> class Recursion {
public:
    explicit Recursion(const MachineVideo &video) : v(video), m(*video.machine) {}

    // Work out a node of which all smaller ones are in `best` [nodes][clips + 1], and write its row.
    void forward(int64_t node, double *best, Node &n) {
        const int64_t rows = v.clips + 1;
        prepare(node, n);
        n.enter.shape(rows, n.width, NEVER);
        n.run.shape(rows, n.width, NEVER);
        row_.resize(static_cast<size_t>(rows + LANE));
        for (int64_t k = 0; k < n.states; ++k) {
            v.pause(2 * rows * (m.entry_start[n.first + k + 1] - m.entry_start[n.first + k] + 4) * R::WORK);
            std::fill(row_.begin(), row_.end(), NEVER);
            for (int64_t e = m.entry_start[n.first + k]; e < m.entry_start[n.first + k + 1]; ++e)
                if (m.entry_from[e] != node) gather(best + m.entry_from[e] * rows, v.entry[e], rows, row_.data());
            for (int64_t j = 0; j < rows; ++j) n.enter.at(j)[k] = row_[j];
        }
        if (v.longest > 1) {
            n.begun.shape(rows, n.width, NEVER);
            n.over.shape(rows, n.width, NEVER);
        }
        double *own = best + node * rows;
        for (int64_t j = 0;; ++j) {
            const double rest = j ? v.drop[j - 1] + own[j - 1] : node ? NEVER : 0.0;
            own[j] = R::others(rest, n.run.at(j), n.width, n.returns ? n.ex.data() : nullptr);
            if (n.returns)
                for (int64_t i = 0; i < n.width; i += LANE)
                    store(n.enter.at(j) + i, R::plus(load(n.enter.at(j) + i), load(&n.self[i]) + load(&n.ex[i])));
            if (j == v.clips) return;
            now_and_then(j, n);
            v.longest > 1 ? advance_long(n, j) : advance(n, j);
        }
    }

    // The other way round: from `after` [nodes][clips + 1], complete for this node, what follows beginning a run (`begin`)
    // and ending one (`leave`); `after` of smaller nodes takes it in, and `on` [clips + 1] is all that follows this node.
    void backward(int64_t node, double *after, Node &n, Rows &begin, Rows &leave, std::vector<double> &on) {
        const int64_t rows = v.clips + 1;
        begin.shape(rows, n.width, NEVER);
        leave.shape(rows, n.width, NEVER);
        on.resize(static_cast<size_t>(rows + LANE));
        double *out = after + node * rows;
        Rows &stay = n.over, &ended = n.begun;  // being in a run that may go on; (longest > 1) leave + sum
        stay.shape(rows + 1, n.width, NEVER);
        ended.shape(rows, n.width, NEVER);
        std::vector<double> again(static_cast<size_t>(n.width));
        for (int64_t j = v.clips; j >= 0; --j) {
            double rest = out[j];
            if (j < v.clips) rest = R::plus(full<double>(rest), full<double>(v.drop[j] + on[j + 1]))[0];
            for (int64_t i = 0; i < n.width; ++i) again[i] = n.self[i] + begin.at(j)[i];
            on[j] = R::others(rest, again.data(), n.width, leave.at(j));
            if (j == 0) break;
            now_and_then(j, n);
            v.longest > 1 ? retreat_long(n, j, begin, leave, ended, stay) : retreat(n, j, begin, leave, stay);
        }
        row_.resize(static_cast<size_t>(rows + LANE));
        for (int64_t k = 0; k < n.states; ++k) {
            v.pause(2 * rows * (m.entry_start[n.first + k + 1] - m.entry_start[n.first + k] + 2) * R::WORK);
            for (int64_t j = 0; j < rows; ++j) row_[j] = begin.at(j)[k];
            for (int64_t e = m.entry_start[n.first + k]; e < m.entry_start[n.first + k + 1]; ++e)
                if (m.entry_from[e] != node) gather(row_.data(), v.entry[e], rows, after + m.entry_from[e] * rows);
        }
    }

private:
    const MachineVideo &v;
    const Machine &m;
    std::vector<double> row_;

    // Every 64 clips of a node.
    G2V_INLINE void now_and_then(int64_t j, const Node &n) const {
        if (j % 64 == 63) v.pause(64 * n.width * (4 + (v.longest > 1 ? std::min(v.longest, v.clips) : 0)) * R::WORK);
    }

    static void gather(const double *from, double price, int64_t count, double *into) {
        if (price == NEVER) return;
        int64_t j = 0;
        for (; j + LANE <= count; j += LANE) store(into + j, R::plus(load(into + j), load(from + j) + price));
        for (; j < count; ++j) into[j] = R::plus(full<double>(into[j]), full<double>(from[j] + price))[0];
    }

    void prepare(int64_t node, Node &n) {
        n.first = m.state_start[node];
        n.states = m.states_of(node);
        n.width = (n.states + LANE - 1) / LANE * LANE;
        n.returns = false;
        n.self.assign(n.width, NEVER);
        n.tail.assign(n.width, 0.0);
        n.ex.assign(n.width, NEVER);
        n.match.shape(v.clips, n.width, NEVER);
        n.length.shape(v.longest, n.width, NEVER);
        for (int64_t k = 0; k < n.states; ++k) {
            const int64_t step = m.state_step[n.first + k];
            n.tail[k] = v.tail[step];
            for (int64_t e = m.entry_start[n.first + k]; e < m.entry_start[n.first + k + 1]; ++e)
                if (m.entry_from[e] == node) n.self[k] = v.entry[e];
            n.returns |= n.self[k] < NEVER;
            for (int64_t j = 0; j < v.clips; ++j) n.match.at(j)[k] = v.match[j * m.n_steps + step];
            for (int64_t l = 0; l < v.longest; ++l) n.length.at(l)[k] = v.length[l * m.n_steps + step];
        }
        if (v.longest > 1) {
            n.sum.shape(v.clips + 1, n.width, 0.0);
            for (int64_t j = 0; j < v.clips; ++j)
                for (int64_t i = 0; i < n.width; i += LANE)
                    store(n.sum.at(j + 1) + i, load(n.sum.at(j) + i) + finite_or_zero<double>(load(n.match.at(j) + i)));
        }
    }

    void advance(Node &n, int64_t j) {
        for (int64_t i = 0; i < n.width; i += LANE) {
            const Vec began = load(n.enter.at(j) + i) + load(n.length.at(0) + i);
            const Vec went_on = load(n.run.at(j) + i) + load(&n.tail[i]);
            store(n.run.at(j + 1) + i, load(n.match.at(j) + i) + R::plus(began, went_on));
        }
    }

    void advance_long(Node &n, int64_t j) {
        const int64_t count = std::min(v.longest, j + 1);
        for (int64_t i = 0; i < n.width; ++i)  // no run goes across a forbidden clip
            if (n.match.at(j)[i] == NEVER) {
                for (int64_t t = std::max<int64_t>(0, j + 1 - v.longest); t < j; ++t) n.begun.at(t)[i] = NEVER;
                n.enter.at(j)[i] = NEVER;
            }
        for (int64_t i = 0; i < n.width; i += LANE) {
            const Vec cost = load(n.match.at(j) + i);
            store(n.begun.at(j) + i, load(n.enter.at(j) + i) - load(n.sum.at(j) + i));
            Vec over = load(n.over.at(j) + i);
            if (j >= v.longest) over = R::plus(over, exactly_longest(n, j, i));
            over = cost + load(&n.tail[i]) + over;
            store(n.over.at(j + 1) + i, over);
            const Vec all = R::lengths(n.begun.at(j + 1) + i, -n.width, n.length.at(0) + i, n.width, count);
            store(n.run.at(j + 1) + i, R::plus(load(n.sum.at(j + 1) + i) + all, over));
        }
    }
    // A run of `longest` clips that ends at time j.
    G2V_INLINE Vec exactly_longest(Node &n, int64_t j, int64_t i) const {
        return load(n.sum.at(j) + i) + (load(n.begun.at(j - v.longest) + i) + load(n.length.at(v.longest - 1) + i));
    }

    void retreat(Node &n, int64_t j, Rows &begin, Rows &leave, Rows &stay) {
        for (int64_t i = 0; i < n.width; i += LANE) {
            Vec here = load(leave.at(j) + i);
            if (j < v.clips) here = R::plus(here, load(&n.tail[i]) + load(n.match.at(j) + i) + load(stay.at(j + 1) + i));
            store(stay.at(j) + i, here);
            store(begin.at(j - 1) + i, load(n.match.at(j - 1) + i) + load(n.length.at(0) + i) + here);
        }
    }

    void retreat_long(Node &n, int64_t j, Rows &begin, Rows &leave, Rows &ended, Rows &stay) {
        const int64_t count = std::min(v.longest, v.clips - j + 1);
        for (int64_t i = 0; i < n.width; i += LANE) {
            store(ended.at(j) + i, load(leave.at(j) + i) + load(n.sum.at(j) + i));
            Vec longer = full<double>(NEVER);  // one clip more, in a run that is as long as `longest` already
            if (j < v.clips)
                longer = load(&n.tail[i]) + load(n.match.at(j) + i) +
                         R::plus(load(leave.at(j + 1) + i), load(stay.at(j + 1) + i));
            store(stay.at(j) + i, longer);
        }
        for (int64_t i = 0; i < n.width; ++i)
            if (n.match.at(j - 1)[i] == NEVER)
                for (int64_t t = j; t < j + v.longest && t <= v.clips; ++t) ended.at(t)[i] = stay.at(t)[i] = NEVER;
        for (int64_t i = 0; i < n.width; i += LANE) {
            const Vec before = load(n.sum.at(j - 1) + i);
            Vec all = R::lengths(ended.at(j - 1) + i, n.width, n.length.at(0) + i, n.width, count) - before;
            if (j - 1 + v.longest <= v.clips) {
                const int64_t t = j - 1 + v.longest;
                const Vec long_run = load(n.sum.at(t) + i) - before + load(n.length.at(v.longest - 1) + i);
                all = R::plus(all, long_run + load(stay.at(t) + i));
            }
            store(begin.at(j - 1) + i, all);
        }
    }
};

#include "machine_walk.hpp"

double hard(const MachineVideo &video, int64_t *labels) {
    const Machine &m = *video.machine;
    const int64_t rows = video.clips + 1;
    std::unique_ptr<double[]> best(new double[static_cast<size_t>(m.nodes() * rows)]);
    Recursion<Least> recursion(video);
    Node node;
    double cost = NEVER;
    for (int64_t p = 0; p < m.nodes(); ++p) {
        recursion.forward(p, best.get(), node);
        cost = std::min(cost, best[p * rows + video.clips] + video.end[p]);
    }
    if (labels && cost < NEVER) Walk(video, recursion, best.get(), labels).run(cost);
    return cost;
}

double soft(const MachineVideo &video, double *probability) {
    const Machine &m = *video.machine;
    const int64_t rows = video.clips + 1, clips = video.clips;
    const size_t numbers = static_cast<size_t>(m.nodes() * rows);
    std::unique_ptr<double[]> best(new double[numbers]);
    Recursion<Sum> recursion(video);
    Node node;
    std::vector<double> ends(static_cast<size_t>((m.nodes() + LANE - 1) / LANE * LANE), NEVER);
    for (int64_t p = 0; p < m.nodes(); ++p) {
        recursion.forward(p, best.get(), node);
        ends[p] = best[p * rows + clips] + video.end[p];
    }
    const double cost = Sum::others(NEVER, ends.data(), static_cast<int64_t>(ends.size()), nullptr);
    if (!probability || cost == NEVER) return cost;

    std::unique_ptr<double[]> after(new double[numbers]);
    std::fill(after.get(), after.get() + numbers, NEVER);
    for (int64_t p = 0; p < m.nodes(); ++p) after[p * rows + clips] = video.end[p];
    std::fill(probability, probability + (m.n_steps + 1) * clips, 0.0);
    Rows begin, leave;
    std::vector<double> on;
    const auto mass = [&](double a, double b) { return a < NEVER && b < NEVER ? __builtin_exp(cost - a - b) : 0.0; };
    for (int64_t p = m.nodes() - 1; p >= 0; --p) {
        recursion.forward(p, best.get(), node);
        std::vector<double> began = node.enter.numbers, ran = node.run.numbers;
        recursion.backward(p, after.get(), node, begin, leave, on);
        for (int64_t k = 0; k < node.states; ++k) {
            video.pause(20 * clips);
            double *of_step = probability + m.state_step[node.first + k] * clips;
            double going = 0.0;  // the mass of runs that cover the clip
            for (int64_t j = 0; j < clips; ++j) {
                if (j) going -= mass(ran[j * node.width + k], leave.at(j)[k]);
                going += mass(began[j * node.width + k], begin.at(j)[k]);
                of_step[j] += std::max(going, 0.0);
            }
        }
        double *background = probability + m.n_steps * clips;
        for (int64_t j = 0; j < clips; ++j) background[j] += mass(best[p * rows + j], video.drop[j] + on[j + 1]);
    }
    return cost;
}

}  // namespace
}  // namespace G2V_ARCH

#define G2V_JOIN2(a, b) a##b
#define G2V_JOIN(a, b) G2V_JOIN2(a, b)

MachineKernels G2V_JOIN(machine_kernels_, G2V_ARCH)() { return {G2V_ARCH::hard, G2V_ARCH::soft}; }

}  // namespace g2v
