// Softmin over all alignments of the extended model (repeats, durations, alternatives, soft precedence), and the
// probabilities of labels. A block takes one video. A segment takes a clip at least, so that nothing waits for anything of
// the same clip but a node for its states and a state for the nodes it is entered from: two or three barriers a clip. All is
// computed in double, with costs divided by gamma.
//   DOUBLE      0 costs and gradients are float, 1 double

#if DOUBLE
typedef double real;
#else
typedef float real;
#endif

#define INFINITE __longlong_as_double(0x7ff0000000000000ll)
#define NOT_A_NUMBER __longlong_as_double(0x7ff8000000000000ll)
#define WARP 32

// A video and its automaton: see graph2vid/tsort/automaton.py. Arcs that repeat a step are in `again` alone.
struct Video {
    int nodes, states, steps, longest, video, clips;
    const int *state_start;               // [nodes + 1]
    const int *state_node, *state_step;   // [states]
    const int *arc_start, *arc_from;      // [states + 1], [arcs]: into states
    const int *out_start, *out_state;     // [nodes + 1], [arcs]: the same, out of nodes
    const int *of_start, *of_state;       // [steps + 1], [states]: the states of each step
    const double *arc, *out, *again, *end;  // [arcs] twice, [states], [nodes]
    const double *length, *tail;          // [longest][steps], [steps]: of segments, by their length
    double *memory;
};

struct Automata {
    const Video *videos;
    const real *match;  // [videos][rows][columns]
    const real *drop;   // [videos][columns]
    int rows, columns;
    double gamma;
    real *cost;         // [videos]
    real *match_grad, *drop_grad;
};

// What is kept of a video. At time j, j clips have gone by.
struct Tables {
    double *total;         // the softmin
    double *enter, *ended; // [clips + 1][states]: a segment begins at this time; one ended
    double *best;          // [clips + 1][nodes]
    double *exact, *over;  // [states]: segments of the longest length that has a cost of its own; longer ones
    // Of the pass back, what follows:
    double *leave, *go;    // [clips + 1][states]: the end of a segment; a segment of the longest length that goes on
    double *begin, *shown; // [states]: the beginning of one; how probable it is that a state covers the clip
    double *rest, *follows;  // [nodes]: all but a repeat; all
};

__device__ Tables tables_of(const Video &v) {
    const long long states = v.states, nodes = v.nodes, rows = v.clips + 1;
    Tables t;
    double *next = v.memory;
    t.total = next, next += 1;
    t.enter = next, next += rows * states;
    t.ended = next, next += rows * states;
    t.best = next, next += rows * nodes;
    t.exact = next, next += states;
    t.over = next, next += states;
    t.leave = next, next += rows * states;
    t.go = next, next += rows * states;
    t.begin = next, next += states;
    t.shown = next, next += states;
    t.rest = next, next += nodes;
    t.follows = next;
    return t;
}

// -log of a sum of exp(-x).
struct Sum {
    double low = INFINITE, total = 0;
    __device__ void add(double x) {
        if (!(x < INFINITE)) return;
        if (x < low) {
            total = total * exp(x - low) + 1;
            low = x;
        } else {
            total += exp(low - x);
        }
    }
    __device__ double value() const { return low - log(total); }
};

// The costs of a video, divided by gamma.
struct Scaled {
    const real *match, *drop;
    int columns;
    double scale;
    __device__ Scaled(const Automata &all, const Video &v)
        : match(all.match + (long long)v.video * all.rows * all.columns), drop(all.drop + (long long)v.video * all.columns),
          columns(all.columns), scale(1 / all.gamma) {}
    __device__ double of(int step, int clip) const { return match[(long long)step * columns + clip] * scale; }
    __device__ double background(int clip) const { return drop[clip] * scale; }
};

#define EACH(name, count) for (int name = threadIdx.x; name < (count); name += blockDim.x)

extern "C" __global__ void __launch_bounds__(1024) forward(const __grid_constant__ Automata all) {
    extern __shared__ double shared[];
    const Video v = all.videos[blockIdx.x];
    const Tables t = tables_of(v);
    const Scaled costs(all, v);
    const double scale = costs.scale;
    int bad = 0;
    EACH(at, v.steps * v.clips) bad |= !(costs.of(at / v.clips, at % v.clips) > -INFINITE);
    EACH(clip, v.clips) bad |= !(costs.background(clip) > -INFINITE);
    if (__syncthreads_or(bad)) {
        if (threadIdx.x == 0) all.cost[v.video] = t.total[0] = NOT_A_NUMBER;
        return;
    }
    EACH(state, v.states) t.ended[state] = t.exact[state] = t.over[state] = INFINITE;
    EACH(node, v.nodes) t.best[node] = node ? INFINITE : 0;
    __syncthreads();
    EACH(state, v.states) {
        Sum entered;
        for (int a = v.arc_start[state]; a < v.arc_start[state + 1]; ++a) entered.add(t.best[v.arc_from[a]] + v.arc[a] * scale);
        t.enter[state] = entered.value();
    }
    for (int j = 1; j <= v.clips; ++j) {
        double *enter = t.enter + (long long)j * v.states, *ended = t.ended + (long long)j * v.states;
        double *best = t.best + (long long)j * v.nodes;
        const double *before = best - v.nodes, background = costs.background(j - 1);
        EACH(state, v.states) {  // a thread has the same states all the time
            const int step = v.state_step[state];
            Sum longer;
            longer.add(t.over[state]);
            longer.add(t.exact[state]);
            const double over = longer.value() + (v.tail[step] * scale + costs.of(step, j - 1));
            Sum all_lengths;
            all_lengths.add(over);
            double clips = 0, exact = INFINITE;
            for (int length = 1; length <= v.longest && length <= j; ++length) {
                clips += costs.of(step, j - length);
                if (!(clips < INFINITE)) break;
                const double one = t.enter[(long long)(j - length) * v.states + state] + (clips + v.length[(length - 1) * v.steps + step] * scale);
                all_lengths.add(one);
                if (length == v.longest) exact = one;
            }
            t.over[state] = over;
            t.exact[state] = exact;
            ended[state] = all_lengths.value();
        }
        __syncthreads();
        EACH(node, v.nodes) {
            Sum here;
            here.add(before[node] + background);
            for (int state = v.state_start[node]; state < v.state_start[node + 1]; ++state) here.add(ended[state]);
            best[node] = here.value();
        }
        __syncthreads();
        EACH(state, v.states) {
            Sum entered;
            for (int a = v.arc_start[state]; a < v.arc_start[state + 1]; ++a) entered.add(best[v.arc_from[a]] + v.arc[a] * scale);
            if (v.again[state] < INFINITE) {  // not after a segment of its own: that would be one segment
                const int node = v.state_node[state];
                const double repeat = v.again[state] * scale;
                entered.add(before[node] + background + repeat);
                for (int other = v.state_start[node]; other < v.state_start[node + 1]; ++other)
                    if (other != state) entered.add(ended[other] + repeat);
            }
            enter[state] = entered.value();
        }
    }
    Sum mine;
    EACH(node, v.nodes) mine.add(t.best[(long long)v.clips * v.nodes + node] + v.end[node] * scale);
    shared[threadIdx.x] = mine.value();
    __syncthreads();
    if (threadIdx.x == 0) {
        Sum whole;
        for (int thread = 0; thread < blockDim.x; ++thread) whole.add(shared[thread]);
        t.total[0] = whole.value();
        all.cost[v.video] = t.total[0] * all.gamma;
    }
}

