#include "lp_records.hpp"

#include "lp_arrays.hpp"
#include "lp_solver.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre::lp {

namespace {

// A record pickles as the call that makes it again; `fields` is also what pattern matching and digests go by.
template <typename Record, typename... Names>
void pickle_by(nb::class_<Record>& record, Names... fields) {
    record.attr("__match_args__") = nb::make_tuple(fields...);
    record.def("__reduce__", [fields...](nb::handle self) {
        return nb::make_tuple(self.type(), nb::make_tuple(self.attr(fields)...));
    });
}

nb::object filled(size_t count, Int first, Int step) {
    Int* value;
    nb::object array = make_array(value, {static_cast<Py_ssize_t>(count)});
    for (size_t at = 0; at < count; ++at) value[at] = first + step * static_cast<Int>(at);
    return array;
}

// Every state with one realisation; all start from the first of the bases, or cold if there is none.
Chains single_solves(const nb::object& states, const nb::object& realisations, const nb::object& realisation_index,
                     const nb::object& bases) {
    const size_t count = Array<double>(states, "states").height();
    const bool is_cold = Array<int8_t>(record_of<Bases>(bases, "bases").status, "basis_status").height() == 0;
    return {states,    filled(count + 1, 0, 1),    realisations, realisation_index,
            bases,     filled(count, -is_cold, 0), nb::none(),   1,
            nb::none()};
}

void bind_inputs(nb::module_& module) {
    nb::class_<Realisations> realisations(module, "Realisations");
    realisations.def(nb::init<nb::object, nb::object, nb::object>(), "inflow_m3s"_a, "load_mw"_a, "availability"_a)
        .def_ro("inflow_m3s", &Realisations::inflow_m3s)
        .def_ro("load_mw", &Realisations::load_mw)
        .def_ro("availability", &Realisations::availability)
        .def(
            "take",
            [](const Realisations& self, nb::handle rows) {
                return Realisations{self.inflow_m3s[rows], self.load_mw[rows], self.availability[rows]};
            },
            "rows"_a);
    pickle_by(realisations, "inflow_m3s", "load_mw", "availability");

    nb::class_<Bases>(module, "Bases")
        .def(nb::init<nb::object, nb::object>(), "status"_a, "cuts"_a)
        .def_ro("status", &Bases::status)
        .def_ro("cuts", &Bases::cuts);

    nb::class_<CutRows> cuts(module, "CutRows");
    cuts.def(nb::init<nb::list, Int, nb::object, nb::object>(), "chunks"_a, "count"_a, "active"_a,
             "rows"_a = nb::none())
        .def_ro("chunks", &CutRows::chunks)
        .def_ro("count", &CutRows::count)
        .def_ro("active", &CutRows::active)
        .def_ro("rows", &CutRows::rows);
    pickle_by(cuts, "chunks", "count", "active", "rows");

    nb::class_<Chains>(module, "Chains")
        .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, nb::object, Int,
                      nb::object>(),
             "states"_a, "start"_a, "realisations"_a, "realisation_index"_a, "bases"_a, "basis_index"_a,
             "result_index"_a = nb::none(), "chains_per_point"_a = 1, "first_realisation"_a = nb::none())
        .def_static("single", &single_solves, "states"_a, "realisations"_a, "realisation_index"_a, "bases"_a)
        .def_ro("states", &Chains::states)
        .def_ro("start", &Chains::start)
        .def_ro("realisations", &Chains::realisations)
        .def_ro("realisation_index", &Chains::realisation_index)
        .def_ro("bases", &Chains::bases)
        .def_ro("basis_index", &Chains::basis_index)
        .def_ro("result_index", &Chains::result_index)
        .def_ro("chains_per_point", &Chains::chains_per_point)
        .def_ro("first_realisation", &Chains::first_realisation);

