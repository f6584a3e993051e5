#include "fop/descriptor.h"

#include <limits>

#include "core/ensure.h"
#include "fop/bytes.h"
#include "fop/mac.h"

namespace fopd::fop {
namespace {

constexpr std::uint8_t kLayout = 1;
constexpr std::size_t kMacOffset = Descriptor::kSizeBytes - sizeof(Mac128);

std::unexpected<Error> refused(Errc code, const char* why) {
    return std::unexpected(Error{.code = code, .context = why});
}

}  // namespace

Descriptor::Bytes seal(const Descriptor& descriptor, const MacKey& key) {
    Descriptor::Bytes bytes;
    ByteWriter writer(bytes);
    writer.number(kLayout);
    writer.number(static_cast<std::uint8_t>(descriptor.use));
    writer.number(std::uint16_t{0});
    writer.number(std::uint32_t{0});
    writer.number(descriptor.session);
    writer.number(descriptor.operation);
    writer.number(descriptor.address);
    writer.number(descriptor.key);
    writer.number(descriptor.bytes);
    ENSURE(writer.size() == kMacOffset);
    writer.put(mac(key, writer.written()).bytes);
    return bytes;
}

Result<Descriptor> check_descriptor(std::span<const std::byte> bytes, const MacKey& key,
                                    const DescriptorNeed& need) {
    if (bytes.size() != Descriptor::kSizeBytes) {
        return refused(Errc::kInvalid, "a descriptor has 64 bytes");
    }
    ByteReader reader(bytes);
    const auto layout = reader.number<std::uint8_t>();
    const auto use = reader.number<std::uint8_t>();
    const auto zero_16 = reader.number<std::uint16_t>();
    const auto zero_32 = reader.number<std::uint32_t>();
    Descriptor descriptor;
    descriptor.session = reader.number<std::uint64_t>();
    descriptor.operation = reader.number<std::uint64_t>();
    descriptor.address = reader.number<std::uint64_t>();
    descriptor.key = reader.number<std::uint64_t>();
    descriptor.bytes = reader.number<std::uint64_t>();
    Mac128 sealed;
    reader.take_into(sealed.bytes);
    ENSURE(reader.complete());

    if (sealed != mac(key, bytes.first(kMacOffset))) {
        return refused(Errc::kDenied, "the descriptor was not sealed for this session");
    }
    const bool is_known_use = use == static_cast<std::uint8_t>(DescriptorUse::kPeerReads) ||
                              use == static_cast<std::uint8_t>(DescriptorUse::kPeerWrites);
    if (layout != kLayout || !is_known_use || zero_16 != 0 || zero_32 != 0) {
        return refused(Errc::kInvalid, "a descriptor of an unknown layout");
    }
    descriptor.use = static_cast<DescriptorUse>(use);
    if (descriptor.session != need.session) {
        return refused(Errc::kDenied, "the descriptor belongs to another session");
    }
    if (descriptor.operation != need.operation) {
        return refused(Errc::kDenied, "the descriptor belongs to another operation");
    }
    if (descriptor.use != need.use) {
        return refused(Errc::kDenied, "the descriptor does not allow this direction");
    }
    if (descriptor.bytes < need.bytes) {
        return refused(Errc::kDenied, "the descriptor's memory is too small");
    }
    if (descriptor.bytes > std::numeric_limits<std::uint64_t>::max() - descriptor.address) {
        return refused(Errc::kInvalid, "the descriptor's memory goes beyond the end of all memory");
    }
    return descriptor;
}

}  // namespace fopd::fop
