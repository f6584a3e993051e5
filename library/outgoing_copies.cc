#include "library/outgoing_copies.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "objects/block_io.h"
#include "objects/home_volume.h"
#include "objects/range_locks.h"
#include "store/aligned_memory.h"

namespace fopd::library {

namespace {

using objects::kBlock;

Error no_content(const char* why) {
    return {.code = Errc::kNotFound, .context = why};
}

}  // namespace

bool have_range(std::span<const store::Copy> copies, std::uint64_t from, std::uint64_t end) {
    for (const store::Copy& each : copies) {
        if (each.offset <= from) from = std::max(from, each.end());
    }
    return from >= end;
}

bool have_copies(std::span<const store::Copy> copies, std::uint32_t wanted, std::uint64_t from,
                 std::uint64_t end) {
    // The number of copies of a byte changes only at these offsets.
    std::vector<std::uint64_t> offsets{from};
    for (const store::Copy& each : copies) {
        if (from < each.offset && each.offset < end) offsets.push_back(each.offset);
        if (from < each.end() && each.end() < end) offsets.push_back(each.end());
    }
    return std::ranges::all_of(offsets, [&](std::uint64_t at) {
        std::set<store::VsnText> cartridges;
        for (const store::Copy& each : copies) {
            if (each.offset <= at && at < each.end()) cartridges.insert(each.cartridge.vsn);
        }
        return cartridges.size() >= wanted;
    });
}

std::uint64_t pieces_max(std::uint32_t copies) {
    ENSURE(copies > 0);
    return std::max<std::uint64_t>(1, store::kCopiesOfObjectMax / (2ULL * copies));
}

std::uint64_t piece_bytes_of(std::uint64_t object_bytes, std::uint64_t wanted_bytes,
                             std::uint32_t copies) {
    const std::uint64_t blocks = (object_bytes + kBlock - 1) / kBlock;
    const std::uint64_t pieces = pieces_max(copies);
    return std::max(wanted_bytes, (blocks + pieces - 1) / pieces * kBlock);
}

store::Member member_of(store::Fid fid, const store::Object& object,
                        const objects::StoreLayout& layout) {
    const objects::LayoutPool* const pool = layout.find_pool(object.pool);
    return {.fid = fid.origin(),
            .version = object.content_version(),
            .object_bytes = object.size_bytes,
            .created_ns = object.created.unix_ns,
            .changed_ns = object.changed.unix_ns,
            .mode = object.mode,
            .name_version = object.name_version,
            .name = std::string(object.name),
            .pool = pool == nullptr ? std::string() : pool->name,
            .owner = std::string(object.owner),
            .group = std::string(object.group),
            .collection = std::string(object.collection)};
}

void OutgoingCopy::copy_checksums(std::uint64_t first, std::span<std::uint32_t> into) const {
    std::ranges::fill(into, objects::zero_block_checksum());
    for (const Run& run : runs_in(first, first + into.size())) {
        const std::uint64_t from = std::max(first, run.first);
        const std::uint64_t to = std::min(first + into.size(), run.end());
        const auto source =
            std::span(checksums).subspan(run.checksums_at + (from - run.first), to - from);
        std::ranges::copy(source, into.subspan(from - first).begin());
    }
}

std::span<const OutgoingCopy::Run> OutgoingCopy::runs_in(std::uint64_t first,
                                                         std::uint64_t end) const {
    const auto from = std::ranges::upper_bound(runs, first, {}, &Run::end);
    const auto to = std::ranges::lower_bound(runs, end, {}, &Run::first);
    if (from >= to) return {};
    return {from, to};
}

// -- one of them, at its disk --

class OutgoingCopies::Opened {
public:
    Opened(objects::Stores& stores, const KnownMedia& media, objects::HomeVolume& home)
        : stores_(stores), media_(media), home_(home), hold_(home), ending_(home.ending()) {
        io_.use(stores.in_background(home));
    }
    Opened(const Opened&) = delete;
    Opened& operator=(const Opened&) = delete;
    ~Opened() = default;

    Task<Result<void>> note(Wish wish, OutgoingCopy* copy);
    Task<Result<void>> read(Read what);

private:
    Result<void> describe(const Wish& wish, OutgoingCopy& copy);
    Task<Result<void>> note_runs(store::Fid fid, OutgoingCopy* copy);
    Result<void> note_some(store::Fid fid, OutgoingCopy& copy, store::BlockRange range);
    Task<Result<void>> read_runs(Read what);
    Task<Result<void>> read_end(const OutgoingCopy* copy, std::uint64_t block, core::Buffer into);
    Result<void> check(const Read& what) const;

