// Transformer layers in whole numbers: what their kernels work on. Plain pointers only, so that the kernels can be
// compiled once per instruction set and chosen at run time.
#pragma once
#include <cstdint>

namespace g2v {

// A matrix, packed for one instruction set: [panels][groups][columns of a panel] lanes of 32 bits. A lane holds a group of
// inputs (two of 16 bits or four of 8) of one column, which is one output.
struct Matrix {
    int64_t groups, panels;
    const int32_t *packed;
    const int32_t *total;  // [columns]: the sum of the weights; keys and values need none
    const float *scale;    // [columns]: what a sum is multiplied by, after the scale of its row
    const float *bias;     // [columns]: what is added then; to keys and values nothing
};

// Rows of whole numbers: [rows][groups] lanes. Each row has a scale and a number that stands for 0; its largest number is
// kept apart, as it is.
struct Cells {
    int32_t *lanes, *zero;
    float *scale;
    int32_t *apart_at;  // which input that is
    float *apart;
};

// A linear layer, and where its inputs are rounded.
struct LinearJob {
    Matrix matrix;
    int64_t in, rows;
    const float *input;
    int64_t input_stride;
    Cells cells;
    float *output;  // [rows][output_stride], whole panels
    int64_t output_stride;
};

struct Norm {
    const float *weight, *bias;
};

// One layer over the rows of a text. The width of a head is a multiple of the kernel's lanes.
struct LayerJob {
    int64_t rows, width, inner, heads, block;  // rows are taken by blocks after the attention
    float epsilon;
    Matrix qkv, out, up, down;
    Norm norm1, norm2;
    const float *input;  // [rows][width]
    float *output;       // [rows][width]

    Cells cells;  // lanes: [rows][groups of qkv], or [block] with those of the largest matrix
    float *read;  // [rows][read_stride]: query, key and content
    int64_t read_stride;
    float *mixed;                               // [rows][width]
    float *hidden, *raised, *lowered;           // [block][columns of out], of up, of down
    int32_t *keys, *values, *queries, *shares;  // of one head: see encoder.cpp
    float *key_scale, *value_scale, *query_scale, *scores, *part;
};

// Sums of rows of tables, one row of each, through the GELU; and their products with numbers of both ends of a pair.
constexpr int MEETINGS = 2;
struct SumsJob {
    int64_t dependents, entities, tables, width;  // the width is a multiple of the kernel's lanes
    const float *const *table;                    // [tables]: [rows][width]
    const int64_t *rows;                          // [dependents][tables][entities]: which row
    const float *dependent, *head;                // [dependents][MEETINGS][width], [entities][MEETINGS][width]
    float *output;                                // [dependents][entities][width]
    float *met;                                   // [MEETINGS][dependents][entities]
};

struct EncoderKernels {
    const char *name;
    int lanes;              // numbers that are worked on at once: 8 or 16
    int group;              // inputs per lane of a matrix of weights: 2 or 4
    int columns;            // of a panel of weights
    int attention_columns;  // of a panel of keys or values
    void (*linear)(const LinearJob &);
    void (*layer)(const LayerJob &);
    void (*gelu)(float *, int64_t);  // of a multiple of lanes
    void (*sums)(const SumsJob &);
};
constexpr int TILE_ROWS = 6;    // rows that are multiplied at once
constexpr int WHOLE_ROWS = 16;  // rows of cells are there up to a multiple of so many

EncoderKernels encoder_kernels_base();
#if defined(G2V_HAVE_AVX2)
EncoderKernels encoder_kernels_avx2();
#endif
#if defined(G2V_HAVE_AVX512VNNI)
EncoderKernels encoder_kernels_avx512vnni();
#endif
#if defined(G2V_HAVE_AMX)
EncoderKernels encoder_kernels_amx();
#endif

}  // namespace g2v
