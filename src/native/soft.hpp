// Soft minima over all alignments, and their gradients: one video with its ideals in the lanes, or many with a video per
// lane. With softmin each label sequence counts once, and the gradient is the posterior.
#pragma once
#include <cmath>
#include <map>
#include <span>
#include <stdexcept>

#include "forward.hpp"
#include "soft_job.hpp"

namespace g2v {

// One video as the caller has it: match [steps][clips], drop [clips], skip [steps] or null. Where `match_grad` is null no
// gradient is wanted; the gradients have the shapes of the costs.
template <class T> struct SoftVideo {
    const Procedure *procedure;
    const T *match, *drop, *skip;
    int64_t clips;
    T *match_grad, *drop_grad, *skip_grad;
    T *start_grad;  // [steps][clips]: that a step begins at a clip (contiguous, softmin); may be null
    double cost;
};

struct SoftOptions {
    double gamma;
    bool smooth, contiguous;
    bool in_lanes;  // a video in each lane however few there are: sums do not depend on their number then
    int workers;
    int64_t memory;  // bytes that the tables of all threads may take together
};

// Where states are entered from, and how a video may end, when steps may be waived: a step's missing ancestors when it
// begins, and what is left over at the end. So each label sequence is counted once.
class Waivers {
public:
    std::vector<int64_t> slot_entry{0};
    std::vector<int32_t> group, waived;
    std::vector<std::vector<int>> sets;  // set 0 is empty
    struct End {
        int64_t group;
        int32_t waived;
    };
    std::vector<End> ends;

    // `may` [steps]: whether a step may be waived at all. Where nothing follows such steps, they are waived at the end alone,
    // and there are no entries.
    Waivers(const Procedure &g, const Packing &packing, const std::vector<char> &may, Poll &poll)
        : g_(g), may_(may), poll_(poll) {
        set_of({});
        put_ends(packing);
        if (!before_others(g, may)) return;
        std::vector<int64_t> state_of_slot(static_cast<size_t>(packing.n_slots()), -1);
        for (int64_t s = 0; s < g.states(); ++s) state_of_slot[packing.state_place[s]] = s;
        for (int64_t slot = 0; slot < packing.n_slots(); ++slot) {
            if (state_of_slot[slot] >= 0) {
                std::vector<int> without;
                visit(packing, g.state_from[state_of_slot[slot]], g.state_step[state_of_slot[slot]], without, -1);
            }
            slot_entry.push_back(static_cast<int64_t>(group.size()));
        }
    }

    // True if something must follow a step that may be waived.
    static bool before_others(const Procedure &g, const std::vector<char> &may) {
        for (int step = 0; step < g.n_steps; ++step)
            if (may[step] && g.n_descendants(step)) return true;
        return false;
    }

private:
    void put_ends(const Packing &packing) {
        for (int64_t ideal = 0; ideal < g_.ideals(); ++ideal) {
            poll_(8 * g_.n_steps);
            std::vector<int> left;
            bool possible = true;
            for (int step = 0; step < g_.n_steps && possible; ++step)
                if (!g_.holds(ideal, step)) {
                    left.push_back(step);
                    possible = may_[step];
                }
            if (possible) ends.push_back({packing.ideal_place[ideal], set_of(left)});
        }
    }

    static constexpr size_t MOST = 50'000'000;
    const Procedure &g_;
    const std::vector<char> &may_;
    Poll &poll_;
    std::map<std::vector<int>, int32_t> known_;

    int32_t set_of(std::vector<int> steps) {
        std::sort(steps.begin(), steps.end());
        const auto [found, is_new] = known_.try_emplace(steps, static_cast<int32_t>(sets.size()));
        if (is_new) sets.push_back(steps);
        return found->second;
    }
    // Removing the waived steps in falling order of place makes each set come once.
    void visit(const Packing &packing, int64_t ideal, int step, std::vector<int> &without, int after) {
        poll_(200);
        if (group.size() >= MOST) throw std::length_error("too many ways to leave out steps");
        group.push_back(static_cast<int32_t>(packing.ideal_place[ideal]));
        waived.push_back(set_of(without));
        for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s) {
            const int u = g_.state_step[s];
            if (!g_.follows(u, step) || !may_[u] || (after >= 0 && !before(u, after))) continue;
            without.push_back(u);
            visit(packing, g_.state_from[s], step, without, u);
            without.pop_back();
        }
    }
    // A fixed linear extension: by number of descendants (more of them: earlier), then by index.
    bool before(int a, int b) const { return std::pair(-g_.n_descendants(a), a) < std::pair(-g_.n_descendants(b), b); }
};

