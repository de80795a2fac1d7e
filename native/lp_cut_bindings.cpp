// What Python sees of cuts outside of a solve: values, averages over openings, the chains of a backward pass.
#include <nanobind/nanobind.h>

#include <algorithm>

#include "lp_arguments.hpp"
#include "lp_bindings.hpp"
#include "lp_cut_average.hpp"
#include "lp_cut_rhs.hpp"
#include "lp_opening_chains.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::lp {

namespace {

// Values of cuts at states (rows), added component by component. Cuts of blocks without a selected one are not
// evaluated: they give their intercepts.
nb::object cut_values(const CutRows& cuts, nb::handle states) {
    const Array<double> points(states, "states");
    const CutView view = read_cuts(static_cast<Int>(points.width()), cuts);
    const auto count = static_cast<size_t>(cuts.count);
    double* values;
    const nb::object table =
        make_array(values, {static_cast<Py_ssize_t>(points.height()), static_cast<Py_ssize_t>(count)});
    const nb::object nobody = nb::none();
    StopSignal stop;  // thousands of cuts at thousands of states take seconds
    stop.begin(ask_python(nobody));
    const nb::gil_scoped_release release;
    for (size_t point = 0; point < points.height(); ++point) {
        if (stop.ask_when_due()) stop.rethrow();
        view.intercepts(values + point * count);
        view.add_products(0, static_cast<Int>(points.width()), points.data() + point * points.width(),
                          values + point * count);
    }
    return table;
}

// The searches of some solves of a chain, for tests: with right-hand sides of all cuts, or with a copy in single
// precision. A state has the components of `states`, then those of `known`, both by solve, then those that all solves
// share.
struct HighestCuts {
    nb::object cut, value;
};

HighestCuts highest_cuts(const CutRows& cuts, nb::handle states, nb::handle known, nb::handle shared, nb::handle limits,
                         nb::handle excluded, bool is_screened) {
    const Array<double> points(states, "states"), own(known, "known"), common(shared, "shared"),
        limit(limits, "limits");
    const Array<uint8_t> is_excluded(excluded, "excluded");
    const auto decided = static_cast<Int>(points.width()), lags = static_cast<Int>(own.width()),
               rest = static_cast<Int>(common.size());
    const size_t solves = points.height();
    require(own.height() == solves && limit.size() == solves, "states, known and limits differ in number");
    require(is_excluded.size() >= static_cast<size_t>(cuts.count), "excluded: fewer entries than cuts");
    const CutView view = read_cuts(decided + lags + rest, cuts);
    CutRhs rhs;
    rhs.load(view, is_screened);
    rhs.begin_chain(solves);
    rhs.add(decided + lags, rest, common.data());
    rhs.add_each(decided, lags, own.data());
    Int* cut;
    double* value;
    HighestCuts found{.cut = make_array(cut, {static_cast<Py_ssize_t>(solves)}),
                      .value = make_array(value, {static_cast<Py_ssize_t>(solves)})};
    for (size_t solve = 0; solve < solves; ++solve) {
        rhs.choose(solve);
        const CutView::Value highest =
            rhs.highest_at(decided, points.data() + solve * points.width(), limit.data()[solve], is_excluded.data());
        cut[solve] = highest.cut;
        value[solve] = highest.value;
    }
    return found;
}

// Rows of intercept and coefficients, one for each trial point.
nb::object averages(nb::handle costs, nb::handle weights, nb::handle gradients, nb::handle states) {
    const Array<double> cost(costs, "costs"), weight(weights, "weights"), gradient(gradients, "gradients");
    const Array<double> state(states, "states");
    const Openings from{state.height(), cost.width(),    state.width(), cost.data(),
                        weight.data(),  gradient.data(), state.data()};
    require(cost.height() == from.points && weight.height() == from.points && weight.width() == from.openings &&
                gradient.size() == cost.size() * from.dimension,
            "costs, weights, gradients and states differ in number");
    double* cuts;
    auto table = make_array(cuts, {static_cast<Py_ssize_t>(from.points), static_cast<Py_ssize_t>(1 + from.dimension)});
    average_cuts(from, cuts);
    return table;
}

// Arrays of the two chains of each trial point, as `Chains` takes them.
struct ChainArrays {
    nb::object start, realisation_index, basis_index, result_index;
};

ChainArrays chains_of_openings(nb::handle order, nb::handle sampled) {
    const Array<Int> openings(order, "order"), first(sampled, "sampled");
    for (const Int position : first.span())
        require(0 <= position && static_cast<size_t>(position) < openings.size(), "sampled: no such opening");
    const auto points = static_cast<Py_ssize_t>(first.size()),
               solves = points * static_cast<Py_ssize_t>(openings.size());
    OpeningChains chains;
    ChainArrays arrays{.start = make_array(chains.start, {2 * points + 1}),
                       .realisation_index = make_array(chains.realisation_index, {solves}),
                       .basis_index = make_array(chains.basis_index, {2 * points}),
                       .result_index = make_array(chains.result_index, {solves})};
    build_opening_chains(openings.span(), first.span(), chains);
    return arrays;
}

// Rows x openings: how far realisations, rows of `others`, are from openings, rows of `openings`.
nb::object distances_of_openings(nb::handle openings, nb::handle others) {
    const Array<double> opening(openings, "openings"), other(others, "others");
    require(opening.width() == other.width(), "others: expected as many columns as openings");
    double* distances;
    const nb::object table =
        make_array(distances, {static_cast<Py_ssize_t>(other.height()), static_cast<Py_ssize_t>(opening.height())});
    measure_distances({opening.data(), opening.height(), opening.width()},
                      {other.data(), other.height(), other.width()}, distances);
    return table;
}

// Openings block by block, and the number of openings of each block.
struct BlockArrays {
    nb::object order, sizes;
};

BlockArrays blocks_of_openings(nb::handle distances, Int sampled, nb::handle limits) {
    const Array<double> distance(distances, "distances");
    const Array<Int> limit(limits, "limits");
    const auto openings = static_cast<Int>(distance.height());
    require(distance.width() == distance.height(), "distances: expected a square table");
    require(0 <= sampled && sampled < openings, "sampled: no such opening");
    const auto blocks = static_cast<Int>(limit.size());
    require(0 < blocks && blocks <= openings, "limits: expected 1 to the number of openings");
    require(std::is_sorted(limit.span().rbegin(), limit.span().rend()), "limits: expected the longest first");
    Int *order, *sizes;
    BlockArrays arrays{.order = make_array(order, {openings}), .sizes = make_array(sizes, {blocks})};
    for (const std::vector<Int>& block :
         opening_blocks(distance.span(), sampled, {limit.span().begin(), limit.span().end()})) {
        order = std::copy(block.begin(), block.end(), order);
        *sizes++ = static_cast<Int>(block.size());
    }
    return arrays;
}

// Write cuts (rows of intercept and coefficients) into the chunks of a stage, from a slot on.
void store_cuts(nb::handle table, const nb::list& chunks, size_t slot) {
    const Array<double> cuts(table, "table");
    const size_t width = cuts.width();
    size_t cut = 0, start = 0;
    for (const nb::handle part : chunks) {
        const Array<double> chunk(part, "chunks", true);
        require(chunk.height() == width, "chunks: expected a row for each number of a cut");
        const size_t end = start + chunk.width();
        if (slot + cut < end && cut < cuts.height()) {
            const size_t fitting = std::min(cuts.height() - cut, end - slot - cut);
            write_cuts(cuts.data() + cut * width, fitting, width, chunk.data(), chunk.width(), slot + cut - start);
            cut += fitting;
        }
        start = end;
    }
    require(cut == cuts.height(), "chunks: too small for these cuts");
}

}  // namespace

