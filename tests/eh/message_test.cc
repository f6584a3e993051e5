// Goal: messages and views are read as they were written, and nothing else is.

#include "eh/peers/message.h"

#include <string>
#include <utility>
#include <vector>

#include "eh/view.h"
#include "tests/catch.h"

namespace message_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;

namespace {

std::vector<std::byte> some_bytes(std::size_t size) {
    std::vector<std::byte> bytes(size);
    for (std::size_t i = 0; i < size; ++i) bytes[i] = static_cast<std::byte>(i * 7);
    return bytes;
}

View some_view(ViewNumber number, std::size_t members) {
    View view{.number = number, .epoch_low = 1, .epoch_high = 1000};
    for (std::size_t i = 0; i < members; ++i) {
        view.roster.push_back({.name = "node-" + std::to_string(i),
                               .incarnation = i + 1,
                               .address = "tcp://10.0.0." + std::to_string(i) + ":31470",
                               .joined = 1});
    }
    view.carry = {.view = 1, .round = 4, .epoch = 9, .count = 3, .data = some_bytes(24)};
    view.rules_hash = 77;
    view.writer = {.name = "node-0", .incarnation = 1, .attempt = 5};
    view.gone = {{.name = "node-x", .incarnation = 3}};
    return view;
}

std::vector<Message> one_of_each() {
    const View old = some_view(3, 4);
    View next = some_view(4, 4);
    next.roster.erase(next.roster.begin() + 1);
    std::vector<Body> bodies{
        Ready{.count = 3, .leavers = 1, .waited_us = 12, .data = some_bytes(40)},
        First{.waited_us = 5},
        Closing{.waited_us = 6},
        Start{.epoch = 17, .count = 4, .data = some_bytes(kEpochBytesMax)},
        StartAck{.is_alone = true},
        Abort{.next_round = 9},
        Poll{},
        PollAck{.state = PollState::kComplete, .missing{4, 5}},
        Leave{},
        Beat{.age_us = 3},
        Ask{},
        ViewNews{.difference = *difference(old, next)},
        ViewAck{},
        ViewWant{.number = 4, .offset = 12},
        ViewPart{.number = 4, .offset = 0, .total = 40, .bytes = some_bytes(40)},
        Nack{.number = 5, .is_excluded = true, .root = "node-0", .root_address = "tcp://a:1"},
        Join{.address = "tcp://b:1",
             .rules = {.hash = 3, .timeout_ns = 4, .grace_ns = 5, .root_silent_ns = 6, .fanout = 7},
             .newest = 17},
        Redirect{.root = "node-0", .root_address = "tcp://a:1"},
        Refuse{.reason = RefuseReason::kSecondOfName, .incarnation = 4, .address = "tcp://c:1"},
        Promise{.address = "tcp://b:1"},
        PromiseAck{.is_member = true, .address = "tcp://b:1", .record = old.carry}};
    REQUIRE(bodies.size() == std::variant_size_v<Body>);
    std::vector<Message> messages;
    for (Body& body : bodies) {
        messages.push_back({.view = 3, .round = 2, .incarnation = 6, .body = std::move(body)});
    }
    return messages;
}

}  // namespace

TEST_CASE("eh message: each is read as it was written", "[eh]") {
    for (Message message : one_of_each()) {
        CAPTURE(name_of(message.body));
        CHECK(decode(encode(message)).value() == message);
        message.is_foreign = true;
        CHECK(decode(encode(message)).value() == message);
    }
}

TEST_CASE("eh message: cut short, too long, or with another byte it is refused or is another",
          "[eh]") {
    for (const Message& message : one_of_each()) {
        CAPTURE(name_of(message.body));
        const std::vector<std::byte> bytes = encode(message);
        for (std::size_t size = 0; size < bytes.size(); ++size)
            REQUIRE_FALSE(decode(std::span(bytes).first(size)));
        std::vector<std::byte> longer = bytes;
        longer.push_back(std::byte{0});
        CHECK_FALSE(decode(longer));
        for (std::size_t at = 0; at < std::min<std::size_t>(bytes.size(), 200); ++at) {
            std::vector<std::byte> other = bytes;
            other[at] ^= std::byte{0x81};
            const auto read = decode(other);
            // The bytes of a message are the only ones that say it.
            if (read) REQUIRE(encode(*read) == other);
        }
    }
}

