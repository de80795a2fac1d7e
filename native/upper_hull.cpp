// The upper side of the convex hull of points over a plane; see cobre.sddp.hydro_models.fpha_fitting. Plain arithmetic
// in a fixed order, so that bits are the same on every processor.
#include <nanobind/ndarray.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre {
namespace {

using Values = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Points = std::vector<int>;
using Edge = std::pair<int, int>;
using Coefficients = std::tuple<double, double, double>;
using Facet = std::tuple<Coefficients, Points>;

// An edge reaches as far as the points to its left are not on it up to rounding.
constexpr double kOnTheEdge = 1e-12;

class UpperHull {
public:
    UpperHull(const Values& x, const Values& y, const Values& height, double tolerance)
        : x_(x.data()), y_(y.data()), height_(height.data()), count_(static_cast<int>(x.size())) {
        double largest = 1.0;
        for (int at = 0; at < count_; ++at) largest = std::max(largest, std::abs(height_[at]));
        tolerance_ = tolerance * largest;
        relative_ = tolerance;
    }

    // By wrapping: from every edge on to the steepest plane beyond it.
    std::vector<Facet> facets() const {
        std::vector<Facet> found;
        std::set<Points> known;
        std::set<Edge> done;
        std::deque<Edge> waiting{first_edge()};
        while (!waiting.empty()) {
            const Edge edge = waiting.front();
            waiting.pop_front();
            if (!done.insert(edge).second) continue;
            const std::optional<Facet> facet = facet_beyond(edge);
            if (!facet || !known.insert(std::get<1>(*facet)).second) continue;
            found.push_back(*facet);
            for (const auto& [start, end] : outline(std::get<1>(*facet))) {
                done.insert({start, end});
                waiting.push_back({end, start});
            }
        }
        return found;
    }

private:
    // From the lowest row of points: its first two that the hull touches, so that all points are on the left.
    Edge first_edge() const {
        const double lowest = *std::min_element(y_, y_ + count_);
        Points row;
        for (int at = 0; at < count_; ++at)
            if (y_[at] == lowest) row.push_back(at);
        if (row.size() < 2) throw nb::value_error("upper_facets: the lowest row needs two points");
        std::stable_sort(row.begin(), row.end(), [this](int a, int b) { return x_[a] < x_[b]; });
        const int start = row[0];
        std::vector<double> slopes;
        double steepest = -HUGE_VAL, largest = 1.0;
        for (size_t k = 1; k < row.size(); ++k) {
            slopes.push_back((height_[row[k]] - height_[start]) / (x_[row[k]] - x_[start]));
            steepest = std::max(steepest, slopes.back());
            largest = std::max(largest, std::abs(slopes.back()));
        }
        int end = row[1];
        for (size_t k = 0; k < slopes.size(); ++k)
            if (slopes[k] >= steepest - relative_ * largest) end = row[k + 1];
        return {start, end};
    }

    // The plane through an edge and the point to the left of it that leaves no point above; none at the border.
    std::optional<Facet> facet_beyond(const Edge& edge) const {
        const auto [start, end] = edge;
        const double along_x = x_[end] - x_[start], along_y = y_[end] - y_[start];
        const double span = along_x * along_x + along_y * along_y;
        int best = -1;
        double steepest = 0.0;
        for (int at = 0; at < count_; ++at) {
            const double left = along_x * (y_[at] - y_[start]) - along_y * (x_[at] - x_[start]);
            if (!(left > kOnTheEdge * span)) continue;
            const double share = (along_x * (x_[at] - x_[start]) + along_y * (y_[at] - y_[start])) / span;
            const double rise = height_[at] - (height_[start] + share * (height_[end] - height_[start]));
            if (best < 0 || rise / left > steepest) {
                steepest = rise / left;
                best = at;
            }
        }
        if (best < 0) return std::nullopt;
        const Coefficients found = plane(start, end, best);
        const auto [constant, by_x, by_y] = found;
        Points points;
        for (int at = 0; at < count_; ++at)
            if (std::abs(constant + by_x * x_[at] + by_y * y_[at] - height_[at]) <= tolerance_) points.push_back(at);
        return Facet{found, points};
    }

    // Through three points, by Cramer's rule.
    Coefficients plane(int a, int b, int c) const {
        const double x1 = x_[b] - x_[a], x2 = x_[c] - x_[a];
        const double y1 = y_[b] - y_[a], y2 = y_[c] - y_[a];
        const double h1 = height_[b] - height_[a], h2 = height_[c] - height_[a];
        const double determinant = x1 * y2 - x2 * y1;
        const double by_x = (h1 * y2 - h2 * y1) / determinant;
        const double by_y = (x1 * h2 - x2 * h1) / determinant;
        return {height_[a] - by_x * x_[a] - by_y * y_[a], by_x, by_y};
    }

    // The edges around a facet, with the facet on their left (Andrew's monotone chains).
    std::vector<Edge> outline(Points points) const {
        std::stable_sort(points.begin(), points.end(),
                         [this](int a, int b) { return x_[a] != x_[b] ? x_[a] < x_[b] : y_[a] < y_[b]; });
        Points chain = half_outline(points);
        std::reverse(points.begin(), points.end());
        const Points back = half_outline(points);
        chain.insert(chain.end(), back.begin(), back.end());
        std::vector<Edge> edges;
        for (size_t k = 0; k < chain.size(); ++k) edges.emplace_back(chain[k], chain[(k + 1) % chain.size()]);
        return edges;
    }

    Points half_outline(const Points& ordered) const {
        Points chain;
        for (const int point : ordered) {
            while (chain.size() > 1 && turn(chain[chain.size() - 2], chain.back(), point) <= 0.0) chain.pop_back();
            chain.push_back(point);
        }
        if (!chain.empty()) chain.pop_back();
        return chain;
    }

    double turn(int a, int b, int c) const {
        return (x_[b] - x_[a]) * (y_[c] - y_[a]) - (y_[b] - y_[a]) * (x_[c] - x_[a]);
    }

    const double *x_, *y_, *height_;
    int count_;
    double tolerance_, relative_;
};

std::vector<Facet> upper_facets(Values x, Values y, Values height, double tolerance) {
    if (x.size() == 0 || y.size() != x.size() || height.size() != x.size())
        throw nb::value_error("upper_facets: a height for each point");
    return UpperHull(x, y, height, tolerance).facets();
}

}  // namespace

void bind_upper_hull(nb::module_& module) {
    module.def("upper_facets", &upper_facets, "x"_a.noconvert(), "y"_a.noconvert(), "height"_a.noconvert(),
               "tolerance"_a);
}

}  // namespace cobre
