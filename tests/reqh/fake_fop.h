#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/copy_bytes.h"
#include "core/virtual_world.h"
#include "fabric/rpc/incoming.h"
#include "fop/borrowed.h"
#include "lrs/fifo.h"
#include "reqh/request_handler.h"
#include "tests/catch.h"
#include "tests/replay.h"

namespace fopd::reqh::testing {

using Bytes = std::vector<std::byte>;

inline constexpr std::uint64_t kOneBuffer = core::kBufferBytes;

inline Bytes bytes_of(std::string_view text) {
    const auto span = std::as_bytes(std::span(text));
    return {span.begin(), span.end()};
}

// How a fop comes in, and how its transfers go.
struct FopSpec {
    std::uint16_t type = 1;
    fop::RequestBody body = fop::Ping{};
    std::string payload{};
    Bytes payload_bytes{};  // Instead.
    std::string token{};
    std::string pool{};
    std::string job{};
    std::string user{};  // Empty: the principal.
    std::string address = "mem://client:1";
    fop::Rights rights = fop::kAllRights;
    std::string principal = "alice";
    fop::AuthKind kind = fop::AuthKind::kPrincipal;
    std::vector<std::string> groups{};
    std::array<std::byte, 16> client{};
    // The client's own number; 0: the next one.
    std::uint64_t number = 0;
    // What it lends to be read, and how much to be written to.
    Bytes source{};
    std::size_t target_bytes = 0;
    Instant deadline = kNever;
    fop::Status fault = fop::Status::kDone;
    Duration transfer_time{0};
    // The transfer that fails, counted from 0.
    std::optional<std::size_t> failing_transfer{};
    Errc transfer_error = Errc::kDenied;
    bool wants_times = false;
    bool has_memory = true;  // In the share of its principal.
};

inline FopSpec ping() {
    return {};
}
inline FopSpec echo(std::string payload) {
    return {.type = 2, .body = fop::Echo{}, .payload = std::move(payload)};
}
inline FopSpec bulk_echo(std::uint64_t bytes, Duration transfer_time = 1ms) {
    return {.type = 3, .body = fop::BulkEcho{.bytes = bytes}, .transfer_time = transfer_time};
}

// A fop as RPC would bring it. The client's memory is a vector on either side.
class FakeFop final : public fabric::IncomingFop {
public:
    struct Transfer {
        bool is_pull;
        std::uint64_t offset;
        std::size_t size_bytes;
    };
    struct Answer {
        std::uint64_t id;
        fop::Status status;
        std::string words;
        Bytes payload;
        fop::ReplyBody body;
        Bytes borrowed;
        Instant at;
        std::optional<fop::TimeSpent> times{};
    };

    FakeFop(core::Reactor& reactor, std::uint64_t id, FopSpec spec)
        : reactor_(reactor),
          spec_(std::move(spec)),
          payload_(spec_.payload_bytes.empty() ? bytes_of(spec_.payload) : spec_.payload_bytes),
          token_(bytes_of(spec_.token)) {
        header_.pool = spec_.pool;
        header_.job = spec_.job;
        header_.wants_times = spec_.wants_times;
        caller_ = {.session = 0x5f,
                   .client = spec_.client,
                   .kind = spec_.kind,
                   .principal = spec_.principal,
                   .owner = fabric::request_owner(spec_.client, spec_.kind, spec_.principal),
                   .share = fop::share_name({.kind = spec_.kind, .name = spec_.principal}),
                   .user = spec_.user.empty() ? spec_.principal : spec_.user,
                   .groups = spec_.groups,
                   .rights = spec_.rights,
                   .address = spec_.address};
        request_.id = spec_.number != 0 ? spec_.number : id;
        request_.type = spec_.type;
        request_.token = token_;
        request_.payload = payload_;
        request_.body = spec_.body;
        request_.fault = spec_.fault;
        source = spec_.source;
        target.resize(spec_.target_bytes);
        if (const auto* const bulk = std::get_if<fop::BulkEcho>(&spec_.body)) {
            lend(std::min<std::uint64_t>(bulk->bytes, 16U << 20));
        }
    }

    const fop::Request& request() const override { return request_; }
    const fop::RequestHeader& header() const override { return header_; }
    const fabric::Caller& caller() const override { return caller_; }
    Instant deadline() const override { return spec_.deadline; }
    core::CancelSource& cancel_source() override { return cancel_; }
    void started() override {
        REQUIRE_FALSE(has_started);
        has_started = true;
    }
    void takes_memory(std::uint64_t bytes) override { memory_taken += bytes; }
    bool may_take_memory(std::uint64_t) override { return spec_.has_memory; }

