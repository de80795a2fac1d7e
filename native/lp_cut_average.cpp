#include "lp_cut_average.hpp"

namespace cobre::lp {

namespace {

// cost - gradient . state
double constant_term(double cost, const double* gradient, const double* state, size_t dimension) {
    if (dimension == 0) return cost;
    double explained = gradient[0] * state[0];
    for (size_t component = 1; component < dimension; ++component) explained += gradient[component] * state[component];
    return cost - explained;
}

}  // namespace

void average_cuts(const Openings& from, double* cuts) {
    const size_t dimension = from.dimension;
    for (size_t point = 0; point < from.points; ++point, cuts += 1 + dimension) {
        const double* state = from.state + point * dimension;
        for (size_t opening = 0; opening < from.openings; ++opening) {
            const size_t solve = point * from.openings + opening;
            const double weight = from.weight[solve];
            const double* gradient = from.gradient + solve * dimension;
            const double constant = weight * constant_term(from.cost[solve], gradient, state, dimension);
            const bool is_first = opening == 0;
            cuts[0] = is_first ? constant : cuts[0] + constant;
            for (size_t component = 0; component < dimension; ++component) {
                const double term = weight * gradient[component];
                cuts[1 + component] = is_first ? term : cuts[1 + component] + term;
            }
        }
    }
}

void write_cuts(const double* cuts, size_t count, size_t width, double* chunk, size_t cuts_per_chunk, size_t column) {
    for (size_t cut = 0; cut < count; ++cut)
        for (size_t component = 0; component < width; ++component)
            chunk[chunk_index(component, cuts_per_chunk, column + cut)] = cuts[cut * width + component];
}

}  // namespace cobre::lp
