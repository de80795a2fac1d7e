#include "lp_opening_chains.hpp"

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

}  // namespace cobre::lp
