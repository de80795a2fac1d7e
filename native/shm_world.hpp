// One rank's hold on a shared-memory world: meeting, calling, leaving.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <vector>

#include "call_guard.hpp"
#include "shm_collectives.hpp"
#include "shm_rendezvous.hpp"
#include "shm_segment.hpp"
#include "shm_sync.hpp"
#include "shm_watch.hpp"

namespace cobre::shm {

// Text from shared memory, whatever bytes it holds: labels and reasons may be cut inside a character.
nanobind::object to_python(const std::string& text);

// Memory that all ranks of the world see.
struct Region {
    std::shared_ptr<Mapping> mapping;
    size_t bytes;
    uint32_t id;
};

// What ranks compare and messages show of a call, where its steps do not say it themselves.
struct Announcement {
    uint64_t sequence = 0;
    uint32_t dtype = 0;
    uint64_t count = 0;
    uint64_t total = 0;
    uint32_t detail = 0;
    uint64_t counts_hash = 0;
};

class World {
public:
    World(WorldConfig config, CallGuard& guard, nanobind::object on_wait);
    // A world whose ranks have found its segment in another way than by name; rank 0 has initialised it.
    World(Segment& segment, WorldConfig config, CallGuard& guard, nanobind::object on_wait);
    // A world of the same ranks inside another one's present call, which notices ranks that die on the way.
    World(World& parent, CallGuard& guard, nanobind::object on_wait);
    ~World();

    void barrier();
    void allgatherv(nanobind::handle send, nanobind::handle recv, nanobind::handle counts, nanobind::handle displs);
    void allreduce(nanobind::handle send, nanobind::handle recv, nanobind::handle op);
    void broadcast(nanobind::handle buffer, uint32_t root);
    void spread(nanobind::handle buffer, nanobind::handle counts, nanobind::handle displs, uint32_t root);
    void fence(const Region& region);
    // Throws std::system_error on every rank when any of them could not.
    std::shared_ptr<Region> create_region(size_t bytes, uint32_t dtype);

    // The present call is made of several of the above; each of them stands for the whole of it.
    void announce(uint32_t dtype, uint64_t count, uint64_t total, uint32_t detail, uint64_t counts_hash);
    // Whether the limit for one operation holds for what follows.
    void set_limited(bool limited);

    void abort(const std::string& text);
    void close();
    size_t window_bytes() const { return mapping_ ? mapping_->bytes() : 0; }
    uint32_t cores() const { return cores_; }

private:
    void join();
    void check_header(const Segment& segment) const;
    void attach(std::shared_ptr<Mapping> mapping);
    void meet(Segment& segment);
    void step();  // one more barrier of the present call
    std::string derived_name() const;
    void tell_latecomers(int64_t deadline_ns);
    bool creator_lives(const Segment& segment) const;
    int first_failure(int own, uint64_t hash, Gil& gil);
    bool in_one_pid_namespace();
    int share_nameless(Region& region, size_t mapped, uint64_t hash, Gil& gil);
    int share_by_name(Region& region, size_t mapped, uint64_t hash, Gil& gil);
    void claim_slot();
    void settle_patience();
    void finish_close();
    Sync& sync();
    uint64_t publish_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t detail, uint64_t counts_hash, uint64_t place);
    uint64_t place_of(const Buffer& recv, uint64_t layout_hash) const;

    WorldConfig config_;
    CallGuard& guard_;
    nanobind::object on_wait_;
    uint64_t forks_;
    std::shared_ptr<Mapping> mapping_;
    std::unique_ptr<Sync> sync_;
    std::unique_ptr<Watch> watch_;
    std::unique_ptr<Collectives> collectives_;
    std::vector<std::weak_ptr<Region>> regions_;
    Announcement announced_;
    uint32_t next_region_ = 1;
    uint32_t cores_ = 1;
    bool in_call_ = false;
    bool close_after_call_ = false;

    // Another thread, or a signal handler, may close the world while a call waits in it: the call ends first.
    class InCall {
    public:
        explicit InCall(World& world) : world_(world) { world_.in_call_ = true; }
        ~InCall() {
            world_.in_call_ = false;
            if (world_.close_after_call_) world_.finish_close();
        }
        InCall(const InCall&) = delete;
        InCall& operator=(const InCall&) = delete;

    private:
        World& world_;
    };
};

}  // namespace cobre::shm
