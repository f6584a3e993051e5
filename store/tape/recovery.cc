#include "store/tape/recovery.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "store/corrupt.h"
#include "store/tape/pax.h"

namespace fopd::store {

namespace {

// No part of an index is larger; see write_index().
constexpr std::uint64_t kIndexPartBytesMax = 4UL << 20;
constexpr std::uint64_t kTrailerBlocks = kFileLabels + 1;

// True for errors after which the rest of the tape may still be read.
bool is_damage(const Error& error) {
    return error.code == Errc::kCorrupt || error.code == Errc::kIo;
}

}  // namespace

Task<Result<Recovered>> TapeRecovery::run(TapeEnd known, RecoverySink* sink) {
    result_ = {};
    const auto is_ours = co_await require_ours(&drive_, identity_);
    if (!is_ours) co_return std::unexpected(is_ours.error());
    const auto allocated = blocks_.allocate();
    if (!allocated) co_return std::unexpected(allocated.error());
    const auto counted = co_await count_files();
    if (!counted) co_return std::unexpected(counted.error());
    const bool shorter = result_.end.files < known.files || result_.end.block < known.block;
    if (shorter) {
        result_.shorter = true;
        result_.end = known;
        co_return result_;
    }
    if (result_.end.files == known.files && result_.end.block != known.block) {
        co_return corrupt("the tape has other files than its catalogue");
    }
    const TapeEnd end = result_.end;
    TapeEnd from = known;
    if (known.files == 0 && end.files > 0) {
        const auto indexed = co_await read_indexes(sink);
        if (!indexed) co_return std::unexpected(indexed.error());
        from = *indexed;
    }
    const auto read = co_await read_files(from, sink);
    if (!read) co_return std::unexpected(read.error());
    co_return result_;
}

// A file has three filemarks. After a crash the tape has a beginning of all that was written, so
// only the last file can be incomplete.
Task<Result<void>> TapeRecovery::count_files() {
    const auto at_end = co_await drive_.to_end_of_data();
    if (!at_end) co_return std::unexpected(at_end.error());
    const auto data_end = co_await drive_.position();
    if (!data_end) co_return std::unexpected(data_end.error());
    TapeEnd& end = result_.end;
    end.files = data_end->filemarks / 3;
    if (end.files == 0) {
        // VOL1, HDR1 and a filemark are an empty tape.
        result_.had_incomplete = data_end->block != 3 || data_end->filemarks != 1;
        co_return Result<void>();
    }
    if (end.files > kTapeFileNumberMax / 3) co_return corrupt("the number of files");
    const auto rewound = co_await drive_.locate(0);
    if (!rewound) co_return std::unexpected(rewound.error());
    const auto skipped = co_await drive_.skip_filemarks(static_cast<std::uint32_t>(3 * end.files));
    if (!skipped) co_return std::unexpected(skipped.error());
    const auto position = co_await drive_.position();
    if (!position) co_return std::unexpected(position.error());
    end.block = position->block;
    result_.had_incomplete = data_end->block > end.block;
    co_return co_await check_last();
}

Task<Result<void>> TapeRecovery::check_last() {
    if (result_.end.block < kTrailerBlocks) co_return corrupt("the labels of the last file");
    const auto located = co_await blocks_.locate(result_.end.block - kTrailerBlocks);
    if (!located) co_return located;
    const auto labels = co_await blocks_.labels(FileLabels::Side::kTrailer);
    if (!labels) co_return std::unexpected(labels.error());
    if (labels->vsn != identity_.vsn || labels->number != result_.end.files) {
        co_return corrupt("the labels of the last file");
    }
    last_ = *labels;
    co_return Result<void>();
}

// The trailer of the last file says how long it is, so where its header is; and that has the
// position of the last index.
Task<Result<IndexPosition>> TapeRecovery::find_index() {
    TapeFile file{.number = last_.number, .block = 0, .file_id = 0, .kind = last_.kind};
    if (file.number > 1) {
        const std::uint64_t length =
            kFileLabels + 1 + std::uint64_t{last_.blocks} + 1 + kTrailerBlocks;
        if (length > result_.end.block) co_return corrupt("the length of the last file");
        file.block = result_.end.block - length;
    }
    const auto opened = co_await reader_.open_file(file);
    if (!opened) co_return std::unexpected(opened.error());
    if (reader_.file().kind == TapeFileKind::kIndex) {
        co_return IndexPosition{.file = file.number, .block = file.block};
    }
    co_return reader_.header().stamp.index;
}

// Reads the last index and those that it refers to. Returns the end of the files before the last
// index; where there is no index, or one cannot be read, that is the beginning of the tape.
Task<Result<TapeEnd>> TapeRecovery::read_indexes(RecoverySink* sink) {
    const auto found = co_await find_index();
    if (!found && !is_damage(found.error())) co_return std::unexpected(found.error());
    if (!found || found->file == 0) co_return TapeEnd();
    TapeEnd before{.files = found->file - 1, .block = found->block, .index = {}};
    if (before.files == 0) co_return TapeEnd();
    IndexPosition position = *found;
    for (bool last = true;; last = false) {
        const auto head = co_await read_index(position, sink);
        if (!head) {
            if (!is_damage(head.error())) co_return std::unexpected(head.error());
            const auto told = co_await sink->damaged(position.file, head.error());
            if (!told) co_return std::unexpected(told.error());
            co_return TapeEnd();
        }
        if (last) before.index = head->previous;
        if (head->first == 1) co_return before;
        position = head->previous;
        // An index lists the files right up to the next one.
        if (position.file != head->first - 1) co_return TapeEnd();
    }
}

Task<Result<IndexHead>> TapeRecovery::read_index(IndexPosition position, RecoverySink* sink) {
    const TapeFile file{.number = position.file,
                        .block = position.block,
                        .file_id = 0,
                        .kind = TapeFileKind::kIndex};
    const auto opened = co_await reader_.open_file(file);
    if (!opened) co_return std::unexpected(opened.error());
    if (reader_.file() != file) co_return corrupt("there is no index file");
    lines_ = {};
    bool more = true;
    while (more) {
        const auto read = co_await read_part();
        if (!read) co_return std::unexpected(read.error());
        const auto taken = co_await take_lines(sink);
        if (!taken) co_return std::unexpected(taken.error());
        const auto next = co_await reader_.open_next();
        if (!next) co_return std::unexpected(next.error());
        more = *next;
    }
    if (!lines_.complete()) co_return corrupt("an index without its last line");
    const IndexHead head = lines_.head();
    if (head.identity != identity_ || head.last != position.file - 1) {
        co_return corrupt("the index of another tape");
    }
    const auto closed = co_await reader_.close_file();
    if (!closed) co_return std::unexpected(closed.error());
    co_return head;
}

Task<Result<void>> TapeRecovery::read_part() {
    if (reader_.header().member.size_bytes > kIndexPartBytesMax) {
        co_return corrupt("a part of an index is too large");
    }
    part_.clear();
    while (true) {
        const auto part = co_await reader_.next();
        if (!part) co_return std::unexpected(part.error());
        if (part->bytes.empty()) co_return Result<void>();
        part_.append(reinterpret_cast<const char*>(part->bytes.data()), part->bytes.size());
    }
}

// A line is never cut by the end of a part.
Task<Result<void>> TapeRecovery::take_lines(RecoverySink* sink) {
    for (std::size_t at = 0; at < part_.size();) {
        const std::size_t end = part_.find('\n', at);
        if (end == std::string::npos || end - at > kIndexLineBytesMax) {
            co_return corrupt("a line of an index");
        }
        auto entry = lines_.take(std::string_view(part_).substr(at, end - at));
        if (!entry) co_return std::unexpected(entry.error());
        at = end + 1;
        if (!entry->has_value()) continue;
        const auto found = co_await sink->found(std::move(**entry));
        if (!found) co_return found;
    }
    co_return Result<void>();
}

Task<Result<void>> TapeRecovery::read_files(TapeEnd from, RecoverySink* sink) {
    while (from.files < result_.end.files) {
        auto after = co_await read_file(from, sink);
        if (!after) {
            if (!is_damage(after.error())) co_return std::unexpected(after.error());
            const auto told = co_await sink->damaged(from.files + 1, after.error());
            if (!told) co_return told;
            after = co_await skip_file(from);
            if (!after) co_return std::unexpected(after.error());
        }
        ++result_.files_read;
        from = *after;
    }
    if (from.block != result_.end.block)
        co_return corrupt("the tape has other files than its catalogue");
    result_.end.index = from.index;
    co_return Result<void>();
}

// The copies are told when the file has turned out to be complete.
Task<Result<TapeEnd>> TapeRecovery::read_file(TapeEnd before, RecoverySink* sink) {
    const TapeFile file{.number = before.files + 1,
                        .block = before.next_file_block(),
                        .file_id = 0,
                        .kind = TapeFileKind::kObjects};
    const auto opened = co_await reader_.open_file(file);
    if (!opened) co_return std::unexpected(opened.error());
    const bool has_objects = reader_.file().kind == TapeFileKind::kObjects;
    std::vector<TapeEntry> entries;
    bool more = true;
    while (more) {
        if (entries.size() == kFileMembersMax) co_return corrupt("a file with too many members");
        TapeEntry entry{.file = reader_.file(),
                        .position = reader_.position(),
                        .member = reader_.header().member};
        if (has_objects) entries.push_back(std::move(entry));
        const auto next = co_await reader_.open_next();
        if (!next) co_return std::unexpected(next.error());
        more = *next;
    }
    const auto end = co_await reader_.close_file();
    if (!end) co_return std::unexpected(end.error());
    TapeEnd after{.files = file.number, .block = *end, .index = before.index};
    if (!has_objects) {
        after.index = {.file = file.number, .block = file.block};
        co_return after;
    }
    for (TapeEntry& entry : entries) {
        const auto found = co_await sink->found(std::move(entry));
        if (!found) co_return std::unexpected(found.error());
    }
    co_return after;
}

Task<Result<TapeEnd>> TapeRecovery::skip_file(TapeEnd before) {
    const auto located = co_await drive_.locate(before.next_file_block());
    if (!located) co_return std::unexpected(located.error());
    const auto skipped = co_await drive_.skip_filemarks(3);
    if (!skipped) co_return std::unexpected(skipped.error());
    const auto position = co_await drive_.position();
    if (!position) co_return std::unexpected(position.error());
    if (position->filemarks != 3 * (before.files + 1)) {
        co_return corrupt("the tape has other files than its catalogue");
    }
    co_return TapeEnd{.files = before.files + 1, .block = position->block, .index = before.index};
}

namespace {

// Of the first files: where their headers are damaged, a cartridge is given up.
constexpr std::uint32_t kFilesTriedMax = 8;

// The node in the header of the first member of a file. kNotFound: there is no such file.
Task<Result<devices::NodeId>> read_node(devices::TapeDrive* drive, BlockReader* reader,
                                        std::uint32_t number) {
    const auto located = co_await drive->locate(0);
    if (!located) co_return std::unexpected(located.error());
    const Error no_file{.code = Errc::kNotFound, .context = "a cartridge without files"};
    if (number > 1) {
        const auto skipped = co_await drive->skip_filemarks(3 * (number - 1));
        if (!skipped) {
            const bool is_end = skipped.error().code == Errc::kNotFound;
            co_return std::unexpected(is_end ? no_file : skipped.error());
        }
    }
    const auto labels = co_await reader->labels(FileLabels::Side::kHeader);
    if (!labels) co_return std::unexpected(labels.error());
    const auto position = co_await drive->position();
    if (!position) co_return std::unexpected(position.error());
    reader->begin_payload(position->block);
    std::array<std::byte, kMemberHeaderBytesMax> memory;
    const auto header = co_await read_member_header(reader, memory);
    if (!header) co_return std::unexpected(header.error());
    if (!header->has_value()) co_return corrupt("a tape file without members");
    co_return (*header)->stamp.node;
}

}  // namespace

Task<Result<TapeIdentity>> read_identity(devices::TapeDrive* drive) {
    TapeIdentity identity;
    const auto found = co_await inspect(drive, identity);
    if (!found) co_return std::unexpected(found.error());
    if (!found->label || found->kind == CartridgeKind::kForeign) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid, .context = describe_kind(found->kind)});
    }
    identity.vsn = found->label->vsn;
    identity.generation = found->generation;
    BlockReader reader(*drive);
    const auto allocated = reader.allocate();
    if (!allocated) co_return std::unexpected(allocated.error());
    // The first files may be damaged.
    for (std::uint32_t number = 1;; ++number) {
        const auto node = co_await read_node(drive, &reader, number);
        if (!node && (!is_damage(node.error()) || number == kFilesTriedMax)) {
            co_return std::unexpected(node.error());
        }
        if (!node) continue;
        identity.node = *node;
        co_return identity;
    }
}

}  // namespace fopd::store
