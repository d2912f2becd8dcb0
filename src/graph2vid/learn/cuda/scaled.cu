// Gradients of each video, times what arrives from above.
//   DOUBLE      0 float, 1 double

#if DOUBLE
typedef double real;
#else
typedef float real;
#endif

struct Scaled {
    const real *cost, *above;  // [videos], and what arrives, `stride` numbers apart
    long long videos, stride;
    long long each[3];         // numbers of a video; 0: not wanted
    const real *of[3];
    real *to[3];
};

extern "C" __global__ void __launch_bounds__(256) scaled(const __grid_constant__ Scaled all) {
    const long long first = blockIdx.x * 256ll + threadIdx.x, step = gridDim.x * 256ll;
    for (int part = 0; part < 3; ++part)
        for (long long n = first; n < all.each[part] * all.videos; n += step) {
            const long long video = n / all.each[part];
            // What is impossible costs infinity, and passes nothing.
            all.to[part][n] = all.cost[video] < __longlong_as_double(0x7ff0000000000000ll) ? all.above[video * all.stride] * all.of[part][n] : 0;
        }
}
