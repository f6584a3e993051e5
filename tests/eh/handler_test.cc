// Goal: a node's epoch handler answers each call once and in time, whatever its file does. Method:
// the handler alone in virtual time, with a file whose calls end when the test says so.

#include "eh/peers/handler.h"

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/byte_order.h"
#include "core/virtual_world.h"
#include "tests/catch.h"
#include "tests/eh/fake_etcd.h"
#include "tests/eh/memory_file.h"

namespace handler_test {

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;
using fopd::eh::testing::EventLines;
using fopd::eh::testing::MemoryFile;

namespace {

class NoLinks final : public MessageSender {
public:
    void send(const Peer&, const Message&) override { count += takes ? 1 : 0; }
    std::uint64_t requests_taken() const override { return count; }
    std::string problem_with(const std::string& name) const override {
        return name == "r" ? problem : "";
    }
    bool takes = false;  // What is sent arrives somewhere.
    std::uint64_t count = 0;
    std::string problem;  // With the member r.
};

// Answers when the test says so.
class SilentStore final : public ViewStore {
public:
    bool is_shared() const override { return true; }
    void read(ViewStoreUser& user) override { reader = &user; }
    void swap(ViewNumber, ViewHandle next, ViewStoreUser& user) override {
        view = std::move(next);
        writer = &user;
    }
    void answer_read(Result<ViewHandle> with) {
        if (auto* const user = std::exchange(reader, nullptr)) user->on_view_read(std::move(with));
    }
    void answer_swap() {
        if (auto* const user = std::exchange(writer, nullptr)) user->on_view_swapped(Swapped::kYes);
    }
    ViewStoreUser* reader = nullptr;
    ViewStoreUser* writer = nullptr;
    ViewHandle view;
};

class Noting final : public Participant {
public:
    void on_epoch(Result<EpochNumber> epoch, std::span<const std::byte> with) override {
        answers.push_back(epoch);
        data.assign(with.begin(), with.end());
    }
    std::vector<Result<EpochNumber>> answers;
    std::vector<std::byte> data;  // Of the last answer.
};

// Makes each contribution longer, and the result shorter again.
class NotingObserver final : public EpochObserver {
public:
    EpochRules rules(const EpochRules& plain) const override {
        EpochRules longer = plain;
        longer.granule = 3;
        return longer;
    }
    void mark(const std::string&, std::vector<std::byte>& data) override {
        data.push_back(std::byte{9});
    }
    void on_call(const std::string& node, Duration longest) override {
        CHECK(longest == MemberOptions{}.watchdog());
        lines.push_back(node + " calls");
    }
    void on_leave(const std::string& node, Incarnation incarnation) override {
        lines.push_back(node + " leaves as " + std::to_string(incarnation));
    }
    bool on_effect(const std::string&, const Effect&) override { return true; }
    void on_settled(const std::string&, const Member&) override {}
    void on_answer(const std::string& node, Incarnation, Answer& answer) override {
        lines.push_back(node + (answer.epoch ? " begins an epoch" : " gets none"));
        if (!answer.epoch) return;
        REQUIRE(answer.data.size() == 3);
        CHECK(answer.data.back() == std::byte{9});
        answer.data.pop_back();
    }
    std::vector<std::string> lines;
};

class Node {
public:
    explicit Node(Duration starts_at = 1s, const MemberOptions& options = {},
                  EpochObserver* observer = nullptr)
        : reactor_(world.make_reactor()),
          handler({.reactor = *reactor_,
                   .events = events,
                   .links = links,
                   .incarnation = file,
                   .views = store,
                   .observer = observer},
                  options, {.name = "a", .address = "a"}) {
        run_for(starts_at);
    }

    // The reactor has a turn at the end, so that it knows the time.
    void run_for(Duration span) {
        world.run_for(span);
        REQUIRE(world.run(*reactor_, turn(reactor_.get())));
    }

    core::VirtualWorld world{1};
    EventLines events;
    NoLinks links;
    MemoryFile file;
    SilentStore store;
    Noting participant;

private:
    static Task<void> turn(core::Reactor* reactor) { co_await reactor->yield(); }

