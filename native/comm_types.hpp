// What communicators and their transports agree on: calls, element types, memory. No Python header: tests run the
// transports without an interpreter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string_view>

namespace cobre {

// The calls of a communicator.
enum class Operation : uint32_t {
    join = 0,
    barrier = 1,
    allgatherv = 2,
    allreduce = 3,
    broadcast = 4,
    create_shared_region = 5,
    fence = 6,
    split_local = 7,
};

// The call under way on a communicator, as ranks compare it and messages show it. label: UTF-8, valid until the next
// call.
struct CurrentCall {
    uint64_t sequence = 0;
    Operation operation = Operation::join;
    std::string_view label;
};

// Where a transport reads the current call: the communicator numbers calls, the transport moves their data.
class CallSource {
public:
    virtual CurrentCall current_call() const = 0;

protected:
    ~CallSource() = default;  // never deleted through this class
};

// In the order of `Operation`.
inline constexpr const char* kOperationNames[] = {
    "join", "barrier", "allgatherv", "allreduce", "broadcast", "create_shared_region", "fence", "split_local"};

inline const char* operation_name(Operation operation) {
    const auto index = static_cast<size_t>(operation);
    return index < std::size(kOperationNames) ? kOperationNames[index] : "unknown operation";
}

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

// In the order of `ElementType`, as NumPy writes them.
inline constexpr const char* kElementNames[] = {
    "other dtype", "int8",    "int16",   "int32",      "int64",     "uint8",      "uint16",      "uint32", "uint64",
    "float16",     "float32", "float64", "longdouble", "complex64", "complex128", "clongdouble", "bool"};

// "other dtype" for none.
inline const char* element_name(ElementType element) {
    const auto index = static_cast<size_t>(element);
    return index < std::size(kElementNames) ? kElementNames[index] : kElementNames[0];
}

enum class ReduceOp : uint32_t { sum = 0, min = 1, max = 2 };

// In the order of `ReduceOp`.
inline constexpr const char* kReductionNames[] = {"SUM", "MIN", "MAX"};

// Memory with the type of its elements, as transports see the buffers of their callers.
struct TypedMemory {
    std::byte* data = nullptr;
    size_t count = 0;     // of elements
    size_t itemsize = 0;  // bytes of one element
    uint32_t dtype = 0;   // the same number for the same dtype in every process
    ElementType element = ElementType::none;

    size_t nbytes() const { return count * itemsize; }
};

}  // namespace cobre
