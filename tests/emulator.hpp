// Blocks of CUDA threads on one processor: each thread is a fibre, and runs until it waits for others. Which of them runs
// next is drawn at random, so that what depends on an order that nothing ensures comes out differently. Compiled before
// the kernels, in place of machine.cuh.
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#define __global__
#define __device__
#define __forceinline__ inline
#define __shared__ static
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) alignas(bytes)
using std::copysign;
using std::exp2;
using std::fabs;
using std::log2;

struct int2 { int x, y; };
struct alignas(16) int4 { int x, y, z, w; };
struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
inline int2 make_int2(int x, int y) { return {x, y}; }

namespace emulator {

struct Place { unsigned x = 0, y = 0; };
enum Waits { NOT, FOR_ALL, FOR_ALL_ELSEWHERE, FOR_WARP, ENDED };
struct Fibre {
    ucontext_t context;
    Place place;
    Waits waits;
    unsigned rounds, votes;  // operations of its warp, and of the block, so far
    std::vector<char> stack;
};
struct Warp { uint64_t told[2][32]; };

inline std::vector<Fibre> fibres;
inline std::vector<Warp> warps;
inline Fibre *current;
inline ucontext_t scheduler;
inline Place block, size, grid;
inline std::vector<int> votes;
inline std::mt19937 random;
alignas(16) inline double memory[1 << 15];
inline void (*kernel)();

inline void wait(Waits what) {
    current->waits = what;
    swapcontext(&current->context, &scheduler);
}
inline void body() {
    kernel();
    current->waits = ENDED;
    swapcontext(&current->context, &scheduler);
}

// Every lane of the warp tells a value; returns that of another.
template <class T> T of_lane(T value, unsigned lane) {
    const unsigned warp = current->place.x / 32, round = current->rounds++ % 2;
    std::memcpy(&warps[warp].told[round][current->place.x % 32], &value, sizeof(T));
    wait(FOR_WARP);
    T found;
    std::memcpy(&found, &warps[warp].told[round][lane], sizeof(T));
    return found;
}
template <class T, class Both> T reduce(T value, Both both) {
    T found = value;
    const unsigned warp = current->place.x / 32, round = current->rounds++ % 2, me = current->place.x % 32;
    std::memcpy(&warps[warp].told[round][me], &value, sizeof(T));
    wait(FOR_WARP);
    for (unsigned lane = 0; lane < 32; ++lane) {
        T other;
        std::memcpy(&other, &warps[warp].told[round][lane], sizeof(T));
        if (lane != me) found = both(found, other);
    }
    return found;
}

// Runs one block. Returns false where threads wait for what never comes.
inline bool run_block(unsigned threads) {
    std::vector<unsigned> order(threads);
    std::iota(order.begin(), order.end(), 0u);
    fibres.resize(std::max<size_t>(fibres.size(), threads));
    warps.assign((threads + 31) / 32, Warp{});
    votes.clear();
    for (unsigned n = 0; n < threads; ++n) {
        Fibre &fibre = fibres[n];
        fibre.stack.resize(1 << 16);
        fibre.place = {n, 0};
        fibre.waits = NOT;
        fibre.rounds = fibre.votes = 0;
        getcontext(&fibre.context);
        fibre.context.uc_stack.ss_sp = fibre.stack.data();
        fibre.context.uc_stack.ss_size = fibre.stack.size();
        fibre.context.uc_link = nullptr;
        makecontext(&fibre.context, body, 0);
    }
    while (true) {
        std::shuffle(order.begin(), order.end(), random);
        bool ran = false;
        for (const unsigned n : order) {
            if (fibres[n].waits != NOT) continue;
            ran = true;
            current = &fibres[n];
            swapcontext(&scheduler, &current->context);
        }
        const auto all = [&](unsigned from, unsigned to, Waits what) {
            bool some = false;
            for (unsigned n = from; n < to; ++n) {
                if (fibres[n].waits != what && fibres[n].waits != ENDED) return false;
                some |= fibres[n].waits == what;
            }
            return some;
        };
        const auto release = [&](unsigned from, unsigned to) {
            for (unsigned n = from; n < to; ++n)
                if (fibres[n].waits != ENDED) fibres[n].waits = NOT;
            ran = true;
        };
        for (unsigned from = 0; from < threads; from += 32)
            if (all(from, std::min(from + 32, threads), FOR_WARP)) release(from, std::min(from + 32, threads));
        for (const Waits what : {FOR_ALL, FOR_ALL_ELSEWHERE})
            if (all(0, threads, what)) release(0, threads);
        if (ran) continue;
        return std::all_of(fibres.begin(), fibres.begin() + threads, [](const Fibre &fibre) { return fibre.waits == ENDED; });
    }
}

// 0: all is well; 1: threads wait for what never comes; 2: shared memory was written beyond its end.
template <class Call> int run(unsigned blocks, unsigned across, unsigned threads, unsigned shared, unsigned seed, Call call) {
    static Call *calls;
    calls = &call;
    kernel = [] { (*calls)(); };
    random.seed(seed);
    size = {threads, 1};
    grid = {blocks, across};
    const unsigned char unset = 0xff;  // not a number, whatever is read
    for (unsigned n = 0; n < blocks * across; ++n) {
        block = {n % blocks, n / blocks};
        std::memset(memory, unset, sizeof memory);
        if (!run_block(threads)) return 1;
        const auto *bytes = reinterpret_cast<const unsigned char *>(memory);
        if (std::any_of(bytes + shared, bytes + sizeof memory, [](unsigned char byte) { return byte != unset; })) return 2;
    }
    return 0;
}

}  // namespace emulator

