// Python's global interpreter lock, as waits see it. No Python header: tests drive the waits without an interpreter.
#pragma once

namespace cobre {

// Holds the GIL at first. Released when waiting or copying gets long, acquired again at the end: a short call never
// gives it up.
class Gil {
public:
    Gil() = default;
    ~Gil() { acquire(); }
    Gil(const Gil&) = delete;
    Gil& operator=(const Gil&) = delete;
    void release();
    void acquire();
    // Acquire the GIL and run pending signal handlers; throws the Python error that one of them raised. The GIL stays
    // held: the caller may have more to do with it, and releases it before it waits again.
    void check_signals();

private:
    void* state_ = nullptr;  // of the thread while the GIL is released
};

}  // namespace cobre
