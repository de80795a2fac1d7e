// Our declarations of HiGHS's C interface against its own header, which its wheel does not ship. `make check-highs`
// compiles this against a source tree of HiGHS: before a new version is allowed in pyproject.toml.
#include <cstddef>
#include <type_traits>

#include "highs_api.hpp"
#include "interfaces/highs_c_api.h"

namespace {

using cobre::lp::HighsApi;

#define EXPECT_SAME(member, function) \
    static_assert(std::is_same_v<decltype(HighsApi::member), decltype(&::function)>, #function)

EXPECT_SAME(create, Highs_create);
EXPECT_SAME(destroy, Highs_destroy);
EXPECT_SAME(version, Highs_version);
EXPECT_SAME(size_of_int, Highs_getSizeofHighsInt);
EXPECT_SAME(set_bool, Highs_setBoolOptionValue);
EXPECT_SAME(set_int, Highs_setIntOptionValue);
EXPECT_SAME(set_double, Highs_setDoubleOptionValue);
EXPECT_SAME(set_string, Highs_setStringOptionValue);
EXPECT_SAME(pass_lp, Highs_passLp);
EXPECT_SAME(add_rows, Highs_addRows);
EXPECT_SAME(clear_solver, Highs_clearSolver);
EXPECT_SAME(get_basis, Highs_getBasis);
EXPECT_SAME(run, Highs_run);
EXPECT_SAME(start_callback, Highs_startCallback);
EXPECT_SAME(model_status, Highs_getModelStatus);
EXPECT_SAME(get_solution, Highs_getSolution);
EXPECT_SAME(primal_ray, Highs_getPrimalRay);
EXPECT_SAME(dual_ray, Highs_getDualRay);
EXPECT_SAME(write_model, Highs_writeModel);
EXPECT_SAME(pass_col_name, Highs_passColName);
EXPECT_SAME(pass_row_name, Highs_passRowName);

// Our callback has void pointers in place of pointers to HiGHS's structures, of which we touch one number.
static_assert(std::is_same_v<decltype(&::Highs_setCallback), HighsInt (*)(void*, HighsCCallbackType, void*)>);
static_assert(std::is_same_v<HighsCCallbackType,
                             void (*)(int, const char*, const HighsCallbackDataOut*, HighsCallbackDataIn*, void*)>);
static_assert(offsetof(HighsCallbackDataIn, user_interrupt) == 0);
static_assert(std::is_same_v<decltype(HighsCallbackDataIn::user_interrupt), int>);

static_assert(cobre::lp::kStatusError == kHighsStatusError);
static_assert(cobre::lp::kRowwise == kHighsMatrixFormatRowwise);
static_assert(cobre::lp::kMinimise == kHighsObjSenseMinimize);
static_assert(cobre::lp::kBasic == kHighsBasisStatusBasic);
static_assert(cobre::lp::kOptimal == kHighsModelStatusOptimal);
static_assert(cobre::lp::kInfeasible == kHighsModelStatusInfeasible);
static_assert(cobre::lp::kUnbounded == kHighsModelStatusUnbounded);
static_assert(cobre::lp::kSimplexInterrupt == kHighsCallbackSimplexInterrupt);
static_assert(cobre::lp::kIpmInterrupt == kHighsCallbackIpmInterrupt);

}  // namespace
