#include "highs_api.hpp"

#include <dlfcn.h>

#include <stdexcept>

namespace cobre::lp {

namespace {

template <typename Function>
void look_up(void* library, const char* name, Function& function) {
    void* symbol = dlsym(library, name);
    if (!symbol) throw std::runtime_error(std::string("the HiGHS library has no function ") + name);
    function = reinterpret_cast<Function>(symbol);
}

}  // namespace

HighsApi::HighsApi(const std::string& path) {
    // Never closed: at exit, solvers may be destroyed after this object.
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) throw std::runtime_error(std::string("cannot load the HiGHS library: ") + dlerror());
    look_up(library, "Highs_create", create);
    look_up(library, "Highs_destroy", destroy);
    look_up(library, "Highs_version", version);
    look_up(library, "Highs_getSizeofHighsInt", size_of_int);
    look_up(library, "Highs_setBoolOptionValue", set_bool);
    look_up(library, "Highs_setIntOptionValue", set_int);
    look_up(library, "Highs_setDoubleOptionValue", set_double);
    look_up(library, "Highs_setStringOptionValue", set_string);
    look_up(library, "Highs_passLp", pass_lp);
    look_up(library, "Highs_addRows", add_rows);
    look_up(library, "Highs_clearSolver", clear_solver);
    look_up(library, "Highs_getBasis", get_basis);
    look_up(library, "Highs_run", run);
    look_up(library, "Highs_setCallback", set_callback);
    look_up(library, "Highs_startCallback", start_callback);
    look_up(library, "Highs_getModelStatus", model_status);
    look_up(library, "Highs_getSolution", get_solution);
    look_up(library, "Highs_getPrimalRay", primal_ray);
    look_up(library, "Highs_getDualRay", dual_ray);
    look_up(library, "Highs_writeModel", write_model);
    look_up(library, "Highs_passColName", pass_col_name);
    look_up(library, "Highs_passRowName", pass_row_name);
    void* probe = create();
    const Int size = size_of_int(probe);
    destroy(probe);
    if (size != sizeof(Int))
        throw std::runtime_error("the HiGHS library was built with integers of another size (HIGHSINT64)");
}

}  // namespace cobre::lp
