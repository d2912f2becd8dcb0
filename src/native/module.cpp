// graph2vid._native: the compiled kernels as Python sees them. Arguments are checked by the Python side.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "automaton_solve.hpp"
#include "encoder.hpp"
#include "tags.hpp"
#include "sweep.hpp"
#include "soft.hpp"
#include "solve.hpp"
#include "tsort.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace g2v {
namespace {

template <class T> using Array = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T> using Owned = nb::ndarray<nb::numpy, T>;

template <class T> Owned<T> give(std::vector<T> &&values, std::initializer_list<size_t> shape) {
    auto *kept = new std::vector<T>(std::move(values));
    return Owned<T>(kept->data(), shape, nb::capsule(kept, [](void *p) noexcept { delete static_cast<std::vector<T> *>(p); }));
}
template <class T> std::vector<T> take(const Array<T> &a) { return {a.data(), a.data() + a.size()}; }
template <class T> const T *pointer(const std::optional<Array<T>> &a) { return a ? a->data() : nullptr; }

// Whether a signal's handler has raised; the error stays set for the thread that made the call. In any thread but Python's
// main one this is never so: whoever waits for it there stops it through its watch.
bool signals() {
    const nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
}

// Work without the interpreter, which can be stopped.
template <class Work> void run(const Watch *watch, Work work) {
    Poll poll(watch, &signals);
    try {
        const nb::gil_scoped_release release;
        work(poll);
    } catch (const Stopped &) {
        if (!PyErr_Occurred())
            PyErr_SetString(poll.late() ? PyExc_TimeoutError : PyExc_InterruptedError,
                            poll.late() ? "the time is up" : "stopped");
        throw nb::python_error();
    }
}

nb::tuple lattice(const Array<uint64_t> &predecessors, int64_t limit, const Watch *watch) {
    const size_t words = predecessors.shape(1);
    Lattice built;
    run(watch,
        [&](Poll &poll) { built = build_lattice(static_cast<int>(predecessors.shape(0)), take(predecessors), limit, poll); });
    const size_t ideals = built.state_start.size() - 1, levels = built.level_start.size();
    const size_t states = built.state_step.size();
    return nb::make_tuple(give(std::move(built.masks), {ideals, words}), give(std::move(built.level_start), {levels}),
                          give(std::move(built.state_start), {ideals + 1}), give(std::move(built.state_step), {states}),
                          give(std::move(built.state_from), {states}));
}

template <class T> nb::tuple solve(const Procedure &p, const Array<T> &match, const Array<T> &drop,
                                   const std::optional<Array<T>> &skip, bool contiguous, bool cost_only, int64_t block,
                                   int64_t window, int workers, const Watch *watch) {
    const int64_t clips = static_cast<int64_t>(match.shape(1));
    std::vector<int64_t> labels(cost_only ? 0 : static_cast<size_t>(clips), -1);
    Video<T> video{match.data(), drop.data(), pointer(skip), clips, cost_only ? nullptr : labels.data(), 0};
    run(watch, [&](Poll &poll) { solve_one(p, video, {contiguous, block, window, workers}, poll); });
    const double cost = video.cost;
    if (cost_only || cost == Forward<double>::INF) return nb::make_tuple(cost, nb::none());
    return nb::make_tuple(cost, give(std::move(labels), {static_cast<size_t>(clips)}));
}

template <class T> nb::list solve_batch(const Procedure &p, const std::vector<Array<T>> &matches,
                                        const std::vector<Array<T>> &drops, const std::vector<std::optional<Array<T>>> &skips,
                                        bool contiguous, bool cost_only, int64_t block, int workers, const Watch *watch) {
    std::vector<Video<T>> videos;
    std::vector<std::vector<int64_t>> labels(matches.size());
    for (size_t i = 0; i < matches.size(); ++i) {
        const int64_t clips = static_cast<int64_t>(matches[i].shape(1));
        if (!cost_only) labels[i].assign(static_cast<size_t>(clips), -1);
        videos.push_back(
            {matches[i].data(), drops[i].data(), pointer(skips[i]), clips, cost_only ? nullptr : labels[i].data(), 0});
    }
    run(watch, [&](Poll &poll) { solve_many(p, videos, {contiguous, block, 0, workers}, poll); });
    nb::list results;
    for (size_t i = 0; i < videos.size(); ++i) {
        const double cost = videos[i].cost;
        const size_t clips = labels[i].size();
        if (cost_only || cost == Forward<double>::INF) results.append(nb::make_tuple(cost, nb::none()));
        else results.append(nb::make_tuple(cost, give(std::move(labels[i]), {clips})));
    }
    return results;
}

// Costs and gradients of videos of any procedures: a list of (cost, gradient), the latter flat: that of match [steps][clips],
// of drop [clips], of skip [steps], and if `starts` that of beginning a step [steps][clips]; None where it is not wanted.
template <class T> nb::list soft_batch(const std::vector<const Procedure *> &procedures, const std::vector<Array<T>> &matches,
                                       const std::vector<Array<T>> &drops, const std::vector<std::optional<Array<T>>> &skips,
                                       double gamma, bool smooth, bool contiguous, bool gradient, bool starts, bool in_lanes,
                                       int workers, int64_t memory, const Watch *watch) {
    std::vector<SoftVideo<T>> videos;
    std::vector<std::vector<T>> grads(matches.size());
    for (size_t i = 0; i < matches.size(); ++i) {
        const size_t steps = matches[i].shape(0), clips = matches[i].shape(1);
        SoftVideo<T> v{procedures[i], matches[i].data(), drops[i].data(), pointer(skips[i]), static_cast<int64_t>(clips),
                       nullptr,       nullptr,           nullptr,         nullptr,           0};
        if (gradient) {
            grads[i].resize((steps + 1) * clips + steps + (starts ? steps * clips : 0));
            v.match_grad = grads[i].data();
            v.drop_grad = v.match_grad + steps * clips;
            v.skip_grad = v.drop_grad + clips;
            if (starts) v.start_grad = v.skip_grad + steps;
        }
        videos.push_back(v);
    }
    run(watch, [&](Poll &poll) {
        soft_many(videos, {gamma, smooth, contiguous, in_lanes, workers, memory}, soft_kernels_for<T>(), poll);
    });
    nb::list results;
    for (size_t i = 0; i < videos.size(); ++i) {
        if (!gradient) {
            results.append(nb::make_tuple(videos[i].cost, nb::none()));
            continue;
        }
        const size_t numbers = grads[i].size();
        results.append(nb::make_tuple(videos[i].cost, give(std::move(grads[i]), {numbers})));
    }
    return results;
}

// Blocks of the table, and bytes needed with `window` of them kept (0: all).
template <class T>
std::tuple<int64_t, int64_t> memory(const Procedure &p, int64_t clips, int64_t window, bool cost_only, const Watch *watch) {
    std::tuple<int64_t, int64_t> found;
    run(watch, [&](Poll &poll) {
        const Sizes<T> sizes(Layout<T>(p, false, poll), clips, 0);
        const bool all = window == 0 || window >= sizes.blocks;
        found = {sizes.blocks, sizes.bytes(all ? sizes.blocks : window, !all && !cost_only)};
    });
    return found;
}
template <class T> int64_t lane_memory(const Procedure &p, int64_t clips, const Watch *watch) {
    int64_t found = 0;
    run(watch, [&](Poll &poll) {
        const Sizes<T> sizes(Layout<T>(p, true, poll), clips, 0);
        found = sizes.bytes(sizes.blocks, false);
    });
    return found;
}

// Videos on one automaton, each as its costs: match, drop, arc, end, length, tail. Several stand side by side in lanes.
template <class T> using AutomatonArrays = std::tuple<Array<T>, Array<T>, Array<T>, Array<T>, Array<T>, Array<T>>;

template <class T> AutomatonVideo<T> automaton_video(const AutomatonArrays<T> &given) {
    const auto &[match, drop, arc, end, length, tail] = given;
    return {
        match.data(), drop.data(), arc.data(), end.data(), length.data(), tail.data(), static_cast<int64_t>(match.shape(1)), 0,
        nullptr,      nullptr,     nullptr};
}
template <class T, class Ask> void automaton_run(const Automaton &automaton, std::vector<AutomatonVideo<T>> &videos,
                                                 const AutomatonArrays<T> &first, int workers, const Watch *watch, Ask ask) {
    const int64_t longest = static_cast<int64_t>(std::get<4>(first).shape(1));
    run(watch, [&](Poll &poll) {
        if (videos.size() > 1) {
            automaton_many<T>(automaton, videos, longest, workers, poll, ask);
            return;
        }
        AutomatonSolver<T> solver(automaton, videos, false, longest, workers, poll);
        ask(solver);
    });
}

// Costs and labels [clips]; None where they are not wanted or there is no alignment.
template <class T> nb::list automaton_solve(const Automaton &automaton, const std::vector<AutomatonArrays<T>> &given,
                                            bool cost_only, int workers, const Watch *watch) {
    std::vector<AutomatonVideo<T>> videos;
    std::vector<std::vector<int64_t>> labels(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
        videos.push_back(automaton_video(given[i]));
        if (cost_only) continue;
        labels[i].assign(static_cast<size_t>(videos[i].clips), -1);
        videos[i].labels = labels[i].data();
    }
    if (!videos.empty()) automaton_run<T>(automaton, videos, given[0], workers, watch, [](auto &solver) { solver.hard(); });
    nb::list results;
    for (size_t i = 0; i < videos.size(); ++i) {
        const double cost = videos[i].cost;
        const size_t clips = static_cast<size_t>(videos[i].clips);
        if (cost_only || cost == Forward<double>::INF) results.append(nb::make_tuple(cost, nb::none()));
        else results.append(nb::make_tuple(cost, give(std::move(labels[i]), {clips})));
    }
    return results;
}

// Costs, probabilities [steps + 1][clips], and those of a segment beginning [steps][clips]; None where there is no alignment.
nb::list automaton_posterior(const Automaton &automaton, const std::vector<AutomatonArrays<double>> &given, int workers,
                             const Watch *watch) {
    std::vector<AutomatonVideo<double>> videos;
    std::vector<std::vector<double>> probability(given.size()), start(given.size());
    const size_t steps = static_cast<size_t>(automaton.n_steps);
    for (size_t i = 0; i < given.size(); ++i) {
        videos.push_back(automaton_video(given[i]));
        probability[i].resize((steps + 1) * static_cast<size_t>(videos[i].clips));
        start[i].resize(steps * static_cast<size_t>(videos[i].clips));
        videos[i].probability = probability[i].data();
        videos[i].start = start[i].data();
    }
    if (!videos.empty()) automaton_run<double>(automaton, videos, given[0], workers, watch, [](auto &solver) { solver.soft(); });
    nb::list results;
    for (size_t i = 0; i < videos.size(); ++i) {
        const size_t clips = static_cast<size_t>(videos[i].clips);
        if (videos[i].cost == Forward<double>::INF) results.append(nb::make_tuple(videos[i].cost, nb::none(), nb::none()));
        else
            results.append(nb::make_tuple(videos[i].cost, give(std::move(probability[i]), {steps + 1, clips}),
                                          give(std::move(start[i]), {steps, clips})));
    }
    return results;
}

// Bytes that the tables of one video take, or of LANES side by side, beside what each worker has of a group.
template <class T> int64_t automaton_memory(const Automaton &automaton, int64_t clips, int64_t longest, bool videos, bool sums) {
    const int64_t rows = round_up(clips + 1, LENGTHS_BLOCK), each = videos ? LANES<T> : 1;
    const int64_t group = GroupMemory<T>::numbers(automaton.template most_slots<T>(videos), rows, longest, sums);
    const int64_t nodes = automaton.nodes() * (sums ? 2 : 1), steps = automaton.n_steps * (sums ? 3 : 1) + 2;
    const int64_t arcs = static_cast<int64_t>(automaton.arc_from.size());
    const int64_t blocks = sums || longest == 1 ? 0 : round_up(rows / LENGTHS_BLOCK, LANES<T>);
    const int64_t outlook = blocks ? (nodes + 3 * steps) * blocks + (steps + 4) * (rows + LENGTHS_BLOCK) + 3 * longest : 0;
    return static_cast<int64_t>(sizeof(T)) * (each * ((nodes + steps) * rows + arcs + steps * longest + outlook) + group) +
           (sums ? AutomatonSolver<T>::MOST_KEPT : 0);
}

// Weights [out][in], a scale and a bias per output.
using MatrixArrays = std::tuple<Array<int8_t>, Array<float>, Array<float>>;
using NormArrays = std::tuple<Array<float>, Array<float>>;

PackedMatrix packed(const MatrixArrays &given, const EncoderKernels &kernels) {
    const auto &[weights, scale, bias] = given;
    if (weights.ndim() != 2 || scale.size() != weights.shape(0) || bias.size() != weights.shape(0))
        throw std::invalid_argument("a matrix needs a scale and a bias per output");
    return {static_cast<int64_t>(weights.shape(0)),
            static_cast<int64_t>(weights.shape(1)),
            weights.data(),
            scale.data(),
            bias.data(),
            kernels};
}
NormWeights norm(const NormArrays &given) { return {take(std::get<0>(given)), take(std::get<1>(given))}; }

// What a layer makes of rows [rows][in]: [rows][out].
template <class Layer> Owned<float> through(const Layer &layer, const Array<float> &rows, int64_t in, int64_t out) {
    if (rows.ndim() != 2 || static_cast<int64_t>(rows.shape(1)) != in) throw std::invalid_argument("rows of another width");
    std::vector<float> found(rows.shape(0) * static_cast<size_t>(out));
    {
        const nb::gil_scoped_release release;
        layer(rows.data(), static_cast<int64_t>(rows.shape(0)), found.data());
    }
    return give(std::move(found), {rows.shape(0), static_cast<size_t>(out)});
}

void bind_encoder(nb::module_ &m) {
    m.def(
        "encoder_levels",
        [] {
            std::vector<const char *> names;
            for (const EncoderKernels &k : encoder_kernels()) names.push_back(k.name);
            return names;
        },
        "Instruction sets that quantised layers can run on here, the fastest first.");
    nb::class_<QuantisedLinear>(m, "QuantisedLinear")
        .def(
            "__init__",
            [](QuantisedLinear *self, const MatrixArrays &matrix, size_t level, bool gelu) {
                const EncoderKernels &k = encoder_kernels_from(level, 0);
                new (self) QuantisedLinear{k, packed(matrix, k), gelu};
            },
            "matrix"_a, "level"_a = 0, "gelu"_a = false)
        .def(
            "__call__",
            [](const QuantisedLinear &self, const Array<float> &rows) {
                return through(self, rows, self.matrix.in, self.matrix.out);
            },
            "rows"_a.noconvert());
    nb::class_<QuantisedLayer>(m, "QuantisedLayer")
        .def(
            "__init__",
            [](QuantisedLayer *self, const MatrixArrays &qkv, const MatrixArrays &out, const MatrixArrays &up,
               const MatrixArrays &down, const NormArrays &norm1, const NormArrays &norm2, int64_t heads, float epsilon,
               size_t level) {
                const int64_t width = static_cast<int64_t>(std::get<0>(norm1).size());
                const EncoderKernels &k = encoder_kernels_from(level, width / std::max<int64_t>(heads, 1));
                new (self) QuantisedLayer(k, packed(qkv, k), packed(out, k), packed(up, k), packed(down, k), norm(norm1),
                                          norm(norm2), heads, epsilon);
            },
            "qkv"_a, "out"_a, "up"_a, "down"_a, "norm1"_a, "norm2"_a, "heads"_a, "epsilon"_a, "level"_a = 0)
        .def(
            "__call__",
            [](const QuantisedLayer &self, const Array<float> &rows) { return through(self, rows, self.width(), self.width()); },
            "rows"_a.noconvert());
    nb::class_<FeatureSums>(m, "FeatureSums")
        .def(
            "__init__",
            [](FeatureSums *self, const std::vector<Array<float>> &given, size_t level) {
                std::vector<FeatureSums::Table> tables;
                for (const Array<float> &table : given) {
                    if (table.ndim() != 2) throw std::invalid_argument("a table has rows of numbers");
                    tables.push_back({static_cast<int64_t>(table.shape(0)), take(table)});
                }
                const int64_t width = given.empty() ? 0 : static_cast<int64_t>(given[0].shape(1));
                new (self) FeatureSums(encoder_kernels_from(level, width), std::move(tables), width);
            },
            "tables"_a, "level"_a = 0)
        .def(
            "__call__",
            [](const FeatureSums &self, const Array<int64_t> &rows, const Array<float> &dependent, const Array<float> &head) {
                if (rows.ndim() != 3 || static_cast<int64_t>(rows.shape(1)) != self.tables())
                    throw std::invalid_argument("a row of each table is needed");
                const size_t dependents = rows.shape(0), entities = rows.shape(2), width = static_cast<size_t>(self.width);
                if (dependent.size() != dependents * MEETINGS * width || head.size() != entities * MEETINGS * width)
                    throw std::invalid_argument("numbers of both ends of the pairs are needed");
                std::vector<float> found(dependents * entities * width), met(MEETINGS * dependents * entities);
                {
                    const nb::gil_scoped_release release;
                    self(static_cast<int64_t>(dependents), static_cast<int64_t>(entities), rows.data(), dependent.data(),
                         head.data(), found.data(), met.data());
                }
                return std::make_tuple(give(std::move(found), {dependents, entities, width}),
                                       give(std::move(met), {size_t{MEETINGS}, dependents, entities}));
            },
            "rows"_a.noconvert(), "dependent"_a.noconvert(), "head"_a.noconvert());
    m.def(
        "best_path",
        [](const Array<float> &scores, const Array<float> &steps, const Array<float> &start) {
            if (scores.ndim() != 2 || start.size() != scores.shape(1) || steps.size() != start.size() * start.size())
                throw std::invalid_argument("scores of tags, of steps between them and of the first are needed");
            return best_path(scores.data(), static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1)),
                             steps.data(), start.data());
        },
        "scores"_a.noconvert(), "steps"_a.noconvert(), "start"_a.noconvert(), "The tags with the highest sum of scores.");
}

