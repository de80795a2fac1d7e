#include "call_guard.hpp"

#include <structmember.h>

#include <algorithm>
#include <cstddef>
#include <utility>

#include "process.hpp"
#include "reduce.hpp"

namespace nb = nanobind;

namespace cobre {
namespace {

bool are_disjoint(const std::byte* a, size_t a_bytes, const std::byte* b, size_t b_bytes) {
    return a_bytes == 0 || b_bytes == 0 || a + a_bytes <= b || b + b_bytes <= a;
}

// One non-negative integer of a tuple or list; -1 for anything else.
Py_ssize_t small_integer(PyObject* value) {
    if (!PyLong_CheckExact(value)) return -1;
    const Py_ssize_t number = PyLong_AsSsize_t(value);
    if (number == -1 && PyErr_Occurred()) PyErr_Clear();
    return number;
}

// A tuple or list of ints, seen as an array of object pointers.
struct IntegerItems {
    explicit IntegerItems(PyObject* object)
        : items(PyTuple_CheckExact(object) || PyList_CheckExact(object) ? PySequence_Fast_ITEMS(object) : nullptr),
          length(items ? PySequence_Fast_GET_SIZE(object) : -1) {}
    PyObject** items;
    Py_ssize_t length;
};

// Displacements without gaps; an invalid count is found when the counts are checked.
nb::object packed_displacements(const IntegerItems& counts) {
    nb::object displ_items = nb::steal(PyTuple_New(std::max<Py_ssize_t>(counts.length, 0)));
    Py_ssize_t next = 0;
    for (Py_ssize_t rank = 0; rank < counts.length; ++rank) {
        PyTuple_SET_ITEM(displ_items.ptr(), rank, PyLong_FromSsize_t(next));
        next += std::max<Py_ssize_t>(small_integer(counts.items[rank]), 0);
    }
    return displ_items;
}

}  // namespace

CallGuard::CallGuard(uint32_t rank, uint32_t size, nb::object reduce_op)
    : rank_(rank), size_(size), reduce_op_(std::move(reduce_op)), fork_count_(fork_generation()), recent_(kRecent) {}

CallGuard::~CallGuard() {
    for (CallRecord& record : recent_) Py_XDECREF(record.label);
}

// Python finds out which of these it was, for the message.
bool CallGuard::is_ready() const { return !busy_ && !broken_ && !closed_ && fork_count_ == fork_generation(); }

void CallGuard::start(Operation operation, uint64_t nbytes, PyObject* label) {
    busy_ = true;
    CallRecord& record = recent_[++sequence_ % kRecent];
    Py_INCREF(label);
    PyObject* old = std::exchange(record.label, label);
    record.sequence = sequence_;
    record.operation = operation;
    record.nbytes = nbytes;
    record.begin_ticks = ticks();
    record.end_ticks = 0;
    // Last: it may run the destructor of a label's class, and with it any Python code, which must find a complete
    // record.
    Py_XDECREF(old);
}

bool CallGuard::begin(uint32_t operation, uint64_t nbytes, nb::handle label) {
    if (!is_ready() || !PyUnicode_Check(label.ptr())) return false;
    start(static_cast<Operation>(operation), nbytes, label.ptr());
    return true;
}

template <typename... Arguments>
bool CallGuard::run(Operation operation, uint64_t nbytes, nb::handle label, nb::handle hook, Arguments... arguments) {
    start(operation, nbytes, label.ptr());
    // One free place in front: a bound method then puts its object there instead of copying the arguments.
    PyObject* stack[] = {nullptr, arguments.ptr()..., nullptr};
    PyObject* result =
        PyObject_Vectorcall(hook.ptr(), stack + 1, sizeof...(arguments) | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr);
    if (!result) {
        // Broken until `fail` or `end` says more: whatever happens in between, the guard must not stay busy.
        busy_ = false;
        broken_ = true;
        throw nb::python_error();
    }
    Py_DECREF(result);
    end();
    return true;
}

bool CallGuard::barrier(nb::handle hook, nb::handle label) {
    return is_ready() && PyUnicode_Check(label.ptr()) && run(Operation::barrier, 0, label, hook);
}

bool CallGuard::fence(nb::handle hook, nb::handle label) {
    return is_ready() && PyUnicode_Check(label.ptr()) && run(Operation::fence, 0, label, hook);
}

bool CallGuard::allgatherv(nb::handle hook, nb::handle send, nb::handle recv, nb::handle counts, nb::handle displs,
                           nb::handle label) {
    Buffer from, to;
    if (!is_ready() || !PyUnicode_Check(label.ptr()) || !read_plain(send.ptr(), false, from) ||
        !read_plain(recv.ptr(), true, to))
        return false;
    const IntegerItems count_items(counts.ptr());
    nb::object packed;
    if (displs.is_none()) {
        packed = packed_displacements(count_items);
        displs = packed;
    }
    const IntegerItems displ_items(displs.ptr());
    if (from.dtype != to.dtype || count_items.length != size_ || displ_items.length != size_) return false;
    // Ascending displacements cannot overlap; others are sorted out in Python.
    size_t room = 0, own = 0;
    for (uint32_t rank = 0; rank < size_; ++rank) {
        const Py_ssize_t count = small_integer(count_items.items[rank]), start = small_integer(displ_items.items[rank]);
        if (count < 0 || start < static_cast<Py_ssize_t>(room)) return false;
        if (rank == rank_) {
            if (static_cast<size_t>(count) != from.count) return false;
            own = static_cast<size_t>(start);
        }
        room = static_cast<size_t>(start) + static_cast<size_t>(count);
        if (room > to.count) return false;
    }
    const bool in_place = from.data == to.data + own * to.itemsize;
    if (!in_place && !are_disjoint(from.data, from.nbytes(), to.data, to.nbytes())) return false;
    return run(Operation::allgatherv, to.nbytes(), label, hook, send, recv, counts, displs);
}

// Only the common form: anything else goes to the validation in Python, which says what is wrong.
bool CallGuard::allreduce(nb::handle hook, nb::handle send, nb::handle recv, nb::handle op, nb::handle label) {
    Buffer from, to;
    if (!is_ready() || !PyUnicode_Check(label.ptr()) || !read_plain(send.ptr(), false, from) ||
        !read_plain(recv.ptr(), true, to))
        return false;
    if (reinterpret_cast<PyObject*>(Py_TYPE(op.ptr())) != reduce_op_.ptr()) return false;
    const auto reduction = static_cast<ReduceOp>(PyLong_AsLong(op.ptr()));
    if (from.dtype != to.dtype || from.count != to.count || !is_reducible(from.element, reduction)) return false;
    if (from.data != to.data && !are_disjoint(from.data, from.nbytes(), to.data, to.nbytes())) return false;
    return run(Operation::allreduce, from.nbytes(), label, hook, send, recv, op);
}

bool CallGuard::broadcast(nb::handle hook, nb::handle buffer, nb::handle root, nb::handle label) {
    Buffer memory;
    if (!is_ready() || !PyUnicode_Check(label.ptr()) || !read_plain(buffer.ptr(), true, memory)) return false;
    const Py_ssize_t rank = small_integer(root.ptr());
    if (rank < 0 || rank >= static_cast<Py_ssize_t>(size_)) return false;
    return run(Operation::broadcast, memory.nbytes(), label, hook, buffer, root);
}

void CallGuard::end() {
    recent_[sequence_ % kRecent].end_ticks = ticks();
    busy_ = false;
}

void CallGuard::fail() {
    broken_ = true;
    busy_ = false;
    CallRecord& record = recent_[sequence_ % kRecent];
    if (sequence_ && record.end_ticks == 0) record.end_ticks = ticks();
}

bool CallGuard::close() {
    if (fork_count_ != fork_generation()) return false;
    return !std::exchange(closed_, true);
}

const char* CallGuard::state() const {
    if (fork_count_ != fork_generation()) return "forked";
    if (closed_) return "closed";
    if (broken_) return "broken";
    return busy_ ? "busy" : "open";
}

CurrentCall CallGuard::current_call() const {
    const CallRecord& record = last();
    CurrentCall call{record.sequence, record.operation, {}};
    if (record.label && PyUnicode_GET_LENGTH(record.label) > 0) {
        Py_ssize_t length = 0;
        const char* text = PyUnicode_AsUTF8AndSize(record.label, &length);  // kept by the string itself
        if (text) {
            call.label = {text, static_cast<size_t>(length)};
        } else {  // a lone surrogate: the label is only for display
            PyErr_Clear();
            call.label = "?";
        }
    }
    return call;
}

nb::list CallGuard::recent() const {
    nb::list calls;
    const TickScale scale;
    const uint64_t first = sequence_ > kRecent ? sequence_ - kRecent + 1 : 1;
    for (uint64_t at = first; at <= sequence_; ++at) {
        const CallRecord& record = recent_[at % kRecent];
        calls.append(nb::make_tuple(record.sequence, static_cast<uint32_t>(record.operation), record.nbytes,
                                    nb::borrow(record.label), scale.to_ns(record.begin_ticks),
                                    record.end_ticks ? scale.to_ns(record.end_ticks) : 0));
    }
    return calls;
}

namespace {

// What a decorated method of the class is: behaves as the Python function does, and is found as one (`__wrapped__`).
struct GuardedMethod {
    PyObject_HEAD vectorcallfunc vectorcall;
    PyObject* attributes;  // __doc__, __name__, __wrapped__ ...; null until the first is set
    PyObject* function;    // for all but the common case
    PyObject* operation;   // what `_fail` is told
    PyTypeObject* owner;   // the class whose slot holds the guard
    Py_ssize_t offset;     // of the guard in its instances: looking the attribute up would cost as much as the guard
};

PyTypeObject* guard_type = nullptr;  // compared by address: a cast by nanobind would look it up in a table

PyObject* interned(const char* text) { return PyUnicode_InternFromString(text); }

// Made with the type, never freed: they live as long as the interpreter.
struct Names {
    PyObject* hook = nullptr;
    PyObject* fail = nullptr;
    PyObject* label = nullptr;
    PyObject* empty = nullptr;
} names;

// The hook has raised: `_fail` ends the call, tells the other ranks, and raises what the caller is to see.
PyObject* raise_failure(const GuardedMethod* method, PyObject* endpoint, const nb::python_error& error) {
    PyObject* arguments[] = {endpoint, method->operation, error.value().ptr()};
    PyObject* result = PyObject_VectorcallMethod(names.fail, arguments, 3, nullptr);
    Py_XDECREF(result);
    if (result) PyErr_SetString(PyExc_SystemError, "_fail returned");
    return nullptr;
}

// The endpoint's guard, borrowed; null if this is not an endpoint, or one whose constructor has not come that far.
PyObject* guard_of(const GuardedMethod* method, PyObject* endpoint) {
    if (!PyObject_TypeCheck(endpoint, method->owner)) return nullptr;
    PyObject* guard = *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(endpoint) + method->offset);
    return guard && Py_TYPE(guard) == guard_type ? guard : nullptr;
}

// Whether the guard has run the call; if not, and no exception is set, the Python function finds out why.
bool run(const GuardedMethod* method, PyObject* endpoint, PyObject* label) {
    // Owned: the hook runs any code, and may take the endpoint's last reference to it.
    const nb::object guard = nb::borrow(guard_of(method, endpoint));
    if (!guard.ptr()) return false;
    auto* native = nb::inst_ptr<CallGuard>(guard);
    nb::object hook = native->bound_barrier();
    if (!hook.ptr()) hook = nb::steal(PyObject_GetAttr(endpoint, names.hook));
    if (!hook.ptr()) return false;
    try {
        return native->barrier(hook, label);
    } catch (const nb::python_error& error) {
        raise_failure(method, endpoint, error);
        return false;
    }
}

PyObject* call(PyObject* self, PyObject* const* arguments, size_t flagged_count, PyObject* keywords) {
    const auto* method = reinterpret_cast<const GuardedMethod*>(self);
    const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    // Names of keywords in a call are interned, and so is ours.
    const bool is_common = PyVectorcall_NARGS(flagged_count) == 1 &&
                           (named == 0 || (named == 1 && PyTuple_GET_ITEM(keywords, 0) == names.label));
    if (is_common) {
        if (run(method, arguments[0], named ? arguments[1] : names.empty)) Py_RETURN_NONE;
        if (PyErr_Occurred()) return nullptr;
    }
    return PyObject_Vectorcall(method->function, arguments, flagged_count, keywords);
}

PyObject* create(PyTypeObject* type, PyObject* arguments, PyObject*) {
    PyObject *function, *operation, *slot;
    if (!PyArg_ParseTuple(arguments, "OOO!", &function, &operation, &PyMemberDescr_Type, &slot)) return nullptr;
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) return nullptr;
    auto* method = reinterpret_cast<GuardedMethod*>(self);
    method->vectorcall = call;
    method->function = Py_NewRef(function);
    method->operation = Py_NewRef(operation);
    method->owner = reinterpret_cast<PyTypeObject*>(Py_NewRef(PyDescr_TYPE(slot)));
    method->offset = reinterpret_cast<PyMemberDescrObject*>(slot)->d_member->offset;
    return self;
}

