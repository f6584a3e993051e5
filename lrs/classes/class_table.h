#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/intrusive_list.h"
#include "core/time.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

// What is noted of a class so that a ClassTable knows it.
class KnownClass : public core::ListNode {
public:
    explicit KnownClass(const ClassHash& of) : hash(of) {}

    const ClassHash hash;
    std::uint32_t index = 0;  // In its table. Another class may have it later.

private:
    template <typename Class>
    friend class ClassTable;

    KnownClass* next_ = nullptr;
    Instant idle_since_{};
};

// The classes that a locality knows, and which of them wait for nothing, the longest first. `Class`
// derives from KnownClass.
template <typename Class>
class ClassTable {
public:
    ClassTable() : chains_(kChainsMin, nullptr) {}

    std::size_t count() const { return count_; }
    // Places of classes, of which some may be null.
    const std::vector<std::unique_ptr<Class>>& places() const { return places_; }
    Class* at(std::uint32_t index) const { return places_[index].get(); }

    Class* find(const ClassHash& hash) const {
        KnownClass* known = chains_[chain_of(hash)];
        while (known != nullptr && known->hash != hash) known = known->next_;
        return static_cast<Class*>(known);
    }

    // Requires: no other has its hash.
    Class& add(std::unique_ptr<Class> made) {
        if (count_ == chains_.size()) grow();
        Class& added = *made;
        if (holes_.empty()) {
            added.index = static_cast<std::uint32_t>(places_.size());
            places_.push_back(std::move(made));
        } else {
            added.index = holes_.back();
            holes_.pop_back();
            places_[added.index] = std::move(made);
        }
        link(added);
        ++count_;
        return added;
    }

    void drop(Class& gone) {
        KnownClass** place = &chains_[chain_of(gone.hash)];
        while (*place != &gone) place = &(*place)->next_;
        *place = gone.KnownClass::next_;
        holes_.push_back(gone.index);
        --count_;
        places_[gone.index].reset();
    }

    // It has nothing to wait for any more. It is idle until it is unlinked.
    void fell_idle(Class& idle, Instant now) {
        idle.KnownClass::idle_since_ = now;
        idle_.push_back(idle);
    }
    // Null: none is idle.
    Class* longest_idle() { return idle_.empty() ? nullptr : static_cast<Class*>(&idle_.front()); }

    // Calls `drop` with some of those that have been idle for that time, few in each call, so that
    // none takes long.
    template <typename Drop>
    void forget_idle(Instant now, Duration after_idle, Drop drop) {
        if (now < forget_at_) return;
        for (int i = 0; i < kForgottenMax && !idle_.empty(); ++i) {
            if (now - idle_.front().idle_since_ < after_idle) break;
            drop(static_cast<Class&>(idle_.front()));
        }
        forget_at_ = after(idle_.empty() ? now : idle_.front().idle_since_, after_idle);
    }

private:
    static constexpr std::size_t kChainsMin = 64;
    static constexpr int kForgottenMax = 2;

    std::size_t chain_of(const ClassHash& hash) const { return hash.high & (chains_.size() - 1); }
    void link(KnownClass& known) {
        known.next_ = std::exchange(chains_[chain_of(known.hash)], &known);
    }
    void grow() {
        chains_.assign(chains_.size() * 2, nullptr);
        for (const auto& known : places_) {
            if (known) link(*known);
        }
    }

    std::vector<std::unique_ptr<Class>> places_;
    std::vector<std::uint32_t> holes_;
    std::vector<KnownClass*> chains_;  // By hash.
    core::IntrusiveList<KnownClass> idle_;
    std::size_t count_ = 0;
    Instant forget_at_{};
};

}  // namespace fopd::lrs
