// Goal: what is known of clients is bounded, each principal has its share of it, and what one
// principal does takes nothing from another. The file is long because all of its tests have the
// same visitors and limits.
#include "fabric/rpc/client_records.h"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/rpc/handshake_places.h"
#include "fabric/rpc/incoming.h"
#include "fop/hash.h"
#include "tests/catch.h"

namespace fopd::fabric {

namespace {

fop::Identity identity_of(std::string name) {
    return {.kind = fop::AuthKind::kPrincipal, .name = std::move(name)};
}

fop::ClientId client_id(std::uint32_t number) {
    fop::ClientId id{};
    for (std::size_t i = 0; i < 4; ++i) id[i] = static_cast<std::byte>(number >> (24 - 8 * i));
    return id;
}

Instant at(int seconds) {
    return after(Instant{}, std::chrono::seconds(seconds));
}

class Line final : public ClientLine {
public:
    explicit Line(std::uint64_t number) : number_(number) {}
    std::uint64_t id() const override { return number_; }
    void reply(const fop::Reply& reply, fop::Lane) override { replies.push_back(reply.id); }
    void replaced() override { is_replaced = true; }

    std::vector<std::uint64_t> replies;
    bool is_replaced = false;

private:
    const std::uint64_t number_;
};

// A client that comes, asks one fop, has it answered, and goes.
struct Visitor {
    void come(ClientRecords& records, std::uint32_t number, const std::string& name) {
        share = records.take_session(identity_of(name), at(0)).share;
        REQUIRE(share != nullptr);
        client = &records.enter(client_id(number), identity_of(name), *share, line);
    }
    void go(ClientRecords& records, Instant now) {
        records.leave(*client, line, now);
        records.give_back(*share);
    }

