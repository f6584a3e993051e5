#include "store/tape/tape_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/ensure.h"
#include "store/corrupt.h"
#include "store/tape/block_checksum.h"
#include "store/tape/block_reader.h"
#include "store/tape/cartridge.h"

namespace fopd::store {

namespace {

constexpr Error kEndOfTape{.code = Errc::kNoSpace, .context = "the end of the tape"};
// The archive ends with two units of zeros.
constexpr std::uint64_t kArchiveEndBytes = 2 * kPaxUnitBytes;

}  // namespace

TapeWriter::TapeWriter(devices::TapeDrive& drive, TapeIdentity identity, TapeSite site)
    : drive_(drive), identity_(identity), site_(std::move(site)) {
    if (site_.serial.empty()) site_.serial = drive.serial();
    if (site_.model.empty()) site_.model = drive.technology();
}

Task<Result<void>> TapeWriter::open(TapeEnd end) {
    ENSURE(state_ != State::kFile);
    state_ = State::kClosed;
    if (memory_.span().empty()) {
        auto memory = AlignedMemory::allocate(devices::kTapeBlockMax);
        if (!memory) co_return std::unexpected(memory.error());
        memory_ = std::move(*memory);
        auto label = AlignedMemory::allocate(4096);
        if (!label) co_return std::unexpected(label.error());
        label_ = std::move(*label);
    }
    const auto& loaded = drive_.loaded();
    if (!loaded) {
        co_return std::unexpected(Error{.code = Errc::kInvalid, .context = "no tape is loaded"});
    }
    if (loaded->write_protected) {
        co_return std::unexpected(Error{.code = Errc::kDenied, .context = "write-protected tape"});
    }
    const auto volume = co_await require_ours(&drive_, identity_);
    if (!volume) co_return volume;
    const auto checked = co_await check_end(end);
    if (!checked) co_return checked;
    end_ = end;
    durable_end_ = end;
    at_end_ = false;
    near_end_ = false;
    end_is_near_ = false;
    state_ = State::kReady;
    co_return Result<void>();
}

// The labels behind the last file must be where the catalogue says, and no complete file behind
// them: a file that the catalogue lacks must not be overwritten.
Task<Result<void>> TapeWriter::check_end(TapeEnd end) {
    const auto at_end = co_await drive_.to_end_of_data();
    if (!at_end) co_return std::unexpected(at_end.error());
    const auto found = co_await drive_.position();
    if (!found) co_return std::unexpected(found.error());
    if (found->block < end.block || found->filemarks < 3 * end.files) {
        co_return corrupt("the tape is shorter than its catalogue");
    }
    if (found->filemarks >= 3 * (end.files + 1)) {
        co_return corrupt("the tape has more files than its catalogue");
    }
    if (end.files == 0) co_return Result<void>();
    BlockReader reader(drive_);
    const auto allocated = reader.allocate();
    if (!allocated) co_return std::unexpected(allocated.error());
    if (end.block < kFileLabels + 1) co_return corrupt("the position of the last file");
    const auto located = co_await reader.locate(end.block - kFileLabels - 1);
    if (!located) co_return located;
    const auto labels = co_await reader.labels(FileLabels::Side::kTrailer);
    if (!labels) co_return std::unexpected(labels.error());
    if (labels->vsn != identity_.vsn || labels->number != end.files) {
        co_return corrupt("the last file is another one");
    }
    co_return Result<void>();
}

std::unexpected<Error> TapeWriter::give_up(Error error) {
    if (state_ == State::kFile) abandon();
    return std::unexpected(error);
}

std::unexpected<Error> TapeWriter::fail(Error error) {
    state_ = State::kFailed;
    return std::unexpected(error);
}

void TapeWriter::abandon() {
    ENSURE(state_ == State::kFile);
    state_ = State::kReady;
    at_end_ = false;
    near_end_ = end_is_near_;
}

Result<void> TapeWriter::wrote(const Result<devices::TapeRoom>& room) {
    if (!room) return fail(room.error());
    near_end_ = *room != devices::TapeRoom::kPlenty;
    if (*room == devices::TapeRoom::kFull) return give_up(kEndOfTape);
    return {};
}

Task<Result<void>> TapeWriter::write_block(core::Buffer block) {
    const auto room = co_await drive_.write(block);
    co_return wrote(room);
}

Task<Result<void>> TapeWriter::write_mark() {
    const auto room = co_await drive_.write_filemarks(1, devices::TapeDrive::Marks::kImmediate);
    co_return wrote(room);
}

Task<Result<void>> TapeWriter::write_labels(FileLabels::Side side) {
    const auto labels = encode_file_labels(side, labels_);
    core::Buffer buffer = label_.buffer();
    buffer.size_bytes = kTapeLabelBytes;
    for (const TapeLabel& label : labels) {
        std::ranges::copy(label, buffer.data);
        const auto written = co_await write_block(buffer);
        if (!written) co_return written;
    }
    co_return co_await write_mark();
}

Task<Result<void>> TapeWriter::begin_file(TapeFileKind kind, std::uint64_t file_id, WallTime now) {
    ENSURE(state_ == State::kReady);
    ENSURE(kind != TapeFileKind::kPrelabel);
    ENSURE(end_.files < kTapeFileNumberMax);
    const bool ends = kind == TapeFileKind::kObjects && end_is_near_;
    if (ends) co_return std::unexpected(kEndOfTape);
    if (!at_end_) {
        const auto located = co_await drive_.locate(end_.block);
        if (!located) co_return fail(located.error());
        at_end_ = true;
    }
    state_ = State::kFile;
    labels_ = {.vsn = identity_.vsn,
               .kind = kind,
               .file_id = kind == TapeFileKind::kObjects ? file_id : 0,
               .number = end_.files + 1,
               .blocks = 0,
               .year = 2000,
               .day = 1,
               .site = site_};
    set_day(labels_, now);
    file_ = {.number = labels_.number,
             .block = end_.next_file_block(),
             .file_id = labels_.file_id,
             .kind = kind};
    ordinal_ = 0;
    full_blocks_ = 0;
    filled_bytes_ = 0;
    const auto labelled = co_await write_labels(FileLabels::Side::kHeader);
    if (!labelled) co_return labelled;
    const bool no_room = kind == TapeFileKind::kObjects && near_end_;
    if (no_room) {
        end_is_near_ = true;
        co_return give_up(kEndOfTape);
    }
    co_return Result<void>();
}

Task<Result<void>> TapeWriter::flush_block() {
    core::Buffer buffer = memory_.buffer();
    buffer.size_bytes = filled_bytes_;
    const auto written = co_await write_block(buffer);
    if (!written) co_return written;
    if (filled_bytes_ == kTapeDataBytes) {
        ++full_blocks_;
        filled_bytes_ = 0;
    }
    co_return Result<void>();
}

// Blocks are written as soon as they are full. At the early warning of the end of the tape, more
// data of objects are refused: the tape behind the warning is for labels and for an index file.
Task<Result<void>> TapeWriter::append(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const std::size_t size =
            std::min<std::size_t>(bytes.size(), kTapeDataBytes - filled_bytes_);
        std::ranges::copy(bytes.first(size),
                          memory_.span().begin() + static_cast<std::ptrdiff_t>(filled_bytes_));
        filled_bytes_ += size;
        bytes = bytes.subspan(size);
        if (filled_bytes_ < kTapeDataBytes) break;
        const auto flushed = co_await flush_block();
        if (!flushed) co_return flushed;
        const bool ends = near_end_ && file_.kind == TapeFileKind::kObjects;
        if (ends) co_return give_up(kEndOfTape);
    }
    co_return Result<void>();
}

