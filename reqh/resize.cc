#include <algorithm>
#include <array>
#include <utility>

#include "core/crc32c.h"
#include "objects/block_io.h"
#include "objects/fids.h"
#include "reqh/object_fops.h"
#include "reqh/operation.h"

namespace fopd::reqh {

namespace {

// Zeroes bytes of an object: whole blocks become a hole, partly zeroed blocks are rewritten. Also
// sets the size. The bytes of an object's last block after its end are always zero.
class Clearing {
public:
    struct What {
        store::Fid fid{};
        fop::Range bytes{};            // Up to kOffsetMax; may extend beyond the end of the object.
        std::uint64_t size_bytes = 0;  // The new size.
    };
    // REQUIRES: the object is loaded, and locked as a whole.
    Clearing(Operation& operation, const What& what) : operation_(operation), what_(what) {}

    Task<Granted<fop::Changed>> run();

private:
    // A block that keeps some of its bytes.
    struct Edge {
        std::uint64_t number = 0;
        std::uint64_t zero_from = 0;  // In the block.
        std::uint64_t zero_to = 0;
        std::uint32_t checksum = 0;
        std::uint64_t block = 0;  // Its new location on the disk.
    };

    void find_edges();
    void add_edge(std::uint64_t number);
    Task<Granted<>> rewrite_edges();
    Task<Granted<>> punch();
    Task<Granted<>> commit(store::Reservation room);
    core::Buffer memory(std::size_t index) const {
        const core::Buffer& buffer = operation_.buffer();
        return {.data = buffer.data + index * objects::kBlock,
                .size_bytes = objects::kBlock,
                .region = buffer.region};
    }

    Operation& operation_;
    const What what_;
    std::array<Edge, 2> edges_;
    std::size_t edge_count_ = 0;
    store::BlockRange hole_{};
    std::uint64_t freed_blocks_ = 0;
    fop::Changed changed_;
};

Task<Granted<fop::Changed>> Clearing::run() {
    find_edges();
    operation_.enter(Phase::kFetch);
    const auto punched = co_await punch();
    if (!punched) co_return refused(punched.error());
    const auto rewritten = co_await rewrite_edges();
    if (!rewritten) co_return refused(rewritten.error());
    // A change that frees no more than it writes must not use the room reserved for deletes:
    // repeating it could use that up.
    const bool frees = freed_blocks_ > edge_count_;
    const auto purpose = frees ? store::Purpose::kCutting : store::Purpose::kAdding;
    const std::size_t bytes = store::kPutRecordBytesMax + objects::kReplyRecordBytesMax;
    auto room = co_await operation_.reserve(bytes, purpose);
    if (!room) co_return refused(room.error());
    const auto committed = co_await commit(std::move(*room));
    if (!committed) co_return refused(committed.error());
    co_return changed_;
}

// Bytes after the end of the object are zero already, or no longer part of it.
void Clearing::find_edges() {
    const std::uint64_t size = operation_.object().size_bytes;
    const bool to_the_end = what_.bytes.end() >= size;
    const std::uint64_t first_whole = (what_.bytes.offset + objects::kBlock - 1) / objects::kBlock;
    const std::uint64_t end_whole =
        to_the_end ? store::kObjectBlocksMax : what_.bytes.end() / objects::kBlock;
    if (what_.bytes.length == 0 || what_.bytes.offset >= size) return;
    if (what_.bytes.offset % objects::kBlock != 0) add_edge(what_.bytes.offset / objects::kBlock);
    if (first_whole < end_whole) hole_ = {.first = first_whole, .count = end_whole - first_whole};
    const bool has_tail = !to_the_end && what_.bytes.end() % objects::kBlock != 0;
    if (has_tail && end_whole >= first_whole) add_edge(end_whole);
}

void Clearing::add_edge(std::uint64_t number) {
    const std::uint64_t begin = number * objects::kBlock;
    const std::uint64_t from = std::max(what_.bytes.offset, begin);
    const std::uint64_t to = std::min(what_.bytes.end(), begin + objects::kBlock);
    edges_[edge_count_++] = {.number = number, .zero_from = from - begin, .zero_to = to - begin};
}

Task<Granted<>> Clearing::rewrite_edges() {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < edge_count_; ++i) {
        auto extents =
            operation_.volume().map().extents(what_.fid, {.first = edges_[i].number, .count = 1});
        const auto extent = extents.next();
        if (!extent) co_return refused(extent.error());
        if (!extent->has_value()) continue;
        Edge& edge = edges_[kept];
        edge = edges_[i];
        const std::uint32_t expected = (*extent)->checksums.front();
        operation_.io().read(memory(kept), (*extent)->block, operation_.wait());
        const auto read = co_await operation_.io().wait();
        if (!read) co_return refused(untraced(read.error()));
        const auto bytes = memory(kept).span();
        if (core::crc32c(bytes) != expected) {
            co_return refused(operation_.corrupt(what_.fid, edge.number));
        }
        std::ranges::fill(bytes.subspan(edge.zero_from, edge.zero_to - edge.zero_from),
                          std::byte{0});
        edge.checksum = core::crc32c(bytes);
        ++kept;
    }
    edge_count_ = kept;
    if (kept == 0) co_return Granted<>{};
    const auto allocated =
        co_await operation_.space().allocate_to_free(static_cast<std::uint32_t>(edge_count_));
    if (!allocated) co_return allocated;
    for (std::size_t i = 0; i < edge_count_; ++i) {
        Edge& edge = edges_[i];
        edge.block = operation_.change().allocated()[i].block;
        operation_.change().records().extent(
            what_.fid,
            {.first = edge.number, .block = edge.block, .checksums = std::span(&edge.checksum, 1)});
    }
    co_return Granted<>{};
}

Task<Granted<>> Clearing::punch() {
    if (hole_.count == 0) co_return Granted<>{};
    const auto punched = co_await operation_.change().punch(what_.fid, hole_, operation_.wait());
    if (!punched) co_return refused(untraced(punched.error()));
    freed_blocks_ = *punched;
    co_return Granted<>{};
}

Task<Granted<>> Clearing::commit(store::Reservation room) {
    store::Object object = operation_.object();
    object.size_bytes = what_.size_bytes;
    if (object.is_released && object.size_bytes == 0) {
        operation_.change().will_empty_released(objects::owner_of(object), object.released_blocks);
        object.is_released = false;
        object.released_blocks = 0;
    }
    object.next_content();
    object.changed = operation_.wall();
    const auto before =
        std::exchange(object.last_writer, operation_.last_writer(object.last_writer));
    operation_.change().put_object(what_.fid, object);
    operation_.put_reply({.type = operation_.request().type,
                          .version = object.version,
                          .size_bytes = object.size_bytes});
    for (std::size_t i = 0; i < edge_count_; ++i) {
        operation_.io().write(memory(i), edges_[i].block, {});
    }
    const store::Data data = edge_count_ > 0 ? store::Data::kPending : store::Data::kNone;
    const auto begun = operation_.begin_change(std::move(room), store::Durability::kDurable, data);
    if (!begun) {
        [[maybe_unused]] const auto ended = co_await operation_.io().wait();
        co_return begun;
    }
    operation_.home().changed_ranges().add(
        operation_.changed_range(what_.fid, what_.bytes, before));
    const auto receipt = co_await operation_.finish_change(data);
    if (!receipt) co_return refused(receipt.error());
    changed_ = {.version = object.version, .size_bytes = object.size_bytes, .receipt = *receipt};
    co_return Granted<>{};
}

Task<Granted<>> lock_whole(Operation* operation, store::Fid fid) {
    const auto locked = co_await operation->lock_whole(fid);
    if (!locked) co_return locked;
    const auto loaded = operation->load_object(fid, objects::Access::kWrite);
    if (!loaded) co_return loaded;
    co_return operation->check_serving();
}

}  // namespace

