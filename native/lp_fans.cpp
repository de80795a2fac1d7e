#include "lp_fans.hpp"

namespace cobre::lp {

void fan_out(std::span<const Int> order, std::span<const Int> met, const FanOut& out) {
    const auto openings = static_cast<Int>(order.size()), points = static_cast<Int>(met.size());
    Int at = 0;
    const auto put = [&](Int point, Int place) {
        out.items[at] = order[place];
        out.places[at++] = point * openings + order[place];
    };
    for (Int point = 0; point < points; ++point) {
        out.basis_index[2 * point] = out.basis_index[2 * point + 1] = point;
        out.start[2 * point] = at;
        for (Int place = met[point]; place < openings; ++place) put(point, place);
        out.start[2 * point + 1] = at;
        for (Int place = met[point] - 1; place >= 0; --place) put(point, place);
    }
    out.start[2 * points] = at;
}

}  // namespace cobre::lp
