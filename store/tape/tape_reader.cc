#include "store/tape/tape_reader.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "store/corrupt.h"
#include "store/tape/block_checksum.h"

namespace fopd::store {

Task<Result<std::optional<MemberHeader>>> read_member_header(
    BlockReader* reader, std::span<std::byte, kMemberHeaderBytesMax> memory) {
    const std::span<std::byte, kPaxUnitBytes> unit = memory.first<kPaxUnitBytes>();
    const auto first = co_await reader->take(unit);
    if (!first) co_return std::unexpected(first.error());
    const auto size = member_header_bytes(unit);
    if (!size) co_return std::unexpected(size.error());
    if (*size == 0) co_return std::nullopt;
    const std::span<std::byte> whole = memory.first(*size);
    const auto rest = co_await reader->take(whole.subspan(kPaxUnitBytes));
    if (!rest) co_return std::unexpected(rest.error());
    auto header = parse_member_header(whole);
    if (!header) co_return std::unexpected(header.error());
    co_return std::move(*header);
}

Task<Result<void>> TapeReader::open_labels(TapeFile file) {
    labels_are_right_ = false;
    const auto allocated = reader_.allocate();
    if (!allocated) co_return allocated;
    // VOL1 and file 1 have block 0.
    if ((file.number == 1) != (file.block == 0)) co_return corrupt("the position of a tape file");
    const auto moved = co_await reader_.go_to(file.block);
    if (!moved) co_return moved;
    const auto labels = co_await reader_.labels(FileLabels::Side::kHeader);
    if (!labels) co_return std::unexpected(labels.error());
    if (labels->vsn != identity_.vsn) co_return corrupt("the VSN in HDR1 is another one");
    if (labels->number != file.number) co_return corrupt("the file number in UHL1 is another one");
    labels_ = *labels;
    file_ = {.number = file.number,
             .block = file.block,
             .file_id = labels->file_id,
             .kind = labels->kind};
    reader_.begin_payload(file.first_data_block());
    labels_are_right_ = true;
    co_return Result<void>();
}

Task<Result<void>> TapeReader::open(TapeEntry entry) {
    const bool is_in_file = labels_are_right_ && file_ == entry.file;
    if (!is_in_file) {
        const auto opened = co_await open_labels(entry.file);
        if (!opened) co_return opened;
        if (file_ != entry.file) co_return corrupt("the file id in HDR1 is another one");
    }
    const auto sought = co_await reader_.seek(entry.position);
    if (!sought) co_return sought;
    const auto found = co_await read_header();
    if (!found) co_return std::unexpected(found.error());
    if (!*found) co_return corrupt("there is no member at this position");
    co_return compare(entry);
}

Task<Result<void>> TapeReader::open_file(TapeFile file) {
    const auto opened = co_await open_labels(file);
    if (!opened) co_return opened;
    const auto found = co_await read_header();
    if (!found) co_return std::unexpected(found.error());
    if (!*found) co_return corrupt("a tape file without members");
    co_return Result<void>();
}

std::uint64_t TapeReader::next_position() const {
    const Member& member = header_.member;
    const std::uint64_t list_bytes = checksum_list_bytes(member);
    return data_position_ + member.size_bytes + pax_padding(member.size_bytes) + kPaxUnitBytes +
           list_bytes + pax_padding(list_bytes);
}

Task<Result<bool>> TapeReader::open_next() {
    const auto sought = co_await reader_.seek(next_position());
    if (!sought) co_return std::unexpected(sought.error());
    co_return co_await read_header();
}

Task<Result<std::uint64_t>> TapeReader::close_file() {
    const auto blocks = co_await reader_.end_payload();
    if (!blocks) co_return std::unexpected(blocks.error());
    auto trailer = co_await reader_.labels(FileLabels::Side::kTrailer);
    if (!trailer) co_return std::unexpected(trailer.error());
    if (trailer->blocks != *blocks % kLabelBlocksEnd) {
        co_return corrupt("the number of blocks in EOF1 differs");
    }
    trailer->blocks = 0;
    if (*trailer != labels_) co_return corrupt("the labels before and behind a file differ");
    co_return file_.end_block(*blocks);
}

Task<Result<bool>> TapeReader::read_header() {
    position_ = reader_.position();
    ended_ = true;
    auto read = co_await read_member_header(&reader_, header_bytes_);
    if (!read) co_return std::unexpected(read.error());
    std::optional<MemberHeader>& header = *read;
    if (!header) co_return false;
    if (header->stamp.node != identity_.node) co_return corrupt("a file of another node");
    if (header->stamp.generation != identity_.generation) {
        co_return corrupt("a file from before the cartridge was formatted");
    }
    // The archive's writer aligns the bytes, and seek() and next() rely on it.
    if (reader_.position() % kMemberBlockBytes != 0) co_return corrupt("bytes at a wrong position");
    if (header->stamp.kind != file_.kind) co_return corrupt("a member of another kind of file");
    header_ = std::move(*header);
    data_position_ = reader_.position();
    rest_bytes_ = header_.member.size_bytes;
    digest_ = 0;
    ended_ = false;
    co_return true;
}

Result<void> TapeReader::compare(const TapeEntry& entry) const {
    const Member& found = header_.member;
    const Member& expected = entry.member;
    if (found.fid != expected.fid) return corrupt("the object is another one");
    if (found.version != expected.version) return corrupt("the object's version is another one");
    if (found.offset != expected.offset) return corrupt("the offset in the object differs");
    if (found.size_bytes != expected.size_bytes) return corrupt("the size of the copy differs");
    if (found.checksum != expected.checksum) return corrupt("the checksum of the copy differs");
    return {};
}

Task<Result<TapeReader::MemberBytes>> TapeReader::next() {
    if (ended_) co_return MemberBytes();
    if (rest_bytes_ == 0) {
        ended_ = true;
        const auto checked = co_await check_list();
        if (!checked) co_return std::unexpected(checked.error());
        co_return MemberBytes();
    }
    const auto bytes = co_await reader_.next_bytes(rest_bytes_);
    if (!bytes) co_return std::unexpected(bytes.error());
    rest_bytes_ -= bytes->size();
    const bool broken = rest_bytes_ > 0 && bytes->size() % kMemberBlockBytes != 0;
    if (broken) co_return corrupt("a data block is too short");
    std::size_t count = 0;
    for (std::size_t at = 0; at < bytes->size(); at += kMemberBlockBytes, ++count) {
        const std::size_t size = std::min<std::size_t>(bytes->size() - at, kMemberBlockBytes);
        checksums_.at(count) = block_checksum(bytes->subspan(at, size));
    }
    const std::span<const std::uint32_t> checksums = std::span(checksums_).first(count);
    digest_ = checksum_of(checksums, digest_);
    co_return MemberBytes{.bytes = *bytes, .checksums = checksums};
}

// The member's bytes have been read. Behind them is the list of their checksums.
Task<Result<void>> TapeReader::check_list() {
    if (digest_ != header_.member.checksum) co_return corrupt("bytes differ from their checksums");
    const std::span<std::byte> unit = std::span(header_bytes_).first(kPaxUnitBytes);
    const std::uint64_t padding = pax_padding(header_.member.size_bytes);
    const auto padded = co_await reader_.take(unit.first(static_cast<std::size_t>(padding)));
    if (!padded) co_return padded;
    const auto headed = co_await reader_.take(unit);
    if (!headed) co_return headed;
    const auto right =
        check_checksums_header(std::span(header_bytes_).first<kPaxUnitBytes>(), header_);
    if (!right) co_return right;
    std::uint32_t digest = 0;
    for (std::uint64_t block = 0; block < header_.member.blocks(); ++block) {
        const std::span<std::byte> line = unit.first(kChecksumLineBytes);
        const auto taken = co_await reader_.take(line);
        if (!taken) co_return taken;
        const std::string_view text(reinterpret_cast<const char*>(line.data()), line.size());
        const auto checksum = parse_hex(text.substr(0, kChecksumLineBytes - 1), 8);
        if (!checksum || !text.ends_with('\n')) co_return corrupt("a list of checksums");
        const auto narrow = static_cast<std::uint32_t>(*checksum);
        digest = checksum_of(std::span(&narrow, 1), digest);
    }
    if (digest != header_.member.checksum) co_return corrupt("the list of checksums differs");
    const std::uint64_t list_bytes = checksum_list_bytes(header_.member);
    co_return co_await reader_.take(unit.first(static_cast<std::size_t>(pax_padding(list_bytes))));
}

}  // namespace fopd::store
