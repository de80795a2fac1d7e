#include "lp_opening_chains.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace cobre::lp {

void build_opening_chains(std::span<const Int> order, std::span<const Int> sampled, const OpeningChains& out) {
    const auto openings = static_cast<Int>(order.size()), points = static_cast<Int>(sampled.size());
    Int at = 0;
    const auto append = [&](Int point, Int position) {
        out.realisation_index[at] = order[position];
        out.result_index[at++] = point * openings + order[position];
    };
    for (Int point = 0; point < points; ++point) {
        out.basis_index[2 * point] = out.basis_index[2 * point + 1] = point;
        out.start[2 * point] = at;
        for (Int position = sampled[point]; position < openings; ++position) append(point, position);
        out.start[2 * point + 1] = at;
        for (Int position = sampled[point] - 1; position >= 0; --position) append(point, position);
    }
    out.start[2 * points] = at;
}

namespace {

// By component: 1 / (standard deviation to the power 3/4); 0 if all openings agree. Square roots are exact to the
// last digit on every machine, which powers are not.
std::vector<double> component_weights(const NoiseTable& openings) {
    std::vector<double> weight(openings.width, 0.0);
    const auto count = static_cast<double>(openings.rows);
    for (size_t component = 0; component < openings.width; ++component) {
        const auto at = [&](size_t row) { return openings.value[row * openings.width + component]; };
        double sum = 0.0, squares = 0.0;
        for (size_t row = 0; row < openings.rows; ++row) sum += at(row);
        const double mean = sum / count;
        for (size_t row = 0; row < openings.rows; ++row) squares += (at(row) - mean) * (at(row) - mean);
        const double root = std::sqrt(std::sqrt(squares / count));  // of the standard deviation
        if (root > 0.0) weight[component] = 1.0 / (root * std::sqrt(root));
    }
    return weight;
}

// Blocks of openings, joined end to end while that saves most.
class BlockJoiner {
public:
    BlockJoiner(std::span<const double> distance, size_t openings, Int sampled)
        : distance_(distance), openings_(openings), sampled_(sampled), saving_(openings * openings) {
        for (size_t opening = 0; opening < openings; ++opening) blocks_.push_back({static_cast<Int>(opening)});
        for (size_t block = 0; block < openings; ++block) update_savings(block);
    }

    // Join the two blocks that save most, if the longest blocks stay within `limits`; false: there are none.
    bool join_best(const std::vector<Int>& limits) {
        double best = -std::numeric_limits<double>::infinity();
        size_t to = openings_, from = openings_;
        count_longer(limits);
        for (size_t a = 0; a < openings_; ++a)
            for (size_t b = a + 1; b < openings_; ++b) {
                if (blocks_[a].empty() || blocks_[b].empty() || saving_[a * openings_ + b] <= best) continue;
                if (!fits(blocks_[a].size(), blocks_[b].size(), limits)) continue;
                best = saving_[a * openings_ + b];
                to = a, from = b;
            }
        if (to == openings_) return false;
        join(blocks_[to], blocks_[from]);
        update_savings(to);
        return true;
    }

    // Those with openings, each beginning at its end that is nearer to the sampled opening.
    std::vector<std::vector<Int>> finished() {
        std::vector<std::vector<Int>> found;
        for (std::vector<Int>& block : blocks_) {
            if (block.empty()) continue;
            if (jump(block.back()) < jump(block.front())) std::reverse(block.begin(), block.end());
            found.push_back(std::move(block));
        }
        return found;
    }

private:
    double step(Int from, Int to) const { return distance_[static_cast<size_t>(from) * openings_ + to]; }
    double jump(Int opening) const { return step(sampled_, opening); }
    double entry(const std::vector<Int>& block) const { return std::min(jump(block.front()), jump(block.back())); }

    void count_longer(const std::vector<Int>& limits) {
        longer_.assign(limits.size(), 0);
        for (const std::vector<Int>& block : blocks_)
            for (size_t at = 0; at < limits.size(); ++at) longer_[at] += static_cast<Int>(block.size()) > limits[at];
    }
    // Whether, with two blocks joined, no more blocks are longer than a limit than there are limits before it.
    bool fits(size_t a, size_t b, const std::vector<Int>& limits) const {
        for (size_t at = 0; at < limits.size(); ++at) {
            const auto is_longer = [&](size_t size) { return static_cast<Int>(size) > limits[at]; };
            if (longer_[at] - is_longer(a) - is_longer(b) + is_longer(a + b) > static_cast<Int>(at)) return false;
        }
        return true;
    }

    // Which ends of two blocks meet: at the start or the end of each.
    struct Joint {
        bool at_front_of_a = false, at_front_of_b = false;
        double saving = -std::numeric_limits<double>::infinity();
    };
    Joint best_joint(const std::vector<Int>& a, const std::vector<Int>& b) const {
        Joint best;
        for (const bool front_a : {false, true})
            for (const bool front_b : {true, false}) {
                const Int meets_a = front_a ? a.front() : a.back(), outer_a = front_a ? a.back() : a.front();
                const Int meets_b = front_b ? b.front() : b.back(), outer_b = front_b ? b.back() : b.front();
                const double saving =
                    entry(a) + entry(b) - std::min(jump(outer_a), jump(outer_b)) - step(meets_a, meets_b);
                if (saving > best.saving) best = {front_a, front_b, saving};
            }
        return best;
    }
    void join(std::vector<Int>& a, std::vector<Int>& b) const {
        const Joint joint = best_joint(a, b);
        if (joint.at_front_of_a) std::reverse(a.begin(), a.end());
        if (!joint.at_front_of_b) std::reverse(b.begin(), b.end());
        a.insert(a.end(), b.begin(), b.end());
        b.clear();
    }
    void update_savings(size_t block) {
        for (size_t other = 0; other < blocks_.size(); ++other) {
            if (other == block || blocks_[other].empty()) continue;
            const size_t a = std::min(block, other), b = std::max(block, other);
            saving_[a * openings_ + b] = best_joint(blocks_[a], blocks_[b]).saving;
        }
    }

    std::span<const double> distance_;
    size_t openings_;
    Int sampled_;
    std::vector<std::vector<Int>> blocks_;  // a block that was joined to another one is empty
    std::vector<Int> longer_;               // by limit: how many blocks are longer
    std::vector<double> saving_;            // by two blocks, the first of them the one with the smaller number
};

}  // namespace

void measure_distances(const NoiseTable& openings, const NoiseTable& others, double* distance) {
    const std::vector<double> weight = component_weights(openings);
    for (size_t row = 0; row < others.rows; ++row)
        for (size_t opening = 0; opening < openings.rows; ++opening) {
            double sum = 0.0;
            for (size_t component = 0; component < openings.width; ++component)
                sum += weight[component] * std::abs(others.value[row * openings.width + component] -
                                                    openings.value[opening * openings.width + component]);
            *distance++ = sum;
        }
}

std::vector<std::vector<Int>> opening_blocks(std::span<const double> distance, Int sampled, std::vector<Int> limits) {
    size_t openings = 0;
    while (openings * openings < distance.size()) ++openings;
    BlockJoiner joiner(distance, openings, sampled);
    for (size_t count = openings; count > limits.size();) {
        if (joiner.join_best(limits)) --count;
        else
            for (Int& limit : limits) ++limit;
    }
    return joiner.finished();
}

}  // namespace cobre::lp
