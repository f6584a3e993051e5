#pragma once

#include <atomic>

#include "core/ensure.h"

namespace fopd::core {

class Mailbox;

// Work to be done on another reactor's thread. The sender owns the message and keeps it until it
// has been delivered. A message is in at most one mailbox at a time, which bounds every mailbox.
// Destroying a queued message removes it from the mailbox; this is safe only while the receiver
// runs no turn, as in the simulation when the sender's reactor is dropped.
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
    Mailbox* mailbox_ = nullptr;  // The mailbox it is queued in; null when not queued.
    Message* next_ = nullptr;
};

// A lock-free queue with many senders and one receiver; FIFO for each sender.
class Mailbox {
public:
    Mailbox() = default;
    ~Mailbox() {
        take_all();
        for (Message* each = taken_; each != nullptr; each = each->next_) each->mailbox_ = nullptr;
    }
    Mailbox(const Mailbox&) = delete;
    Mailbox& operator=(const Mailbox&) = delete;

    // Thread-safe. The sender stores the message and then loads the receiver's `sleeping_` flag;
    // the receiver sets the flag and then checks the mailbox. Both use sequentially consistent
    // operations, so at least one side sees the other's store and no wake-up is lost.
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

    // On the receiver's thread: delivers the messages queued now, oldest first, and returns their
    // number. Messages that arrive meanwhile wait for the next call.
    unsigned deliver() {
        if (newest_.load(std::memory_order_relaxed) != nullptr) take_all();
        unsigned count = 0;
        while (taken_ != nullptr) {
            Message& message = *taken_;
            // Unlink the message first: delivery may destroy it or post it again.
            taken_ = message.next_;
            message.mailbox_ = nullptr;
            message.deliver_(message);
            ++count;
        }
        return count;
    }

    // Removes a queued message that is being destroyed; see Message.
    void forget(Message& message) {
        take_all();
        for (Message** link = &taken_; *link != nullptr; link = &(*link)->next_) {
            if (*link != &message) continue;
            *link = message.next_;
            break;
        }
        message.mailbox_ = nullptr;
    }

private:
    // Moves newly arrived messages to the end of `taken_`, oldest first.
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
    Message* taken_ = nullptr;  // Taken from `newest_`, not yet delivered; oldest first.
};

inline Message::~Message() {
    if (mailbox_ != nullptr) mailbox_->forget(*this);
}

}  // namespace fopd::core
