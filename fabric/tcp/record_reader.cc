#include "fabric/tcp/record_reader.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::fabric {

namespace {

constexpr Error kBadRecord{.code = Errc::kInvalid, .context = "no encrypted record begins here"};
constexpr Error kForged{.code = Errc::kInvalid, .context = "an encrypted record is not authentic"};

// The bytes of a record that begins with `bytes`; only of its label while that is incomplete.
Result<std::size_t> record_bytes(std::span<const std::byte> bytes) {
    if (bytes.size() < kRecordLabelBytes) return kRecordLabelBytes;
    std::size_t plain_bytes = 0;
    for (std::size_t i = kRecordLabelBytes; i > 0; --i) {
        plain_bytes = plain_bytes << 8 | std::to_integer<std::size_t>(bytes[i - 1]);
    }
    if (plain_bytes == 0 || plain_bytes > kRecordPlainMax) return std::unexpected(kBadRecord);
    return kRecordLabelBytes + plain_bytes + fop::RecordCipher::kTagBytes;
}

}  // namespace

RecordLabel encode_record_label(std::size_t plain_bytes) {
    ENSURE(plain_bytes > 0 && plain_bytes <= kRecordPlainMax);
    RecordLabel label;
    for (std::size_t i = 0; i < label.size(); ++i) {
        label[i] = static_cast<std::byte>(plain_bytes >> (8 * i) & 0xff);
    }
    return label;
}

Result<void> RecordReader::take(std::span<const std::byte> bytes, FrameReader& frames,
                                std::span<std::byte> scratch) {
    while (!bytes.empty()) {
        const bool continues = !incomplete_.empty();
        const auto needed = record_bytes(continues ? incomplete_ : bytes);
        if (!needed) return std::unexpected(needed.error());
        if (!continues && *needed > kRecordLabelBytes && bytes.size() >= *needed) {
            const auto record = bytes.first(*needed);
            bytes = bytes.subspan(*needed);
            if (const auto opened = open(record, frames, scratch); !opened) return opened;
            continue;
        }
        const std::size_t count = std::min(*needed - incomplete_.size(), bytes.size());
        hold_part(incomplete_, bytes.first(count), *needed);
        bytes = bytes.subspan(count);
        if (*needed == kRecordLabelBytes || incomplete_.size() < *needed) continue;
        std::vector<std::byte> record;
        record.swap(incomplete_);
        if (const auto opened = open(record, frames, scratch); !opened) return opened;
    }
    return {};
}

Result<void> RecordReader::open(std::span<const std::byte> record, FrameReader& frames,
                                std::span<std::byte> scratch) {
    ++opened_;
    const auto label = record.first(kRecordLabelBytes);
    const auto sealed = record.subspan(kRecordLabelBytes);
    const std::size_t plain_bytes = sealed.size() - fop::RecordCipher::kTagBytes;
    if (frames.target().size() >= plain_bytes) {
        if (!cipher_.open(label, sealed, frames.target().first(plain_bytes))) {
            return std::unexpected(kForged);
        }
        return frames.filled(plain_bytes);
    }
    const auto plain = scratch.first(plain_bytes);
    if (!cipher_.open(label, sealed, plain)) return std::unexpected(kForged);
    const auto taken = frames.take(plain);
    if (!taken) return std::unexpected(taken.error());
    ENSURE(*taken == plain_bytes);
    return {};
}

}  // namespace fopd::fabric
