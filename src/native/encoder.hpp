// Linear and transformer layers with weights of 8 bits, packed for the instruction set that they run on.
#pragma once
#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "encoder_job.hpp"
#include "scratch.hpp"

#if defined(G2V_HAVE_AMX)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace g2v {

#if defined(G2V_HAVE_AMX)
// Whether the processor multiplies tiles of bytes, and the system lets this process have their registers.
inline bool may_use_tiles() {
    constexpr long ask = 0x1023, tile_data = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
    constexpr unsigned tiles = 1u << 24, of_bytes = 1u << 25;
    unsigned a, b, c, d;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) && (d & tiles) && (d & of_bytes) && !syscall(SYS_arch_prctl, ask, tile_data);
}
#endif

// Those that this processor can run, the fastest first. All of them give the same bytes.
inline const std::vector<EncoderKernels> &encoder_kernels() {
    static const std::vector<EncoderKernels> found = [] {
        std::vector<EncoderKernels> k;
#if defined(G2V_HAVE_AVX512VNNI)
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
            __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
#if defined(G2V_HAVE_AMX)
            if (may_use_tiles()) k.push_back(encoder_kernels_amx());
#endif
            k.push_back(encoder_kernels_avx512vnni());
        }
#endif
#if defined(G2V_HAVE_AVX2)
        if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) k.push_back(encoder_kernels_avx2());
#endif
        k.push_back(encoder_kernels_base());
        return k;
    }();
    return found;
}

// The fastest from a level on that knows vectors of such a width; the last knows all multiples of 8.
inline const EncoderKernels &encoder_kernels_from(size_t level, int64_t width) {
    const std::vector<EncoderKernels> &all = encoder_kernels();
    while (level + 1 < all.size() && width % all[level].lanes != 0) ++level;
    return all[std::min(level, all.size() - 1)];
}

inline int64_t whole(int64_t count, int64_t of) { return (count + of - 1) / of; }

// A matrix [out][in] of 8-bit weights with a scale and a bias per output.
class PackedMatrix {
public:
    static constexpr int64_t MOST_INPUTS = 32768;  // the sums stay below 2^31
    int64_t in, out;

    PackedMatrix(int64_t out_, int64_t in_, const int8_t *weights, const float *scale, const float *bias, const EncoderKernels &k)
        : in(in_), out(out_), groups_(whole(in_, k.group)), panels_(whole(out_, k.columns)) {
        if (in < 1 || out < 1 || in > MOST_INPUTS) throw std::invalid_argument("a matrix of 1 to 32768 inputs is needed");
        const size_t columns = static_cast<size_t>(panels_ * k.columns);
        packed_.resize(static_cast<size_t>(groups_) * columns);
        total_.resize(columns);
        scale_.resize(columns);
        bias_.resize(columns);
        std::copy_n(scale, out, scale_.begin());
        std::copy_n(bias, out, bias_.begin());
        const int bits = 32 / k.group;
        const uint32_t mask = (1u << bits) - 1;
        for (int64_t column = 0; column < out; ++column) {
            const int8_t *row = weights + column * in;
            int32_t *lanes = packed_.data() + (column / k.columns) * groups_ * k.columns + column % k.columns;
            int32_t sum = 0;
            for (int64_t g = 0; g < groups_; ++g) {
                uint32_t lane = 0;
                for (int64_t at = g * k.group, n = 0; n < k.group && at + n < in; ++n) {
                    sum += row[at + n];
                    lane |= (static_cast<uint32_t>(row[at + n]) & mask) << (n * bits);
                }
                lanes[g * k.columns] = static_cast<int32_t>(lane);
            }
            total_[static_cast<size_t>(column)] = sum;
        }
    }

    int64_t groups() const { return groups_; }
    int64_t columns() const { return static_cast<int64_t>(bias_.size()); }
    Matrix view() const { return {groups_, panels_, packed_.data(), total_.data(), scale_.data(), bias_.data()}; }

private:
    int64_t groups_, panels_;
    std::vector<int32_t> packed_, total_;
    std::vector<float> scale_, bias_;
};