void bind_cuts(nb::module_& module) {
    module.attr("CUTS_PER_BLOCK") = kCutsPerBlock;
    module.def("average_cuts", &averages, "costs"_a, "weights"_a, "gradients"_a, "states"_a);
    module.def("cut_values", &cut_values, "cuts"_a, "states"_a);
    nb::class_<HighestCuts>(module, "HighestCuts")
        .def_ro("cut", &HighestCuts::cut)
        .def_ro("value", &HighestCuts::value);
    module.def("highest_cuts", &highest_cuts, "cuts"_a, "states"_a, "known"_a, "shared"_a, "limits"_a, "excluded"_a,
               "is_screened"_a);
    nb::class_<ChainArrays>(module, "OpeningChains")
        .def_ro("start", &ChainArrays::start)
        .def_ro("realisation_index", &ChainArrays::realisation_index)
        .def_ro("basis_index", &ChainArrays::basis_index)
        .def_ro("result_index", &ChainArrays::result_index);
    nb::class_<BlockArrays>(module, "OpeningBlocks")
        .def_ro("order", &BlockArrays::order)
        .def_ro("sizes", &BlockArrays::sizes);
    module.def("opening_chains", &chains_of_openings, "order"_a, "sampled"_a);
    module.def("opening_distances", &distances_of_openings, "openings"_a, "others"_a);
    module.def("opening_blocks", &blocks_of_openings, "distances"_a, "sampled"_a, "limits"_a);
    module.def("write_cuts", &store_cuts, "table"_a, "chunks"_a, "slot"_a);
}

}  // namespace cobre::lp
