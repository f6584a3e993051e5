// Goal: a transfer that one side gives up ends alone, and memory that was given up or taken back is
// not touched any more, on every transport that can do so.
// Method: as in transport_conformance_test.cc. The peer has no turns while a transfer is given up,
// and then answers it late.

#include <string>

#include "tests/fabric/transport_kinds.h"

namespace transport_give_up_test {

using namespace fopd;
using namespace fopd::fabric;
using namespace fopd::fabric::testing;

namespace {

Kind any_kind() {
    return GENERATE(from_range(kAllKinds.begin(), kAllKinds.end()));
}

constexpr std::size_t kBytes = 1U << 20;
// Two have no room in the buffers of two sockets.
constexpr std::size_t kWriteBytes = 8U << 20;

}  // namespace

TEST_CASE("fabric transport: a read that is given up ends alone", "[fabric]") {
    const Kind kind = any_kind();
    // The request has not left yet, or the peer may have it.
    const bool at_once = GENERATE(true, false);
    CAPTURE(kind, at_once);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(std::string(kBytes, 't'));
    Memory& given_up = stage.server().memory(std::string(kBytes, '-'));
    Memory& kept = stage.server().memory(std::string(kBytes, '-'));
    const RemoteMemory opened = stage.client().open(theirs, Access::kRead);

    stage.client().loop().pause();
    Op* read = nullptr;
    bool has = false;
    const auto give_up = [&] { has = pair.server.connection->give_up(*read); };
    stage.server().run([&] {
        read = &pair.server.read(given_up, opened);
        if (at_once) give_up();
    });
    if (!at_once) stage.server().run(give_up);
    Op& other = pair.server.read(kept, opened);

    REQUIRE(has == kind.gives_up);
    if (has) {
        REQUIRE(stage.server().wait([&] { return read->done(); }));
        REQUIRE(read->failed_with(Errc::kCancelled));
        REQUIRE(given_up.bytes == std::string(kBytes, '-'));
    }
    stage.client().loop().resume();
    REQUIRE(stage.server().wait([&] { return other.done(); }));
    REQUIRE(other.fine());
    REQUIRE(kept.bytes == theirs.bytes);
    round_trip(stage, pair);
    REQUIRE(given_up.bytes == std::string(kBytes, has ? '-' : 't'));
    REQUIRE(read->completions == 1);
    stage.client().close(opened);
}

TEST_CASE("fabric transport: a write that is given up ends alone", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(std::string(4 * kWriteBytes, '.'));
    Memory& kept = stage.server().memory(std::string(100, 'k'));
    std::array<Memory*, 3> given_up{};
    for (Memory*& each : given_up) each = &stage.server().memory(std::string(kWriteBytes, 'w'));
    const RemoteMemory opened = stage.client().open(theirs, Access::kWrite);

    stage.client().loop().pause();
    std::array<Op*, 3> writes{};
    for (std::size_t i = 0; i < writes.size(); ++i) {
        writes[i] = &pair.server.write(
            *given_up[i], {.address = opened.address + i * kWriteBytes, .key = opened.key});
    }
    Op& other =
        pair.server.write(kept, {.address = opened.address + 3 * kWriteBytes, .key = opened.key});
    // The last one first: it has not begun to leave.
    std::size_t count = 0;
    stage.server().run([&] {
        for (std::size_t i = writes.size(); i > 0; --i) {
            if (writes[i - 1]->done()) continue;
            if (pair.server.connection->give_up(*writes[i - 1])) ++count;
        }
    });
    if (kind.gives_up) {
        for (const Op* each : writes) {
            REQUIRE(stage.server().wait([&] { return each->done(); }));
            REQUIRE((each->fine() || each->failed_with(Errc::kCancelled)));
        }
        // The next user of the memory.
        stage.server().run([&] {
            for (Memory* each : given_up) std::ranges::fill(each->bytes, 'S');
        });
    }
    stage.client().loop().resume();

    REQUIRE((count > 0) == kind.gives_up);
    REQUIRE(stage.server().wait([&] { return other.done(); }));
    REQUIRE(other.fine());
    round_trip(stage, pair);
    stage.client().close(opened);
    REQUIRE(theirs.bytes.substr(3 * kWriteBytes, 100) == kept.bytes);
    REQUIRE(std::ranges::count(theirs.bytes, 'S') == 0);
    for (const Op* each : writes) REQUIRE(each->completions == 1);
}

TEST_CASE("fabric transport: a transfer that has ended is given up without effect", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    if (!kind.gives_up) return;
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& memory = stage.server().memory(std::string(100, '-'));
    Op* read = nullptr;
    bool has = false;
    // Its completion is for the next turn.
    stage.server().run([&] {
        read = &pair.server.read(memory, {.address = 0, .key = 1});
        pair.server.connection->close();
        has = pair.server.connection->give_up(*read);
    });

    REQUIRE(has);
    REQUIRE(stage.server().wait([&] { return read->done(); }));
    REQUIRE(read->failed_with(Errc::kClosed));
}

TEST_CASE("fabric transport: memory that was taken back is not touched, and transfers go on",
          "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& readable = stage.client().memory(std::string(4096, 'r'));
    Memory& writable = stage.client().memory(std::string(4096, '.'));
    Memory& from = stage.server().memory(std::string(4096, 'w'));
    Memory& into = stage.server().memory(std::string(4096, '-'));
    const RemoteMemory source = stage.client().open(readable, Access::kRead);
    const RemoteMemory target = stage.client().open(writable, Access::kWrite);

    bool has = false;
    stage.client().run([&] {
        has = stage.client().machine().take_back_memory(source) &&
              stage.client().machine().take_back_memory(target);
    });
    Op& read = pair.server.read(into, source);
    Op& write = pair.server.write(from, target);

    REQUIRE(has == kind.gives_up);
    REQUIRE(stage.server().wait([&] { return read.done() && write.done(); }));
    REQUIRE((read.fine() && write.fine()));
    round_trip(stage, pair);
    REQUIRE(writable.bytes == std::string(4096, has ? '.' : 'w'));
    REQUIRE(into.bytes == std::string(4096, has ? '\0' : 'r'));
    stage.client().close(source);
    stage.client().close(target);
    // What was taken back is not more open than other memory.
    Op& trespass = pair.server.write(from, target);
    REQUIRE(stage.server().wait([&] { return trespass.done() && pair.server.closed; }));
}

// -- buffers that are used again --

TEST_CASE("fabric transport: a short answer shows nothing of the buffer's last user", "[fabric]") {
    const Kind kind = any_kind();
    CAPTURE(kind);
    Stage stage(kind);
    const Pair pair = stage.connect();
    Memory& theirs = stage.client().memory(std::string(kWriteBytes, 't'));
    const RemoteMemory opened = stage.client().open(theirs, Access::kRead);
    std::array<Memory*, 3> buffers{};
    for (Memory*& each : buffers) each = &stage.server().memory(std::string(kWriteBytes, 'S'));

    std::array<const Op*, 3> reads{};
    for (std::size_t i = 0; i < reads.size(); ++i) {
        reads[i] = &pair.server.read(*buffers[i], opened);
    }
    // The peer ends while its answers are on their way.
    REQUIRE(
        stage.server().wait([&] { return buffers[0]->bytes.front() == 't' || reads[0]->done(); }));
    pair.client.close();

    for (std::size_t i = 0; i < reads.size(); ++i) {
        REQUIRE(stage.server().wait([&] { return reads[i]->done(); }));
        if (reads[i]->fine()) {
            REQUIRE(buffers[i]->bytes == theirs.bytes);
        } else {
            REQUIRE(reads[i]->failed_with(Errc::kClosed));
        }
    }
    stage.client().close(opened);
}

}  // namespace transport_give_up_test