__device__ double over_warp(double x) {
    for (int apart = WARP / 2; apart; apart /= 2) x += __shfl_down_sync(0xffffffff, x, apart);
    return x;
}

extern "C" __global__ void __launch_bounds__(1024) backward(const __grid_constant__ Automata all) {
    extern __shared__ double shared[];
    const Video v = all.videos[blockIdx.x];
    const Tables t = tables_of(v);
    const Scaled costs(all, v);
    const double scale = costs.scale, total = t.total[0];
    if (!(total < INFINITE)) return;  // the gradients of what is impossible, or no number, stay 0
    real *match_grad = all.match_grad + (long long)v.video * all.rows * all.columns;
    real *drop_grad = all.drop_grad + (long long)v.video * all.columns;
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP, warps = blockDim.x / WARP;
    EACH(state, v.states) t.shown[state] = 0;
    for (int j = v.clips; j >= 0; --j) {
        const bool last = j == v.clips;
        double *leave = t.leave + (long long)j * v.states, *go = t.go + (long long)j * v.states;
        const double *enter = t.enter + (long long)j * v.states, *ended = t.ended + (long long)j * v.states;
        const double *best = t.best + (long long)j * v.nodes, background = last ? 0 : costs.background(j);
        EACH(state, v.states) {
            const int step = v.state_step[state];
            Sum begin, going;
            double clips = 0;
            for (int length = 1; length <= v.longest && length <= v.clips - j; ++length) {
                clips += costs.of(step, j + length - 1);
                if (!(clips < INFINITE)) break;
                const double one = clips + v.length[(length - 1) * v.steps + step] * scale;
                begin.add(one + leave[(long long)length * v.states + state]);
                if (length == v.longest) begin.add(one + go[(long long)length * v.states + state]);
            }
            t.begin[state] = begin.value();
            if (!last) {
                going.add(leave[v.states + state]);
                going.add(go[v.states + state]);
            }
            go[state] = last ? INFINITE : going.value() + (v.tail[step] * scale + costs.of(step, j));
        }
        __syncthreads();
        double dropped = 0;
        EACH(node, v.nodes) {
            Sum rest;
            if (last) {
                rest.add(v.end[node] * scale);
            } else {
                const double from_here = background + t.follows[node];
                dropped += exp(total - (best[node] + from_here));
                rest.add(from_here);
            }
            for (int a = v.out_start[node]; a < v.out_start[node + 1]; ++a) rest.add(v.out[a] * scale + t.begin[v.out_state[a]]);
            t.rest[node] = rest.value();
            for (int state = v.state_start[node]; state < v.state_start[node + 1]; ++state) rest.add(v.again[state] * scale + t.begin[state]);
            t.follows[node] = rest.value();
        }
        dropped = over_warp(dropped);
        if (lane == 0) shared[warp] = dropped;
        __syncthreads();
        if (threadIdx.x == 0 && !last) {
            double sum = 0;
            for (int other = 0; other < warps; ++other) sum += shared[other];
            drop_grad[j] = sum;
        }
        EACH(state, v.states) {
            const int node = v.state_node[state];
            Sum left;
            left.add(t.rest[node]);
            for (int other = v.state_start[node]; other < v.state_start[node + 1]; ++other)
                if (other != state) left.add(v.again[other] * scale + t.begin[other]);
            leave[state] = left.value();
            // Of the clip before this time: what covers the one after it, with what ends here and without what begins here.
            t.shown[state] += exp(total - (ended[state] + leave[state])) - exp(total - (enter[state] + t.begin[state]));
        }
        __syncthreads();
        if (j)
            for (int step = warp; step < v.steps; step += warps) {
                double sum = 0;
                for (int at = v.of_start[step] + lane; at < v.of_start[step + 1]; at += WARP) sum += t.shown[v.of_state[at]];
                sum = over_warp(sum);
                if (lane == 0) match_grad[(long long)step * all.columns + j - 1] = sum > 0 ? sum : 0;
            }
    }
}
