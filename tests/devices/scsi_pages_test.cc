// Goal: what SCSI devices send is read as the standards say, and nothing else is believed.
#include "devices/tape/scsi_pages.h"

#include "devices/tape/element_status.h"
#include "devices/tape/scsi_sense.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::devices;

namespace {

template <std::size_t N>
std::string literal(const char (&text)[N]) {
    return {text, N - 1};
}

ScsiBytes bytes_in(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::string spaces(std::string text, std::size_t size) {
    text.resize(size, ' ');
    return text;
}

Designator text_designator(std::string value) {
    return {.kind = Designator::kT10, .is_text = true, .value = std::move(value)};
}

// No part of what was sent makes the parser read beyond it.
template <typename Parse>
void cut_everywhere(const std::string& whole, Parse parse) {
    for (std::size_t size = 0; size < whole.size(); ++size) {
        const std::string part = whole.substr(0, size);
        parse(bytes_in(part));
    }
}

}  // namespace

TEST_CASE("devices scsi: sense in the fixed format", "[devices]") {
    // READ of 65536 bytes, of which 60000 were there.
    const std::string short_block = literal("\xf0\0\x20\0\0\x15\xa0\x0a\0\0\0\0\0\0\0\0\0\0");
    const auto sense = parse_sense(bytes_in(short_block));
    REQUIRE(sense == ScsiSense{.wrong_length = true, .information = 5536});

    const auto long_block =
        parse_sense(bytes_in(literal("\xf0\0\x20\xff\xff\xf0\0\x0a\0\0\0\0\0\0")));
    REQUIRE(long_block->information == -4096);
    const auto filemark = parse_sense(bytes_in(literal("\x70\0\x80\0\0\0\0\x0a\0\0\0\0\0\x01")));
    REQUIRE(filemark == ScsiSense{.code = 0x0001, .filemark = true});
    const auto late = parse_sense(bytes_in(literal("\x71\0\x03\0\0\0\0\x0a\0\0\0\0\x0c\0")));
    REQUIRE(late->deferred);
    REQUIRE(late->key == ScsiSense::kMediumError);
    const auto end = parse_sense(bytes_in(literal("\x70\0\x4d\0\0\0\0\x0a\0\0\0\0\0\x02")));
    REQUIRE(end == ScsiSense{.key = ScsiSense::kVolumeOverflow, .code = 2, .end_of_medium = true});
    cut_everywhere(short_block, [](ScsiBytes part) {
        if (part.size() < 14) REQUIRE_FALSE(parse_sense(part).has_value());
    });
}

TEST_CASE("devices scsi: sense in the descriptor format", "[devices]") {
    const std::string whole = literal(
        "\x72\x08\0\x05\0\0\0\x10"
        "\0\x0a\x80\0\0\0\0\0\0\0\0\x03"
        "\x04\x02\0\x40");
    REQUIRE(parse_sense(bytes_in(whole)) == ScsiSense{.key = ScsiSense::kBlankCheck,
                                                      .code = 0x0005,
                                                      .end_of_medium = true,
                                                      .information = 3});
    cut_everywhere(whole, [](ScsiBytes part) {
        const auto sense = parse_sense(part);
        REQUIRE(sense.has_value() == (part.size() >= 8));
    });
    REQUIRE_FALSE(parse_sense(bytes_in(literal("\x7f\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"))).has_value());
}

TEST_CASE("devices scsi: errors tell what to do", "[devices]") {
    const auto of_tape = [](std::uint8_t key, std::uint16_t code) {
        return tape_sense_error({.key = key, .code = code}).code;
    };
    REQUIRE(of_tape(ScsiSense::kNotReady, 0x3a00) == Errc::kNotFound);
    REQUIRE(of_tape(ScsiSense::kNotReady, 0x0403) == Errc::kIo);
    REQUIRE(of_tape(ScsiSense::kMediumError, 0x3000) == Errc::kUnsupported);
    REQUIRE(of_tape(ScsiSense::kMediumError, 0x1100) == Errc::kIo);
    REQUIRE(of_tape(ScsiSense::kIllegalRequest, 0x2000) == Errc::kUnsupported);
    REQUIRE(of_tape(ScsiSense::kIllegalRequest, 0x2400) == Errc::kInvalid);
    REQUIRE(of_tape(ScsiSense::kDataProtect, 0x2700) == Errc::kDenied);
    REQUIRE(of_tape(ScsiSense::kUnitAttention, 0x2900) == Errc::kIo);
    REQUIRE(tape_sense_error({.key = ScsiSense::kDataProtect, .deferred = true}).code == Errc::kIo);
    const auto of_changer = [](std::uint8_t key, std::uint16_t code) {
        return changer_sense_error({.key = key, .code = code}).code;
    };
    REQUIRE(of_changer(ScsiSense::kIllegalRequest, 0x2101) == Errc::kNotFound);
    REQUIRE(of_changer(ScsiSense::kIllegalRequest, 0x3b0d) == Errc::kBusy);
    REQUIRE(of_changer(ScsiSense::kIllegalRequest, 0x3b0e) == Errc::kNotFound);
    REQUIRE(of_changer(ScsiSense::kIllegalRequest, 0x5302) == Errc::kBusy);
    REQUIRE(of_changer(ScsiSense::kNotReady, 0x0418) == Errc::kBusy);
    REQUIRE(of_changer(ScsiSense::kHardwareError, 0x1501) == Errc::kIo);
}

TEST_CASE("devices scsi: what a device is", "[devices]") {
    const std::string drive = literal("\x01\x80\x06\x02\x5b\0\0\0") + spaces("IBM", 8) +
                              spaces("ULT3580-TD9", 16) + "N9M1";
    REQUIRE(parse_inquiry(bytes_in(drive)) ==
            Inquiry{.type = ScsiDeviceType::kTape, .vendor = "IBM", .product = "ULT3580-TD9"});
    // Nothing is attached at this address.
    REQUIRE_FALSE(parse_inquiry(bytes_in("\x7f" + drive.substr(1))).has_value());
    REQUIRE(parse_serial(bytes_in(literal("\x01\x80\0\x0a") + "1068000073")) == "1068000073");
    REQUIRE(parse_serial(bytes_in(literal("\x01\x80\0\x0c") + "1068000073  ")) == "1068000073");
    REQUIRE(parse_serial(bytes_in(literal("\x01\x83\0\x02") + "12")).empty());
    cut_everywhere(drive, [](ScsiBytes part) { (void)parse_inquiry(part); });
}

TEST_CASE("devices scsi: the generation is in the product's name", "[devices]") {
    REQUIRE(technology_of_product("ULTRIUM-TD9") == "lto9");
    REQUIRE(technology_of_product("ULT3580-TD8") == "lto8");
    REQUIRE(technology_of_product("ULTRIUM-HH7") == "lto7");
    REQUIRE(technology_of_product("Ultrium 9-SCSI") == "lto9");
    REQUIRE(technology_of_product("LTO-10 HH") == "lto10");
    REQUIRE(technology_of_product("VIRTUAL-TAPE").empty());
    REQUIRE(technology_of_product("SDLT320").empty());
    REQUIRE(technology_of_product("03592E08").empty());
    REQUIRE(technology_of_product("").empty());
    REQUIRE(technology_of_density(0x60) == "lto9");
    REQUIRE(technology_of_density(0x13).empty());
}

TEST_CASE("devices scsi: a drive is known in its library by what identifies it", "[devices]") {
    const std::string name = spaces("IBM", 8) + spaces("ULT3580-TD8", 16) + "1068000073";
    const std::string page = literal("\x01\x83\0\x32") + literal("\x02\x01\0\x22") + name +
                             literal("\x01\x03\0\x08\x50\x05\x07\x63\0\0\0\x07");
    const auto own = parse_designators(bytes_in(page));
    REQUIRE(own.size() == 2);
    REQUIRE(own[0] == text_designator(name));
    REQUIRE(own[1].kind == Designator::kNaa);
    cut_everywhere(page, [](ScsiBytes part) { (void)parse_designators(part); });

    REQUIRE(names_device(text_designator(name), "1068000073", {}));
    REQUIRE(names_device(text_designator("1068000073"), "1068000073", {}));
    REQUIRE(names_device(own[1], "", own));
    REQUIRE_FALSE(names_device(text_designator(name), "68000073", {}));
    REQUIRE_FALSE(names_device(text_designator("X1068000073"), "1068000073", {}));
    REQUIRE_FALSE(names_device(text_designator(name), "", {}));
    REQUIRE_FALSE(names_device(own[1], "1068000073", {}));
}

TEST_CASE("devices scsi: cartridges and positions", "[devices]") {
    const std::string mode = literal("\x0b\0\x90\x08\x60\0\0\0\0\0\0\0");
    REQUIRE(parse_tape_mode(bytes_in(mode)) == TapeMode{.write_protected = true, .density = 0x60});
    REQUIRE(parse_tape_mode(bytes_in(mode.substr(0, 4)))->density == std::nullopt);

    const std::string list = literal("\0\x01\x80\0\x08\0\0\0\0\x01\x12\xa8\x80") +
                             literal("\x04\x01\x81\0\x08") + "GT4M2ZA " +
                             literal("\x04\x08\x80\0\x01\0");
    const std::string whole = literal("\0\0\0\x20") + list;
    REQUIRE(parse_attributes(bytes_in(whole)) ==
            CartridgeMemory{.capacity_bytes = 18'000'000ULL << 20U, .serial = "GT4M2ZA"});
    REQUIRE(parse_attributes(bytes_in(literal("\0\0\0\x06\x04\x08\x80\0\x01\x01"))).cleaning);
    cut_everywhere(whole, [](ScsiBytes part) { (void)parse_attributes(part); });

    const std::string short_form = literal("\0\0\0\0\0\0\x10\x01\0\0\x10\x01\0\0\0\0\0\0\0\0");
    REQUIRE(parse_short_position(bytes_in(short_form)) == 4097);
    REQUIRE_FALSE(parse_short_position(bytes_in("\x04" + short_form.substr(1))).has_value());
    REQUIRE_FALSE(parse_short_position(bytes_in(short_form.substr(1))).has_value());
    const std::string long_form =
        literal("\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0") + literal("\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
    REQUIRE(parse_long_position(bytes_in(long_form)) ==
            LongPosition{.at_beginning = true, .position = {}});
    REQUIRE_FALSE(parse_long_position(bytes_in("\x08" + long_form.substr(1))).has_value());
}

TEST_CASE("devices scsi: a drive tells how long its commands take", "[devices]") {
    const std::string whole = literal("\0\0\0\x24") + literal("\x92\0\0\0\0\x02\0\x10\0\x0a\0\0") +
                              literal("\0\0\x04\0\0\0\x0b\xb8") + literal("\x12\0\0\0\0\0\0\x06") +
                              literal("\x0a\0\0\0\0\x02\0\x06");
    const auto times = parse_command_times(bytes_in(whole));
    // The last one is cut off.
    REQUIRE(times.size() == 1);
    REQUIRE(times[0] == CommandTime{.code = 0x92, .longest = Duration(3000s)});
    cut_everywhere(whole, [](ScsiBytes part) { (void)parse_command_times(part); });
}

TEST_CASE("devices scsi: elements of a library", "[devices]") {
    const std::string tag = spaces("A00001L9", 32) + literal("\0\0\0\0");
    const std::string slot = literal("\x03\xe9\x09\0\0\0\0\0\0\0\0\0") + tag;
    const std::string empty = literal("\x03\xea\x08\0\0\0\0\0\0\0\0\0") + spaces("", 36);
    const std::string name = spaces("IBM", 8) + spaces("ULT3580-TD8", 16) + "1068000073";
    const std::string drive =
        literal("\x01\0\x01\0\0\0\0\0\0\x80\x03\xe9") + tag + literal("\x02\x01\0\x22") + name;
    const std::string hand = literal("\0\x01\0\0\0\0\0\0\0\0\0\0") + spaces("", 36);
    const auto page = [](char type, const std::string& descriptors, std::size_t size) {
        return std::string(1, type) + literal("\x80\0") + static_cast<char>(size) +
               literal("\0\0\0") + static_cast<char>(descriptors.size()) + descriptors;
    };
    const std::string pages = page(1, hand, 48) + page(2, slot + empty, 48) + page(4, drive, 86);
    const std::string whole =
        literal("\0\x01\0\x04\0\0\0") + static_cast<char>(pages.size()) + pages;

    const ElementReport report = parse_element_status(bytes_in(whole));

    REQUIRE(report.size_bytes == whole.size());
    using Kind = LibraryElement::Kind;
    REQUIRE(report.elements.size() == 3);
    REQUIRE(report.elements[0].element == LibraryElement{.kind = Kind::kStorage,
                                                         .address = 1001,
                                                         .accessible = true,
                                                         .full = true,
                                                         .barcode = "A00001L9",
                                                         .drive_serial = {}});
    REQUIRE(report.elements[1].element.barcode.empty());
    REQUIRE_FALSE(report.elements[1].element.full);
    REQUIRE(report.elements[2].element.kind == Kind::kDrive);
    REQUIRE(report.elements[2].element.address == 256);
    REQUIRE(report.elements[2].device == text_designator(name));
    cut_everywhere(
        whole, [](ScsiBytes part) { REQUIRE(parse_element_status(part).elements.size() <= 3); });
}
