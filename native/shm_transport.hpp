// One rank's end of the shared-memory transport: joins the other ranks, runs collectives with them, leaves. It takes
// pointers and sizes, and knows nothing of Python but the lock that it releases while it waits (`Gil`).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm_types.hpp"
#include "shm_barrier.hpp"
#include "shm_collectives.hpp"
#include "shm_liveness.hpp"
#include "shm_rendezvous.hpp"
#include "shm_segment.hpp"

namespace cobre::shm {

// Called while a call waits: for how many seconds it has, and the ranks that are missing, as messages name them.
using OnWait = std::function<void(double, const std::vector<std::string>&)>;

// Memory that all ranks map.
struct Region {
    std::shared_ptr<Mapping> mapping;
    size_t bytes;
    uint32_t id;
};

// What ranks compare and messages show of a call that consists of several collectives.
struct CallDescription {
    uint64_t sequence = 0;
    uint32_t dtype = 0;
    uint64_t count = 0;
    uint64_t total = 0;
    uint32_t parameter = 0;
    uint64_t counts_hash = 0;
};

class Transport {
public:
    // calls: must outlive the transport. on_wait: may be empty; runs on the calling thread, with the GIL.
    Transport(TransportConfig config, const CallSource& calls, OnWait on_wait);
    // In a segment that the ranks have found by other means than a name; rank 0 has initialised it. Does not wait for
    // the others: `wait_for_all` must follow, once it is known that all have got this far. A rank that dies before that
    // has no slot, and no rank would notice.
    Transport(Segment& segment, TransportConfig config, const CallSource& calls, OnWait on_wait);
    // A second transport between the ranks of `parent`, created inside its current call, which notices ranks that die.
    Transport(Transport& parent, const CallSource& calls, OnWait on_wait);
    ~Transport();

    void wait_for_all();
    void barrier();
    // Counts and displacements are in elements, one for each rank; `send` has as many as this rank's count.
    void allgatherv(const TypedMemory& send, const TypedMemory& recv, std::vector<size_t> counts,
                    std::vector<size_t> displs);
    // `send` and `recv` have the same type and length.
    void allreduce(const TypedMemory& send, const TypedMemory& recv, ReduceOp op);
    void broadcast(const TypedMemory& buffer, uint32_t root);
    // Several parts of a buffer in one call; counts and displacements are in elements, one for each part.
    void broadcast_parts(const TypedMemory& buffer, std::vector<size_t> counts, std::vector<size_t> displs,
                         uint32_t root);
    void fence(const Region& region);
    // Throws std::system_error on every rank when any of them could not.
    std::shared_ptr<Region> create_region(size_t bytes, uint32_t dtype);

    // The current call consists of several collectives of this transport: describe it as a whole.
    void describe_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t parameter, uint64_t counts_hash);
    // Whether the timeout of one operation holds for the collectives that follow.
    void enforce_operation_timeout(bool limited);

    void abort(const std::string& text);
    void close();
    size_t window_bytes() const { return mapping_ ? mapping_->bytes() : 0; }

private:
    void join();
    void check_header(const Segment& segment) const;
    void set_up(std::shared_ptr<Mapping> mapping);
    void register_rank(Segment& segment);
    std::string derived_name() const;
    void wait_for_late_ranks(int64_t deadline_ns);
    bool has_live_creator(const Segment& segment) const;
    int first_failure(int own_outcome, uint64_t hash, Gil& gil);
    bool same_pid_namespace();
    int create_unnamed(Region& region, size_t mapped_bytes, uint64_t hash, Gil& gil);
    int create_by_name(Region& region, size_t mapped_bytes, uint64_t hash, Gil& gil);
    void claim_slot();
    void choose_spin_policy();
    void finish_close();
    Barrier& open_barrier();  // throws std::logic_error when the transport is closed
    uint64_t publish_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t parameter, uint64_t counts_hash,
                          uint64_t location);
    uint64_t location_of(const TypedMemory& recv, uint64_t layout_hash) const;

    TransportConfig config_;
    const CallSource& calls_;
    OnWait on_wait_;
    uint64_t fork_count_;
    std::shared_ptr<Mapping> mapping_;
    std::unique_ptr<Barrier> barrier_;
    std::unique_ptr<LivenessMonitor> liveness_;
    std::unique_ptr<Collectives> collectives_;
    std::vector<std::weak_ptr<Region>> regions_;
    CallDescription described_call_;
    uint32_t next_region_ = 1;
    bool in_call_ = false;
    bool close_after_call_ = false;

    // Another thread, or a signal handler, may close the transport while a call waits in it: the call ends first.
    class InCall {
    public:
        explicit InCall(Transport& transport) : transport_(transport) { transport_.in_call_ = true; }
        ~InCall() {
            transport_.in_call_ = false;
            if (transport_.close_after_call_) transport_.finish_close();
        }
        InCall(const InCall&) = delete;
        InCall& operator=(const InCall&) = delete;

    private:
        Transport& transport_;
    };
};

}  // namespace cobre::shm
