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

// What sums of a vector of columns come to. Weights have totals, biases and a number apart; keys and values do not.
template <class Kind, bool WEIGHTS>
G2V_INLINE void finish(const Matrix &m, int64_t panel, int v, const Cells &cells, int64_t row, Sums sum, float *out) {
    constexpr int64_t columns = Kind::VECTORS * L;
    const int64_t column = panel * columns + v * L;
    Floats found = __builtin_convertvector(sum, Floats) * cells.scale[row];
    if constexpr (WEIGHTS) {
        constexpr int bits = 32 / Kind::GROUP;
        const int at = cells.apart_at[row], place = at % Kind::GROUP;
        const int32_t *group = m.packed + (panel * m.groups + at / Kind::GROUP) * columns + v * L;
        const Sums w = *reinterpret_cast<const SumsAt *>(group) << (32 - bits * (place + 1)) >> (32 - bits);
        found += __builtin_convertvector(w, Floats) * cells.apart[row];
    }
    found *= *reinterpret_cast<const FloatsAt *>(m.scale + column);
    if constexpr (WEIGHTS) found += *reinterpret_cast<const FloatsAt *>(m.bias + column);
    *reinterpret_cast<FloatsAt *>(out + column) = found;
}

// One panel of columns for R rows of cells.
template <class Kind, bool WEIGHTS, int R>
G2V_INLINE void tile(const Matrix &m, int64_t panel, const Cells &cells, int64_t row, float *out, int64_t out_stride) {
    constexpr int N = Kind::VECTORS;
    const int64_t column = panel * N * L;
    const int32_t *lanes = cells.lanes + row * m.groups;
    Sums sum[R][N] = {};
    if constexpr (WEIGHTS)
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
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) finish<Kind, WEIGHTS>(m, panel, v, cells, row + r, sum[r][v], out + (row + r) * out_stride);
}

#if defined(__AMX_INT8__)
// The same for weights and 32 rows, by tiles of 16 rows of 64 bytes; rows are there up to a multiple of 16.
constexpr int64_t TILE = 16;
struct alignas(64) TileShapes {
    uint8_t palette = 1, none[15] = {};
    uint16_t bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE};
};
void product_of_tiles(const Matrix &m, const Cells &cells, int64_t rows, float *out, int64_t out_stride) {
    constexpr int64_t columns = Weights::VECTORS * L;
    static constexpr TileShapes shapes;
    _tile_loadconfig(&shapes);
    __asm__ volatile("" ::: "memory");  // what tiles are loaded from is written by now: compilers do not know that it is read
    alignas(64) int32_t sums[2 * TILE][columns];
    for (int64_t panel = 0; panel < m.panels; ++panel)
        for (int64_t row = 0; row < rows; row += 2 * TILE) {
            const int32_t *lanes = cells.lanes + row * m.groups, *weights = m.packed + panel * columns * m.groups;
            const int64_t stride = 4 * m.groups, count = rows - row < 2 * TILE ? rows - row : 2 * TILE;
            for (int64_t column = 0; column < columns; column += 2 * TILE) {
                _tile_zero(0);
                _tile_zero(1);
                _tile_zero(2);
                _tile_zero(3);
                for (int64_t g = 0; g < m.groups; g += TILE) {
                    _tile_loadd(6, weights + g * columns + column, 4 * columns);
                    _tile_loadd(7, weights + g * columns + column + TILE, 4 * columns);
                    _tile_loadd(4, lanes + g, stride);
                    _tile_dpbusd(0, 4, 6);
                    _tile_dpbusd(1, 4, 7);
                    if (count <= TILE) continue;
                    _tile_loadd(5, lanes + TILE * m.groups + g, stride);
                    _tile_dpbusd(2, 5, 6);
                    _tile_dpbusd(3, 5, 7);
                }
                _tile_stored(0, &sums[0][column], sizeof sums[0]);
                _tile_stored(1, &sums[0][column + TILE], sizeof sums[0]);
                _tile_stored(2, &sums[TILE][column], sizeof sums[0]);
                _tile_stored(3, &sums[TILE][column + TILE], sizeof sums[0]);
            }
            for (int64_t r = 0; r < count; ++r)
#pragma GCC unroll 4
                for (int v = 0; v < Weights::VECTORS; ++v) {
                    const Sums total = *reinterpret_cast<const SumsAt *>(m.total + panel * columns + v * L);
                    const Sums sum = *reinterpret_cast<const SumsAt *>(&sums[r][v * L]) - total * cells.zero[row + r];
                    finish<Weights, true>(m, panel, v, cells, row + r, sum, out + (row + r) * out_stride);
                }
        }
    _tile_release();
}
#endif

