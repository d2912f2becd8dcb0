// The way back through a machine, included by machine.cpp: among the cheapest label sequences the smallest one, read from
// the last clip backwards, background (-1) first.
//
// Several paths may be equally cheap, so the walk keeps all that agree with the labels written so far, and at each clip goes
// on with those that have the smallest label. Values are compared with the very sums that the recursion formed.
class Walk {
public:
    Walk(const MachineVideo &video, Recursion<Least> &recursion, double *best, int64_t *labels)
        : v_(video), m_(*video.machine), recursion_(recursion), best_(best), labels_(labels) {}

    void run(double cost) {
        for (int64_t p = 0; p < m_.nodes(); ++p)
            if (best(p, v_.clips) + v_.end[p] == cost) free_.push_back({p, -1});
        for (int64_t j = v_.clips; j > 0; --j) {
            v_.pause(64 * static_cast<int64_t>(free_.size() + runs_.size() + 1));
            leave_runs(j);
            labels_[j - 1] = step_back(j);
        }
    }

private:
    // Between runs, with `node` done; the run before must not be of the step `but` (-1: of any).
    struct Free {
        int64_t node;
        int but;
        auto operator<=>(const Free &) const = default;
    };
    // Within the run of state k of `node` that ends at time `end` and may have any of these lengths, ascending.
    struct Run {
        int64_t node, k, end;
        std::vector<int64_t> lengths;
        bool operator==(const Run &other) const { return node == other.node && k == other.k; }
        bool operator<(const Run &other) const { return std::pair(node, k) < std::pair(other.node, other.k); }
    };

    const MachineVideo &v_;
    const Machine &m_;
    Recursion<Least> &recursion_;
    double *best_;
    int64_t *labels_;
    const int64_t widest_ = m_.widest();
    std::vector<Free> free_;
    std::vector<Run> runs_;  // all of one step and with one end
    std::vector<std::pair<int64_t, std::unique_ptr<Node>>> nodes_;  // worked out again, sorted

    static constexpr size_t MOST_NUMBERS = size_t{1} << 26;  // kept of nodes worked out again

    double best(int64_t node, int64_t j) const { return best_[node * (v_.clips + 1) + j]; }
    int step(int64_t node, int64_t k) const { return m_.state_step[m_.state_start[node] + k]; }

    Node &node(int64_t p) {
        auto place = std::lower_bound(nodes_.begin(), nodes_.end(), p, [](const auto &a, int64_t b) { return a.first < b; });
        if (place != nodes_.end() && place->first == p) return *place->second;
        const size_t each = static_cast<size_t>((v_.clips + 1) * widest_ * 6);
        if ((nodes_.size() + 1) * each > MOST_NUMBERS) {
            nodes_.clear();
            place = nodes_.end();
        }
        auto made = std::make_unique<Node>();
        recursion_.forward(p, best_, *made);
        return *nodes_.emplace(place, p, std::move(made))->second;
    }

    template <class Item> static void once_each(std::vector<Item> &items) {
        std::sort(items.begin(), items.end());
        items.erase(std::unique(items.begin(), items.end()), items.end());
    }

    // All but the run of `but` at a node at time j > 0.
    double without(int64_t p, Node &n, int64_t j, int but) const {
        double low = v_.drop[j - 1] + best(p, j - 1);
        for (int64_t k = 0; k < n.states; ++k)
            if (step(p, k) != but) low = std::min(low, n.run.at(j)[k]);
        return low;
    }

    // Runs that may have begun at time j: what they were entered from joins the free ones.
    void leave_runs(int64_t j) {
        for (const Run &r : runs_) {
            if (!std::binary_search(r.lengths.begin(), r.lengths.end(), r.end - j)) continue;
            Node &n = node(r.node);
            const double entered = n.enter.at(j)[r.k];
            for (int64_t e = m_.entry_start[n.first + r.k]; e < m_.entry_start[n.first + r.k + 1]; ++e) {
                const int64_t from = m_.entry_from[e];
                const bool again = from == r.node;
                const int but = again ? step(r.node, r.k) : -1;
                const double value = again ? without(from, n, j, but) : best(from, j);
                if (value + v_.entry[e] == entered) free_.push_back({from, but});
            }
        }
        once_each(free_);
        std::erase_if(runs_, [&](const Run &r) { return r.lengths.back() <= r.end - j; });
    }

    // The smallest label of clip j - 1; keeps what leads to it.
    int64_t step_back(int64_t j) {
        int64_t label = m_.n_steps;  // larger than any
        std::vector<Free> free;
        std::vector<Run> runs;
        const auto wanted = [&](int64_t found) {
            if (found > label) return false;
            if (found < label) {
                label = found;
                free.clear();
                runs.clear();
            }
            return true;
        };
        for (const Free &f : free_) {
            Node &n = node(f.node);
            const double value = without(f.node, n, j, f.but);
            if (v_.drop[j - 1] + best(f.node, j - 1) == value && wanted(-1)) free.push_back({f.node, -1});
            for (int64_t k = 0; k < n.states; ++k) {
                const int step_k = step(f.node, k);
                if (step_k != f.but && n.run.at(j)[k] == value && wanted(step_k))
                    runs.push_back({f.node, k, j, lengths(n, k, j)});
            }
        }
        for (Run &r : runs_)
            if (wanted(step(r.node, r.k))) runs.push_back(std::move(r));
        once_each(free);
        once_each(runs);
        free_ = std::move(free);
        runs_ = std::move(runs);
        return label;
    }

    // The lengths that the best run of state k that ends at time `end` may have.
    std::vector<int64_t> lengths(Node &n, int64_t k, int64_t end) {
        std::vector<int64_t> found;
        v_.pause(end);
        if (v_.longest == 1) {
            for (int64_t j = end; j > 0; --j) {
                const double began = n.enter.at(j - 1)[k] + n.length.at(0)[k], went_on = n.run.at(j - 1)[k] + n.tail[k];
                if (began <= went_on) found.push_back(end - j + 1);
                if (went_on > began || went_on == NEVER) break;
            }
            return found;
        }
        for (int64_t length = 1; length <= std::min(v_.longest, end); ++length) {
            if (n.match.at(end - length)[k] == NEVER) break;
            if (of_length(n, k, end, length) == n.run.at(end)[k]) found.push_back(length);
        }
        if (n.over.at(end)[k] > n.run.at(end)[k]) return found;
        for (int64_t j = end - 1; j >= v_.longest; --j) {
            double exact = of_length(n, k, j, v_.longest);
            for (int64_t i = j - v_.longest; i < j; ++i)
                if (n.match.at(i)[k] == NEVER) exact = NEVER;
            if (exact <= n.over.at(j)[k]) found.push_back(end - j + v_.longest);
            if (n.over.at(j)[k] > exact || n.over.at(j)[k] == NEVER) break;
        }
        return found;
    }
    double of_length(Node &n, int64_t k, int64_t end, int64_t length) {
        const int64_t j = end - length;
        return n.sum.at(end)[k] + ((n.enter.at(j)[k] - n.sum.at(j)[k]) + n.length.at(length - 1)[k]);
    }
};
