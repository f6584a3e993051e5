// Whatever SCSI devices send: it is read as far as it goes, and what is read keeps its limits.
//
//     build/fuzz/bin/fuzz_scsi -max_len=600 tests/fuzz/corpus/scsi
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ensure.h"
#include "devices/tape/element_status.h"
#include "devices/tape/scsi_pages.h"
#include "devices/tape/scsi_sense.h"

using namespace fopd;
using namespace fopd::devices;

namespace {

bool is_printable(const std::string& text) {
    return std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

void check_designator(const Designator& designator) {
    ENSURE(!designator.value.empty());
    ENSURE(designator.value.size() <= 255);
    if (designator.is_text) ENSURE(is_printable(designator.value));
    ENSURE(names_device(designator, "", std::span(&designator, 1)));
}

void check_sense(ScsiBytes bytes) {
    const auto sense = parse_sense(bytes);
    if (!sense) return;
    ENSURE(sense->key < 16);
    // Each is an error of some kind, and nothing is waited for without end.
    ENSURE(tape_sense_error(*sense).context != nullptr);
    ENSURE(changer_sense_error(*sense).context != nullptr);
    ENSURE(!(becomes_ready(*sense) && has_no_medium(*sense)));
    ENSURE(!(is_harmless(*sense) && sense->key != ScsiSense::kUnitAttention));
}

void check_elements(ScsiBytes bytes) {
    const ElementReport report = parse_element_status(bytes);
    ENSURE(report.elements.size() * 12 <= bytes.size());
    for (const ElementStatus& each : report.elements) {
        ENSURE(each.element.address <= 0xffff);
        ENSURE(each.element.barcode.size() <= 32);
        ENSURE(is_printable(each.element.barcode));
        if (each.device) check_designator(*each.device);
    }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    check_sense(bytes);
    check_elements(bytes);
    if (const auto inquiry = parse_inquiry(bytes)) {
        ENSURE(is_printable(inquiry->vendor));
        ENSURE(is_printable(inquiry->product));
        const std::string technology = technology_of_product(inquiry->product);
        ENSURE(technology.empty() || technology.starts_with("lto"));
    }
    ENSURE(is_printable(parse_serial(bytes)));
    for (const Designator& each : parse_designators(bytes)) check_designator(each);
    ENSURE(is_printable(parse_attributes(bytes).serial));
    for (const CommandTime& each : parse_command_times(bytes)) ENSURE(each.longest > Duration{0});
    static_cast<void>(parse_tape_mode(bytes));
    static_cast<void>(parse_short_position(bytes));
    static_cast<void>(parse_long_position(bytes));
    return 0;
}
