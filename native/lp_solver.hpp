// One thread's LPs: a stage, solved along chains of realisations. A chain's results depend only on its own inputs,
// never on what this thread solved before.
//
// Our own dual simplex goes from one realisation to the next in a few pivots. What it cannot finish, or cannot prove by
// its duals, is solved by HiGHS, from the slack basis, and with other settings when that fails too.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "highs_api.hpp"
#include "lp_cut_rhs.hpp"
#include "lp_cuts.hpp"
#include "lp_dense_simplex.hpp"
#include "lp_sparse_simplex.hpp"
#include "lp_stage.hpp"
#include "lp_tolerances.hpp"
#include "stop_signal.hpp"

namespace cobre::lp {

// Callers may set tolerances.highs_feasibility, tolerances.violation and everything below.
// The other tolerances are always those of `Tolerances`.
struct SimplexOptions {
    Tolerances tolerances;
    Int max_added_per_round = 8;         // cuts that join the LP of HiGHS at once
    Int retry_attempts = 5;              // settings that HiGHS is tried with before a solve fails
    Int max_dense_rows = kMaxDenseRows;  // stages with more rows get a sparse factorisation instead of a dense inverse
};

// Chains of realisations to solve: chain c is solved for realisation_index[chain_start[c]] up to, and not including,
// realisation_index[chain_start[c + 1]]. Memory belongs to the caller.
struct ChainBatch {
    Int stage = 0;  // the number of its stage, for failures: stages may share a model
    Int chains = 0;
    Int chains_per_point = 1;                // consecutive chains with the same state
    const double* states = nullptr;          // trial points x dimension
    const Int* chain_start = nullptr;        // chains + 1
    const Int* realisation_index = nullptr;  // by solve: the row of its realisation
    const double* inflow = nullptr;          // realisations x hydros, without the part that follows from the lags
    const double* load = nullptr;            // realisations x buses
    const double* availability = nullptr;    // realisations x sources
    Int buses = 0;
    Int sources = 0;
    const int8_t* basis_status = nullptr;  // bases x (columns + rows)
    const Int* basis_cuts = nullptr;       // bases x (states + 1): active cuts, then -1
    const Int* basis_index = nullptr;      // by chain: its basis; -1: the slack basis
    const Int* result_index = nullptr;     // by solve: the row of its results; null: in the order of the chains
    // By trial point: the realisation from whose optimum its chains start; null: the first one of its first chain.
    const Int* first_realisation = nullptr;
};

// Where results go, one row a solve; what is null is not wanted. Memory belongs to the caller.
struct Results {
    double *objective = nullptr, *future_cost = nullptr;
    double* gradient = nullptr;                    // x dimension
    double *decided = nullptr, *inflow = nullptr;  // x states, x hydros
    double *primal = nullptr, *dual = nullptr;     // x columns, x rows
    int8_t* basis_status = nullptr;                // x (columns + rows), of the optimum
    Int* basis_cuts = nullptr;                     // x (states + 1), filled up with -1
};

// What a call did, summed over solves and threads.
struct SolveCounts : SimplexCounts {
    int64_t solves = 0;
    int64_t library_solves = 0;  // solves that HiGHS did
    int64_t retries = 0;
    double solve_seconds = 0.0;  // inside simplex

    using SimplexCounts::add;
    void add(const SolveCounts& other);
};

// No setting of HiGHS led to an optimum, or it rejected the LP. `Engine` adds what the LP was made from.
class LpFailure : public std::runtime_error {
public:
    LpFailure(Int chain, Int item, Int status, const std::string& text)
        : std::runtime_error(text), chain(chain), item(item), status(status) {}
    Int chain, item, status;
    Int stage = -1;         // number under which it was loaded
    Int realisation = -1;   // row of the realisations
    Int solved_before = 0;  // earlier solves of the chain
    std::vector<double> state;
    std::vector<int8_t> basis_status;  // of the start of the chain; empty: a cold start
    std::vector<Int> basis_cuts;       // active ones of that basis
};

// HiGHS rejected a call: as a rule numbers that it does not take.
class LibraryError : public std::runtime_error {
    using std::runtime_error::runtime_error;
};

class Solver {
public:
    // stop: where solves look whether to go on; they throw `Stopped` when not.
    Solver(const HighsApi& api, const SimplexOptions& options, StopPoint stop);
    ~Solver();
    Solver(const Solver&) = delete;
    Solver& operator=(const Solver&) = delete;

