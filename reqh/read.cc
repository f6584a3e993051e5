#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "core/buffer_pool.h"
#include "core/crc32c.h"
#include "core/ensure.h"
#include "fop/listing.h"
#include "objects/block_io.h"
#include "objects/fids.h"
#include "reqh/object_fops.h"
#include "reqh/operation.h"
#include "reqh/tape_fops.h"
#include "reqh/write_plan.h"

namespace fopd::reqh {

namespace {

// The most data that a reply itself can carry.
constexpr std::size_t kInlineMax = fop::kListingBytesMax;

// Reads the ranges of a read into the operation's buffer, as much at a time as fits, and
// sends it to the client. The result is the object at one moment: the extents are noted at once,
// and their disk blocks are not reused before the read has ended. Only when the disk has no free
// block, they may be reused while the client takes the bytes of a buffer: then the extents are
// noted anew if the object is still the same, and the client is asked to read again if it is not.
class ObjectRead {
public:
    ObjectRead(Operation& operation, const fop::Read& read)
        : operation_(operation), read_(read), fid_(objects::store_fid(read.fid)) {}

    Task<Granted<>> begin();
    Task<Granted<>> run();
    fop::Reply reply() const;
    store::Fid fid() const { return fid_; }
    std::uint64_t total_bytes() const { return total_; }

private:
    using Part = FopWork::ReadPart;

    Task<Granted<>> load();
    Task<Granted<>> begin_again();
    Granted<> note_extents();
    bool next_parts();
    bool is_last_chunk() const;
    Task<Granted<>> read_parts();
    void lay_out(const Part& part);
    Granted<> check_runs();
    Task<Granted<>> hand_over();
    void checksum(const Part& part);
    std::uint32_t checksum_of_block(const Part& part, std::uint64_t block) const;

    std::span<std::byte> buffer_bytes(std::uint64_t at, std::uint64_t size_bytes) const {
        return operation_.buffer().span().subspan(at, size_bytes);
    }
    core::Buffer buffer_of(std::span<std::byte> bytes) const {
        return {
            .data = bytes.data(), .size_bytes = bytes.size(), .region = operation_.buffer().region};
    }
    std::span<std::byte> bytes_of(const Part& part) const {
        return buffer_bytes(part.at * objects::kBlock + part.bytes.offset % objects::kBlock,
                            part.bytes.length);
    }

    Operation& operation_;
    const fop::Read& read_;
    const store::Fid fid_;
    objects::ObjectState state_;
    std::uint64_t version_ = 0;  // When its extents were noted, also if that was not durable yet.
    std::uint64_t total_ = 0;
    std::uint32_t out_blocks_ = 0;  // At the start of the buffer: room for the reply's payload.

