// What every call on a communicator passes first: checks of state and arguments, its sequence number, its record.
#pragma once

#include <nanobind/nanobind.h>

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include "comm_types.hpp"
#include "numpy_buffer.hpp"

namespace cobre {

struct CallRecord {
    uint64_t sequence = 0;
    Operation operation = Operation::join;
    uint64_t nbytes = 0;
    PyObject* label = nullptr;  // owned
    int64_t begin_ticks = 0;
    int64_t end_ticks = 0;  // 0: under way
};

// All members are used with the GIL held, which makes `busy_` safe against a second thread.
class CallGuard final : public CallSource {
public:
    static constexpr size_t kRecent = 1024;

    CallGuard(uint32_t rank, uint32_t size, nanobind::object reduce_op);
    ~CallGuard();
    CallGuard(const CallGuard&) = delete;
    CallGuard& operator=(const CallGuard&) = delete;

    // Each of these returns false, and changes nothing, if the call cannot be accepted here: the state does not allow
    // it, or the arguments are not of the common form. Python then finds out why.
    bool begin(uint32_t operation, uint64_t nbytes, nanobind::handle label);
    // Number and record the call, run the hook with the arguments, and note its end. If the hook raises, the call stays
    // open for `fail` or `end`.
    bool barrier(nanobind::handle hook, nanobind::handle label);
    bool fence(nanobind::handle hook, nanobind::handle label);
    bool allgatherv(nanobind::handle hook, nanobind::handle send, nanobind::handle recv, nanobind::handle counts,
                    nanobind::handle displs, nanobind::handle label);
    bool allreduce(nanobind::handle hook, nanobind::handle send, nanobind::handle recv, nanobind::handle op,
                   nanobind::handle label);
    bool broadcast(nanobind::handle hook, nanobind::handle buffer, nanobind::handle root, nanobind::handle label);
    // The barrier of a library, in place of the endpoint's own method: looking that up would cost as much as the guard.
    // It must not refer to the endpoint, which owns this guard.
    void bind_barrier(nanobind::object hook) { barrier_ = std::move(hook); }
    const nanobind::object& bound_barrier() const { return barrier_; }
    void end();
    void fail();
    bool close();  // false: it was closed already, or this is a forked child

    const char* state() const;
    const char* current() const { return operation_name(last().operation); }
    uint64_t sequence() const { return sequence_; }
    const CallRecord& last() const { return recent_[sequence_ % kRecent]; }
    CurrentCall current_call() const override;
    nanobind::list recent() const;

private:
    bool is_ready() const;
    void start(Operation operation, uint64_t nbytes, PyObject* label);
    template <typename... Arguments>
    bool run(Operation operation, uint64_t nbytes, nanobind::handle label, nanobind::handle hook,
             Arguments... arguments);

    uint32_t rank_;
    uint32_t size_;
    nanobind::object reduce_op_;
    nanobind::object barrier_;
    uint64_t fork_count_;
    bool busy_ = false;
    bool broken_ = false;
    bool closed_ = false;
    uint64_t sequence_ = 0;
    std::vector<CallRecord> recent_;
};

// `GuardedMethod`: a method of a Python class whose common case runs in the guard, without a Python frame between
// caller and hook.
void bind_guarded_method(nanobind::module_& module);

}  // namespace cobre
