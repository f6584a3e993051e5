#include "fop/handshake.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::fop {
namespace {

// The same answer for an unknown key, another principal's key, and a wrong proof.
constexpr std::string_view kNotProved = "not authenticated";
constexpr std::string_view kKeyNeeded = "a key is needed here";
constexpr std::string_view kEncryptionNeeded =
    "this server encrypts: ask for it with --protect encrypt";
constexpr std::string_view kNoEncryption =
    "this server does not encrypt: its fabric.protect is seal";
constexpr std::string_view kOver = "the handshake is over";

// Both machines end their messages in the same way: the transcript adds the bytes before the MAC,
// the MAC covers the transcript, and the transcript adds the MAC.
FinishMac take_in(Transcript& transcript, const Key& key, std::span<const std::byte> body) {
    transcript.add(body);
    const FinishMac mac = keyed_hash(key, {transcript.value()});
    transcript.add(mac);
    return mac;
}

// Writes the MAC of the message encoded at the start of `outgoing`.
void seal(Transcript& transcript, const Key& key, std::span<const std::byte> encoded,
          std::span<std::byte> outgoing) {
    const auto body = without_mac(encoded);
    const FinishMac mac = take_in(transcript, key, body);
    std::ranges::copy(mac, outgoing.begin() + static_cast<std::ptrdiff_t>(body.size()));
}

RefusalReason reason_of(const Error& error) {
    return error.code == Errc::kUnsupported ? RefusalReason::kVersion : RefusalReason::kMalformed;
}

// The peer's reason, or a default if the reason is unknown.
Refusal refused_by_peer(std::span<const std::byte> bytes) {
    const auto refused = decode_refused(bytes);
    if (!refused) {
        return {RefusedBy::kPeer, RefusalReason::kMalformed, "refused without a legible reason"};
    }
    return {RefusedBy::kPeer, refused->reason, std::string(refused->words)};
}

}  // namespace

ClientHandshake::ClientHandshake(Options options, const ClientRandom& random)
    : options_(std::move(options)), ephemeral_(random.bytes().first<32>()) {
    const Credentials& credentials = options_.credentials;
    const bool has_key = !(credentials.key == Key{});
    ENSURE(has_key == (credentials.kind != AuthKind::kNone));
    ClientHello hello{.auth = credentials.kind,
                      .protection = options_.protection,
                      .major = kMajorVersion,
                      .minor = kMinorVersion,
                      .ephemeral = public_key(ephemeral_),
                      .offer = options_.offer,
                      .name = credentials.name,
                      .user = credentials.user};
    std::ranges::copy(random.bytes().last<32>(), hello.nonce.begin());
    if (has_key) hello.key_id = key_id(credentials.key);
    hello_bytes_ = encode(hello, hello_).size();
}

std::span<const std::byte> ClientHandshake::start(const ConnectData& connect_data) {
    ENSURE(waiting_ == Waiting::kForStart);
    transcript_.emplace(connect_data.connect, connect_data.accept);
    transcript_->add(hello());
    waiting_ = Waiting::kForServerHello;
    return hello();
}

HandshakeStep ClientHandshake::consume(std::span<const std::byte> bytes) {
    if (refusal_) return {HandshakeState::kRefused, {}};
    if (waiting_ == Waiting::kForNothing) return refuse(RefusalReason::kMalformed, kOver);
    if (is_refused(bytes)) {
        waiting_ = Waiting::kForNothing;
        refusal_ = refused_by_peer(bytes);
        return {HandshakeState::kRefused, {}};
    }
    switch (waiting_) {
        case Waiting::kForServerHello: return on_server_hello(bytes);
        case Waiting::kForWelcome: return on_welcome(bytes);
        default: return refuse(RefusalReason::kMalformed, "nothing was asked yet");
    }
}