    // solves: how many a call makes for this stage, on all threads.
    void load(const StageModel& stage, const CutView& cuts, size_t solves);
    void solve_chain(Int chain, const ChainBatch& batch, const Results& results);
    void save(const std::string& path, const std::vector<std::string>& columns, const std::vector<std::string>& rows);

    // The outgoing state of the last solve, from the incoming one.
    void outgoing_state(const double* state, double* next) const;

    SolveCounts counts;

private:
    // lp_solver.cpp: inputs of a chain, and our own simplex
    void begin_chain(Int chain, const ChainBatch& batch, const double* state);
    void compute_inflows(Int chain, const ChainBatch& batch, const double* state);
    void add_known_state(const double* state);
    void load_realisation(const ChainBatch& batch, Int realisation, Int item);
    void set_bounds(const ChainBatch& batch, Int realisation);
    void load_start_basis(const ChainBatch& batch, Int chain);
    void load_basis(const ChainBatch& batch, Int chain);
    bool shares_start(const ChainBatch& batch, Int chain) const;
    void solve_first_opening(const ChainBatch& batch, Int point, const double* state);
    bool solve_by_simplex(double gap, bool improves_duals);
    bool solve_from_slacks();
    bool solve_carefully();
    void compute_reduced_costs();
    bool is_accurate(double tolerance);

    // lp_solver_highs.cpp: what our own simplex could not finish
    void check(Int status, const char* what) const;
    void set_defaults();
    void take_interrupts();
    void solve_by_highs(Int chain, Int item);
    void pass_lp_to_highs(double cost_factor);
    bool run_highs();
    bool is_feasible(double tolerance);
    bool retry_with_large_costs();
    bool retry_with_other_settings();
    void add_cuts(const std::vector<Int>& wanted);
    bool find_violated_cuts(std::vector<Int>& found);
    bool start_from_highs_basis();
    bool prove_optimum_of_highs();
    void improve_optimum_of_highs();
    bool is_proved_unsolvable();
    bool has_ray_of_falling_cost();
    bool has_farkas_proof();
    void restore_given_units();

    // lp_solver_results.cpp: what a solve gives
    void store(size_t row, const Results& results);
    void store_gradient(double* gradient);
    void store_basis(size_t row, const Results& results) const;
    void outgoing_passed(const double* state, double* to) const;
    void outgoing_lags(const double* lags, double* next) const;

    const HighsApi& api_;
    SimplexOptions options_;
    StopPoint stop_;
    void* highs_;
    DenseDualSimplex dense_;
    SparseDualSimplex sparse_;
    DualSimplex* simplex_ = &dense_;  // the one that suits the stage
    const StageModel* stage_ = nullptr;
    const CutView* cuts_ = nullptr;
    // By trial point: the optimal basis of its first opening, from which all of its chains start.
    struct PointStart {
        bool is_tried = false, is_solved = false;
        std::vector<int8_t> status;
        std::vector<Int> cuts;
        SimplexCounts counts;  // of that solve; they count with the first chain, whoever solved it
    };
    std::vector<PointStart> point_starts_;
    std::vector<Int> cuts_with_dual_;   // in the order of their duals, which follow those of the stage's rows
    std::vector<uint8_t> is_in_highs_;  // by cut: a row of HiGHS's LP
    CutRhs cut_rhs_;
    std::vector<double> inflows_;  // solves of the chain x hydros
    std::vector<double> state_rhs_,
        rhs_;  // by row of the stage: what the state, and all inputs, add to its right-hand side
    std::vector<double> row_lower_, row_upper_, column_lower_, column_upper_;
    std::vector<double> inflow_, inflow_gradient_, share_, decided_, passed_, values_;
    double objective_ = 0.0, cost_factor_ = 1.0;  // of the costs that HiGHS has
    std::vector<double> column_value_, column_dual_, row_value_, row_dual_;
    std::vector<double> reduced_cost_;  // of columns, from the duals of rows and cuts
};

}  // namespace cobre::lp
