#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "store/index.h"

namespace fopd::store {

// What a file of LMDB is to us. Each value in it is followed by a checksum of its key and itself.
inline constexpr std::size_t kSumBytes = 4;

std::uint32_t entry_sum(Bytes key, Bytes value);
// The value without its checksum, or kCorrupt.
Result<Bytes> checked_value(Bytes key, Bytes stored);

struct LmdbFileFigures {
    std::uint64_t size_bytes = 0;
    std::uint64_t entry_count = 0;
};

// Looks through all that LMDB would reach of a file, and trusts none of it: kCorrupt where LMDB
// would read or write what it must not, and where an entry is not what was written. kNotFound when
// there is no file; kUnsupported when another LMDB wrote it. Waits for the disk. Nobody has the
// file open.
Result<LmdbFileFigures> check_lmdb_file(const std::string& path);

}  // namespace fopd::store
