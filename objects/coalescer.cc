#include "objects/coalescer.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "core/buffer_pool.h"
#include "objects/block_io.h"
#include "objects/object_change.h"
#include "objects/range_locks.h"
#include "store/extent_move.h"

namespace fopd::objects {

namespace {

constexpr std::uint32_t kWindowBlocks = store::ExtentMove::kBlocksMax;
static_assert(kWindowBlocks * kBlock <= core::kBufferBytes);
// Fops go first: the coalescer waits for memory only this long.
constexpr Duration kLockPatience = 100ms;
// Between two batches of some hundred extents.
constexpr Duration kPause = 2ms;

// A part of an object, and how scattered it is.
struct Window {
    store::Fid fid{};
    std::uint64_t number = 0;
    std::uint32_t breaks = 0;

    store::BlockRange range() const {
        return {.first = number * kWindowBlocks, .count = kWindowBlocks};
    }
};

}  // namespace

// One pass through all extents of a disk.
class Coalescer::Pass final : public store::MapVisitor {
public:
    Pass(Stores& stores, HomeVolume& home, const CoalescerOptions& options)
        : stores_(stores), home_(home), ending_(home.ending()), options_(options), change_(home) {
        if (options.idle == Duration{0}) newest_ = home.volume().newest();
        io_.use(stores.in_background(home));
    }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;
    ~Pass() override = default;

    Result<void> extent(const store::StoredExtent& extent) override;
    Task<Result<void>> between_turns() override;
    // Moves the windows left from the last turn.
    Task<Result<void>> finish();
    std::uint64_t moved_blocks() const { return moved_blocks_; }
    // The newest change, if no other change was made after the pass began.
    std::optional<store::Receipt> newest() const {
        if (disturbed_ || newest_.seq == 0) return std::nullopt;
        return newest_;
    }

private:
    void leave_window();
    Task<Result<void>> gather(Window window);
    Task<Result<bool>> read(core::Buffer into);
    Task<Result<void>> move(Window window, core::Buffer bytes);
    bool allocate();
    Task<Result<bool>> write(core::Buffer from);
    Task<Result<bool>> commit(Window window);
    Task<Result<bool>> begin_and_finish(Window window);
    Task<Result<void>> wait_until_idle();
    Result<void> check_wanted() const;
    core::WaitOptions wait() const { return {.cancel = &ending_}; }
    core::Reactor& reactor() const { return stores_.parts().reactor; }
    store::Volume& volume() const { return home_.volume(); }