HandshakeStep ClientHandshake::on_server_hello(std::span<const std::byte> bytes) {
    const auto hello = decode_server_hello(bytes);
    if (!hello) return refuse(reason_of(hello.error()), hello.error().context);

    Transcript before_proof = *transcript_;
    before_proof.add(without_mac(bytes));
    keys_ = KeySchedule::make({.shared_before = options_.credentials.key,
                               .own_secret = ephemeral_,
                               .peer_public = hello->ephemeral,
                               .transcript = before_proof});
    wipe(ephemeral_.writable());
    if (!keys_) return refuse(RefusalReason::kMalformed, "a weak ephemeral key");
    const auto expected = take_in(*transcript_, keys_->server_finish, without_mac(bytes));
    if (!same_bytes(expected, hello->mac)) return refuse(RefusalReason::kDenied, kNotProved);

    server_ = hello->offer;
    const auto encoded = encode(ClientFinish{}, outgoing_);
    seal(*transcript_, keys_->client_finish, encoded, outgoing_);
    waiting_ = Waiting::kForWelcome;
    return {HandshakeState::kRunning, encoded};
}

HandshakeStep ClientHandshake::on_welcome(std::span<const std::byte> bytes) {
    const auto welcome = decode_welcome(bytes);
    if (!welcome) return refuse(reason_of(welcome.error()), welcome.error().context);
    const auto expected = take_in(*transcript_, keys_->welcome, without_mac(bytes));
    if (!same_bytes(expected, welcome->mac)) return refuse(RefusalReason::kDenied, kNotProved);

    session_ = ClientSession{.keys = keys_->session,
                             .records = keys_->records,
                             .name = std::string(welcome->name),
                             .rights = welcome->rights,
                             .server = server_,
                             .grant = welcome->grant,
                             .resumed = welcome->resumed};
    keys_.reset();
    waiting_ = Waiting::kForNothing;
    return {HandshakeState::kDone, {}};
}

HandshakeStep ClientHandshake::refuse(RefusalReason reason, std::string_view words) {
    waiting_ = Waiting::kForNothing;
    keys_.reset();
    wipe(ephemeral_.writable());
    refusal_ = Refusal{RefusedBy::kUs, reason, std::string(words)};
    return {HandshakeState::kRefused, encode(Refused{reason, refusal_->words}, outgoing_)};
}

const ClientSession& ClientHandshake::session() const {
    ENSURE(session_.has_value());
    return *session_;
}

const Refusal& ClientHandshake::refusal() const {
    ENSURE(refusal_.has_value());
    return *refusal_;
}

ServerHandshake::ServerHandshake(const Options& options, const ServerRandom& random)
    : options_(options),
      random_(random),
      transcript_(options_.connect_data.connect, options_.connect_data.accept) {}

bool ServerHandshake::is_promised(std::span<const std::byte> bytes) const {
    const auto hello = decode_connect_hello(options_.connect_data.connect);
    return hello && promise_of(bytes) == hello->promise;
}

bool ServerHandshake::proves(std::span<const std::byte> bytes) const {
    if (waiting_ != Waiting::kForClientFinish || !known_) return false;
    const auto finish = decode_client_finish(bytes);
    if (!finish) return false;
    Transcript transcript = transcript_;
    return same_bytes(take_in(transcript, keys_->client_finish, without_mac(bytes)), finish->mac);
}

HandshakeStep ServerHandshake::consume(std::span<const std::byte> bytes,
                                       const Admission& admission) {
    if (refusal_) return {HandshakeState::kRefused, {}};
    if (waiting_ == Waiting::kForNothing) return refuse(RefusalReason::kMalformed, kOver);
    if (is_refused(bytes)) {
        waiting_ = Waiting::kForNothing;
        refusal_ = refused_by_peer(bytes);
        return {HandshakeState::kRefused, {}};
    }
    if (waiting_ == Waiting::kForClientHello) return on_client_hello(bytes, admission);
    return on_client_finish(bytes, admission);
}

