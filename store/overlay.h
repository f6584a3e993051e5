#pragma once

#include <cstddef>
#include <cstdint>

#include "store/index.h"

namespace fopd::store {

// Memory of one size, kept when it is not needed: overlays take turns with it, so that together
// they hold what they needed most at one time, and giving all of it back is one step.
class ChunkPool {
public:
    static constexpr std::size_t kChunkBytes = 64UL * 1024;
    struct Chunk {
        Chunk* next = nullptr;
    };

    ChunkPool() = default;
    ~ChunkPool();
    ChunkPool(const ChunkPool&) = delete;
    ChunkPool& operator=(const ChunkPool&) = delete;

    Chunk* take();
    // A whole list of them.
    void give_back(Chunk* first, Chunk* last);

private:
    Chunk* free_ = nullptr;
};

// What has changed, by key: a new value, or that the key is gone. A B-tree that only grows, until
// it is emptied as a whole. Its memory is chunks, so that what it says of its size is true; a value
// that is replaced by a longer one leaves its place unused until then.
//
// Not changed, it can be read by several threads. What it lends is good until the next change.
class Overlay final : public IndexChanges {
public:
    explicit Overlay(ChunkPool& chunks);  // The pool outlives it.
    ~Overlay() override;
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;

    // Requires: the limits of index.h.
    void put(Bytes key, Bytes value);
    void erase(Bytes key);
    void clear();

    bool empty() const { return count_ == 0; }
    std::size_t count() const { return count_; }
    std::size_t bytes() const { return chunk_count_ * ChunkPool::kChunkBytes; }

    struct Leaf;
    // Where a key lies; nowhere when there is none such.
    struct Place {
        const Leaf* leaf = nullptr;
        std::uint32_t slot = 0;

        explicit operator bool() const { return leaf != nullptr; }
    };
    Place at_or_after(Bytes key) const;
    Place at_or_before(Bytes key) const;
    Place next(Place place) const;
    Place previous(Place place) const;
    IndexChange at(Place place) const;

    // All of it, in order.
    void rewind() override;
    std::optional<IndexChange> next() override;

private:
    struct Head;
    struct Inner;
    struct Record;
    struct Node;
    struct Sought;
    struct Path;

    void set(Bytes key, const Bytes* value);
    Record* make_record(Bytes key, const Bytes* value);
    void insert(Path& path, std::uint32_t slot, const Head& head, Record* record);
    void insert_child(Path& path, Node* child);
    std::byte* allocate(std::size_t size_bytes);
    const Leaf* leaf_for(const Sought& sought) const;

    ChunkPool& chunks_;
    ChunkPool::Chunk* newest_chunk_ = nullptr;  // Of a list.
    ChunkPool::Chunk* oldest_chunk_ = nullptr;
    std::size_t chunk_used_bytes_ = 0;
    std::size_t chunk_count_ = 0;
    Node* root_ = nullptr;
    Leaf* first_leaf_ = nullptr;
    std::uint32_t depth_ = 0;  // Inner levels above the leaves.
    std::size_t count_ = 0;
    Place walk_{};
};

}  // namespace fopd::store
