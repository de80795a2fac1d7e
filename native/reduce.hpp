// The ordered reduction: the left fold in rank order, element by element (clause 8 of the contract).
#pragma once

#include <cstddef>

#include "comm_types.hpp"

namespace cobre {

bool is_reducible(ElementType element, ReduceOp op);

// out[i] = ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) ... for `inputs` of `ranks` arrays of `count` elements.
// `out` may be one of the inputs. A NaN result is the canonical quiet NaN, with one rank too; everything else
// of one rank is copied bit by bit.
void fold(ElementType element, ReduceOp op, const void* const* inputs, size_t ranks, void* out, size_t count);

}  // namespace cobre
