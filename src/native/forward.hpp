// The forward pass: the best cost of every ideal after every clip, block of clips by block of clips.
//
// A block is a table [groups][width][LANES] of some clips, a window is what is kept of the
// blocks at one time: all of them (full mode), a few (low-memory mode: the state at the start of each window is kept, and
// windows are run again for the traceback), or one (cost only).
#pragma once
#include <atomic>
#include <limits>

#include "procedure.hpp"
#include "scratch.hpp"
#include "watch.hpp"

namespace g2v {

inline int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// How the ideals of a procedure lie in vectors: lanes are ideals of one video, or videos.
template <class T> struct Layout {
    static constexpr int L = LANES<T>;
    const Procedure &g;
    bool videos;
    const Packing &packing;

    Layout(const Procedure &procedure, bool lanes_are_videos, Poll &poll)
        : g(procedure), videos(lanes_are_videos), packing(procedure.packing(lanes_are_videos ? 1 : L, poll)) {}
    int64_t groups() const { return packing.groups(); }
    int64_t n_slots() const { return packing.n_slots(); }
    int64_t ideal_place(int64_t ideal, int lane) const {
        return videos ? packing.ideal_place[ideal] * L + lane : packing.ideal_place[ideal];
    }
    int64_t state_place(int64_t state, int lane) const {
        return videos ? packing.state_place[state] * L + lane : packing.state_place[state];
    }
};

template <class T> struct Sizes {
    int64_t width, row, blocks, block_numbers, start_numbers, cost_numbers, inner_numbers, begin_numbers, match_stride;

    // `clips_per_block` 0: so many that a block takes about a megabyte, but at least 8.
    Sizes(const Layout<T> &layout, int64_t n_clips, int64_t clips_per_block) {
        constexpr int64_t L = LANES<T>, budget = 1 << 20;
        const int64_t fitting = budget / (layout.groups() * L * static_cast<int64_t>(sizeof(T)));
        width = clips_per_block ? round_up(clips_per_block, L) : std::clamp<int64_t>(fitting / 8 * 8, 8, 4096);
        width = std::min(width, round_up(n_clips + 1, L));
        blocks = n_clips / width + 1;  // columns 0 .. n_clips
        row = width + 2;               // an odd number of cache lines: groups that are read together do not push one another out
        block_numbers = layout.groups() * row * L;
        start_numbers = (layout.groups() + layout.n_slots()) * L;
        match_stride = round_up(n_clips, L) + L;
        const int64_t plain = (layout.g.n_steps + 2) * match_stride + layout.g.n_steps + 1;
        cost_numbers = round_up(plain, L) * (layout.videos ? L : 1);
        begin_numbers = layout.g.state_cost.empty() ? 0 : layout.n_slots() * (layout.videos ? 1 : L);
        inner_numbers = layout.packing.n_rows() * match_stride * L;
    }
    // Bytes needed with `window` blocks kept at a time.
    int64_t bytes(int64_t window, bool checkpoints) const {
        const int64_t starts = 1 + (checkpoints ? (blocks + window - 1) / window : 0);
        return static_cast<int64_t>(sizeof(T)) *
               (window * block_numbers + starts * start_numbers + cost_numbers + inner_numbers + begin_numbers);
    }
};

template <class T> class Forward {
public:
    static constexpr T INF = std::numeric_limits<T>::infinity();
    static constexpr int L = LANES<T>;

    // Costs as in Job: padded, with one infinite row more; of one video, or of LANES videos interleaved.
    struct Costs {
        const T *match, *drop, *skip;  // skip may be null
        const T *inner_match;
        const T *begin;  // as in Job; may be null
        int64_t match_stride;
    };

    Forward(const Layout<T> &layout, const Sizes<T> &sizes, Advance<T> advance, Costs costs, int64_t n_clips, bool contiguous,
            int64_t window, bool checkpoints, int workers, Poll &poll)
        : poll_(poll), layout_(layout), sizes_(sizes), g_(layout.g), advance_(advance), costs_(costs), n_clips_(n_clips),
          contiguous_(contiguous), each_(layout.videos ? L : 1), window_(std::min(window, sizes.blocks)), workers_(workers),
          checkpoints_(checkpoints), table_(sizeof(T) * static_cast<size_t>(window_ * sizes.block_numbers)),
          start_(sizeof(T) * static_cast<size_t>(sizes.start_numbers)),
          saved_(checkpoints ? sizeof(T) * static_cast<size_t>(sizes.start_numbers * windows()) : 1) {
        begin();
        for (int64_t w = 0; w < windows(); ++w) {
            if (checkpoints_) std::copy_n(column(), sizes_.start_numbers, saved(w));
            run_window(w);
        }
    }

    // Best of an ideal after `clip` clips, which lie in the current window (its end included).
    T best(int64_t ideal, int64_t clip, int lane) const {
        const int64_t place = layout_.ideal_place(ideal, lane), c = clip - window_first();
        if (c < sizes_.width) return block(0)[(place / L * sizes_.row + c) * L + place % L];  // spares a division
        if (c == window_ * sizes_.width) return column()[place];
        return block(c / sizes_.width)[(place / L * sizes_.row + c % sizes_.width) * L + place % L];
    }
    // Copy best[ideal, first .. last] to `out`.
    void best_row(int64_t ideal, int64_t first, int64_t last, int lane, T *out) const {
        const int64_t place = layout_.ideal_place(ideal, lane);
        for (int64_t c = first - window_first(); c <= last - window_first();) {
            if (c == window_ * sizes_.width) {
                *out = column()[place];
                return;
            }
            const int64_t b = c / sizes_.width, begin = c % sizes_.width;
            const int64_t count = std::min(last - window_first() - c + 1, sizes_.width - begin);
            const T *row = block(b) + (place / L * sizes_.row + begin) * L + place % L;
            for (int64_t i = 0; i < count; ++i) out[i] = row[i * L];
            out += count;
            c += count;
        }
    }
    // The value of a state at the first column of the current window.
    T start_of(int64_t state, int lane) const {
        return current_ == 0 ? INF : saved(current_)[layout_.groups() * L + layout_.state_place(state, lane)];
    }
    int64_t window_first() const { return current_ * window_ * sizes_.width; }

    // Make the window that holds clip `clip` (> 0) and the column before it the current one.
    void want(int64_t clip) {
        if (clip > window_first() || current_ == 0) return;
        const int64_t w = current_ - 1;
        std::copy_n(saved(w), sizes_.start_numbers, column());
        run_window(w);
    }

    const Procedure &procedure() const { return g_; }
    Poll &poll() const { return poll_; }
    bool contiguous() const { return contiguous_; }
    T match(int step, int64_t clip, int lane) const {  // clip counted from 1
        return costs_.match[(step * costs_.match_stride + clip - 1) * each_ + (each_ == 1 ? 0 : lane)];
    }
    T drop(int64_t clip, int lane) const { return costs_.drop[(clip - 1) * each_ + (each_ == 1 ? 0 : lane)]; }
    bool skips() const { return costs_.skip; }
    T skip(int step, int lane) const { return costs_.skip[step * each_ + (each_ == 1 ? 0 : lane)]; }

private:
    Poll &poll_;
    const Layout<T> &layout_;
    const Sizes<T> &sizes_;
    const Procedure &g_;
    Advance<T> advance_;
    Costs costs_;
    int64_t n_clips_;
    bool contiguous_;
    int each_;  // numbers per cost
    int64_t window_;
    int workers_;
    bool checkpoints_;
    Scratch table_;
    Scratch start_;  // the column before the next block [groups][LANES], and the value of every state there
    Scratch saved_;  // the same at the start of each window
    int64_t current_ = 0;

    int64_t windows() const { return (sizes_.blocks + window_ - 1) / window_; }
    T *block(int64_t b) const { return table_.as<T>() + b * sizes_.block_numbers; }
    T *column() const { return start_.as<T>(); }
    T *saved(int64_t w) const { return saved_.as<T>() + w * sizes_.start_numbers; }

    // Before the first clip: nothing is done, unless steps are waived.
    void begin() {
        T *first = column();
        std::fill_n(first, sizes_.start_numbers, INF);
        for (int lane = 0; lane < each_; ++lane) first[layout_.ideal_place(0, lane)] = 0;
        if (!costs_.skip) return;
        for (int64_t ideal = 1; ideal < g_.ideals(); ++ideal) {
            if (ideal % 4096 == 4095) poll_(4096 * 8 * each_);
            for (int64_t s = g_.state_start[ideal]; s < g_.state_start[ideal + 1]; ++s)
                for (int lane = 0; lane < each_; ++lane) {
                    T &here = first[layout_.ideal_place(ideal, lane)];
                    const T from = first[layout_.ideal_place(g_.state_from[s], lane)];
                    here = std::min(here, from + skip(g_.state_step[s], lane));
                }
        }
    }

    void run_window(int64_t w) {
        current_ = w;
        for (int64_t group = 0; group < layout_.groups(); ++group)
            std::copy_n(column() + group * L, L, block(0) + group * sizes_.row * L);
        // A thread takes every n-th block; it follows the thread of the block before, piece by piece of the groups. A
        // piece is no more than a few milliseconds of work.
        const int64_t wanted = std::min<int64_t>(workers_, window_), groups = layout_.groups();
        const int64_t most =
            std::max<int64_t>(Poll::OFTEN * groups / std::max<int64_t>(layout_.n_slots() * L * sizes_.width, 1), 1);
        const int64_t piece = std::min(wanted == 1 ? groups : std::max<int64_t>(groups / 256, 1), most);
        std::vector<std::atomic<int64_t>> done(static_cast<size_t>(window_));  // groups done, of each block
        run_team(wanted, poll_, [&](int64_t me, int64_t team) {
            try {
                for (int64_t b = me; b < window_ && to_do(b) > 0; b += team) {
                    const Job<T> job = job_for(b);
                    for (int64_t begin = 0; begin < groups; begin += piece) {
                        const int64_t end = std::min(begin + piece, groups);
                        if (b > 0) wait_for(done[b - 1], end);
                        poll_((layout_.packing.group_slot[end] - layout_.packing.group_slot[begin] + end - begin) * L *
                              job.clips);
                        advance_(job, begin, end);
                        done[b].store(end, std::memory_order_release);
                        done[b].notify_one();
                    }
                }
            } catch (...) {  // nobody shall wait for what does not come
                poll_.stop();
                for (auto &progress : done) {
                    progress.store(groups, std::memory_order_release);
                    progress.notify_all();
                }
                throw;
            }
        });
    }

    // Wait until another thread has come to `end`: it is mostly there already, or soon; else sleep.
    static void wait_for(const std::atomic<int64_t> &progress, int64_t end) {
        int64_t now = progress.load(std::memory_order_acquire);
        for (int spin = 0; now < end && spin < 2000; ++spin) now = progress.load(std::memory_order_acquire);
        while (now < end) {
            progress.wait(now, std::memory_order_acquire);
            now = progress.load(std::memory_order_acquire);
        }
    }

    int64_t to_do(int64_t b) const {  // clips of block b of the current window
        return std::clamp<int64_t>(n_clips_ - window_first() - b * sizes_.width, 0, sizes_.width);
    }

    Job<T> job_for(int64_t b) const {
        const int64_t clips = to_do(b);
        const bool last = b + 1 == window_;
        return {.videos = layout_.videos,
                .contiguous = contiguous_,
                .skips = costs_.skip != nullptr,
                .slots = layout_.packing.view(),
                .match = costs_.match,
                .match_stride = costs_.match_stride,
                .drop = costs_.drop,
                .skip = costs_.skip,
                .inner_match = costs_.inner_match,
                .begin = costs_.begin,
                .carry = column() + layout_.groups() * L,
                .block = block(b),
                .next = clips < sizes_.width ? nullptr
                        : last               ? column()
                                             : block(b + 1),
                .next_stride = last ? 1 : sizes_.row,
                .width = sizes_.width,
                .row = sizes_.row,
                .first = window_first() + b * sizes_.width,
                .clips = clips};
    }
};

}  // namespace g2v
