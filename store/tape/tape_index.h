#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "store/tape/tape_file.h"
#include "store/tape/tape_writer.h"

namespace fopd::store {

// The text of an index file; see docs/formats/tape.md. It lists the copies in the files before it,
// so that a cartridge alone tells quickly what it has. A line has fields "name=text", separated by
// spaces.
inline constexpr std::size_t kIndexLineBytesMax = 4096;

// The first line.
struct IndexHead {
    TapeIdentity identity{};
    std::uint64_t first = 1;  // The files that the index lists, `last` included.
    std::uint64_t last = 0;
    // The index that lists the files before `first`; none if that is 1.
    IndexPosition previous{};

    friend bool operator==(const IndexHead&, const IndexHead&) = default;
};

// Lines without the newline at their end.
std::string encode_index_head(const IndexHead& head);
std::string encode_index_line(const TapeEntry& entry);
std::string encode_index_end(std::uint64_t lines);

// Each of these fails with kCorrupt if the line is of another kind or damaged.
Result<IndexHead> parse_index_head(std::string_view line);
Result<TapeEntry> parse_index_line(std::string_view line);
Result<std::uint64_t> parse_index_end(std::string_view line);

// Takes the lines of an index in their order, and checks that they are complete.
class IndexLines {
public:
    // The copy on this line; none on the first and the last line. kCorrupt: the line is wrong here.
    Result<std::optional<TapeEntry>> take(std::string_view line);

    // REQUIRES: a line has been taken.
    const IndexHead& head() const { return *head_; }
    bool complete() const { return complete_; }

private:
    std::optional<IndexHead> head_;
    std::uint64_t lines_ = 0;
    bool complete_ = false;
};

// Gives the entries for an index.
class TapeEntrySource {
public:
    virtual ~TapeEntrySource() = default;

    // The next entry; none at the end. The order does not matter.
    virtual Task<Result<std::optional<TapeEntry>>> next() = 0;
};

struct IndexOptions {
    // The index lists the files from here on: 1, or the one behind the last index, to which it then
    // refers.
    std::uint64_t first = 1;
    WallTime now{};
};

// Writes an index file behind the last file; writer->sync() makes it durable. Memory: a part of the
// index, 1 MiB. Errors as of TapeWriter; the file has then been abandoned, if not more has failed.
// kInvalid: an entry is not in the files that the index lists.
// REQUIRES: as for TapeWriter::begin_file(). Both pointers are valid until the call has ended.
Task<Result<TapeFile>> write_index(TapeWriter* writer, TapeEntrySource* source,
                                   IndexOptions options);

}  // namespace fopd::store
