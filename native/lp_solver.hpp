// One thread's LPs: a stage, solved along chains of realisations. A chain's results depend on its own inputs alone, never
// on what this thread solved before.
//
// Our own dual simplex method goes from one realisation to the next in a few pivots. Whatever it cannot finish, or cannot
// prove by its duals, is solved by the LP library, from nothing and with other settings when that fails too.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "highs_api.hpp"
#include "lp_cuts.hpp"
#include "lp_simplex.hpp"
#include "lp_sparse_simplex.hpp"
#include "lp_stage.hpp"

namespace cobre::lp {

struct Tolerances {
    double feasibility = 1e-7;   // of the LP library
    double own = 1e-9;           // of our own pivots, relative to bounds
    double violation = 1e-9;     // of a cut, relative to the cost-to-go
    double dual = 1e-7;          // a price of the wrong sign
    double duality_gap = 1e-7;   // relative; a solve with more is done again
    double library_gap = 1e-6;   // the same for the library
};

struct Settings {
    Tolerances tolerances;
    Int max_added_per_round = 8;
    Int retry_attempts = 5;
    Int most_dense_rows = 100;  // of a stage for which the dense inverse is quicker than a sparse factorisation
};

// What a batch is to solve; all pointers belong to the caller.
struct Work {
    Int units = 0;
    const double* states = nullptr;        // units x dimension
    const Int* chain_start = nullptr;      // units + 1
    const Int* chain_items = nullptr;      // indices of realisations
    const double* inflow = nullptr;        // realisations x hydros, without the part of the lags
    const double* load = nullptr;          // realisations x buses
    const double* availability = nullptr;  // realisations x sources
    Int buses = 0;
    Int sources = 0;
    const int8_t* start_status = nullptr;  // bases x (columns + rows)
    const Int* start_cuts = nullptr;       // bases x (states + 1): cuts at their bound, then -1
    const Int* start_index = nullptr;      // units; -1: no basis
    const Int* places = nullptr;           // items: where results go; null: in the order of the items
};

// Where results go; what is null is not wanted. Memory belongs to the caller; rows of tables are places.
struct Results {
    double *objective = nullptr, *future_cost = nullptr;
    double* gradient = nullptr;                     // x dimension
    double *decided = nullptr, *inflow = nullptr;   // x states, x hydros
    double *primal = nullptr, *dual = nullptr;      // x columns, x rows
    Int* iterations = nullptr;                      // pivots
    int8_t* basis_status = nullptr;                 // units x (columns + rows), after the first solve of each chain
    Int* basis_cuts = nullptr;                      // units x (states + 1), filled up with -1
};

// What was done, summed over threads.
struct Count {
    int64_t solves = 0;
    int64_t pivots = 0;
    int64_t library_solves = 0;   // solves that the LP library had to do
    int64_t retries = 0;
    int64_t refactorisations = 0;  // of the basis, from its columns
    int64_t active_rows = 0;       // rows at a bound in an optimal basis, cuts included: summed over solves
    int64_t nucleus = 0;           // order of what is left when singletons are peeled: summed over refactorisations
    double solve_seconds = 0.0;   // inside simplex
    double busy_seconds = 0.0;    // altogether

    void add(const SimplexCount& done);
    void add(const Count& other);
};

// No solver setting led to an optimum.
class LpFailure : public std::runtime_error {
   public:
    LpFailure(Int unit, Int item, Int status, const std::string& text)
        : std::runtime_error(text), unit(unit), item(item), status(status) {}
    Int unit, item, status;
};

class Solver {
   public:
    Solver(const HighsApi& api, const Settings& settings);
    ~Solver();
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    void load(const StageModel& stage, const CutView& cuts);
    void solve_chain(Int unit, const Work& work, const Results& results);
    void save(const std::string& path, const std::vector<std::string>& columns, const std::vector<std::string>& rows);

    // The state that leaves the stage after the last solve.
    void leave(const double* state, double* next) const;

    Count count;

   private:
    void leave_lags(const double* lags, double* next) const;
    void check(Int status, const char* what) const;
    void set_defaults();
    void begin_chain(Int unit, const Work& work, const double* state);
    void compute_inflows(Int unit, const Work& work, const double* state);
    void compute_right_sides(Int items);
    void realise(const Work& work, Int realisation, Int item);
    void pass_on(const double* state, double* to) const;
    void set_bounds(const Work& work, Int realisation);
    void begin_basis(const Work& work, Int unit);
    bool solve_by_pivots();
    bool solve_by_pivots_anew();
    void solve_by_library(Int unit, Int item);
    void load_library();
    bool run_library();
    bool climb_ladder();
    void continue_from_library();
    void add_cuts(const std::vector<Int>& wanted);
    bool violated(std::vector<Int>& found);
    bool is_accurate(double tolerance);
    void keep(size_t place, const Results& results);
    void keep_gradient(double* gradient);
    void keep_basis(Int unit, const Results& results) const;

    const HighsApi& api_;
    Settings settings_;
    void* highs_;
    DualSimplex dense_;
    SparseDualSimplex sparse_;
    SimplexMethod* simplex_ = &dense_;         // the one that suits the stage
    const StageModel* stage_ = nullptr;
    const CutView* cuts_ = nullptr;
    std::vector<Int> cuts_now_;                // the cuts that have a dual, in the order of their duals
    std::vector<uint8_t> is_present_;          // by cut: in the LP library
    std::vector<double> chain_base_, rights_;  // right sides of cuts: without inflows, and item by item of the chain
    const double* right_ = nullptr;            // of the item at hand
    std::vector<double> inflows_;              // item by item of the chain
    std::vector<double> shift_state_, shift_;  // by row of the stage
    std::vector<double> row_lower_, row_upper_, column_lower_, column_upper_;
    std::vector<double> inflow_, inflow_slope_, share_, decided_, passed_, values_;
    double objective_ = 0.0;
    std::vector<double> column_value_, column_dual_, row_value_, row_dual_;
};

}  // namespace cobre::lp
