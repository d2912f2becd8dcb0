// Transformer layers in whole numbers: weights of 8 bits, and every row that meets them rounded to 256 levels of its own, its largest number aside; queries, keys, values and shares of the attention rounded to 10 to 13. Sums of products are exact, and the rest
// is done in vectors of one length in one order: every instruction set gives the same bytes.
#include "encoder_job.hpp"
#include "soft_math.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace g2v {
namespace G2V_ARCH {
namespace {

// The vectors that products are summed in: as long as the instruction set has them.
#if defined(__AVX512VNNI__)
constexpr int BYTES = 64;
#elif defined(__AVX2__)
constexpr int BYTES = 32;
#else
constexpr int BYTES = 16;
#endif
constexpr int64_t L = BYTES / 4;
typedef int32_t Sums __attribute__((vector_size(BYTES)));
typedef float Floats __attribute__((vector_size(BYTES)));
typedef int32_t SumsAt __attribute__((vector_size(BYTES), aligned(4), may_alias));
typedef float FloatsAt __attribute__((vector_size(BYTES), aligned(4), may_alias));

// Two numbers of 16 bits per lane.
struct Pairs {
    typedef int16_t Cell;
    static constexpr int GROUP = 2, VECTORS = 2;
    static G2V_INLINE Sums add(Sums sum, Sums a, Sums b) {
#if defined(__AVX512VNNI__)
        return (Sums)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
        return sum + (Sums)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
        return sum + (Sums)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
        return sum + (a << 16 >> 16) * (b << 16 >> 16) + (a >> 16) * (b >> 16);
#endif
    }
};
#if defined(__AVX512VNNI__)
// Four of 8 bits, those of the rows without a sign.
struct Weights {
    typedef uint8_t Cell;
    static constexpr int GROUP = 4, VECTORS = 4;
    static G2V_INLINE Sums add(Sums sum, Sums a, Sums b) {
        return (Sums)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
    }
};
#else
using Weights = Pairs;
#endif

// One panel of columns for R rows of cells.
template <class Kind, bool APART, int R>
G2V_INLINE void tile(const Matrix &m, int64_t panel, const Cells &cells, int64_t row, float *out, int64_t out_stride) {
    constexpr int N = Kind::VECTORS;
    const int64_t column = panel * N * L;
    const int32_t *lanes = cells.lanes + row * m.groups;
    Sums sum[R][N];
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) {
        const Sums total = *reinterpret_cast<const SumsAt *>(m.total + column + v * L);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) sum[r][v] = total * -cells.zero[row + r];
    }
    const int32_t *weights = m.packed + column * m.groups;
    for (int64_t g = 0; g < m.groups; ++g, weights += N * L) {
        Sums w[N];
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) w[v] = *reinterpret_cast<const SumsAt *>(weights + v * L);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            const Sums a = Sums{} + lanes[r * m.groups + g];
#pragma GCC unroll 8
            for (int v = 0; v < N; ++v) sum[r][v] = Kind::add(sum[r][v], a, w[v]);
        }
    }
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) {
        const Floats scale = *reinterpret_cast<const FloatsAt *>(m.scale + column + v * L);
        const Floats bias = *reinterpret_cast<const FloatsAt *>(m.bias + column + v * L);
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
            Floats found = __builtin_convertvector(sum[r][v], Floats) * cells.scale[row + r];
            if constexpr (APART) {
                constexpr int bits = 32 / Kind::GROUP;
                const int at = cells.apart_at[row + r], place = at % Kind::GROUP;
                const int32_t *group = m.packed + column * m.groups + at / Kind::GROUP * N * L + v * L;
                const Sums w = *reinterpret_cast<const SumsAt *>(group) << (32 - bits * (place + 1)) >> (32 - bits);
                found += __builtin_convertvector(w, Floats) * cells.apart[row + r];
            }
            *reinterpret_cast<FloatsAt *>(out + (row + r) * out_stride + column + v * L) = found * scale + bias;
        }
    }
}

// Rows of cells times a matrix; a panel stays in the cache while the rows go by.
template <class Kind, bool APART>
void product(const Matrix &m, const Cells &cells, int64_t rows, float *out, int64_t out_stride) {
    for (int64_t panel = 0; panel < m.panels; ++panel)
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
            auto take = [&]<int R>()
                            __attribute__((always_inline)) { tile<Kind, APART, R>(m, panel, cells, row, out, out_stride); };
            switch (rows - row) {
            case 1:
                take.template operator()<1>();
                break;
            case 2:
                take.template operator()<2>();
                break;
            case 3:
                take.template operator()<3>();
                break;
            case 4:
                take.template operator()<4>();
                break;
            case 5:
                take.template operator()<5>();
                break;
            default:
                take.template operator()<TILE_ROWS>();
            }
        }
}

