#include "devices/tape/scsi_tape.h"

#include <algorithm>

#include "core/ensure.h"
#include "devices/tape/scsi_command.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

// The shortest time limit of a command, also if the drive reports a shorter one: a drive may repeat
// a failed read by itself for minutes.
constexpr Duration kDriveTimeMin = Duration(132s);
constexpr Duration kDriveTime = Duration(900s);
// Of commands that may move the whole tape, where the drive says nothing.
constexpr Duration kTapeMoveTime = Duration(14'000s);

constexpr std::uint32_t kFilemarksMax = 0xff'ffff;

bool moves_tape(ScsiCode code) {
    return code == ScsiCode::kRewind || code == ScsiCode::kSpace || code == ScsiCode::kLocate10 ||
           code == ScsiCode::kLocate16 || code == ScsiCode::kLoadUnload ||
           code == ScsiCode::kWriteFilemarks;
}

}  // namespace

// -- commands --

Duration ScsiTape::time_for(std::uint8_t code) const {
    const auto found = times_.find(code);
    if (found != times_.end()) return std::max(found->second, kDriveTimeMin);
    return moves_tape(ScsiCode{code}) ? kTapeMoveTime : kDriveTime;
}

// Repeats a command that was not executed because the drive had something else to say.
Result<ScsiReply> ScsiTape::run(ScsiCommand command) {
    command.timeout = time_for(command.bytes[0]);
    return execute_after_reports(port_, command, [](const Result<ScsiReply>& reply) {
        return reply && reply->sense && is_harmless(*reply->sense);
    });
}

// A drive reports unit attentions, for example a change of the cartridge, before it executes a
// command: the command is repeated after them.
Result<ScsiReply> ScsiTape::run_after_changes(ScsiCommand command) {
    command.timeout = time_for(command.bytes[0]);
    return execute_after_reports(port_, command, is_attention);
}

Result<ScsiReply> ScsiTape::ask(ScsiCommand command, core::Buffer into) {
    command.direction = ScsiDirection::kFromDevice;
    command.data = into;
    return run(command);
}

// Of a command that simply succeeds, or leaves the position unknown.
Result<void> ScsiTape::done(const Result<ScsiReply>& reply) {
    if (is_good(reply)) return {};
    forget_position();
    if (!reply) return std::unexpected(reply.error());
    return std::unexpected(tape_sense_error(*reply->sense));
}

// -- reading and writing --

void ScsiTape::passed(Passed record) {
    const bool is_new = !numbers_suffice() && where_->block == map_.count() && !map_is_complete_;
    if (is_new) map_.add(record == Passed::kBlock ? 1 : 0);
    ++where_->block;
    if (record == Passed::kFilemark) ++where_->filemarks;
}

