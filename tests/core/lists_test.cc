// The intrusive parts everything waits in: list, cancel source, mailbox.

#include <optional>
#include <stdexcept>
#include <vector>

#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "core/mailbox.h"
#include "tests/catch.h"

using namespace fopd::core;

namespace {
struct Item : ListNode {
    explicit Item(int number) : value(number) {}
    int value;
};
}  // namespace

TEST_CASE("core intrusive list: first in, first out, and out of the middle", "[core]") {
    IntrusiveList<Item> list;
    Item one(1);
    Item two(2);
    std::optional<Item> three(3);
    list.push_back(one);
    list.push_back(two);
    list.push_back(*three);
    REQUIRE(list.front().value == 1);
    REQUIRE(list.back().value == 3);

    three.reset();  // Leaves by itself.
    one.unlink();
    one.unlink();
    list.push_back(one);

    REQUIRE(list.pop_front() == &two);
    REQUIRE(!two.linked());
    REQUIRE(list.pop_front() == &one);
    REQUIRE(list.pop_front() == nullptr);
    REQUIRE(list.empty());
}

TEST_CASE("core intrusive list: insert puts an object before the first later one", "[core]") {
    IntrusiveList<Item> list;
    Item one(1);
    Item two(2);
    Item three(3);
    const auto insert = [&list](Item& item) {
        list.insert_before_first(item, [&item](Item& other) { return other.value > item.value; });
    };

    insert(two);
    insert(one);
    insert(three);

    REQUIRE(list.pop_front() == &one);
    REQUIRE(list.pop_front() == &two);
    REQUIRE(list.pop_front() == &three);
}

TEST_CASE("core intrusive list: a visit may begin behind an object, and removes what it sees",
          "[core]") {
    IntrusiveList<Item> list;
    Item one(1);
    Item two(2);
    Item three(3);
    list.push_back(one);
    list.push_back(two);
    list.push_back(three);
    std::vector<int> seen;

    list.for_each_after(one, [&seen](Item& item) {
        seen.push_back(item.value);
        item.unlink();
    });

    REQUIRE(seen == std::vector{2, 3});
    REQUIRE(&list.back() == &one);
}

TEST_CASE("core intrusive list: those inside survive the list", "[core]") {
    std::optional<IntrusiveList<Item>> list(std::in_place);
    Item one(1);
    Item two(2);
    list->push_back(one);
    list->push_back(two);

    list.reset();
    one.unlink();

    REQUIRE(!two.linked());
}

namespace {
struct Hook final : CancelHook {
    Hook() : CancelHook(&on_cancel) {}
    static void on_cancel(CancelHook& hook) {
        auto& self = static_cast<Hook&>(hook);
        ++self.told;
        if (self.victim != nullptr) self.victim->unlink();
        if (self.source != nullptr) self.source->cancel();
    }
    int told = 0;
    Hook* victim = nullptr;
    CancelSource* source = nullptr;
};
}  // namespace

TEST_CASE("core cancel: everybody is told once, whatever they do about it", "[core]") {
    CancelSource source;
    Hook one;
    Hook gone;
    Hook last;
    source.add(one);
    source.add(gone);
    source.add(last);
    one.victim = &gone;    // Takes another out while the source goes through them,
    one.source = &source;  // and cancels again.

    source.cancel();
    source.cancel();

    REQUIRE(source.cancelled());
    REQUIRE(one.told == 1);
    REQUIRE(gone.told == 0);
    REQUIRE(last.told == 1);
}

namespace {
struct Letter final : Message {
    Letter(std::vector<int>* delivered, int number)
        : Message(&on_deliver), log(delivered), value(number) {}
    static void on_deliver(Message& message) {
        auto& self = static_cast<Letter&>(message);
        self.log->push_back(self.value);
        if (self.again != nullptr) self.again->push(self);
        if (self.victim != nullptr) self.victim->reset();
        if (self.fail) throw std::runtime_error("letter");
    }
    std::vector<int>* log;
    int value;
    Mailbox* again = nullptr;
    std::optional<Letter>* victim = nullptr;
    bool fail = false;
};
}  // namespace

TEST_CASE("core mailbox: first in, first out; what arrives meanwhile waits", "[core]") {
    std::vector<int> log;
    Mailbox mailbox;
    Letter one(&log, 1);
    Letter two(&log, 2);
    one.again = &mailbox;
    mailbox.push(one);
    mailbox.push(two);

    REQUIRE(mailbox.deliver() == 2);
    REQUIRE(log == std::vector<int>{1, 2});
    REQUIRE(!mailbox.empty());
    one.again = nullptr;
    REQUIRE(mailbox.deliver() == 1);
    REQUIRE(mailbox.deliver() == 0);
    REQUIRE(mailbox.empty());
}

TEST_CASE("core mailbox: a message that goes away leaves it", "[core]") {
    std::vector<int> log;
    std::optional<Mailbox> mailbox(std::in_place);
    Letter one(&log, 1);
    std::optional<Letter> two(std::in_place, &log, 2);
    std::optional<Letter> three(std::in_place, &log, 3);
    Letter four(&log, 4);
    mailbox->push(one);
    mailbox->push(*two);
    mailbox->push(*three);
    mailbox->push(four);
    two.reset();          // Before anything is delivered,
    one.victim = &three;  // and in the course of it.

    REQUIRE(mailbox->deliver() == 2);
    REQUIRE(log == std::vector<int>{1, 4});

    mailbox->push(four);
    mailbox.reset();  // The message outlives the mailbox, and may be posted elsewhere.
    Mailbox other;
    other.push(four);
    REQUIRE(other.deliver() == 1);
}

TEST_CASE("core mailbox: a delivery that throws loses no other message", "[core]") {
    std::vector<int> log;
    Mailbox mailbox;
    Letter one(&log, 1);
    Letter two(&log, 2);
    one.fail = true;
    mailbox.push(one);
    mailbox.push(two);

    REQUIRE_THROWS(mailbox.deliver());
    REQUIRE(!mailbox.empty());
    REQUIRE(mailbox.deliver() == 1);
    REQUIRE(log == std::vector<int>{1, 2});
}