    Line line{7};
    PrincipalShare* share = nullptr;
    ClientRecord* client = nullptr;
};

void ask(ClientRecords& records, Visitor& visitor, std::uint64_t request,
         fop::Status status = fop::Status::kDone, std::string_view words = {}) {
    const auto found = records.remember(*visitor.client, request);
    REQUIRE(found.fop != nullptr);
    REQUIRE(found.is_new);
    found.fop->line = 7;
    records.answered(*found.fop, {.id = request, .status = status, .words = words}, Instant{});
}

constexpr ClientRecords::Limits kLimits{.sessions_max = 100,
                                        .idle_max = 10,
                                        .idle_time = 60s,
                                        .reply_bytes_max = 64U << 10,
                                        .request_bytes_max = 64U << 10,
                                        .unsent_bytes_max = 64U << 10};

class Unsent final : public UnsentReplies {
public:
    bool is_lost = false;

private:
    void on_lost() override { is_lost = true; }
};

}  // namespace

TEST_CASE("fabric clients: one principal has four fifths of the sessions, and the next one some",
          "[fabric]") {
    ClientRecords records(kLimits);
    std::vector<PrincipalShare*> taken;
    auto last = records.take_session(identity_of("ann"), at(0));
    for (; last.share != nullptr; last = records.take_session(identity_of("ann"), at(0))) {
        taken.push_back(last.share);
    }

    REQUIRE(taken.size() == 80);
    REQUIRE(last.refusal == "the principal has as many sessions as its share allows");
    for (int i = 0; i < 16; ++i)
        REQUIRE(records.take_session(identity_of("bob"), at(0)).share != nullptr);
    REQUIRE(records.take_session(identity_of("bob"), at(0)).share == nullptr);
    REQUIRE(records.take_session(identity_of("eve"), at(0)).share != nullptr);
    for (int i = 0; i < 20; ++i) records.give_back(*taken[static_cast<std::size_t>(i)]);
    REQUIRE(records.take_session(identity_of("bob"), at(0)).share != nullptr);
}

TEST_CASE("fabric clients: a principal opens many sessions at once, and then one after the other",
          "[fabric]") {
    ClientRecords::Limits limits = kLimits;
    limits.opens_max = 50;
    limits.open_interval = 100ms;
    ClientRecords records(limits);
    // Each session ends at once. A client that is remembered keeps the count.
    std::string_view refusal;
    const auto opens = [&records, &refusal](const char* name, Instant now) {
        const auto [share, why] = records.take_session(identity_of(name), now);
        refusal = why;
        if (share == nullptr) return false;
        Line line(9);
        ClientRecord& client = records.enter(client_id(1), identity_of(name), *share, line);
        records.leave(client, line, now);
        records.give_back(*share);
        return true;
    };
    int count = 0;
    while (opens("ann", at(0))) ++count;

    CHECK(count == 50);
    CHECK(refusal == "the principal opens too many sessions in a short time");
    CHECK(opens("bob", at(0)));
    for (int second = 1; second < 10; ++second) {
        int more = 0;
        while (opens("ann", at(second))) ++more;
        CHECK(more == 10);
    }
    // After a pause it may open as many at once again, and no more.
    for (count = 0; opens("ann", at(30)); ++count) {
    }
    CHECK(count == 50);
}

TEST_CASE("fabric clients: many old clients are forgotten in steps", "[fabric]") {
    constexpr std::uint32_t kClients = 1000;
    constexpr std::uint64_t kFops = 4;
    constexpr std::uint32_t kOthers = 1000;
    ClientRecords::Limits limits = kLimits;
    limits.sessions_max = 10 * kOthers;
    limits.idle_max = kClients + kOthers;
    limits.reply_bytes_max = 64U << 20;
    ClientRecords records(limits);
    for (std::uint32_t i = 0; i < kClients; ++i) {
        Visitor of_ann;
        of_ann.come(records, i, "ann");
        for (std::uint64_t fop = 1; fop <= kFops; ++fop) ask(records, of_ann, fop);
        of_ann.go(records, at(0));
    }
    // Principals whose clients are to stay.
    for (std::uint32_t i = 0; i < kOthers; ++i) {
        Visitor other;
        other.come(records, kClients + i, "other" + std::to_string(i));
        other.go(records, at(50));
    }
    const std::uint64_t bytes_of_client = records.reply_bytes() / kClients;

    std::size_t steps = 0;
    for (bool goes_on = true; goes_on; ++steps) {
        const std::size_t size = records.size();
        const std::uint64_t bytes = records.reply_bytes();
        goes_on = records.forget_old(at(60));
        CHECK(size - records.size() <= 256);
        CHECK(bytes - records.reply_bytes() <= 256 * bytes_of_client / kFops);
        REQUIRE(steps < 100);
    }

    CHECK(records.size() == kOthers);
    CHECK(records.reply_bytes() == 0);
    CHECK(steps >= (kClients * (1 + kFops) + kOthers) / 256);
}

TEST_CASE("fabric clients: unproved names share one principal's share", "[fabric]") {
    ClientRecords records(kLimits);
    for (const auto kind : {fop::AuthKind::kNone, fop::AuthKind::kPeer}) {
        CAPTURE(kind);
        int count = 0;
        while (records.take_session({.kind = kind, .name = std::to_string(count)}, at(0)).share) {
            ++count;
        }
        REQUIRE(count < 81);
    }
    REQUIRE(records.take_session(identity_of("ann"), at(0)).share != nullptr);
}

TEST_CASE("fabric clients: one principal's many do not make another's be forgotten", "[fabric]") {
    ClientRecords records(kLimits);
    for (std::uint32_t i = 0; i < 3; ++i) {
        Visitor of_bob;
        of_bob.come(records, i, "bob");
        of_bob.go(records, at(0));
    }
    for (std::uint32_t i = 0; i < 1000; ++i) {
        Visitor of_ann;
        of_ann.come(records, 100 + i, "ann");
        of_ann.go(records, at(1));
        REQUIRE(records.size() <= 10);
    }

    for (std::uint32_t i = 0; i < 3; ++i) {
        REQUIRE(records.find(client_id(i), identity_of("bob")) != nullptr);
    }
    REQUIRE(records.find(client_id(1099), identity_of("ann")) != nullptr);
    REQUIRE(records.find(client_id(1092), identity_of("ann")) == nullptr);
    CHECK_FALSE(records.forget_old(at(60)));
    REQUIRE(records.size() == 7);
    CHECK_FALSE(records.forget_old(at(61)));
    REQUIRE(records.size() == 0);
}

TEST_CASE("fabric clients: replies kept for one principal take no room from another", "[fabric]") {
    ClientRecords records(kLimits);
    Visitor of_ann;
    of_ann.come(records, 1, "ann");
    Visitor of_bob;
    of_bob.come(records, 2, "bob");
    const std::string words(500, 'x');
    std::uint64_t count = 0;
    while (records.remember(*of_ann.client, count).fop != nullptr) {
        records.answered(records.remember(*of_ann.client, count).fop[0],
                         {.id = count, .words = words}, at(0));
        ++count;
    }

    REQUIRE(count > 40);
    REQUIRE(count < 64);
    ask(records, of_bob, 1);
    // Its other clients that are not there go before it is refused anything.
    records.acknowledged(*of_ann.client, count);
    Visitor gone;
    gone.come(records, 3, "ann");
    for (std::uint64_t i = 0; i < 40; ++i) ask(records, gone, i, fop::Status::kDone, words);
    gone.go(records, at(0));
    for (std::uint64_t i = 0; i < 40; ++i) {
        ask(records, of_ann, count + i, fop::Status::kDone, words);
    }
    REQUIRE(records.find(client_id(3), identity_of("ann")) == nullptr);
}

TEST_CASE("fabric clients: requests and waiting replies of one principal take no room from another",
          "[fabric]") {
    constexpr std::uint64_t kBytes = 1000;
    ClientRecords records(kLimits);
    Visitor of_ann;
    of_ann.come(records, 1, "ann");
    Visitor of_bob;
    of_bob.come(records, 2, "bob");
    Unsent to_ann;
    Unsent to_bob;
    std::uint64_t requests = 0;
    for (; records.may_take_request(*of_ann.share); ++requests) {
        records.take_request(*of_ann.share, kBytes);
    }
    std::uint64_t replies = 0;
    while (records.take_unsent(*of_ann.share, to_ann, kBytes)) ++replies;

    CHECK(requests > 48);
    CHECK(requests < 56);
    CHECK(replies == requests);
    CHECK(records.request_bytes() == requests * kBytes);
    CHECK(records.unsent_bytes() == replies * kBytes);
    CHECK(records.reply_bytes() == 0);
    CHECK(records.may_take_request(*of_bob.share));
    REQUIRE(records.take_unsent(*of_bob.share, to_bob, kBytes));
    records.give_back_unsent(*of_bob.share, to_bob, kBytes);
    CHECK_FALSE(to_ann.is_lost);

    // Requests may outlive everything else of their principal.
    for (; replies > 0; --replies) records.give_back_unsent(*of_ann.share, to_ann, kBytes);
    of_ann.go(records, at(0));
    CHECK_FALSE(records.forget_old(at(60)));
    PrincipalShare& share = *of_ann.share;
    for (; requests > 1; --requests) records.give_back_request(share, kBytes);
    CHECK(share.name == fop::share_name(identity_of("ann")));
    records.give_back_request(share, kBytes);
    CHECK(records.request_bytes() == 0);
    CHECK(records.unsent_bytes() == 0);
    CHECK(records.size() == 1);
}

TEST_CASE("fabric clients: when too many replies wait, who has sent none for longest loses its own",
          "[fabric]") {
    constexpr std::uint64_t kBytes = 1000;
    constexpr std::size_t kSlow = 3;
    constexpr std::uint64_t kOfEach = 15;
    ClientRecords records(kLimits);
    Visitor of_ann;
    of_ann.come(records, 1, "ann");
    PrincipalShare& share = *of_ann.share;
    Unsent reader;
    REQUIRE(records.take_unsent(share, reader, kBytes));
    std::array<Unsent, kSlow> slow;
    for (Unsent& each : slow) {
        for (std::uint64_t i = 0; i < kOfEach; ++i) {
            REQUIRE(records.take_unsent(share, each, kBytes));
        }
    }

    // It came first, but it goes on to send: it may have what is left, and then what the others
    // have, one after another.
    std::uint64_t of_reader = 1;
    for (std::size_t lost = 0; lost < kSlow; ++lost) {
        CHECK_FALSE(slow[lost].is_lost);
        while (!slow[lost].is_lost) {
            records.give_back_unsent(share, reader, kBytes);
            for (int i = 0; i < 2; ++i) REQUIRE(records.take_unsent(share, reader, kBytes));
            ++of_reader;
        }
        CHECK_FALSE(reader.is_lost);
        REQUIRE(share.unsent_bytes == (of_reader + (kSlow - 1 - lost) * kOfEach) * kBytes);
        CHECK(share.unsent_bytes <= kLimits.unsent_bytes_max * 4 / 5 + kBytes);
    }
    CHECK(of_reader > kSlow * kOfEach / 2);

    // A session alone has the principal's share, and no more.
    while (records.take_unsent(share, reader, kBytes)) ++of_reader;
    CHECK(share.unsent_bytes == of_reader * kBytes);
    CHECK(share.unsent_bytes <= kLimits.unsent_bytes_max * 4 / 5 + kBytes);
    records.give_back_all_unsent(share, reader);
    CHECK(records.unsent_bytes() == 0);
    CHECK_FALSE(reader.is_lost);
}

TEST_CASE("fabric clients: replies that clients do not acknowledge take no room from those to send",
          "[fabric]") {
    ClientRecords records(kLimits);
    Visitor hoarder;
    hoarder.come(records, 1, "ann");
    const std::string words(500, 'x');
    std::uint64_t count = 0;
    while (records.remember(*hoarder.client, count).fop != nullptr) {
        records.answered(*records.remember(*hoarder.client, count).fop,
                         {.id = count, .words = words}, at(0));
        ++count;
    }
    Visitor reader;
    reader.come(records, 2, "ann");
    REQUIRE(records.remember(*reader.client, 1).fop == nullptr);

    Unsent unsent;
    for (int i = 0; i < 10; ++i) REQUIRE(records.take_unsent(*reader.share, unsent, 1000));
    // Other principals take nothing from it, however many they are: each may always have one, and
    // one request.
    std::deque<Visitor> others;
    std::deque<Unsent> of_others;
    for (std::uint32_t i = 0; i < 20; ++i) {
        Visitor& other = others.emplace_back();
        other.come(records, 10 + i, "other" + std::to_string(i));
        Unsent& to_other = of_others.emplace_back();
        int taken = 0;
        while (records.take_unsent(*other.share, to_other, 1000)) ++taken;
        CHECK(taken > 0);
        CHECK(records.may_take_request(*other.share));
        while (records.may_take_request(*other.share)) records.take_request(*other.share, 1000);
    }
    CHECK(records.may_take_request(*reader.share));
    CHECK_FALSE(unsent.is_lost);
    CHECK(reader.share->unsent_bytes == 10'000);
}

TEST_CASE("fabric clients: one fop of each principal is remembered, however many others there are",
          "[fabric]") {
    ClientRecords records(kLimits);
    std::deque<Visitor> others;
    for (std::uint32_t i = 0; i < 20; ++i) {
        Visitor& other = others.emplace_back();
        other.come(records, 10 + i, "other" + std::to_string(i));
        std::uint64_t count = 0;
        while (records.remember(*other.client, count).fop != nullptr) ++count;
        CHECK(count > 0);
    }
    REQUIRE(records.reply_bytes() >= kLimits.reply_bytes_max);

    Visitor of_bob;
    of_bob.come(records, 1, "bob");
    CHECK(records.may_record(*of_bob.client, 0));
    ask(records, of_bob, 1);
    CHECK(records.remember(*of_bob.client, 2).fop == nullptr);
    records.acknowledged(*of_bob.client, 2);
    ask(records, of_bob, 2);
}

TEST_CASE("fabric clients: many principals together have a half more than the limits at most",
          "[fabric]") {
    constexpr std::uint64_t kBytes = 1000;
    constexpr std::uint32_t kPrincipals = 500;
    ClientRecords::Limits limits = kLimits;
    limits.sessions_max = 10 * kPrincipals;
    ClientRecords records(limits);
    const std::string words(200, 'x');
    std::deque<Visitor> visitors;
    std::deque<Unsent> replies;
    std::uint32_t without_request = 0;
    std::uint32_t without_memory = 0;
    for (std::uint32_t i = 0; i < kPrincipals; ++i) {
        Visitor& visitor = visitors.emplace_back();
        visitor.come(records, i, "p" + std::to_string(i));
        std::uint32_t requests = 0;
        for (; records.may_take_request(*visitor.share); ++requests) {
            records.take_request(*visitor.share, kBytes);
        }
        without_request += requests == 0;
        std::uint64_t fops = 0;
        while (records.remember(*visitor.client, fops + 1).fop != nullptr) {
            ++fops;
            records.answered(*records.remember(*visitor.client, fops).fop,
                             {.id = fops, .words = words}, at(0));
        }
        without_memory += fops == 0;
        // Waiting replies can be given up: those who have most lose some, so each has one.
        Unsent& unsent = replies.emplace_back();
        REQUIRE(records.take_unsent(*visitor.share, unsent, kBytes));
        while (records.take_unsent(*visitor.share, unsent, kBytes)) {
        }
        CHECK_FALSE(unsent.is_lost);
        CHECK(unsent.bytes > 0);

        constexpr std::uint64_t kMost = (64U << 10) * 3 / 2 + kBytes;
        REQUIRE(records.request_bytes() <= kMost);
        REQUIRE(records.reply_bytes() <= kMost);
        REQUIRE(records.unsent_bytes() <= kMost);
    }
    CHECK(without_request > kPrincipals / 2);
    CHECK(without_memory > kPrincipals / 2);
    CHECK(replies.front().is_lost);

    // When some is given back, whoever has none comes first.
    PrincipalShare& share = *visitors.front().share;
    records.give_back_request(share, share.request_bytes);
    CHECK(records.may_take_request(*visitors.back().share));
    records.acknowledged(*visitors.front().client, 1U << 20);
    ask(records, visitors.back(), 1);
}

TEST_CASE("fabric clients: a first reply takes the memory of the principal that has most",
          "[fabric]") {
    constexpr std::uint64_t kBytes = 500;
    constexpr std::uint32_t kPrincipals = 30;
    ClientRecords::Limits limits = kLimits;
    limits.sessions_max = 10'000;
    ClientRecords records(limits);
    std::deque<Visitor> visitors;
    std::deque<Unsent> replies;
    const auto add = [&](std::uint32_t i) {
        visitors.emplace_back().come(records, i, "p" + std::to_string(i));
        return records.take_unsent(*visitors.back().share, replies.emplace_back(), kBytes);
    };
    for (std::uint32_t i = 0; i < kPrincipals; ++i) REQUIRE(add(i));
    // Each has another number of replies, in an order that is not that of the names.
    for (std::uint32_t i = 0; i < kPrincipals; ++i) {
        const std::uint32_t more = i * 7 % kPrincipals;
        for (std::uint32_t n = 0; n < more; ++n) {
            // Where its own would go, it has enough.
            const std::uint64_t free =
                limits.unsent_bytes_max - std::min(limits.unsent_bytes_max, records.unsent_bytes());
            if (replies[i].bytes >= 4 * free) break;
            REQUIRE(records.take_unsent(*visitors[i].share, replies[i], kBytes));
        }
    }

    for (std::uint32_t i = kPrincipals; i < 400; ++i) {
        std::uint64_t most = 0;
        for (const Unsent& each : replies) most = std::max(most, each.bytes);
        const std::uint64_t before = records.unsent_bytes();
        std::size_t lost = 0;
        for (const Unsent& each : replies) lost += each.is_lost ? 1 : 0;
        REQUIRE(add(i));
        std::size_t lost_now = 0;
        for (const Unsent& each : replies) lost_now += each.is_lost ? 1 : 0;
        CHECK(lost_now - lost <= 1);
        CHECK(records.unsent_bytes() == before + kBytes - (lost_now > lost ? most : 0));
    }
    CHECK(std::ranges::any_of(replies, [](const Unsent& each) { return each.is_lost; }));

    // The count is that of all sessions.
    std::uint64_t sum = 0;
    for (const Unsent& each : replies) sum += each.bytes;
    CHECK(records.unsent_bytes() == sum);
}

TEST_CASE("fabric clients: replies of idle clients go where most are kept", "[fabric]") {
    ClientRecords records(kLimits);
    const std::string words(500, 'x');
    const auto visit = [&](std::uint32_t number, const char* name, std::uint64_t fops) {
        Visitor visitor;
        visitor.come(records, number, name);
        for (std::uint64_t i = 1; i <= fops; ++i) {
            ask(records, visitor, i, fop::Status::kDone, words);
        }
        visitor.go(records, at(0));
    };
    const auto is_known = [&records](std::uint32_t number, const char* name) {
        return records.find(client_id(number), identity_of(name)) != nullptr;
    };
    constexpr std::uint32_t kOfAnn = 5;
    for (std::uint32_t i = 0; i < kOfAnn; ++i) visit(i, "ann", 10);
    visit(20, "bob", 8);
    Visitor of_bob;
    of_bob.come(records, 21, "bob");

    // Bob has little: one of Ann's clients makes room, the one that has been gone for longest.
    std::uint64_t asked = 0;
    while (asked < 10) ask(records, of_bob, ++asked, fop::Status::kDone, words);
    CHECK(is_known(20, "bob"));
    CHECK_FALSE(is_known(0, "ann"));
    CHECK(is_known(1, "ann"));

    // He gets no more than she has, and then his own make room.
    for (;;) {
        RememberedFop* const fop = records.remember(*of_bob.client, asked + 1).fop;
        if (fop == nullptr) break;
        fop->line = of_bob.line.id();
        records.answered(*fop, {.id = ++asked, .words = words}, at(0));
    }
    CHECK(asked > 20);
    CHECK_FALSE(is_known(20, "bob"));
    CHECK(is_known(kOfAnn - 1, "ann"));
    CHECK(records.reply_bytes() <= kLimits.reply_bytes_max);

    // Nothing is lost from the count when all of them are gone.
    records.acknowledged(*of_bob.client, asked + 1);
    of_bob.go(records, at(0));
    CHECK_FALSE(records.forget_old(at(60)));
    CHECK(records.size() == 0);
    CHECK(records.reply_bytes() == 0);
}

TEST_CASE("fabric clients: the numbers of recorded replies count in the principal's share",
          "[fabric]") {
    ClientRecords records(kLimits);
    std::deque<Visitor> of_ann;
    const std::uint64_t last = fop::kRequestPlaces - 1;
    Visitor of_bob;
    of_bob.come(records, 1, "bob");
    std::uint64_t count = 0;
    for (std::uint32_t i = 0; i < 60; ++i) {
        Visitor& visitor = of_ann.emplace_back();
        visitor.come(records, 100 + i, "ann");
        // The highest place first.
        for (std::uint64_t request = last; request > 0; --request) {
            if (!records.may_record(*visitor.client, request)) break;
            records.note_recorded(*visitor.client, request);
            ++count;
        }
        REQUIRE(std::ranges::is_sorted(visitor.client->recorded()));
    }

    // Each is a number of eight bytes, with as much room to grow at most.
    CHECK(count <= kLimits.reply_bytes_max / 8);
    CHECK(count >= kLimits.reply_bytes_max / 32);
    CHECK(of_ann.front().share->reply_bytes >= 8 * count);
    CHECK(records.may_record(*of_bob.client, 5));
    CHECK_FALSE(records.may_record(*of_ann.back().client, 5));
    // A place that is taken needs no room.
    CHECK(records.may_record(*of_ann.front().client, last));
    records.note_recorded(*of_ann.front().client, last + fop::kRequestPlaces);
    CHECK(of_ann.front().client->recorded().back() == last + fop::kRequestPlaces);

    for (Visitor& visitor : of_ann) records.acknowledged(*visitor.client, last + 1);
    CHECK(of_ann.front().client->recorded().size() == 1);
    CHECK(of_ann.back().client->recorded().empty());
    CHECK(of_ann.front().share->reply_bytes <= 60 * 16 * 8);
    CHECK(records.may_record(*of_ann.back().client, 5));
}

TEST_CASE("fabric clients: a client without a key and the principal it names are different owners",
          "[fabric]") {
    const fop::ClientId client = client_id(7);
    const RequestOwner ann = request_owner(client, fop::AuthKind::kPrincipal, "ann");
    const RequestOwner peer = request_owner(client, fop::AuthKind::kPeer, "ann");
    const RequestOwner nobody = request_owner(client, fop::AuthKind::kNone, "ann");
    CHECK(ann != peer);
    CHECK(ann != nobody);
    CHECK(peer != nobody);
    // As it is on disks.
    const std::string_view name = "ann";
    const fop::Hash whole = fop::hash({client, std::as_bytes(std::span(name))});
    CHECK(std::ranges::equal(ann, std::span(whole).first(ann.size())));
}

TEST_CASE("fabric clients: what did not begin leaves nothing, what ran is remembered", "[fabric]") {
    ClientRecords records(kLimits);
    Visitor of_ann;
    of_ann.come(records, 1, "ann");
    const auto queued = records.remember(*of_ann.client, 5);
    REQUIRE(queued.is_new);
    records.forget(*queued.fop, 5, at(0));
    REQUIRE(of_ann.client->fops().empty());
    REQUIRE(of_ann.share->reply_bytes == 0);

    ask(records, of_ann, 5, fop::Status::kNotFound);
    REQUIRE(of_ann.client->fops().size() == 1);
    REQUIRE_FALSE(records.remember(*of_ann.client, 5).is_new);
    records.acknowledged(*of_ann.client, 6);
    REQUIRE(of_ann.share->reply_bytes == 0);
}

TEST_CASE("fabric clients: an acknowledgement looks at no fop that earlier ones looked at",
          "[fabric]") {
    constexpr std::uint64_t kRunning = 300;
    constexpr std::uint64_t kAnswered = 100;
    ClientRecords records(kLimits);
    Visitor of_ann;
    of_ann.come(records, 1, "ann");
    std::vector<RememberedFop*> running;
    for (std::uint64_t request = 0; request < kRunning; ++request) {
        // As many as fit are remembered; the others do not matter here.
        RememberedFop* const fop = records.remember(*of_ann.client, request).fop;
        if (fop != nullptr) running.push_back(fop);
    }
    REQUIRE(running.size() > 50);

    // It has given them up, and says after each later fop that it has all replies before it.
    records.acknowledged(*of_ann.client, kRunning);
    CHECK(records.looked_at() == running.size());
    for (std::uint64_t i = 0; i < kAnswered; ++i) {
        records.acknowledged(*of_ann.client, kRunning + 1 + i);
    }
    CHECK(records.looked_at() == running.size());

    // They leave nothing when they end, though nothing is acknowledged afterwards.
    std::uint64_t request = 0;
    for (RememberedFop* const fop : running) {
        records.answered(*fop, {.id = request++, .words = "late"}, at(0));
    }
    CHECK(of_ann.client->fops().empty());
    CHECK(of_ann.share->reply_bytes == 0);
    // What an earlier session of the client says afterwards changes nothing.
    ask(records, of_ann, kRunning + kAnswered + 5);
    records.acknowledged(*of_ann.client, 7);
    CHECK(of_ann.client->fops().size() == 1);
}

TEST_CASE("fabric clients: a reply goes to the session that asked last, and to no other",
          "[fabric]") {
    ClientRecords records(kLimits);
    Visitor first;
    first.come(records, 1, "ann");
    const auto running = records.remember(*first.client, 5);
    running.fop->line = first.line.id();
    Line second(8);
    PrincipalShare* const share = records.take_session(identity_of("ann"), at(0)).share;
    ClientRecord& same = records.enter(client_id(1), identity_of("ann"), *share, second);
    REQUIRE(first.line.is_replaced);
    first.go(records, at(0));
    REQUIRE(&same == first.client);

    records.answered(*running.fop, {.id = 5}, at(1));
    REQUIRE(second.replies.empty());
    REQUIRE(first.line.replies.empty());
    REQUIRE(records.remember(same, 5).fop->reply.has_value());
}

TEST_CASE("fabric clients: one whose fop still runs is not forgotten", "[fabric]") {
    ClientRecords records(kLimits);
    Visitor of_ann;
    of_ann.come(records, 1, "ann");
    const auto running = records.remember(*of_ann.client, 5);
    of_ann.go(records, at(0));
    CHECK_FALSE(records.forget_old(at(1000)));
    REQUIRE(records.size() == 1);

    records.answered(*running.fop, {.id = 5}, at(1000));
    CHECK_FALSE(records.forget_old(at(1060)));
    REQUIRE(records.size() == 0);
}

namespace {

// Ends its fop when it is abandoned, if it is to.
class Run final : public RememberedRun {
public:
    Run(ClientRecords& records, RememberedFop& fop, std::uint64_t request)
        : records_(records), fop_(fop), request_(request) {
        fop.run = this;
    }
    void abandon() override {
        ++abandoned;
        if (ends) end();
    }
    void end() { records_.answered(fop_, {.id = request_}, at(2000)); }

    bool ends = true;
    std::uint64_t abandoned = 0;

private:
    ClientRecords& records_;
    RememberedFop& fop_;
    const std::uint64_t request_;
};

}  // namespace

TEST_CASE("fabric clients: fops of a client that is gone for too long are abandoned once, in steps",
          "[fabric]") {
    constexpr std::uint64_t kFops = 300;
    ClientRecords::Limits limits = kLimits;
    limits.reply_bytes_max = 64U << 20;
    ClientRecords records(limits);
    Visitor of_ann;
    of_ann.come(records, 1, "ann");
    Visitor of_bob;
    of_bob.come(records, 2, "bob");
    std::deque<Run> runs;
    for (std::uint64_t request = 1; request <= kFops; ++request) {
        const auto found = records.remember(*of_ann.client, request);
        REQUIRE(found.fop != nullptr);
        runs.emplace_back(records, *found.fop, request).ends = request != kFops;
    }
    const auto kept = records.remember(*of_bob.client, 1);
    REQUIRE(kept.fop != nullptr);
    Run run_of_bob(records, *kept.fop, 1);
    const auto abandoned = [&runs] {
        std::uint64_t count = 0;
        for (const Run& each : runs) count += each.abandoned;
        return count;
    };
    runs.front().end();  // Has its reply before the client goes.
    of_ann.go(records, at(0));

    CHECK_FALSE(records.forget_old(at(59)));
    CHECK(abandoned() == 0);
    CHECK(records.forget_old(at(60)));
    CHECK(abandoned() == 256);
    CHECK_FALSE(records.forget_old(at(60)));
    CHECK(abandoned() == kFops - 1);
    CHECK_FALSE(records.forget_old(at(1000)));
    CHECK(abandoned() == kFops - 1);
    CHECK(run_of_bob.abandoned == 0);
    CHECK(records.size() == 2);

    // The last one takes its time.
    runs.back().end();
    CHECK(records.forget_old(at(2060)));  // Its fops are all that one step forgets.
    CHECK(records.find(client_id(1), identity_of("ann")) == nullptr);
    CHECK_FALSE(records.forget_old(at(2060)));
    run_of_bob.end();
    of_bob.go(records, at(2000));
}

TEST_CASE("fabric clients: fops of a client that came back are not abandoned", "[fabric]") {
    ClientRecords records(kLimits);
    Visitor of_ann;
    of_ann.come(records, 1, "ann");
    const auto found = records.remember(*of_ann.client, 1);
    REQUIRE(found.fop != nullptr);
    Run run(records, *found.fop, 1);
    of_ann.go(records, at(0));
    Visitor again;
    again.come(records, 1, "ann");
    REQUIRE(again.client == of_ann.client);

    CHECK_FALSE(records.forget_old(at(1000)));
    records.abandon([](const fop::Identity&) { return false; });

    CHECK(run.abandoned == 0);
    run.end();
    CHECK(again.client->fops().at(1).reply.has_value());
    again.go(records, at(2000));
}

TEST_CASE("fabric handshakes: one host has half of the places, and gets them back", "[fabric]") {
    HandshakePlaces places({.count_max = 100, .time_max = 5s});
    HandshakePlaces::Host* const first = places.take("10.0.0.1", at(0));
    REQUIRE(first != nullptr);
    int taken = 1;
    while (places.take("10.0.0.1", at(0)) != nullptr) ++taken;
    REQUIRE(taken == 50);
    for (int i = 0; i < 25; ++i) REQUIRE(places.take("10.0.0.2", at(0)) != nullptr);
    REQUIRE(places.take("10.0.0.2", at(0)) == nullptr);

    places.give_back(*first);
    REQUIRE(places.take("10.0.0.1", at(0)) == nullptr);  // The other one has the rest by now.
    for (int i = 0; i < 49; ++i) places.give_back_later(*first, at(1));
    REQUIRE(places.take("10.0.0.1", at(5)) == nullptr);
    REQUIRE(places.take("10.0.0.1", at(6)) != nullptr);
    REQUIRE(places.taken() == 26);
}

TEST_CASE(
    "fabric handshakes: when all places are taken, the host with the most gives one to a new host",
    "[fabric]") {
    HandshakePlaces places({.count_max = 4, .time_max = 5s});
    std::map<std::string, HandshakePlaces::Host*> hosts;
    for (const char* const host : {"a", "a", "b", "c"}) {
        hosts[host] = places.take(host, at(0));
        REQUIRE(hosts[host] != nullptr);
    }
    REQUIRE(places.take("d", at(0)) == nullptr);
    REQUIRE(places.is_full_for("d"));
    REQUIRE_FALSE(places.is_full_for("c"));
    REQUIRE(places.has_most(*hosts["a"]));
    REQUIRE_FALSE(places.has_most(*hosts["b"]));
    REQUIRE(hosts["b"]->count() == 1);
    // Both handshakes of "a" run; "b" has fewer.
    places.give_back_later(*hosts["b"], at(1));
    REQUIRE_FALSE(places.free_failed());

    places.give_back_later(*hosts["a"], at(1));
    REQUIRE(places.free_failed());

    REQUIRE(places.take("d", at(1)) != nullptr);
    // What was freed is not freed again when its time is over.
    REQUIRE(places.take("e", at(7)) != nullptr);
    REQUIRE(places.take("f", at(7)) == nullptr);
    REQUIRE(places.taken() == 4);
}

TEST_CASE("fabric handshakes: among hosts with as many places, the oldest gives way", "[fabric]") {
    HandshakePlaces places({.count_max = 3, .time_max = 5s});
    for (const char* const host : {"c", "b", "a"}) {
        HandshakePlaces::Host* const taken = places.take(host, at(0));
        REQUIRE(taken != nullptr);
        places.give_back_later(*taken, at(0));
    }

    REQUIRE(places.free_failed());
    REQUIRE(places.take("c", at(1)) != nullptr);
    REQUIRE(places.free_failed());
    REQUIRE(places.take("d", at(1)) != nullptr);

    REQUIRE(places.is_full_for("b"));
    REQUIRE_FALSE(places.is_full_for("a"));
}

TEST_CASE("fabric handshakes: a host is an address without its port", "[fabric]") {
    REQUIRE(HandshakePlaces::host_of("10.0.0.1:4711") == "10.0.0.1");
    REQUIRE(HandshakePlaces::host_of("tcp://10.0.0.1:4711") == "tcp://10.0.0.1");
    REQUIRE(HandshakePlaces::host_of("client") == "client");
}

// One machine may have all addresses of its /64.
TEST_CASE("fabric handshakes: all addresses of an IPv6 network are one host", "[fabric]") {
    const auto host_of = [](std::string_view peer) {
        return std::string(HandshakePlaces::host_of(peer));
    };
    const std::string host = host_of("tcp://[2001:db8:1:2::1]:4711");
    REQUIRE(host_of("tcp://[2001:db8:1:2:aaaa:bbbb:cccc:dddd]:1") == host);
    REQUIRE(host_of("tcp://[2001:db8:1:3::1]:4711") != host);
    REQUIRE(host_of("tcp://[fe80::1%eth0]:1") == host_of("tcp://[fe80::2%eth0]:2"));
    // These are addresses of IPv4, each a host of its own.
    REQUIRE(host_of("tcp://[::ffff:10.0.0.1]:1") != host_of("tcp://[::ffff:10.0.0.2]:1"));
    REQUIRE(host_of("tcp://[::ffff:10.0.0.1]:1") == host_of("tcp://[::ffff:10.0.0.1]:2"));
}

}  // namespace fopd::fabric
