// The C interface of HiGHS, looked up at run time in the library inside the highspy wheel, which ships no headers. The
// signatures are those of HiGHS 1.15 (highs_c_api.h).
#pragma once

#include <cstdint>
#include <string>

namespace cobre::lp {

using Int = int32_t;  // HighsInt of the wheels; checked when the library is opened

// Values of highs_c_api.h.
constexpr Int kStatusError = -1;
constexpr Int kRowwise = 2;
constexpr Int kMinimise = 1;
constexpr Int kBasic = 1;
constexpr Int kOptimal = 7;
constexpr Int kInfeasible = 8;
constexpr Int kUnbounded = 10;
constexpr Int kUnproved = 100;        // ours: infeasible or unbounded for HiGHS, without a ray that holds
constexpr Int kRejected = 101;        // ours: HiGHS does not take the LP
constexpr Int kSimplexInterrupt = 1;  // types of callbacks
constexpr Int kIpmInterrupt = 2;

// Called by the library while it solves. in: begins with an int; 1 makes the library return.
using HighsCallback = void (*)(int type, const char* message, const void* out, void* in, void* data);

struct HighsApi {
    explicit HighsApi(const std::string& path);  // throws std::runtime_error for another library

    void* (*create)();
    void (*destroy)(void*);
    const char* (*version)();
    Int (*size_of_int)(const void*);
    Int (*set_bool)(void*, const char*, Int);
    Int (*set_int)(void*, const char*, Int);
    Int (*set_double)(void*, const char*, double);
    Int (*set_string)(void*, const char*, const char*);
    Int (*pass_lp)(void*, Int, Int, Int, Int, Int, double, const double*, const double*, const double*, const double*,
                   const double*, const Int*, const Int*, const double*);
    Int (*add_rows)(void*, Int, const double*, const double*, Int, const Int*, const Int*, const double*);
    Int (*clear_solver)(void*);
    Int (*get_basis)(const void*, Int*, Int*);
    Int (*run)(void*);
    Int (*set_callback)(void*, HighsCallback, void*);
    Int (*start_callback)(void*, Int);
    Int (*model_status)(const void*);
    Int (*get_solution)(const void*, double*, double*, double*, double*);
    Int (*primal_ray)(const void*, Int*, double*);  // whether there is one; by column
    Int (*dual_ray)(const void*, Int*, double*);    // whether there is one; by row
    Int (*write_model)(void*, const char*);
    Int (*pass_col_name)(const void*, Int, const char*);
    Int (*pass_row_name)(const void*, Int, const char*);
};

}  // namespace cobre::lp
