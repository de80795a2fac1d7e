// Every number that the LP kernels compare with: tolerances, smallest pivots, limits of loops, and sizes at which a
// method changes. LPs are scaled: "cost" is a scaled unit of money per scaled unit of a variable, "value" a scaled unit
// of a variable or row. "Relative" numbers have no unit; counts are counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "highs_api.hpp"

namespace cobre::lp {

// What a solution must satisfy. `SimplexOptions` may set `highs_feasibility` and `violation`; the others
// are always these.
struct Tolerances {
    // Primal and dual, of HiGHS: value and cost. A hundredth of its default: cuts are made of its duals.
    double highs_feasibility = 1e-9;
    // Primal, of our own simplex: relative to the bound, or value if the bound is below 1.
    double simplex_feasibility = 1e-9;
    // Of a cut: relative to the cost-to-go. A cut that is violated by less would not change the bound that is printed.
    double violation = 1e-9;
    // Cost: how large a dual may be that points at an infinite bound. The gap does not see such duals.
    double dual_sign = 1e-7;
    // Of our own simplex, relative to the cost; a solve with a larger gap is repeated. Cuts inherit the error.
    double duality_gap = 1e-7;
    // Relative: above it a solve without small pivots gets primal pivots, because its ratio tests are loose.
    double careful_gap = 1e-10;
    // Relative, of HiGHS, whose absolute dual tolerance leaves gaps up to 1e-6 where ranges are 1e5.
    double highs_gap = 1e-6;
    // Relative to the terms of a row, of HiGHS: how far its values may be out of bounds in the LP as it was given.
    double highs_infeasibility = 1e-7;
    // Of a ray that proves an LP infeasible or unbounded: relative to its terms.
    double ray = 1e-9;
};

// Pivots --------------------------------------------------------------------------------------------------------------

// Smallest entries that may be pivots; the matrix is scaled so that entries are about 1.
constexpr double kSmallestDensePivot = 1e-11;   // of an entering variable, with a dense inverse of at most 100 rows
constexpr double kSmallestDenseEntry = 1e-11;   // of the dense inverse, computed with row exchanges
constexpr double kSmallestPivot = 1e-9;         // of an entering variable; 1e-7 saves nothing on the deck of 2018
constexpr double kSmallestCarefulPivot = 1e-6;  // the same after a singular basis, which pivots of 1e-8 had made
constexpr double kSmallestPrimalPivot = 1e-7;   // of primal pivots, which may pass a variable over
constexpr double kSmallestLuPivot = 1e-10;      // of a factorisation: singletons and nucleus
// Relative: how far the pivot from the row and from the column may differ. Beyond it the factorisation is inaccurate.
constexpr double kPivotAgreement = 1e-7;
// Relative: share of the largest entry of its column that a pivot of the nucleus has (Markowitz's threshold). Larger
// values fill in more, smaller ones lose digits.
constexpr double kMarkowitzThreshold = 0.1;
constexpr int kMaxSearchedLines = 4;  // rows and columns that Markowitz's search visits before it takes the best so far
// Relative: share of the largest pivot within Harris's tolerance that a chosen one has.
constexpr double kPivotShare = 0.1;
// Breakpoints up to this multiple of the first one are examined together; it changes only the time of a ratio test.
constexpr double kGroupFactor = 8.0;

// Reduced costs -------------------------------------------------------------------------------------------------------

// Cost: by how much a reduced cost may get the wrong sign in a ratio test for the sake of a larger pivot (Harris).
constexpr double kHarrisTolerance = 1e-10;
// Stages with costs below the first number have a share of their smallest cost instead, and no less than the third:
// with 1e-10 for costs of 4e-10 a deck of 2025 takes 30 % more pivots.
constexpr double kSmallCost = 1e-9, kHarrisShareOfCost = 1e-4, kLeastHarrisTolerance = 1e-16;
constexpr double kCarefulHarrisTolerance = 1e-10;  // cost, without small pivots: leaves larger ones to choose from
constexpr double kZeroReducedCost = 1e-12;         // cost: the sign of a smaller reduced cost is noise

// Sparse vectors and factors ------------------------------------------------------------------------------------------

constexpr double kTiny = 1e-14;        // value: smaller results of a solve are rounding errors and become zero
constexpr double kListedZero = 1e-60;  // value of a zero whose index stays in the list of entries
constexpr double kCancelled = 1e-13;   // relative: a sum of two terms that is smaller is rounding and becomes zero
constexpr Int kMaxDenseUpdates = 40;   // of a dense inverse before it is computed from scratch
// Entries of updates that cost as much as one entry of the matrix in a factorisation. 24 and 96 take as long.
constexpr size_t kUpdateWork = 48;
constexpr Int kFewInactiveRows = 16;  // inactive rows leave the working LP when there are more, and half of all rows

// Entries of a stage's matrix, scaled: with one beyond these all rows and columns get units that bring entries near 1.
// Stages of official decks have entries from 2e-3 to 230.
constexpr double kSmallestEntry = 1.0 / 4096.0, kLargestEntry = 4096.0;
constexpr int kScalingRounds = 4;              // of rows and columns in turns
constexpr int32_t kMaxExponent = 300;          // of two, of a unit: beyond it numbers would overflow
constexpr double kSmallestHighsEntry = 1e-12;  // that HiGHS keeps; it takes no smaller limit

// Sizes at which a method changes -------------------------------------------------------------------------------------

constexpr Int kMaxDenseRows = 100;  // of a stage: up to this number a dense inverse is quicker than sparse factors
// Numbers of all cuts of a stage, and solves of a call, from which on a copy of the cuts in single precision is worth
// making. With 1,024 cuts on 4 states a scan in double precision is as quick.
constexpr size_t kManyCutNumbers = 8192;
constexpr size_t kSolvesPerCopy = 8;
constexpr Int kManyFamilies = 600;         // of planes: pricing prefers short rows of the inverse
constexpr Int kFewPairs = 64;              // of planes and generation: with fewer an LP is not rewritten
constexpr int kExponentOfLargeCosts = 26;  // of two: the largest cost for HiGHS if small ones must count

// Limits of loops: counts, never seconds, which differ from run to run ---------------------------------------------

// Pivots of a solve: a base, plus a number for each row and column. Only a cycle needs more.
constexpr int64_t kLeastPivotLimit = 200, kPivotsPerLine = 10;
constexpr int kMaxBasisRepairs = 3;  // of a singular starting basis, before a start from slacks
// Pivots or solutions of a solve that fail their check against values from scratch, before the basis is given up.
constexpr int kMaxFailedChecks = 20;
constexpr int kMaxFlipRounds = 2;  // failed checks up to which wrong reduced costs are flipped; then come primal pivots
constexpr int kMaxPrimalRounds = 10;  // failed checks after which the duality gap decides whether such a sign matters
// Primal pivots to improve duals: a base, plus one for every few rows.
constexpr Int kLeastPrimalPivotLimit = 50, kRowsPerPrimalPivot = 2;
constexpr int kMaxImprovements = 5;  // rounds of primal pivots followed by dual ones
// Simplex iterations of HiGHS: a base, plus a number for each row and column.
constexpr Int kLeastHighsPivotLimit = 10000, kHighsPivotsPerLine = 50;
constexpr Int kMaxInteriorPointSteps = 1000;  // of HiGHS; an interior point method that converges takes dozens

}  // namespace cobre::lp