    std::unique_ptr<core::Reactor> reactor_;

public:
    PeersHandler handler;
};

// How often it has told this since it was asked last.
std::ptrdiff_t told(Node& node, std::string_view event) {
    return std::ranges::count_if(node.events.take(), [&](const std::string& line) {
        return line.find(event) != std::string::npos;
    });
}

// A little longer than a call may wait.
const Duration kPatience = MemberOptions{}.watchdog() + 1ms;

}  // namespace

TEST_CASE("eh handler: a call is answered in time, also before the node is a member", "[eh]") {
    // 0: the node does not serve. 1: its file hangs while it is read; 2: it fails; 3: it hangs
    // while it is written.
    const int how = GENERATE(0, 1, 2, 3);
    CAPTURE(how);
    Node node;
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    if (how > 0) node.handler.begin();
    if (how == 2) {
        node.file.fails_read = true;
        node.file.finish();
    }
    if (how == 3) node.file.finish_one();
    for (Duration waited = 0s; waited < kPatience; waited += 500ms) {
        node.run_for(500ms);
        if (how == 2) node.file.finish();
    }
    REQUIRE(node.participant.answers.size() == 1);
    CHECK(node.participant.answers[0].error().os_errno == ETIMEDOUT);

    // The next call waits as long, and is answered once.
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    node.run_for(kPatience - 10ms);
    if (how < 2) CHECK(node.participant.answers.size() == 1);
    node.run_for(20ms);
    CHECK(node.participant.answers.size() == 2);
    node.handler.stop();
    CHECK(node.participant.answers.size() == 2);
}

TEST_CASE("eh handler: without a durable incarnation a node joins nobody, and tries again",
          "[eh]") {
    Node node;
    node.file.fails_before = true;
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    node.handler.begin();
    for (std::size_t tries = 1; tries <= 3; ++tries) {
        node.file.finish();
        CHECK(node.file.writes == tries);
        CHECK(node.store.reader == nullptr);
        node.run_for(1001ms);
    }
    CHECK(told(node, "eh.incarnation_failed") == 1);
    CHECK(node.handler.status().last_error.starts_with("the incarnation of this node: "));

    node.file.fails_before = false;
    node.file.finish();
    REQUIRE(node.store.reader != nullptr);
    node.store.answer_read(ViewHandle{});
    node.store.answer_swap();
    node.run_for(1s);
    REQUIRE(node.participant.answers.size() == 1);
    CHECK(node.participant.answers[0].has_value());
    node.handler.stop();
}

TEST_CASE("eh handler: a participant may be ready again within its callback, and leave", "[eh]") {
    class Eager final : public Participant {
    public:
        explicit Eager(EpochHandler& handler) : handler_(handler) {}
        void on_epoch(Result<EpochNumber> epoch, std::span<const std::byte>) override {
            REQUIRE(epoch.has_value());
            epochs.push_back(*epoch);
            if (epochs.size() == 4) return handler_.last_epoch(*epoch);
            REQUIRE(handler_.next_epoch(*epoch, {}, *this));
            // It is answered after this one.
            REQUIRE(handler_.next_epoch(*epoch, {}, *this).error().os_errno == EALREADY);
        }
        std::vector<EpochNumber> epochs;

    private:
        EpochHandler& handler_;
    };
    Node node;
    Eager eager(node.handler);
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, eager));
    node.handler.begin();
    for (int i = 0; i < 4; ++i) node.file.finish();
    node.store.answer_read(ViewHandle{});
    node.store.answer_swap();
    node.run_for(1s);
    CHECK(eager.epochs == std::vector<EpochNumber>{1, 2, 3, 4});
    node.handler.stop();
    CHECK(eager.epochs.size() == 4);
}

TEST_CASE("eh handler: a majority is waived where that has an effect only", "[eh]") {
    Node node;
    CHECK_FALSE(node.handler.waive_majority());
    node.handler.begin();
    node.file.finish();
    const auto lasts = node.handler.waive_majority();
    REQUIRE(lasts);
    CHECK(*lasts == MemberOptions{}.watchdog());
    CHECK(told(node, "eh.majority_waived") == 1);

    MemberOptions options;
    options.root = {.name = "root", .address = "r"};
    Node other(1s, options);
    other.handler.begin();
    other.file.finish();
    CHECK(other.handler.waive_majority().error().ends_with("root"));
    CHECK(told(other, "eh.majority_waived") == 0);
}

