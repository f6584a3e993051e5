#pragma once

#include <atomic>

#include "core/ensure.h"

namespace fopd::core {

class Mailbox;

// Something to be done on another reactor's thread. The sender owns it, keeps it until it has been
// delivered, and posts it at most once at a time: that bounds every mailbox. One that is destroyed
// all the same leaves its mailbox; that needs a receiver that is not turning just then, as in the
// simulated world, where it happens when the sender's reactor is dropped.
class Message {
public:
    using Deliver = void (*)(Message&);
    explicit Message(Deliver deliver) : deliver_(deliver) {}
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;
    ~Message();

private:
    friend Mailbox;
    Deliver deliver_;
    Mailbox* mailbox_ = nullptr;  // Where it waits to be delivered.
    Message* next_ = nullptr;
};

// Many senders, one receiver, lock-free, first in first out for each sender.
class Mailbox {
public:
    Mailbox() = default;
    ~Mailbox() {
        take_all();
        for (Message* each = taken_; each != nullptr; each = each->next_) each->mailbox_ = nullptr;
    }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    // From any thread. The order of this store and the receiver's `sleeping` flag matters: both
    // sides use sequentially consistent operations, so that one of them always sees the other.
    void push(Message& message) {
        ENSURE(message.mailbox_ == nullptr);
        message.mailbox_ = this;
        Message* head = newest_.load(std::memory_order_relaxed);
        do {
            message.next_ = head;
        } while (!newest_.compare_exchange_weak(head, &message, std::memory_order_seq_cst,
                                                std::memory_order_relaxed));
    }

    // On the receiver's thread.
    bool empty() const {
        return newest_.load(std::memory_order_seq_cst) == nullptr && taken_ == nullptr;
    }

    // On the receiver's thread: delivers what is there now, oldest first, and says how much that
    // was. What arrives meanwhile waits for the next call.
    unsigned deliver() {
        if (newest_.load(std::memory_order_relaxed) != nullptr) take_all();
        unsigned count = 0;
        while (taken_ != nullptr) {
            Message& message = *taken_;
            // Forgotten first: once delivered, the message may be gone, or posted again.
            taken_ = message.next_;
            message.mailbox_ = nullptr;
            message.deliver_(message);
            ++count;
        }
        return count;
    }

    // See Message about its destruction.
    void forget(Message& message) {
        take_all();
        for (Message** place = &taken_; *place != nullptr; place = &(*place)->next_) {
            if (*place != &message) continue;
            *place = message.next_;
            break;
        }
        message.mailbox_ = nullptr;
    }

private:
    // Appends what has arrived to what was taken before, oldest first.
    void take_all() {
        Message* oldest = nullptr;
        for (Message* each = newest_.exchange(nullptr, std::memory_order_acquire);
             each != nullptr;) {
            Message* const next = each->next_;
            each->next_ = oldest;
            oldest = each;
            each = next;
        }
        Message** end = &taken_;
        while (*end != nullptr) end = &(*end)->next_;
        *end = oldest;
    }

    std::atomic<Message*> newest_ = nullptr;
    Message* taken_ = nullptr;  // About to be delivered, oldest first.
};

inline Message::~Message() {
    if (mailbox_ != nullptr) mailbox_->forget(*this);
}

}  // namespace fopd::core
