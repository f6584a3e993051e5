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

// The limits of every implementation. A key is not empty and does not begin with a zero byte.
inline constexpr std::size_t kIndexKeyBytesMax = 511;
inline constexpr std::size_t kIndexValueBytesMax = 2000;

struct IndexEntry {
    Bytes key;
    Bytes value;
};

// A cursor over the entries of an index, which are ordered by the bytes of their keys. The first
// search opens a view of the index as it is then. release() ends the view and everything borrowed
// from it. A view lasts for one turn at most, because an index does not reuse space that a view
// sees.
class IndexReader {
public:
    virtual ~IndexReader() = default;

    // Moves the cursor to the entry found. kCorrupt, kIo: the index cannot be read.
    virtual Result<std::optional<IndexEntry>> at_or_after(Bytes key) = 0;
    virtual Result<std::optional<IndexEntry>> at_or_before(Bytes key) = 0;
    // Moves the cursor by one entry. REQUIRES: the last search found an entry.
    virtual Result<std::optional<IndexEntry>> next() = 0;
    virtual Result<std::optional<IndexEntry>> previous() = 0;

    virtual void release() = 0;
};

// A change of one key: its new value, or its removal.
struct IndexChange {
    Bytes key;
    std::optional<Bytes> value;  // None: the key is removed.
};

// Changes by ascending key, each key once. Read on another thread.
class IndexChanges {
public:
    virtual ~IndexChanges() = default;
    virtual void rewind() = 0;
    virtual std::optional<IndexChange> next() = 0;
};

struct IndexFigures {
    std::uint64_t entry_count = 0;
    std::uint64_t size_bytes = 0;  // In use; the file may be larger.
};

// Receives all entries of an index, on another thread. An error ends the walk.
class IndexShow {
public:
    virtual ~IndexShow() = default;
    // Called first; `applied` is Index::applied() for the entries that follow.
    virtual Result<void> begin(std::uint64_t applied) = 0;
    virtual Result<void> entry(const IndexEntry& entry) = 0;
};

// An ordered map of bytes on a medium of its own. Its content can be rebuilt from a log; it exists
// so that a start need not do so. Lives on one reactor.
class Index {
public:
    virtual ~Index() = default;

    // The index's only reader.
    virtual IndexReader& reader() = 0;
    // `Step::applied` of the last durable apply().
    virtual std::uint64_t applied() const = 0;

    struct Step {
        IndexChanges* changes;  // Valid until apply() ends.
        std::uint64_t applied;
    };
    // Makes all changes or none, and stores `applied` with them; durable when it returns. One at a
    // time. kNoSpace: nothing has changed, and the call may be repeated. After any other error it
    // is unknown what is durable, and every later call fails.
    virtual Task<Result<void>> apply(Step step) = 0;

    // Shows all entries as of one time, by ascending key, on another thread, while the index is
    // used and changed. No space that it may still see is reused until it ends, so it should be
    // short. One at a time.
    virtual Task<Result<void>> show_all(IndexShow* show) = 0;

    virtual IndexFigures figures() const = 0;
    // Whether the medium keeps a reserve that apply() can still write when the medium is full
    // otherwise. Without a reserve only changes that free space should be made. Each apply() finds
    // out again.
    virtual bool has_reserve() const = 0;
    // How many bytes apply() can certainly write, unless others use the free space of the medium
    // beside the reserve. A change writes a copy of each page that it touches.
    virtual std::uint64_t room_bytes() const = 0;
};

}  // namespace fopd::store