    std::size_t range_ = 0;
    std::uint64_t next_ = 0;  // Offset in that range.
    std::uint64_t handed_over_ = 0;
};

// Locks the blocks of the ranges, and loads the object.
Task<Granted<>> ObjectRead::load() {
    const store::BlockRange blocks = blocks_of(read_.ranges);
    const auto locked = co_await operation_.lock(
        {.fid = fid_, .range = blocks.count == 0 ? objects::kAttributes : blocks});
    if (!locked) co_return locked;
    const auto loaded = operation_.load_object(fid_, objects::Access::kRead);
    if (loaded) operation_.enter(Phase::kExecute);
    co_return loaded;
}

Task<Granted<>> ObjectRead::begin() {
    const auto loaded = co_await load();
    if (!loaded) co_return loaded;
    const auto wanted = operation_.check_wanted();
    if (!wanted) co_return wanted;
    state_ = operation_.target().durable_state(fid_);
    version_ = operation_.object().version;
    for (const fop::Range& range : read_.ranges) {
        total_ += fop::within(range, state_.size_bytes).length;
    }
    if (!read_.target) {
        if (total_ > kInlineMax) {
            co_return refused(fop::Status::kMalformed,
                              "the read is too large for a reply; open memory for it");
        }
        out_blocks_ = static_cast<std::uint32_t>((total_ + objects::kBlock - 1) / objects::kBlock);
    }
    operation_.work().checksums.clear();
    co_return note_extents();
}

// Continues after the reading was ended while it rested: the blocks may be in use by others.
Task<Granted<>> ObjectRead::begin_again() {
    static constexpr std::string_view kChanged =
        "the object changed while it was read, on a full disk";
    const auto loaded = co_await load();
    if (!loaded && loaded.error().status == fop::Status::kNotFound) {
        co_return refused(fop::Status::kTryAgain, kChanged);
    }
    if (!loaded) co_return loaded;
    FopWork& work = operation_.work();
    const auto extents = std::exchange(work.found, {});
    const auto checksums = std::exchange(work.found_checksums, {});
    const auto noted = note_extents();
    if (!noted) co_return noted;
    // Changes elsewhere in the object, and of its attributes, do not matter.
    const bool is_same = operation_.object().version == version_ ||
                         (work.found == extents && work.found_checksums == checksums);
    if (!is_same) co_return refused(fop::Status::kTryAgain, kChanged);
    version_ = operation_.object().version;
    co_return Granted<>{};
}

// Notes the extents of each range's blocks, range by range, and unlocks the blocks.
Granted<> ObjectRead::note_extents() {
    operation_.work().found.clear();
    operation_.work().found_checksums.clear();
    if (total_ > 0) {
        const auto on_disk = operation_.target().check_on_disk();
        if (!on_disk) return on_disk;
    }
    for (const fop::Range& range : read_.ranges) {
        const std::array<fop::Range, 1> there{fop::within(range, state_.size_bytes)};
        const store::BlockRange blocks = blocks_of(there);
        auto extents = operation_.volume().map().extents(fid_, blocks);
        for (;;) {
            const auto extent = extents.next();
            if (!extent) return refused(extent.error());
            if (!extent->has_value()) break;
            const auto& checksums = (*extent)->checksums;
            operation_.work().found.push_back({.first = (*extent)->first,
                                               .block = (*extent)->block,
                                               .count = (*extent)->count(),
                                               .checksums_at = static_cast<std::uint32_t>(
                                                   operation_.work().found_checksums.size())});
            operation_.work().found_checksums.insert(operation_.work().found_checksums.end(),
                                                     checksums.begin(), checksums.end());
        }
        // Terminates the extents of the range.
        operation_.work().found.push_back({.first = store::kObjectBlocksMax});
    }
    operation_.volume().begin_read(operation_.reading());
    operation_.unlock();
    return {};
}

Task<Granted<>> ObjectRead::run() {
    while (next_parts()) {
        if (!operation_.reading().go_on()) {
            const auto begun = co_await begin_again();
            if (!begun) co_return begun;
        }
        const auto read = co_await read_parts();
        if (!read) co_return read;
        // These data are in the buffer, however long the client takes.
        if (is_last_chunk()) {
            operation_.reading().unlink();
        } else {
            operation_.reading().rest();
        }
        const auto handed = co_await hand_over();
        if (!handed) co_return handed;
    }
    co_return Granted<>{};
}

// Selects as much of the ranges as fits into the buffer.
bool ObjectRead::next_parts() {
    std::vector<Part>& parts = operation_.work().parts;
    parts.clear();
    std::uint32_t at = out_blocks_;
    while (range_ < read_.ranges.size() && at < objects::kBufferBlocks) {
        const fop::Range range = fop::within(read_.ranges[range_], state_.size_bytes);
        next_ = std::max(next_, range.offset);
        if (next_ == range.end()) {
            ++range_;
            next_ = 0;
            continue;
        }
        const std::uint64_t first = next_ / objects::kBlock;
        const std::uint64_t end =
            std::min(range.end(), (first + objects::kBufferBlocks - at) * objects::kBlock);
        const auto count = static_cast<std::uint32_t>((end - 1) / objects::kBlock - first + 1);
        parts.push_back({.range = range_,
                         .bytes = {.offset = next_, .length = end - next_},
                         .first = first,
                         .count = count,
                         .at = at});
        at += count;
        next_ = end;
    }
    return !parts.empty();
}

bool ObjectRead::is_last_chunk() const {
    std::uint64_t end = handed_over_;
    for (const Part& part : operation_.work().parts) end += part.bytes.length;
    return end == total_;
}

// Reads the blocks that exist; holes become zeros.
Task<Granted<>> ObjectRead::read_parts() {
    operation_.work().runs.clear();
    for (const Part& part : operation_.work().parts) lay_out(part);
    objects::BlockIo& io = operation_.io();
    for (const FopWork::BlockRun& run : operation_.work().runs) {
        if (io.full()) {
            const auto some = co_await io.wait();
            if (!some) co_return refused(untraced(some.error()));
        }
        io.read(buffer_of(buffer_bytes(run.at * objects::kBlock, run.count * objects::kBlock)),
                run.block, operation_.wait());
    }
    const auto read = co_await io.wait();
    if (!read) co_return refused(untraced(read.error()));
    co_return check_runs();
}

void ObjectRead::lay_out(const Part& part) {
    std::size_t index = 0;
    for (std::size_t range = 0; range < part.range; ++index) {
        if (operation_.work().found[index].count == 0) ++range;
    }
    const std::uint64_t end = part.first + part.count;
    std::uint64_t next = part.first;
    while (next < end) {
        const FopWork::FoundExtent& extent = operation_.work().found[index];
        const std::uint64_t extent_end = extent.first + extent.count;
        if (extent.count > 0 && extent_end <= next) {
            ++index;
            continue;
        }
        const std::uint64_t hole_end = std::min(end, std::max(next, extent.first));
        const auto hole = buffer_bytes((part.at + (next - part.first)) * objects::kBlock,
                                       (hole_end - next) * objects::kBlock);
        std::ranges::fill(hole, std::byte{0});
        next = hole_end;
        if (next == end) break;
        const auto skipped = static_cast<std::uint32_t>(next - extent.first);
        const auto count = static_cast<std::uint32_t>(std::min(end, extent_end) - next);
        operation_.work().runs.push_back(
            {.at = part.at + static_cast<std::uint32_t>(next - part.first),
             .count = count,
             .first = next,
             .block = extent.block + skipped,
             .checksums_at = extent.checksums_at + skipped});
        next += count;
    }
}

Granted<> ObjectRead::check_runs() {
    for (const FopWork::BlockRun& run : operation_.work().runs) {
        for (std::uint32_t i = 0; i < run.count; ++i) {
            const auto block = buffer_bytes((run.at + i) * objects::kBlock, objects::kBlock);
            if (core::crc32c(block) == operation_.work().found_checksums[run.checksums_at + i])
                continue;
            return refused(operation_.corrupt(fid_, run.first + i));
        }
    }
    return {};
}

Task<Granted<>> ObjectRead::hand_over() {
    for (const Part& part : operation_.work().parts) {
        checksum(part);
        const auto bytes = bytes_of(part);
        if (!read_.target) {
            std::ranges::copy(bytes, buffer_bytes(handed_over_, bytes.size()).begin());
        } else {
            const core::Buffer from = buffer_of(bytes);
            const auto pushed =
                co_await operation_.client().push(&*read_.target, handed_over_, from);
            if (!pushed) co_return refused(untraced(pushed.error()));
        }
        handed_over_ += bytes.size();
    }
    co_return Granted<>{};
}

// Whole blocks keep the checksums they were written with.
void ObjectRead::checksum(const Part& part) {
    const std::uint64_t end = part.bytes.end();
    for (std::uint64_t at = part.bytes.offset; at < end;) {
        const std::uint64_t run_end = std::min(end, (at / objects::kBlock + 1) * objects::kBlock);
        if (run_end - at == objects::kBlock) {
            operation_.work().checksums.push_back(checksum_of_block(part, at / objects::kBlock));
        } else {
            const auto bytes = bytes_of(part).subspan(at - part.bytes.offset, run_end - at);
            operation_.work().checksums.push_back(core::crc32c(bytes));
        }
        at = run_end;
    }
}

std::uint32_t ObjectRead::checksum_of_block(const Part& part, std::uint64_t block) const {
    const auto at = part.at + static_cast<std::uint32_t>(block - part.first);
    const auto run = std::ranges::find_if(
        operation_.work().runs,
        [at](const FopWork::BlockRun& each) { return at >= each.at && at < each.at + each.count; });
    if (run == operation_.work().runs.end()) return objects::zero_block_checksum();
    return operation_.work().found_checksums[run->checksums_at + (at - run->at)];
}

fop::Reply ObjectRead::reply() const {
    ENSURE(handed_over_ == total_);
    fop::Reply reply{.body = fop::ReadReply{.bytes = total_,
                                            .size_bytes = state_.size_bytes,
                                            .version = state_.version,
                                            .incarnation = operation_.durable_receipt().incarnation,
                                            .checksums = operation_.work().checksums}};
    if (!read_.target) reply.payload = buffer_bytes(0, total_);
    return reply;
}

}  // namespace

Task<fop::Reply> run_read(Operation* operation) {
    ObjectRead job(*operation, operation->body<fop::Read>());
    const auto begun = co_await job.begin();
    if (!begun) co_return operation->refuse(begun.error());
    const auto done = co_await job.run();
    if (!done) co_return operation->refuse(done.error());
    note_read(operation, job.fid(), job.total_bytes());
    co_return job.reply();
}

}  // namespace fopd::reqh