Task<fop::Reply> run_truncate(Operation* operation) {
    const auto& truncate = operation->body<fop::Truncate>();
    const store::Fid fid = objects::store_fid(truncate.fid);
    const auto locked = co_await lock_whole(operation, fid);
    if (!locked) co_return operation->refuse(locked.error());
    const auto on_disk = operation->target().check_on_disk();
    if (!on_disk && truncate.size_bytes > 0) co_return operation->refuse(on_disk.error());
    Clearing job(*operation, {.fid = fid,
                              .bytes = {.offset = truncate.size_bytes,
                                        .length = fop::kOffsetMax - truncate.size_bytes},
                              .size_bytes = truncate.size_bytes});
    const auto changed = co_await job.run();
    if (!changed) co_return operation->refuse(changed.error());
    co_return fop::Reply{.body = fop::TruncateReply{.changed = *changed}};
}

Task<fop::Reply> run_punch(Operation* operation) {
    const auto& punch = operation->body<fop::Punch>();
    const store::Fid fid = objects::store_fid(punch.fid);
    const auto locked = co_await lock_whole(operation, fid);
    if (!locked) co_return operation->refuse(locked.error());
    const auto on_disk = operation->target().check_on_disk();
    if (!on_disk && punch.range.length > 0) co_return operation->refuse(on_disk.error());
    Clearing job(*operation,
                 {.fid = fid, .bytes = punch.range, .size_bytes = operation->object().size_bytes});
    const auto changed = co_await job.run();
    if (!changed) co_return operation->refuse(changed.error());
    co_return fop::Reply{.body = fop::PunchReply{.changed = *changed}};
}

}  // namespace fopd::reqh
