#include "fop/key_schedule.h"

#include <string_view>

#include <sodium.h>

#include "core/ensure.h"
#include "fop/unsigned_bytes.h"

namespace fopd::fop {
namespace {

constexpr std::string_view kTranscriptLabel = "fopd handshake";

}  // namespace

Transcript::Transcript(const ConnectHello::Bytes& connect, const AcceptHello::Bytes& accept)
    : value_(hash({std::as_bytes(std::span(kTranscriptLabel)), connect, accept})) {}

void Transcript::add(std::span<const std::byte> bytes) {
    value_ = hash({value_, bytes});
}

PublicKey public_key(const Key& secret) {
    PublicKey made;
    const int failed = crypto_scalarmult_curve25519_base(out(made), in(secret.bytes()));
    ENSURE(failed == 0);
    return made;
}

std::optional<KeySchedule> KeySchedule::make(const Inputs& inputs) {
    Key shared;
    const int failed = crypto_scalarmult_curve25519(
        out(shared.writable()), in(inputs.own_secret.bytes()), in(inputs.peer_public));
    if (failed != 0 || shared == Key{}) return std::nullopt;

    Hash made = keyed_hash(inputs.shared_before, {shared.bytes(), inputs.transcript.value()});
    const Key root(made);
    wipe(made);
    return KeySchedule{.server_finish = derive<Key>(root, "fopd server finish"),
                       .client_finish = derive<Key>(root, "fopd client finish"),
                       .welcome = derive<Key>(root, "fopd welcome"),
                       .session = {.client = derive<MacKey>(root, "fopd client mac"),
                                   .server = derive<MacKey>(root, "fopd server mac"),
                                   .descriptor = derive<MacKey>(root, "fopd descriptor")},
                       .records = {.client = derive<Key>(root, "fopd client records"),
                                   .server = derive<Key>(root, "fopd server records")}};
}

}  // namespace fopd::fop
