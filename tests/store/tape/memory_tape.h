#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/tape/tape_drive.h"

namespace fopd::store::testing {

// A tape in memory. A record is a block, or null: a filemark.
using TapeRecord = std::shared_ptr<const std::vector<std::byte>>;

struct MemoryTape {
    std::vector<TapeRecord> records;
    devices::LoadedTape about{};
    std::uint64_t capacity_bytes = UINT64_MAX;
    std::uint64_t warning_bytes = 0;  // Before the end.

    // As a file in the framing of SIMH.
    std::vector<std::byte> as_simh() const {
        std::vector<std::byte> image;
        const auto put = [&](std::uint32_t number) {
            for (int i = 0; i < 4; ++i) image.push_back(static_cast<std::byte>(number >> (8 * i)));
        };
        for (const TapeRecord& record : records) {
            put(record ? static_cast<std::uint32_t>(record->size()) : 0);
            if (!record) continue;
            image.insert(image.end(), record->begin(), record->end());
            if (record->size() % 2 != 0) image.push_back(std::byte{0});
            put(static_cast<std::uint32_t>(record->size()));
        }
        return image;
    }
};

// A drive whose operations end at once. Errors are by the number of the operation, or the block.
class MemoryDrive final : public devices::TapeDrive {
public:
    explicit MemoryDrive(MemoryTape& tape) : tape_(tape), loaded_(tape.about) {
        durable_ = tape.records;
    }

    // Writes from this one on fail, as do reads: the power has gone.
    std::uint64_t cut_at_write = UINT64_MAX;
    std::uint64_t writes = 0;
    std::optional<Error> fail_sync{};
    std::map<std::uint64_t, Errc> bad_blocks{};
    std::uint64_t bytes_read = 0;
    std::uint64_t locates = 0;

    // The medium after a loss of power: of what was written since the last sync, `kept` records are
    // there.
    std::uint64_t unsynced() const {
        return first_unsynced_
                   ? tape_.records.size() - std::min(*first_unsynced_, tape_.records.size())
                   : 0;
    }
    void lose_power(std::uint64_t kept) {
        if (!first_unsynced_ || kept == 0) {
            tape_.records = durable_;
            return;
        }
        tape_.records.resize(std::min<std::size_t>(tape_.records.size(), *first_unsynced_ + kept));
    }

    std::string_view name() const override { return "memory"; }
    std::string_view serial() const override { return "sn-0001"; }
    std::string_view technology() const override { return "lto9"; }
    Task<Result<devices::LoadedTape>> load() override { co_return *loaded_; }
    Task<Result<void>> unload() override { co_return Result<void>(); }
    const std::optional<devices::LoadedTape>& loaded() const override { return loaded_; }
    Task<Result<devices::TapePosition>> position() override {
        const auto end = tape_.records.begin() + static_cast<std::ptrdiff_t>(at_);
        const auto marks = std::count(tape_.records.begin(), end, nullptr);
        co_return devices::TapePosition{.block = at_,
                                        .filemarks = static_cast<std::uint64_t>(marks)};
    }
    Task<Result<devices::TapeRead>> read(core::Buffer into) override {
        devices::TapeRead read{.met = devices::TapeMark::kEndOfData, .size_bytes = 0};
        if (off()) co_return gone();
        if (at_ == tape_.records.size()) co_return read;
        if (const auto bad = bad_blocks.find(at_); bad != bad_blocks.end()) {
            ++at_;
            co_return std::unexpected(Error{.code = bad->second, .context = "bad block"});
        }
        const TapeRecord& record = tape_.records[at_];
        if (record && record->size() > into.size_bytes) {
            co_return std::unexpected(Error{.code = Errc::kInvalid, .context = "large block"});
        }
        ++at_;
        read.met = record ? devices::TapeMark::kBlock : devices::TapeMark::kFilemark;
        if (record) {
            read.size_bytes = record->size();
            bytes_read += record->size();
            std::ranges::copy(*record, into.data);
        }
        co_return read;
    }
    Task<Result<devices::TapeRoom>> write(core::Buffer from) override {
        const auto bytes = from.span();
        co_return append(
            std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end()));
    }
    Task<Result<devices::TapeRoom>> write_filemarks(std::uint32_t count, Marks marks) override {
        if (marks == Marks::kDurable && fail_sync) {
            co_return std::unexpected(*std::exchange(fail_sync, std::nullopt));
        }
        Result<devices::TapeRoom> room = this->room();
        for (std::uint32_t i = 0; i < count; ++i) room = append(nullptr);
        if (!room) co_return room;
        if (off()) co_return gone();
        if (marks == Marks::kDurable) {
            durable_ = tape_.records;
            first_unsynced_.reset();
        }
        co_return room;
    }
    Task<Result<void>> locate(std::uint64_t block) override {
        if (off()) co_return gone();
        ++locates;
        at_ = static_cast<std::size_t>(std::min<std::uint64_t>(block, tape_.records.size()));
        if (at_ < block)
            co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "end"});
        co_return Result<void>();
    }
    Task<Result<void>> skip_filemarks(std::uint32_t count) override {
        if (off()) co_return gone();
        while (count > 0) {
            if (at_ == tape_.records.size()) {
                co_return std::unexpected(Error{.code = Errc::kNotFound, .context = "end"});
            }
            if (!tape_.records[at_++]) --count;
        }
        co_return Result<void>();
    }
    Task<Result<void>> to_end_of_data() override {
        if (off()) co_return gone();
        at_ = tape_.records.size();
        co_return Result<void>();
    }

private:
    bool off() const { return writes >= cut_at_write; }
    static std::unexpected<Error> gone() {
        return std::unexpected(Error{.code = Errc::kIo, .context = "no power"});
    }
    std::uint64_t used() const {
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < at_; ++i) {
            if (tape_.records[i]) bytes += tape_.records[i]->size();
        }
        return bytes;
    }
    devices::TapeRoom room() const {
        if (tape_.capacity_bytes == UINT64_MAX) return devices::TapeRoom::kPlenty;
        return used() + tape_.warning_bytes > tape_.capacity_bytes
                   ? devices::TapeRoom::kEarlyWarning
                   : devices::TapeRoom::kPlenty;
    }
    Result<devices::TapeRoom> append(TapeRecord record) {
        if (off() || ++writes >= cut_at_write) return gone();
        const std::uint64_t size = record ? record->size() : 0;
        const bool bounded = tape_.capacity_bytes != UINT64_MAX;
        if (bounded && used() + size > tape_.capacity_bytes) return devices::TapeRoom::kFull;
        first_unsynced_ = std::min(first_unsynced_.value_or(at_), at_);
        tape_.records.resize(at_);
        tape_.records.push_back(std::move(record));
        ++at_;
        return room();
    }

    MemoryTape& tape_;
    std::optional<devices::LoadedTape> loaded_;
    std::size_t at_ = 0;
    std::vector<TapeRecord> durable_;
    std::optional<std::size_t> first_unsynced_;
};

}  // namespace fopd::store::testing
