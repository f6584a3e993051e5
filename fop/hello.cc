#include "fop/hello.h"

#include "core/ensure.h"
#include "fop/bytes.h"
#include "fop/invalid.h"

namespace fopd::fop {
namespace {

// The eight bytes at the start of both.
template <typename Hello>
Result<Hello> decode_start(ByteReader& reader) {
    Hello hello;
    const auto magic = reader.number<std::uint32_t>();
    hello.major = reader.number<std::uint8_t>();
    hello.minor = reader.number<std::uint8_t>();
    hello.locality = reader.number<std::uint16_t>();
    if (!reader.ok()) return invalid("the connect data is cut short");
    if (magic != kMagic) return invalid("the peer does not speak fopd's protocol");
    if (hello.major != kMajorVersion) {
        return std::unexpected(Error{.code = Errc::kUnsupported,
                                     .context = "the peer speaks another version of the protocol"});
    }
    return hello;
}

template <typename Hello>
ByteWriter encode_start(const Hello& hello, typename Hello::Bytes& bytes) {
    ByteWriter writer(bytes);
    writer.number(kMagic);
    writer.number(hello.major);
    writer.number(hello.minor);
    writer.number(hello.locality);
    return writer;
}

}  // namespace

ConnectHello::Bytes encode(const ConnectHello& hello) {
    ConnectHello::Bytes bytes;
    ByteWriter writer = encode_start(hello, bytes);
    writer.put(hello.client_id);
    writer.number(hello.session);
    writer.put(hello.promise);
    ENSURE(writer.size() == bytes.size());
    return bytes;
}

AcceptHello::Bytes encode(const AcceptHello& hello) {
    AcceptHello::Bytes bytes;
    ByteWriter writer = encode_start(hello, bytes);
    writer.number(hello.session);
    writer.number(hello.incarnation);
    writer.number(std::uint64_t{0});
    ENSURE(writer.size() == bytes.size());
    return bytes;
}

Result<ConnectHello> decode_connect_hello(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    auto hello = decode_start<ConnectHello>(reader);
    if (!hello) return hello;
    reader.take_into(hello->client_id);
    hello->session = reader.number<std::uint64_t>();
    reader.take_into(hello->promise);
    if (!reader.ok()) return invalid("the connect data is cut short");
    return hello;
}

Result<AcceptHello> decode_accept_hello(std::span<const std::byte> bytes) {
    ByteReader reader(bytes);
    auto hello = decode_start<AcceptHello>(reader);
    if (!hello) return hello;
    hello->session = reader.number<std::uint64_t>();
    hello->incarnation = reader.number<std::uint64_t>();
    const auto reserved = reader.number<std::uint64_t>();
    if (!reader.ok()) return invalid("the connect data is cut short");
    // A newer daemon may use these bytes.
    if (reserved != 0 && hello->minor <= kMinorVersion) {
        return invalid("the connect data has something where zeros belong");
    }
    return hello;
}

}  // namespace fopd::fop