TEST_CASE("eh handler: the time before a node is a member counts for its call", "[eh]") {
    Node node;
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    node.run_for(kPatience / 2);
    node.handler.begin();
    node.file.finish();
    node.run_for(kPatience / 2 + 1ms);
    REQUIRE(node.participant.answers.size() == 1);
    CHECK(node.participant.answers[0].error().os_errno == ETIMEDOUT);
}

TEST_CASE("eh handler: daemons without a file begin with incarnations of their own", "[eh]") {
    const auto first_of = [](Duration starts_at) {
        Node node(starts_at);
        REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
        node.handler.begin();
        node.file.finish();
        REQUIRE(node.file.bytes.has_value());
        node.handler.stop();
        return load_little<Incarnation>(node.file.bytes->data());
    };
    CHECK(first_of(1s) > 0);
    CHECK(first_of(1s) != first_of(1s + 1ns));
}

TEST_CASE("eh handler: a damaged file of the incarnation is like a lost one", "[eh]") {
    // Too short, or full of ones: no higher number follows that one.
    const std::size_t size = GENERATE(7U, 8U);
    Node node;
    node.file.bytes.emplace(size, std::byte{0xff});
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    node.handler.begin();
    node.file.finish_one();
    REQUIRE(node.file.writes == 1);
    node.file.finish_one();
    CHECK(told(node, "eh.incarnation_failed") == 1);
    CHECK(node.file.writes == 1);
    REQUIRE(node.file.bytes->size() == sizeof(Incarnation));
    const auto incarnation = load_little<Incarnation>(node.file.bytes->data());
    CHECK(incarnation > 0);
    CHECK(incarnation < kIncarnationMax);
    node.handler.stop();
}

TEST_CASE("eh handler: a store that fails is reported once for each reason", "[eh]") {
    Node node;
    const Error one{.code = Errc::kTimedOut, .context = "one"};
    const Error other{.code = Errc::kTimedOut, .context = "other"};
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    node.handler.begin();
    for (int i = 0; i < 4; ++i) node.file.finish();
    const auto fail = [&](const Error& error) {
        REQUIRE(node.store.reader != nullptr);
        node.store.answer_read(std::unexpected(error));
        node.run_for(600ms);
    };
    fail(one);
    fail(one);
    CHECK(told(node, "eh.view_not_read") == 1);
    fail(other);
    CHECK(told(node, "eh.view_not_read") == 1);
    CHECK(node.handler.figures().store_failed.get() == 3);
    node.handler.stop();
}

TEST_CASE("eh handler: while daemons are awaited, it says so", "[eh]") {
    MemberOptions options;
    options.expect = 3;
    Node node(1s, options);
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    node.handler.begin();
    for (int i = 0; i < 4; ++i) node.file.finish();
    node.store.answer_read(ViewHandle{});
    node.store.answer_swap();
    node.run_for(kPatience);
    REQUIRE(node.participant.answers.size() == 1);
    CHECK(node.handler.status().last_error == "waiting for 3 daemons (eh.expect), 1 have joined");
    node.handler.stop();
}

TEST_CASE("eh handler: a node that is not reached, or does not reach the root, says so", "[eh]") {
    MemberOptions options;
    options.root = {.name = "r", .address = "r"};
    const auto error_with = [&](bool is_taken, bool hears, const std::string& problem) {
        Node node(1s, options);
        node.links.takes = is_taken;
        node.links.problem = problem;
        node.handler.begin();
        node.file.finish();
        REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
        for (int i = 0; i < 4; ++i) node.file.finish();
        node.run_for(1s);
        if (hears) node.handler.on_message(options.root, encode({.body = Beat{}}));
        node.run_for(kPatience);
        REQUIRE(node.participant.answers.size() == 1);
        const std::string error = node.handler.status().last_error;
        // The log has the same.
        CHECK(told(node, error) == 1);
        node.handler.stop();
        return error;
    };
    const std::string plain = error_with(false, false, "");
    CHECK(error_with(true, true, "") == plain);
    CHECK(error_with(true, false, "") ==
          plain +
              "; other daemons take the messages of this one, and none of theirs arrives at a, "
              "its address in eh.members or eh.address");
    CHECK(error_with(false, false, "takes no messages at tcp://r:1: it is starting") ==
          plain + "; the root r takes no messages at tcp://r:1: it is starting");
}