// Where things lie in one piece of working memory; all of them are numbers of 32 bits.
class WorkingMemory {
public:
    int64_t place(int64_t count) { return std::exchange(used_, used_ + whole(count, 16) * 16); }
    size_t bytes() const { return 4 * static_cast<size_t>(used_); }

private:
    int64_t used_ = 0;
};

// Rows times a matrix, plus a bias; then the GELU, if it is asked for.
class QuantisedLinear {
public:
    const EncoderKernels &kernels;
    PackedMatrix matrix;
    bool gelu;

    // output [rows][out]
    void operator()(const float *input, int64_t rows, float *output) const {
        WorkingMemory memory;
        const int64_t cells = memory.place(whole(rows, WHOLE_ROWS) * WHOLE_ROWS * matrix.groups()),
                      row_scale = memory.place(rows);
        const int64_t row_zero = memory.place(rows), apart_at = memory.place(rows), apart = memory.place(rows);
        const int64_t panels = memory.place(rows * matrix.columns());
        const Scratch scratch(memory.bytes());
        int32_t *const ints = scratch.as<int32_t>();
        float *const floats = scratch.as<float>();
        const Cells rounded{ints + cells, ints + row_zero, floats + row_scale, ints + apart_at, floats + apart};
        kernels.linear({matrix.view(), matrix.in, rows, input, matrix.in, rounded, floats + panels, matrix.columns()});
        if (gelu) kernels.gelu(floats + panels, rows * matrix.columns());
        for (int64_t row = 0; row < rows; ++row)
            std::copy_n(floats + panels + row * matrix.columns(), matrix.out, output + row * matrix.out);
    }
};

struct NormWeights {
    std::vector<float> weight, bias;
    Norm view() const { return {weight.data(), bias.data()}; }
};

// A transformer layer as BERT has it: attention, two-layer perceptron (GELU by tanh), each added and then normalised.
class QuantisedLayer {
public:
    const EncoderKernels &kernels;
    PackedMatrix qkv, out, up, down;
    NormWeights norm1, norm2;
    int64_t heads;
    float epsilon;

    QuantisedLayer(const EncoderKernels &k, PackedMatrix qkv_, PackedMatrix out_, PackedMatrix up_, PackedMatrix down_,
                   NormWeights norm1_, NormWeights norm2_, int64_t heads_, float epsilon_)
        : kernels(k), qkv(std::move(qkv_)), out(std::move(out_)), up(std::move(up_)), down(std::move(down_)),
          norm1(std::move(norm1_)), norm2(std::move(norm2_)), heads(heads_), epsilon(epsilon_) {
        const int64_t width = out.out;
        if (heads < 1 || width % (8 * heads) != 0) throw std::invalid_argument("the width of a head must be a multiple of 8");
        if (!fits(qkv, width, 3 * width) || !fits(out, width, width) || !fits(up, width, down.in) || !fits(down, up.out, width) ||
            !fits(norm1, width) || !fits(norm2, width))
            throw std::invalid_argument("the parts of a layer do not fit together");
    }

    int64_t width() const { return out.out; }

