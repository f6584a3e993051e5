// Whatever bytes an index holds: a value that can be read is written again as the same bytes, or
// in a newer layout, and what is read lies within its bounds. A file that is not LMDB's, or was, is
// looked through without harm.
//
//     build/fuzz/bin/fuzz_index -max_len=70000 tests/fuzz/corpus/index
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include "core/ensure.h"
#include "store/copy.h"
#include "store/lmdb_file.h"
#include "store/object.h"

using namespace fopd::store;

namespace {

// A value of an older layout is written in the newest one, which is longer, and stays the same from
// then on.
template <typename Read, typename Write>
void check_value(Bytes value, Read read, Write write) {
    const auto found = read(value);
    if (!found) return;
    ValueBuffer buffer;
    const Bytes written = write(buffer, *found);
    if (written.size() == value.size()) ENSURE(std::ranges::equal(written, value));
    const auto again = read(written);
    ENSURE(again.has_value());
    ValueBuffer other_buffer;
    ENSURE(std::ranges::equal(write(other_buffer, *again), written));
}

void check_values(Bytes key, Bytes value) {
    ValueBuffer buffer;
    check_value(value, read_object, write_object);
    check_value(value, read_upload, write_upload);
    if (const auto reply = read_reply(key, value); reply) {
        ENSURE(std::ranges::equal(write_reply(buffer, *reply), value));
    }
    if (const auto extent = read_extent(key, value); extent) {
        ENSURE(extent->end() <= kObjectBlocksMax);
        ENSURE(std::ranges::equal(write_extent(buffer, extent->block, extent->checksums), value));
        ENSURE(std::ranges::equal(Key::extent(extent->fid, extent->first).bytes(), key));
    }
    if (const auto copy = read_copy(key, value); copy) {
        ENSURE(is_copy_valid(*copy));
        ENSURE(std::ranges::equal(write_copy(buffer, *copy), value));
        ENSURE(std::ranges::equal(copy_key(key_of(*copy)).bytes(), key));
    }
    if (const auto owner = read_position(key, value); owner) {
        ENSURE(std::ranges::equal(write_position(buffer, owner->key), value));
        ENSURE(std::ranges::equal(position_key(owner->key.vsn, owner->position).bytes(), key));
    }
    if (const auto total = read_total(key, value); total) {
        ENSURE(std::ranges::equal(write_total(buffer, *total), value));
        ENSURE(std::ranges::equal(Key::total(total->cartridge.vsn).bytes(), key));
    }
    if (const auto recall = read_recall(value); recall) {
        ENSURE(std::ranges::equal(write_recall(buffer, *recall), value));
    }
    if (const auto reply_key = read_reply_key(key); reply_key) {
        ENSURE(std::ranges::equal(Key::reply(*reply_key).bytes(), key));
    }
    if (const auto fid = read_fid_key(KeyKind::kObject, key); fid) {
        ENSURE(std::ranges::equal(Key::object(*fid).bytes(), key));
    }
}

void check_file(Bytes bytes) {
    const int fd = ::memfd_create("index", MFD_CLOEXEC);
    ENSURE(fd >= 0);
    ENSURE(::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
    const auto figures = check_lmdb_file("/proc/self/fd/" + std::to_string(fd));
    if (figures) ENSURE(figures->size_bytes == bytes.size());
    ::close(fd);
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    if (size_bytes >= 8192) {
        check_file(bytes);
        return 0;
    }
    // The lengths of the keys: of totals, positions, objects, replies, extents and copies.
    for (const std::size_t length : {7UL, 17UL, 18UL, 25UL, 31UL}) {
        const auto key_bytes = std::min(size_bytes, length);
        check_values(bytes.first(key_bytes), bytes.subspan(key_bytes));
    }
    check_values(bytes.first(std::min<std::size_t>(size_bytes, 17)), bytes);
    return 0;
}
