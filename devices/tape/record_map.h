#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace fopd::devices {

// A block or filemark of a cartridge, and where it is in the cartridge's image.
struct TapeRecord {
    std::uint64_t number = 0;      // Counted as TapePosition::block counts.
    std::uint64_t filemarks = 0;   // The filemarks that precede it.
    std::uint64_t offset = 0;      // The offset in the image of the 4 bytes of its length.
    std::uint32_t size_bytes = 0;  // The bytes of a block; 0 for a filemark.
    bool readable = true;

    bool is_filemark() const { return size_bytes == 0; }
    friend bool operator==(const TapeRecord&, const TapeRecord&) = default;
};

// Bytes that a record takes in an image (docs/formats/virtual_library.md).
constexpr std::uint64_t image_bytes(std::uint32_t size_bytes) {
    return size_bytes == 0 ? 4 : 8 + std::uint64_t{size_bytes} + size_bytes % 2;
}

// The records of a cartridge. Equal records that follow each other are kept as one run, so that the
// size of the map depends on the number of files and not of blocks. Each search takes logarithmic
// time in the number of runs.
class RecordMap {
public:
    // Adds a record, or several equal ones, behind the last.
    void add(std::uint32_t size_bytes, std::uint64_t count = 1);
    // Adds a block that cannot be read. REQUIRES: size_bytes > 0.
    void add_unreadable(std::uint32_t size_bytes);
    // Adds bytes to the image that belong to no record.
    void add_gap(std::uint64_t size_bytes) { end_offset_ += size_bytes; }
    // Removes the record with that number, and all behind it. REQUIRES: there are so many.
    void cut(std::uint64_t number);

    std::uint64_t count() const { return count_; }
    std::uint64_t filemarks() const { return filemarks_; }
    // The offset in the image of the first byte behind the last record.
    std::uint64_t end_offset() const { return end_offset_; }
    // REQUIRES: number < count().
    TapeRecord find(std::uint64_t number) const;
    // The number of filemarks before that record. REQUIRES: number <= count().
    std::uint64_t filemarks_before(std::uint64_t number) const;
    // The offset in the image at which the record with that number begins. REQUIRES: number <=
    // count().
    std::uint64_t offset_of(std::uint64_t number) const;
    // The number that follows the filemark with that number, counted from 1; nothing if there are
    // fewer.
    std::optional<std::uint64_t> behind_filemark(std::uint64_t filemark) const;
    // The number of runs, with which the memory of the map grows.
    std::size_t run_count() const { return runs_.size(); }

private:
    struct Run {
        TapeRecord first;
        std::uint64_t count = 0;
    };

    void add_run(std::uint32_t size_bytes, std::uint64_t count, bool readable);

    std::vector<Run> runs_;
    std::uint64_t count_ = 0;
    std::uint64_t filemarks_ = 0;
    std::uint64_t end_offset_ = 0;
};

}  // namespace fopd::devices
