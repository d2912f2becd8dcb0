// What the anytime search has its kernels work on: plain pointers only, so that they can be compiled once per instruction
// set. What it stands for is told in graph2vid/alignment/relaxed.py and beam.py.
#pragma once
#include "job.hpp"

namespace g2v {

// One video; rows have a number for each step, and as many more as fill a vector: steps that cannot be shown.
struct Relaxed {
    Pause pause;
    int64_t clips, width;
    bool contiguous;
    const double *match, *drop;  // [clips][width], [clips]
    const double *begin, *end;   // [clips + 1][width], what a segment that begins, or ends, before a clip costs beside
    double *free, *going;        // [clips + 1], [clips + 1][width]: what the rest costs at the least
};

// Segments of one step, each after one of the points of the video where they may begin.
struct Segments {
    const double *before;  // [to - from], what the clips before such a point cost
    double waived;         // beside it
    int64_t from, to;
    const double *match, *drop;   // [clips]
    const double *going, *given;  // [clips + 1], what the rest costs at the least is their sum
    bool contiguous;
    double upper;  // whatever costs as much is of no interest
    double carry;  // what a segment that goes on costs so far
};

struct SearchKernels {
    void (*relax)(const Relaxed &);
    // Add rows of numbers, a multiple of LANES of them.
    void (*add)(double *to, const double *const *rows, int64_t n_rows, int64_t count);
    // The least of the sums of two numbers each, a multiple of LANES of them.
    double (*least_sum)(const double *a, const double *b, int64_t count);
    // Lower `best` to what segments cost that end before clip `at` or later, but not behind `last`; return the first of the points
    // that were not looked at: behind `last`, if segments still go on there.
    int64_t (*follow)(Segments &segments, int64_t at, int64_t last, double *best);
};
const SearchKernels &search_base();
#if defined(G2V_HAVE_AVX2)
const SearchKernels &search_avx2();
#endif

}  // namespace g2v