HandshakeStep ServerHandshake::on_client_hello(std::span<const std::byte> bytes,
                                               const Admission& admission) {
    const auto hello = decode_client_hello(bytes);
    if (!hello) return refuse(reason_of(hello.error()), hello.error().context);
    claimed_ = Identity{.kind = hello->auth,
                        .name = std::string(hello->name),
                        .user = std::string(hello->user),
                        .groups = {},
                        .rights = {},
                        .key_id = hello->key_id};
    client_ = hello->offer;
    minor_version_ = std::min(hello->minor, kMinorVersion);
    if (hello->protection != options_.protection) {
        const bool wants_less = hello->protection == Protection::kSeal;
        return refuse(RefusalReason::kDenied, wants_less ? kEncryptionNeeded : kNoEncryption);
    }

    const auto secret = random_.bytes();
    const Key ephemeral(secret.first<32>());
    known_ = admission.find(*claimed_);
    if (!known_ && hello->auth == AuthKind::kNone) {
        return refuse(RefusalReason::kAuthenticationNeeded, kKeyNeeded);
    }
    // For an unknown key, continues with a random one, and so fails at the same step as with a
    // wrong key.
    const Key shared_before = known_ ? known_->key : Key(secret.last<32>());

    transcript_.add(bytes);
    ServerHello answer{
        .ephemeral = public_key(ephemeral), .nonce = {}, .offer = options_.offer, .mac = {}};
    std::ranges::copy(secret.subspan<32, 32>(), answer.nonce.begin());
    const auto encoded = encode(answer, outgoing_);
    Transcript before_proof = transcript_;
    before_proof.add(without_mac(encoded));
    keys_ = KeySchedule::make({.shared_before = shared_before,
                               .own_secret = ephemeral,
                               .peer_public = hello->ephemeral,
                               .transcript = before_proof});
    wipe(random_.writable());
    if (!keys_) return refuse(RefusalReason::kMalformed, "a weak ephemeral key");
    seal(transcript_, keys_->server_finish, encoded, outgoing_);
    waiting_ = Waiting::kForClientFinish;
    return {HandshakeState::kRunning, encoded};
}

HandshakeStep ServerHandshake::on_client_finish(std::span<const std::byte> bytes,
                                                const Admission& admission) {
    const auto finish = decode_client_finish(bytes);
    if (!finish) return refuse(reason_of(finish.error()), finish.error().context);
    const bool is_proved = proves(bytes);
    take_in(transcript_, keys_->client_finish, without_mac(bytes));
    // The key may have been revoked, or its rights changed, since the hello.
    auto known = admission.find(*claimed_);
    if (!known && claimed_->kind == AuthKind::kNone) {
        return refuse(RefusalReason::kAuthenticationNeeded, kKeyNeeded);
    }
    if (!is_proved || !known || !(known->key == known_->key)) {
        return refuse(RefusalReason::kDenied, kNotProved);
    }
    if (!may_act(*known)) {
        return refuse(RefusalReason::kDenied, "this principal may not act for another user");
    }
    session_ = ServerSession{.keys = keys_->session,
                             .records = keys_->records,
                             .identity = std::move(known->identity),
                             .client = client_,
                             .minor_version = minor_version_};
    waiting_ = Waiting::kForWelcome;
    return {HandshakeState::kProved, {}};
}

HandshakeStep ServerHandshake::welcome(bool resumed) {
    ENSURE(waiting_ == Waiting::kForWelcome);
    const Identity& identity = session_->identity;
    const auto encoded = encode(Welcome{.rights = identity.rights,
                                        .name = identity.name,
                                        .grant = options_.grant,
                                        .resumed = resumed,
                                        .mac = {}},
                                outgoing_);
    seal(transcript_, keys_->welcome, encoded, outgoing_);
    keys_.reset();
    known_.reset();
    waiting_ = Waiting::kForNothing;
    return {HandshakeState::kDone, encoded};
}

HandshakeStep ServerHandshake::refuse(RefusalReason reason, std::string_view words) {
    waiting_ = Waiting::kForNothing;
    keys_.reset();
    known_.reset();
    wipe(random_.writable());
    refusal_ = Refusal{RefusedBy::kUs, reason, std::string(words)};
    return {HandshakeState::kRefused, encode(Refused{reason, refusal_->words}, outgoing_)};
}

const ServerSession& ServerHandshake::session() const {
    ENSURE(session_.has_value());
    return *session_;
}

const Refusal& ServerHandshake::refusal() const {
    ENSURE(refusal_.has_value());
    return *refusal_;
}

}  // namespace fopd::fop
