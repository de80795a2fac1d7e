// Room in the heap for a study that is prepared: in huge pages, and without returning memory to the system meanwhile.
//
// Half a second of preparation takes a hundred megabytes, most of them in arrays that live for milliseconds. At 4 KB a
// page, and with arrays of 128 KB and more mapped and unmapped one by one, a tenth of the time is the system's.
#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "bindings.hpp"

#if defined(__GLIBC__)
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>
#endif

namespace nb = nanobind;
using namespace nb::literals;

namespace cobre {
namespace {

#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)

constexpr int kMegabyte = 1 << 20;
constexpr uintptr_t kHugePage = 2 * kMegabyte;
// The limits that glibc sets itself once a program has freed an array of that size.
constexpr int kLargestOfHeap = 32 * kMegabyte, kLargestFreeEnd = 64 * kMegabyte;
constexpr int kDefaultPad = 128 * 1024;

// Only addresses are taken: pages follow when they are touched. Where the heap cannot grow, nothing happens.
void widen_heap(size_t size) {
    mallopt(M_MMAP_THRESHOLD, kLargestOfHeap);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    const auto end_of_heap = [] { return reinterpret_cast<uintptr_t>(sbrk(0)); };
    const uintptr_t before = end_of_heap();
    mallopt(M_TOP_PAD, static_cast<int>(size));
    void* volatile block = std::malloc(kLargestOfHeap - kMegabyte);  // volatile: compilers leave out what nobody uses
    std::free(block);
    mallopt(M_TOP_PAD, kDefaultPad);
    const uintptr_t first = (before + kHugePage - 1) / kHugePage * kHugePage, end = end_of_heap();
    if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

void narrow_heap() { mallopt(M_TRIM_THRESHOLD, kLargestFreeEnd); }

#else

void widen_heap(size_t) {}
void narrow_heap() {}

#endif

}  // namespace

void bind_heap(nb::module_& module) {
    module.def("widen_heap", &widen_heap, "size"_a);
    module.def("narrow_heap", &narrow_heap);
}

}  // namespace cobre