    Stores& stores_;
    HomeVolume& home_;
    core::CancelSource& ending_;
    const CoalescerOptions options_;
    store::Receipt newest_;  // At the last check; none before the first.
    bool disturbed_ = false;
    BlockIo io_;
    Window window_;
    std::uint64_t next_first_ = 0;  // The block that would follow, in the object
    std::uint64_t next_block_ = 0;  // and on the disk.
    std::vector<Window> scattered_;
    store::ExtentMove extents_;
    ObjectChange change_;
    std::uint64_t moved_blocks_ = 0;
};

// -- finding scattered blocks --

Result<void> Coalescer::Pass::extent(const store::StoredExtent& extent) {
    for (std::uint32_t at = 0; at < extent.count;) {
        const std::uint64_t first = extent.first + at;
        const std::uint64_t number = first / kWindowBlocks;
        if (extent.fid != window_.fid || number != window_.number) {
            leave_window();
            window_ = {.fid = extent.fid, .number = number};
        } else if (first == next_first_ && extent.block + at != next_block_) {
            ++window_.breaks;
        }
        const auto rest = static_cast<std::uint32_t>((number + 1) * kWindowBlocks - first);
        at += std::min(rest, extent.count - at);
        next_first_ = extent.first + at;
        next_block_ = extent.block + at;
    }
    return {};
}

void Coalescer::Pass::leave_window() {
    if (window_.breaks > options_.breaks_max) scattered_.push_back(window_);
    window_ = {};
}

Task<Result<void>> Coalescer::Pass::between_turns() {
    for (const Window& window : std::exchange(scattered_, {})) {
        const auto gathered = co_await gather(window);
        if (!gathered) co_return gathered;
    }
    co_return co_await reactor().sleep_for(kPause, &ending_);
}

Task<Result<void>> Coalescer::Pass::finish() {
    leave_window();
    co_return co_await between_turns();
}

Result<void> Coalescer::Pass::check_wanted() const {
    if (ending_.cancelled()) {
        return std::unexpected(Error{.code = Errc::kCancelled, .context = "coalescing"});
    }
    if (!home_.volume().serving()) return std::unexpected(home_.volume().failure());
    const store::SpaceUse use = home_.volume().space_use();
    if (use.free_blocks < use.total_blocks / 10) {
        return std::unexpected(Error{.code = Errc::kNoSpace, .context = "the disk is nearly full"});
    }
    return {};
}

// Waits until there was no other change for a while.
Task<Result<void>> Coalescer::Pass::wait_until_idle() {
    while (options_.idle > Duration{0} && volume().newest() != newest_) {
        if (newest_.seq > 0) disturbed_ = true;
        newest_ = volume().newest();
        const auto slept = co_await reactor().sleep_for(options_.idle, &ending_);
        if (!slept) co_return slept;
    }
    co_return check_wanted();
}

// -- how it is brought together --

Task<Result<void>> Coalescer::Pass::gather(Window window) {
    const auto idle = co_await wait_until_idle();
    if (!idle) co_return idle;
    core::WaitOptions options = wait();
    options.deadline = after(reactor().now(), kLockPatience);
    const auto buffer = co_await stores_.parts().buffers.borrow(options);
    if (!buffer && buffer.error().code == Errc::kTimedOut) co_return Result<void>{};
    if (!buffer) co_return std::unexpected(buffer.error());
    core::Buffer bytes = buffer->buffer();
    {
        // The blocks found are not allocated again before they are read.
        store::Reading reading;
        volume().begin_read(reading);
        // Blocks of uploads and removed objects are not moved.
        const auto object = volume().map().find(window.fid);
        if (!object) co_return std::unexpected(object.error());
        if (!object->has_value()) co_return Result<void>{};
        const auto looked = extents_.look(volume().map(), window.fid, window.range());
        if (!looked) co_return looked;
        if (extents_.breaks() <= options_.breaks_max) co_return Result<void>{};
        bytes.size_bytes = extents_.count() * kBlock;
        const auto intact = co_await read(bytes);
        if (!intact) co_return std::unexpected(intact.error());
        // The data are still being written, or damaged; a damage is reported when they are read.
        if (!*intact) co_return Result<void>{};
    }
    const auto moved = co_await move(window, bytes);
    if (!moved) co_return moved;
    const auto share =
        Duration(static_cast<Duration::rep>(static_cast<double>(bytes.size_bytes) * 1e9 /
                                            static_cast<double>(options_.bytes_per_second)));
    co_return co_await reactor().sleep_for(share, &ending_);
}

Task<Result<bool>> Coalescer::Pass::read(core::Buffer into) {
    bool is_read = true;
    for (const store::ExtentMove::Run& run : extents_.runs()) {
        if (io_.full()) {
            const auto some = co_await io_.wait();
            is_read = is_read && some.has_value();
        }
        const core::Buffer part{.data = into.data + run.at * kBlock,
                                .size_bytes = run.count * kBlock,
                                .region = into.region};
        io_.read(part, run.block, wait());
    }
    const auto rest = co_await io_.wait();
    const auto wanted = check_wanted();
    if (!wanted) co_return std::unexpected(wanted.error());
    co_return is_read&& rest&& extents_.is_intact(into.span());
}

Task<Result<void>> Coalescer::Pass::move(Window window, core::Buffer bytes) {
    if (!allocate()) {
        change_.give_back();
        co_return std::unexpected(
            Error{.code = Errc::kNoSpace, .context = "the runs of free blocks are too short"});
    }
    const auto written = co_await write(bytes);
    if (!written || !*written) {
        change_.give_back();
        if (!written) co_return std::unexpected(written.error());
        co_return Result<void>{};
    }
    if (volume().newest() != newest_) disturbed_ = true;
    const auto committed = co_await commit(window);
    if (!committed) co_return std::unexpected(committed.error());
    if (!*committed) co_return Result<void>{};
    moved_blocks_ += extents_.count();
    home_.coalesced_blocks().add(extents_.count());
    newest_ = volume().newest();
    co_return Result<void>{};
}

// An allocation may end at a segment's end; more than two ranges are not worth it.
bool Coalescer::Pass::allocate() {
    std::uint32_t left = extents_.count();
    while (left > 0 && change_.allocated().size() < 2) {
        const auto range = change_.allocate(left);
        if (!range) return false;
        left -= range->count;
    }
    return left == 0;
}

Task<Result<bool>> Coalescer::Pass::write(core::Buffer from) {
    std::size_t at = 0;
    for (const store::DiskRange range : change_.allocated()) {
        const core::Buffer part{
            .data = from.data + at, .size_bytes = range.count * kBlock, .region = from.region};
        at += part.size_bytes;
        io_.write(part, range.block, wait());
    }
    const auto written = co_await io_.wait();
    const auto wanted = check_wanted();
    if (!wanted) co_return std::unexpected(wanted.error());
    co_return written.has_value();
}

// Returns false if another change modified the blocks. In both cases the newly allocated blocks no
// longer belong to the pass.
Task<Result<bool>> Coalescer::Pass::commit(Window window) {
    const auto committed = co_await begin_and_finish(window);
    change_.give_back();
    change_.clear();
    co_return committed;
}

Task<Result<bool>> Coalescer::Pass::begin_and_finish(Window window) {
    extents_.write_records(change_.allocated(), change_.records());
    RangeLock lock;
    const LockRequest request{
        .fid = window.fid, .range = window.range(), .mode = LockMode::kExclusive};
    const auto locked = co_await home_.locks().acquire(lock, request, wait());
    if (!locked) co_return std::unexpected(locked.error());
    auto room = co_await change_.reserve(0, wait());
    if (!room) co_return std::unexpected(room.error());
    // Checked in the turn in which the change begins.
    const auto object = volume().map().find(window.fid);
    if (!object) co_return std::unexpected(object.error());
    const auto unchanged = extents_.is_unchanged(volume().map());
    if (!unchanged) co_return std::unexpected(unchanged.error());
    if (!object->has_value() || !*unchanged) co_return false;
    const auto finished = co_await change_.commit(std::move(*room));
    if (!finished) co_return std::unexpected(finished.error());
    co_return true;
}

// -- when --

void Coalescer::start() {
    if (options_.bytes_per_second > 0) stores_.parts().reactor.spawn(stores_.duties(), run());
}

Task<void> Coalescer::run() {
    for (;;) {
        const auto slept =
            co_await stores_.parts().reactor.sleep_for(options_.interval, &stores_.stopping());
        if (!slept) co_return;
        std::vector<store::Slot> slots;
        for (const auto& home : stores_.volumes()) slots.push_back(home->slot());
        for (const store::Slot slot : slots) co_await go_through(slot);
    }
}

Task<void> Coalescer::go_through(store::Slot slot) {
    HomeVolume* const home = stores_.find(slot);
    if (home == nullptr || home->is_leaving() || !home->volume().serving()) co_return;
    const HomeVolume::Hold hold(*home);
    if (home->volume().newest() == seen_[slot]) co_return;
    const store::Receipt before = home->volume().newest();
    const Instant began_at = stores_.parts().reactor.now();
    Pass pass(stores_, *home, options_);
    auto done = co_await home->volume().map().for_each(store::KeyKind::kExtent, &pass);
    if (done) done = co_await pass.finish();
    if (pass.moved_blocks() == 0) {
        if (done) seen_[slot] = before;
        co_return;
    }
    if (done && pass.newest()) seen_[slot] = *pass.newest();
    core::emit(stores_.parts().events, core::Level::kInfo, "store.coalesced",
               {{"device", home->device_name()},
                {"slot", std::uint64_t{slot}},
                {"result", done ? std::string_view("done") : done.error().context},
                {"blocks", pass.moved_blocks()},
                {"seconds", in_seconds(stores_.parts().reactor.now() - began_at)}});
}

}  // namespace fopd::objects
