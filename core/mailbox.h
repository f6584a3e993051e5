#pragma once

#include <atomic>

namespace fopd::core {

// Something to be done on another reactor's thread. The sender owns it, keeps it until it has been
// delivered, and posts it at most once at a time: that bounds every mailbox.
class Message {
public:
    using Deliver = void (*)(Message&);
    explicit Message(Deliver deliver) : deliver_(deliver) {}
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

private:
    friend class Mailbox;
    Deliver deliver_;
    Message* next_ = nullptr;
};

// Many senders, one receiver, lock-free, first in first out for each sender.
class Mailbox {
public:
    // From any thread. The order of this store and the receiver's `sleeping` flag matters: both
    // sides use sequentially consistent operations, so that one of them always sees the other.
    void push(Message& message) {
        Message* head = newest_.load(std::memory_order_relaxed);
        do {
            message.next_ = head;
        } while (!newest_.compare_exchange_weak(head, &message, std::memory_order_seq_cst,
                                                std::memory_order_relaxed));
    }

    bool empty() const { return newest_.load(std::memory_order_seq_cst) == nullptr; }

    // On the receiver's thread: delivers what is there now, oldest first, and says how much that
    // was. What arrives meanwhile waits for the next call.
    unsigned deliver() {
        if (newest_.load(std::memory_order_relaxed) == nullptr) return 0;
        Message* oldest = nullptr;
        for (Message* each = newest_.exchange(nullptr, std::memory_order_acquire);
             each != nullptr;) {
            Message* const next = each->next_;
            each->next_ = oldest;
            oldest = each;
            each = next;
        }
        unsigned count = 0;
        while (oldest != nullptr) {
            Message& message = *oldest;
            oldest = message.next_;  // Read first: once delivered, the message may be gone.
            message.deliver_(message);
            ++count;
        }
        return count;
    }

private:
    std::atomic<Message*> newest_ = nullptr;
};

}  // namespace fopd::core
