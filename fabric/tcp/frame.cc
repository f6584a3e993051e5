#include "fabric/tcp/frame.h"

#include <algorithm>
#include <bit>
#include <cstring>

namespace fopd::fabric {

namespace {

// The bytes of a header, in the order of the wire. All numbers are little-endian.
struct Layout {
    std::uint16_t magic;
    std::uint8_t kind;
    std::uint8_t zero;
    std::uint32_t length;
    std::uint32_t tag;
    std::uint32_t zero_too;
    std::uint64_t key;
    std::uint64_t address;
};
static_assert(sizeof(Layout) == kFrameHeaderBytes);
static_assert(std::endian::native == std::endian::little);

constexpr std::uint16_t kMagic = 0x7066;  // "fp"

std::unexpected<Error> bad_frame(const char* why) {
    return std::unexpected(Error{.code = Errc::kInvalid, .context = why});
}

constexpr std::uint32_t length_max(FrameKind kind) {
    switch (kind) {
        case FrameKind::kConnect:
        case FrameKind::kAccept: return kHelloBytesMax;
        case FrameKind::kRefuse: return kRefusalBytesMax;
        case FrameKind::kMessage: return UINT32_MAX;
        case FrameKind::kRead:
        case FrameKind::kReadData:
        case FrameKind::kWrite: return kFrameTransferMax;
    }
    return 0;
}

}  // namespace

FrameHeader encode_frame(const Frame& frame) {
    const Layout layout{.magic = kMagic,
                        .kind = static_cast<std::uint8_t>(frame.kind),
                        .zero = 0,
                        .length = frame.length,
                        .tag = frame.tag,
                        .zero_too = 0,
                        .key = frame.key,
                        .address = frame.address};
    return std::bit_cast<FrameHeader>(layout);
}

bool may_begin_frame(std::span<const std::byte> first_bytes) {
    static constexpr std::array<std::byte, sizeof kMagic> kBeginning{std::byte{kMagic & 0xff},
                                                                     std::byte{kMagic >> 8}};
    const std::size_t count = std::min(first_bytes.size(), kBeginning.size());
    return std::ranges::equal(first_bytes.first(count), std::span(kBeginning).first(count));
}

Result<Frame> decode_frame(std::span<const std::byte, kFrameHeaderBytes> header) {
    Layout layout;
    std::memcpy(&layout, header.data(), sizeof layout);
    if (layout.magic != kMagic) return bad_frame("no frame begins here");
    if (layout.zero != 0 || layout.zero_too != 0) return bad_frame("reserved bytes are not zero");
    const bool is_known = layout.kind >= static_cast<std::uint8_t>(FrameKind::kConnect) &&
                          layout.kind <= static_cast<std::uint8_t>(FrameKind::kWrite);
    if (!is_known) return bad_frame("unknown kind of frame");
    const Frame frame{.kind = static_cast<FrameKind>(layout.kind),
                      .length = layout.length,
                      .tag = layout.tag,
                      .key = layout.key,
                      .address = layout.address};
    if (frame.length > length_max(frame.kind))
        return bad_frame("frame longer than its kind allows");
    return frame;
}

}  // namespace fopd::fabric
