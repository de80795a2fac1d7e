// The fixed part of one stage's LP, and how the state, inflows, loads and availabilities enter it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "highs_api.hpp"
#include "lp_tolerances.hpp"

namespace cobre::lp {

// Check an argument from Python; the message names it.
inline void require(bool holds, const char* message) {
    if (!holds) throw std::invalid_argument(message);
}

template <typename T>
using View = std::span<const T>;

struct Units;

// Everything is scaled: column j stands for column_scale[j] of its own unit, rows and costs likewise. Scales are powers
// of two, so that scaling changes no digit. The numbers belong to the caller, which may share them with other
// processes; or to `units`.
struct StageModel {
    Int columns = 0;
    Int rows = 0;
    View<double> cost, column_lower, column_upper, row_lower, row_upper;
    View<Int> row_start, column_index;
    View<double> value;

    // The state: what a stage decides (each a column of its LP, with cut coefficients on it), the inflows of earlier
    // stages, lag by lag, and what the stage only passes on. The last two are known when a stage is solved: they are
    // part of right-hand sides.
    Int num_decided = 0;     // decided ones
    Int num_hydros = 0;      // with an inflow each
    Int num_lags = 0;        // lags in the state
    Int future_cost = 0;     // the column of the cost-to-go
    View<Int> state_column;  // of every decided state at the end of the stage
    View<double> state_scale;
    View<double> autoregression;  // lags x hydros
    View<Int> lag_from;           // of every lag: the incoming one that it takes over (-1: none), or empty:
    View<double> lag_share;       // and its share of this stage's inflow; empty: lags move on by one lag
    View<Int> passed_from;        // of every state passed on: the incoming state that it takes over; -1: 0
    bool truncates = false;       // negative inflows become zero

    // right-hand side of a row += value * input; inputs are the incoming decided states, the realised inflows, and the
    // incoming states that are passed on
    View<Int> input_row, input_index;
    View<double> input_value;
    // right-hand side of a row += factor * load of a bus
    View<Int> load_row, load_bus;
    View<double> load_factor;
    // upper (and, where pinned, lower) bound of a column = factor * availability of a source
    View<Int> source_column, source_index;
    View<double> source_factor;
    View<uint8_t> source_is_pinned;
    // By hydro (-1: none), or empty: upper bound of a column = factor * what the inflow is below zero; where
    // corrections are fixed, its lower bound as well. The inflow itself stays as it is.
    View<Int> correction_column;
    View<double> correction_factor;
    bool fixes_corrections = false;

    // The matrix by columns, and which decided state a column is (-1: none). Entries in deferred rows come last in
    // their column, from `deferred_start`.
    std::vector<Int> column_start, deferred_start, row_index, state_of_column;
    std::vector<double> column_value;
    // Singleton columns (one entry; above all penalised slacks) by their row, and by column its row, or -1. A column
    // with cut coefficients is not a singleton.
    std::vector<Int> singleton_start, singleton_column, singleton_row;
    std::vector<Int> moving_rows;  // rows whose right-hand side depends on inputs, ascending
    // Deferred rows have one bound and may stay out of an LP until they are violated. Those over the same columns (the
    // planes of a production function) are a family: few of them can be active at once. By row: its family, or -1.
    std::vector<Int> family, deferred_rows;
    Int families = 0;
    // By family of planes: the column of the generation that they limit, or -1; empty without planes. No plane of a
    // family has the generation of another one.
    std::vector<Int> generation;
    // Whether there are planes in many families: rows of the inverse that move a price are long then (hundreds).
    bool has_many_planes() const {
        return families >= kManyFamilies && static_cast<size_t>(families) < deferred_rows.size();
    }
    // By how much a reduced cost may get the wrong sign in a ratio test for the sake of a larger pivot (Harris).
    double harris_tolerance = 0.0;
    bool has_small_costs = false;        // for the absolute tolerances of HiGHS
    std::shared_ptr<const Units> units;  // null: those of the caller

    bool has_shape_of(const StageModel& other) const {
        return columns == other.columns && rows == other.rows && num_decided == other.num_decided;
    }
    bool shifts_lags() const { return lag_from.empty(); }
    Int lag(Int number) const { return num_decided + number * num_hydros; }
    Int passed() const { return static_cast<Int>(passed_from.size()); }
    Int first_passed() const { return num_decided + num_lags * num_hydros; }
    Int dimension() const { return first_passed() + passed(); }
    bool is_inflow(Int input) const { return num_decided <= input && input < num_decided + num_hydros; }
    // The component of the incoming state that an input other than an inflow stands for.
    Int component_of(Int input) const {
        return input < num_decided ? input : input - num_hydros + num_lags * num_hydros;
    }
    void finish();         // derive what follows from the rest; throws on inconsistent parts
    void index_columns();  // derive the matrix by columns, and singletons, from the matrix by rows

private:
    void check_entries() const;
    void balance_entries();
    void transpose();
    void find_families();
    void find_generation();
    Int generation_of(std::span<const Int> planes) const;
    void find_singletons();
    void find_moving_rows();
    void choose_harris_tolerance();
};

// Units of a stage whose entries were not near one as the caller gave them: column j counts in units of column[j] of
// the caller's, row i is the caller's times row[i]. Powers of two; so a basis means the same in both, and no digit
// changes.
struct Units {
    StageModel given;  // parts as the caller gave them, without what `finish` derives
    std::vector<double> row, column;
    std::vector<double> cost, column_lower, column_upper, row_lower, row_upper, value, state_scale, input_value,
        load_factor, source_factor, correction_factor;  // in these units
};

}  // namespace cobre::lp
