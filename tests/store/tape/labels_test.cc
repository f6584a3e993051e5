// Goal: labels are the bytes that the standard says, and nothing else is taken for one.
#include "store/tape/labels.h"

#include <string>
#include <string_view>

#include "store/tape/cartridge.h"
#include "tests/catch.h"
#include "tests/store/tape/tape_stage.h"

using namespace fopd;
using namespace fopd::store;
using namespace fopd::store::testing;

namespace {

using Side = FileLabels::Side;

std::string text_of(const TapeLabel& label) {
    return {reinterpret_cast<const char*>(label.data()), label.size()};
}

FileLabels some_labels() {
    FileLabels labels;
    labels.vsn = some_identity().vsn;
    labels.file_id = 0xfedcba9876543210;
    labels.number = 12'345'678;
    labels.site = {.site = "LYON",
                   .mover = "NODE-7-EXA",
                   .vendor = "IBM",
                   .model = "LTO9",
                   .serial = "SN-0001"};
    set_day(labels, kTapeDay);
    return labels;
}

}  // namespace

TEST_CASE("store tape labels: VOL1 has the VSN, the generation and the node", "[store][tape]") {
    const TapeLabel label = encode_volume_label(volume_label(some_identity()));

    REQUIRE(text_of(label) ==
            "VOL1FPD001              FOPD 00000003A0A1A2A3A4A5A6                          003");
    REQUIRE(parse_volume_label(label) == volume_label(some_identity()));
}

TEST_CASE("store tape labels: the labels of a file have the fields of CTA's", "[store][tape]") {
    FileLabels labels = some_labels();
    labels.blocks = 0;
    const auto header = encode_file_labels(Side::kHeader, labels);
    REQUIRE(text_of(header[0]) ==
            "HDR1FEDCBA9876543210 FPD00100015678000100027015027015 000000FOPD 1              ");
    REQUIRE(text_of(header[1]) ==
            "HDR2F0000000000                                   00                            ");
    REQUIRE(text_of(header[2]) ==
            "UHL1001234567800002621440000262144LYON    NODE-7-EXAIBM     LTO9    SN-0001     ");

    labels.blocks = 7'654'321 % kLabelBlocksEnd;
    const auto trailer = encode_file_labels(Side::kTrailer, labels);
    REQUIRE(text_of(trailer[0]) ==
            "EOF1FEDCBA9876543210 FPD00100015678000100027015027015 654321FOPD 1              ");
    REQUIRE(text_of(trailer[1]).substr(0, 4) == "EOF2");
    REQUIRE(text_of(trailer[2]).substr(0, 4) == "UTL1");
    REQUIRE(parse_file_labels(Side::kTrailer, trailer) == labels);
    REQUIRE_FALSE(parse_file_labels(Side::kHeader, trailer).has_value());
}

TEST_CASE("store tape labels: a formatted tape has a file that is none", "[store][tape]") {
    FileLabels labels = some_labels();
    labels.number = 1;

    REQUIRE(text_of(encode_prelabel(labels)) ==
            "HDR1PRELABEL         FPD00100010001000100027015027015 000000FOPD 1              ");
}

TEST_CASE("store tape labels: no byte of a label can change unseen", "[store][tape]") {
    const FileLabels labels = some_labels();
    const auto right = encode_file_labels(Side::kHeader, labels);
    const TapeLabel volume = encode_volume_label(volume_label(some_identity()));
    for (std::size_t at = 0; at < kTapeLabelBytes; ++at) {
        for (const char c : {'\0', '?', 'a', '\xff'}) {
            CAPTURE(at, c);
            for (std::size_t i = 0; i < right.size(); ++i) {
                auto changed = right;
                changed[i][at] = static_cast<std::byte>(c);
                const auto parsed = parse_file_labels(Side::kHeader, changed);
                REQUIRE((!parsed || *parsed != labels));
            }
            TapeLabel other = volume;
            other[at] = static_cast<std::byte>(c);
            const auto parsed = parse_volume_label(other);
            REQUIRE((!parsed || *parsed != volume_label(some_identity())));
        }
    }
}

TEST_CASE("store tape labels: dates go from 1900 to 2199", "[store][tape]") {
    constexpr std::int64_t kDay = 86'400'000'000'000;
    const auto [days, year, day] = GENERATE(table<std::int64_t, int, int>({
        {-25'567, 1900, 1},  // The first.
        {-1, 1969, 365},
        {0, 1970, 1},
        {10'956, 1999, 365},
        {10'957, 2000, 1},
        {11'322, 2000, 366},
        {47'482, 2100, 1},
        {84'005, 2199, 365},
        {84'006, 1900, 1},  // Behind the last.
    }));
    FileLabels labels = some_labels();
    set_day(labels, {.unix_ns = days * kDay});

    REQUIRE(labels.year == year);
    REQUIRE(labels.day == day);
    REQUIRE(parse_file_labels(Side::kHeader, encode_file_labels(Side::kHeader, labels)) == labels);
}

TEST_CASE("store tape labels: six characters of a barcode count", "[store][tape]") {
    REQUIRE(Vsn::from_barcode("ABC123L9") == Vsn::parse("ABC123"));
    REQUIRE(Vsn::from_barcode("ABC123") == Vsn::parse("ABC123"));
    REQUIRE_FALSE(Vsn::from_barcode("ABC12").has_value());
    REQUIRE_FALSE(Vsn::from_barcode("").has_value());
    REQUIRE_FALSE(Vsn::from_barcode("abc123L9").has_value());
    REQUIRE_FALSE(Vsn::from_barcode("ABC 12L9").has_value());
}
