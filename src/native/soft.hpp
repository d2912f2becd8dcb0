// softmin over all alignments, each label sequence counted once, and its gradient: the posterior. In the log domain and in
// double, ideal by ideal.
#pragma once
#include <cmath>

#include "procedure.hpp"
#include "scratch.hpp"

namespace g2v {

class Soft {
public:
    // match [steps][clips], drop [clips], skip [steps] or null; all divided by gamma and negated: log weights.
    Soft(const Procedure &g, const double *match, const double *drop, const double *skip, int64_t n_clips,
         bool contiguous)
        : g_(g), match_(match), drop_(drop), skip_(skip), n_(n_clips), width_(n_clips + 1), contiguous_(contiguous),
          best_(static_cast<size_t>(g.ideals() * width_), NONE), grad_(static_cast<size_t>(g.ideals() * width_), 0.0),
          entry_(width_), entry_grad_(width_), row_(width_), row_grad_(width_) {}

    // Log of the sum of the weights of all alignments; `probability` [steps + 1][clips] receives the posterior.
    double run(double *probability) {
        forward();
        std::vector<double> rest(static_cast<size_t>(g_.ideals()), NONE);  // log weight of waiving all that is left
        rest[g_.ideals() - 1] = 0;
        if (skip_)
            for (int64_t p = g_.ideals() - 1; p > 0; --p)
                for (int64_t s = g_.state_start[p]; s < g_.state_start[p + 1]; ++s)
                    rest[g_.state_from[s]] = rest[p] + skip_[g_.state_step[s]];
        double total = NONE;
        for (int64_t p = 0; p < g_.ideals(); ++p) total = add(total, best(p)[n_] + rest[p]);
        std::fill_n(probability, (g_.n_steps + 1) * n_, 0.0);
        if (total == NONE) return total;
        for (int64_t p = 0; p < g_.ideals(); ++p) grad(p)[n_] = share(best(p)[n_] + rest[p], total);
        backward(probability);
        return total;
    }

private:
    static constexpr double NONE = -std::numeric_limits<double>::infinity();
    struct Entry {
        int64_t ideal;
        double waived;
    };
    const Procedure &g_;
    const double *match_, *drop_, *skip_;
    int64_t n_, width_;
    bool contiguous_;
    std::vector<double> best_, grad_;  // [ideals][clips + 1]
    std::vector<double> entry_, entry_grad_, row_, row_grad_;
    std::vector<Entry> entries_;

    double *best(int64_t p) { return best_.data() + p * width_; }
    double *grad(int64_t p) { return grad_.data() + p * width_; }

    static double add(double a, double b) {
        const double high = std::max(a, b), low = std::min(a, b);
        return low == NONE ? high : high + std::log1p(std::exp(low - high));
    }
    // How much of `whole` comes from `part`.
    static double share(double part, double whole) { return part == NONE ? 0.0 : std::exp(part - whole); }

    // Where the state (step, ideal) can be entered from: the ideal without the step, and, where steps may be waived, those
    // that also lack some of the step's ancestors. Removing them in falling order of place makes each come once.
    void find_entries(int64_t s) {
        entries_.clear();
        visit_entry(g_.state_from[s], g_.state_step[s], 0.0, -1);
    }
    void visit_entry(int64_t q, int step, double waived, int after) {
        entries_.push_back({q, waived});
        if (!skip_) return;
        for (int64_t s = g_.state_start[q]; s < g_.state_start[q + 1]; ++s) {
            const int u = g_.state_step[s];
            if (!g_.follows(u, step) || skip_[u] == NONE) continue;
            if (after >= 0 && !before(u, after)) continue;
            visit_entry(g_.state_from[s], step, waived + skip_[u], u);
        }
    }
    // A fixed linear extension: by number of descendants (more of them: earlier), then by index.
    bool before(int a, int b) const {
        return std::pair(-g_.n_descendants(a), a) < std::pair(-g_.n_descendants(b), b);
    }

