// The soft recursion and its gradient, clip by clip, many states at once. Compiled like hard.cpp.
//
// Every set of numbers that is minimised softly is worked off in the same way: its least element m, then the sum of
// e = exp(-(x - m) / gamma). softmin is m - gamma log(sum e), smoothmin the mean of x weighted by e. An infinite x has
// e = 0, a set of infinite numbers has the minimum +inf and passes no gradient.
#include "soft_job.hpp"
#include "soft_math.hpp"

namespace g2v {
namespace G2V_ARCH {
namespace {

template <class T, bool VIDEOS, bool CONTIGUOUS, bool SMOOTH, bool SKIPS, bool NOTES> struct Soft {
    static constexpr int L = LANES<T>;
    // Sets of states that are entered from must be kept whole where smoothmin is taken over them together with others.
    static constexpr bool SETS = SMOOTH && !CONTIGUOUS;
    static constexpr int PARTS = SETS ? 3 : 1, GRADS = SETS ? 2 : 1;
    enum Note { OWN, WEIGHT, DROPPED, SENT, SENT_SLOPE };
    static constexpr int NOTED = CONTIGUOUS ? 2 : SMOOTH ? 5 : 3;
    static constexpr T TINY = T(1e-30);  // in place of 0 under a fraction
    typedef V<T> Vec;

    const SoftJob<T> &job;
    const T *before;
    T *after;
    int64_t clip;
    Vec off, drop, rate;  // rate = 1 / gamma

    G2V_INLINE Soft(const SoftJob<T> &j, int64_t c, const T *b, T *a, const T *shift)
        : job(j), before(b), after(a), clip(c), off(load(shift)), drop(cost<T, VIDEOS>(j.drop, c)),
          rate(full<T>(T(1)) / full<T>(j.gamma)) {}

    G2V_INLINE Vec exp_of(Vec distance) const { return exp_negative(-distance * rate); }
    G2V_INLINE const T *group_before(int64_t g) const { return before + g * PARTS * L; }
    G2V_INLINE T *group_after(int64_t g) const { return after + g * PARTS * L; }
    G2V_INLINE const T *slots_before() const { return before + (job.groups + 1) * PARTS * L; }
    G2V_INLINE T *slots_after() const { return after + (job.groups + 1) * PARTS * L; }
    G2V_INLINE T *note(int64_t slot, Note kind) const { return slots_after() + (job.n_slots + slot * NOTED + kind) * L; }
    G2V_INLINE Vec slope(Vec away, Vec mean) const { return T(1) - (away - mean) * rate; }

    // The end of the clip's set that is not a state: background after the same ideal, or before the first step.
    G2V_INLINE Vec rest(int64_t g) const {
        const Vec dropped = drop + (load(group_before(g)) - off);
        return most(CONTIGUOUS ? dropped : dropped + load(job.group_start + g * L), unused(g));
    }
    G2V_INLINE Vec unused(int64_t g) const { return load(job.group_unused + g * L); }

    // What a slot is entered from: a number, or (SETS) a set with least element m, sum z of the e, and sum w of the
    // distances from m weighted by e.
    struct Set {
        Vec m, z, w;
    };
    G2V_INLINE Set group_set(int64_t g, Vec cost) const {
        const T *p = group_before(g);
        Set s;
        s.m = load(p) - off + cost;
        if constexpr (SETS) {
            s.z = load(p + L);
            s.w = load(p + 2 * L);
        }
        return s;
    }
    G2V_INLINE Vec begin_cost(int64_t slot) const { return job.begin ? load(job.begin + slot * L) : Vec{}; }
    G2V_INLINE bool straight(int64_t slot, int64_t mixed) const { return VIDEOS || slot < mixed; }
    G2V_INLINE Set entry_set(int64_t slot, int64_t mixed) const {
        if (straight(slot, mixed)) return group_set(job.slots.slot_source[slot], begin_cost(slot));
        const int32_t *source = job.slots.mixed_source + job.slots.slot_source[slot] * L;
        auto part = [&](int k) __attribute__((always_inline)) {
            return gather<T>([&](int l) __attribute__((always_inline)) { return before[place(source[l], PARTS, k)]; });
        };
        Set s;
        s.m = part(0) - off + begin_cost(slot);
        if constexpr (SETS) {
            s.z = part(1);
            s.w = part(2);
        }
        return s;
    }
    // Where part k, of `parts`, of the ideal in `source` (group * LANES + lane) is.
    static G2V_INLINE int64_t place(int32_t source, int parts, int k) {
        return static_cast<int64_t>(source & ~(L - 1)) * parts + k * L + (source & (L - 1));
    }
    G2V_INLINE const int32_t *mixed_steps(int64_t slot) const { return job.slots.mixed_step + job.slots.slot_source[slot] * L; }
    G2V_INLINE Vec match(int64_t slot, int64_t mixed) const {
        const T *costs = job.match + clip * (job.n_steps + 1) * (VIDEOS ? L : 1);
        if (straight(slot, mixed)) return cost<T, VIDEOS>(costs, job.slots.slot_step[slot]);
        const int32_t *steps = mixed_steps(slot);
        return gather<T>([&](int l) __attribute__((always_inline)) { return costs[steps[l]]; });
    }

    // Two numbers: how far each is above the lesser, and its e. The lesser's e is 1, so one exponential does.
    struct Two {
        Vec low, from, da, db, ea, eb;
    };
    G2V_INLINE Two two(Vec a, Vec b) const {
        Two t;
        t.low = least(a, b);
        t.from = finite_or_zero<T>(t.low);
        t.da = above<T>(a, t.from);
        t.db = above<T>(b, t.from);
        const Vec e = exp_of(most(t.da, t.db));
        t.ea = where<T>(t.da > Vec{}, e, full<T>(T(1)));
        t.eb = where<T>(t.db > Vec{}, e, full<T>(T(1)));
        return t;
    }

    // The soft minimum of two numbers.
    struct Pair {
        Vec value, first, second;  // first, second: the gradient with respect to each
    };
    template <bool GRADIENT> G2V_INLINE Pair pair(Vec a, Vec b) const {
        const Two t = two(a, b);
        const Vec z = most(t.ea + t.eb, full<T>(TINY));
        Pair p;
        if constexpr (SMOOTH) {
            const Vec one = full<T>(T(1)) / z, mean = (t.da * t.ea + t.db * t.eb) * one;
            p.value = t.low + mean;
            if constexpr (GRADIENT) {
                p.first = t.ea * one * (T(1) - (t.da - mean) * rate);
                p.second = t.eb * one * (T(1) - (t.db - mean) * rate);
            }
        } else {
            p.value = t.low - job.gamma * log_to_two<T>(most(z, full<T>(T(1))));
            if constexpr (GRADIENT) {
                const Vec one = full<T>(T(1)) / z;
                p.first = t.ea * one;
                p.second = t.eb * one;
            }
        }
        return p;
    }

    // The entry of a slot: over all it is entered from, and the state itself one clip before. `d_own`, `e_own` and (without
    // waivers) `d_source`, `e_source` are the distances from `from` and the e of the state and of what it is entered from.
    struct Entry {
        Vec value, from, z, one, mean;  // one: 1 / z, for gradients and means; mean: (SMOOTH) of the distances
        Vec d_own, e_own, d_source, e_source;
        Set source;
    };
    template <class Visit> G2V_INLINE void each_source(int64_t slot, Visit visit) const {
        for (int64_t e = job.entries.slot_entry[slot]; e < job.entries.slot_entry[slot + 1]; ++e)
            visit(group_set(job.entries.group[e], load(job.waived + job.entries.waived[e] * L) + begin_cost(slot)), e);
    }
    G2V_INLINE Entry entry(int64_t slot, int64_t mixed, Vec own) const {
        Entry r;
        Vec low, w;
        auto add = [&](const Set &s, Vec far, Vec e) __attribute__((always_inline)) {
            r.z += SETS ? s.z * e : e;
            if constexpr (SMOOTH) w += (SETS ? s.w + s.z * far : far) * e;
        };
        if constexpr (SKIPS) {
            low = own;
            each_source(slot, [&](const Set &s, int64_t) __attribute__((always_inline)) { low = least(low, s.m); });
            r.from = finite_or_zero<T>(low);
            r.d_own = above<T>(own, r.from);
            r.e_own = exp_of(r.d_own);
        } else {
            r.source = entry_set(slot, mixed);
            const Two t = two(r.source.m, own);
            low = t.low;
            r.from = t.from;
            r.d_own = t.db;
            r.e_own = t.eb;
            r.d_source = t.da;
            r.e_source = t.ea;
        }
        r.z = r.e_own;
        w = r.d_own * r.e_own;
        if constexpr (SKIPS)
            each_source(slot, [&](const Set &s, int64_t) __attribute__((always_inline)) {
                const Vec far = above<T>(s.m, r.from);
                add(s, far, exp_of(far));
            });
        else add(r.source, r.d_source, r.e_source);
        r.z = most(r.z, full<T>(TINY));
        r.one = full<T>(T(1)) / r.z;
        if constexpr (SMOOTH) {
            r.mean = w * r.one;
            r.value = low + r.mean;
        } else {
            r.mean = Vec{};
            const Vec z = most(r.z, full<T>(T(1)));
            r.value = low - job.gamma * (SKIPS ? log_positive<T>(z) : log_to_two<T>(z));
        }
        return r;
    }

    // First all slots, then all groups: what does not wait for one another stands close together.
    void forward(T *next_shift) {
        for (int64_t g = 0; g < job.groups; ++g) {
            now_and_then(g);
            const int64_t end = job.slots.group_slot[g + 1], mixed = VIDEOS ? end : job.slots.mixed[g];
            for (int64_t slot = job.slots.group_slot[g]; slot < end; ++slot) {
                const Vec own = load(slots_before() + slot * L) - off;
                const Entry in = entry(slot, mixed, own);
                Vec value = match(slot, mixed) + in.value;
                if constexpr (NOTES) {
                    const Vec own_share = in.e_own * in.one;
                    store(note(slot, OWN), SMOOTH ? own_share * slope(in.d_own, in.mean) : own_share);
                    if constexpr (SETS) {
                        store(note(slot, SENT), in.e_source * in.one);
                        store(note(slot, SENT_SLOPE), in.e_source * in.one * slope(in.d_source, in.mean));
                    }
                }
                if constexpr (!CONTIGUOUS) {
                    const Pair label = pair<NOTES>(value, drop + own);
                    value = label.value;
                    if constexpr (NOTES) store(note(slot, DROPPED), label.second);
                }
                store(slots_after() + slot * L, most(value, unused(g)));
            }
        }
        Vec least_sum = full<T>(INF<T>);
        for (int64_t g = 0; g < job.groups; ++g) {
            now_and_then(g);
            const int64_t begin = job.slots.group_slot[g], end = job.slots.group_slot[g + 1];
            const Vec other = rest(g);
            Vec low = other;
            for (int64_t slot = begin; slot < end; ++slot) low = least(low, load(slots_after() + slot * L));
            const Vec from = finite_or_zero<T>(low), far = above<T>(other, from);
            Vec z = exp_of(far), w = far * z;
            for (int64_t slot = begin; slot < end; ++slot) {
                const Vec d = above<T>(load(slots_after() + slot * L), from), e = exp_of(d);
                if constexpr (NOTES) store(note(slot, WEIGHT), e);
                z += e;
                if constexpr (SMOOTH) w += d * e;
            }
            T *out = group_after(g);
            if constexpr (SETS) {
                store(out, low);
                store(out + L, z);
                store(out + 2 * L, w);
            } else if constexpr (SMOOTH) {
                store(out, low + w / most(z, full<T>(TINY)));
            } else {
                store(out, low - job.gamma * log_positive<T>(most(z, full<T>(T(1)))));
            }
            least_sum = least(least_sum, low);
        }
        store(group_after(job.groups), full<T>(INF<T>));
        for (int k = 1; k < PARTS; ++k) store(group_after(job.groups) + k * L, Vec{});
        if constexpr (!VIDEOS) {
            T smallest = least_sum[0];
            for (int l = 1; l < L; ++l) smallest = least_sum[l] < smallest ? least_sum[l] : smallest;
            least_sum = full<T>(smallest);
        }
        store(next_shift, finite_or_zero<T>(least_sum));
    }

    // Where there are many groups: an update takes some eight nanoseconds, in two loops.
    G2V_INLINE void now_and_then(int64_t g) const {
        if (g % 512 == 511) job.pause(4 * (job.slots.group_slot[g + 1] - job.slots.group_slot[g - 511] + 512) * L);
    }

    static G2V_INLINE void add_to(T *p, Vec v) { store(p, load(p) + v); }

    // Send a gradient to where a slot is entered from: part `part` of the group's.
    G2V_INLINE void send(int64_t slot, int64_t mixed, int64_t group, int part, Vec g) const {
        if (SKIPS || straight(slot, mixed)) {
            add_to(job.group_grad_prev + (group * GRADS + part) * L, g);
            return;
        }
        const int32_t *source = job.slots.mixed_source + job.slots.slot_source[slot] * L;
#pragma GCC unroll 8
        for (int l = 0; l < L; ++l) job.group_grad_prev[place(source[l], GRADS, part)] += g[l];
    }

    void backward() {
        const int64_t of_clip = clip * (job.n_steps + 1) * L;
        T *match_grad = job.match_grad + of_clip;
        Vec dropped{};  // gradient of the clip's drop cost
        for (int64_t g = 0; g < job.groups; ++g) {
            now_and_then(g);
            const int64_t begin = job.slots.group_slot[g], end = job.slots.group_slot[g + 1];
            const Vec other = rest(g);
            Vec low = other;
            for (int64_t slot = begin; slot < end; ++slot) low = least(low, load(slots_after() + slot * L));
            const Vec from = finite_or_zero<T>(low), far = above<T>(other, from), e_other = exp_of(far);
            const T *in_grad = job.group_grad + g * GRADS * L;
            const Vec flat = load(in_grad);  // SETS: what is multiplied by -distance / gamma
            Vec first, mean{};               // SETS: what is added to that; else: what e is multiplied by
            Vec z = e_other, w = far * e_other;
            for (int64_t slot = begin; slot < end; ++slot) {
                const Vec d = above<T>(load(slots_after() + slot * L), from), e = NOTES ? load(note(slot, WEIGHT)) : exp_of(d);
                if constexpr (!NOTES) store(job.weights + (slot - begin) * L, e);
                z += e;
                if constexpr (SMOOTH) w += d * e;
            }
            if constexpr (SETS) {
                first = load(in_grad + L);
            } else {
                const Vec one = full<T>(T(1)) / most(z, full<T>(TINY));
                first = flat * one;
                if constexpr (SMOOTH) mean = w * one;
            }
            auto share = [&](Vec d, Vec e) __attribute__((always_inline)) -> Vec {
                if constexpr (SETS) return e * (first - d * rate * flat);
                else if constexpr (SMOOTH) return e * first * (T(1) - (d - mean) * rate);
                else return e * first;
            };
            const Vec g_other = share(far, e_other);
            dropped += g_other;
            add_to(job.group_grad_prev + (g * GRADS + GRADS - 1) * L, g_other);
            for (int64_t slot = begin; slot < end; ++slot) {
                const Vec d = above<T>(load(slots_after() + slot * L), from);
                add_to(job.slot_grad + slot * L, share(d, load(NOTES ? note(slot, WEIGHT) : job.weights + (slot - begin) * L)));
            }
        }
        for (int64_t g = 0; g < job.groups; ++g) {
            now_and_then(g);
            const int64_t end = job.slots.group_slot[g + 1], mixed = VIDEOS ? end : job.slots.mixed[g];
            for (int64_t slot = job.slots.group_slot[g]; slot < end; ++slot) {
                Vec grad = load(job.slot_grad + slot * L);
                if constexpr (NOTES) {
                    pass_on(match_grad, of_clip, slot, mixed, grad, dropped);
                    continue;
                }
                const Vec own = load(slots_before() + slot * L) - off;
                const Entry in = entry(slot, mixed, own);
                Vec own_grad{};
                if constexpr (!CONTIGUOUS && SMOOTH) {
                    const Pair p = pair<true>(match(slot, mixed) + in.value, drop + own);
                    own_grad = grad * p.second;
                    dropped += own_grad;
                    grad = grad * p.first;
                } else if constexpr (!CONTIGUOUS) {  // the shares of shown and dropped add up to 1: one of them is enough
                    const Vec value = finite_or_zero<T>(load(slots_after() + slot * L));
                    own_grad = grad * exp_of(most(above<T>(drop + own, value), Vec{}));
                    dropped += own_grad;
                    grad -= own_grad;
                }
                add_match(match_grad, slot, mixed, grad);
                const Vec scaled = grad * in.one;
                const Vec kept = scaled * in.e_own;
                if (CONTIGUOUS && !SMOOTH && job.start_grad) add_match(job.start_grad + of_clip, slot, mixed, grad - kept);
                store(job.slot_grad + slot * L, own_grad + (SMOOTH ? kept * slope(in.d_own, in.mean) : kept));
                auto enter = [&](const Set &s, int64_t group, Vec away, Vec e) __attribute__((always_inline)) {
                    const Vec alpha = scaled * e;
                    if constexpr (SETS) {
                        send(slot, mixed, group, 0, alpha);
                        send(slot, mixed, group, 1, alpha * slope(away, in.mean));
                        return alpha * (s.z * slope(away, in.mean) - s.w * rate);
                    } else {
                        const Vec whole = SMOOTH ? alpha * slope(away, in.mean) : alpha;
                        send(slot, mixed, group, 0, whole);
                        return whole;
                    }
                };
                if constexpr (SKIPS)
                    each_source(slot, [&](const Set &s, int64_t e) __attribute__((always_inline)) {
                        const Vec away = above<T>(s.m, in.from);
                        add_to(job.waived_grad + job.entries.waived[e] * L, enter(s, job.entries.group[e], away, exp_of(away)));
                    });
                else enter(in.source, job.slots.slot_source[slot], in.d_source, in.e_source);
            }
        }
        add_to(job.drop_grad + clip * L, dropped);
    }

    // The same from what was noted: the shares of a set add up to 1, so one of two is enough.
    G2V_INLINE void pass_on(T *match_grad, int64_t of_clip, int64_t slot, int64_t mixed, Vec grad, Vec &dropped) const {
        Vec own_grad{};
        if constexpr (!CONTIGUOUS) {
            own_grad = grad * load(note(slot, DROPPED));
            dropped += own_grad;
            grad -= own_grad;
        }
        add_match(match_grad, slot, mixed, grad);
        const Vec kept = grad * load(note(slot, OWN));
        if (CONTIGUOUS && !SMOOTH && job.start_grad) add_match(job.start_grad + of_clip, slot, mixed, grad - kept);
        store(job.slot_grad + slot * L, own_grad + kept);
        const int64_t group = job.slots.slot_source[slot];
        if constexpr (SETS) {
            send(slot, mixed, group, 0, grad * load(note(slot, SENT)));
            send(slot, mixed, group, 1, grad * load(note(slot, SENT_SLOPE)));
        } else {
            send(slot, mixed, group, 0, grad - kept);
        }
    }

    G2V_INLINE void add_match(T *match_grad, int64_t slot, int64_t mixed, Vec g) const {
        if (straight(slot, mixed)) {
            add_to(match_grad + job.slots.slot_step[slot] * L, g);
            return;
        }
        const int32_t *steps = mixed_steps(slot);
#pragma GCC unroll 8
        for (int l = 0; l < L; ++l) match_grad[steps[l] * L + l] += g[l];
    }
};

// Call use.operator()<…>() for the kind of job this is. Waiving steps is for videos in lanes alone, notes for one video.
template <class T, class Use> G2V_INLINE void choose(const SoftJob<T> &job, Use use) {
    auto kind = [&]<bool VIDEOS, bool SKIPS, bool NOTES>() {
        if (job.contiguous && job.smooth) use.template operator()<VIDEOS, true, true, SKIPS, NOTES>();
        else if (job.contiguous) use.template operator()<VIDEOS, true, false, SKIPS, NOTES>();
        else if (job.smooth) use.template operator()<VIDEOS, false, true, SKIPS, NOTES>();
        else use.template operator()<VIDEOS, false, false, SKIPS, NOTES>();
    };
    if (job.entries.slot_entry != nullptr) kind.template operator()<true, true, false>();
    else if (job.videos) kind.template operator()<true, false, false>();
    else if (job.notes) kind.template operator()<false, false, true>();
    else kind.template operator()<false, false, false>();
}

template <class T> void forward(const SoftJob<T> &job, int64_t clip, const T *before, T *after, const T *shift, T *next_shift) {
    choose(job, [&]<bool VIDEOS, bool CONTIGUOUS, bool SMOOTH, bool SKIPS, bool NOTES>() {
        Soft<T, VIDEOS, CONTIGUOUS, SMOOTH, SKIPS, NOTES>(job, clip, before, after, shift).forward(next_shift);
    });
}
template <class T> void backward(const SoftJob<T> &job, int64_t clip, const T *before, const T *after, const T *shift) {
    choose(job, [&]<bool VIDEOS, bool CONTIGUOUS, bool SMOOTH, bool SKIPS, bool NOTES>() {
        Soft<T, VIDEOS, CONTIGUOUS, SMOOTH, SKIPS, NOTES>(job, clip, before, const_cast<T *>(after), shift).backward();
    });
}

}  // namespace
}  // namespace G2V_ARCH

SoftKernelsOf G2V_JOIN(soft_kernels_, G2V_ARCH)() {
    return {{G2V_ARCH::forward<float>, G2V_ARCH::backward<float>}, {G2V_ARCH::forward<double>, G2V_ARCH::backward<double>}};
}

}  // namespace g2v
