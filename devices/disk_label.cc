#include "devices/disk_label.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "core/ensure.h"
#include "core/printable.h"
#include "devices/aligned_bytes.h"

namespace fopd::devices {

namespace {

// Partition tables, file systems, volume managers and arrays all leave data this close to the start
// or the end.
constexpr std::uint64_t kLookedAtBytes = 1UL << 20;
constexpr std::size_t kReadBlocks = 64;

struct Signature {
    std::size_t offset;
    std::string_view bytes;
    const char* content;
};
// Only for helpful refusals; contents not listed here are refused, too.
constexpr std::array kSignatures{
    Signature{.offset = 1080, .bytes = "\x53\xef", .content = "an ext2, ext3 or ext4 file system"},
    Signature{.offset = 0, .bytes = "XFSB", .content = "an XFS file system"},
    Signature{.offset = 65600, .bytes = "_BHRfS_M", .content = "a btrfs file system"},
    Signature{.offset = 0, .bytes = "LUKS\xba\xbe", .content = "an encrypted volume"},
    Signature{.offset = 536, .bytes = "LVM2 001", .content = "an LVM volume"},
    Signature{.offset = 4086, .bytes = "SWAPSPACE2", .content = "swap space"},
    Signature{.offset = 4096, .bytes = "\xfc\x4e\x2b\xa9", .content = "a part of an array"},
    Signature{.offset = 512, .bytes = "EFI PART", .content = "a partition table"},
    Signature{.offset = 510, .bytes = "\x55\xaa", .content = "a partition table or boot sector"},
};

const char* recognise(std::span<const std::byte> beginning) {
    for (const Signature& each : kSignatures) {
        if (each.offset + each.bytes.size() > beginning.size()) continue;
        if (std::memcmp(beginning.data() + each.offset, each.bytes.data(), each.bytes.size()) == 0)
            return each.content;
    }
    return "";
}

std::string in_quotes(std::string_view name) {
    std::string text = "\"";
    core::append_printable(text, name, core::Quotes::kEscape);
    return text += '"';
}

}  // namespace

std::string_view to_string(Verdict verdict) {
    switch (verdict) {
        case Verdict::kOurs: return "ours";
        case Verdict::kBlank: return "blank";
        case Verdict::kRetired: return "retired";
        case Verdict::kOtherNode: return "other node";
        case Verdict::kOtherPool: return "other pool";
        case Verdict::kTruncated: return "truncated";
        case Verdict::kForeign: return "foreign";
        case Verdict::kDamaged: return "damaged";
        case Verdict::kNewer: return "newer";
    }
    return "unknown";
}

DiskLabel::DiskLabel(Device& device, Claim claim) : device_(device), claim_(std::move(claim)) {}

Task<Result<Verdict>> DiskLabel::inspect() {
    if (device_.geometry().size_bytes < kLabelCopies * kBlockBytes) {
        co_return std::unexpected(Error{.code = Errc::kInvalid, .context = "disk too small"});
    }
    auto copies = co_await read_copies();
    if (!copies) co_return std::unexpected(copies.error());
    choose(*copies);
    if (!verdict_) {
        const auto blank = co_await is_blank();
        if (!blank) co_return std::unexpected(blank.error());
        verdict_ = *blank ? Verdict::kBlank : Verdict::kForeign;
    }
    co_return *verdict_;
}

Task<Result<LabelCopies>> DiskLabel::read_copies() {
    LabelCopies copies{std::unexpected(LabelFlaw::kDamaged), std::unexpected(LabelFlaw::kDamaged)};
    std::optional<Error> failed;
    std::size_t failed_count = 0;
    const AlignedBytes block(1);
    for (std::size_t i = 0; i < kLabelCopies; ++i) {
        const auto read = co_await device_.read(block.buffer(), i * kBlockBytes, {});
        if (read) {
            copies[i] = read_label(block.span().first<kBlockBytes>());
        } else {
            failed = read.error();
            ++failed_count;
        }
    }
    if (failed_count == kLabelCopies) co_return std::unexpected(*failed);
    co_return copies;
}

// Sets no verdict if there was apparently never a label.
void DiskLabel::choose(const LabelCopies& copies) {
    verdict_.reset();
    label_ = newest_of(copies);
    bool newer = false;
    bool damaged = false;
    for (const auto& copy : copies) {
        newer = newer || (!copy && copy.error() == LabelFlaw::kNewer);
        damaged = damaged || (!copy && copy.error() == LabelFlaw::kDamaged);
    }
    copy_lost_ = label_ && !(copies[0] && copies[1]);
    // A newer program has overwritten one of our copies.
    if (newer) {
        label_.reset();
        verdict_ = Verdict::kNewer;
    } else if (label_) {
        verdict_ = judge_label();
    } else if (damaged) {
        verdict_ = Verdict::kDamaged;
    }
}

Verdict DiskLabel::judge_label() const {
    const bool is_claimed = label_->owner == claim_.node && label_->pool == claim_.pool;
    if (label_->state == LabelState::kReleased && !is_claimed) return Verdict::kRetired;
    if (label_->owner != claim_.node) return Verdict::kOtherNode;
    if (label_->state == LabelState::kRetired) return Verdict::kRetired;
    if (label_->pool != claim_.pool) return Verdict::kOtherPool;
    if (label_->size_bytes > device_.geometry().size_bytes) return Verdict::kTruncated;
    return Verdict::kOurs;
}

Task<Result<bool>> DiskLabel::is_blank() {
    const std::uint64_t size_bytes = device_.geometry().size_bytes;
    const std::uint64_t looked_at = std::min(kLookedAtBytes, size_bytes);
    const auto beginning = co_await is_zero(0, looked_at);
    if (!beginning) co_return beginning;
    if (!*beginning) co_return false;
    co_return co_await is_zero(size_bytes - looked_at, size_bytes);
}

Task<Result<bool>> DiskLabel::is_zero(std::uint64_t offset, std::uint64_t end) {
    const AlignedBytes memory(kReadBlocks);
    while (offset < end) {
        core::Buffer part = memory.buffer();
        part.size_bytes = std::min<std::uint64_t>(part.size_bytes, end - offset);
        const auto read = co_await device_.read(part, offset, {});
        if (!read) co_return std::unexpected(read.error());
        if (!all_zero(part.span())) {
            content_ = offset == 0 ? recognise(part.span()) : "";
            co_return false;
        }
        offset += part.size_bytes;
    }
    co_return true;
}

const Label& DiskLabel::label() const {
    ENSURE(label_.has_value());
    return *label_;
}

std::string DiskLabel::explain() const {
    switch (*verdict_) {
        case Verdict::kOurs: return "is ours";
        case Verdict::kBlank: return "is blank";
        case Verdict::kRetired: return "was retired, and holds nothing any more";
        case Verdict::kOtherNode:
            return "belongs to node " + format_id(label_->owner) + ", pool " +
                   in_quotes(label_->pool);
        case Verdict::kOtherPool:
            return "belongs to pool " + in_quotes(label_->pool) + " of this node, not to " +
                   in_quotes(claim_.pool);
        case Verdict::kTruncated:
            return "has " + std::to_string(device_.geometry().size_bytes) + " bytes, and had " +
                   std::to_string(label_->size_bytes) + " when it was taken";
        case Verdict::kForeign:
            return content_[0] == '\0' ? std::string("holds something else already")
                                       : "holds " + std::string(content_);
        case Verdict::kDamaged: return "has a label whose copies are both damaged";
        case Verdict::kNewer: return "was written by a newer version";
    }
    return "is unknown";
}

Error DiskLabel::refusal() const {
    switch (*verdict_) {
        case Verdict::kOurs: break;
        case Verdict::kBlank: return {.code = Errc::kNotFound, .context = "disk is blank"};
        case Verdict::kRetired: return {.code = Errc::kNotFound, .context = "disk was retired"};
        case Verdict::kOtherNode:
            return {.code = Errc::kDenied, .context = "disk belongs to another node"};
        case Verdict::kOtherPool:
            return {.code = Errc::kDenied, .context = "disk belongs to another pool"};
        case Verdict::kTruncated:
            return {.code = Errc::kCorrupt, .context = "disk is smaller than it was"};
        case Verdict::kForeign:
            return {.code = Errc::kDenied, .context = "disk holds something else"};
        case Verdict::kDamaged: return {.code = Errc::kCorrupt, .context = "disk label"};
        case Verdict::kNewer:
            return {.code = Errc::kUnsupported, .context = "disk label of a newer version"};
    }
    return {.code = Errc::kDenied, .context = "disk is ours"};
}

Task<Result<void>> DiskLabel::take(NewLabel fresh) {
    ENSURE(verdict_.has_value());
    if (*verdict_ != Verdict::kBlank && *verdict_ != Verdict::kRetired) {
        co_return std::unexpected(refusal());
    }
    Label next{.disk = fresh.disk,
               .owner = claim_.node,
               // A retired disk still has its old label; each new copy raises the generation.
               .generation = label_ ? label_->generation : 0,
               .size_bytes = device_.geometry().size_bytes,
               .created_unix_ns = fresh.created_unix_ns,
               .segment_bytes = fresh.segment_bytes,
               .slot = fresh.slot,
               .state = fresh.state,
               .pool = claim_.pool};
    for (std::uint64_t copy = 0; copy < kLabelCopies; ++copy) {
        ++next.generation;
        Label copied = next;
        const auto written = co_await write(std::move(copied));
        if (!written) co_return written;
    }
    verdict_ = judge_label();
    copy_lost_ = false;
    co_return Result<void>{};
}

Task<Result<void>> DiskLabel::set_state(LabelState state) {
    ENSURE(verdict_.has_value());
    if (*verdict_ != Verdict::kOurs) co_return std::unexpected(refusal());
    Label next = *label_;
    ++next.generation;
    next.state = state;
    const auto written = co_await write(std::move(next));
    if (!written) co_return written;
    copy_lost_ = false;
    verdict_ = judge_label();
    co_return Result<void>{};
}

Task<Result<void>> DiskLabel::write(Label next) {
    const AlignedBytes block(1);
    write_label(next, block.span().first<kBlockBytes>());
    const auto written = co_await device_.write(block.buffer(), next.offset());
    if (!written) co_return written;
    const auto flushed = co_await device_.flush();
    if (!flushed) co_return flushed;
    label_ = std::move(next);
    co_return Result<void>{};
}

}  // namespace fopd::devices