#define threadIdx (emulator::current->place)
#define blockIdx (emulator::block)
#define blockDim (emulator::size)
#define gridDim (emulator::grid)
#define shared_memory emulator::memory

inline void __syncthreads() { emulator::wait(emulator::FOR_ALL); }
inline int __syncthreads_or(int flag) {
    const unsigned vote = emulator::current->votes++;
    emulator::votes.resize(std::max<size_t>(emulator::votes.size(), vote + 1));
    emulator::votes[vote] |= flag;
    __syncthreads();
    return emulator::votes[vote];
}
inline void other_barrier() { emulator::wait(emulator::FOR_ALL_ELSEWHERE); }
template <class T> T __shfl_xor_sync(unsigned, T value, int with) {
    return emulator::of_lane(value, emulator::current->place.x % 32 ^ with);
}
template <class T> T __shfl_down_sync(unsigned, T value, unsigned by) {
    const unsigned lane = emulator::current->place.x % 32;
    return emulator::of_lane(value, lane + by < 32 ? lane + by : lane);
}
template <class T> T __reduce_max_sync(unsigned, T value) { return emulator::reduce(value, [](T a, T b) { return std::max(a, b); }); }
inline unsigned __activemask() { return ~0u; }
template <class T> T atomicAdd(T *to, T value) {
    const T before = *to;
    *to += value;
    return before;
}

template <class To, class From> To emulator_bits(From from) {
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}
inline int __float_as_int(float x) { return emulator_bits<int>(x); }
inline float __int_as_float(int x) { return emulator_bits<float>(x); }
inline double __longlong_as_double(long long x) { return emulator_bits<double>(x); }
inline float __saturatef(float x) { return x > 0 ? std::min(x, 1.0f) : 0.0f; }
inline int __clz(int x) { return x ? __builtin_clz(static_cast<unsigned>(x)) : 32; }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }

inline float exp2_(float x) { return exp2f(x); }
inline float log2_(float x) { return log2f(x); }
inline float inverse_(float x) { return 1 / x; }
inline unsigned short to_half(float x) { return emulator_bits<unsigned short>(static_cast<_Float16>(x)); }
inline unsigned low_half(unsigned x) { return x & 0xffff; }
inline unsigned high_half(unsigned x) { return x >> 16; }
inline unsigned number_of_thread() { return threadIdx.x; }
inline float from_half(unsigned short x) { return emulator_bits<_Float16>(x); }
inline float both(float a, float b) { return emulator_bits<float>(to_half(a) | static_cast<unsigned>(to_half(b)) << 16); }
inline void apart(float kept, float &a, float &b) {
    const unsigned bits = emulator_bits<unsigned>(kept);
    a = from_half(static_cast<unsigned short>(bits));
    b = from_half(static_cast<unsigned short>(bits >> 16));
}