// The steps that may be skipped in any of some videos of one procedure, as flags.
template <class T> std::vector<char> may_be_skipped(std::span<SoftVideo<T> *const> videos) {
    const int steps = videos[0]->procedure->n_steps;
    std::vector<char> may(static_cast<size_t>(steps), 0);
    for (const SoftVideo<T> *v : videos)
        for (int step = 0; v->skip && step < steps; ++step)
            if (v->skip[step] < std::numeric_limits<T>::infinity()) may[step] = 1;
    return may;
}

// How many columns of the table are kept at a time: all of them, or those between two checkpoints.
struct Columns {
    int64_t kept, checkpoints;
    // As many as fit into `numbers`; 0 where not even the fewest do.
    static Columns fitting(int64_t clips, int64_t numbers) {
        if (clips + 1 <= numbers) return {clips, 1};
        for (int64_t parts = 2; parts <= clips; ++parts) {
            const int64_t kept = (clips + parts - 1) / parts;
            if (kept + 1 + parts <= numbers) return {kept, parts};
            if (parts > kept) break;
        }
        return {0, 0};
    }
};

template <class T> class SoftSolver {
public:
    static constexpr int L = LANES<T>;
    static constexpr int64_t MOST_WITH_NOTES = 1 << 20;  // bytes of a table

    SoftSolver(std::span<SoftVideo<T> *> videos, bool in_lanes, const SoftOptions &o, const SoftKernels<T> &kernels,
               int64_t memory, Poll &poll)
        : poll_(poll), videos_(videos), g_(*videos[0]->procedure), each_(in_lanes ? L : 1), kernels_(kernels),
          packing_(g_.packing(in_lanes ? 1 : L, poll)), layout_(g_.soft_layout(in_lanes ? 1 : L, poll)),
          gradient_(videos[0]->match_grad), job_{} {
        for (const SoftVideo<T> *v : videos_) longest_ = std::max(longest_, v->clips);
        job_.videos = in_lanes;
        job_.pause = poll.pause();
        job_.contiguous = o.contiguous;
        job_.smooth = o.smooth;
        job_.gamma = static_cast<T>(o.gamma);
        job_.n_steps = g_.n_steps;
        job_.groups = packing_.groups();
        job_.n_slots = layout_.n_slots();
        job_.slots = layout_.view();
        // Notes save most of the backward pass, as long as they stay in the cache.
        job_.notes = gradient_ && !in_lanes;
        const int64_t whole = job_.column_numbers() * (longest_ + 1) * static_cast<int64_t>(sizeof(T));
        if (whole > std::min(MOST_WITH_NOTES, memory)) job_.notes = false;
        columns_ = gradient_ ? Columns::fitting(longest_, memory / static_cast<int64_t>(sizeof(T)) / job_.column_numbers())
                             : Columns{1, 1};
        if (columns_.kept == 0) throw std::length_error("the table does not fit into memory");
        put_lanes();
        put_begin();
        put_waivers();
        put_costs();
    }

    void run() {
        const int64_t column = job_.column_numbers();
        Scratch table(sizeof(T) * static_cast<size_t>((columns_.kept + 1) * column));
        Scratch saved(sizeof(T) * static_cast<size_t>(columns_.checkpoints > 1 ? columns_.checkpoints * column : 1));
        T *now = table.as<T>(), *checkpoints = saved.as<T>();
        begin(now);
        shifts_.assign(static_cast<size_t>(longest_ + 1) * L, 0);
        std::vector<double> base(L, 0.0);  // what all shifts so far took off
        for (int64_t j = 0, place = 0; j < longest_; ++j) {
            if (columns_.checkpoints > 1 && place == 0) std::copy_n(now, column, checkpoints + j / columns_.kept * column);
            step_forward(j, now, place);
            for (int l = 0; l < L; ++l) base[l] += static_cast<double>(shifts_[j * L + l]);
            ++place;
            end_videos(j + 1, now + place * column, base);
            if (place == columns_.kept && j + 1 < longest_) {
                std::copy_n(now + place * column, column, now);
                place = 0;
            }
        }
        if (!gradient_) return;
        prepare_gradient();
        const int64_t last = (longest_ - 1) / columns_.kept;  // the part that is still in the table
        for (int64_t part = last; part >= 0; --part) {
            const int64_t first = part * columns_.kept, count = std::min(columns_.kept, longest_ - first);
            if (part < last) {
                std::copy_n(checkpoints + part * column, column, now);
                for (int64_t i = 0; i < count; ++i) step_forward(first + i, now, i);
            }
            for (int64_t i = count; i > 0; --i) step_backward(first + i, now + (i - 1) * column, now + i * column);
        }
        give_gradient();
    }

private:
    struct Seed {
        int64_t place;  // in the gradient of the groups
        T value;
    };
    Poll &poll_;
    std::span<SoftVideo<T> *> videos_;
    const Procedure &g_;
    int each_;
    SoftKernels<T> kernels_;
    const Packing &packing_;
    const SoftLayout &layout_;
    bool gradient_;
    SoftJob<T> job_;
    int64_t longest_ = 0;
    Columns columns_{};
    std::unique_ptr<Waivers> waivers_;
    std::vector<T> match_, drop_, begin_, waived_, shifts_, unused_, first_, weights_;
    std::vector<T> match_grad_, start_grad_, drop_grad_, waived_grad_, slot_grad_, group_grad_, group_grad_prev_;
    std::vector<std::vector<Seed>> seeds_;

    int lanes() const { return static_cast<int>(videos_.size()); }
    static constexpr T INF = std::numeric_limits<T>::infinity();

    void put_lanes() {
        unused_.assign(static_cast<size_t>(job_.groups) * L, -INF);
        first_.assign(static_cast<size_t>(job_.groups) * L, INF);
        for (int64_t g = 0; g < job_.groups; ++g)
            for (int l = 0; l < L; ++l) {
                const int32_t ideal = packing_.group_ideal[each_ == 1 ? g * L + l : g];
                if (ideal < 0) unused_[g * L + l] = INF;
                if (ideal == 0) first_[g * L + l] = 0;
            }
        job_.group_unused = unused_.data();
        job_.group_start = first_.data();
    }

    void put_begin() {
        if (g_.state_cost.empty()) return;
        begin_.assign(static_cast<size_t>(job_.n_slots) * L, 0);
        for (int64_t slot = 0; slot < job_.n_slots; ++slot)
            for (int l = 0; l < L; ++l) {
                const int32_t state = layout_.slot_state[each_ == 1 ? slot * L + l : slot];
                if (state >= 0) begin_[slot * L + l] = g_.begin_cost<T>(state);
            }
        job_.begin = begin_.data();
    }

    void put_waivers() {
        const std::vector<char> may = may_be_skipped<T>(videos_);
        if (std::find(may.begin(), may.end(), 1) == may.end()) return;
        waivers_ = std::make_unique<Waivers>(g_, packing_, may, poll_);
        if (!waivers_->group.empty())
            job_.entries = {waivers_->slot_entry.data(), waivers_->group.data(), waivers_->waived.data()};
        waived_.assign(waivers_->sets.size() * L, 0);
        for (size_t set = 0; set < waivers_->sets.size(); ++set)
            for (int l = 0; l < L; ++l)
                for (int step : waivers_->sets[set])
                    waived_[set * L + l] += l < lanes() && videos_[l]->skip ? videos_[l]->skip[step] : INF;
        job_.waived = waived_.data();
    }

    void put_costs() {
        const int64_t steps = g_.n_steps + 1;
        match_.assign(static_cast<size_t>(longest_ * steps * each_), INF);
        drop_.assign(static_cast<size_t>(longest_ * each_), INF);
        for (int lane = 0; lane < lanes(); ++lane) {
            const SoftVideo<T> &v = *videos_[lane];
            for (int64_t j = 0; j < v.clips; ++j) drop_[j * each_ + lane] = v.drop[j];
            for (int k = 0; k < g_.n_steps; ++k, poll_(4 * v.clips))
                for (int64_t j = 0; j < v.clips; ++j) match_[(j * steps + k) * each_ + lane] = v.match[k * v.clips + j];
        }
        job_.match = match_.data();
        job_.drop = drop_.data();
    }

    // Before the first clip nothing is done.
    void begin(T *column) const {
        std::fill_n(column, job_.column_numbers(), INF);
        const int64_t place = packing_.ideal_place[0], group = place / (each_ == 1 ? L : 1), parts = job_.parts();
        for (int lane = 0; lane < L; ++lane) {
            if (each_ == 1 && lane != place % L) continue;
            T *here = column + group * parts * L + lane;
            here[0] = 0;
        }
        if (parts == 3)  // every set but that of the first ideal is empty, and its sums must be finite
            for (int64_t g = 0; g <= job_.groups; ++g)
                for (int lane = 0; lane < L; ++lane) {
                    T *here = column + g * parts * L + lane;
                    here[L] = here[0] < INF ? 1 : 0;
                    here[2 * L] = 0;
                }
    }

    // Updates of one clip that the kernels do not tell themselves: those of the groups after the last 512.
    int64_t rest_work() const {
        const int64_t first = job_.groups / 512 * 512;
        return 8 * (layout_.n_slots() - layout_.group_slot[first] + job_.groups - first) * L;
    }

    void step_forward(int64_t j, T *now, int64_t place) {
        const int64_t column = job_.column_numbers();
        poll_(rest_work());
        kernels_.forward(job_, j, now + place * column, now + (place + 1) * column, shifts_.data() + j * L,
                         shifts_.data() + (j + 1) * L);
    }

    // The cost of the videos that end with this column, and the gradient that they start with.
    void end_videos(int64_t clips, const T *column, const std::vector<double> &base) {
        if (seeds_.empty()) seeds_.resize(L);
        for (int lane = 0; lane < lanes(); ++lane)
            if (videos_[lane]->clips == clips) end_video(lane, column, base[lane]);
    }
    void end_video(int lane, const T *column, double base) {
        const int parts = job_.parts(), grads = job_.grads();
        std::vector<Waivers::End> ends;
        if (waivers_) ends = waivers_->ends;
        else ends.push_back({packing_.ideal_place[g_.ideals() - 1], 0});
        auto read = [&](const Waivers::End &end, int part) -> double {
            const int64_t group = each_ == 1 ? end.group / L : end.group, at = each_ == 1 ? end.group % L : lane;
            return column[(group * parts + part) * L + at];
        };
        auto cost_of = [&](const Waivers::End &end) -> double { return waivers_ ? waived_[end.waived * L + lane] : 0.0; };
        const double gamma = job_.gamma, infinite = std::numeric_limits<double>::infinity();
        double low = infinite;
        for (const auto &end : ends) low = std::min(low, read(end, 0) + cost_of(end));
        videos_[lane]->cost = infinite;
        if (low == infinite) return;
        double z = 0, w = 0;
        auto weigh = [&](const Waivers::End &end, auto use) {
            const double far = read(end, 0) + cost_of(end) - low;
            if (far == infinite) return;
            use(far, std::exp(-far / gamma), parts == 3 ? read(end, 1) : 1.0, parts == 3 ? read(end, 2) : 0.0);
        };
        for (const auto &end : ends)
            weigh(end, [&](double far, double e, double end_z, double end_w) {
                z += end_z * e;
                w += (end_w + end_z * far) * e;
            });
        const double mean = w / z;
        videos_[lane]->cost = base + low + (job_.smooth ? mean : -gamma * std::log(z));
        if (!gradient_) return;
        if (waived_grad_.empty()) waived_grad_.assign(std::max<size_t>(waived_.size(), L), 0);
        for (const auto &end : ends)
            weigh(end, [&](double far, double e, double end_z, double end_w) {
                const int64_t group = each_ == 1 ? end.group / L : end.group, at = each_ == 1 ? end.group % L : lane;
                const double alpha = e / z, slope = job_.smooth ? 1 - (far - mean) / gamma : 1.0;
                auto seed = [&](int part, double value) {
                    seeds_[lane].push_back({(group * grads + part) * L + at, static_cast<T>(value)});
                };
                if (parts == 3) seed(0, alpha);
                seed(grads - 1, alpha * slope);
                waived_grad_[end.waived * L + lane] +=
                    static_cast<T>(alpha * (parts == 3 ? end_z * slope - end_w / gamma : slope));
            });
    }

    void prepare_gradient() {
        const size_t steps = static_cast<size_t>(g_.n_steps) + 1;
        match_grad_.assign(static_cast<size_t>(longest_) * steps * L, 0);
        drop_grad_.assign(static_cast<size_t>(longest_) * L, 0);
        if (waived_grad_.empty()) waived_grad_.assign(std::max<size_t>(waived_.size(), L), 0);
        slot_grad_.assign(static_cast<size_t>(job_.n_slots) * L, 0);
        group_grad_.assign(static_cast<size_t>((job_.groups + 1) * job_.grads()) * L, 0);
        group_grad_prev_ = group_grad_;
        job_.match_grad = match_grad_.data();
        if (videos_[0]->start_grad) start_grad_.assign(match_grad_.size(), 0);
        job_.start_grad = videos_[0]->start_grad ? start_grad_.data() : nullptr;
        job_.drop_grad = drop_grad_.data();
        job_.waived_grad = waived_grad_.data();
        job_.slot_grad = slot_grad_.data();
        int64_t most = 1;
        for (int64_t g = 0; g < job_.groups; ++g) most = std::max(most, layout_.group_slot[g + 1] - layout_.group_slot[g]);
        weights_.resize(static_cast<size_t>(most) * L);
        job_.weights = weights_.data();
    }
    // From column `clips` to the one before.
    void step_backward(int64_t clips, const T *before, const T *after) {
        for (int lane = 0; lane < lanes(); ++lane)
            if (videos_[lane]->clips == clips)
                for (const Seed &seed : seeds_[lane]) group_grad_[seed.place] += seed.value;
        poll_(rest_work());
        job_.group_grad = group_grad_.data();
        job_.group_grad_prev = group_grad_prev_.data();
        kernels_.backward(job_, clips - 1, before, after, shifts_.data() + (clips - 1) * L);
        std::fill(group_grad_.begin(), group_grad_.end(), T(0));
        group_grad_.swap(group_grad_prev_);
    }

    void give_gradient() {
        const int64_t steps = g_.n_steps + 1;
        for (int lane = 0; lane < lanes(); ++lane) {
            SoftVideo<T> &v = *videos_[lane];
            auto sum = [&](const T *numbers) {
                if (each_ > 1) return numbers[lane];
                T total = 0;
                for (int l = 0; l < L; ++l) total += numbers[l];
                return total;
            };
            for (int64_t j = 0; j < v.clips; ++j) {
                poll_(steps * (each_ > 1 ? 4 : 2 * L));
                v.drop_grad[j] = sum(drop_grad_.data() + j * L);
                for (int k = 0; k < g_.n_steps; ++k) {
                    v.match_grad[k * v.clips + j] = sum(match_grad_.data() + (j * steps + k) * L);
                    if (v.start_grad) v.start_grad[k * v.clips + j] = sum(start_grad_.data() + (j * steps + k) * L);
                }
            }
            if (!v.skip_grad) continue;
            std::fill_n(v.skip_grad, g_.n_steps, T(0));
            if (waivers_)
                for (size_t set = 0; set < waivers_->sets.size(); ++set)
                    for (int step : waivers_->sets[set]) v.skip_grad[step] += waived_grad_[set * L + lane];
        }
    }
};

