#include "shm_world.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <limits>
#include <optional>

#include "process.hpp"

namespace nb = nanobind;

namespace cobre::shm {
namespace {

// At most a century, which no addition overflows; at least a nanosecond, because 0 means "none".
int64_t to_ns(double seconds) {
    if (seconds <= 0) return 0;
    return static_cast<int64_t>(std::clamp(seconds * 1e9, 1.0, 3.2e18));
}

uint64_t mix(uint64_t hash, uint64_t value) {  // splitmix64's finaliser over a running hash
    hash = (hash ^ value) + 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 30)) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (hash >> 27)) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
}

std::vector<size_t> read_sizes(nb::handle sequence, size_t itemsize) {
    std::vector<size_t> sizes;
    for (nb::handle item : sequence) sizes.push_back(nb::cast<size_t>(nb::int_(item)) * itemsize);
    return sizes;
}

}  // namespace

nb::object to_python(const std::string& text) {
    return nb::steal(PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
}

World::World(WorldConfig config, CallGuard& guard, nb::object on_wait)
    : config_(std::move(config)), guard_(guard), on_wait_(std::move(on_wait)), forks_(fork_generation()) {
    join();
}

World::World(Segment& segment, WorldConfig config, CallGuard& guard, nb::object on_wait)
    : config_(std::move(config)), guard_(guard), on_wait_(std::move(on_wait)), forks_(fork_generation()) {
    try {
        check_header(segment);
        attach(segment.map(segment.bytes(), true));
        meet(segment);
    } catch (...) {
        close();
        throw;
    }
}

World::World(World& parent, CallGuard& guard, nb::object on_wait)
    : config_(parent.config_), guard_(guard), on_wait_(std::move(on_wait)), forks_(fork_generation()) {
    config_.name = parent.derived_name();  // regions of both worlds get different names
    config_.names.clear();
    const std::shared_ptr<Region> region = parent.create_region(segment_bytes(config_), 0);
    if (config_.rank == 0) initialise(region->mapping->data(), config_);
    parent.step();  // the header is there
    attach(region->mapping);
    claim_slot();
    watch_->start();
    parent.step();  // all have joined
    settle_patience();
}

World::~World() { close(); }

// ---- meeting ---------------------------------------------------------------------------------------------------

void World::join() {
    const int64_t deadline = now_ns() + to_ns(config_.connect_timeout_s);
    std::unique_ptr<MeetingListener> listener;  // closed when all have come, or cannot
    Segment segment = config_.rank == 0 ? make_segment(config_, listener) : find_segment(config_, deadline);
    try {
        check_header(segment);
        attach(segment.map(segment.bytes(), true));
        try {
            meet(segment);
        } catch (const WorldFailure&) {
            if (config_.rank == 0) tell_latecomers(deadline);
            throw;
        }
    } catch (...) {
        // A name that outlives its run would be in the next one's way.
        if (config_.rank == 0 || !creator_lives(segment)) segment.unlink();
        close();
        throw;
    }
}

constexpr int64_t kTellNs = 5'000'000'000;

// The meeting has failed because of some rank. Those that come now would look for rank 0 until their limit, and name the
// wrong one: let them in, so that they read the verdict.
void World::tell_latecomers(int64_t deadline_ns) {
    const int64_t end = std::min(deadline_ns, now_ns() + kTellNs);
    const auto& attached = sync_->control().header->attached;
    while (attached.load(std::memory_order_acquire) < config_.size && now_ns() < end) wait_a_moment();
}

bool World::creator_lives(const Segment& segment) const {
    return alive(*reinterpret_cast<const Header*>(segment.map(sizeof(Header), false)->data()));
}

void World::check_header(const Segment& segment) const {
    const auto head = segment.map(sizeof(Header), false);
    const auto& header = *reinterpret_cast<const Header*>(head->data());
    if (header.layout_version != kLayoutVersion)
        throw JoinFailure("rank 0 (" + creator_text(header) + ") runs another version of this package (segment layout " +
                          std::to_string(header.layout_version) + ", here " + std::to_string(kLayoutVersion) + ")");
    if (header.size != config_.size)
        throw JoinFailure("COBRE_SHM_SIZE is " + std::to_string(config_.size) + " for rank " + std::to_string(config_.rank) +
                          " (pid " + std::to_string(getpid()) + ") but " + std::to_string(header.size) + " for rank 0 (" +
                          creator_text(header) + ")");
    if (header.total_bytes > segment.bytes()) throw JoinFailure("the segment " + config_.name + " is shorter than its header says");
}

void World::attach(std::shared_ptr<Mapping> mapping) {
    mapping_ = std::move(mapping);
    const Header& header = *reinterpret_cast<const Header*>(mapping_->data());
    const Control control = Control::at(mapping_->data(), config_.size, header.slot_bytes);
    watch_ = std::make_unique<Watch>(control, config_.rank, std::clamp(to_ns(config_.timeout_s) / 8, int64_t{10'000'000}, int64_t{500'000'000}),
                                     [this] { sync_->wake_all(); });
    const SyncConfig sync{config_.rank, to_ns(config_.timeout_s), to_ns(config_.operation_timeout_s), header.wait_by_condvar != 0, config_.names};
    sync_ = std::make_unique<Sync>(
        control, sync, [this](uint32_t rank) { return watch_->dead(rank); },
        [this](double seconds, const std::vector<std::string>& missing) {
            nb::list names;
            for (const std::string& name : missing) names.append(to_python(name));
            if (!on_wait_.is_none()) on_wait_(seconds, names);
        });
    sync_->set_patience({0, 20, 0});  // while ranks are starting, leave the cores to them
    collectives_ = std::make_unique<Collectives>(*sync_, config_.rank);
}

void World::claim_slot() {
    RankSlot& slot = sync_->own();
    int32_t nobody = 0;
    // acq_rel: two processes that claim one rank are told apart here; rank 0 has its slot since it made the segment
    if (!slot.pid.compare_exchange_strong(nobody, getpid(), std::memory_order_acq_rel) && nobody != getpid())
        throw JoinFailure("rank " + std::to_string(config_.rank) + " is claimed by two processes: pid " + std::to_string(nobody) +
                          " and pid " + std::to_string(getpid()) + " (both COBRE_SHM_RANK=" + std::to_string(config_.rank) + ")");
    fill_slot(slot);

    cpu_set_t cores;
    Header& header = *sync_->control().header;
    if (sched_getaffinity(0, sizeof cores, &cores) == 0)
        for (size_t core = 0; core < std::size(header.affinity) * 64 && core < CPU_SETSIZE; ++core)
            if (CPU_ISSET(core, &cores)) header.affinity[core / 64].fetch_or(uint64_t{1} << core % 64, std::memory_order_relaxed);
}

// Everybody attaches; rank 0 takes the name away; then nobody can leave anything behind in /dev/shm, even by SIGKILL.
void World::meet(Segment& segment) {
    claim_slot();
    watch_->start();
    Header& header = *sync_->control().header;
    const uint32_t attached = header.attached.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (attached == config_.size) segment.unlink();  // the last to attach: all have mapped it
    sync_->limit_next(to_ns(config_.connect_timeout_s));
    Gil gil;
    sync_->barrier(0, gil);
    sync_->limit_next(0);
    settle_patience();
}

void World::settle_patience() {
    cores_ = 0;
    for (const auto& word : sync_->control().header->affinity)
        cores_ += static_cast<uint32_t>(std::popcount(word.load(std::memory_order_relaxed)));  // complete after the barrier
    if (config_.quota_cores) cores_ = std::min(cores_, config_.quota_cores);
    cores_ = std::max(cores_, 1u);
    sync_->set_patience(Patience::for_ranks(config_.size, cores_));
}

// ---- calling ---------------------------------------------------------------------------------------------------

Sync& World::sync() {
    if (!sync_) throw std::logic_error("this world is closed");
    return *sync_;
}

// Show the others what this rank is calling; gives the hash that the barrier compares.
uint64_t World::publish_call(uint32_t dtype, uint64_t count, uint64_t total, uint32_t detail, uint64_t counts_hash, uint64_t place) {
    const CallRecord& record = guard_.last();
    if (announced_.sequence == record.sequence) {
        dtype = announced_.dtype;
        count = announced_.count;
        total = announced_.total;
        detail = announced_.detail;
        counts_hash = announced_.counts_hash;
    }
    Call& call = sync().own().call;
    // relaxed throughout: others read these after a barrier, or for a message that may be a little late
    constexpr auto relaxed = std::memory_order_relaxed;
    call.sequence.store(record.sequence, relaxed);
    call.operation.store(static_cast<uint32_t>(record.operation), relaxed);
    call.dtype.store(dtype, relaxed);
    call.count.store(count, relaxed);
    call.total.store(total, relaxed);
    call.detail.store(detail, relaxed);
    call.counts_hash.store(counts_hash, relaxed);
    call.place.store(place, relaxed);
    if (Py_ssize_t length = 0; record.label && PyUnicode_GET_LENGTH(record.label) > 0) {
        const char* text = PyUnicode_AsUTF8AndSize(record.label, &length);
        if (!text) {  // a lone surrogate: the label is only for people
            PyErr_Clear();
            text = "?";
            length = 1;
        }
        uint64_t words[kLabelBytes / 8] = {};
        std::memcpy(words, text, std::min<size_t>(static_cast<size_t>(length), kLabelBytes));
        for (size_t i = 0; i < std::size(words); ++i) call.label[i].store(words[i], relaxed);
    } else if (call.label[0].load(relaxed) != 0) {
        for (auto& word : call.label) word.store(0, relaxed);
    }
    uint64_t hash = mix(static_cast<uint64_t>(record.operation), (uint64_t{dtype} << 32) | detail);
    hash = mix(hash, total);
    return mix(hash, counts_hash);
}

void World::announce(uint32_t dtype, uint64_t count, uint64_t total, uint32_t detail, uint64_t counts_hash) {
    announced_ = {guard_.last().sequence, dtype, count, total, detail, counts_hash};
}

void World::set_limited(bool limited) {
    constexpr int64_t kForEver = std::numeric_limits<int64_t>::max();
    sync().limit_next(limited ? 0 : kForEver);
}

void World::barrier() {
    const InCall in_call(*this);
    collectives_->barrier(publish_call(0, 0, 0, 0, 0, 0));
}

void World::broadcast(nb::handle buffer, uint32_t root) {
    const InCall in_call(*this);
    const Buffer data = read_any(buffer.ptr());
    const uint64_t hash = publish_call(data.dtype, data.count, data.count, root, 0, 0);
    collectives_->broadcast(data.data, data.nbytes(), root, hash);
}

void World::allreduce(nb::handle send, nb::handle recv, nb::handle op) {
    const InCall in_call(*this);
    const Buffer from = read_any(send.ptr()), to = read_any(recv.ptr());
    const auto reduction = static_cast<ReduceOp>(PyLong_AsLong(op.ptr()));  // a member of an IntEnum, checked before
    const uint64_t hash = publish_call(from.dtype, from.count, from.count, static_cast<uint32_t>(reduction), 0, 0);
    collectives_->allreduce(from.data, to.data, from.count, from.itemsize, from.element, reduction, hash);
}

void World::allgatherv(nb::handle send, nb::handle recv, nb::handle counts, nb::handle displs) {
    const InCall in_call(*this);
    const Buffer from = read_any(send.ptr()), to = read_any(recv.ptr());
    const std::vector<size_t> bytes = read_sizes(counts, to.itemsize), begin = read_sizes(displs, to.itemsize);
    GatherLayout layout{bytes, begin};
    uint64_t counts_hash = 0, layout_hash = 0;
    for (uint32_t rank = 0; rank < config_.size; ++rank) {
        counts_hash = mix(counts_hash, bytes[rank] / to.itemsize);
        layout_hash = mix(layout_hash, begin[rank]);
        layout.most = std::max(layout.most, bytes[rank]);
        layout.total += bytes[rank];
    }
    const uint64_t place = place_of(to, layout_hash);
    const uint64_t hash = publish_call(to.dtype, from.count, layout.total / to.itemsize, 0, counts_hash, place);
    collectives_->allgatherv(from.data, to.data, layout, place, hash);
}

void World::spread(nb::handle buffer, nb::handle counts, nb::handle displs, uint32_t root) {
    const InCall in_call(*this);
    const Buffer data = read_any(buffer.ptr());
    const std::vector<size_t> bytes = read_sizes(counts, data.itemsize), begin = read_sizes(displs, data.itemsize);
    GatherLayout layout{bytes, begin};
    uint64_t layout_hash = 0;
    for (size_t part = 0; part < bytes.size(); ++part) {
        layout_hash = mix(layout_hash, begin[part]);
        layout.total += bytes[part];
    }
    const uint64_t place = place_of(data, layout_hash);
    const uint64_t hash = publish_call(data.dtype, data.count, layout.total / data.itemsize, root, 0, place);
    collectives_->spread(data.data, layout, root, place, hash);
}

// Equal on two ranks only when they receive in the same memory with the same layout.
uint64_t World::place_of(const Buffer& recv, uint64_t layout_hash) const {
    for (const auto& weak : regions_) {
        const std::shared_ptr<Region> region = weak.lock();
        if (!region) continue;
        const std::byte* base = region->mapping->data();
        if (recv.data < base || recv.data + recv.nbytes() > base + region->bytes) continue;
        return mix(mix(layout_hash, region->id), static_cast<uint64_t>(recv.data - base)) | 1;  // never 0
    }
    return 0;
}

void World::fence(const Region& region) {
    const InCall in_call(*this);
    collectives_->barrier(publish_call(0, 0, 0, region.id, 0, 0));
}

void World::step() {
    const InCall in_call(*this);
    collectives_->barrier(publish_call(0, 0, 0, 0, 0, 0));
}

constexpr size_t kLongestPrefix = 200;  // of the 255 that a name may have

// A name that only this world's present call can have.
std::string World::derived_name() const {
    const Header& header = *sync_->control().header;
    uint64_t hash = mix(mix(guard_.sequence(), header.nonce[0]), header.nonce[1]);
    char text[32];
    std::snprintf(text, sizeof text, "-%016llx", static_cast<unsigned long long>(hash));
    // Begins with the world's own name, so that whoever started the ranks can find what all of them left when killed.
    const size_t slash = config_.name.starts_with('/') ? 1 : 0;
    std::string name = "/";
    name.append(config_.name, slash, kLongestPrefix).append(text);
    return name;
}

// ---- regions ---------------------------------------------------------------------------------------------------

namespace {

constexpr int kOtherWay = -1;  // outcome: this machine does not let ranks share an object in this way

// The outcome of a rank's part of something: 0, an errno, or kOtherWay.
template <typename Action>
int outcome_of(Action&& action) {
    try {
        return action();
    } catch (const std::system_error& error) {
        return error.code().value();
    }
}

}  // namespace

// Every rank's outcome to all; the first that is not 0.
int World::first_failure(int own, uint64_t hash, Gil& gil) {
    sync().own().outcome.store(own, std::memory_order_relaxed);  // read after the next barrier
    sync().barrier(hash, gil);
    int code = 0;
    for (uint32_t rank = 0; rank < config_.size && code == 0; ++rank)
        code = sync().control().slots[rank].outcome.load(std::memory_order_relaxed);
    sync().barrier(hash, gil);  // everybody has read the outcomes before they are written again
    return code;
}

bool World::in_one_pid_namespace() {
    for (uint32_t rank = 0; rank < config_.size; ++rank)
        if (sync().control().slots[rank].pid_namespace.load(std::memory_order_relaxed) != pid_namespace()) return false;
    return true;
}

// Rank 0 makes an object without a name, the others open it through rank 0's descriptor: nothing can be left behind, and
// nobody can take a name that does not exist.
int World::share_nameless(Region& region, size_t mapped, uint64_t hash, Gil& gil) {
    Header& header = *sync().control().header;
    std::optional<Segment> segment;  // rank 0's stays open until all have theirs
    const int made = outcome_of([&] {
        if (config_.rank != 0) return 0;
        try {
            segment.emplace(config_.in_memory ? Segment::create_in_memory(mapped) : Segment::create_nameless(mapped));
        } catch (const std::system_error& error) {
            if (Segment::lacks_nameless(error.code().value())) return kOtherWay;
            throw;
        }
        region.mapping = segment->map(mapped, false);
        header.region_descriptor.store(segment->descriptor(), std::memory_order_relaxed);  // read after the next barrier
        header.region_inode.store(segment->inode(), std::memory_order_relaxed);
        return 0;
    });
    if (const int code = first_failure(made, hash, gil)) return code;
    const int opened = outcome_of([&] {
        if (config_.rank == 0) return 0;
        try {
            segment.emplace(Segment::open_of(header.creator_pid, header.region_descriptor.load(std::memory_order_relaxed),
                                             header.region_inode.load(std::memory_order_relaxed)));
        } catch (const std::system_error& error) {
            const int code = error.code().value();
            return code == EMFILE || code == ENFILE || code == ENOMEM ? code : kOtherWay;
        }
        region.mapping = segment->map(mapped, false);
        return 0;
    });
    return first_failure(opened, hash, gil);
}

// Rank 0 makes an object with a name, the others open it, and rank 0 takes the name away before it lets anybody go on.
int World::share_by_name(Region& region, size_t mapped, uint64_t hash, Gil& gil) {
    const std::string name = derived_name();
    // Whoever gets out of here takes the name along, also when rank 0 died before it could.
    struct Unlinker {
        const std::string& name;
        bool armed = true;
        ~Unlinker() {
            if (armed) shm_unlink(name.c_str());
        }
    } unlinker{name};
    const int made = outcome_of([&] {
        if (config_.rank == 0) region.mapping = Segment::create(name, mapped).map(mapped, false);
        return 0;
    });
    int code = first_failure(made, hash, gil);
    if (code == 0) {
        const int opened = outcome_of([&] {
            if (config_.rank != 0) region.mapping = Segment::open(name).map(mapped, false);
            return 0;
        });
        code = first_failure(opened, hash, gil);
    }
    if (config_.rank == 0) shm_unlink(name.c_str());
    sync().barrier(hash, gil);  // the name has gone
    unlinker.armed = false;
    return code;
}

// A failure anywhere is everybody's.
std::shared_ptr<Region> World::create_region(size_t bytes, uint32_t dtype) {
    const InCall in_call(*this);
    const uint64_t hash = publish_call(dtype, bytes, bytes, 0, 0, 0);
    const size_t mapped = round_up(std::max<size_t>(bytes, 1), kPage);
    auto region = std::make_shared<Region>(Region{nullptr, bytes, next_region_++});
    Gil gil;
    sync().barrier(hash, gil);  // all agree on the call before anything is allocated
    gil.release();
    int code = in_one_pid_namespace() ? share_nameless(*region, mapped, hash, gil) : kOtherWay;
    if (code == kOtherWay) code = config_.in_memory ? EOPNOTSUPP : share_by_name(*region, mapped, hash, gil);
    if (code != 0) throw std::system_error(code, std::generic_category(), "shared region");
    std::erase_if(regions_, [](const auto& weak) { return weak.expired(); });
    regions_.push_back(region);
    return region;
}

// ---- leaving ---------------------------------------------------------------------------------------------------

void World::abort(const std::string& text) {
    if (!sync_ || forks_ != fork_generation()) return;
    sync_->declare(Failure::aborted, {config_.rank}, text);
    sync_->leave(Life::broken);
}

void World::close() {
    if (forks_ != fork_generation()) {
        // A forked child has the memory but not the thread: let go of everything without touching the world.
        (void)watch_.release();
        (void)sync_.release();
        return;
    }
    if (sync_ && sync_->own().pid.load(std::memory_order_relaxed) == getpid()) sync_->leave(Life::closed);
    if (in_call_) {
        close_after_call_ = true;
        sync_->declare(Failure::left, {config_.rank}, "");  // wakes the waiting call, which cannot succeed any more
        return;
    }
    finish_close();
}

void World::finish_close() {
    close_after_call_ = false;
    if (watch_) watch_->stop();
    collectives_.reset();
    watch_.reset();
    sync_.reset();
    mapping_.reset();
    on_wait_ = nb::none();  // it refers to the communicator, which refers to this
}

}  // namespace cobre::shm