    Task<Result<void>> pull(const fop::SealedDescriptor* descriptor, std::uint64_t offset,
                            core::Buffer into) override {
        REQUIRE(descriptor == source_descriptor());
        REQUIRE(offset + into.size_bytes <= source.size());
        const auto moved = co_await transfer({true, offset, into.size_bytes});
        if (!moved) co_return std::unexpected(moved.error());
        core::copy_bytes(std::span(source).subspan(offset, into.size_bytes), into.span());
        co_return Result<void>{};
    }
    Task<Result<void>> push(const fop::SealedDescriptor* descriptor, std::uint64_t offset,
                            core::Buffer from) override {
        REQUIRE(descriptor == target_descriptor());
        REQUIRE(offset + from.size_bytes <= target.size());
        const auto moved = co_await transfer({false, offset, from.size_bytes});
        if (!moved) co_return std::unexpected(moved.error());
        core::copy_bytes(from.span(), std::span(target).subspan(offset));
        co_return Result<void>{};
    }

    void reply(const fop::Reply& reply) override {
        REQUIRE_FALSE(answer.has_value());
        answer = Answer{.id = reply.id,
                        .status = reply.status,
                        .words = std::string(reply.words),
                        .payload = {reply.payload.begin(), reply.payload.end()},
                        .body = reply.body,
                        .borrowed = Bytes(fop::borrowed_bytes(reply.body)),
                        .at = reactor_.now(),
                        .times = reply.times};
        fop::keep_borrowed(answer->body, answer->borrowed);
    }

    fop::Status status() const {
        REQUIRE(answer.has_value());
        return answer->status;
    }

    bool has_started = false;
    std::uint64_t memory_taken = 0;  // What it was told with takes_memory().
    std::optional<Answer> answer;
    std::vector<Transfer> transfers;
    Bytes source;
    Bytes target;

private:
    void lend(std::size_t size_bytes) {
        static const Bytes bytes = [] {
            Bytes made(16U << 20);
            for (std::size_t i = 0; i < made.size(); ++i)
                made[i] = static_cast<std::byte>(i * 7 + i / 251);
            return made;
        }();
        source.resize(size_bytes);
        core::copy_bytes(std::span(bytes).first(size_bytes), source);
        target.resize(size_bytes);
    }
    const fop::SealedDescriptor* source_descriptor() const {
        const fop::RequestBody& body = request_.body;
        if (const auto* const bulk = std::get_if<fop::BulkEcho>(&body)) return &bulk->source;
        if (const auto* const each = std::get_if<fop::Write>(&body)) return &*each->source;
        if (const auto* const each = std::get_if<fop::Append>(&body)) return &*each->source;
        if (const auto* const each = std::get_if<fop::UploadWrite>(&body)) return &*each->source;
        return nullptr;
    }
    const fop::SealedDescriptor* target_descriptor() const {
        const fop::RequestBody& body = request_.body;
        if (const auto* const bulk = std::get_if<fop::BulkEcho>(&body)) return &bulk->target;
        if (const auto* const each = std::get_if<fop::Read>(&body)) return &*each->target;
        return nullptr;
    }
    Task<Result<void>> transfer(Transfer which) {
        const std::size_t number = transfers.size();
        transfers.push_back(which);
        const Instant end = after(reactor_.now(), spec_.transfer_time);
        const auto slept = co_await reactor_.sleep_until(std::min(end, spec_.deadline), &cancel_);
        if (!slept) co_return std::unexpected(slept.error());
        if (end > spec_.deadline)
            co_return std::unexpected(Error{.code = Errc::kTimedOut, .context = "transfer"});
        if (number == spec_.failing_transfer)
            co_return std::unexpected(Error{.code = spec_.transfer_error, .context = "descriptor"});
        co_return Result<void>{};
    }

    core::Reactor& reactor_;
    const FopSpec spec_;
    const Bytes payload_;
    const Bytes token_;
    fop::Request request_;
    fop::RequestHeader header_;
    fabric::Caller caller_;
    core::CancelSource cancel_;
};

// Tokens are their own description: "read", "mallory's", "for pool x", "of an object", "for a
// second", what token_for() makes; what else is said is no token.
class FakeVerdicts final : public TokenVerdicts {
public:
    Result<TokenGrant> check(std::span<const std::byte> token, Instant now) override {
        ++checks;
        const std::string_view text(reinterpret_cast<const char*>(token.data()), token.size());
        TokenGrant grant{.rights = fop::kAllRights};
        if (text == "read") {
            grant.rights = fop::kRead;
        } else if (text == "mallory's") {
            grant.principal = "mallory";
        } else if (text == "alice's") {
            grant.principal = "alice";
        } else if (text.starts_with("for pool ")) {
            grant.pool = text.substr(9);
        } else if (text == "of an object") {
            grant.object = fop::Fid{.high = 1, .low = 2};
        } else if (text.starts_with("lends ")) {
            read_lent(text.substr(6), grant);
        } else if (text == "for a second") {
            grant.expires_at = now + 1s;
        } else if (!text.starts_with("any ")) {
            return std::unexpected(Error{.code = Errc::kDenied, .context = "no token"});
        }
        return grant;
    }
    std::uint64_t version() const override { return version_now; }

