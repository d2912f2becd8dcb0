// Working memory that is kept between calls: fresh pages cost as much as the recursion itself.
#pragma once
#include <sys/mman.h>

#include <cstddef>
#include <mutex>
#include <new>
#include <vector>

namespace g2v {

class Scratch {
public:
    explicit Scratch(size_t bytes) {
        Pool &p = pool();
        {
            std::lock_guard lock(p.mutex);
            size_t fit = p.idle.size();  // the smallest that is large enough, and of these the one that was used last
            for (size_t i = 0; i < p.idle.size(); ++i)
                if (p.idle[i].bytes >= bytes && (fit == p.idle.size() || p.idle[i].bytes <= p.idle[fit].bytes)) fit = i;
            if (fit < p.idle.size()) {
                data_ = p.idle[fit];
                p.idle.erase(p.idle.begin() + static_cast<ptrdiff_t>(fit));
                p.kept -= data_.bytes;
            }
        }
        if (data_.start) return;
        data_.bytes = (bytes + 4095) / 4096 * 4096;
        data_.start = ::operator new(data_.bytes, std::align_val_t{4096});
#if defined(MADV_HUGEPAGE)
        if (data_.bytes >= size_t{4} << 20) madvise(data_.start, data_.bytes, MADV_HUGEPAGE);
#endif
    }
    Scratch(const Scratch &) = delete;
    Scratch &operator=(const Scratch &) = delete;
    ~Scratch() {
        if (data_.bytes > KEEP) {  // it alone is too much: what else is kept stays
            ::operator delete(data_.start, std::align_val_t{4096});
            return;
        }
        Pool &p = pool();
        std::lock_guard lock(p.mutex);
        p.idle.push_back(data_);
        p.kept += data_.bytes;
        while (p.kept > KEEP) {  // the one that was used longest ago goes first
            p.kept -= p.idle.front().bytes;
            ::operator delete(p.idle.front().start, std::align_val_t{4096});
            p.idle.erase(p.idle.begin());
        }
    }
    template <class T> T *as() const { return static_cast<T *>(data_.start); }

private:
    static constexpr size_t KEEP = size_t{256} << 20;  // bytes kept idle at the most
    struct Buffer {
        void *start = nullptr;
        size_t bytes = 0;
    };
    struct Pool {
        std::mutex mutex;
        std::vector<Buffer> idle;
        size_t kept = 0;
    };
    static Pool &pool() {
        static Pool *p = new Pool;  // never destroyed: threads may outlive the end of main
        return *p;
    }
    Buffer data_;
};

}  // namespace g2v
