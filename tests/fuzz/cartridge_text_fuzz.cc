// Whatever people write into the files of a virtual library: it is read or refused, and what was
// read is written as text that says the same.
//
//     build/fuzz/bin/fuzz_cartridge_text -max_len=400 tests/fuzz/corpus/cartridge_text
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/ensure.h"
#include "devices/tape/cartridge_text.h"

using namespace fopd::devices;

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const std::string_view text(reinterpret_cast<const char*>(data), size_bytes);
    if (const auto info = parse_cartridge(text)) {
        ENSURE(info->barcode.size() <= CartridgeInfo::kTextMax);
        ENSURE(parse_cartridge(format_cartridge(*info)) == *info);
    }
    const auto positions = parse_positions(text);
    for (const auto& [address, name] : positions) ENSURE(is_cartridge_name(name));
    ENSURE(parse_positions(format_positions(positions)) == positions);
    return 0;
}
