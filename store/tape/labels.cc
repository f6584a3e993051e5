#include "store/tape/labels.h"

#include <algorithm>
#include <chrono>

#include "core/ensure.h"
#include "core/whole_number.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

constexpr std::size_t kFileIdCharacters = 17;
constexpr std::string_view kPrelabelId = "PRELABEL";
constexpr std::string_view kIndexId = "INDEX";
constexpr std::string_view kSystemCode = "FOPD 1";
constexpr std::string_view kLabelBlockBytes = "0000262144";

// Appends the fields of a label, from its first character on.
class LabelWriter {
public:
    LabelWriter() { label_.fill(std::byte{' '}); }

    // Writes the text, cut to `width` characters or padded with spaces.
    LabelWriter& text(std::string_view text, std::size_t width) {
        ENSURE(at_ + width <= kTapeLabelBytes);
        const auto bytes = std::as_bytes(std::span(text.substr(0, width)));
        std::ranges::copy(bytes, label_.begin() + static_cast<std::ptrdiff_t>(at_));
        at_ += width;
        return *this;
    }
    // Writes the last `width` digits of the number.
    LabelWriter& number(std::uint64_t number, std::size_t width) {
        std::string digits(width, '0');
        for (std::size_t i = width; i > 0; --i, number /= 10) {
            digits[i - 1] = static_cast<char>('0' + number % 10);
        }
        return text(digits, width);
    }
    LabelWriter& blank(std::size_t width) { return text({}, width); }
    TapeLabel done() const {
        ENSURE(at_ == kTapeLabelBytes);
        return label_;
    }

private:
    TapeLabel label_;
    std::size_t at_ = 0;
};

// Takes the fields of a label in their order. A field that is not as it should be is remembered.
class LabelParser {
public:
    explicit LabelParser(std::span<const std::byte> label)
        : text_(reinterpret_cast<const char*>(label.data()), label.size()) {}

    std::string_view text(std::size_t width) {
        const std::string_view field = text_.substr(at_, width);
        at_ += width;
        return field;
    }
    // Without the spaces at its end. It has printable characters of ASCII only.
    std::string padded(std::size_t width) {
        std::string_view field = text(width);
        right_ &= std::ranges::all_of(field, [](char c) { return c >= ' ' && c <= '~'; });
        while (field.ends_with(' ')) field.remove_suffix(1);
        return std::string(field);
    }
    void expect(std::string_view expected, std::size_t width) {
        std::string_view field = text(width);
        right_ &= field.substr(0, expected.size()) == expected;
        for (const char c : field.substr(std::min(expected.size(), field.size()))) {
            right_ &= c == ' ';
        }
    }
    std::uint64_t number(std::size_t width) {
        const auto number = core::whole_number(text(width));
        right_ &= number.has_value();
        return number.value_or(0);
    }
    void require(bool condition) { right_ &= condition; }
    bool right() const { return right_; }

private:
    std::string_view text_;
    std::size_t at_ = 0;
    bool right_ = true;
};

bool is_vsn_character(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

// Text in the characters that labels may have.
std::string label_text(std::string_view text, std::size_t characters) {
    std::string out(text.substr(0, characters));
    for (char& c : out) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
        if (!is_vsn_character(c)) c = '-';
    }
    return out;
}

std::string file_id_text(const FileLabels& labels) {
    if (labels.kind == TapeFileKind::kPrelabel) return std::string(kPrelabelId);
    if (labels.kind == TapeFileKind::kIndex) return std::string(kIndexId);
    std::string text(16, '0');
    std::uint64_t rest = labels.file_id;
    for (std::size_t i = text.size(); i > 0; --i, rest /= 16) {
        text[i - 1] = "0123456789ABCDEF"[rest % 16];
    }
    return text;
}