TEST_CASE("eh handler: whoever asks a root that is no member itself says so", "[eh]") {
    MemberOptions options;
    options.root = {.name = "r", .address = "r"};
    const Peer from = GENERATE(Peer{.name = "r", .address = "r"}, Peer{.name = "b"});
    Node node(1s, options);
    node.links.takes = true;
    node.handler.begin();
    node.file.finish();
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    for (int i = 0; i < 4; ++i) node.file.finish();
    node.run_for(1s);
    CHECK(node.handler.on_message(from, encode({.body = Redirect{}})));
    node.run_for(kPatience);
    REQUIRE(node.participant.answers.size() == 1);
    const std::string error = node.handler.status().last_error;
    CHECK(error.ends_with("; the root r has not joined the epochs itself yet") ==
          (from.name == "r"));
    node.handler.stop();
}

TEST_CASE("eh handler: messages are taken while a node takes part, and not before or after",
          "[eh]") {
    const Peer from{.name = "b", .address = "b"};
    const std::vector<std::byte> message = encode({.incarnation = 1, .body = Join{.address = "b"}});
    Node node;
    CHECK_FALSE(node.handler.on_message(from, message));
    node.handler.begin();
    CHECK_FALSE(node.handler.on_message(from, message));
    node.file.finish();
    CHECK(node.handler.on_message(from, message));
    // Also one that makes no sense.
    CHECK(node.handler.on_message(from, {}));
    node.handler.stop();
    CHECK_FALSE(node.handler.on_message(from, message));
}

namespace {

// The node asks the root r for admission. Returns the view 7 of r that has it.
View view_with(Node& node) {
    node.handler.begin();
    node.file.finish();
    REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
    for (int i = 0; i < 4; ++i) node.file.finish();
    REQUIRE(node.file.bytes.has_value());
    const auto incarnation = load_little<Incarnation>(node.file.bytes->data());
    View view{.number = 7, .epoch_low = 1, .epoch_high = 1000};
    view.roster = {{.name = "r", .incarnation = 1, .address = "r", .joined = 1},
                   {.name = "a", .incarnation = incarnation, .address = "a", .joined = 7}};
    return view;
}

void hear(Node& node, const View& view) {
    const std::vector<std::byte> bytes = CommittedView(view).bytes();
    const auto size = static_cast<std::uint32_t>(bytes.size());
    node.handler.on_message(
        {.name = "r", .address = "r"},
        encode({.view = view.number,
                .round = 1,
                .incarnation = 1,
                .body = ViewPart{.number = view.number, .total = size, .bytes = bytes}}));
    REQUIRE(node.handler.status().view == view.number);
}

}  // namespace

TEST_CASE("eh handler: what a root has said before it let a node in is no reason later", "[eh]") {
    MemberOptions options;
    options.root = {.name = "r", .address = "r"};
    Node node(1s, options);
    hear(node, view_with(node));
    CHECK(node.handler.on_message(options.root, encode({.body = Redirect{}})));
    node.run_for(kPatience);
    REQUIRE(node.participant.answers.size() == 1);
    CHECK_FALSE(node.handler.status().last_error.empty());
    CHECK_FALSE(node.handler.status().last_error.contains("no member"));
    node.handler.stop();
}

TEST_CASE("eh handler: a node that is no member is detached, and does not know of others", "[eh]") {
    MemberOptions options;
    options.others = {{.name = "a", .address = "a"}, {.name = "b", .address = "b"}};
    Node node(1s, options);

    const EpochStatus status = node.handler.status();

    using State = EpochStatus::Seen::State;
    REQUIRE(status.members.size() == 2);
    CHECK(status.members[0].state == State::kDetached);
    CHECK(status.members[1].state == State::kUnknown);
}

