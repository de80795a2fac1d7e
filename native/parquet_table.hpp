// Flat Parquet tables of numbers and dates, as cases have them, without Arrow; see cobre.io.decoding.parquet_tables.
//
// Arrow reads everything, and takes 60 MB of memory and 40 ms to load. What is not read here is left to it: nested or
// repeated columns, texts, pages of the second version, other encodings and compressions, encryption, damaged files.
#pragma once

#include <nanobind/nanobind.h>

namespace cobre {

void bind_parquet_table(nanobind::module_& module);

}  // namespace cobre
