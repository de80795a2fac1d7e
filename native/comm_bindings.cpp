// Python bindings of the communication layer: guard, shared memory, reductions and processes.
#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <sys/mman.h>

#include <cstdlib>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "call_guard.hpp"
#include "numpy_buffer.hpp"
#include "process.hpp"
#include "reduce.hpp"
#include "shm_transport.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

using cobre::shm::Region;
using cobre::shm::Segment;
using cobre::shm::Transport;

// Text from shared memory as a Python string: labels and reasons may be cut inside a character.
nb::object to_python(const std::string& text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

// Numbers of elements from any Python sequence of integers.
std::vector<size_t> to_sizes(nb::handle sequence) {
    std::vector<size_t> sizes;
    for (nb::handle item : sequence) sizes.push_back(nb::cast<size_t>(nb::int_(item)));
    return sizes;
}

// A Python function of seconds and a list of names; None: no callback.
cobre::shm::OnWait to_on_wait(nb::object function) {
    if (function.is_none()) return nullptr;
    return [function = std::move(function)](double seconds, const std::vector<std::string>& missing) {
        nb::list names;
        for (const std::string& name : missing) names.append(to_python(name));
        function(seconds, names);
    };
}

const char* failure_name(cobre::shm::Failure kind) { return cobre::shm::failure_names()[static_cast<size_t>(kind)]; }

nb::list to_list(std::span<const char* const> names) {
    nb::list list;
    for (const char* name : names) list.append(name);
    return list;
}

// What Python and native code must agree on; a test compares them with the enums of cobre.comm.
void bind_shared_names(nb::module_& module) {
    module.attr("MAX_RANKS") = cobre::shm::kMaxRanks;
    module.attr("OPERATION_NAMES") = to_list(cobre::kOperationNames);
    module.attr("REDUCTION_NAMES") = to_list(cobre::kReductionNames);
    module.attr("FAILURE_NAMES") = to_list(cobre::shm::failure_names());
}

// Native exceptions carry their parts as arguments; the backends translate them into the errors of the contract.
void translate(const std::exception_ptr& thrown, void* type) {
    try {
        std::rethrow_exception(thrown);
    } catch (const cobre::shm::CollectiveFailure& failure) {
        nb::list failed_ranks;
        for (const auto& failed_rank : failure.failed_ranks)
            failed_ranks.append(nb::make_tuple(failed_rank.rank, failed_rank.pid, to_python(failed_rank.status)));
        nb::object arguments = nb::make_tuple(failure_name(failure.kind), failed_ranks, to_python(failure.text));
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
    nb::capsule capsule(
        owner, [](void* pointer) noexcept { delete static_cast<std::shared_ptr<cobre::shm::Mapping>*>(pointer); });
    return nb::ndarray<nb::numpy, Byte, nb::ndim<1>>(region->mapping->data(), {region->bytes}, capsule);
}

void bind_guard(nb::module_& module) {
    const auto anything = nb::arg().none();  // the guard checks it and returns false; the binding must not raise
    nb::class_<cobre::CallGuard>(module, "CallGuard")
        .def(nb::init<uint32_t, uint32_t, nb::object>(), "rank"_a, "size"_a, "reduce_op"_a)
        .def("begin", &cobre::CallGuard::begin, nb::arg(), nb::arg(), anything)
        .def("barrier", &cobre::CallGuard::barrier, nb::arg(), anything)
        .def("bind_barrier", &cobre::CallGuard::bind_barrier)
        .def("fence", &cobre::CallGuard::fence, nb::arg(), anything)
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
}

void bind_shm_failures(nb::module_& module) {
    static PyObject* exceptions[2];
    exceptions[0] = PyErr_NewException("cobre._native.CollectiveFailure", PyExc_Exception, nullptr);
    exceptions[1] = PyErr_NewException("cobre._native.JoinFailure", PyExc_Exception, nullptr);
    module.attr("CollectiveFailure") = nb::borrow(exceptions[0]);
    module.attr("JoinFailure") = nb::borrow(exceptions[1]);
    nb::register_exception_translator(translate, exceptions);
}

void bind_shm_memory(nb::module_& module) {
    nb::class_<Region>(module, "ShmRegion").def_ro("id", &Region::id).def_ro("nbytes", &Region::bytes);
    module.def(
        "region_bytes",
        [](const std::shared_ptr<Region>& region, bool writable) -> nb::object {
            if (writable) return nb::cast(region_bytes<uint8_t>(region));
            return nb::cast(region_bytes<const uint8_t>(region));
        },
        "region"_a, "writable"_a);

    nb::class_<Segment>(module, "ShmSegment")
        .def_static(
            "create",
            [](uint32_t size, size_t memory_limit_bytes) {
                const cobre::shm::TransportConfig config{.size = size};
                Segment segment = Segment::create_in_memory(cobre::shm::segment_bytes(config), memory_limit_bytes);
                cobre::shm::initialise(segment.map(cobre::shm::Control::fixed_bytes(size), false)->data(), config);
                return segment;
            },
            "size"_a, "memory_limit_bytes"_a)
        .def_static("open", &Segment::open_from, "pid"_a, "descriptor"_a, "inode"_a)
        .def_prop_ro("descriptor", &Segment::descriptor)
        .def_prop_ro("inode", &Segment::inode);

    module.def(
        "segment_bytes",
        [](uint32_t size, size_t window_bytes) {
            return cobre::shm::segment_bytes({.size = size, .window_bytes = window_bytes});
        },
        "size"_a, "window_bytes"_a);
    module.def("unlink_segment", [](const std::string& name) { return shm_unlink(name.c_str()) == 0; }, "name"_a);
}

void bind_shm_constructors(nb::class_<Transport>& transport) {
    transport
        .def(
            "__init__",
            [](Transport* self, std::string name, uint32_t rank, uint32_t size, double timeout_s,
               double connect_timeout_s, double operation_timeout_s, bool condvar, size_t window_bytes,
               uint32_t quota_cores, bool by_name, double progress_s, cobre::CallGuard& guard, nb::object on_wait) {
                new (self) Transport({.name = std::move(name),
                                      .rank = rank,
                                      .size = size,
                                      .timeout_s = timeout_s,
                                      .connect_timeout_s = connect_timeout_s,
                                      .operation_timeout_s = operation_timeout_s,
                                      .condvar = condvar,
                                      .window_bytes = window_bytes,
                                      .quota_cores = quota_cores,
                                      .by_name = by_name,
                                      .progress_s = progress_s},
                                     guard, to_on_wait(std::move(on_wait)));
            },
            "name"_a, "rank"_a, "size"_a, "timeout_s"_a, "connect_timeout_s"_a, "operation_timeout_s"_a, "condvar"_a,
            "window_bytes"_a, "quota_cores"_a, "by_name"_a, "progress_s"_a, "guard"_a, "on_wait"_a,
            nb::keep_alive<1, 13>())
        .def(
            "__init__",
            [](Transport* self, Segment& segment, uint32_t rank, std::vector<uint32_t> world_ranks, double timeout_s,
               double connect_timeout_s, double operation_timeout_s, uint32_t quota_cores, double progress_s,
               size_t memory_limit_bytes, cobre::CallGuard& guard, nb::object on_wait) {
                const auto size = static_cast<uint32_t>(world_ranks.size());
                new (self) Transport(segment,
                                     {.rank = rank,
                                      .size = size,
                                      .timeout_s = timeout_s,
                                      .connect_timeout_s = connect_timeout_s,
                                      .operation_timeout_s = operation_timeout_s,
                                      .quota_cores = quota_cores,
                                      .world_ranks = std::move(world_ranks),
                                      .in_memory = true,
                                      .progress_s = progress_s,
                                      .memory_limit_bytes = memory_limit_bytes},
                                     guard, to_on_wait(std::move(on_wait)));
            },
            "segment"_a, "rank"_a, "world_ranks"_a, "timeout_s"_a, "connect_timeout_s"_a, "operation_timeout_s"_a,
            "quota_cores"_a, "progress_s"_a, "memory_limit_bytes"_a, "guard"_a, "on_wait"_a, nb::keep_alive<1, 11>())
        .def(
            "__init__",
            [](Transport* self, Transport& parent, cobre::CallGuard& guard, nb::object on_wait) {
                new (self) Transport(parent, guard, to_on_wait(std::move(on_wait)));
            },
            "parent"_a, "guard"_a, "on_wait"_a, nb::keep_alive<1, 3>());
}

void bind_shm_transport(nb::module_& module) {
    nb::class_<Transport> transport(module, "ShmTransport");
    bind_shm_constructors(transport);
    transport.def("wait_for_all", &Transport::wait_for_all)
        .def("barrier", &Transport::barrier)
        .def("allgatherv",
             [](Transport& self, nb::handle send, nb::handle recv, nb::handle counts, nb::handle displs) {
                 self.allgatherv(cobre::read_any(send.ptr()), cobre::read_any(recv.ptr()), to_sizes(counts),
                                 to_sizes(displs));
             })
        .def("allreduce",
             [](Transport& self, nb::handle send, nb::handle recv, nb::handle op) {
                 // A member of an IntEnum, checked before.
                 const auto reduction = static_cast<cobre::ReduceOp>(PyLong_AsLong(op.ptr()));
                 self.allreduce(cobre::read_any(send.ptr()), cobre::read_any(recv.ptr()), reduction);
             })
        .def("broadcast", [](Transport& self, nb::handle buffer,
                             uint32_t root) { self.broadcast(cobre::read_any(buffer.ptr()), root); })
        .def("broadcast_parts",
             [](Transport& self, nb::handle buffer, nb::handle counts, nb::handle displs, uint32_t root) {
                 self.broadcast_parts(cobre::read_any(buffer.ptr()), to_sizes(counts), to_sizes(displs), root);
             })
        .def(
            "describe_call",
            [](Transport& self, nb::handle like, uint64_t count, uint64_t total, uint32_t parameter,
               uint64_t counts_hash) {
                self.describe_call(like.is_none() ? 0 : cobre::read_any(like.ptr()).dtype, count, total, parameter,
                                   counts_hash);
            },
            "like"_a.none(), "count"_a, "total"_a, "parameter"_a, "counts_hash"_a)
        .def("enforce_operation_timeout", &Transport::enforce_operation_timeout)
        .def("fence", &Transport::fence)
        .def("create_region",
             [](Transport& self, size_t bytes, nb::handle dtype) {
                 return self.create_region(bytes, cobre::dtype_checksum(dtype.ptr()));
             })
        .def("abort", [](Transport& self, nb::bytes text) { self.abort(std::string(text.c_str(), text.size())); })
        .def("close", &Transport::close)
        .def_prop_ro("window_bytes", &Transport::window_bytes);
}

void bind_fold(nb::module_& module) {
    module.def(
        "fold",
        [](nb::list inputs, nb::handle out, uint32_t op) {
            std::vector<const void*> pointers;
            const cobre::Buffer result = cobre::read_any(out.ptr());
            for (nb::handle input : inputs) {
                const cobre::Buffer buffer = cobre::read_any(input.ptr());
                if (buffer.element != result.element || buffer.count != result.count)
                    throw nb::value_error("fold: inputs and output differ in dtype or length");
                pointers.push_back(buffer.data);
            }
            const auto reduction = static_cast<cobre::ReduceOp>(op);
            if (pointers.empty() || op > 2 || !cobre::is_reducible(result.element, reduction))
                throw nb::value_error("fold: nothing to reduce, or no such reduction for this dtype");
            nb::gil_scoped_release unlocked;
            cobre::fold(result.element, reduction, pointers.data(), pointers.size(), result.data, result.count);
        },
        "inputs"_a, "out"_a, "op"_a);
}

void bind_process(nb::module_& module) {
    module.def("die_with_parent", &cobre::die_with_parent, "parent_pid"_a);
    module.def(
        "kill_group_with_parent",
        [](int parent_pid, const std::string& segment) {
            cobre::kill_group_with_parent(parent_pid, segment.empty() ? "" : cobre::shm::shm_path(segment));
        },
        "parent_pid"_a, "segment"_a);
    module.attr("PARENT_DEATH_SIGNAL") = cobre::parent_death_signal();
    module.def("count_signal", &cobre::count_signal, "number"_a);
    module.def("take_signal_count", &cobre::take_signal_count, "number"_a);
    module.def("kill_process_group", &cobre::kill_process_group);
    // The C library's exit, with its handlers, and without the teardown of the interpreter.
    module.def("exit_without_teardown", [](int code) { std::exit(code); }, "code"_a);
}

}  // namespace

void cobre::Gil::release() {
    if (!state_) state_ = PyEval_SaveThread();
}

void cobre::Gil::acquire() {
    if (state_) PyEval_RestoreThread(static_cast<PyThreadState*>(std::exchange(state_, nullptr)));
}

void cobre::Gil::check_signals() {
    acquire();
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

void cobre::bind_comm(nb::module_& module) {
    bind_guard(module);
    bind_guarded_method(module);
    bind_shm_failures(module);
    bind_shm_memory(module);
    bind_shm_transport(module);
    bind_fold(module);
    bind_process(module);
    bind_shared_names(module);
}
