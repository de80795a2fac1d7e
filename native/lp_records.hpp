// What Python hands to the LP kernel, as classes with named fields. A record holds the Python objects that it was made
// from; `lp_arguments` checks them and finds their numbers when a call begins, so that arrays may change in between.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "highs_api.hpp"

namespace cobre::lp {

struct Realisations {
    nanobind::object inflow_m3s, load_mw, availability;  // float64, one row each
};

struct Bases {
    nanobind::object status, cuts;  // int8, int32; one row each
};

struct CutRows {
    nanobind::list chunks;
    Int count;
    nanobind::object active, rows;
};

// realisations, bases: `Realisations` and `Bases`, held as Python objects so that Python gets back what it gave.
struct Chains {
    nanobind::object states, start, realisations, realisation_index, bases, basis_index, result_index;
    Int chains_per_point;
    nanobind::object first_realisation;
};

struct NewCuts {
    nanobind::object spectral_weights;
    nanobind::list chunks;
    size_t first_slot;
    nanobind::object rows;
};

struct SharedBatch {
    nanobind::object counter, objective, gradient, finished, basis_status, basis_cuts;
};

// cuts: `NewCuts` or None. shared: `SharedBatch` or None.
struct Outputs {
    bool basis, solution, gradient;
    nanobind::object cuts, shared;
};

struct Step {
    Int stage;
    nanobind::object cuts, realisations, realisation_index, bases;
    bool carries_basis;
    nanobind::object carried_from, basis_index;
};

// Tables that are None are not wanted.
struct SharedPaths {
    nanobind::object counter, objective, future_cost, states, leaving;
    nanobind::list basis_status, basis_cuts, inflow, primal, dual;
};

struct PathOutputs {
    bool basis, solution;
    nanobind::object shared;
};

// The record inside a Python object; a TypeError that names the field if the object is of another class.
template <typename Record>
const Record& record_of(nanobind::handle object, const char* name) {
    if (!nanobind::isinstance<Record>(object))
        throw nanobind::type_error(
            (std::string(name) + ": expected " + nanobind::cast<std::string>(nanobind::type<Record>().attr("__name__")))
                .c_str());
    return *nanobind::inst_ptr<Record>(object);
}

void bind_records(nanobind::module_& module);

}  // namespace cobre::lp
