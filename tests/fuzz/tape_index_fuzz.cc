// Whatever is in an index file of a tape: a line that is read is written again to the same text.
//
//     build/fuzz/bin/fuzz_tape_index -max_len=4000 tests/fuzz/corpus/tape_index
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/ensure.h"
#include "store/tape/tape_index.h"

using namespace fopd::store;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
    IndexLines lines;
    bool has_head = false;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find('\n'), text.size());
        const std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        const auto entry = lines.take(line);
        if (!entry) return 0;
        has_head = true;
        if (!entry->has_value()) continue;
        const auto reread = parse_index_line(encode_index_line(**entry));
        ENSURE(reread.has_value());
        ENSURE(*reread == **entry);
    }
    if (!has_head) return 0;
    const auto head = parse_index_head(encode_index_head(lines.head()));
    ENSURE(head.has_value());
    ENSURE(*head == lines.head());
    return 0;
}
