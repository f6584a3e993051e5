#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "core/result.h"
#include "core/task.h"

namespace fopd::store {

using Bytes = std::span<const std::byte>;

inline std::string_view as_text(Bytes bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What every implementation takes. No key is empty, or begins with a zero byte.
inline constexpr std::size_t kIndexKeyBytesMax = 511;
inline constexpr std::size_t kIndexValueBytesMax = 2000;

struct IndexEntry {
    Bytes key;
    Bytes value;
};

// A place among the entries of an index, which are ordered by the bytes of their keys. The first
// search begins a view of the index as it is then; the view, and what was borrowed from it, ends
// with release(). It is held for one turn at most: an index does not reuse space that a view sees.
class IndexReader {
public:
    virtual ~IndexReader() = default;

    // The entry that is found becomes the place. kCorrupt and kIo when the index cannot be read.
    virtual Result<std::optional<IndexEntry>> at_or_after(Bytes key) = 0;
    virtual Result<std::optional<IndexEntry>> at_or_before(Bytes key) = 0;
    // From the place on. Requires: one was found, and nothing was sought in vain since.
    virtual Result<std::optional<IndexEntry>> next() = 0;
    virtual Result<std::optional<IndexEntry>> previous() = 0;

    virtual void release() = 0;
};

// A change of one key: its new value, or its removal.
struct IndexChange {
    Bytes key;
    std::optional<Bytes> value;  // None: the key is removed.
};

// What is to be changed, by ascending key, each key once. Read on another thread.
class IndexChanges {
public:
    virtual ~IndexChanges() = default;
    virtual void rewind() = 0;
    virtual std::optional<IndexChange> next() = 0;
};

struct IndexFigures {
    std::uint64_t entry_count = 0;
    std::uint64_t size_bytes = 0;  // Used, not allocated.
};

// Takes all entries of an index, on another thread. An error ends it.
class IndexShow {
public:
    virtual ~IndexShow() = default;
    // Before all entries: what Index::applied() was for them.
    virtual Result<void> begin(std::uint64_t applied) = 0;
    virtual Result<void> entry(const IndexEntry& entry) = 0;
};

// Ordered bytes to bytes, kept on a medium of its own: what can be made again from a log, so that
// it need not be. Lives on one reactor.
class Index {
public:
    virtual ~Index() = default;

    // The index's only reader.
    virtual IndexReader& reader() = 0;
    // `Step::applied` of the last durable apply().
    virtual std::uint64_t applied() const = 0;

    struct Step {
        IndexChanges* changes;  // The caller's until the end.
        std::uint64_t applied;
    };
    // Carries out all changes, or none, and notes `applied` with them; durable when it ends. One at
    // a time. kNoSpace: nothing has happened, and it may be tried again. After any other error
    // nothing is known to be durable, and every later call fails.
    virtual Task<Result<void>> apply(Step step) = 0;

    // Shows all entries as they are at one time, by ascending key, on another thread, while the
    // index is used and changed. Until it ends no space is used again that it may still see: it
    // should not take longer than it must. One at a time.
    virtual Task<Result<void>> show_all(IndexShow* show) = 0;

    virtual IndexFigures figures() const = 0;
    // Whether the medium keeps room that apply() can still take when everything else on it is used
    // up. Without that room only changes that free space should go on. Each apply() looks anew.
    virtual bool has_reserve() const = 0;
    // What apply() can write for sure, unless others take what the medium has free beside the
    // reserve. A change writes a copy of each page that it touches.
    virtual std::uint64_t room_bytes() const = 0;
};

}  // namespace fopd::store
