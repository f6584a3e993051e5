#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/result.h"
#include "store/index.h"

namespace fopd::store {

// The format of our LMDB files: each value is followed by a checksum of its key and itself.
inline constexpr std::size_t kSumBytes = 4;

std::uint32_t entry_sum(Bytes key, Bytes value);
// The value without its checksum, or kCorrupt.
Result<Bytes> checked_value(Bytes key, Bytes stored);

struct LmdbFileFigures {
    std::uint64_t size_bytes = 0;
    std::uint64_t entry_count = 0;
};

// Checks everything that LMDB can reach in a file: kCorrupt if LMDB would access memory that it
// must not, or if an entry does not match its checksum. kNotFound: there is no file; kUnsupported:
// another version of LMDB wrote it. Blocks on the disk. REQUIRES: the file is not open.
Result<LmdbFileFigures> check_lmdb_file(const std::string& path);

}  // namespace fopd::store
