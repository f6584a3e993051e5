#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/ensure.h"
#include "store/fid.h"

namespace fopd::library {

// Owns objects, and finds them by their fids: a hash table with chains. Needs about ten bytes of
// memory for each object, because each object has the link to the next of its chain. T has the
// members `const store::Fid fid`, which is unique, and `std::unique_ptr<T> next_in_table`.
template <typename T>
class FidTable {
public:
    std::size_t size() const { return count_; }

    // Null: there is no object with this fid.
    T* find(store::Fid fid) const {
        if (chains_.empty()) return nullptr;
        T* each = chains_[chain_of(fid)].get();
        while (each != nullptr && each->fid != fid) each = each->next_in_table.get();
        return each;
    }

    // REQUIRES: no object has its fid.
    T& insert(std::unique_ptr<T> object) {
        ENSURE(find(object->fid) == nullptr);
        if (count_ >= kChainMean * chains_.size())
            resize(chains_.empty() ? 16 : 2 * chains_.size());
        ++count_;
        T& inserted = *object;
        chain(std::move(object));
        return inserted;
    }

    // Removes and destroys the object.
    void erase(T& object) {
        std::unique_ptr<T>* link = &chains_[chain_of(object.fid)];
        while (link->get() != &object) link = &(*link)->next_in_table;
        const std::unique_ptr<T> erased = std::exchange(*link, std::move(object.next_in_table));
        if (--count_ == 0) chains_ = Chains();
    }

    // Visits all objects, in no order. `visit` must not insert or erase.
    template <typename Visit>
    void for_each(Visit visit) const {
        for (const std::unique_ptr<T>& first : chains_) {
            for (T* each = first.get(); each != nullptr; each = each->next_in_table.get()) {
                visit(*each);
            }
        }
    }

private:
    using Chains = std::vector<std::unique_ptr<T>>;
    static constexpr std::size_t kChainMean = 2;

    // Mixes the bits, because the fids of a slot differ in few bits only.
    std::size_t chain_of(store::Fid fid) const {
        constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15;
        const std::uint64_t mixed = (fid.low ^ (fid.high * kOdd)) * kOdd;
        return static_cast<std::size_t>(mixed >> 32) & (chains_.size() - 1);
    }

    void chain(std::unique_ptr<T> object) {
        std::unique_ptr<T>& first = chains_[chain_of(object->fid)];
        object->next_in_table = std::move(first);
        first = std::move(object);
    }

    void resize(std::size_t chains) {
        Chains before = std::exchange(chains_, Chains());
        chains_.resize(chains);
        for (std::unique_ptr<T>& first : before) {
            while (first != nullptr) {
                std::unique_ptr<T> rest = std::move(first->next_in_table);
                chain(std::exchange(first, std::move(rest)));
            }
        }
    }

    Chains chains_;  // Their number is a power of two; 0: there are no objects.
    std::size_t count_ = 0;
};

}  // namespace fopd::library