void bind_search(nb::module_ &m) {
    nb::class_<Climb>(m, "Climb")
        .def(
            "__init__",
            [](Climb *self, const Array<double> &match, const Array<double> &drop, const Array<double> &skip,
               const Array<int64_t> &earlier, const Array<int64_t> &later, const Array<double> &when, bool contiguous,
               const std::tuple<double, double, double, double, int64_t> &settings) {
                const auto &[by_clip, momentum, shorter, expect, patience] = settings;
                new (self) Climb(take(match), take(drop), take(skip), take(earlier), take(later), take(when), contiguous,
                                 {by_clip, momentum, shorter, expect, patience});
            },
            "match"_a.noconvert(), "drop"_a.noconvert(), "skip"_a.noconvert(), "earlier"_a.noconvert(), "later"_a.noconvert(),
            "when"_a.noconvert(), "contiguous"_a, "settings"_a)
        .def("start", &Climb::start)
        .def(
            "run",
            [](Climb &self, int64_t rounds, double target, double close, const Watch *watch) {
                std::tuple<int64_t, bool> found;
                run(watch, [&](Poll &poll) { found = self.run(rounds, target, close, poll); });
                return found;
            },
            "rounds"_a, "target"_a, "close"_a, "watch"_a.none() = nb::none())
        .def(
            "completions",
            [](Climb &self, const Watch *watch) {
                Completions found;
                run(watch, [&](Poll &poll) { found = self.completions(poll); });
                const size_t points = found.free.size(), steps = found.going.size() / points;
                return nb::make_tuple(give(std::move(found.free), {points}), give(std::move(found.going), {steps, points}),
                                      give(std::move(found.weight), {steps, points}));
            },
            "watch"_a.none() = nb::none())
        .def_prop_ro("bound", &Climb::bound)
        .def_prop_ro(
            "once", [](const Climb &self) { return give(std::vector(self.once()), {self.once().size()}); }, nb::rv_policy::move)
        .def_prop_ro(
            "order", [](const Climb &self) { return give(std::vector(self.order()), {self.order().size()}); },
            nb::rv_policy::move)
        .def_prop_ro(
            "when", [](const Climb &self) { return give(std::vector(self.when), {self.when.size()}); }, nb::rv_policy::move);
    m.def(
        "sweep",
        [](const Array<double> &match, const Array<double> &drop, const Array<double> &skip, const Array<double> &free,
           const Array<double> &going, const Array<double> &weight, const Array<uint64_t> &before, bool contiguous, double upper,
           int64_t width, int64_t bytes, const Watch *watch) {
            const Bounded video{static_cast<int64_t>(skip.size()),
                                static_cast<int64_t>(drop.size()),
                                contiguous,
                                match.data(),
                                drop.data(),
                                skip.data(),
                                free.data(),
                                going.data(),
                                weight.data(),
                                before.data()};
            Swept found;
            const auto words = static_cast<int64_t>(before.shape(1));
            run(watch, [&](Poll &poll) { found = sweep(video, words, upper, {width, bytes}, poll); });
            const size_t clips = found.labels.size();
            nb::object labels = clips ? nb::cast(give(std::move(found.labels), {clips})) : nb::none();
            return nb::make_tuple(found.cost, labels, found.dropped, found.expanded);
        },
        "match"_a.noconvert(), "drop"_a.noconvert(), "skip"_a.noconvert(), "free"_a.noconvert(), "going"_a.noconvert(),
        "weight"_a.noconvert(), "before"_a.noconvert(), "contiguous"_a, "upper"_a, "width"_a, "bytes"_a,
        "watch"_a.none() = nb::none(), "Follow the most promising ideals from step to step: cost, labels, dropped, expanded.");
}

