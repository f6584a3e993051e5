#include "lrs/classes/key.h"

#include <span>

#include "core/ensure.h"

namespace fopd::lrs {

namespace {

constexpr std::string_view kHexDigits = "0123456789abcdef";
constexpr std::string_view kSchemeEnd = "://";

void put_hex(std::uint64_t number, std::span<char, 16> digits) {
    for (std::size_t i = digits.size(); i > 0; --i, number >>= 4) {
        digits[i - 1] = kHexDigits[number & 15];
    }
}

std::string_view hex_of_object(const fop::Fid& object, Digits& digits) {
    if (!object.is_set()) return {};
    put_hex(object.high, std::span(digits).first<16>());
    put_hex(object.low, std::span(digits).last<16>());
    return {digits.data(), digits.size()};
}

}  // namespace

std::string_view hex_of_client(const ClientId& client, Digits& digits) {
    for (std::size_t i = 0; i < client.size(); ++i) {
        const auto byte = std::to_integer<unsigned>(client[i]);
        digits[2 * i] = kHexDigits[byte >> 4];
        digits[2 * i + 1] = kHexDigits[byte & 15];
    }
    return {digits.data(), digits.size()};
}

std::string_view scheme_of(std::string_view peer) {
    const std::size_t end = peer.find(kSchemeEnd);
    return end == std::string_view::npos ? std::string_view() : peer.substr(0, end);
}

std::string_view host_of(std::string_view peer) {
    const std::size_t scheme_end = peer.find(kSchemeEnd);
    if (scheme_end != std::string_view::npos) peer.remove_prefix(scheme_end + kSchemeEnd.size());
    if (peer.starts_with('[')) {
        const std::size_t end = peer.find(']');
        return end == std::string_view::npos ? peer : peer.substr(1, end - 1);
    }
    return peer.substr(0, peer.rfind(':'));
}

std::string_view text_of(Key key, const RequestAttributes& attributes, Digits& digits) {
    switch (key) {
        case Key::kAddress: return host_of(attributes.peer);
        case Key::kClient: return hex_of_client(attributes.client, digits);
        case Key::kGroup:
            return attributes.groups.empty() ? std::string_view() : attributes.groups.front();
        case Key::kJob: return attributes.job;
        case Key::kNetwork: return scheme_of(attributes.peer);
        case Key::kObject: return hex_of_object(attributes.object, digits);
        case Key::kOp: {
            const fop::FopType* const type = fop::find_fop_type(attributes.type);
            return type == nullptr ? std::string_view() : type->name;
        }
        case Key::kPool: return attributes.pool;
        case Key::kPrincipal: return attributes.principal;
        case Key::kUser: return attributes.user;
        case Key::kSize: break;
    }
    ensure_failed("a key with text", __FILE__, __LINE__);
}

}  // namespace fopd::lrs
