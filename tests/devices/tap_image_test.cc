// Goal: the records of an image are found, and what is no image is seen as such.
#include "devices/tape/tap_image.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::devices;

namespace {

class ImageText {
public:
    ImageText& number(std::uint32_t value) {
        for (int i = 0; i < 4; ++i) bytes_.push_back(static_cast<char>(value >> (8 * i)));
        return *this;
    }
    ImageText& block(const std::string& text) {
        number(static_cast<std::uint32_t>(text.size()));
        bytes_ += text;
        if (text.size() % 2 != 0) bytes_.push_back('\0');
        return number(static_cast<std::uint32_t>(text.size()));
    }
    ImageText& mark() { return number(kTapFilemark); }
    std::string& bytes() { return bytes_; }

private:
    std::string bytes_;
};

MappedImage map_text(const std::string& bytes) {
    const ReadImage read = [&bytes](std::uint64_t offset,
                                    std::span<std::byte> into) -> Result<std::size_t> {
        REQUIRE(offset <= bytes.size());
        const std::size_t size = std::min(into.size(), bytes.size() - offset);
        std::memcpy(into.data(), bytes.data() + offset, size);
        return size;
    };
    const auto image = map_image(read, bytes.size());
    REQUIRE(image.has_value());
    return *image;
}

}  // namespace

TEST_CASE("devices tap image: an empty image is a blank cartridge", "[devices]") {
    const auto image = map_text("");

    REQUIRE(image.end == MappedImage::End::kWhole);
    REQUIRE(image.records.count() == 0);
}

TEST_CASE("devices tap image: finds blocks of any size, filemarks and gaps", "[devices]") {
    ImageText text;
    text.block("abc").mark().number(kTapGap).number(kTapGap);
    text.block(std::string(10'001, 'x')).block("de").mark().mark();
    const std::size_t end = text.bytes().size();
    text.number(kTapEnd).number(77);

    const auto image = map_text(text.bytes());

    REQUIRE(image.end == MappedImage::End::kWhole);
    REQUIRE(image.records.count() == 6);
    REQUIRE(image.records.filemarks() == 3);
    REQUIRE(image.records.find(0).size_bytes == 3);
    REQUIRE(image.records.find(1).offset == 12);
    REQUIRE(image.records.find(2).offset == 24);
    REQUIRE(image.records.find(2).size_bytes == 10'001);
    REQUIRE(image.records.end_offset() == end);
}

TEST_CASE("devices tap image: blocks that are marked as unreadable are", "[devices]") {
    ImageText text;
    text.number(0x8000'0002).number(0);
    text.bytes().resize(6);
    text.number(0x8000'0002).block("ok");

    const auto image = map_text(text.bytes());

    REQUIRE(image.end == MappedImage::End::kWhole);
    REQUIRE(image.records.count() == 2);
    REQUIRE_FALSE(image.records.find(0).readable);
    REQUIRE(image.records.find(1).readable);
}

TEST_CASE("devices tap image: an image that is cut anywhere ends with its last whole record",
          "[devices]") {
    ImageText text;
    text.block("abc").mark().block(std::string(5'000, 'x')).mark().block("d");
    const std::array<std::size_t, 5> ends{12, 16, 5'024, 5'028, 5'038};
    for (std::size_t size = 0; size <= text.bytes().size(); ++size) {
        const auto image = map_text(text.bytes().substr(0, size));
        const auto whole = static_cast<std::uint64_t>(
            std::ranges::count_if(ends, [&](auto end) { return end <= size; }));
        const bool is_whole = size == 0 || std::ranges::find(ends, size) != ends.end();
        if (image.records.count() != whole || (image.end == MappedImage::End::kWhole) != is_whole) {
            FAIL("cut at " << size);
        }
    }
}

TEST_CASE("devices tap image: lengths that differ, or are too great, are damage", "[devices]") {
    ImageText text;
    text.block("good").mark();
    const auto damaged_by = [&](std::uint32_t first, std::uint32_t second) {
        ImageText more = text;
        more.number(first).number(0x6465'6667).number(second).mark();
        const auto image = map_text(more.bytes());
        return image.end == MappedImage::End::kDamaged && image.records.count() == 2;
    };

    REQUIRE_FALSE(damaged_by(4, 4));
    REQUIRE(damaged_by(4, 5));
    REQUIRE(damaged_by(5, 4));
    REQUIRE(damaged_by(0x8000'0004, 4));
    REQUIRE(damaged_by(0x8000'0000, 0x8000'0000));
    REQUIRE(damaged_by(0x0100'0004, 0x0100'0004));
    REQUIRE(damaged_by(0x7000'0004, 0x7000'0004));
    REQUIRE(damaged_by(0xffff'0000, 4));
    REQUIRE(damaged_by(0x00ff'ffff, 4));
}