// Videos of any procedures and lengths. Those of one procedure share their lanes where there are several of them or steps
// may be waived before others; else the ideals of the one video fill them.
template <class T>
void soft_many(std::vector<SoftVideo<T>> &videos, const SoftOptions &o, const SoftKernels<T> &kernels, Poll &poll) {
    constexpr size_t L = LANES<T>, ENOUGH = 3;
    struct Batch {
        std::vector<SoftVideo<T> *> videos;
        bool in_lanes;
    };
    std::map<const Procedure *, std::vector<SoftVideo<T> *>> by_procedure;
    for (SoftVideo<T> &v : videos) by_procedure[v.procedure].push_back(&v);
    std::vector<Batch> batches;
    for (auto &[procedure, members] : by_procedure) {
        std::stable_sort(members.begin(), members.end(), [](const auto *a, const auto *b) { return a->clips > b->clips; });
        for (size_t i = 0; i < members.size();) {
            const size_t count = std::min(L, members.size() - i);
            const bool entries = Waivers::before_others(*procedure, may_be_skipped<T>(std::span(members).subspan(i, count)));
            const bool in_lanes = o.in_lanes || entries || count >= ENOUGH;
            const size_t taken = in_lanes ? count : 1;
            batches.push_back({{members.begin() + i, members.begin() + i + taken}, in_lanes});
            i += taken;
        }
    }
    const int64_t team_size = std::min<int64_t>(o.workers, static_cast<int64_t>(batches.size()));
    std::atomic<size_t> next{0};
    run_team(team_size, poll, [&](int64_t, int64_t) {
        for (size_t b; (b = next++) < batches.size();)
            SoftSolver<T>(batches[b].videos, batches[b].in_lanes, o, kernels, o.memory / team_size, poll).run();
    });
}

}  // namespace g2v
