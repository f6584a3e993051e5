#include "objects/scrub.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/buffer_pool.h"
#include "core/crc32c.h"
#include "objects/block_io.h"
#include "objects/fids.h"
#include "objects/range_locks.h"

namespace fopd::objects {

namespace {

// Fops have priority: a scrub waits this long for a buffer, and then tries again.
constexpr Duration kPatience = 1s;

}  // namespace

// One pass over all extents. Notes where they are and reads them later, at the given rate. A block
// that does not match is read again under its lock: it may have been in flight to the disk, or
// freed and reused meanwhile. The scrub does not hold blocks back from reuse: being slow, it would
// hold back too many.
class Scrub::Pass final : public store::MapVisitor {
public:
    Pass(Stores& stores, HomeVolume& home, std::uint64_t bytes_per_second)
        : stores_(stores),
          home_(home),
          ending_(home.ending()),
          bytes_per_second_(bytes_per_second) {
        io_.use(stores.in_background(home));
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() override = default;

    Result<void> extent(const store::StoredExtent& extent) override;
    Task<Result<void>> between_turns() override;

private:
    // Consecutive blocks, at most as many as fit into a buffer.
    struct Run {
        store::Fid fid{};
        std::uint64_t first = 0;  // In the object.
        std::uint64_t block = 0;  // On the disk.
        std::uint32_t count = 0;
        std::size_t checksums_at = 0;
    };
    struct Doubt {
        store::Fid fid{};
        std::uint64_t block = 0;  // The block's number in the object.
    };

    Task<Result<void>> read_runs();
    Task<Result<void>> read_some(std::size_t at, std::size_t count);
    Task<Result<void>> look_again(Doubt doubt);
    Task<Result<core::BufferPool::Loan>> borrow();
    Task<Result<void>> keep_pace(std::uint64_t bytes);
    void report(const Doubt& doubt, std::string_view what);
    core::WaitOptions wait() const { return {.cancel = &ending_}; }
    Result<void> check_wanted() const;

    Stores& stores_;
    HomeVolume& home_;
    core::CancelSource& ending_;
    const std::uint64_t bytes_per_second_;
    BlockIo io_;
    std::vector<Run> runs_;
    std::vector<std::uint32_t> checksums_;
    std::vector<Doubt> doubts_;
};

Result<void> Scrub::Pass::extent(const store::StoredExtent& stored) {
    // Data whose write may not have been completed is not damaged.
    if (home_.volume().is_uncertain(stored.fid)) return {};
    const std::size_t checksums_at = checksums_.size();
    checksums_.resize(checksums_at + stored.count);
    stored.copy_checksums(0, std::span(checksums_).subspan(checksums_at));
    for (std::uint32_t at = 0; at < stored.count; at += kBufferBlocks) {
        runs_.push_back({.fid = stored.fid,
                         .first = stored.first + at,
                         .block = stored.block + at,
                         .count = std::min(kBufferBlocks, stored.count - at),
                         .checksums_at = checksums_at + at});
    }
    return {};
}

Task<Result<void>> Scrub::Pass::between_turns() {
    const auto read = co_await read_runs();
    runs_.clear();
    checksums_.clear();
    if (!read) co_return read;
    for (const Doubt& doubt : std::exchange(doubts_, {})) {
        const auto looked = co_await look_again(doubt);
        if (!looked) co_return looked;
    }
    co_return check_wanted();
}

// Reads as many runs at a time as fit into a buffer.
Task<Result<void>> Scrub::Pass::read_runs() {
    for (std::size_t at = 0; at < runs_.size();) {
        std::size_t count = 0;
        std::uint32_t blocks = 0;
        while (at + count < runs_.size() && count < BlockIo::kRequestsMax &&
               blocks + runs_[at + count].count <= kBufferBlocks) {
            blocks += runs_[at + count].count;
            ++count;
        }
        const auto read = co_await read_some(at, count);
        if (!read) co_return read;
        home_.scrub().read_blocks.add(blocks);
        const auto paced = co_await keep_pace(std::uint64_t{blocks} * kBlock);
        if (!paced) co_return paced;
        at += count;
    }
    co_return Result<void>{};
}

Task<Result<void>> Scrub::Pass::read_some(std::size_t at, std::size_t count) {
    auto borrowed = co_await borrow();
    if (!borrowed) co_return std::unexpected(borrowed.error());
    core::Buffer whole = borrowed->buffer();
    const auto part = [&whole](std::size_t block, std::size_t blocks) {
        return core::Buffer{.data = whole.data + block * kBlock,
                            .size_bytes = blocks * kBlock,
                            .region = whole.region};
    };
    std::size_t next = 0;
    for (std::size_t i = at; i < at + count; ++i) {
        io_.read(part(next, runs_[i].count), runs_[i].block, wait());
        next += runs_[i].count;
    }
    const auto read = co_await io_.wait();
    const auto wanted = check_wanted();
    if (!wanted) co_return wanted;
    next = 0;
    for (std::size_t i = at; i < at + count; ++i) {
        const Run& run = runs_[i];
        for (std::uint32_t n = 0; n < run.count; ++n, ++next) {
            // If one of several reads failed, all their blocks are read again, which shows the
            // failed one.
            const bool matches = read.has_value() && core::crc32c(part(next, 1).span()) ==
                                                         checksums_[run.checksums_at + n];
            if (!matches) doubts_.push_back({.fid = run.fid, .block = run.first + n});
        }
    }
    co_return Result<void>{};
}

Task<Result<void>> Scrub::Pass::look_again(Doubt doubt) {
    RangeLock lock;
    const LockRequest request{.fid = doubt.fid, .range = {.first = doubt.block, .count = 1}};
    const auto locked = co_await home_.locks().acquire(lock, request, wait());
    if (!locked) co_return locked;
    auto borrowed = co_await borrow();
    if (!borrowed) co_return std::unexpected(borrowed.error());
    auto extents = home_.volume().map().parts(doubt.fid, request.range);
    const auto found = extents.next();
    if (!found) co_return std::unexpected(found.error());
    if (!found->has_value()) co_return Result<void>{};  // The block is a hole now.
    const std::uint32_t checksum = (*found)->checksums.front();
    core::Buffer block = borrowed->buffer();
    block.size_bytes = kBlock;
    io_.read(block, (*found)->block, wait());
    const auto read = co_await io_.wait();
    const auto wanted = check_wanted();
    if (!wanted) co_return wanted;
    if (!read) {
        report(doubt, "cannot be read");
    } else if (core::crc32c(block.span()) != checksum) {
        report(doubt, "is damaged");
    }
    co_return Result<void>{};
}

Task<Result<core::BufferPool::Loan>> Scrub::Pass::borrow() {
    for (;;) {
        core::WaitOptions options = wait();
        options.deadline = after(stores_.parts().reactor.now(), kPatience);
        auto borrowed = co_await stores_.parts().buffers.borrow(options);
        if (borrowed || borrowed.error().code != Errc::kTimedOut) co_return borrowed;
        const auto wanted = check_wanted();
        if (!wanted) co_return std::unexpected(wanted.error());
    }
}

Task<Result<void>> Scrub::Pass::keep_pace(std::uint64_t bytes) {
    const auto share = Duration(static_cast<Duration::rep>(static_cast<double>(bytes) * 1e9 /
                                                           static_cast<double>(bytes_per_second_)));
    co_return co_await stores_.parts().reactor.sleep_for(share, &ending_);
}

Result<void> Scrub::Pass::check_wanted() const {
    if (!ending_.cancelled() && !home_.scrub().to_end) return {};
    return std::unexpected(Error{.code = Errc::kCancelled, .context = "scrub"});
}

void Scrub::Pass::report(const Doubt& doubt, std::string_view what) {
    home_.scrub().damaged_blocks.add(1);
    home_.met_damage().scrub_found(doubt.fid, doubt.block);
    home_.checksum_errors().add(1);
    home_.damage_changed();
    const std::string object = format_fid(doubt.fid);
    const std::string name = home_.name_of(doubt.fid);
    core::emit_each(stores_.parts().events, core::Level::kError, "store.scrub_found_damage",
                    {{"device", home_.device_name()},
                     {"slot", std::uint64_t{home_.slot()}},
                     {"object", std::string_view(object)},
                     {"name", std::string_view(name)},
                     {"block", doubt.block},
                     {"what", what}});
}

Result<void> Scrub::begin(store::Slot slot) {
    HomeVolume* const home = stores_.find(slot);
    if (home == nullptr || home->is_leaving()) {
        return std::unexpected(Error{.code = Errc::kNotFound, .context = "the disk is not there"});
    }
    ScrubProgress& progress = home->scrub();
    if (progress.state.get() == ScrubProgress::kRunning) {
        return std::unexpected(Error{.code = Errc::kBusy, .context = "a scrub is under way"});
    }
    const store::SpaceUse use = home->volume().space_use();
    progress.to_end = false;
    home->met_damage().begin_scrub();
    progress.read_blocks.set(0);
    progress.damaged_blocks.set(0);
    progress.total_blocks.set(use.used_blocks);
    progress.state.set(ScrubProgress::kRunning);
    HomeVolume::Hold hold(*home);
    stores_.parts().reactor.spawn(stores_.duties(), run(home, std::move(hold)));
    return {};
}

void Scrub::end(store::Slot slot) {
    if (HomeVolume* const home = stores_.find(slot); home != nullptr) home->scrub().to_end = true;
}

Task<void> Scrub::run(HomeVolume* home, HomeVolume::Hold /*hold*/) {
    const Instant began_at = stores_.parts().reactor.now();
    Pass pass(stores_, *home, bytes_per_second_);
    const auto done = co_await home->volume().map().for_each(store::KeyKind::kExtent, &pass);
    ScrubProgress& progress = home->scrub();
    progress.state.set(done                                    ? ScrubProgress::kDone
                       : done.error().code == Errc::kCancelled ? ScrubProgress::kEnded
                                                               : ScrubProgress::kFailed);
    if (done) {
        home->met_damage().end_scrub();
        progress.done_damage.set(progress.damaged_blocks.get());
        progress.done_count.add(1);
    }
    home->damage_changed();
    core::emit(stores_.parts().events, done ? core::Level::kInfo : core::Level::kWarn,
               "store.scrubbed",
               {{"device", home->device_name()},
                {"slot", std::uint64_t{home->slot()}},
                {"result", done ? std::string_view("done") : done.error().context},
                {"blocks", progress.read_blocks.get()},
                {"damaged", progress.damaged_blocks.get()},
                {"seconds", in_seconds(stores_.parts().reactor.now() - began_at)}});
}

}  // namespace fopd::objects