// The same functions for both dtypes.
template <class T> void bind_procedure(nb::class_<Procedure> &procedure) {
    procedure
        .def("solve", &solve<T>, "match"_a.noconvert(), "drop"_a.noconvert(), "skip"_a.noconvert().none(), "contiguous"_a,
             "cost_only"_a, "block"_a, "window"_a, "workers"_a, "watch"_a.none() = nb::none())
        .def("solve_many", &solve_batch<T>, "matches"_a.noconvert(), "drops"_a.noconvert(), "skips"_a.noconvert(), "contiguous"_a,
             "cost_only"_a, "block"_a, "workers"_a, "watch"_a.none() = nb::none());
}
template <class T> void bind_soft(nb::module_ &m) {
    m.def("soft_many", &soft_batch<T>, "procedures"_a, "matches"_a.noconvert(), "drops"_a.noconvert(), "skips"_a.noconvert(),
          "gamma"_a, "smooth"_a, "contiguous"_a, "gradient"_a, "starts"_a, "in_lanes"_a, "workers"_a, "memory"_a,
          "watch"_a.none() = nb::none());
}

}  // namespace
}  // namespace g2v

NB_MODULE(_native, m) {
    // A command ends without a last search for garbage (graph2vid.cli), which would find these types and functions.
    nb::set_leak_warnings(false);
    using namespace g2v;
    m.def("simd", [] { return kernels().name; }, "Instruction set the kernels run on.");
    m.def(
        "simd_levels",
        [] {
            std::vector<const char *> names;
            for (const Kernels &k : all_kernels()) names.push_back(k.name);
            return names;
        },
        "Instruction sets the kernels can run on here, the fastest first.");
    m.def(
        "use_simd", [](size_t level) { chosen_kernels = std::min(level, all_kernels().size() - 1); }, "level"_a,
        "Choose one of simd_levels() by its index, for all later calls.");
    nb::class_<Watch>(m, "Watch")
        .def(nb::init<double, const Watch *>(), "seconds"_a, "outer"_a.none(), nb::keep_alive<1, 3>())
        .def("stop", [](Watch &self) { self.stop = true; }, "End the calls that watch it, in whatever thread they are.");
    m.def(
        "poll_counts",
        [] { return std::tuple(poll_counts.asked.exchange(0), poll_counts.longest.exchange(0), poll_counts.work.exchange(0)); },
        "Since the last time: questions whether to go on, the most work between two of them, all work (in updates).");
    m.def("build_lattice", &lattice, "predecessors"_a, "limit"_a, "watch"_a.none() = nb::none());

    bind_soft<float>(m);
    bind_soft<double>(m);
    bind_encoder(m);
    bind_search(m);

    nb::class_<Automaton> automaton(m, "Automaton");
    automaton.def(
        "__init__",
        [](Automaton *self, int n_steps, const Array<int64_t> &state_start, const Array<int32_t> &state_step,
           const Array<int64_t> &arc_start, const Array<int32_t> &arc_from) {
            new (self) Automaton(n_steps, take(state_start), take(state_step), take(arc_start), take(arc_from));
        },
        "n_steps"_a, "state_start"_a, "state_step"_a, "arc_start"_a, "arc_from"_a);
    automaton.def("solve", &automaton_solve<float>, "videos"_a.noconvert(), "cost_only"_a, "workers"_a,
                  "watch"_a.none() = nb::none());
    automaton.def("solve", &automaton_solve<double>, "videos"_a.noconvert(), "cost_only"_a, "workers"_a,
                  "watch"_a.none() = nb::none());
    automaton.def("posterior", &automaton_posterior, "videos"_a.noconvert(), "workers"_a, "watch"_a.none() = nb::none());
    automaton.def(
        "memory",
        [](const Automaton &self, int itemsize, int64_t clips, int64_t longest, bool videos, bool sums) {
            return itemsize == 4 ? automaton_memory<float>(self, clips, longest, videos, sums)
                                 : automaton_memory<double>(self, clips, longest, videos, sums);
        },
        "itemsize"_a, "clips"_a, "longest"_a, "videos"_a, "sums"_a);

    nb::class_<Procedure> procedure(m, "Procedure");
    procedure
        .def(
            "__init__",
            [](Procedure *self, const Array<uint64_t> &masks, const Array<uint64_t> &descendants,
               const Array<int64_t> &level_start, const Array<int64_t> &state_start, const Array<int32_t> &state_step,
               const Array<int32_t> &state_from, const Array<double> &order, const Array<double> &state_cost) {
                new (self) Procedure();
                self->n_steps = static_cast<int>(descendants.shape(0));
                self->words = static_cast<int>(descendants.shape(1));
                self->masks = take(masks);
                self->descendants = take(descendants);
                self->level_start = take(level_start);
                self->state_start = take(state_start);
                self->state_step = take(state_step);
                self->state_from = take(state_from);
                self->order = take(order);
                self->state_cost = take(state_cost);
            },
            "masks"_a, "descendants"_a, "level_start"_a, "state_start"_a, "state_step"_a, "state_from"_a, "order"_a,
            "state_cost"_a)
        .def(
            "memory",
            [](const Procedure &p, int itemsize, int64_t clips, int64_t window, bool cost_only, const Watch *watch) {
                return itemsize == 4 ? memory<float>(p, clips, window, cost_only, watch)
                                     : memory<double>(p, clips, window, cost_only, watch);
            },
            "itemsize"_a, "clips"_a, "window"_a, "cost_only"_a, "watch"_a.none() = nb::none())
        .def(
            "lane_memory",
            [](const Procedure &p, int itemsize, int64_t clips, const Watch *watch) {
                return itemsize == 4 ? lane_memory<float>(p, clips, watch) : lane_memory<double>(p, clips, watch);
            },
            "itemsize"_a, "clips"_a, "watch"_a.none() = nb::none());
    bind_procedure<float>(procedure);
    bind_procedure<double>(procedure);
}
