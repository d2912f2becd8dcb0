// What the relaxation behind the anytime search works on: plain pointers only, so that it can be compiled once per
// instruction set. What it stands for is told in graph2vid/alignment/relaxed.py.
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

using Relax = void (*)(const Relaxed &);
Relax relax_base();
#if defined(G2V_HAVE_AVX2)
Relax relax_avx2();
#endif

}  // namespace g2v
