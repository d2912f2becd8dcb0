// What all kernels share. Compiled at run time, once for each combination that is needed:
//   DOUBLE      0 float, 1 double
//   SMOOTHING   0 hard minimum, 1 softmin, 2 smoothmin
//   CONTIGUOUS  1 a step is one segment of clips, 0 background may lie inside it
//   KEEP        1 the table keeps every column, 0 no gradient is wanted
//   STARTS      1 the gradient is that of beginning a step at a clip, in place of showing it
//
// The table has one column per clip, and one before the first. Values are kept relative to the cheapest label of each
// clip, and every CHUNK clips to the best ideal, so that float stays exact where it matters however long the video is.
// Infinite costs stay infinite.

#if DOUBLE
typedef double real;
#define INFINITE __longlong_as_double(0x7ff0000000000000ll)
__device__ __forceinline__ real exp2_(real x) { return exp2(x); }
__device__ __forceinline__ real log2_(real x) { return log2(x); }
__device__ __forceinline__ real inverse_(real x) { return 1 / x; }
#else
typedef float real;
#define INFINITE __int_as_float(0x7f800000)
#endif

#define HARD (SMOOTHING == 0)
#define SMOOTH (SMOOTHING == 2)
#define CHUNK 32

#define NOT_A_NUMBER __longlong_as_double(0x7ff8000000000000ll)

struct Batch {
    const void *graphs;    // what a block works with: a Graph, or a Pack
    const int *graph;      // [blocks]: which of them
    const int *start;      // [blocks + 1]: where the videos of each block begin in what follows
    const int *video;      // [videos]
    const int *clips;      // [videos]
    const long long *table_at;    // [blocks]
    const long long *carry_at;    // [blocks]
    const long long *spilled_at;  // [blocks]
    const real *resumed;   // a column of values that a part of a video begins with
    real *to_resume;       // and what the next part begins with; null: there is none
    int rows, columns;
    int first, last;       // clips first ... last - 1 are to be done
    const real *match;     // [videos][rows][columns]
    const real *drop;      // [videos][columns]
    const real *skip;      // [videos][rows]
    real *cost;            // [videos]
    real *match_grad, *drop_grad, *skip_grad;
    real *table;           // columns from `first` on; null: none is needed
    real *carry;           // gradients of the states, then of the ideals, between two parts of a video
    real *spilled;
    real *shift;           // [blocks][ceil(columns / CHUNK)]: what the values lose before each chunk
    double *base;          // [blocks]: what they have lost so far
    real *own_cost;        // [videos]: what is in `cost`, which others may change before the backward pass; with packs
    double gamma;
    const real *above;     // what arrives for each cost, `above_stride` numbers apart; null: 1
    long long above_stride;
};
// What the gradients of a video are multiplied by.
__device__ __forceinline__ real arrives(const Batch &batch, long long video) {
    return batch.above ? batch.above[video * batch.above_stride] : (real)1;
}
