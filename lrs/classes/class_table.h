#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "core/intrusive_list.h"
#include "core/time.h"
#include "core/zeroed_array.h"
#include "lrs/classes/keyed_hash.h"

namespace fopd::lrs {

// The part of a class that a ClassTable uses to manage it.
class KnownClass : public core::ListNode {
public:
    explicit KnownClass(const ClassHash& of) : hash(of) {}

    const ClassHash hash;
    std::uint32_t index = 0;  // In its table. May be reused after the class is dropped.

private:
    template <typename Class>
    friend class ClassTable;

    KnownClass* next_ = nullptr;
    Instant idle_since_{};
};

// The classes that a locality knows, and a list of the idle ones (without waiting requests), the
// longest idle first. `Class` derives from KnownClass. Classes are allocated in chunks, so that a
// new class costs little.
template <typename Class>
class ClassTable {
public:
    // `classes` is about how many classes the table should hold.
    explicit ClassTable(std::size_t classes) : chains_(std::bit_ceil(2 * classes + 1)) {}

    std::size_t count() const { return count_; }
    // Returns null if no class has that index.
    Class* at(std::uint32_t index) const {
        const Chunk* const chunk = chunks_[index / kChunkClasses].get();
        if (chunk == nullptr) return nullptr;
        const std::uint32_t at = index % kChunkClasses;
        return (chunk->used >> at & 1) == 0 ? nullptr : chunk->at(at);
    }
    // In the order of their indices. REQUIRES: `visit` does not add or drop classes.
    template <typename Visit>
    void for_each(Visit visit) const {
        for (const auto& chunk : chunks_) {
            std::uint64_t left = chunk == nullptr ? 0 : chunk->used;
            for (; left != 0; left &= left - 1) visit(*chunk->at(lowest(left)));
        }
    }

    Class* find(const ClassHash& hash) const {
        KnownClass* known = chains_[chain_of(hash)];
        while (known != nullptr && known->hash != hash) known = known->next_;
        return static_cast<Class*>(known);
    }

    // Adds a class, constructed from `hash` and `rest`. REQUIRES: no class has this hash.
    template <typename... Rest>
    Class& add(const ClassHash& hash, Rest&&... rest) {
        if (holes_.empty()) add_holes();
        const std::uint32_t index = holes_.back();
        auto& chunk = chunks_[index / kChunkClasses];
        if (chunk == nullptr) chunk = std::make_unique<Chunk>();
        Class& added = chunk->make(index % kChunkClasses, hash, std::forward<Rest>(rest)...);
        holes_.pop_back();
        added.index = index;
        added.KnownClass::next_ = std::exchange(chains_[chain_of(hash)], &added);
        ++count_;
        return added;
    }

    void drop(Class& gone) {
        KnownClass** link = &chains_[chain_of(gone.hash)];
        while (*link != &gone) link = &(*link)->next_;
        *link = gone.KnownClass::next_;
        const std::uint32_t index = gone.index;
        auto& chunk = chunks_[index / kChunkClasses];
        chunk->destroy(index % kChunkClasses);
        if (chunk->used == 0) chunk.reset();
        holes_.push_back(index);
        --count_;
    }

    // Adds a class without waiting requests to the idle ones. The caller unlinks it when a request
    // arrives.
    void fell_idle(Class& idle, Instant now) {
        idle.KnownClass::idle_since_ = now;
        idle_.push_back(idle);
    }
    // Returns null if no class is idle.
    Class* longest_idle() { return idle_.empty() ? nullptr : static_cast<Class*>(&idle_.front()); }

    // Calls `drop` for classes that have been idle for `after_idle`, only a few in each call, so
    // that no call takes long.
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
    static constexpr std::uint32_t kChunkClasses = 64;
    static constexpr int kForgottenMax = 2;

    // A class is constructed where its bit is set in `used`; the rest is raw memory.
    struct Chunk {
        Chunk() = default;
        ~Chunk() {
            for (; used != 0; used &= used - 1) std::destroy_at(at(lowest(used)));
        }
        Chunk(const Chunk&) = delete;
        Chunk& operator=(const Chunk&) = delete;

        Class* at(std::uint32_t number) const {
            return std::launder(reinterpret_cast<Class*>(memory + number * sizeof(Class)));
        }
        template <typename... Parts>
        Class& make(std::uint32_t number, Parts&&... parts) {
            Class* const made =
                new (memory + number * sizeof(Class)) Class(std::forward<Parts>(parts)...);
            used |= std::uint64_t{1} << number;
            return *made;
        }
        void destroy(std::uint32_t number) {
            used &= ~(std::uint64_t{1} << number);
            std::destroy_at(at(number));
        }

        std::uint64_t used = 0;
        alignas(Class) mutable std::byte memory[kChunkClasses * sizeof(Class)];
    };
    static std::uint32_t lowest(std::uint64_t bits) {
        return static_cast<std::uint32_t>(std::countr_zero(bits));
    }

    std::size_t chain_of(const ClassHash& hash) const { return hash.high & (chains_.size() - 1); }
    // The lowest index is last, because holes_ is used from its end.
    void add_holes() {
        const auto first = static_cast<std::uint32_t>(chunks_.size()) * kChunkClasses;
        chunks_.emplace_back();
        for (std::uint32_t i = kChunkClasses; i > 0; --i) holes_.push_back(first + i - 1);
    }

    std::vector<std::unique_ptr<Chunk>> chunks_;  // Null: no index of the chunk is used.
    std::vector<std::uint32_t> holes_;            // The free indices.
    core::ZeroedArray<KnownClass*> chains_;       // By hash.
    core::IntrusiveList<KnownClass> idle_;
    std::size_t count_ = 0;
    Instant forget_at_{};
};

}  // namespace fopd::lrs
