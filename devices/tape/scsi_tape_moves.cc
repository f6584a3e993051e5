// Where the tape is, and how it is moved.

#include <algorithm>
#include <array>
#include <limits>

#include "devices/tape/scsi_command.h"
#include "devices/tape/scsi_tape.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

constexpr std::uint32_t kSpacedMax = 0x7f'ffff;

}  // namespace

// -- where it is --

Result<std::uint64_t> ScsiTape::ask_block() {
    std::array<std::byte, 20> memory{};
    const core::Buffer buffer{.data = memory.data(), .size_bytes = memory.size()};
    const auto reply = ask(command_of(ScsiCode::kReadPosition), buffer);
    if (const auto asked = done(reply); !asked) return std::unexpected(asked.error());
    const auto block = parse_short_position(sent(*reply, buffer));
    if (!block) return tape_refused(Errc::kIo, "drive does not know its position");
    return *block;
}

Result<LongPosition> ScsiTape::ask_long_position() {
    std::array<std::byte, 32> memory{};
    const core::Buffer buffer{.data = memory.data(), .size_bytes = memory.size()};
    ScsiCommand command = command_of(ScsiCode::kReadPosition);
    command.bytes[1] = 0x06;
    const auto reply = ask(command, buffer);
    if (const auto asked = done(reply); !asked) return std::unexpected(asked.error());
    const auto read = parse_long_position(sent(*reply, buffer));
    if (!read) return tape_refused(Errc::kIo, "drive does not know its position");
    return *read;
}

Result<void> ScsiTape::ask_position() {
    const auto read = ask_long_position();
    if (!read) {
        forget_position();
        return std::unexpected(read.error());
    }
    where_ = read->position;
    return {};
}

Result<TapePosition> ScsiTape::position() {
    if (!loaded_) return tape_refused(Errc::kInvalid, "no tape is loaded");
    if (where_) return *where_;
    if (const auto checked = check(); !checked) return std::unexpected(checked.error());
    if (numbers_suffice()) {
        const auto asked = ask_position();
        if (!asked) return std::unexpected(asked.error());
        return *where_;
    }
    if (numbers_ == Numbers::kNone)
        return tape_refused(Errc::kIo, "position of the tape is unknown");
    const auto block = ask_block();
    if (!block) return std::unexpected(block.error());
    const auto gone = locate(*block);
    if (!gone) return std::unexpected(gone.error());
    return *where_;
}

// -- moving --

Result<ScsiReply> ScsiTape::send_space(Space what, std::uint32_t count) {
    ScsiCommand command = command_of(ScsiCode::kSpace);
    command.bytes[1] = static_cast<std::uint8_t>(what);
    put_three(command, 2, count);
    return run(command);
}

Result<ScsiReply> ScsiTape::send_locate(std::uint64_t block) {
    ScsiCommand command =
        command_of(locate_ == Locate::kBy64Bits ? ScsiCode::kLocate16 : ScsiCode::kLocate10);
    if (locate_ == Locate::kBy64Bits) {
        put_eight(command, 4, block);
    } else {
        put_four(command, 3, static_cast<std::uint32_t>(block));
    }
    return run(command);
}

Result<void> ScsiTape::rewind() {
    const auto rewound = done(run(command_of(ScsiCode::kRewind)));
    if (!rewound) return rewound;
    where_ = TapePosition{};
    early_ = false;
    return {};
}

// The result of a move on a drive that reports block and filemark.
Result<void> ScsiTape::moved(const Result<ScsiReply>& reply) {
    early_ = false;
    const bool met_end = met_end_of_data(reply);
    if (!met_end) {
        if (const auto moved = done(reply); !moved) return moved;
    }
    if (const auto asked = ask_position(); !asked) return asked;
    if (met_end) return tape_refused(Errc::kNotFound, "the data end before the requested position");
    return {};
}

Result<void> ScsiTape::locate(std::uint64_t block) {
    if (const auto checked = check(); !checked) return checked;
    if (block == 0) return rewind();
    if (numbers_suffice()) {
        const auto reached = moved(send_locate(block));
        if (reached && where_->block != block) {
            return tape_refused(Errc::kNotFound, "data end before the block");
        }
        return reached;
    }
    if (const auto known = explore(block, 0); !known) return known;
    const std::uint64_t target = std::min(block, map_.count());
    if (const auto gone = go_to(target); !gone) return gone;
    if (target < block) return tape_refused(Errc::kNotFound, "data end before the block");
    return {};
}

