#pragma once

#include <cstddef>
#include <cstdint>

#include "store/index.h"

namespace fopd::store {

// A pool of memory chunks of one size, which keeps freed chunks. Two overlays that are large in
// turns share one, so that together they need no more than their largest sum; a whole list of
// chunks is given back in one step.
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
    // Returns a linked list of chunks.
    void give_back(Chunk* first, Chunk* last);

private:
    Chunk* free_ = nullptr;
};

// The latest changes by key, each a new value or a removal. A B-tree that only grows until clear().
// Its nodes and values lie in chunks, so that bytes() is exact; the space of a value that was
// replaced by a longer one is unused until clear().
//
// While it does not change, several threads may read it. Keys and values that it returns are valid
// until the next change.
class Overlay final : public IndexChanges {
public:
    explicit Overlay(ChunkPool& chunks);  // The pool outlives it.
    ~Overlay() override;
    Overlay(const Overlay&) = delete;
    Overlay& operator=(const Overlay&) = delete;

    // REQUIRES: the limits of index.h.
    void put(Bytes key, Bytes value);
    void erase(Bytes key);
    void clear();

    bool empty() const { return count_ == 0; }
    std::size_t count() const { return count_; }
    std::size_t bytes() const { return chunk_count_ * ChunkPool::kChunkBytes; }

    struct Leaf;
    // The position of a key; false if there is no such key.
    struct Cursor {
        const Leaf* leaf = nullptr;
        std::uint32_t index = 0;

        explicit operator bool() const { return leaf != nullptr; }
    };
    Cursor at_or_after(Bytes key) const;
    Cursor at_or_before(Bytes key) const;
    Cursor next(Cursor cursor) const;
    Cursor previous(Cursor cursor) const;
    IndexChange at(Cursor cursor) const;

    // -- IndexChanges: all changes in the order of their keys --
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
    void insert(Path& path, std::uint32_t index, const Head& head, Record* record);
    void insert_child(Path& path, Node* child);
    std::byte* allocate(std::size_t size_bytes);
    const Leaf* leaf_for(const Sought& sought) const;

    ChunkPool& chunks_;
    ChunkPool::Chunk* newest_chunk_ = nullptr;  // The head of a list.
    ChunkPool::Chunk* oldest_chunk_ = nullptr;
    std::size_t chunk_used_bytes_ = 0;
    std::size_t chunk_count_ = 0;
    Node* root_ = nullptr;
    Leaf* first_leaf_ = nullptr;
    std::uint32_t depth_ = 0;  // Inner levels above the leaves.
    std::size_t count_ = 0;
    Cursor walk_{};
};

}  // namespace fopd::store