constexpr int64_t W = LANES<float>;
typedef uint32_t Bits __attribute__((vector_size(32)));

G2V_INLINE V<float> magnitude(V<float> x) { return (V<float>)((Int32)x & 0x7fffffff); }
// To the nearest whole number, of two the even one, within whole limits.
G2V_INLINE Int32 rounded(V<float> x, float low, float high) {
    constexpr float magic = 12582912.0f;  // adding it rounds to a whole number
    const V<float> within = most(least(x, full<float>(high)), full<float>(low));
    return (Int32)(within + magic) - (Int32)full<float>(magic);
}
// In one order, whatever the instruction set.
G2V_INLINE float sum_of(V<float> x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }
G2V_INLINE float most_of(V<float> x) {
    float found = x[0];
    for (int l = 1; l < W; ++l) found = x[l] > found ? x[l] : found;
    return found;
}
// The first numbers of a vector, then zeros.
G2V_INLINE V<float> load_some(const float *p, int64_t count) {
    if (count >= W) return load(p);
    float some[W] = {};
    for (int64_t l = 0; l < count; ++l) some[l] = p[l];
    return load(some);
}

// What whole numbers are multiplied by, and its inverse. Hardly anything is nothing.
struct Rounding {
    float scale, inverse;
    G2V_INLINE explicit Rounding(float wanted) : scale(wanted > 1e-30f ? wanted : 0), inverse(wanted > 1e-30f ? 1 / wanted : 0) {}
};

// Write numbers as cells: `whole` gives those from one on. What fills up the last lane is `rest`.
template <class Kind, class Of>
G2V_INLINE void write_cells(int64_t count, int64_t groups, int32_t *lanes, int32_t rest, Of whole) {
    typedef typename Kind::Cell Cell;
    typedef Cell Vector __attribute__((vector_size(W * sizeof(Cell))));
    typedef Cell VectorAt __attribute__((vector_size(W * sizeof(Cell)), aligned(1), may_alias));
    auto *cells = reinterpret_cast<unsigned char *>(lanes);
    constexpr int64_t bytes = sizeof(Cell);
    int64_t at = 0;
    for (; at + W <= count; at += W)
        *reinterpret_cast<VectorAt *>(cells + at * bytes) = __builtin_convertvector(whole(at), Vector);
    const Int32 last = at < count ? whole(at) : Int32{};
    for (int64_t first = at; at < groups * Kind::GROUP; ++at) {
        const Cell cell = static_cast<Cell>(at < count ? last[at - first] : rest);
        __builtin_memcpy(cells + at * bytes, &cell, sizeof cell);
    }
}

// Round a row to whole numbers from -levels to levels. Returns the scale.
G2V_INLINE float round_row(const float *x, int64_t count, float levels, int32_t *lanes) {
    V<float> largest{};
    for (int64_t at = 0; at < count; at += W) largest = most(magnitude(load(x + at)), largest);
    const Rounding rounding(most_of(largest) / levels);
    write_cells<Pairs>(count, count / Pairs::GROUP, lanes, 0, [&](int64_t at) __attribute__((always_inline)) {
        return rounded(load(x + at) * rounding.inverse, -levels, levels);
    });
    return rounding.scale;
}

// The largest of so many numbers, or 0, each as `of` sees it: in several chains, so that none waits for the other.
template <class Of> G2V_INLINE float largest_of(const float *x, int64_t count, Of of) {
    V<float> most_seen[4] = {};
    int64_t at = 0;
    for (; at + 4 * W <= count; at += 4 * W)
#pragma GCC unroll 4
        for (int k = 0; k < 4; ++k) most_seen[k] = most(of(load(x + at + k * W)), most_seen[k]);
    for (; at < count; at += W) most_seen[0] = most(of(load_some(x + at, count - at)), most_seen[0]);
    return most_of(most(most(most_seen[0], most_seen[1]), most(most_seen[2], most_seen[3])));
}

// The first place of a magnitude, which is there.
G2V_INLINE int64_t place_of(const float *x, int64_t count, float wanted) {
    for (int64_t at = 0; at + W <= count; at += W) {
        typedef int64_t Halves __attribute__((vector_size(32)));
        const Int32 found = magnitude(load(x + at)) == full<float>(wanted);
        const Halves any = (Halves)found;
        if (!((any[0] | any[1]) | (any[2] | any[3]))) continue;
        while (!found[at % W]) ++at;  // at is a multiple of W before
        return at;
    }
    int64_t at = count / W * W;
    while (at + 1 < count && __builtin_fabsf(x[at]) != wanted) ++at;
    return at < count ? at : count - 1;
}

