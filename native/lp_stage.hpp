// The fixed part of one stage's LP, and how states, inflows, loads and availabilities enter it.
#pragma once

#include <cstdint>
#include <vector>

#include "highs_api.hpp"

namespace cobre::lp {

// Everything is scaled: column j stands for column_scale[j] of its own unit, rows and costs likewise. Scales are powers
// of two, so that scaling changes no digit.
struct StageModel {
    Int columns = 0;
    Int rows = 0;
    std::vector<double> cost, column_lower, column_upper, row_lower, row_upper;
    std::vector<Int> row_start, column_index;
    std::vector<double> value;

    Int hydros = 0;
    Int order = 0;                            // lags in the state
    Int future_cost = 0;                      // the column of the cost-to-go
    std::vector<Int> storage_column;          // of every hydro at the end of the stage
    std::vector<double> storage_scale;
    std::vector<double> autoregression;       // order x hydros
    bool truncates = false;                   // negative inflows become zero

    // right side of a row += value * input; inputs are the incoming storages, then the realised inflows
    std::vector<Int> input_row, input_index;
    std::vector<double> input_value;
    // right side of a row += factor * load of a bus
    std::vector<Int> load_row, load_bus;
    std::vector<double> load_factor;
    // upper (and, where pinned, lower) bound of a column = factor * availability of a source
    std::vector<Int> source_column, source_index;
    std::vector<double> source_factor;
    std::vector<uint8_t> source_is_pinned;

    std::vector<Int> moving_rows;             // rows whose right side ever changes, ascending

    Int dimension() const { return hydros * (1 + order); }
    void finish();                            // derive what follows from the rest; throws on inconsistent parts
};

}  // namespace cobre::lp
