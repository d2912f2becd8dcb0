// The tags of words with the highest sum of scores.
#pragma once
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

namespace g2v {

// Viterbi over scores [words][tags] and what it counts to go from a tag to the next one: steps [tags][tags]. Of equals the first.
inline std::vector<int64_t> best_path(const float *scores, int64_t words, int64_t tags, const float *steps, const float *start) {
    std::vector<int64_t> found(static_cast<size_t>(words));
    if (words < 1) return found;
    std::vector<float> best(static_cast<size_t>(tags)), next(best);
    std::vector<int32_t> came(static_cast<size_t>(words * tags));
    for (int64_t to = 0; to < tags; ++to) best[static_cast<size_t>(to)] = scores[to] + start[to];
    for (int64_t word = 1; word < words; ++word) {
        int32_t *from_tag = came.data() + word * tags;
        for (int64_t to = 0; to < tags; ++to) next[static_cast<size_t>(to)] = steps[to] + best[0];
        for (int64_t from = 1; from < tags; ++from)
            for (int64_t to = 0; to < tags; ++to) {
                const float path = steps[from * tags + to] + best[static_cast<size_t>(from)];
                float &highest = next[static_cast<size_t>(to)];
                from_tag[to] = path > highest ? static_cast<int32_t>(from) : from_tag[to];
                highest = path > highest ? path : highest;
            }
        for (int64_t to = 0; to < tags; ++to) next[static_cast<size_t>(to)] += scores[word * tags + to];
        std::swap(best, next);
    }
    int64_t tag = std::max_element(best.begin(), best.end()) - best.begin();
    for (int64_t word = words - 1; word >= 0; --word) {
        found[static_cast<size_t>(word)] = tag;
        tag = came[static_cast<size_t>(word * tags + tag)];
    }
    return found;
}

}  // namespace g2v
