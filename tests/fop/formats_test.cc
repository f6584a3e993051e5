// Goal: the worked examples in docs/formats/ are what the code does.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "fop/hex.h"
#include "tests/catch.h"
#include "tests/fop/handshake_pair.h"
#include "tests/fop/sealed_examples.h"

namespace fopd::fop {
namespace {

// Relative to the root of the project, where tests run.
std::string document(const std::string& name) {
    std::ifstream file("docs/formats/" + name);
    REQUIRE(file.good());
    return {std::istreambuf_iterator<char>(file), {}};
}

// As the documents show bytes: a name, then sixteen in a line, with the offset of the first.
std::string block(const std::string& name, std::span<const std::byte> bytes) {
    std::string text = "    " + name + ", " + std::to_string(bytes.size()) + " bytes\n";
    for (std::size_t at = 0; at < bytes.size(); at += 16) {
        const std::string offset = std::to_string(at);
        text += "    " + std::string(4 - offset.size(), ' ') + offset + " ";
        for (const std::byte byte : bytes.subspan(at, std::min<std::size_t>(16, bytes.size() - at)))
            text += " " + to_hex(std::span(&byte, 1));
        text += "\n";
    }
    return text;
}

void require_shown(const std::string& in, const std::string& name,
                   std::span<const std::byte> bytes) {
    const std::string text = block(name, bytes);
    INFO("the document should show\n" << text);
    REQUIRE(in.find(text) != std::string::npos);
}

}  // namespace

TEST_CASE("fop formats: the example of a handshake is a handshake", "[fop]") {
    const std::string text = document("handshake.md");
    HandshakePair pair;
    pair.run();
    REQUIRE(pair.both_done());
    const SessionKeys& keys = pair.server.session().keys;

    require_shown(text, "key", kAnnKey.bytes());
    require_shown(text, "client's random bytes", kExampleClientRandom.bytes());
    require_shown(text, "server's random bytes", kExampleServerRandom.bytes().first<64>());
    require_shown(text, "ConnectHello", example_connect_data().connect);
    require_shown(text, "AcceptHello", example_connect_data().accept);
    require_shown(text, "ClientHello", pair.said[0]);
    require_shown(text, "ServerHello", pair.said[1]);
    require_shown(text, "ClientFinish", pair.said[2]);
    require_shown(text, "Welcome", pair.said[3]);
    require_shown(text, "client MAC key", keys.client.bytes());
    require_shown(text, "server MAC key", keys.server.bytes());
    require_shown(text, "descriptor key", keys.descriptor.bytes());
}

TEST_CASE("fop formats: the example of a descriptor is one", "[fop]") {
    const std::string text = document("descriptor.md");

    require_shown(text, "descriptor key", kDescriptorKey.bytes());
    require_shown(text, "descriptor", seal(kDescriptor, kDescriptorKey));
}

TEST_CASE("fop formats: the example of a token is one", "[fop]") {
    const std::string text = document("token.md");
    const Issuer issuer(kIssuerSeed);
    const auto token = issuer.sign(kToken);

    require_shown(text, "issuer key", kIssuerSeed.bytes());
    require_shown(text, "issuer's public half", issuer.public_half().bytes);
    require_shown(text, "token", token);
    REQUIRE(text.find("\n    " + token_to_text(token) + "\n") != std::string::npos);
}

}  // namespace fopd::fop
