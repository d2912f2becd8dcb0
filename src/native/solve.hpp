// From cost matrices to cost and labels: one video with its ideals in the lanes, or many with a video per lane.
#pragma once
#include <atomic>
#include <span>
#include <string_view>

#include "soft.hpp"
#include "traceback.hpp"

namespace g2v {

// The kernels that this processor can run, the fastest first.
inline const std::vector<Kernels> &all_kernels() {
    static const std::vector<Kernels> found = [] {
        std::vector<Kernels> k;
#if defined(G2V_HAVE_AVX2)
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) k.push_back(kernels_avx2());
#endif
        k.push_back(kernels_base());
        return k;
    }();
    return found;
}
inline std::atomic<size_t> chosen_kernels{0};
inline const Kernels &kernels() { return all_kernels()[chosen_kernels]; }
template <class T> Advance<T> advance_for() {
    if constexpr (sizeof(T) == 4) return kernels().advance_f32;
    else return kernels().advance_f64;
}
template <class T> Interleave<T> interleave_for() {
    if constexpr (sizeof(T) == 4) return kernels().interleave_f32;
    else return kernels().interleave_f64;
}

template <class T> SoftKernels<T> soft_kernels_for() {
#if defined(G2V_HAVE_AVX2)
    const SoftKernelsOf found = std::string_view(kernels().name) == "avx2" ? soft_kernels_avx2() : soft_kernels_base();
#else
    const SoftKernelsOf found = soft_kernels_base();
#endif
    if constexpr (sizeof(T) == 4) return found.f32;
    else return found.f64;
}

// One video as the caller has it: match [steps][clips], drop [clips], skip [steps] or null.
template <class T> struct Video {
    const T *match, *drop, *skip;
    int64_t clips;
    int64_t *labels;  // [clips], or null: cost only
    T cost;
};

struct Options {
    bool contiguous;
    int64_t block;   // clips per block; 0: chosen
    int64_t window;  // blocks kept at a time; 0: all
    int workers;
};

// Costs of up to LANES videos, padded and interleaved (or of one video, padded).
template <class T> struct Padded {
    Scratch memory;
    typename Forward<T>::Costs costs;

    Padded(const Layout<T> &layout, std::span<const Video<T>> videos, const Sizes<T> &sizes, Poll &poll)
        : memory(sizeof(T) * static_cast<size_t>(sizes.cost_numbers + sizes.inner_numbers + sizes.begin_numbers)) {
        const Procedure &g = layout.g;
        const int each = layout.videos ? LANES<T> : 1;
        const int64_t stride = sizes.match_stride;
        const int64_t of_step = stride * each;
        T *match = memory.as<T>(), *drop = match + (g.n_steps + 1) * of_step, *skip = drop + of_step;
        const T inf = Forward<T>::INF;
        std::fill_n(match + g.n_steps * of_step, of_step, inf);
        for (int lane = 0; lane < each; ++lane) {
            const bool used = lane < static_cast<int>(videos.size());
            const int64_t clips = used ? videos[lane].clips : 0;
            auto put = [&](T *to, const T *from) {
                if (each == 1) {
                    std::fill(std::copy_n(from, clips, to), to + stride, inf);
                    return;
                }
                for (int64_t j = 0; j < clips; ++j) to[j * each + lane] = from[j];
                for (int64_t j = clips; j < stride; ++j) to[j * each + lane] = inf;
            };
            for (int k = 0; k < g.n_steps; ++k) {
                poll(stride);
                put(match + k * of_step, used ? videos[lane].match + k * clips : nullptr);
            }
            put(drop, used ? videos[lane].drop : nullptr);
            for (int k = 0; k <= g.n_steps; ++k)
                skip[k * each + lane] = used && k < g.n_steps && videos[lane].skip ? videos[lane].skip[k] : inf;
        }
        const bool skips = std::any_of(videos.begin(), videos.end(), [](const Video<T> &v) { return v.skip; });
        T *inner_match = match + sizes.cost_numbers;
        for (int64_t row = 0; row < layout.packing.n_rows(); ++row) {
            poll(stride * LANES<T>);
            interleave_for<T>()(match, stride, layout.packing.row_steps.data() + row * layout.packing.lanes,
                                inner_match + row * stride * LANES<T>);
        }
        T *begin = sizes.begin_numbers ? inner_match + sizes.inner_numbers : nullptr;
        if (begin) {
            std::fill_n(begin, sizes.begin_numbers, T(0));
            poll(g.states());
            for (int64_t s = 0; s < g.states(); ++s) begin[layout.packing.state_place[s]] = g.begin_cost<T>(s);
        }
        costs = {match, drop, skips ? skip : nullptr, inner_match, begin, stride};
    }
};

template <class T> void solve_together(const Procedure &g, std::span<Video<T>> videos, bool in_lanes, Options o, Poll &poll) {
    int64_t longest = 0;
    for (const Video<T> &v : videos) longest = std::max(longest, v.clips);
    const Layout<T> layout(g, in_lanes, poll);
    const Sizes<T> sizes(layout, longest, o.block);
    const Padded<T> padded(layout, std::span<const Video<T>>(videos), sizes, poll);
    const bool labels = videos[0].labels;
    const int64_t window = o.window ? o.window : sizes.blocks;
    Forward<T> forward(layout, sizes, advance_for<T>(), padded.costs, longest, o.contiguous, window,
                       labels && window < sizes.blocks, o.workers, poll);
    for (size_t lane = 0; lane < videos.size(); ++lane) {
        Video<T> &v = videos[lane];
        v.cost = forward.best(g.ideals() - 1, v.clips, static_cast<int>(lane));
        if (labels && v.cost < Forward<T>::INF) Traceback<T>(forward, v.clips, static_cast<int>(lane), v.labels).run();
    }
}

template <class T> void solve_one(const Procedure &g, Video<T> &video, Options o, Poll &poll) {
    solve_together(g, std::span<Video<T>>(&video, 1), false, o, poll);
}

// Many videos, `lanes` of about equal length at a time, shared out over the workers: ask(those of a batch) finds their costs.
template <class Video, class Ask> void side_by_side(std::vector<Video> &videos, int64_t lanes, int workers, Poll &poll, Ask ask) {
    const int64_t count = static_cast<int64_t>(videos.size()), batches = (count + lanes - 1) / lanes;
    std::vector<int64_t> order(videos.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return videos[a].clips > videos[b].clips; });
    std::atomic<int64_t> next{0};
    run_team(std::min<int64_t>(workers, batches), poll, [&](int64_t, int64_t) {
        for (int64_t b; (b = next++) < batches;) {
            const int64_t begin = b * lanes, end = std::min(begin + lanes, count);
            std::vector<Video> batch;
            for (int64_t i = begin; i < end; ++i) batch.push_back(videos[order[i]]);
            ask(batch);
            for (int64_t i = begin; i < end; ++i) videos[order[i]].cost = batch[i - begin].cost;
        }
    });
}

// Many videos of one procedure.
template <class T> void solve_many(const Procedure &g, std::vector<Video<T>> &videos, Options o, Poll &poll) {
    side_by_side(videos, LANES<T>, o.workers, poll,
                 [&](std::vector<Video<T>> &batch) { solve_together<T>(g, batch, true, {o.contiguous, o.block, 0, 1}, poll); });
}

}  // namespace g2v