// Round rows to 256 levels from the lowest number, or 0, to the highest, or 0, without the largest; then the product.
void linear(const LinearJob &job) {
    constexpr float levels = 255;
    for (int64_t row = 0; row < job.rows; ++row) {
        const float *x = job.input + row * job.input_stride;
        auto up = [](V<float> values) __attribute__((always_inline)) { return values; };
        auto down = [](V<float> values) __attribute__((always_inline)) { return -values; };
        float highest = largest_of(x, job.in, up), lowest = largest_of(x, job.in, down);
        const int64_t apart = place_of(x, job.in, highest > lowest ? highest : lowest);
        // On the side of the largest number the next one counts.
        const float before = x[apart] > 0 ? largest_of(x, apart, up) : largest_of(x, apart, down);
        const int64_t rest = job.in - apart - 1;
        const float after = x[apart] > 0 ? largest_of(x + apart + 1, rest, up) : largest_of(x + apart + 1, rest, down);
        (x[apart] > 0 ? highest : lowest) = before > after ? before : after;
        const Rounding rounding(highest / levels + lowest / levels);
        const int32_t zero = rounded(full<float>(lowest * rounding.inverse), 0, levels)[0];
        const float below = static_cast<float>(-zero), above = levels - static_cast<float>(zero);
        job.cells.scale[row] = rounding.scale;
        job.cells.zero[row] = zero;
        job.cells.apart_at[row] = static_cast<int32_t>(apart);
        job.cells.apart[row] = x[apart];
        int32_t *lanes = job.cells.lanes + row * job.matrix.groups;
        write_cells<Weights>(job.in, job.matrix.groups, lanes, zero, [&](int64_t at) __attribute__((always_inline)) {
            return rounded(load_some(x + at, job.in - at) * rounding.inverse, below, above) + zero;
        });
        const auto nothing = static_cast<typename Weights::Cell>(zero);
        __builtin_memcpy(reinterpret_cast<unsigned char *>(lanes) + apart * sizeof nothing, &nothing, sizeof nothing);
    }
    product<Weights, true>(job.matrix, job.cells, job.rows, job.output, job.output_stride);
}

// Add what went into a part of the layer, give each row mean 0 and variance 1, then the learned scale and shift. Rows are
// taken four at a time: sums in one order leave a processor waiting.
template <int R> G2V_INLINE void normalise_rows(const float *x, int64_t x_stride, const float *before, int64_t width,
                                                const Norm &norm, float epsilon, float *out) {
    V<float> total[R] = {}, squares[R] = {};
    for (int64_t at = 0; at < width; at += W)
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            const V<float> sum = load(x + r * x_stride + at) + load(before + r * width + at);
            store(out + r * width + at, sum);
            total[r] += sum;
        }
    float mean[R], scale[R];
    for (int r = 0; r < R; ++r) mean[r] = sum_of(total[r]) / static_cast<float>(width);
    for (int64_t at = 0; at < width; at += W)
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            const V<float> centred = load(out + r * width + at) - mean[r];
            store(out + r * width + at, centred);
            squares[r] += centred * centred;
        }
    for (int r = 0; r < R; ++r) scale[r] = 1 / __builtin_sqrtf(sum_of(squares[r]) / static_cast<float>(width) + epsilon);
    for (int64_t at = 0; at < width; at += W)
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
            store(out + r * width + at, load(out + r * width + at) * scale[r] * load(norm.weight + at) + load(norm.bias + at));
}
G2V_INLINE void add_and_normalise(const float *x, int64_t x_stride, const float *before, int64_t rows, int64_t width,
                                  const Norm &norm, float epsilon, float *out) {
    int64_t row = 0;
    for (; row + 4 <= rows; row += 4)
        normalise_rows<4>(x + row * x_stride, x_stride, before + row * width, width, norm, epsilon, out + row * width);
    for (; row < rows; ++row)
        normalise_rows<1>(x + row * x_stride, x_stride, before + row * width, width, norm, epsilon, out + row * width);
}

// x · (1 + tanh(y)) / 2 with y = sqrt(2 / pi) (x + 0.044715 x^3), by exp(-|2y|).
G2V_INLINE void gelu(float *x, int64_t count) {
    constexpr float slope = 1.5957691216057308f, bend = 1.5957691216057308f * 0.044715f;
    for (int64_t at = 0; at < count; at += W) {
        const V<float> value = load(x + at);
        const V<float> twice = (value * value * bend + slope) * value;
        const V<float> raised = exp_negative<float>(-magnitude(twice));
        const V<float> above = where<float>(twice > V<float>{}, full<float>(1), raised);
        store(x + at, value * above / (raised + 1.0f));
    }
}