    // input and output [rows][width]
    void operator()(const float *input, int64_t rows, float *output) const {
        if (rows < 1) return;
        const int64_t block = whole(whole(rows, whole(rows, BLOCK)), TILE_ROWS) * TILE_ROWS, size = width() / heads;
        const int64_t whole_rows = whole(rows, WHOLE_ROWS) * WHOLE_ROWS, whole_block = whole(block, WHOLE_ROWS) * WHOLE_ROWS;
        const int64_t row_columns = whole(rows, kernels.attention_columns) * kernels.attention_columns;
        const int64_t size_columns = whole(size, kernels.attention_columns) * kernels.attention_columns;
        WorkingMemory memory;
        const int64_t cells =
            memory.place(std::max(whole_rows * qkv.groups(), whole_block * std::max({out.groups(), up.groups(), down.groups()})));
        const int64_t row_scale = memory.place(rows), row_zero = memory.place(rows);
        const int64_t apart_at = memory.place(rows), apart = memory.place(rows), read = memory.place(rows * qkv.columns());
        const int64_t mixed = memory.place(rows * width()), hidden = memory.place(block * width());
        const int64_t raised = memory.place(block * up.columns());
        const int64_t lowered = memory.place(block * std::max(out.columns(), down.columns()));
        const int64_t keys = memory.place(row_columns * size / 2), values = memory.place(row_columns / 2 * size_columns);
        const int64_t queries = memory.place(TILE_ROWS * size / 2);
        const int64_t shares = memory.place(std::max(TILE_ROWS * row_columns / 2, size));
        const int64_t key_scale = memory.place(row_columns), value_scale = memory.place(size_columns);
        const int64_t query_scale = memory.place(TILE_ROWS), scores = memory.place(TILE_ROWS * row_columns);
        const int64_t part = memory.place(TILE_ROWS * size_columns);
        const Scratch scratch(memory.bytes());
        const auto ints = [&](int64_t at) { return scratch.as<int32_t>() + at; };
        const auto floats = [&](int64_t at) { return scratch.as<float>() + at; };
        kernels.layer({.rows = rows,
                       .width = width(),
                       .inner = up.out,
                       .heads = heads,
                       .block = block,
                       .epsilon = epsilon,
                       .qkv = qkv.view(),
                       .out = out.view(),
                       .up = up.view(),
                       .down = down.view(),
                       .norm1 = norm1.view(),
                       .norm2 = norm2.view(),
                       .input = input,
                       .output = output,
                       .cells = {ints(cells), ints(row_zero), floats(row_scale), ints(apart_at), floats(apart)},
                       .read = floats(read),
                       .read_stride = qkv.columns(),
                       .mixed = floats(mixed),
                       .hidden = floats(hidden),
                       .raised = floats(raised),
                       .lowered = floats(lowered),
                       .keys = ints(keys),
                       .values = ints(values),
                       .queries = ints(queries),
                       .shares = ints(shares),
                       .key_scale = floats(key_scale),
                       .value_scale = floats(value_scale),
                       .query_scale = floats(query_scale),
                       .scores = floats(scores),
                       .part = floats(part)});
    }

private:
    static constexpr int64_t BLOCK = 64;  // at the most about so many rows

    static bool fits(const PackedMatrix &m, int64_t inputs, int64_t outputs) { return m.in == inputs && m.out == outputs; }
    static bool fits(const NormWeights &norm, int64_t width) {
        return static_cast<int64_t>(norm.weight.size()) == width && static_cast<int64_t>(norm.bias.size()) == width;
    }
};

// Sums of rows of tables [rows][width], one row of each, through the GELU, and what they come to in a pair.
class FeatureSums {
public:
    struct Table {
        int64_t rows;
        std::vector<float> values;
    };
    const EncoderKernels &kernels;
    int64_t width;

    FeatureSums(const EncoderKernels &k, std::vector<Table> tables, int64_t width_)
        : kernels(k), width(width_), tables_(std::move(tables)) {
        if (tables_.empty() || width < 8 || width % 8 != 0)
            throw std::invalid_argument("tables whose width is a multiple of 8 are needed");
        for (const Table &table : tables_) {
            if (static_cast<int64_t>(table.values.size()) != table.rows * width)
                throw std::invalid_argument("the tables are of different widths");
            values_.push_back(table.values.data());
        }
    }
    FeatureSums(const FeatureSums &) = delete;
    FeatureSums &operator=(const FeatureSums &) = delete;

    int64_t tables() const { return static_cast<int64_t>(tables_.size()); }

    void operator()(int64_t dependents, int64_t entities, const int64_t *rows, const float *dependent, const float *head,
                    float *output, float *met) const {
        for (int64_t d = 0; d < dependents; ++d)
            for (int64_t t = 0; t < tables(); ++t) {
                const int64_t *of_table = rows + (d * tables() + t) * entities;
                const int64_t most = tables_[static_cast<size_t>(t)].rows;
                if (std::any_of(of_table, of_table + entities, [most](int64_t row) { return row < 0 || row >= most; }))
                    throw std::invalid_argument("a table has no such row");
            }
        kernels.sums({dependents, entities, tables(), width, values_.data(), rows, dependent, head, output, met});
    }

private:
    std::vector<Table> tables_;
    std::vector<const float *> values_;
};

}  // namespace g2v