Result<void> ScsiTape::skip_filemarks(std::uint32_t count) {
    if (const auto checked = check(); !checked) return checked;
    if (!where_) {
        const auto found = position();
        if (!found) return std::unexpected(found.error());
    }
    if (count == 0) return {};
    if (numbers_suffice()) return moved(send_space(Space::kFilemarks, std::min(count, kSpacedMax)));
    const std::uint64_t filemark = where_->filemarks + count;
    if (const auto known = explore(0, filemark); !known) return known;
    const auto behind = map_.behind_filemark(filemark);
    if (const auto gone = go_to(behind.value_or(map_.count())); !gone) return gone;
    if (!behind) return tape_refused(Errc::kNotFound, "data end before the filemark");
    return {};
}

Result<void> ScsiTape::to_end_of_data() {
    if (const auto checked = check(); !checked) return checked;
    if (numbers_suffice()) {
        const auto reached = moved(send_space(Space::kEndOfData, 0));
        if (!reached && reached.error().code == Errc::kNotFound) return {};
        return reached;
    }
    constexpr auto kAll = std::numeric_limits<std::uint64_t>::max();
    if (const auto known = explore(kAll, kAll); !known) return known;
    return go_to(map_.count());
}

// -- drives that do not tell block and filemark --

// Until the map has so many blocks and filemarks, or all.
Result<void> ScsiTape::explore(std::uint64_t blocks, std::uint64_t filemarks) {
    while (!map_is_complete_ && (map_.count() < blocks || map_.filemarks() < filemarks)) {
        if (const auto gone = go_to(map_.count()); !gone) return gone;
        const auto more = numbers_ == Numbers::kNone ? explore_by_reading() : explore_file();
        if (!more) return more;
    }
    return {};
}

// Up to the next filemark.
Result<void> ScsiTape::explore_file() {
    const std::uint64_t from = map_.count();
    const auto reply = send_space(Space::kFilemarks, 1);
    const bool met_end = met_end_of_data(reply);
    if (!met_end) {
        if (const auto spaced = done(reply); !spaced) return spaced;
    }
    const auto block = ask_block();
    if (!block) return std::unexpected(block.error());
    const std::uint64_t end = *block - (met_end || *block == 0 ? 0 : 1);
    if (*block <= from && !(met_end && *block == from)) {
        forget_position();
        return tape_refused(Errc::kIo, "drive tells a wrong position");
    }
    if (end > from) map_.add(1, end - from);
    if (!met_end) map_.add(0);
    map_is_complete_ = met_end;
    where_ = TapePosition{.block = map_.count(), .filemarks = map_.filemarks()};
    return {};
}

Result<void> ScsiTape::explore_by_reading() {
    memory_.resize(kTapeBlockMax);
    const auto next = read({.data = memory_.data(), .size_bytes = memory_.size()});
    // A block that is larger was passed.
    if (!next && next.error().code != Errc::kInvalid) return std::unexpected(next.error());
    return {};
}

// REQUIRES: the map has the block, or ends before it.
Result<void> ScsiTape::go_to(std::uint64_t block) {
    if (where_ && where_->block == block) return {};
    early_ = false;
    if (block == 0) return rewind();
    if (locate_ == Locate::kNone) return space_to(block);
    if (const auto moved = done(send_locate(block)); !moved) return moved;
    where_ = TapePosition{.block = block, .filemarks = map_.filemarks_before(block)};
    return {};
}

Result<void> ScsiTape::space_to(std::uint64_t block) {
    const std::uint64_t filemarks = map_.filemarks_before(block);
    const bool is_ahead = where_ && (where_->filemarks < filemarks ||
                                     (where_->filemarks == filemarks && where_->block < block));
    if (!is_ahead) {
        if (const auto rewound = rewind(); !rewound) return rewound;
    }
    // The map describes the tape as it was before; done() forgets it after a failure.
    while (where_->filemarks < filemarks) {
        const auto count = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(filemarks - where_->filemarks, kSpacedMax));
        if (const auto spaced = done(send_space(Space::kFilemarks, count)); !spaced) return spaced;
        where_->filemarks += count;
        where_->block = *map_.behind_filemark(where_->filemarks);
    }
    while (where_->block < block) {
        const auto count =
            static_cast<std::uint32_t>(std::min<std::uint64_t>(block - where_->block, kSpacedMax));
        if (const auto spaced = done(send_space(Space::kBlocks, count)); !spaced) return spaced;
        where_->block += count;
    }
    return {};
}

}  // namespace fopd::devices
