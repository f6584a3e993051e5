// Whatever text is given as a table of media: it is refused, or is the one text of its table. As
// few texts have the right checksum, the input is also tried with it.
//
//     build/fuzz/bin/fuzz_media tests/fuzz/corpus/media
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <span>
#include <string>
#include <string_view>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "library/media_table.h"

using namespace fopd;
using namespace fopd::library;

namespace {

void check(std::string_view text) {
    const auto table = MediaTable::parse(text);
    if (!table) return;
    ENSURE(table->text() == text);
    for (const Cartridge& each : table->all()) {
        ENSURE(table->find(each.id) == &each);
        ENSURE(table->find(each.barcode) == &each);
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it by this name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    std::string text(reinterpret_cast<const char*>(data), size_bytes);
    check(text);
    const std::size_t end = text.rfind("end ");
    if (end != text.npos) text.resize(end);
    std::array<char, 16> last{};
    std::snprintf(last.data(), last.size(), "end %08x\n",
                  core::crc32c(std::as_bytes(std::span(text.data(), text.size()))));
    check(text + last.data());
    return 0;
}
