// Long work that can be stopped: by a signal, by another thread, or because its time is up.
//
// Every loop that may take long says now and then how much it has done, in updates of about a nanosecond each. The thread
// that made the call then asks, every few milliseconds, whether it shall go on; the threads that help it see a flag.
#pragma once
#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>

#if defined(__linux__) && !defined(__ANDROID__)
#define G2V_PLACES_THREADS
#include <pthread.h>
#include <sched.h>
#endif

#include "job.hpp"

namespace g2v {

// Thrown through everything that is under way; what it holds is freed on the way.
struct Stopped : std::exception {
    const char *what() const noexcept override { return "stopped"; }
};

// How long the calls that share it may take, and whether they shall stop at once; all of it within `outer`.
class Watch {
public:
    using Clock = std::chrono::steady_clock;
    explicit Watch(double seconds, const Watch *outer = nullptr)
        : outer(outer),
          ends(seconds < 1e9 ? Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds))
                             : Clock::time_point::max()) {}
    const Watch *const outer;
    const Clock::time_point ends;
    std::atomic<bool> stop{false};
};

// How often all calls together asked, the most work between two questions, and all work; for tests.
struct PollCounts {
    std::atomic<int64_t> asked{0}, longest{0}, work{0};
};
inline PollCounts poll_counts;

// One call. `signals` tells whether a signal wants it to end; it is asked by the thread that made the call alone.
class Poll {
public:
    static constexpr int64_t OFTEN = 2'000'000;               // updates between looks at the clock
    static constexpr std::chrono::milliseconds PATIENCE{20};  // between questions for signals

    Poll(const Watch *watch, bool (*signals)()) : watch_(watch), signals_(signals) {}
    Poll(const Poll &) = delete;
    Poll &operator=(const Poll &) = delete;
    ~Poll() { count(); }

    void operator()(int64_t work) {
        if (stop_.load(std::memory_order_relaxed)) throw Stopped();
        if (std::this_thread::get_id() != owner_) return;
        since_ += work;
        if (since_ >= OFTEN) ask();
    }
    Pause pause() {
        return {[](void *self, int64_t work) { (*static_cast<Poll *>(self))(work); }, this};
    }
    // By the thread that made the call: shall it go on?
    void ask() {
        count();
        poll_counts.asked.fetch_add(1, std::memory_order_relaxed);
        const auto now = Watch::Clock::now();
        for (const Watch *watch = watch_; watch; watch = watch->outer) {
            late_ = now >= watch->ends;
            if (late_ || watch->stop.load(std::memory_order_relaxed)) give_up();
        }
        if (now - asked_ < PATIENCE) return;
        if (signals_()) give_up();
        asked_ = Watch::Clock::now();
    }
    // By any thread: all shall stop.
    void stop() { stop_.store(true, std::memory_order_relaxed); }
    bool late() const { return late_; }

private:
    const Watch *watch_;
    bool (*signals_)();
    Watch::Clock::time_point asked_ = Watch::Clock::now();
    int64_t since_ = 0;
    bool late_ = false;
    // What all threads read, on a cache line that none of them writes to.
    alignas(64) std::atomic<bool> stop_{false};
    const std::thread::id owner_ = std::this_thread::get_id();

    [[noreturn]] void give_up() {
        stop();
        throw Stopped();
    }
    void count() {
        poll_counts.work.fetch_add(since_, std::memory_order_relaxed);
        int64_t most = poll_counts.longest.load(std::memory_order_relaxed);
        while (since_ > most && !poll_counts.longest.compare_exchange_weak(most, since_)) {}
        since_ = 0;
    }
};

// Look again and again whether it is done before sleeping: to wake up takes as long as many short waits.
template <class Done> void spin_until(Done done) {
    constexpr int SPINS = 100'000;  // with 2,000 or 20,000, calls with two workers took longer
    for (int spin = 0; spin < SPINS && !done(); ++spin) {}
}

// Where new threads begin: not on the processor of the thread that makes them. Linux puts them there when that thread has just
// slept, and there they wait for milliseconds while it goes on.
class Elsewhere {
public:
#if defined(G2V_PLACES_THREADS)
    Elsewhere() {
        known_ = sched_getaffinity(0, sizeof allowed_, &allowed_) == 0;
        others_ = allowed_;
        CPU_CLR(static_cast<size_t>(sched_getcpu()), &others_);
        known_ = known_ && CPU_COUNT(&others_) > 0;
    }
    // To be called for a new thread by the one that made it…
    void begin(std::thread &thread) const {
        if (known_) pthread_setaffinity_np(thread.native_handle(), sizeof others_, &others_);
    }
    // …and afterwards by the new one, which then may move as others do.
    void begun() const {
        if (known_) sched_setaffinity(0, sizeof allowed_, &allowed_);
    }

private:
    bool known_ = false;
    cpu_set_t allowed_{}, others_{};
#else
    void begin(std::thread &) const {}
    void begun() const {}
#endif
};

// Run work(0, size) here and work(1, size), … in other threads: `wanted` in all, or as many as the system gives. Returns when
// all have done their work, and throws what the first of them to fail threw. Nobody waits for the threads themselves to end.
template <class Work> void run_team(int64_t wanted, Poll &poll, Work work) {
    if (wanted <= 1) {
        work(0, 1);
        return;
    }
    std::atomic<int64_t> size{0};  // once it is known
    std::atomic<int64_t> busy{0};
    std::mutex mutex;
    std::condition_variable ended;
    std::exception_ptr failure;
    auto fail = [&] {
        {
            const std::lock_guard lock(mutex);
            if (!failure) failure = std::current_exception();
        }
        poll.stop();
    };
    auto guarded = [&](int64_t me) {
        try {
            work(me, size.load());
        } catch (...) {
            fail();
        }
    };
    int64_t others = 0;
    const Elsewhere elsewhere;
    try {
        for (; others + 1 < wanted; ++others) {
            std::thread thread([&, me = others + 1] {
                spin_until([&] { return size.load() != 0; });
                size.wait(0);
                elsewhere.begun();
                guarded(me);
                const std::lock_guard lock(mutex);  // until it is given back, nothing here is gone
                if (--busy == 0) ended.notify_one();
            });
            elsewhere.begin(thread);
            thread.detach();
        }
    } catch (...) {  // fewer, then
    }
    busy = others;
    size = others + 1;
    size.notify_all();
    guarded(0);
    spin_until([&] { return busy.load() == 0; });
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, Poll::PATIENCE, [&] { return busy == 0; })) {
        if (failure) continue;
        lock.unlock();
        try {
            poll.ask();
        } catch (...) {
            fail();
        }
        lock.lock();
    }
    lock.unlock();
    if (failure) std::rethrow_exception(failure);
}

}  // namespace g2v