Result<TapeRead> ScsiTape::read(core::Buffer into) {
    if (const auto checked = check_position(); !checked) return std::unexpected(checked.error());
    into.size_bytes = std::min<std::size_t>(into.size_bytes, 0xff'ffff);
    const auto reply = send_read(into);
    if (!reply) {
        forget_position();
        return std::unexpected(reply.error());
    }
    return met(*reply, into);
}

Result<ScsiReply> ScsiTape::send_read(core::Buffer into) {
    ScsiCommand command = command_of(ScsiCode::kRead);
    put_three(command, 2, static_cast<std::uint32_t>(into.size_bytes));
    return ask(command, into);
}

// Reads the block before the position again, with its exact size: some devices send only a part of
// a block when more than its size was requested.
Result<TapeRead> ScsiTape::read_again(core::Buffer exact) {
    constexpr std::uint32_t kBackByOne = 0xff'ffff;
    const auto position = where_;
    if (const auto back = done(send_space(Space::kBlocks, kBackByOne)); !back) {
        return std::unexpected(back.error());
    }
    const auto reply = send_read(exact);
    const bool is_whole = is_good(reply) && reply->transferred_bytes == exact.size_bytes;
    if (!is_whole) {
        forget_position();
        return tape_refused(Errc::kIo, "drive has sent a part of a block");
    }
    where_ = position;
    return TapeRead{.met = TapeMark::kBlock, .size_bytes = exact.size_bytes};
}

Result<TapeRead> ScsiTape::met(const ScsiReply& reply, core::Buffer into) {
    const std::size_t wanted_bytes = into.size_bytes;
    std::size_t size_bytes = std::min(reply.transferred_bytes, wanted_bytes);
    if (reply.sense) {
        const ScsiSense& sense = *reply.sense;
        if (met_end_of_data(reply)) {
            if (!numbers_suffice() && where_->block == map_.count()) map_is_complete_ = true;
            return TapeRead{.met = TapeMark::kEndOfData};
        }
        if (sense.deferred || !sense.is_success()) return unreadable(sense);
        if (sense.filemark) {
            passed(Passed::kFilemark);
            return TapeRead{.met = TapeMark::kFilemark};
        }
        if (sense.wrong_length && sense.information) {
            if (*sense.information < 0) {
                passed(Passed::kBlock);
                return tape_refused(Errc::kInvalid, "block is larger than the memory for it");
            }
            size_bytes =
                wanted_bytes - std::min(wanted_bytes, static_cast<std::size_t>(*sense.information));
        }
    }
    if (size_bytes == 0) {
        forget_position();
        return tape_refused(Errc::kIo, "drive has reported success, but sent no data");
    }
    passed(Passed::kBlock);
    if (reply.transferred_bytes < size_bytes) {
        return read_again({.data = into.data, .size_bytes = size_bytes});
    }
    return TapeRead{.met = TapeMark::kBlock, .size_bytes = size_bytes};
}

// The block may have been passed.
Result<TapeRead> ScsiTape::unreadable(const ScsiSense& sense) {
    const auto before = where_;
    forget_position();
    const Error error = tape_sense_error(sense);
    if (sense.deferred || sense.key != ScsiSense::kMediumError) return std::unexpected(error);
    const auto after = position();
    if (after && after->block == before->block + 1) {
        return tape_refused(Errc::kCorrupt, "block cannot be read");
    }
    return std::unexpected(error);
}

TapeRoom ScsiTape::wrote(std::uint32_t size_bytes, std::uint64_t count, bool early) {
    if (!numbers_suffice()) {
        ENSURE(where_->block <= map_.count());
        map_.cut(where_->block);
        map_.add(std::min(size_bytes, 1U), count);
        map_is_complete_ = true;
    }
    where_->block += count;
    if (size_bytes == 0) where_->filemarks += count;
    // Some drives warn once only.
    early_ = early_ || early;
    return early_ ? TapeRoom::kEarlyWarning : TapeRoom::kPlenty;
}

// At the end of the tape. Some drives say so of the last block that they have written.
Result<TapeRoom> ScsiTape::did_not_fit(const ScsiSense& sense, std::uint32_t size_bytes,
                                       std::uint64_t count) {
    const TapePosition before = *where_;
    early_ = true;
    if (numbers_ == Numbers::kNone) {
        // Some of several may have been written.
        const bool is_none_written =
            count == 1 || sense.information == static_cast<std::int64_t>(count);
        if (!is_none_written) forget_position();
        return TapeRoom::kFull;
    }
    const auto block = ask_block();
    if (!block || *block == before.block) return TapeRoom::kFull;
    if (*block == before.block + count) return wrote(size_bytes, count, true);
    forget_position();
    return TapeRoom::kFull;
}

// The result of a write of blocks, or of filemarks if `size_bytes` is 0.
Result<TapeRoom> ScsiTape::append(const Result<ScsiReply>& reply, std::uint32_t size_bytes,
                                  std::uint64_t count) {
    if (is_good(reply)) return wrote(size_bytes, count, false);
    if (reply && !reply->sense->deferred) {
        const ScsiSense& sense = *reply->sense;
        if (sense.end_of_medium && sense.is_success()) return wrote(size_bytes, count, true);
        if (sense.key == ScsiSense::kVolumeOverflow) {
            return did_not_fit(sense, size_bytes, count);
        }
    }
    const auto failed = done(reply);
    return std::unexpected(failed.error());
}

// The result of a sync. Only success makes anything durable, also near the end of the tape.
Result<TapeRoom> ScsiTape::synced(const Result<ScsiReply>& reply) {
    if (!is_good(reply)) {
        const bool says_why = reply && !reply->sense->deferred;
        const bool is_near_end = says_why && reply->sense->end_of_medium;
        if (says_why && reply->sense->key == ScsiSense::kVolumeOverflow) {
            // A part of the data in the drive's memory is lost.
            forget_position();
            early_ = true;
            return TapeRoom::kFull;
        }
        const bool is_success = is_near_end && reply->sense->is_success();
        if (!is_success) return std::unexpected(done(reply).error());
        early_ = true;
    }
    unsynced_ = false;
    return early_ ? TapeRoom::kEarlyWarning : TapeRoom::kPlenty;
}

Result<TapeRoom> ScsiTape::write(core::Buffer from) {
    if (from.size_bytes == 0 || from.size_bytes > kTapeBlockMax) {
        return tape_refused(Errc::kInvalid, "block size is not between 1 B and 256 KiB");
    }
    if (const auto checked = check_position(); !checked) return std::unexpected(checked.error());
    if (loaded_->write_protected) {
        return tape_refused(Errc::kDenied, "cartridge is write-protected");
    }
    const auto size_bytes = static_cast<std::uint32_t>(from.size_bytes);
    ScsiCommand command = command_of(ScsiCode::kWrite);
    put_three(command, 2, size_bytes);
    command.direction = ScsiDirection::kToDevice;
    command.data = from;
    unsynced_ = true;
    return append(run(command), size_bytes, 1);
}

Result<TapeRoom> ScsiTape::write_filemarks(std::uint32_t count, TapeDrive::Marks marks) {
    if (count > kFilemarksMax)
        return tape_refused(Errc::kInvalid, "too many filemarks in one command");
    const auto checked = count == 0 && unsynced_ ? check() : check_position();
    if (!checked) return std::unexpected(checked.error());
    const bool is_immediate = marks == TapeDrive::Marks::kImmediate;
    if (count > 0 && loaded_->write_protected) {
        return tape_refused(Errc::kDenied, "cartridge is write-protected");
    }
    const TapeRoom room = early_ ? TapeRoom::kEarlyWarning : TapeRoom::kPlenty;
    if (count == 0 && (is_immediate || !unsynced_)) return room;
    ScsiCommand command = command_of(ScsiCode::kWriteFilemarks);
    command.bytes[1] = is_immediate ? 1 : 0;
    put_three(command, 2, count);
    unsynced_ = true;
    const auto reply = run(command);
    if (count == 0) return synced(reply);
    const auto written = append(reply, 0, count);
    if (!written || *written == TapeRoom::kFull || is_immediate) return written;
    // If the drive reported that the marks did not fit, they may be only in its memory.
    const bool is_durable = !reply->sense || reply->sense->is_success();
    if (!is_durable) return write_filemarks(0, marks);
    unsynced_ = false;
    return written;
}

}  // namespace fopd::devices
