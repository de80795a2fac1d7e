// Bindings only: what Python sees of the native core.
#include <nanobind/nanobind.h>

#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/mman.h>

#include <vector>

#include "call_guard.hpp"
#include "lp_bindings.hpp"
#include "process.hpp"
#include "shm_world.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using cobre::shm::Region;
using cobre::shm::Segment;
using cobre::shm::World;

const char* failure_name(cobre::shm::Failure kind) {
    static const char* const names[] = {"none", "died", "left", "silent", "overdue", "aborted", "mismatch"};
    return names[static_cast<size_t>(kind)];
}

// The exceptions of the native core carry their parts as arguments; the shm backend turns them into the contract's.
void translate(const std::exception_ptr& thrown, void* type) {
    try {
        std::rethrow_exception(thrown);
    } catch (const cobre::shm::WorldFailure& failure) {
        nb::list culprits;
        for (const auto& culprit : failure.culprits)
            culprits.append(nb::make_tuple(culprit.rank, culprit.pid, cobre::shm::to_python(culprit.status)));
        nb::object arguments = nb::make_tuple(failure_name(failure.kind), culprits, cobre::shm::to_python(failure.text));
        PyErr_SetObject(static_cast<PyObject**>(type)[0], arguments.ptr());
    } catch (const cobre::shm::JoinFailure& failure) {
        PyErr_SetString(static_cast<PyObject**>(type)[1], failure.what());
    } catch (const std::system_error& error) {
        PyErr_SetObject(PyExc_OSError, nb::make_tuple(error.code().value(), nb::str(error.what())).ptr());
    }
}

// The region's memory as bytes; the array keeps the mapping alive.
template <typename Byte>
auto region_bytes(const std::shared_ptr<Region>& region) {
    auto* owner = new std::shared_ptr<cobre::shm::Mapping>(region->mapping);
    nb::capsule capsule(owner, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<cobre::shm::Mapping>*>(pointer); });
    return nb::ndarray<nb::numpy, Byte, nb::ndim<1>>(region->mapping->data(), {region->bytes}, capsule);
}

}  // namespace