    // "lends RIGHTS/POOL/HIGH.LOW".
    static void read_lent(std::string_view text, TokenGrant& grant) {
        const std::size_t pool_at = text.find('/');
        const std::size_t object_at = text.find('/', pool_at + 1);
        grant.rights = fop::parse_rights(text.substr(0, pool_at)).value();
        grant.pool = text.substr(pool_at + 1, object_at - pool_at - 1);
        const std::string object(text.substr(object_at + 1));
        const std::size_t low_at = object.find('.') + 1;
        const fop::Fid fid{.high = std::stoull(object), .low = std::stoull(object.substr(low_at))};
        if (fid.is_set()) grant.object = fid;
    }

    std::uint64_t checks = 0;
    std::uint64_t version_now = 1;
};

// The token that lends these rights: everywhere, in a pool, or with an object.
inline std::string token_for(fop::Rights rights, std::string_view pool = {}, fop::Fid object = {}) {
    return "lends " + fop::to_text(rights) + "/" + std::string(pool) + "/" +
           std::to_string(object.high) + "." + std::to_string(object.low);
}

// Keeps what was said.
class KeptEvents final : public core::EventSink {
public:
    struct Event {
        core::Level level;
        std::string name;
        std::map<std::string, std::string> texts;
        std::map<std::string, double> numbers;
    };
    void emit(core::Level level, std::string_view name,
              std::span<const core::Field> fields) override {
        Event& event = events.emplace_back();
        event.level = level;
        event.name = name;
        for (const core::Field& field : fields) {
            const std::string key(field.key);
            if (const auto* const text = std::get_if<std::string_view>(&field.value))
                event.texts[key] = *text;
            if (const auto* const number = std::get_if<double>(&field.value))
                event.numbers[key] = *number;
            if (const auto* const count = std::get_if<std::uint64_t>(&field.value))
                event.numbers[key] = static_cast<double>(*count);
        }
    }
    bool wants(core::Level /*level*/) const override { return true; }

    std::vector<Event> events;
};

// One locality's request handler in a world of its own.
class HandlerWorld : fopd::testing::Replay {
public:
    struct Options {
        std::uint32_t max_foms = 8;
        std::size_t buffer_count = 16;
        std::uint64_t seed = 11;
    };

    HandlerWorld() : HandlerWorld(Options{}) {}
    explicit HandlerWorld(const Options& options)
        : Replay(options.seed),
          world(options.seed),
          reactor(world.make_reactor()),
          buffers(*reactor),
          requests(*reactor, lrs::make_fifo()),
          handler({.reactor = *reactor,
                   .work = work,
                   .buffers = buffers,
                   .requests = requests,
                   .tokens = verdicts,
                   .events = events},
                  {.max_foms = options.max_foms}) {
        const auto opened = buffers.open(options.buffer_count * core::kBufferBytes);
        REQUIRE(opened.has_value());
    }
    // As a process that is killed: the coroutines go where they are, then what they used.
    ~HandlerWorld() { reactor->drop_coroutines(); }

    // Fops arrive in a turn of the reactor; it knows the time by that.
    FakeFop& send(FopSpec spec) {
        reactor->turn(world.now());
        FakeFop& fop = fops.emplace_back(*reactor, fops.size() + 1, std::move(spec));
        handler.on_incoming(fop);
        return fop;
    }
    // Lets what is due now happen; time stays.
    void settle() { world.run_for(0ns); }

    bool all_buffers_are_back() const { return buffers.free_count() == buffers.total_count(); }
    const fop::FopType& type(std::string_view name) const { return *fop::find_fop_type(name); }

    core::VirtualWorld world;
    std::unique_ptr<core::Reactor> reactor;
    core::Gate work;
    core::BufferPool buffers;
    lrs::Scheduler requests;
    FakeVerdicts verdicts;
    KeptEvents events;
    std::deque<FakeFop> fops;
    RequestHandler handler;
};

}  // namespace fopd::reqh::testing
