#pragma once

#include "core/ensure.h"

namespace fopd::core {

// Base class of objects in an IntrusiveList. The destructor removes the object from its list.
class ListNode {
public:
    ListNode() = default;
    ~ListNode() { unlink(); }
    ListNode(const ListNode&) = delete;
    ListNode& operator=(const ListNode&) = delete;

    bool linked() const { return next_ != this; }

    void unlink() {
        if (!linked()) return;
        next_->prev_ = prev_;
        prev_->next_ = next_;
        next_ = prev_ = this;
    }

private:
    template <typename T>
    friend class IntrusiveList;

    ListNode* next_ = this;
    ListNode* prev_ = this;
};

// A FIFO list of objects that derive from ListNode. Each object is in at most one list. The list
// allocates nothing and does not own its objects; the caller keeps them alive.
template <typename T>
class IntrusiveList {
public:
    bool empty() const { return !head_.linked(); }

    void push_back(T& object) { link_before(head_, object); }

    // Inserts the object before the first one for which `is_later` holds, or at the end.
    template <typename IsLater>
    void insert_before_first(T& object, IsLater is_later) {
        ListNode* place = head_.next_;
        while (place != &head_ && !is_later(static_cast<T&>(*place))) place = place->next_;
        link_before(*place, object);
    }

    // REQUIRES: not empty.
    T& front() {
        ENSURE(!empty());
        return static_cast<T&>(*head_.next_);
    }

    // REQUIRES: not empty.
    T& back() {
        ENSURE(!empty());
        return static_cast<T&>(*head_.prev_);
    }

    // Removes and returns the oldest object, or returns null.
    T* pop_front() {
        if (empty()) return nullptr;
        T& object = front();
        static_cast<ListNode&>(object).unlink();
        return &object;
    }

    // The oldest object for which `is_wanted` holds, or null.
    template <typename IsWanted>
    T* find(IsWanted is_wanted) {
        ListNode* node = head_.next_;
        while (node != &head_ && !is_wanted(static_cast<T&>(*node))) node = node->next_;
        return node == &head_ ? nullptr : &static_cast<T&>(*node);
    }

    // Calls `visit` with each object, oldest first. `visit` may unlink the object that it is called
    // with.
    template <typename Visit>
    void for_each(Visit visit) {
        visit_after(head_, visit);
    }

    // Likewise with each object behind `object`, which is in this list.
    template <typename Visit>
    void for_each_after(T& object, Visit visit) {
        visit_after(object, visit);
    }

private:
    template <typename Visit>
    void visit_after(ListNode& first, Visit& visit) {
        for (ListNode* node = first.next_; node != &head_;) {
            ListNode* const next = node->next_;
            visit(static_cast<T&>(*node));
            node = next;
        }
    }

    static void link_before(ListNode& place, ListNode& node) {
        ENSURE(!node.linked());
        node.prev_ = place.prev_;
        node.next_ = &place;
        place.prev_->next_ = &node;
        place.prev_ = &node;
    }

    ListNode head_;
};

}  // namespace fopd::core