    nb::class_<Step>(module, "Step")
        .def(nb::init<Int, nb::object, nb::object, nb::object, nb::object, bool, nb::object, nb::object>(), "stage"_a,
             "cuts"_a, "realisations"_a, "realisation_index"_a, "bases"_a, "carries_basis"_a = false,
             "carried_from"_a = nb::none(), "basis_index"_a = nb::none())
        .def_ro("stage", &Step::stage)
        .def_ro("cuts", &Step::cuts)
        .def_ro("realisations", &Step::realisations)
        .def_ro("realisation_index", &Step::realisation_index)
        .def_ro("bases", &Step::bases)
        .def_ro("carries_basis", &Step::carries_basis)
        .def_ro("carried_from", &Step::carried_from)
        .def_ro("basis_index", &Step::basis_index);
}

void bind_outputs(nb::module_& module) {
    nb::class_<NewCuts>(module, "NewCuts")
        .def(nb::init<nb::object, nb::list, size_t, nb::object>(), "spectral_weights"_a, "chunks"_a, "first_slot"_a,
             "rows"_a.none())
        .def_ro("spectral_weights", &NewCuts::spectral_weights)
        .def_ro("chunks", &NewCuts::chunks)
        .def_ro("first_slot", &NewCuts::first_slot)
        .def_ro("rows", &NewCuts::rows);

    nb::class_<SharedBatch>(module, "SharedBatch")
        .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, nb::object>(), "counter"_a,
             "objective"_a, "gradient"_a = nb::none(), "finished"_a = nb::none(), "basis_status"_a = nb::none(),
             "basis_cuts"_a = nb::none())
        .def_ro("counter", &SharedBatch::counter)
        .def_ro("objective", &SharedBatch::objective)
        .def_ro("gradient", &SharedBatch::gradient)
        .def_ro("finished", &SharedBatch::finished)
        .def_ro("basis_status", &SharedBatch::basis_status)
        .def_ro("basis_cuts", &SharedBatch::basis_cuts);

    nb::class_<Outputs>(module, "Outputs")
        .def(nb::init<bool, bool, bool, nb::object, nb::object>(), nb::kw_only(), "basis"_a = false,
             "solution"_a = false, "gradient"_a = false, "cuts"_a = nb::none(), "shared"_a = nb::none())
        .def_ro("basis", &Outputs::basis)
        .def_ro("solution", &Outputs::solution)
        .def_ro("gradient", &Outputs::gradient)
        .def_ro("cuts", &Outputs::cuts)
        .def_ro("shared", &Outputs::shared);

    nb::class_<SharedPaths>(module, "SharedPaths")
        .def(nb::init<nb::object, nb::object, nb::object, nb::object, nb::object, nb::list, nb::list, nb::list,
                      nb::list, nb::list>(),
             nb::kw_only(), "counter"_a, "objective"_a, "future_cost"_a, "states"_a = nb::none(),
             "leaving"_a = nb::none(), "basis_status"_a = nb::list(), "basis_cuts"_a = nb::list(),
             "inflow"_a = nb::list(), "primal"_a = nb::list(), "dual"_a = nb::list())
        .def_ro("counter", &SharedPaths::counter)
        .def_ro("objective", &SharedPaths::objective)
        .def_ro("future_cost", &SharedPaths::future_cost)
        .def_ro("states", &SharedPaths::states)
        .def_ro("leaving", &SharedPaths::leaving)
        .def_ro("basis_status", &SharedPaths::basis_status)
        .def_ro("basis_cuts", &SharedPaths::basis_cuts)
        .def_ro("inflow", &SharedPaths::inflow)
        .def_ro("primal", &SharedPaths::primal)
        .def_ro("dual", &SharedPaths::dual);

    nb::class_<PathOutputs>(module, "PathOutputs")
        .def(nb::init<bool, bool, nb::object>(), nb::kw_only(), "basis"_a = false, "solution"_a = false,
             "shared"_a = nb::none())
        .def_ro("basis", &PathOutputs::basis)
        .def_ro("solution", &PathOutputs::solution)
        .def_ro("shared", &PathOutputs::shared);
}

}  // namespace

void bind_records(nb::module_& module) {
    bind_inputs(module);
    bind_outputs(module);
}

}  // namespace cobre::lp
