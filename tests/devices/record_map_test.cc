// Goal: the map of a cartridge's records gives the same answers as a list of all of them.
#include "devices/tape/record_map.h"

#include <vector>

#include "core/random.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::devices;

namespace {

// A list of records, searched from its beginning.
class PlainRecords {
public:
    void add(std::uint32_t size_bytes, std::uint64_t count, bool readable) {
        for (; count > 0; --count) {
            records_.push_back({.number = records_.size(),
                                .filemarks = filemarks_,
                                .offset = offset_,
                                .size_bytes = size_bytes,
                                .readable = readable});
            if (size_bytes == 0) ++filemarks_;
            offset_ += image_bytes(size_bytes);
        }
    }
    void add_gap(std::uint64_t size_bytes) { offset_ += size_bytes; }
    void cut(std::uint64_t number) {
        if (number == records_.size()) return;
        filemarks_ = records_[number].filemarks;
        offset_ = records_[number].offset;
        records_.resize(number);
    }

    void compare(const RecordMap& map) const {
        REQUIRE(map.count() == records_.size());
        REQUIRE(map.filemarks() == filemarks_);
        REQUIRE(map.end_offset() == offset_);
        std::uint64_t seen = 0;
        bool equal = map.behind_filemark(0) == 0U;
        for (const TapeRecord& record : records_) {
            equal = equal && map.find(record.number) == record;
            equal = equal && map.filemarks_before(record.number) == record.filemarks;
            equal = equal && map.offset_of(record.number) == record.offset;
            if (record.is_filemark()) {
                equal = equal && map.behind_filemark(++seen) == record.number + 1;
            }
        }
        REQUIRE(equal);
        REQUIRE_FALSE(map.behind_filemark(filemarks_ + 1).has_value());
        REQUIRE(map.offset_of(records_.size()) == offset_);
        REQUIRE(map.filemarks_before(records_.size()) == filemarks_);
    }
    std::uint64_t count() const { return records_.size(); }

private:
    std::vector<TapeRecord> records_;
    std::uint64_t filemarks_ = 0;
    std::uint64_t offset_ = 0;
};

}  // namespace

TEST_CASE("devices record map: equal records are one run", "[devices]") {
    RecordMap map;
    map.add(262'144, 1'000'000);
    map.add(0, 3);
    map.add(80);
    map.add(80);

    REQUIRE(map.run_count() == 3);
    REQUIRE(map.count() == 1'000'005);
    REQUIRE(map.find(999'999).offset == 999'999UL * 262'152);
    REQUIRE(map.find(1'000'002).filemarks == 2);
    REQUIRE(map.behind_filemark(3) == 1'000'003U);
    map.cut(1'000'001);
    map.add(0);
    REQUIRE(map.run_count() == 2);
    REQUIRE(map.filemarks() == 2);
}

TEST_CASE("devices record map: agrees with a list of records", "[devices]") {
    constexpr std::array<std::uint32_t, 4> kSizes{0, 1, 80, 262'144};
    for (std::uint64_t seed = 1; seed <= 50; ++seed) {
        CAPTURE(seed);
        core::Random random(seed);
        RecordMap map;
        PlainRecords plain;
        for (int i = 0; i < 60; ++i) {
            const std::uint32_t size = kSizes[random.below(kSizes.size())];
            const std::uint64_t what = random.below(10);
            if (what == 0) {
                const std::uint64_t number = random.below(plain.count() + 1);
                map.cut(number);
                plain.cut(number);
            } else if (what == 1) {
                map.add_gap(4);
                plain.add_gap(4);
            } else if (what == 2 && size > 0) {
                map.add_unreadable(size);
                plain.add(size, 1, false);
            } else {
                const std::uint64_t count = random.below(5);
                map.add(size, count);
                plain.add(size, count, true);
            }
        }
        plain.compare(map);
    }
}