void destroy(PyObject* self) {
    auto* method = reinterpret_cast<GuardedMethod*>(self);
    Py_CLEAR(method->attributes);
    Py_CLEAR(method->function);
    Py_CLEAR(method->operation);
    Py_CLEAR(method->owner);
    PyTypeObject* type = Py_TYPE(self);
    type->tp_free(self);
    Py_DECREF(type);
}

PyObject* bind(PyObject* self, PyObject* instance, PyObject*) {
    return instance && instance != Py_None ? PyMethod_New(self, instance) : Py_NewRef(self);
}

}  // namespace

void bind_guarded_method(nb::module_& module) {
    static PyMemberDef members[] = {
        {"__vectorcalloffset__", T_PYSSIZET, offsetof(GuardedMethod, vectorcall), READONLY, nullptr},
        {"__dictoffset__", T_PYSSIZET, offsetof(GuardedMethod, attributes), READONLY, nullptr},
        {}};
    static PyGetSetDef properties[] = {{"__dict__", PyObject_GenericGetDict, nullptr, nullptr, nullptr}, {}};
    static PyType_Slot slots[] = {{Py_tp_new, reinterpret_cast<void*>(create)},
                                  {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
                                  {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                                  {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
                                  {Py_tp_members, members},
                                  {Py_tp_getset, properties},
                                  {0, nullptr}};
    // A method descriptor: `comm.barrier()` calls it with the communicator, and makes no bound method first.
    static PyType_Spec spec = {"cobre._native.GuardedMethod", sizeof(GuardedMethod), 0,
                               Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR, slots};
    names = {interned("_barrier"), interned("_fail"), interned("label"), interned("")};
    guard_type = reinterpret_cast<PyTypeObject*>(nb::type<CallGuard>().ptr());
    module.attr("GuardedMethod") = nb::steal(PyType_FromSpec(&spec));
}

}  // namespace cobre