// Levels that keep a sum of so many products of two of them, or of one of them and OTHER, below 2^31.
constexpr float SHARE_LEVELS = 4095, CONTENT_LEVELS = 1023, READ_LEVELS = 4095;
G2V_INLINE float levels(int64_t count, float wanted, float other) {
    const float most = 2147483000.0f / (static_cast<float>(count) * other);
    return wanted < most ? wanted : static_cast<float>(static_cast<int32_t>(most));
}

// Attention, head by head: keys are a matrix [width of a head][rows], values one [rows][width of a head].
struct Attention {
    const LayerJob &job;
    int64_t rows, size, stride, row_panels, row_columns, row_groups;
    static constexpr int64_t COLUMNS = Pairs::VECTORS * L;

    G2V_INLINE explicit Attention(const LayerJob &j)
        : job(j), rows(j.rows), size(j.width / j.heads), stride(j.read_stride), row_panels((j.rows + COLUMNS - 1) / COLUMNS),
          row_columns(row_panels * COLUMNS), row_groups(row_columns / 2) {}

    // The part of a head in rows to come: they lie far apart, and nothing else fetches them in time.
    G2V_INLINE void fetch(const float *from, int64_t row) const {
        for (int64_t at = 0; at < size; at += 16) __builtin_prefetch(from + (row < rows ? row : rows - 1) * stride + at);
    }
    G2V_INLINE Matrix keys(const float *from) const {
        const int64_t groups = size / 2;
        for (int64_t row = 0; row < row_columns; ++row) {
            int32_t *lanes = job.keys + row / COLUMNS * groups * COLUMNS + row % COLUMNS;
            int32_t *cells = job.shares;  // free until there are scores
            fetch(from, row + 12);
            fetch(from + job.width, row + 12);  // the values, which come next
            job.key_scale[row] = 0;
            if (row < rows) job.key_scale[row] = round_row(from + row * stride, size, READ_LEVELS, cells);
            for (int64_t g = 0; g < groups; ++g) lanes[g * COLUMNS] = row < rows ? cells[g] : 0;
        }
        return {groups, row_panels, job.keys, job.no_total, job.key_scale, job.no_bias};
    }
    // Each number of the width has a scale of its own.
    G2V_INLINE Matrix values(const float *from) const {
        const int64_t panels = (size + COLUMNS - 1) / COLUMNS;
        for (int64_t at = 0; at < panels * COLUMNS; at += W) {
            const bool filled = at < size;
            V<float> largest{}, scale{}, inverse{};
            for (int64_t row = 0; filled && row < rows; ++row) largest = most(magnitude(load(from + row * stride + at)), largest);
#pragma GCC unroll 8
            for (int l = 0; l < W; ++l) {
                const Rounding rounding(largest[l] / CONTENT_LEVELS);
                scale[l] = rounding.scale;
                inverse[l] = rounding.inverse;
            }
            store(job.value_scale + at, scale);
            int32_t *lanes = job.values + at / COLUMNS * row_groups * COLUMNS + at % COLUMNS;
            for (int64_t g = 0; g < row_groups; ++g) {
                auto whole = [&](int64_t row) __attribute__((always_inline)) {
                    if (!filled || row >= rows) return Int32{};
                    return rounded(load(from + row * stride + at) * inverse, -CONTENT_LEVELS, CONTENT_LEVELS);
                };
                const Int32 pair = (whole(2 * g) & 0xffff) | (Int32)((Bits)whole(2 * g + 1) << 16);
                __builtin_memcpy(lanes + g * COLUMNS, &pair, sizeof pair);
            }
        }
        return {row_groups, panels, job.values, job.no_total, job.value_scale, job.no_bias};
    }
    // Shares of the attention from scores, not yet divided by their sum: whole numbers. Returns what divides them.
    G2V_INLINE float shares(float *scores, int32_t *lanes) const {
        typedef int16_t Cells __attribute__((vector_size(2 * W)));
        typedef int16_t CellsAt __attribute__((vector_size(2 * W), aligned(1), may_alias));
        const float limit = levels(rows, SHARE_LEVELS, CONTENT_LEVELS);
        for (int64_t at = rows; at < row_columns; ++at) scores[at] = -1e30f;
        V<float> highest = load(scores), total{};
        for (int64_t at = W; at < row_columns; at += W) highest = most(load(scores + at), highest);
        const float from = most_of(highest);
        auto *cells = reinterpret_cast<unsigned char *>(lanes);
        for (int64_t at = 0; at < row_columns; at += W) {
            const Int32 whole = rounded(exp_negative<float>(load(scores + at) - from) * limit, 0, limit);
            total += __builtin_convertvector(whole, V<float>);
            *reinterpret_cast<CellsAt *>(cells + 2 * at) = __builtin_convertvector(whole, Cells);
        }
        return 1 / sum_of(total);
    }

