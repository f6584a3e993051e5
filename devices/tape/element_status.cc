#include "devices/tape/element_status.h"

#include <algorithm>

namespace fopd::devices {

namespace {

constexpr std::size_t kReportHeader = 8;
constexpr std::size_t kPageHeader = 8;
constexpr std::size_t kDescriptorHeader = 12;
constexpr std::size_t kVolumeTag = 36;
// The bytes of a volume tag that are the text on the label; the rest is a sequence number.
constexpr std::size_t kVolumeText = 32;

std::optional<LibraryElement::Kind> element_kind(std::uint8_t type) {
    switch (type) {
        case 2: return LibraryElement::Kind::kStorage;
        case 3: return LibraryElement::Kind::kExchange;
        case 4: return LibraryElement::Kind::kDrive;
        default: return std::nullopt;
    }
}

// The text of a volume tag up to the first zero, without trailing spaces. Empty if the text has
// characters that are not printable: the label was misread.
std::string element_barcode(ScsiBytes tag) {
    std::string text(reinterpret_cast<const char*>(tag.data()), tag.size());
    text.resize(std::min(text.size(), text.find('\0')));
    while (!text.empty() && text.back() == ' ') text.pop_back();
    const bool is_text = std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
    return is_text ? text : std::string();
}

// Properties of all descriptors of a page.
struct ElementPage {
    LibraryElement::Kind kind = LibraryElement::Kind::kStorage;
    bool has_tag = false;
    bool has_second_tag = false;
};

ElementStatus parse_descriptor(ScsiBytes bytes, const ElementPage& page) {
    ElementStatus status;
    LibraryElement& element = status.element;
    element.kind = page.kind;
    element.address = two_at(bytes, 0);
    const std::uint8_t flags = byte_at(bytes, 2);
    element.full = (flags & 0x01U) != 0;
    // A drive's says whether the cartridge in it can be taken now, which changes with each load.
    const bool tells_access = page.kind != LibraryElement::Kind::kDrive;
    element.accessible = !tells_access || (flags & 0x08U) != 0;
    std::size_t offset = kDescriptorHeader;
    if (page.has_tag) {
        if (bytes.size() - offset < kVolumeText) return status;
        if (element.full) element.barcode = element_barcode(bytes.subspan(offset, kVolumeText));
        offset += std::min(kVolumeTag, bytes.size() - offset);
    }
    if (page.has_second_tag) offset += std::min(kVolumeTag, bytes.size() - offset);
    if (page.kind == LibraryElement::Kind::kDrive) {
        status.device = parse_designator(bytes.subspan(offset));
    }
    return status;
}

}  // namespace

ElementReport parse_element_status(ScsiBytes bytes) {
    ElementReport report;
    if (bytes.size() < kReportHeader) return report;
    report.size_bytes = kReportHeader + three_at(bytes, 5);
    ScsiBytes rest = bytes.subspan(kReportHeader);
    while (rest.size() >= kPageHeader) {
        const auto kind = element_kind(byte_at(rest, 0));
        const std::uint8_t tags = byte_at(rest, 1);
        const std::size_t size = two_at(rest, 2);
        ScsiBytes body = rest.subspan(kPageHeader);
        const std::size_t page_bytes = std::min<std::size_t>(body.size(), three_at(rest, 5));
        rest = body.subspan(page_bytes);
        body = body.first(page_bytes);
        if (size < kDescriptorHeader) continue;
        const ElementPage page{.kind = kind.value_or(LibraryElement::Kind::kStorage),
                               .has_tag = (tags & 0x80U) != 0,
                               .has_second_tag = (tags & 0x40U) != 0};
        // The last one may be cut.
        while (kind && body.size() >= kDescriptorHeader) {
            const std::size_t there = std::min(size, body.size());
            report.elements.push_back(parse_descriptor(body.first(there), page));
            body = body.subspan(there);
        }
    }
    return report;
}

}  // namespace fopd::devices