NB_MODULE(_native, module) {
    if (!cobre::import_numpy()) throw nb::python_error();
    nb::set_leak_warnings(false);  // what a user leaves open at exit is closed by the kernel, not worth a page of text

    const auto anything = nb::arg().none();  // the guard looks at it and says no; it is not for the binding to raise
    nb::class_<cobre::CallGuard>(module, "CallGuard")
        .def(nb::init<uint32_t, uint32_t, nb::object>(), "rank"_a, "size"_a, "reduce_op"_a)
        .def("begin", &cobre::CallGuard::begin, nb::arg(), nb::arg(), anything)
        .def("barrier", &cobre::CallGuard::barrier, nb::arg(), anything)
        .def("allgatherv", &cobre::CallGuard::allgatherv, nb::arg(), anything, anything, anything, anything, anything)
        .def("allreduce", &cobre::CallGuard::allreduce, nb::arg(), anything, anything, anything, anything)
        .def("broadcast", &cobre::CallGuard::broadcast, nb::arg(), anything, anything, anything)
        .def("end", &cobre::CallGuard::end)
        .def("fail", &cobre::CallGuard::fail)
        .def("close", &cobre::CallGuard::close)
        .def("recent", &cobre::CallGuard::recent)
        .def_prop_ro("state", &cobre::CallGuard::state)
        .def_prop_ro("current", &cobre::CallGuard::current)
        .def_prop_ro("sequence", &cobre::CallGuard::sequence);

    static PyObject* exceptions[2];
    exceptions[0] = PyErr_NewException("cobre._native.WorldFailure", PyExc_Exception, nullptr);
    exceptions[1] = PyErr_NewException("cobre._native.JoinFailure", PyExc_Exception, nullptr);
    module.attr("WorldFailure") = nb::borrow(exceptions[0]);
    module.attr("JoinFailure") = nb::borrow(exceptions[1]);
    nb::register_exception_translator(translate, exceptions);

    nb::class_<Region>(module, "ShmRegion")
        .def_ro("id", &Region::id)
        .def_ro("nbytes", &Region::bytes);
    module.def("region_bytes", [](const std::shared_ptr<Region>& region, bool writable) -> nb::object {
        if (writable) return nb::cast(region_bytes<uint8_t>(region));
        return nb::cast(region_bytes<const uint8_t>(region));
    }, "region"_a, "writable"_a);

    nb::class_<Segment>(module, "ShmMemory")
        .def_static("create", [](uint32_t size) {
            const cobre::shm::WorldConfig config{"", 0, size, 0, 0, 0, false, 0, 0, false};
            Segment segment = Segment::create_in_memory(cobre::shm::segment_bytes(config));
            cobre::shm::initialise(segment.map(cobre::shm::Control::fixed_bytes(size), false)->data(), config);
            return segment;
        }, "size"_a)
        .def_static("open", &Segment::open_of, "pid"_a, "descriptor"_a, "inode"_a)
        .def_prop_ro("descriptor", &Segment::descriptor)
        .def_prop_ro("inode", &Segment::inode);

    nb::class_<World>(module, "ShmWorld")
        .def("__init__", [](World* self, std::string name, uint32_t rank, uint32_t size, double timeout_s, double connect_timeout_s,
                            double operation_timeout_s, bool condvar, size_t window_bytes, uint32_t quota_cores,
                            bool by_name, cobre::CallGuard& guard, nb::object on_wait) {
            new (self) World({std::move(name), rank, size, timeout_s, connect_timeout_s, operation_timeout_s, condvar, window_bytes,
                              quota_cores, by_name}, guard, std::move(on_wait));
        }, "name"_a, "rank"_a, "size"_a, "timeout_s"_a, "connect_timeout_s"_a, "operation_timeout_s"_a, "condvar"_a,
             "window_bytes"_a, "quota_cores"_a, "by_name"_a, "guard"_a, "on_wait"_a, nb::keep_alive<1, 12>())
        .def("__init__", [](World* self, Segment& memory, uint32_t rank, std::vector<uint32_t> names, double timeout_s,
                            double connect_timeout_s, double operation_timeout_s, uint32_t quota_cores, cobre::CallGuard& guard,
                            nb::object on_wait) {
            const auto size = static_cast<uint32_t>(names.size());
            new (self) World(memory, {"", rank, size, timeout_s, connect_timeout_s, operation_timeout_s, false, 0, quota_cores,
                                      false, std::move(names), true}, guard, std::move(on_wait));
        }, "memory"_a, "rank"_a, "names"_a, "timeout_s"_a, "connect_timeout_s"_a, "operation_timeout_s"_a, "quota_cores"_a,
             "guard"_a, "on_wait"_a, nb::keep_alive<1, 9>())
        .def("__init__", [](World* self, World& parent, cobre::CallGuard& guard, nb::object on_wait) {
            new (self) World(parent, guard, std::move(on_wait));
        }, "parent"_a, "guard"_a, "on_wait"_a, nb::keep_alive<1, 3>())
        .def("barrier", &World::barrier)
        .def("allgatherv", &World::allgatherv)
        .def("allreduce", &World::allreduce)
        .def("broadcast", &World::broadcast)
        .def("spread", &World::spread)
        .def("announce", [](World& self, nb::handle like, uint64_t count, uint64_t total, uint32_t detail, uint64_t counts_hash) {
            self.announce(like.is_none() ? 0 : cobre::read_any(like.ptr()).dtype, count, total, detail, counts_hash);
        }, "like"_a.none(), "count"_a, "total"_a, "detail"_a, "counts_hash"_a)
        .def("set_limited", &World::set_limited)
        .def("fence", &World::fence)
        .def("create_region", [](World& self, size_t bytes, nb::handle dtype) {
            return self.create_region(bytes, cobre::sum_description(dtype.ptr()));
        })
        .def("abort", [](World& self, nb::bytes text) { self.abort(std::string(text.c_str(), text.size())); })
        .def("close", &World::close)
        .def_prop_ro("window_bytes", &World::window_bytes)
        .def_prop_ro("cores", &World::cores);

    module.def("fold", [](nb::list inputs, nb::handle out, uint32_t op) {
        std::vector<const void*> pointers;
        const cobre::Buffer result = cobre::read_any(out.ptr());
        for (nb::handle input : inputs) {
            const cobre::Buffer buffer = cobre::read_any(input.ptr());
            if (buffer.element != result.element || buffer.count != result.count)
                throw nb::value_error("fold: inputs and output differ in dtype or length");
            pointers.push_back(buffer.data);
        }
        const auto reduction = static_cast<cobre::ReduceOp>(op);
        if (pointers.empty() || op > 2 || !cobre::reducible(result.element, reduction))
            throw nb::value_error("fold: nothing to reduce, or no such reduction for this dtype");
        nb::gil_scoped_release unlocked;
        cobre::fold(result.element, reduction, pointers.data(), pointers.size(), result.data, result.count);
    }, "inputs"_a, "out"_a, "op"_a);

    module.def("segment_bytes", [](uint32_t size, size_t window_bytes) {
        return cobre::shm::segment_bytes({"", 0, size, 0, 0, 0, false, window_bytes, 0, false});
    }, "size"_a, "window_bytes"_a);
    module.def("unlink_segment", [](const std::string& name) { return shm_unlink(name.c_str()) == 0; }, "name"_a);
    module.def("die_with_parent", &cobre::die_with_parent, "parent_pid"_a);
    module.def("end_group_with_parent", [](int parent_pid, const std::string& segment) {
        cobre::end_group_with_parent(parent_pid, segment.empty() ? "" : cobre::shm::path_of(segment));
    }, "parent_pid"_a, "segment"_a);
    module.attr("PARENT_DEATH_SIGNAL") = cobre::parent_death_signal();
    module.def("end_with_group", &cobre::end_with_group);
    cobre::lp::bind_cuts(module);
    cobre::lp::bind_engine(module);
}