    G2V_INLINE void head(int64_t number) const {
        const float *from = job.read + number * size;
        const float limit = levels(size, READ_LEVELS, READ_LEVELS), spread = 1 / __builtin_sqrtf(static_cast<float>(size));
        const Matrix key = keys(from + job.width), value = values(from + 2 * job.width);
        const int64_t part_columns = value.panels * COLUMNS;
        const Cells queries{job.queries, job.no_zero, job.query_scale, nullptr, nullptr},
            taken{job.shares, job.no_zero, job.query_scale, nullptr, nullptr};
        for (int64_t first = 0; first < rows; first += TILE_ROWS) {
            const int64_t count = rows - first < TILE_ROWS ? rows - first : TILE_ROWS;
            for (int64_t r = 0; r < count; ++r) fetch(from, first + TILE_ROWS + r);
            for (int64_t r = 0; r < count; ++r)
                queries.scale[r] = round_row(from + (first + r) * stride, size, limit, queries.lanes + r * key.groups) * spread;
            product<Pairs, false>(key, queries, count, job.scores, row_columns);
            for (int64_t r = 0; r < count; ++r)
                taken.scale[r] = shares(job.scores + r * row_columns, taken.lanes + r * row_groups);
            product<Pairs, false>(value, taken, count, job.part, part_columns);
            for (int64_t r = 0; r < count; ++r)
                for (int64_t at = 0; at < size; at += W)
                    store(job.mixed + (first + r) * job.width + number * size + at, load(job.part + r * part_columns + at));
        }
    }
};

void layer(const LayerJob &job) {
    constexpr int64_t panel = Weights::VECTORS * L;
    auto through = [&](const Matrix &m, int64_t in, const float *x, int64_t x_stride, int64_t rows, float *out) {
        linear({m, in, rows, x, x_stride, job.cells, out, m.panels * panel});
    };
    const int64_t width = job.width, inner_columns = job.up.panels * panel;
    through(job.qkv, width, job.input, width, job.rows, job.read);
    const Attention attention(job);
    for (int64_t head = 0; head < job.heads; ++head) attention.head(head);
    for (int64_t first = 0; first < job.rows; first += job.block) {
        const int64_t rows = job.rows - first < job.block ? job.rows - first : job.block;
        const float *input = job.input + first * width;
        float *output = job.output + first * width;
        through(job.out, width, job.mixed + first * width, width, rows, job.lowered);
        add_and_normalise(job.lowered, job.out.panels * panel, input, rows, width, job.norm1, job.epsilon, job.hidden);
        through(job.up, width, job.hidden, width, rows, job.raised);
        for (int64_t r = 0; r < rows; ++r) gelu(job.raised + r * inner_columns, inner_columns);
        through(job.down, job.inner, job.raised, inner_columns, rows, job.lowered);
        add_and_normalise(job.lowered, job.down.panels * panel, job.hidden, rows, width, job.norm2, job.epsilon, output);
    }
}

void sums(const SumsJob &job) {
    float *out = job.output;
    for (int64_t dependent = 0; dependent < job.dependents; ++dependent) {
        const int64_t *rows = job.rows + dependent * job.tables * job.entities;
        for (int64_t entity = 0; entity < job.entities; ++entity, out += job.width) {
            for (int64_t at = 0; at < job.width; at += W) store(out + at, load(job.table[0] + rows[entity] * job.width + at));
            for (int64_t t = 1; t < job.tables; ++t) {
                const float *row = job.table[t] + rows[t * job.entities + entity] * job.width;
                for (int64_t at = 0; at < job.width; at += W) store(out + at, load(out + at) + load(row + at));
            }
            gelu(out, job.width);
        }
    }
}

}  // namespace
}  // namespace G2V_ARCH

EncoderKernels G2V_JOIN(encoder_kernels_, G2V_ARCH)() {
    using namespace G2V_ARCH;
    return {G2V_TEXT(G2V_ARCH),
            Weights::GROUP,
            static_cast<int>(Weights::VECTORS * L),
            static_cast<int>(Attention::COLUMNS),
            linear,
            layer,
            sums};
}

}  // namespace g2v