Task<Result<void>> TapeWriter::append_zeros(std::uint64_t count) {
    static constexpr std::array<std::byte, kArchiveEndBytes> kZeros{};
    ENSURE(count <= kZeros.size());
    co_return co_await append(std::span(kZeros).first(static_cast<std::size_t>(count)));
}

Task<Result<std::uint32_t>> TapeWriter::digest(std::uint64_t blocks, MemberSource* source) {
    std::uint32_t digest = 0;
    for (std::uint64_t first = 0; first < blocks;) {
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(blocks - first, kChecksumsAtATime));
        const std::span<std::uint32_t> part(checksums_.data(), count);
        const auto got = co_await source->checksums(first, part);
        if (!got) co_return std::unexpected(got.error());
        digest = checksum_of(part, digest);
        first += count;
    }
    co_return digest;
}

Task<Result<std::uint32_t>> TapeWriter::copy_bytes(std::uint64_t size_bytes, MemberSource* source) {
    std::uint32_t digest = 0;
    for (std::uint64_t offset = 0; offset < size_bytes;) {
        const auto size = static_cast<std::size_t>(
            std::min<std::uint64_t>(size_bytes - offset, kTapeDataBytes - filled_bytes_));
        const core::Buffer into{.data = memory_.span().data() + filled_bytes_, .size_bytes = size};
        const auto got = co_await source->read(offset, into);
        if (!got) co_return give_up(got.error());
        for (std::size_t at = 0; at < size; at += kMemberBlockBytes) {
            const std::size_t block = std::min<std::size_t>(size - at, kMemberBlockBytes);
            const std::uint32_t checksum = block_checksum(into.span().subspan(at, block));
            digest = checksum_of(std::span(&checksum, 1), digest);
        }
        filled_bytes_ += size;
        offset += size;
        if (filled_bytes_ < kTapeDataBytes) continue;
        const auto flushed = co_await flush_block();
        if (!flushed) co_return std::unexpected(flushed.error());
        const bool ends = near_end_ && file_.kind == TapeFileKind::kObjects;
        if (ends) co_return give_up(kEndOfTape);
    }
    co_return digest;
}