TEST_CASE("eh message: the worked example of a request to join", "[eh]") {
    // docs/formats/epoch.md
    const Message message{.round = 1,
                          .incarnation = 6,
                          .body = Join{.address = "b:1",
                                       .rules = {.hash = 0xAB,
                                                 .timeout_ns = 5'000'000'000,
                                                 .grace_ns = 500'000'000,
                                                 .root_silent_ns = 2'000'000'000,
                                                 .fanout = 16},
                                       .newest = 17}};
    const std::vector<std::uint8_t> expected{
        1,    16,   0,    0,    1,    0, 0,  0,   0,    0,    0,    0,    0, 0, 0, 0, 6,    0,
        0,    0,    0,    0,    0,    0, 3,  'b', ':',  '1',  0xAB, 0,    0, 0, 0, 0, 0,    0,
        0x00, 0xF2, 0x05, 0x2A, 0x01, 0, 0,  0,   0x00, 0x65, 0xCD, 0x1D, 0, 0, 0, 0, 0x00, 0x94,
        0x35, 0x77, 0,    0,    0,    0, 16, 0,   0,    0,    17,   0,    0, 0, 0, 0, 0,    0};
    const auto bytes = encode(message);
    REQUIRE(bytes.size() == expected.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        CHECK(std::to_integer<std::uint8_t>(bytes[i]) == expected[i]);
}

TEST_CASE("eh message: the worked example of a new view", "[eh]") {
    // docs/formats/epoch.md
    View next{.number = 4, .epoch_low = 1, .epoch_high = 0xFFFF, .rules_hash = 0xAB};
    next.roster = {{.name = "a", .incarnation = 6, .address = "a:1", .joined = 1}};
    next.writer = {.name = "a", .incarnation = 6, .attempt = 2};
    next.gone = {{.name = "b", .incarnation = 5}};
    View base = next;
    base.number = 3;
    base.roster.push_back({.name = "b", .incarnation = 5, .address = "b:1", .joined = 1});
    const Message message{.view = 4,
                          .round = 1,
                          .incarnation = 6,
                          .body = ViewNews{.difference = *difference(base, next)}};
    const std::vector<std::uint8_t> expected{
        1,    0x0B, 0, 0, 1,    0,    0, 0, 4, 0, 0, 0, 0, 0,    0,    0,    6,    0,    0,
        0,    0,    0, 0, 0,    3,    0, 0, 0, 0, 0, 0, 0, 0x57, 0xBF, 0x85, 0xEC, 0x34, 0x2C,
        0x84, 0x6D, 0, 0, 0,    0,    1, 0, 0, 0, 1, 0, 0, 0,    0,    0,    0,    0,    4,
        0,    0,    0, 0, 0,    0,    0, 1, 0, 0, 0, 0, 0, 0,    0,    0xFF, 0xFF, 0,    0,
        0,    0,    0, 0, 0xAB, 0,    0, 0, 0, 0, 0, 0, 1, 0x61, 6,    0,    0,    0,    0,
        0,    0,    0, 2, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0,    0,    0,    0,    0,    0,
        0,    0,    0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0,    0,    0,    0,    0,    0,
        1,    0,    0, 0, 1,    0x62, 5, 0, 0, 0, 0, 0, 0, 0};
    const auto bytes = encode(message);
    REQUIRE(bytes.size() == expected.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        CHECK(std::to_integer<std::uint8_t>(bytes[i]) == expected[i]);
}

TEST_CASE("eh message: the worked example of the documents", "[eh]") {
    // docs/formats/epoch.md
    const Message message{.view = 3,
                          .round = 2,
                          .incarnation = 6,
                          .body = Start{.epoch = 17, .count = 4, .data{std::byte{0xAB}}}};
    const std::vector<std::uint8_t> expected{1, 3, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0,  0,
                                             0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0, 17, 0,
                                             0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 1, 0,  0xAB};
    const auto bytes = encode(message);
    REQUIRE(bytes.size() == expected.size());
    for (std::size_t i = 0; i < bytes.size(); ++i)
        CHECK(std::to_integer<std::uint8_t>(bytes[i]) == expected[i]);
}

TEST_CASE("eh view: it is read as it was written, and only if its roster is lawful", "[eh]") {
    const View view = some_view(3, 5);
    CHECK(decode_view(encode_view(view)).value() == view);
    const auto refused = [](View wrong) { return !decode_view(encode_view(wrong)).has_value(); };

    View twice = view;
    twice.roster[4].name = twice.roster[1].name;
    CHECK(refused(twice));
    View nameless = view;
    nameless.roster[2].name.clear();
    CHECK(refused(nameless));
    View early = view;
    early.roster[2].joined = 4;
    CHECK(refused(early));
    View aside = view;
    aside.roster[2].takes_part = false;
    CHECK(refused(aside));
    View empty_block = view;
    empty_block.epoch_high = 0;
    CHECK(refused(empty_block));
    View nobody = view;
    nobody.roster.clear();
    CHECK(decode_view(encode_view(nobody)).value() == nobody);
}

TEST_CASE("eh view: a difference leads from one view to the next", "[eh]") {
    const View base = some_view(3, 20);
    View next = some_view(4, 20);
    next.roster.erase(next.roster.begin() + 7);
    // A new root, and one that comes next to it.
    std::rotate(next.roster.begin(), next.roster.begin() + 12, next.roster.begin() + 13);
    std::rotate(next.roster.begin() + 1, next.roster.begin() + 15, next.roster.begin() + 16);
    next.roster.push_back({.name = "new", .incarnation = 1, .address = "x", .joined = 4});

    const auto made = difference(base, next);
    REQUIRE(made.has_value());

    CHECK(apply(base, *made).value() == next);
    CHECK(made->removed.size() == 1);
    CHECK(made->added.size() == 1);
    CHECK(made->first.size() == 2);
    CHECK_FALSE(apply(some_view(2, 20), *made));
    View wrong = base;
    wrong.roster[3].address = "somewhere else";
    CHECK_FALSE(apply(wrong, *made));
    ViewDifference twice = *made;
    twice.removed.push_back(twice.first[0]);
    CHECK_FALSE(apply(base, twice));
}

TEST_CASE("eh view: the tree has each member once", "[eh]") {
    for (const std::size_t fanout : {1U, 2U, 16U}) {
        for (const std::size_t size : {1U, 2U, 17U, 300U}) {
            CAPTURE(fanout, size);
            CHECK(subtree_size(0, size, fanout) == size);
            std::size_t children = 0;
            for (std::size_t i = 0; i < size; ++i) {
                children += child_count(i, size, fanout);
                std::size_t below = 1;
                for (std::size_t c = 0; c < child_count(i, size, fanout); ++c) {
                    const std::size_t child = i * fanout + 1 + c;
                    CHECK(parent_of(child, fanout) == i);
                    below += subtree_size(child, size, fanout);
                }
                CHECK(below == subtree_size(i, size, fanout));
            }
            CHECK(children == size - 1);
        }
    }
}

}  // namespace message_test
