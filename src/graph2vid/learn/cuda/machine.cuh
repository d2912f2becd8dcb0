// What a GPU has an instruction for and C++ no word. Compiled before all else.

__device__ __forceinline__ float exp2_(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float log2_(float x) {
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float inverse_(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Numbers in half precision, and two of them in the place of one.
__device__ __forceinline__ unsigned short to_half(float x) {
    unsigned short y;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(x));
    return y;
}
__device__ __forceinline__ float from_half(unsigned short x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x));
    return y;
}
__device__ __forceinline__ float both(float a, float b) {
    float kept;
    asm("{.reg .f16 a, b; cvt.rn.f16.f32 a, %1; cvt.rn.f16.f32 b, %2; mov.b32 %0, {a, b};}" : "=f"(kept) : "f"(a), "f"(b));
    return kept;
}
__device__ __forceinline__ void apart(float kept, float &a, float &b) {
    asm("{.reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b;}" : "=f"(a), "=f"(b) : "f"(kept));
}

// The halves of a number, not before they are needed: it takes one register until then.
__device__ __forceinline__ unsigned low_half(unsigned x) {
    unsigned y;
    asm volatile("and.b32 %0, %1, 0xffff;" : "=r"(y) : "r"(x));
    return y;
}
__device__ __forceinline__ unsigned high_half(unsigned x) {
    unsigned y;
    asm volatile("shr.u32 %0, %1, 16;" : "=r"(y) : "r"(x));
    return y;
}

// The number of this thread, in a register: else it is asked for wherever it is needed, and that takes long.
__device__ __forceinline__ unsigned number_of_thread() {
    unsigned number;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(number));
    return number;
}

#if __CUDA_ARCH__ >= 900
// One thread of a warp, all of which comes here.
__device__ __forceinline__ bool is_chosen() {
    unsigned chosen;
    asm volatile("{.reg .pred chosen; elect.sync _|chosen, 0xffffffff; selp.u32 %0, 1, 0, chosen;}" : "=r"(chosen));
    return chosen;
}
#endif

// A barrier for all threads of a block, beside that of __syncthreads.
__device__ __forceinline__ void other_barrier() { asm volatile("bar.sync 1, %0;" ::"r"(blockDim.x) : "memory"); }

