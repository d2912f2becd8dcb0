// The lattice of ideals of a flow graph, as flat arrays in level order.
//
// An ideal is a set of steps that holds, with every step, everything that must come before it. Level k holds the ideals
// of k steps; a state is an ideal together with one of its maximal elements, the step that was done last.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "watch.hpp"

namespace g2v {

struct Lattice {
    std::vector<std::uint64_t> masks;       // [ideals * words], bit i%64 of word i/64 = step i is done
    std::vector<std::int64_t> level_start;  // [steps + 2], ideals of each level
    std::vector<std::int64_t> state_start;  // [ideals + 1], states of each ideal
    std::vector<std::int32_t> state_step;   // [states], last step, ascending within an ideal
    std::vector<std::int32_t> state_from;   // [states], index of the ideal without that step
};

namespace detail {

// Open-addressing set of the ideals of one level; an ideal's number is the order in which it was first seen.
// `FixedWords` > 0 makes the width of a mask a constant, so that masks of one word cost one comparison.
template <std::size_t FixedWords> class IdealSet {
public:
    explicit IdealSet(std::size_t words) : words_(FixedWords ? FixedWords : words), slots_(64, -1) {}

    std::size_t words() const { return FixedWords ? FixedWords : words_; }
    std::size_t size() const { return size_; }
    const std::uint64_t *operator[](std::size_t number) const { return &masks_[number * words()]; }

    void clear() {
        std::fill(slots_.begin(), slots_.end(), -1);
        masks_.clear();
        size_ = 0;
    }

    // Number of `mask` in this set, which takes it in if it is new.
    std::int32_t insert(const std::uint64_t *mask) {
        if (2 * (size_ + 1) > slots_.size()) grow();
        for (std::size_t slot = home(mask);; slot = (slot + 1) & (slots_.size() - 1)) {
            const std::int32_t number = slots_[slot];
            if (number < 0) {
                slots_[slot] = static_cast<std::int32_t>(size_);
                masks_.insert(masks_.end(), mask, mask + words());
                return static_cast<std::int32_t>(size_++);
            }
            if (std::equal(mask, mask + words(), (*this)[static_cast<std::size_t>(number)])) return number;
        }
    }

private:
    std::size_t home(const std::uint64_t *mask) const {
        std::uint64_t hash = 0;
        for (std::size_t w = 0; w < words(); ++w) {
            hash = (hash ^ mask[w]) * 0x9E3779B97F4A7C15ull;
            hash ^= hash >> 32;
        }
        return static_cast<std::size_t>(hash) & (slots_.size() - 1);
    }

    void grow() {
        slots_.assign(slots_.size() * 2, -1);
        for (std::size_t number = 0; number < size_; ++number) {
            std::size_t slot = home((*this)[number]);
            while (slots_[slot] >= 0) slot = (slot + 1) & (slots_.size() - 1);
            slots_[slot] = static_cast<std::int32_t>(number);
        }
    }

    std::size_t words_;
    std::size_t size_ = 0;
    std::vector<std::uint64_t> masks_;
    std::vector<std::int32_t> slots_;  // numbers of ideals, -1 = free; a power of two of them, at most half full
};

constexpr std::size_t SORTED_AT_A_STROKE = 1 << 18;  // some 25 ms

struct Arrival {
    std::int32_t ideal;  // number in the level's IdealSet
    std::int32_t step;
    std::int32_t from;
};

// `before` is [steps * words], the steps that must be done before each step.
template <std::size_t FixedWords>
Lattice build_lattice(std::size_t steps, std::size_t words, const std::uint64_t *before, std::int64_t limit, Poll &poll) {
    if (FixedWords) words = FixedWords;
    // Indices of ideals are 32 bits wide; a larger limit cannot be honoured.
    limit = std::min<std::int64_t>(limit, std::numeric_limits<std::int32_t>::max());
    const auto refuse_beyond_limit = [&](std::size_t ideals) {
        if (static_cast<std::int64_t>(ideals) > limit) throw std::length_error("more ideals than the limit");
    };
    refuse_beyond_limit(1);

    Lattice lattice;
    lattice.masks.assign(words, 0);
    lattice.level_start = {0, 1};
    lattice.state_start = {0, 0};

    IdealSet<FixedWords> found(words);
    std::vector<Arrival> arrivals;
    std::vector<std::int32_t> order, rank;
    std::vector<std::uint64_t> next(words);
    for (std::size_t level = 0; level < steps; ++level) {
        const auto begin = static_cast<std::size_t>(lattice.level_start[level]);
        const auto end = static_cast<std::size_t>(lattice.level_start[level + 1]);

        // Every way to do one more step. Steps are the outer loop, so that arrivals come in ascending order of step.
        found.clear();
        arrivals.clear();
        for (std::size_t step = 0; step < steps; ++step) {
            const std::size_t word = step / 64;
            const std::uint64_t bit = std::uint64_t{1} << (step % 64);
            const std::uint64_t *needed = before + step * words;
            for (std::size_t first = begin; first < end; first += 4096) {
                const std::size_t last = std::min(end, first + 4096);
                for (std::size_t ideal = first; ideal < last; ++ideal) {
                    const std::uint64_t *mask = &lattice.masks[ideal * words];
                    std::uint64_t obstacles = mask[word] & bit;
                    for (std::size_t w = 0; w < words; ++w) obstacles |= needed[w] & ~mask[w];
                    if (obstacles) continue;
                    std::copy(mask, mask + words, next.begin());
                    next[word] |= bit;
                    arrivals.push_back(
                        {found.insert(next.data()), static_cast<std::int32_t>(step), static_cast<std::int32_t>(ideal)});
                }
                refuse_beyond_limit(end + found.size());
                if (last - first == 4096) poll(4096 * 16 * static_cast<std::int64_t>(words));
            }
        }
        if (arrivals.empty()) throw std::invalid_argument("the precedences have a cycle");

        // Ideals of a level in ascending order of their masks read as integers.
        const std::size_t n_found = found.size();
        order.resize(n_found);
        for (std::size_t i = 0; i < n_found; ++i) order[i] = static_cast<std::int32_t>(i);
        const auto smaller = [&](std::int32_t a, std::int32_t b) {
            const std::uint64_t *left = found[static_cast<std::size_t>(a)];
            const std::uint64_t *right = found[static_cast<std::size_t>(b)];
            std::size_t w = words - 1;
            while (w > 0 && left[w] == right[w]) --w;
            return left[w] < right[w];
        };
        // A small level is sorted at a stroke; to count the comparisons costs a tenth of the building.
        if (n_found <= SORTED_AT_A_STROKE) {
            std::sort(order.begin(), order.end(), smaller);
        } else {
            std::int64_t compared = 0;
            std::sort(order.begin(), order.end(), [&](std::int32_t a, std::int32_t b) {
                if (++compared % 4096 == 0) poll(4096 * 8);
                return smaller(a, b);
            });
        }
        rank.resize(n_found);
        for (std::size_t i = 0; i < n_found; ++i) {
            const auto number = static_cast<std::size_t>(order[i]);
            rank[number] = static_cast<std::int32_t>(i);
            lattice.masks.insert(lattice.masks.end(), found[number], found[number] + words);
        }
        lattice.level_start.push_back(static_cast<std::int64_t>(end + n_found));

        // Counting sort of the arrivals by ideal; it is stable, so steps stay in ascending order.
        const std::int64_t first_state = lattice.state_start.back();
        lattice.state_start.resize(end + n_found + 1, 0);
        std::int64_t *count = &lattice.state_start[end + 1];
        for (const Arrival &arrival : arrivals) ++count[rank[static_cast<std::size_t>(arrival.ideal)]];
        std::int64_t total = first_state;
        for (std::size_t i = 0; i < n_found; ++i) {
            const std::int64_t here = count[i];
            count[i] = total;  // where the ideal's next state goes; its end once all are placed
            total += here;
        }
        lattice.state_step.resize(static_cast<std::size_t>(total));
        lattice.state_from.resize(static_cast<std::size_t>(total));
        for (const Arrival &arrival : arrivals) {
            const auto state = static_cast<std::size_t>(count[rank[static_cast<std::size_t>(arrival.ideal)]]++);
            lattice.state_step[state] = arrival.step;
            lattice.state_from[state] = arrival.from;
        }
    }
    return lattice;
}

}  // namespace detail

// Build the lattice of ideals from direct predecessors (`n_steps` masks of ceil(n_steps / 64) words each).
// Throws std::length_error beyond `limit` ideals, std::invalid_argument where the masks have the wrong size or a cycle.
inline Lattice build_lattice(int n_steps, const std::vector<std::uint64_t> &predecessor_masks, std::int64_t limit, Poll &poll) {
    if (n_steps < 1) throw std::invalid_argument("a flow graph needs at least one step");
    const auto steps = static_cast<std::size_t>(n_steps);
    const std::size_t words = (steps + 63) / 64;
    if (predecessor_masks.size() != steps * words) throw std::invalid_argument("predecessor masks of the wrong size");
    return words == 1 ? detail::build_lattice<1>(steps, words, predecessor_masks.data(), limit, poll)
                      : detail::build_lattice<0>(steps, words, predecessor_masks.data(), limit, poll);
}

}  // namespace g2v