void parse_file_id(LabelParser& parser, FileLabels& into) {
    const std::string text = parser.padded(kFileIdCharacters);
    if (text == kIndexId || text == kPrelabelId) {
        into.kind = text == kIndexId ? TapeFileKind::kIndex : TapeFileKind::kPrelabel;
        return;
    }
    into.kind = TapeFileKind::kObjects;
    const auto id = core::whole_number(text, 16);
    parser.require(text.size() == 16 && id.has_value());
    parser.require(std::ranges::all_of(text, is_vsn_character));  // Upper case.
    into.file_id = id.value_or(0);
}

// A date is a character for the century (blank: 19..), two digits for the year and three for the
// day.
void write_date(LabelWriter& writer, const FileLabels& labels) {
    ENSURE(labels.year >= 1900 && labels.year < 2200);
    ENSURE(labels.day >= 1 && labels.day <= 366);
    writer.text(labels.year < 2000 ? " " : labels.year < 2100 ? "0" : "1", 1);
    writer.number(labels.year % 100U, 2).number(labels.day, 3);
}

void parse_date(LabelParser& parser, FileLabels& into) {
    const std::string_view century = parser.text(1);
    parser.require(century == " " || century == "0" || century == "1");
    const unsigned first = century == " " ? 1900 : century == "0" ? 2000 : 2100;
    into.year = static_cast<std::uint16_t>(first + parser.number(2));
    into.day = static_cast<std::uint16_t>(parser.number(3));
    parser.require(into.day >= 1 && into.day <= 366);
}

TapeLabel encode_first(std::string_view name, const FileLabels& labels, std::uint32_t blocks) {
    LabelWriter writer;
    writer.text(name, 4).text(file_id_text(labels), kFileIdCharacters);
    writer.text(labels.vsn.text(), Vsn::kCharacters).text("0001", 4).number(labels.number, 4);
    writer.text("0001", 4).text("00", 2);
    write_date(writer, labels);
    write_date(writer, labels);
    writer.text(" ", 1).number(blocks, 6).text(kSystemCode, 13).blank(7);
    return writer.done();
}

}  // namespace

std::optional<Vsn> Vsn::parse(std::string_view text) {
    if (text.size() != kCharacters || !std::ranges::all_of(text, is_vsn_character)) return {};
    Vsn vsn;
    std::ranges::copy(text, vsn.text_.begin());
    return vsn;
}

TapeLabel encode_volume_label(const VolumeLabel& label) {
    LabelWriter writer;
    writer.text("VOL1", 4).text(label.vsn.text(), Vsn::kCharacters);
    writer.text(std::string_view(&label.access, 1), 1).blank(13);
    writer.text(label.implementation, 13).text(label.owner, 14).blank(26).text("00", 2);
    writer.text("3", 1);
    return writer.done();
}

Result<VolumeLabel> parse_volume_label(std::span<const std::byte> block) {
    if (block.size() != kTapeLabelBytes) return corrupt("VOL1");
    LabelParser parser(block);
    VolumeLabel label;
    parser.expect("VOL1", 4);
    const auto vsn = Vsn::parse(parser.text(Vsn::kCharacters));
    parser.require(vsn.has_value());
    if (vsn) label.vsn = *vsn;
    label.access = parser.text(1).front();
    parser.require(label.access >= ' ' && label.access <= '~');
    parser.expect({}, 13);
    label.implementation = parser.padded(13);
    label.owner = parser.padded(14);
    parser.expect({}, 26);
    const std::string_view protection = parser.text(2);
    parser.require(protection == "00" || protection == "  ");
    parser.expect("3", 1);
    if (!parser.right()) return corrupt("VOL1");
    return label;
}

void set_day(FileLabels& labels, WallTime when) {
    using std::chrono::days;
    const std::chrono::sys_time<std::chrono::nanoseconds> time{
        std::chrono::nanoseconds(when.unix_ns)};
    const auto day = std::chrono::floor<days>(time);
    const std::chrono::year_month_day date{day};
    const auto year = static_cast<int>(date.year());
    // The time is that of the machine's clock, which may be wrong by any amount.
    if (year < 1900 || year >= 2200) {
        labels.year = 1900;
        labels.day = 1;
        return;
    }
    const auto first = std::chrono::sys_days(date.year() / 1 / 1);
    labels.year = static_cast<std::uint16_t>(year);
    labels.day = static_cast<std::uint16_t>(1 + (day - first).count());
}

