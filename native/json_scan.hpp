// A scan of JSON text for what Python has to look at one by one; see cobre.io.decoding.json_documents.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre {

void bind_json_scan(nanobind::module_& module);

}  // namespace cobre