    objects::Stores& stores_;
    const KnownMedia& media_;
    objects::HomeVolume& home_;
    const objects::HomeVolume::Hold hold_;
    core::CancelSource& ending_;
    objects::BlockIo io_;
    store::Reading reading_;
    store::AlignedMemory last_block_;
};

Task<Result<void>> OutgoingCopies::Opened::note(Wish wish, OutgoingCopy* copy) {
    // Waits for changes in progress, and delays further ones until the blocks are known.
    objects::RangeLock lock;
    const objects::LockRequest whole{.fid = wish.fid, .range = objects::kWholeObject};
    const auto locked = co_await home_.locks().acquire(lock, whole, wish.wait);
    if (!locked) co_return locked;
    const auto described = describe(wish, *copy);
    if (!described) co_return described;
    const auto noted = co_await note_runs(wish.fid, copy);
    if (!noted) co_return noted;
    home_.volume().begin_read(reading_);
    co_return Result<void>{};
}

Result<void> OutgoingCopies::Opened::describe(const Wish& wish, OutgoingCopy& copy) {
    if (home_.is_leaving() || !home_.volume().serving()) {
        return std::unexpected(no_content("the disk of the object does not serve"));
    }
    if (home_.volume().is_uncertain(wish.fid)) {
        return std::unexpected(no_content("the last change of the object may be lost"));
    }
    const auto copies = home_.volume().copies_of(wish.fid);
    if (!copies) return std::unexpected(copies.error());
    const auto found = home_.volume().map().find(wish.fid);
    if (!found) return std::unexpected(found.error());
    if (!found->has_value()) return std::unexpected(no_content("there is no such object"));
    const store::Object& object = **found;
    if (object.is_released) {
        return std::unexpected(no_content("the bytes of the object are on tape only"));
    }
    std::vector<store::Copy> here = *copies;
    std::erase_if(here, [&](const store::Copy& each) { return each.cartridge.vsn != wish.vsn; });
    const CountedCopies counted = counted_copies(media_, *copies);
    const std::uint64_t piece = piece_bytes_of(object.size_bytes, wish.piece_bytes, wish.copies);
    std::uint64_t from = (wish.from + piece - 1) / piece * piece;
    std::uint64_t end = 0;
    for (;; from = end) {
        if (from >= object.size_bytes) {
            return std::unexpected(no_content("no piece of the object needs a copy"));
        }
        end = std::min(from + piece, object.size_bytes);
        const bool has_all = have_copies(counted.copies, wish.copies, from, end);
        if (!has_all && !have_range(here, from, end)) break;
    }
    copy.member = member_of(wish.fid, object, stores_.layout());
    copy.member.offset = from;
    copy.member.size_bytes = end - from;
    return {};
}

// Handles a bounded number of blocks in a turn; the lock keeps the extents unchanged.
Task<Result<void>> OutgoingCopies::Opened::note_runs(store::Fid fid, OutgoingCopy* copy) {
    const std::uint64_t first = copy->member.offset / kBlock;
    const std::uint64_t end = first + copy->member.blocks();
    for (std::uint64_t at = first; at < end;) {
        const std::uint64_t count = std::min(end - at, store::ObjectMap::kReadBlocksMax);
        const auto noted = note_some(fid, *copy, {.first = at, .count = count});
        if (!noted) co_return noted;
        at += count;
        co_await stores_.parts().reactor.maybe_yield();
    }
    co_return Result<void>{};
}

Result<void> OutgoingCopies::Opened::note_some(store::Fid fid, OutgoingCopy& copy,
                                               store::BlockRange range) {
    const std::uint64_t begin = copy.member.offset / kBlock;
    auto extents = home_.volume().map().extents(fid, range);
    for (;;) {
        const auto extent = extents.next();
        if (!extent) return std::unexpected(extent.error());
        if (!extent->has_value()) break;
        copy.runs.push_back({.first = (*extent)->first - begin,
                             .block = (*extent)->block,
                             .count = (*extent)->count(),
                             .checksums_at = copy.checksums.size()});
        copy.checksums.insert(copy.checksums.end(), (*extent)->checksums.begin(),
                              (*extent)->checksums.end());
    }
    return {};
}

Task<Result<void>> OutgoingCopies::Opened::read(Read what) {
    const std::uint64_t whole_bytes = what.into.size_bytes / kBlock * kBlock;
    std::ranges::fill(what.into.span(), std::byte{0});
    Read blocks = what;
    blocks.into.size_bytes = whole_bytes;
    const auto read = co_await read_runs(blocks);
    if (!read) co_return read;
    const auto intact = check(blocks);
    if (!intact) co_return intact;
    if (whole_bytes == what.into.size_bytes) co_return Result<void>{};
    const core::Buffer rest{.data = what.into.data + whole_bytes,
                            .size_bytes = what.into.size_bytes - whole_bytes};
    const std::uint64_t block = (what.offset + whole_bytes) / kBlock;
    co_return co_await read_end(what.copy, block, rest);
}

Task<Result<void>> OutgoingCopies::Opened::read_runs(Read what) {
    const std::uint64_t first = what.offset / kBlock;
    const std::uint64_t end = first + what.into.size_bytes / kBlock;
    const core::WaitOptions wait{.cancel = &ending_};
    Result<void> result{};
    for (const OutgoingCopy::Run& run : what.copy->runs_in(first, end)) {
        const std::uint64_t from = std::max(first, run.first);
        const std::uint64_t to = std::min(end, run.end());
        if (io_.full()) {
            const auto some = co_await io_.wait();
            if (!some) result = some;
        }
        const core::Buffer part{.data = what.into.data + (from - first) * kBlock,
                                .size_bytes = (to - from) * kBlock};
        io_.read(part, run.block + (from - run.first), wait);
    }
    const auto rest = co_await io_.wait();
    if (!rest) result = rest;
    co_return result;
}

// Reads the last block of the piece, and copies the wanted part of it.
Task<Result<void>> OutgoingCopies::Opened::read_end(const OutgoingCopy* copy, std::uint64_t block,
                                                    core::Buffer into) {
    if (last_block_.span().empty()) {
        auto memory = store::AlignedMemory::allocate(kBlock);
        if (!memory) co_return std::unexpected(memory.error());
        last_block_ = std::move(*memory);
    }
    std::ranges::fill(last_block_.span(), std::byte{0});
    const Read what{.copy = copy, .offset = block * kBlock, .into = last_block_.buffer()};
    const auto read = co_await read_runs(what);
    if (!read) co_return read;
    const auto intact = check(what);
    if (!intact) co_return intact;
    std::ranges::copy(last_block_.span().first(into.size_bytes), into.data);
    co_return Result<void>{};
}

Result<void> OutgoingCopies::Opened::check(const Read& what) const {
    const std::uint64_t first = what.offset / kBlock;
    const std::uint64_t end = first + what.into.size_bytes / kBlock;
    for (const OutgoingCopy::Run& run : what.copy->runs_in(first, end)) {
        const std::uint64_t to = std::min(end, run.end());
        for (std::uint64_t at = std::max(first, run.first); at < to; ++at) {
            const auto block = what.into.span().subspan((at - first) * kBlock, kBlock);
            const std::size_t number = run.checksums_at + (at - run.first);
            if (core::crc32c(block) == what.copy->checksums[number]) continue;
            home_.checksum_errors().add(1);
            return std::unexpected(
                Error{.code = Errc::kCorrupt, .context = "a block on the disk is damaged"});
        }
    }
    return {};
}

// -- all of them --

OutgoingCopies::OutgoingCopies(objects::Stores& stores, const KnownMedia& media)
    : stores_(stores), media_(media) {}
OutgoingCopies::~OutgoingCopies() = default;

Task<Result<OutgoingCopy>> OutgoingCopies::open(Wish wish) {
    ENSURE(wish.piece_bytes > 0 && wish.piece_bytes % kBlock == 0);
    objects::HomeVolume* const home = stores_.find(wish.fid.slot());
    if (home == nullptr) co_return std::unexpected(no_content("the disk of the object is missing"));
    auto opened = std::make_unique<Opened>(stores_, media_, *home);
    OutgoingCopy copy;
    const auto noted = co_await opened->note(wish, &copy);
    if (!noted) co_return std::unexpected(noted.error());
    copy.number = ++last_number_;
    opened_.emplace(copy.number, std::move(opened));
    co_return copy;
}

Task<Result<void>> OutgoingCopies::read(Read what) {
    const auto found = opened_.find(what.copy->number);
    ENSURE(found != opened_.end());
    Opened* const opened = found->second.get();
    co_return co_await opened->read(what);
}

void OutgoingCopies::close(std::uint64_t number) {
    const auto closed = opened_.erase(number);
    ENSURE(closed == 1);
}

void OutgoingCopies::close_all() {
    opened_.clear();
}

}  // namespace fopd::library