// Rows of cells times a matrix; a panel stays in the cache while the rows go by.
template <class Kind, bool WEIGHTS>
void product(const Matrix &m, const Cells &cells, int64_t rows, float *out, int64_t out_stride) {
#if defined(__AMX_INT8__)
    if (WEIGHTS && m.groups % TILE == 0) return product_of_tiles(m, cells, rows, out, out_stride);
#endif
    for (int64_t panel = 0; panel < m.panels; ++panel)
        for (int64_t row = 0; row < rows; row += TILE_ROWS) {
            auto take = [&]<int R>()
                            __attribute__((always_inline)) { tile<Kind, WEIGHTS, R>(m, panel, cells, row, out, out_stride); };
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

constexpr int64_t W = sizeof(Wide) / 4;
typedef int32_t Ints __attribute__((vector_size(sizeof(Wide))));
typedef uint32_t Bits __attribute__((vector_size(sizeof(Wide))));
typedef float WideAt __attribute__((vector_size(sizeof(Wide)), aligned(4), may_alias));

G2V_INLINE Wide take(const float *p) { return *reinterpret_cast<const WideAt *>(p); }
G2V_INLINE void put(float *p, Wide x) { *reinterpret_cast<WideAt *>(p) = x; }
G2V_INLINE Wide magnitude(Wide x) { return (Wide)((Ints)x & 0x7fffffff); }
// To the nearest whole number, of two the even one, within whole limits.
G2V_INLINE Ints rounded(Wide x, float low, float high) {
    constexpr float magic = 12582912.0f;  // adding it rounds to a whole number
    const Wide within = most(least(x, Wide{} + high), Wide{} + low);
    return (Ints)(within + magic) - (Ints)(Wide{} + magic);
}
// Eight numbers of a vector, from one on.
template <int N> G2V_INLINE V<float> eight(Wide x) {
    return __builtin_shufflevector(x, x, N, N + 1, N + 2, N + 3, N + 4, N + 5, N + 6, N + 7);
}
// Sums are taken eight side by side in one order, whatever the instruction set.
G2V_INLINE V<float> plus(V<float> total, Wide x) {
    total += eight<0>(x);
    if constexpr (W == 16) total += eight<8>(x);
    return total;
}
G2V_INLINE float sum_of(V<float> x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }
// The other half, pairs and neighbours in exchange: what is brought together with these in turn is so in all lanes.
template <int APART> G2V_INLINE V<float> exchanged(V<float> x) {
    if constexpr (APART == 4) return __builtin_shufflevector(x, x, 4, 5, 6, 7, 0, 1, 2, 3);
    else if constexpr (APART == 2) return __builtin_shufflevector(x, x, 2, 3, 0, 1, 6, 7, 4, 5);
    else return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
}
G2V_INLINE float most_of(Wide x) {
    V<float> found = eight<0>(x);
    if constexpr (W == 16) found = most(found, eight<8>(x));
    found = most(found, exchanged<4>(found));
    found = most(found, exchanged<2>(found));
    return most(found, exchanged<1>(found))[0];
}
// The first numbers of a vector, then zeros.
G2V_INLINE Wide take_some(const float *p, int64_t count) {
    if (count >= W) return take(p);
    float some[W] = {};
    for (int64_t l = 0; l < count; ++l) some[l] = p[l];
    return take(some);
}

// What whole numbers are multiplied by, and its inverse. Hardly anything is nothing.
constexpr float LEAST = 1e-30f;
struct Rounding {
    float scale, inverse;
    G2V_INLINE explicit Rounding(float wanted) : scale(wanted > LEAST ? wanted : 0), inverse(wanted > LEAST ? 1 / wanted : 0) {}
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
    const Ints last = at < count ? whole(at) : Ints{};
    for (int64_t first = at; at < groups * Kind::GROUP; ++at) {
        const Cell cell = static_cast<Cell>(at < count ? last[at - first] : rest);
        __builtin_memcpy(cells + at * bytes, &cell, sizeof cell);
    }
}

// Round a row to whole numbers from -levels to levels. Returns the scale.
G2V_INLINE float round_row(const float *x, int64_t count, float levels, int32_t *lanes) {
    Wide largest{};
    for (int64_t at = 0; at < count; at += W) largest = most(magnitude(take(x + at)), largest);
    const Rounding rounding(most_of(largest) / levels);
    write_cells<Pairs>(count, count / Pairs::GROUP, lanes, 0, [&](int64_t at) __attribute__((always_inline)) {
        return rounded(take(x + at) * rounding.inverse, -levels, levels);
    });
    return rounding.scale;
}

// The two largest numbers seen, or 0.
template <class X> struct LargestTwo {
    X first{}, second{};
    G2V_INLINE void see(X x) {
        second = most(least(x, first), second);
        first = most(x, first);
    }
    G2V_INLINE void see(const LargestTwo &other) {
        second = most(least(other.first, first), most(other.second, second));
        first = most(other.first, first);
    }
};
template <int APART> G2V_INLINE void see_exchanged(LargestTwo<V<float>> &found) {
    found.see({exchanged<APART>(found.first), exchanged<APART>(found.second)});
}
G2V_INLINE LargestTwo<V<float>> among_lanes(const LargestTwo<Wide> &of) {
    LargestTwo<V<float>> found{eight<0>(of.first), eight<0>(of.second)};
    if constexpr (W == 16) found.see({eight<8>(of.first), eight<8>(of.second)});
    see_exchanged<4>(found);
    see_exchanged<2>(found);
    see_exchanged<1>(found);
    return found;
}

// The first place of a magnitude, which is there.
G2V_INLINE int64_t place_of(const float *x, int64_t count, float wanted) {
    int64_t at = 0;
    for (; at + W <= count; at += W) {
        const Wide sizes = magnitude(take(x + at));
#if defined(__AVX512F__)
        const uint32_t found = _mm512_cmp_ps_mask((__m512)sizes, _mm512_set1_ps(wanted), _CMP_EQ_OQ);
#elif defined(__AVX2__)
        const auto found = static_cast<uint32_t>(_mm256_movemask_ps((__m256)(sizes == wanted)));
#else
        uint32_t found = 0;
        for (int l = 0; l < W; ++l) found |= static_cast<uint32_t>(sizes[l] == wanted) << l;
#endif
        if (found) return at + __builtin_ctz(found);
    }
    while (at + 1 < count && __builtin_fabsf(x[at]) != wanted) ++at;
    return at < count ? at : count - 1;
}

// Round rows to 256 levels from the lowest number, or 0, to the highest, or 0, without the largest; then the product.
void linear(const LinearJob &job) {
    constexpr float levels = 255;
    for (int64_t row = 0; row < job.rows; ++row) {
        const float *x = job.input + row * job.input_stride;
        LargestTwo<Wide> up[2], down[2];  // two chains, so that none waits for the other
        int64_t at = 0;
        for (; at + 2 * W <= job.in; at += 2 * W)
#pragma GCC unroll 2
            for (int k = 0; k < 2; ++k) {
                const Wide values = take(x + at + k * W);
                up[k].see(values);
                down[k].see(-values);
            }
        for (; at < job.in; at += W) {
            const Wide values = take_some(x + at, job.in - at);
            up[0].see(values);
            down[0].see(-values);
        }
        up[0].see(up[1]);
        down[0].see(down[1]);
        const LargestTwo<V<float>> highs = among_lanes(up[0]), lows = among_lanes(down[0]);
        float highest = highs.first[0], lowest = lows.first[0];
        const int64_t apart = place_of(x, job.in, highest > lowest ? highest : lowest);
        // On the side of the largest number the next one counts.
        if (x[apart] > 0) highest = highs.second[0];
        else lowest = lows.second[0];
        const Rounding rounding(highest / levels + lowest / levels);
        const int32_t zero = rounded(Wide{} + lowest * rounding.inverse, 0, levels)[0];
        const float below = static_cast<float>(-zero), above = levels - static_cast<float>(zero);
        job.cells.scale[row] = rounding.scale;
        job.cells.zero[row] = zero;
        job.cells.apart_at[row] = static_cast<int32_t>(apart);
        job.cells.apart[row] = x[apart];
        int32_t *lanes = job.cells.lanes + row * job.matrix.groups;
        write_cells<Weights>(job.in, job.matrix.groups, lanes, zero, [&](int64_t from) __attribute__((always_inline)) {
            return rounded(take_some(x + from, job.in - from) * rounding.inverse, below, above) + zero;
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
            const Wide sum = take(x + r * x_stride + at) + take(before + r * width + at);
            put(out + r * width + at, sum);
            total[r] = plus(total[r], sum);
        }
    float mean[R], scale[R];
    for (int r = 0; r < R; ++r) mean[r] = sum_of(total[r]) / static_cast<float>(width);
    for (int64_t at = 0; at < width; at += W)
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
            const Wide centred = take(out + r * width + at) - mean[r];
            put(out + r * width + at, centred);
            squares[r] = plus(squares[r], centred * centred);
        }
    for (int r = 0; r < R; ++r) scale[r] = 1 / __builtin_sqrtf(sum_of(squares[r]) / static_cast<float>(width) + epsilon);
    for (int64_t at = 0; at < width; at += W)
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r)
            put(out + r * width + at, take(out + r * width + at) * scale[r] * take(norm.weight + at) + take(norm.bias + at));
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
G2V_INLINE Wide gelu(Wide x) {
    constexpr float slope = 1.5957691216057308f, bend = 1.5957691216057308f * 0.044715f;
    const Wide twice = (x * x * bend + slope) * x, raised = exp_negative(-magnitude(twice));
    return x * (twice > Wide{} ? Wide{} + 1 : raised) / (raised + 1.0f);
}

void gelu_of_all(float *x, int64_t count) {
    for (int64_t at = 0; at < count; at += W) put(x + at, gelu(take(x + at)));
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
        return {groups, row_panels, job.keys, nullptr, job.key_scale, nullptr};
    }
    // Each number of the width has a scale of its own.
    G2V_INLINE Matrix values(const float *from) const {
        const int64_t panels = (size + COLUMNS - 1) / COLUMNS;
        for (int64_t at = 0; at < panels * COLUMNS; at += W) {
            const bool filled = at < size;
            Wide largest{};
            for (int64_t row = 0; filled && row < rows; ++row) largest = most(magnitude(take(from + row * stride + at)), largest);
            const Wide wanted = largest / CONTENT_LEVELS;
            const Ints something = wanted > Wide{} + LEAST;
            const Wide inverse = something ? 1 / wanted : Wide{};
            put(job.value_scale + at, something ? wanted : Wide{});
            int32_t *lanes = job.values + at / COLUMNS * row_groups * COLUMNS + at % COLUMNS;
            for (int64_t g = 0; g < row_groups; ++g) {
                auto whole = [&](int64_t row) __attribute__((always_inline)) {
                    if (!filled || row >= rows) return Ints{};
                    return rounded(take(from + row * stride + at) * inverse, -CONTENT_LEVELS, CONTENT_LEVELS);
                };
                const Ints pair = (whole(2 * g) & 0xffff) | (Ints)((Bits)whole(2 * g + 1) << 16);
                __builtin_memcpy(lanes + g * COLUMNS, &pair, sizeof pair);
            }
        }
        return {row_groups, panels, job.values, nullptr, job.value_scale, nullptr};
    }
    // Shares of the attention from scores, not yet divided by their sum: whole numbers. Returns what divides them.
    G2V_INLINE float shares(float *scores, int32_t *lanes) const {
        typedef int16_t Cells __attribute__((vector_size(2 * W)));
        typedef int16_t CellsAt __attribute__((vector_size(2 * W), aligned(1), may_alias));
        const float limit = levels(rows, SHARE_LEVELS, CONTENT_LEVELS);
        for (int64_t at = rows; at < row_columns; ++at) scores[at] = -1e30f;
        Wide highest = take(scores), total{};  // the sums are of whole numbers, and exact
        for (int64_t at = W; at < row_columns; at += W) highest = most(take(scores + at), highest);
        const float from = most_of(highest);
        auto *cells = reinterpret_cast<unsigned char *>(lanes);
        for (int64_t at = 0; at < row_columns; at += W) {
            const Ints whole = rounded(exp_negative(take(scores + at) - from) * limit, 0, limit);
            total += __builtin_convertvector(whole, Wide);
            *reinterpret_cast<CellsAt *>(cells + 2 * at) = __builtin_convertvector(whole, Cells);
        }
        return 1 / sum_of(plus(V<float>{}, total));
    }

    G2V_INLINE void head(int64_t number) const {
        const float *from = job.read + number * size;
        const float limit = levels(size, READ_LEVELS, READ_LEVELS), spread = 1 / __builtin_sqrtf(static_cast<float>(size));
        const Matrix key = keys(from + job.width), value = values(from + 2 * job.width);
        const int64_t part_columns = value.panels * COLUMNS;
        const Cells queries{job.queries, nullptr, job.query_scale, nullptr, nullptr},
            taken{job.shares, nullptr, job.query_scale, nullptr, nullptr};
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
                    put(job.mixed + (first + r) * job.width + number * size + at, take(job.part + r * part_columns + at));
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
        gelu_of_all(job.raised, rows * inner_columns);
        through(job.down, job.inner, job.raised, inner_columns, rows, job.lowered);
        add_and_normalise(job.lowered, job.down.panels * panel, job.hidden, rows, width, job.norm2, job.epsilon, output);
    }
}

void sums(const SumsJob &job) {
    const int64_t width = job.width, pairs = job.dependents * job.entities;
    float *out = job.output, *met = job.met;
    for (int64_t dependent = 0; dependent < job.dependents; ++dependent) {
        const int64_t *rows = job.rows + dependent * job.tables * job.entities;
        const float *one = job.dependent + dependent * MEETINGS * width, *other = job.head;
        for (int64_t entity = 0; entity < job.entities; ++entity, ++met, out += width, other += MEETINGS * width) {
            V<float> total[MEETINGS] = {};
            for (int64_t at = 0; at < width; at += W) {
                Wide sum = take(job.table[0] + rows[entity] * width + at);
                for (int64_t t = 1; t < job.tables; ++t) sum += take(job.table[t] + rows[t * job.entities + entity] * width + at);
                const Wide found = gelu(sum);
                put(out + at, found);
#pragma GCC unroll 2
                for (int k = 0; k < MEETINGS; ++k)
                    total[k] = plus(total[k], found * (take(one + k * width + at) + take(other + k * width + at)));
            }
            for (int k = 0; k < MEETINGS; ++k) met[k * pairs] = sum_of(total[k]);
        }
    }
}

}  // namespace
}  // namespace G2V_ARCH

EncoderKernels G2V_JOIN(encoder_kernels_, G2V_ARCH)() {
    using namespace G2V_ARCH;
    return {G2V_TEXT(G2V_ARCH),
            static_cast<int>(W),
            Weights::GROUP,
            static_cast<int>(Weights::VECTORS * L),
            static_cast<int>(Attention::COLUMNS),
            linear,
            layer,
            gelu_of_all,
            sums};
}

}  // namespace g2v
