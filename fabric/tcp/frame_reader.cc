#include "fabric/tcp/frame_reader.h"

#include <algorithm>

#include "core/copy_bytes.h"

namespace fopd::fabric {

namespace {

using DestinationKind = FrameUser::Destination::Kind;

constexpr Error kStopped{.code = Errc::kClosed, .context = "reader stopped"};

}  // namespace

void hold_part(std::vector<std::byte>& held, std::span<const std::byte> part,
               std::size_t total_bytes) {
    const std::size_t needed = held.size() + part.size();
    if (needed > held.capacity()) {
        held.reserve(std::min(std::max(needed, 2 * held.capacity()), total_bytes));
    }
    held.insert(held.end(), part.begin(), part.end());
}

Result<std::size_t> FrameReader::take(std::span<const std::byte> bytes) {
    const std::size_t size = bytes.size();
    paused_ = false;
    while (!bytes.empty() && !paused_) {
        if (!in_body_) {
            const std::size_t count = std::min(kFrameHeaderBytes - header_bytes_, bytes.size());
            core::copy_bytes(bytes.first(count), std::span(header_).subspan(header_bytes_));
            header_bytes_ += count;
            bytes = bytes.subspan(count);
            if (header_bytes_ < kFrameHeaderBytes) break;
            if (const auto begun = begin_frame(); !begun) return std::unexpected(begun.error());
            continue;
        }
        const auto taken = take_body(bytes);
        if (!taken) return std::unexpected(taken.error());
        bytes = bytes.subspan(*taken);
    }
    return size - bytes.size();
}

Result<void> FrameReader::begin_frame() {
    header_bytes_ = 0;
    const auto frame = decode_frame(header_);
    if (!frame) return std::unexpected(frame.error());
    const auto destination = user_.on_frame(*frame);
    if (!destination) return std::unexpected(destination.error());
    frame_ = *frame;
    ++begun_;
    in_body_ = true;
    kind_ = destination->kind;
    body_left_ = frame_.body_bytes();
    target_ = kind_ == DestinationKind::kMemory ? destination->memory : std::span<std::byte>();
    ENSURE(kind_ != DestinationKind::kMemory || target_.size() == body_left_);
    if (body_left_ == 0) return end_body({});
    return {};
}

Result<std::size_t> FrameReader::take_body(std::span<const std::byte> bytes) {
    const auto part = bytes.first(std::min(body_left_, bytes.size()));
    if (kind_ == DestinationKind::kMemory) {
        core::copy_bytes(part, target_);
        if (const auto filled_part = filled(part.size()); !filled_part) {
            return std::unexpected(filled_part.error());
        }
        return part.size();
    }
    const bool is_whole = kind_ == DestinationKind::kWhole;
    if (is_whole && incomplete_.empty() && part.size() == body_left_) {
        body_left_ = 0;
        if (const auto ended = end_body(part); !ended) return std::unexpected(ended.error());
        return part.size();
    }
    if (is_whole) hold_part(incomplete_, part, frame_.body_bytes());
    body_left_ -= part.size();
    if (body_left_ == 0) {
        std::vector<std::byte> body;
        body.swap(incomplete_);
        if (const auto ended = end_body(body); !ended) return std::unexpected(ended.error());
    }
    return part.size();
}

Result<void> FrameReader::filled(std::size_t count) {
    target_ = target_.subspan(count);
    body_left_ -= count;
    if (body_left_ > 0) return {};
    return end_body({});
}

void FrameReader::skip_rest() {
    ENSURE(in_body_ && kind_ == DestinationKind::kMemory);
    kind_ = DestinationKind::kNowhere;
    target_ = {};
}

Result<void> FrameReader::end_body(std::span<const std::byte> body) {
    in_body_ = false;
    target_ = {};
    const Frame frame = frame_;
    if (!user_.on_body(frame, body)) return std::unexpected(kStopped);
    return {};
}

}  // namespace fopd::fabric
