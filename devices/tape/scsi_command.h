#pragma once

#include <algorithm>
#include <cstdint>

#include "core/byte_order.h"
#include "devices/tape/scsi_pages.h"
#include "devices/tape/scsi_port.h"

namespace fopd::devices {

// The operation codes of tape drives and changers that are used here.
enum class ScsiCode : std::uint8_t {
    kTestUnitReady = 0x00,
    kRewind = 0x01,
    kInitializeElementStatus = 0x07,
    kRead = 0x08,
    kWrite = 0x0a,
    kWriteFilemarks = 0x10,
    kSpace = 0x11,
    kInquiry = 0x12,
    kModeSense = 0x1a,
    kLoadUnload = 0x1b,
    kLocate10 = 0x2b,
    kReadPosition = 0x34,
    kReadAttribute = 0x8c,
    kLocate16 = 0x92,
    kMaintenanceIn = 0xa3,
    kMoveMedium = 0xa5,
    kReadElementStatus = 0xb8,
};

// A device reports so many changes at most before it executes a command.
inline constexpr int kAttentionsMax = 8;

inline ScsiCommand command_of(ScsiCode code) {
    ScsiCommand command;
    command.bytes[0] = static_cast<std::uint8_t>(code);
    // The upper three bits are the group, and say how long a command is.
    const unsigned group = command.bytes[0] >> 5U;
    if (group == 1) command.size = 10;
    if (group == 4) command.size = 16;
    if (group == 5) command.size = 12;
    return command;
}

inline void put_two(ScsiCommand& command, std::size_t at, std::uint16_t value) {
    store_big(std::as_writable_bytes(std::span(command.bytes)).subspan(at, 2).data(), value);
}

inline void put_three(ScsiCommand& command, std::size_t at, std::uint32_t value) {
    command.bytes[at] = static_cast<std::uint8_t>(value >> 16U);
    put_two(command, at + 1, static_cast<std::uint16_t>(value));
}

inline void put_four(ScsiCommand& command, std::size_t at, std::uint32_t value) {
    store_big(std::as_writable_bytes(std::span(command.bytes)).subspan(at, 4).data(), value);
}

inline void put_eight(ScsiCommand& command, std::size_t at, std::uint64_t value) {
    store_big(std::as_writable_bytes(std::span(command.bytes)).subspan(at, 8).data(), value);
}

// Repeats a command that the device has not executed because it had to report something else first,
// as `is_report` says of its reply.
template <typename IsReport>
Result<ScsiReply> execute_after_reports(ScsiPort& port, const ScsiCommand& command,
                                        IsReport is_report) {
    for (int attempt = 0;; ++attempt) {
        auto reply = port.execute(command);
        if (!is_report(reply) || attempt == kAttentionsMax) return reply;
    }
}

// The data that the device has sent for a command that reads into `buffer`.
inline ScsiBytes sent(const ScsiReply& reply, core::Buffer buffer) {
    return buffer.span().first(std::min(reply.transferred_bytes, buffer.size_bytes));
}

// The device has executed the command, and has nothing to add.
inline bool is_good(const Result<ScsiReply>& reply) {
    return reply && (!reply->sense || (reply->sense->key == ScsiSense::kRecovered &&
                                       !reply->sense->deferred && !reply->sense->end_of_medium));
}

inline bool is_attention(const Result<ScsiReply>& reply) {
    return reply && reply->sense && reply->sense->key == ScsiSense::kUnitAttention;
}

// The tape ends here: some drives say so without saying that the command has failed.
inline bool met_end_of_data(const Result<ScsiReply>& reply) {
    if (!reply || !reply->sense || reply->sense->deferred) return false;
    return reply->sense->key == ScsiSense::kBlankCheck || reply->sense->code == 0x0005;
}

}  // namespace fopd::devices