std::array<TapeLabel, kFileLabels> encode_file_labels(FileLabels::Side side,
                                                      const FileLabels& labels) {
    ENSURE(labels.number >= 1 && labels.number <= kTapeFileNumberMax);
    const bool header = side == FileLabels::Side::kHeader;
    LabelWriter second;
    second.text(header ? "HDR2" : "EOF2", 4).text("F", 1).text("00000", 5).text("00000", 5);
    second.blank(1 + 18 + 2 + 14).text("00", 2).blank(28);
    LabelWriter third;
    third.text(header ? "UHL1" : "UTL1", 4).number(labels.number, 10);
    third.text(kLabelBlockBytes, 10).text(kLabelBlockBytes, 10);
    third.text(label_text(labels.site.site, 8), 8).text(label_text(labels.site.mover, 10), 10);
    third.text(label_text(labels.site.vendor, 8), 8).text(label_text(labels.site.model, 8), 8);
    third.text(label_text(labels.site.serial, 12), 12);
    return {encode_first(header ? "HDR1" : "EOF1", labels,
                         header ? 0 : labels.blocks % kLabelBlocksEnd),
            second.done(), third.done()};
}

Result<FileLabels> parse_file_labels(FileLabels::Side side,
                                     std::span<const TapeLabel, kFileLabels> labels) {
    const bool header = side == FileLabels::Side::kHeader;
    FileLabels out;
    LabelParser first(labels[0]);
    first.expect(header ? "HDR1" : "EOF1", 4);
    parse_file_id(first, out);
    const auto vsn = Vsn::parse(first.text(Vsn::kCharacters));
    first.require(vsn.has_value());
    if (vsn) out.vsn = *vsn;
    first.expect("0001", 4);
    const std::uint64_t short_number = first.number(4);
    first.expect("0001", 4);
    first.expect("00", 2);
    parse_date(first, out);
    FileLabels expiry;
    parse_date(first, expiry);
    first.require(expiry.year == out.year && expiry.day == out.day);
    first.expect({}, 1);
    out.blocks = static_cast<std::uint32_t>(first.number(6));
    first.require(!header || out.blocks == 0);
    first.expect(kSystemCode, 13);
    first.expect({}, 7);
    first.require(out.kind != TapeFileKind::kPrelabel);
    if (!first.right()) return corrupt(header ? "HDR1" : "EOF1");

    LabelParser second(labels[1]);
    second.expect(header ? "HDR2" : "EOF2", 4);
    second.expect("F", 1);
    second.expect("00000", 5);
    second.expect("00000", 5);
    second.expect({}, 1 + 18 + 2 + 14);
    second.expect("00", 2);
    second.expect({}, 28);
    if (!second.right()) return corrupt(header ? "HDR2" : "EOF2");

    LabelParser third(labels[2]);
    third.expect(header ? "UHL1" : "UTL1", 4);
    out.number = third.number(10);
    third.expect(kLabelBlockBytes, 10);
    third.expect(kLabelBlockBytes, 10);
    out.site.site = third.padded(8);
    out.site.mover = third.padded(10);
    out.site.vendor = third.padded(8);
    out.site.model = third.padded(8);
    out.site.serial = third.padded(12);
    for (const std::string* field :
         {&out.site.site, &out.site.mover, &out.site.vendor, &out.site.model, &out.site.serial}) {
        third.require(label_text(*field, field->size()) == *field);
    }
    third.require(out.number >= 1 && out.number % 10'000 == short_number);
    if (!third.right()) return corrupt(header ? "UHL1" : "UTL1");
    return out;
}

TapeLabel encode_prelabel(const FileLabels& labels) {
    FileLabels prelabel = labels;
    prelabel.kind = TapeFileKind::kPrelabel;
    return encode_first("HDR1", prelabel, 0);
}

}  // namespace fopd::store