TEST_CASE("eh handler: the same difference of rules is reported once a minute", "[eh]") {
    MemberOptions options;
    options.root = {.name = "r", .address = "r"};
    Node node(1s, options);
    const auto round = static_cast<std::uint32_t>(view_with(node).roster[1].incarnation);
    // How many events there are about three refusals.
    const auto refused_for = [&](UnlikeRule rule) {
        [[maybe_unused]] const auto before = node.events.take();
        for (int i = 0; i < 3; ++i) {
            node.handler.on_message(
                options.root,
                encode({.round = round,
                        .body = Refuse{.reason = RefuseReason::kRules, .rule = rule}}));
            node.run_for(1s);
        }
        return told(node, "eh.other_rules");
    };
    CHECK(refused_for(UnlikeRule::kTimeout) == 1);
    CHECK(refused_for(UnlikeRule::kTimeout) == 0);
    CHECK(refused_for(UnlikeRule::kGrace) == 1);
    node.run_for(1min);
    CHECK(refused_for(UnlikeRule::kGrace) == 1);
    node.handler.stop();
}

TEST_CASE("eh handler: a view that a node is in is logged once", "[eh]") {
    MemberOptions options;
    options.root = {.name = "r", .address = "r"};
    Node node(1s, options);
    View view = view_with(node);
    hear(node, view);
    hear(node, view);
    CHECK(told(node, "eh.view") == 1);
    ++view.number;
    hear(node, view);
    CHECK(told(node, "eh.view") == 1);
    node.handler.stop();
}

TEST_CASE("eh handler: a node that nobody reaches asks to join less and less often", "[eh]") {
    const bool hears = GENERATE(false, true);
    MemberOptions options;
    options.root = {.name = "r", .address = "r"};
    Node node(1s, options);
    node.links.takes = true;
    node.handler.begin();
    node.file.finish();
    if (hears) node.handler.on_message(options.root, encode({.body = Beat{}}));
    const auto sent_in_a_minute = [&] {
        const std::uint64_t before = node.links.count;
        for (int i = 0; i < 120; ++i) {
            // Refused while a call is pending.
            (void)node.handler.next_epoch(kFirstEpoch, {}, node.participant);
            node.file.finish();
            node.run_for(500ms);
        }
        return node.links.count - before;
    };
    const std::uint64_t first = sent_in_a_minute();
    for (int minute = 2; minute <= 4; ++minute) sent_in_a_minute();
    const std::uint64_t last = sent_in_a_minute();
    CAPTURE(first, last);
    CHECK(last > 0);
    CHECK((2 * last < first) == !hears);
    node.handler.stop();
}

TEST_CASE("eh handler: without a root a node is lost once", "[eh]") {
    Node node;
    node.handler.begin();
    node.file.finish();
    for (std::size_t i = 1; i <= 3; ++i) {
        REQUIRE(node.handler.next_epoch(kFirstEpoch, {}, node.participant));
        node.run_for(kPatience);
        REQUIRE(node.participant.answers.size() == i);
    }
    CHECK(told(node, "eh.lost") == 1);
    node.handler.stop();
}

TEST_CASE("eh handler: an observer is told of each call and its answer, and who leaves", "[eh]") {
    const std::vector<std::byte> data{std::byte{1}, std::byte{2}};
    NotingObserver observer;
    Node node(1s, {}, &observer);
    CHECK(node.handler.rules().granule == 1);
    CHECK(node.handler.options().rules.granule == 3);
    REQUIRE(node.handler.next_epoch(kFirstEpoch, data, node.participant));
    REQUIRE_FALSE(node.handler.next_epoch(kFirstEpoch, data, node.participant));
    node.handler.last_epoch(kFirstEpoch);
    CHECK(observer.lines == std::vector<std::string>{"a calls", "a gets none"});

    observer.lines.clear();
    REQUIRE(node.handler.next_epoch(kFirstEpoch, data, node.participant));
    node.handler.begin();
    for (int i = 0; i < 4; ++i) node.file.finish();
    node.store.answer_read(ViewHandle{});
    node.store.answer_swap();
    node.run_for(1s);
    REQUIRE(node.participant.answers.size() == 2);
    REQUIRE(node.participant.answers.back().has_value());
    CHECK(node.participant.data == data);
    node.handler.last_epoch(*node.participant.answers.back());
    REQUIRE(observer.lines.size() == 3);
    CHECK(observer.lines[0] == "a calls");
    CHECK(observer.lines[1] == "a begins an epoch");
    CHECK(observer.lines[2].starts_with("a leaves as "));
    node.handler.stop();
}

}  // namespace handler_test
