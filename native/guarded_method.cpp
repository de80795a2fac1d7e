#include "guarded_method.hpp"

#include <structmember.h>

#include <cstddef>

#include "call_guard.hpp"

namespace nb = nanobind;

namespace cobre {
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
PyObject* fail(const GuardedMethod* method, PyObject* endpoint, const nb::python_error& error) {
    PyObject* arguments[] = {endpoint, method->operation, error.value().ptr()};
    PyObject* result = PyObject_VectorcallMethod(names.fail, arguments, 3, nullptr);
    Py_XDECREF(result);
    if (result) PyErr_SetString(PyExc_SystemError, "_fail returned");
    return nullptr;
}

// The endpoint's guard, borrowed; null if this is no endpoint, or one whose constructor has not come that far.
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
        fail(method, endpoint, error);
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
