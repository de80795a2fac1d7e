// The ordered reduction: the left fold in rank order, element by element (clause 8 of the contract).
#pragma once

#include <cstddef>
#include <cstdint>

namespace cobre {

// The numbers travel between ranks: never change their meaning.
enum class ElementType : uint32_t {
    none = 0,
    int8 = 1,
    int16 = 2,
    int32 = 3,
    int64 = 4,
    uint8 = 5,
    uint16 = 6,
    uint32 = 7,
    uint64 = 8,
    float16 = 9,
    float32 = 10,
    float64 = 11,
    long_double = 12,
    complex64 = 13,
    complex128 = 14,
    complex_long_double = 15,
    boolean = 16,
};

enum class ReduceOp : uint32_t { sum = 0, min = 1, max = 2 };

// The dtype's name as NumPy writes it; "other dtype" for none.
const char* element_name(ElementType element);

bool reducible(ElementType element, ReduceOp op);

// out[i] = ((inputs[0][i] op inputs[1][i]) op inputs[2][i]) ... for `inputs` of `ranks` arrays of `count` elements.
// `out` may be one of the inputs. A NaN result is the canonical quiet NaN, with one rank too; everything else
// of one rank is copied bit by bit.
void fold(ElementType element, ReduceOp op, const void* const* inputs, size_t ranks, void* out, size_t count);

}  // namespace cobre