Task<Result<std::uint32_t>> TapeWriter::copy_checksums(std::uint64_t blocks, MemberSource* source) {
    std::uint32_t digest = 0;
    for (std::uint64_t first = 0; first < blocks;) {
        const auto count =
            static_cast<std::size_t>(std::min<std::uint64_t>(blocks - first, kChecksumsAtATime));
        const std::span<std::uint32_t> part(checksums_.data(), count);
        const auto got = co_await source->checksums(first, part);
        if (!got) co_return give_up(got.error());
        digest = checksum_of(part, digest);
        for (std::size_t i = 0; i < count; ++i) {
            char* const line = lines_.data() + i * kChecksumLineBytes;
            const std::string text = hex_text(checksums_[i], kChecksumLineBytes - 1);
            std::memcpy(line, text.data(), text.size());
            line[kChecksumLineBytes - 1] = '\n';
        }
        const auto lines = std::as_bytes(std::span(lines_).first(count * kChecksumLineBytes));
        const auto appended = co_await append(lines);
        if (!appended) co_return std::unexpected(appended.error());
        first += count;
    }
    co_return digest;
}

Task<Result<TapeEntry>> TapeWriter::add(Member member, MemberSource* source) {
    ENSURE(state_ == State::kFile);
    const auto checksum = co_await digest(member.blocks(), source);
    if (!checksum) co_return give_up(checksum.error());
    member.checksum = *checksum;
    if (!is_valid(member)) {
        co_return give_up({.code = Errc::kInvalid, .context = "a member of a tape file"});
    }
    co_return co_await add_parts(std::move(member), source);
}

Task<Result<TapeEntry>> TapeWriter::add_parts(Member member, MemberSource* source) {
    MemberHeader header{.member = std::move(member),
                        .stamp = {.node = identity_.node,
                                  .generation = identity_.generation,
                                  .kind = file_.kind,
                                  .index = end_.index},
                        .path = {}};
    const bool index = file_.kind == TapeFileKind::kIndex;
    header.path = member_path(header, index ? file_.number : file_.file_id, ordinal_);
    const std::uint64_t position_before = position();
    const auto head = encode_member_header(header, position_before);
    const auto headed = co_await append(head);
    if (!headed) co_return std::unexpected(headed.error());

    const auto copied = co_await copy_bytes(header.member.size_bytes, source);
    if (!copied) co_return std::unexpected(copied.error());
    if (*copied != header.member.checksum) {
        co_return give_up({.code = Errc::kCorrupt, .context = "bytes differ from their checksums"});
    }
    const auto padded = co_await append_zeros(pax_padding(header.member.size_bytes));
    if (!padded) co_return std::unexpected(padded.error());

    const auto list_head = encode_checksums_header(header);
    const auto list_headed = co_await append(list_head);
    if (!list_headed) co_return std::unexpected(list_headed.error());
    const auto listed = co_await copy_checksums(header.member.blocks(), source);
    if (!listed) co_return std::unexpected(listed.error());
    if (*listed != header.member.checksum) {
        co_return give_up({.code = Errc::kCorrupt, .context = "the checksums have changed"});
    }
    const auto ended = co_await append_zeros(pax_padding(checksum_list_bytes(header.member)));
    if (!ended) co_return std::unexpected(ended.error());
    ++ordinal_;
    TapeEntry entry{.file = file_, .position = position_before, .member = std::move(header.member)};
    co_return entry;
}

Task<Result<void>> TapeWriter::write_end() {
    const auto ended = co_await append_zeros(kArchiveEndBytes);
    if (!ended) co_return ended;
    if (filled_bytes_ > 0) {
        const auto flushed = co_await flush_block();
        if (!flushed) co_return flushed;
    }
    const auto marked = co_await write_mark();
    if (!marked) co_return marked;
    const std::uint64_t blocks = full_blocks_ + (filled_bytes_ > 0 ? 1 : 0);
    labels_.blocks = static_cast<std::uint32_t>(blocks % kLabelBlocksEnd);
    const auto labelled = co_await write_labels(FileLabels::Side::kTrailer);
    if (!labelled) co_return labelled;
    end_.block = file_.end_block(blocks);
    co_return Result<void>();
}

Task<Result<TapeFile>> TapeWriter::end_file() {
    ENSURE(state_ == State::kFile);
    ENSURE(ordinal_ > 0);
    const auto written = co_await write_end();
    if (!written) co_return std::unexpected(written.error());
    state_ = State::kReady;
    end_is_near_ = near_end_;
    end_.files = file_.number;
    if (file_.kind == TapeFileKind::kIndex) {
        end_.index = {.file = file_.number, .block = file_.block};
    }
    co_return file_;
}

Task<Result<void>> TapeWriter::sync() {
    ENSURE(state_ == State::kReady);
    const auto room = co_await drive_.sync();
    if (!room) co_return fail(room.error());
    if (*room == devices::TapeRoom::kFull) co_return fail(kEndOfTape);
    durable_end_ = end_;
    co_return Result<void>();
}

}  // namespace fopd::store