    void compute_entry() {
        std::fill(entry_.begin(), entry_.end(), NONE);
        for (const Entry &e : entries_) {
            const double *b = best(e.ideal);
            for (int64_t j = 0; j <= n_; ++j) entry_[j] = add(entry_[j], b[j] + e.waived);
        }
    }
    void compute_row(int64_t s) {
        const double *c = match_ + g_.state_step[s] * n_;
        row_[0] = NONE;
        for (int64_t j = 1; j <= n_; ++j) {
            const double shown = c[j - 1] + add(entry_[j - 1], row_[j - 1]);
            row_[j] = contiguous_ ? shown : add(shown, drop_[j - 1] + row_[j - 1]);
        }
    }

    void forward() {
        double *empty = best(0);
        empty[0] = 0;
        for (int64_t j = 1; j <= n_; ++j) empty[j] = drop_[j - 1] + empty[j - 1];
        for (int64_t p = 1; p < g_.ideals(); ++p) {
            double *b = best(p);
            for (int64_t s = g_.state_start[p]; s < g_.state_start[p + 1]; ++s) {
                find_entries(s);
                compute_entry();
                compute_row(s);
                for (int64_t j = 1; j <= n_; ++j) b[j] = add(b[j], row_[j]);
            }
            if (contiguous_)
                for (int64_t j = 1; j <= n_; ++j) b[j] = add(b[j], drop_[j - 1] + b[j - 1]);
        }
    }

    // The gradient of the total with respect to each log weight, from the last ideal to the first.
    void backward(double *probability) {
        double *background = probability + g_.n_steps * n_;
        for (int64_t p = g_.ideals() - 1; p > 0; --p) {
            double *b = best(p), *gb = grad(p);
            if (contiguous_)
                for (int64_t j = n_; j > 0; --j) {
                    const double dropped = gb[j] * share(drop_[j - 1] + b[j - 1], b[j]);
                    background[j - 1] += dropped;
                    gb[j - 1] += dropped;
                }
            for (int64_t s = g_.state_start[p]; s < g_.state_start[p + 1]; ++s) {
                find_entries(s);
                compute_entry();
                compute_row(s);
                backward_row(s, b, gb, probability + g_.state_step[s] * n_, background);
                for (const Entry &e : entries_) {
                    const double *eb = best(e.ideal);
                    double *eg = grad(e.ideal);
                    for (int64_t j = 0; j < n_; ++j)
                        if (entry_grad_[j] > 0) eg[j] += entry_grad_[j] * share(eb[j] + e.waived, entry_[j]);
                }
            }
        }
        double carried = 0;  // the empty ideal: every clip so far is background
        for (int64_t j = n_; j > 0; --j) {
            carried += grad(0)[j];
            background[j - 1] += carried;
        }
    }
    void backward_row(int64_t s, const double *b, const double *gb, double *shown_p, double *background) {
        const double *c = match_ + g_.state_step[s] * n_;
        std::fill(row_grad_.begin(), row_grad_.end(), 0.0);
        std::fill(entry_grad_.begin(), entry_grad_.end(), 0.0);
        for (int64_t j = n_; j > 0; --j) {
            const double g = row_grad_[j] + gb[j] * share(row_[j], b[j]);
            if (g == 0) continue;
            const double before = add(entry_[j - 1], row_[j - 1]);
            const double shown = g * share(c[j - 1] + before, row_[j]);
            shown_p[j - 1] += shown;
            entry_grad_[j - 1] += shown * share(entry_[j - 1], before);
            row_grad_[j - 1] += shown * share(row_[j - 1], before);
            if (!contiguous_) {
                const double dropped = g * share(drop_[j - 1] + row_[j - 1], row_[j]);
                background[j - 1] += dropped;
                row_grad_[j - 1] += dropped;
            }
        }
    }
};

}  // namespace g2v
