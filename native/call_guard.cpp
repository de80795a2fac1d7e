#include "call_guard.hpp"

#include <algorithm>
#include <utility>

#include "process.hpp"

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
struct Integers {
    explicit Integers(PyObject* object)
        : items(PyTuple_CheckExact(object) || PyList_CheckExact(object) ? PySequence_Fast_ITEMS(object) : nullptr),
          length(items ? PySequence_Fast_GET_SIZE(object) : -1) {}
    PyObject** items;
    Py_ssize_t length;
};

// Displacements without gaps; an invalid count is found when the counts are checked.
nb::object packed_displacements(const Integers& counts) {
    nb::object displacements = nb::steal(PyTuple_New(std::max<Py_ssize_t>(counts.length, 0)));
    Py_ssize_t next = 0;
    for (Py_ssize_t rank = 0; rank < counts.length; ++rank) {
        PyTuple_SET_ITEM(displacements.ptr(), rank, PyLong_FromSsize_t(next));
        next += std::max<Py_ssize_t>(small_integer(counts.items[rank]), 0);
    }
    return displacements;
}

}  // namespace

CallGuard::CallGuard(uint32_t rank, uint32_t size, nb::object reduce_op)
    : rank_(rank), size_(size), reduce_op_(std::move(reduce_op)), fork_count_(fork_generation()), recent_(kRecent) {}

CallGuard::~CallGuard() {
    for (CallRecord& record : recent_) Py_XDECREF(record.label);
}

// Python finds out which of these it was, for the message.
bool CallGuard::ready() const { return !busy_ && !broken_ && !closed_ && fork_count_ == fork_generation(); }

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
    // Last: it may run the destructor of a label's class, and with it any Python code, which must find a complete record.
    Py_XDECREF(old);
}

bool CallGuard::begin(uint32_t operation, uint64_t nbytes, nb::handle label) {
    if (!ready() || !PyUnicode_Check(label.ptr())) return false;
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
    return ready() && PyUnicode_Check(label.ptr()) && run(Operation::barrier, 0, label, hook);
}

bool CallGuard::fence(nb::handle hook, nb::handle label) {
    return ready() && PyUnicode_Check(label.ptr()) && run(Operation::fence, 0, label, hook);
}

bool CallGuard::allgatherv(nb::handle hook, nb::handle send, nb::handle recv, nb::handle counts, nb::handle displs,
                           nb::handle label) {
    Buffer from, to;
    if (!ready() || !PyUnicode_Check(label.ptr()) || !read_plain(send.ptr(), false, from) ||
        !read_plain(recv.ptr(), true, to))
        return false;
    const Integers amounts(counts.ptr());
    nb::object packed;
    if (displs.is_none()) {
        packed = packed_displacements(amounts);
        displs = packed;
    }
    const Integers displacements(displs.ptr());
    if (from.dtype != to.dtype || amounts.length != size_ || displacements.length != size_) return false;
    // Ascending displacements cannot overlap; others are sorted out in Python.
    size_t room = 0, own = 0;
    for (uint32_t rank = 0; rank < size_; ++rank) {
        const Py_ssize_t count = small_integer(amounts.items[rank]), start = small_integer(displacements.items[rank]);
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

// The common form alone: anything else goes to the validation in Python, which says what is wrong.
bool CallGuard::allreduce(nb::handle hook, nb::handle send, nb::handle recv, nb::handle op, nb::handle label) {
    Buffer from, to;
    if (!ready() || !PyUnicode_Check(label.ptr()) || !read_plain(send.ptr(), false, from) ||
        !read_plain(recv.ptr(), true, to))
        return false;
    if (reinterpret_cast<PyObject*>(Py_TYPE(op.ptr())) != reduce_op_.ptr()) return false;
    const auto reduction = static_cast<ReduceOp>(PyLong_AsLong(op.ptr()));
    if (from.dtype != to.dtype || from.count != to.count || !reducible(from.element, reduction)) return false;
    if (from.data != to.data && !are_disjoint(from.data, from.nbytes(), to.data, to.nbytes())) return false;
    return run(Operation::allreduce, from.nbytes(), label, hook, send, recv, op);
}

bool CallGuard::broadcast(nb::handle hook, nb::handle buffer, nb::handle root, nb::handle label) {
    Buffer both;
    if (!ready() || !PyUnicode_Check(label.ptr()) || !read_plain(buffer.ptr(), true, both)) return false;
    const Py_ssize_t rank = small_integer(root.ptr());
    if (rank < 0 || rank >= static_cast<Py_ssize_t>(size_)) return false;
    return run(Operation::broadcast, both.nbytes(), label, hook, buffer, root);
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

}  // namespace cobre
