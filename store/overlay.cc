#include "store/overlay.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <new>

#include "core/byte_order.h"
#include "core/ensure.h"

namespace fopd::store {

namespace {

constexpr std::size_t kOverlayHeadBytes = 32;
constexpr std::uint32_t kEntryCount = 32;
// More than the depth of a tree with 2^64 entries.
constexpr std::size_t kPathMax = 16;

constexpr std::size_t round_up(std::size_t size_bytes) {
    return (size_bytes + 7) / 8 * 8;
}

}  // namespace

// The beginning of a key, stored so that most comparisons need not read the key: its first 31
// bytes, padded with zeros, then its length, as numbers in the order of keys.
struct Overlay::Head {
    std::array<std::uint64_t, kOverlayHeadBytes / 8> words;

    static constexpr std::size_t kLong = kOverlayHeadBytes;  // The length of longer keys.

    static Head of(Bytes key) {
        std::array<std::byte, kOverlayHeadBytes> bytes{};
        std::memcpy(bytes.data(), key.data(), std::min(key.size(), kOverlayHeadBytes - 1));
        bytes.back() = static_cast<std::byte>(std::min(key.size(), kLong));
        Head head;
        for (std::size_t i = 0; i < head.words.size(); ++i) {
            head.words[i] = load_big<std::uint64_t>(bytes.data() + i * sizeof head.words[i]);
        }
        return head;
    }
    bool is_long() const { return (words.back() & 0xff) == kLong; }
};

// A key, whether it was erased, its value, and the room for a value.
struct Overlay::Record {
    static constexpr std::uint16_t kErased = 0xffff;

    std::uint16_t key_bytes;
    std::uint16_t value_bytes;  // Or kErased.
    std::uint32_t room_bytes;

    std::byte* data() { return reinterpret_cast<std::byte*>(this + 1); }
    const std::byte* data() const { return reinterpret_cast<const std::byte*>(this + 1); }
    Bytes key() const { return {data(), key_bytes}; }
    std::optional<Bytes> value() const {
        if (value_bytes == kErased) return std::nullopt;
        return Bytes(data() + key_bytes, value_bytes);
    }
    void set_value(const Bytes* value) {
        value_bytes = value == nullptr ? kErased : static_cast<std::uint16_t>(value->size());
        if (value != nullptr && !value->empty()) {
            std::memcpy(data() + key_bytes, value->data(), value->size());
        }
    }
};

struct Overlay::Sought {
    Head head;
    Bytes key;
};

struct Overlay::Node {
    std::uint32_t count = 0;
    std::array<Head, kEntryCount> heads;
    std::array<Record*, kEntryCount> records;  // The record of each key.

