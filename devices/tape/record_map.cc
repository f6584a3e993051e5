#include "devices/tape/record_map.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::devices {

void RecordMap::add(std::uint32_t size_bytes, std::uint64_t count) {
    if (count > 0) add_run(size_bytes, count, true);
}

void RecordMap::add_unreadable(std::uint32_t size_bytes) {
    ENSURE(size_bytes > 0);
    add_run(size_bytes, 1, false);
}

void RecordMap::add_run(std::uint32_t size_bytes, std::uint64_t count, bool readable) {
    const std::uint64_t offset = end_offset_;
    const auto continues = [&](const Run& run) {
        return run.first.size_bytes == size_bytes && run.first.readable == readable &&
               run.first.offset + run.count * image_bytes(size_bytes) == offset;
    };
    if (!runs_.empty() && continues(runs_.back())) {
        runs_.back().count += count;
    } else {
        runs_.push_back({.first = {.number = count_,
                                   .filemarks = filemarks_,
                                   .offset = offset,
                                   .size_bytes = size_bytes,
                                   .readable = readable},
                         .count = count});
    }
    count_ += count;
    if (size_bytes == 0) filemarks_ += count;
    end_offset_ += count * image_bytes(size_bytes);
}

void RecordMap::cut(std::uint64_t number) {
    ENSURE(number <= count_);
    if (number == count_) return;
    const TapeRecord first = find(number);
    while (runs_.back().first.number > number) runs_.pop_back();
    runs_.back().count = number - runs_.back().first.number;
    if (runs_.back().count == 0) runs_.pop_back();
    count_ = number;
    filemarks_ = first.filemarks;
    end_offset_ = first.offset;
}

TapeRecord RecordMap::find(std::uint64_t number) const {
    ENSURE(number < count_);
    const auto next = std::ranges::upper_bound(runs_, number, {},
                                               [](const Run& run) { return run.first.number; });
    TapeRecord record = std::prev(next)->first;
    const std::uint64_t behind = number - record.number;
    record.number = number;
    record.offset += behind * image_bytes(record.size_bytes);
    if (record.is_filemark()) record.filemarks += behind;
    return record;
}

std::uint64_t RecordMap::filemarks_before(std::uint64_t number) const {
    return number == count_ ? filemarks_ : find(number).filemarks;
}

std::uint64_t RecordMap::offset_of(std::uint64_t number) const {
    return number == count_ ? end_offset_ : find(number).offset;
}

std::optional<std::uint64_t> RecordMap::behind_filemark(std::uint64_t filemark) const {
    if (filemark > filemarks_) return std::nullopt;
    if (filemark == 0) return 0;
    // The last run with fewer filemarks before it has this one.
    const auto next = std::ranges::lower_bound(runs_, filemark, {},
                                               [](const Run& run) { return run.first.filemarks; });
    const Run& run = *std::prev(next);
    return run.first.number + (filemark - run.first.filemarks);
}

}  // namespace fopd::devices