    // Less than zero if the entry's key comes before the key sought.
    int compare(std::uint32_t index, const Sought& sought) const {
        const Head& head = heads[index];
        for (std::size_t i = 0; i < head.words.size(); ++i) {
            if (head.words[i] != sought.head.words[i]) {
                return head.words[i] < sought.head.words[i] ? -1 : 1;
            }
        }
        if (!sought.head.is_long()) return 0;
        const auto rest = records[index]->key().subspan(kOverlayHeadBytes - 1);
        const auto sought_rest = sought.key.subspan(kOverlayHeadBytes - 1);
        const int order =
            std::memcmp(rest.data(), sought_rest.data(), std::min(rest.size(), sought_rest.size()));
        if (order != 0 || rest.size() == sought_rest.size()) return order;
        return rest.size() < sought_rest.size() ? -1 : 1;
    }
    // The index of the first entry with the key sought or a higher one; with `above`, with a higher
    // one.
    std::uint32_t find(const Sought& sought, bool above) const {
        std::uint32_t low = 0;
        std::uint32_t high = count;
        while (low < high) {
            const std::uint32_t middle = (low + high) / 2;
            const int order = compare(middle, sought);
            if (order < 0 || (above && order == 0)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        return low;
    }
    void copy_entry(std::uint32_t to, const Node& from, std::uint32_t index) {
        heads[to] = from.heads[index];
        records[to] = from.records[index];
    }
};

struct Overlay::Leaf : Node {
    Leaf* next = nullptr;
    Leaf* previous = nullptr;

    void insert(std::uint32_t index, const Head& head, Record* record) {
        for (std::uint32_t i = count; i > index; --i) copy_entry(i, *this, i - 1);
        heads[index] = head;
        records[index] = record;
        ++count;
    }
    void move_end_to(Leaf& right, std::uint32_t from) {
        for (std::uint32_t i = from; i < count; ++i) right.copy_entry(i - from, *this, i);
        right.count = count - from;
        count = from;
    }
};

// Each child has the keys from its separator on; the first one also has all smaller keys.
struct Overlay::Inner : Node {
    std::array<Node*, kEntryCount> children;

    void insert(std::uint32_t index, const Head& head, Record* record, Node* child) {
        for (std::uint32_t i = count; i > index; --i) {
            copy_entry(i, *this, i - 1);
            children[i] = children[i - 1];
        }
        heads[index] = head;
        records[index] = record;
        children[index] = child;
        ++count;
    }
    void move_end_to(Inner& right, std::uint32_t from) {
        for (std::uint32_t i = from; i < count; ++i) {
            right.copy_entry(i - from, *this, i);
            right.children[i - from] = children[i];
        }
        right.count = count - from;
        count = from;
    }
    std::uint32_t child_index(const Sought& sought) const {
        const std::uint32_t above = find(sought, true);
        return above == 0 ? 0 : above - 1;
    }
};

// The path from the root to a leaf.
struct Overlay::Path {
    struct Step {
        Inner* inner;
        std::uint32_t index;
    };
    std::array<Step, kPathMax> steps;
    Leaf* leaf;
};

ChunkPool::~ChunkPool() {
    while (free_ != nullptr) {
        Chunk* const chunk = free_;
        free_ = chunk->next;
        ::operator delete(chunk, kChunkBytes);
    }
}

ChunkPool::Chunk* ChunkPool::take() {
    if (free_ == nullptr) return new (::operator new(kChunkBytes)) Chunk;
    Chunk* const chunk = free_;
    free_ = chunk->next;
    chunk->next = nullptr;
    return chunk;
}

void ChunkPool::give_back(Chunk* first, Chunk* last) {
    last->next = free_;
    free_ = first;
}

Overlay::Overlay(ChunkPool& chunks) : chunks_(chunks) {}

Overlay::~Overlay() {
    clear();
}

void Overlay::put(Bytes key, Bytes value) {
    ENSURE(value.size() <= kIndexValueBytesMax);
    set(key, &value);
}

void Overlay::erase(Bytes key) {
    set(key, nullptr);
}

void Overlay::clear() {
    if (newest_chunk_ != nullptr) chunks_.give_back(newest_chunk_, oldest_chunk_);
    newest_chunk_ = nullptr;
    oldest_chunk_ = nullptr;
    chunk_used_bytes_ = 0;
    chunk_count_ = 0;
    root_ = nullptr;
    first_leaf_ = nullptr;
    depth_ = 0;
    count_ = 0;
    walk_ = {};
}

std::byte* Overlay::allocate(std::size_t size_bytes) {
    static_assert(sizeof(Inner) <= ChunkPool::kChunkBytes / 8);
    static_assert(alignof(Inner) <= 8);
    const std::size_t rounded = round_up(size_bytes);
    if (newest_chunk_ == nullptr || chunk_used_bytes_ + rounded > ChunkPool::kChunkBytes) {
        ChunkPool::Chunk* const chunk = chunks_.take();
        chunk->next = newest_chunk_;
        if (oldest_chunk_ == nullptr) oldest_chunk_ = chunk;
        newest_chunk_ = chunk;
        chunk_used_bytes_ = sizeof(ChunkPool::Chunk);
        ++chunk_count_;
    }
    std::byte* const at = reinterpret_cast<std::byte*>(newest_chunk_) + chunk_used_bytes_;
    chunk_used_bytes_ += rounded;
    return at;
}

Overlay::Record* Overlay::make_record(Bytes key, const Bytes* value) {
    const std::size_t value_bytes = value == nullptr ? 0 : value->size();
    const std::size_t size_bytes = round_up(sizeof(Record) + key.size() + value_bytes);
    auto* const record = new (allocate(size_bytes)) Record;
    record->key_bytes = static_cast<std::uint16_t>(key.size());
    record->room_bytes = static_cast<std::uint32_t>(size_bytes - sizeof(Record) - key.size());
    std::memcpy(record->data(), key.data(), key.size());
    record->set_value(value);
    return record;
}

void Overlay::set(Bytes key, const Bytes* value) {
    ENSURE(!key.empty());
    ENSURE(key.size() <= kIndexKeyBytesMax);
    if (root_ == nullptr) {
        first_leaf_ = new (allocate(sizeof(Leaf))) Leaf;
        root_ = first_leaf_;
    }
    const Sought sought{.head = Head::of(key), .key = key};
    Path path;
    Node* node = root_;
    for (std::uint32_t level = 0; level < depth_; ++level) {
        auto* const inner = static_cast<Inner*>(node);
        path.steps[level] = {.inner = inner, .index = inner->child_index(sought)};
        node = inner->children[path.steps[level].index];
    }
    path.leaf = static_cast<Leaf*>(node);
    const std::uint32_t index = path.leaf->find(sought, false);
    if (index < path.leaf->count && path.leaf->compare(index, sought) == 0) {
        Record*& record = path.leaf->records[index];
        if (value == nullptr || value->size() <= record->room_bytes) {
            record->set_value(value);
        } else {
            record = make_record(key, value);
        }
        return;
    }
    insert(path, index, sought.head, make_record(key, value));
    ++count_;
}

// A full node is split in the middle; but if the key goes to its end, only the new key moves, so
// that ascending keys fill every node.
void Overlay::insert(Path& path, std::uint32_t index, const Head& head, Record* record) {
    Leaf* const leaf = path.leaf;
    if (leaf->count < kEntryCount) {
        leaf->insert(index, head, record);
        return;
    }
    auto* const right = new (allocate(sizeof(Leaf))) Leaf;
    leaf->move_end_to(*right, index == kEntryCount ? kEntryCount : kEntryCount / 2);
    if (index > leaf->count || right->count == 0) {
        right->insert(index - leaf->count, head, record);
    } else {
        leaf->insert(index, head, record);
    }
    right->previous = leaf;
    right->next = leaf->next;
    if (right->next != nullptr) right->next->previous = right;
    leaf->next = right;
    insert_child(path, right);
}

void Overlay::insert_child(Path& path, Node* child) {
    for (std::uint32_t level = depth_; level-- > 0;) {
        Inner* const inner = path.steps[level].inner;
        const std::uint32_t index = path.steps[level].index + 1;
        if (inner->count < kEntryCount) {
            inner->insert(index, child->heads[0], child->records[0], child);
            return;
        }
        auto* const right = new (allocate(sizeof(Inner))) Inner;
        inner->move_end_to(*right, index == kEntryCount ? kEntryCount : kEntryCount / 2);
        if (index > inner->count || right->count == 0) {
            right->insert(index - inner->count, child->heads[0], child->records[0], child);
        } else {
            inner->insert(index, child->heads[0], child->records[0], child);
        }
        child = right;
    }
    auto* const root = new (allocate(sizeof(Inner))) Inner;
    root->insert(0, root_->heads[0], root_->records[0], root_);
    root->insert(1, child->heads[0], child->records[0], child);
    root_ = root;
    ++depth_;
    ENSURE(depth_ < kPathMax);
}

const Overlay::Leaf* Overlay::leaf_for(const Sought& sought) const {
    const Node* node = root_;
    for (std::uint32_t level = 0; level < depth_; ++level) {
        const auto* const inner = static_cast<const Inner*>(node);
        node = inner->children[inner->child_index(sought)];
    }
    return static_cast<const Leaf*>(node);
}

Overlay::Cursor Overlay::at_or_after(Bytes key) const {
    if (empty()) return {};
    const Sought sought{.head = Head::of(key), .key = key};
    const Leaf* const leaf = leaf_for(sought);
    const std::uint32_t index = leaf->find(sought, false);
    if (index < leaf->count) return {.leaf = leaf, .index = index};
    return {.leaf = leaf->next, .index = 0};
}

Overlay::Cursor Overlay::at_or_before(Bytes key) const {
    if (empty()) return {};
    const Sought sought{.head = Head::of(key), .key = key};
    const Leaf* const leaf = leaf_for(sought);
    return previous({.leaf = leaf, .index = leaf->find(sought, true)});
}

Overlay::Cursor Overlay::next(Cursor cursor) const {
    if (cursor.index + 1 < cursor.leaf->count)
        return {.leaf = cursor.leaf, .index = cursor.index + 1};
    return {.leaf = cursor.leaf->next, .index = 0};
}

Overlay::Cursor Overlay::previous(Cursor cursor) const {
    if (cursor.index > 0) return {.leaf = cursor.leaf, .index = cursor.index - 1};
    const Leaf* const leaf = cursor.leaf->previous;
    return {.leaf = leaf, .index = leaf == nullptr ? 0 : leaf->count - 1};
}

IndexChange Overlay::at(Cursor cursor) const {
    const Record& record = *cursor.leaf->records[cursor.index];
    return {.key = record.key(), .value = record.value()};
}

void Overlay::rewind() {
    walk_ = {.leaf = first_leaf_, .index = 0};
}

std::optional<IndexChange> Overlay::next() {
    if (!walk_) return std::nullopt;
    const auto change = at(walk_);
    walk_ = next(walk_);
    return change;
}

}  // namespace fopd::store
