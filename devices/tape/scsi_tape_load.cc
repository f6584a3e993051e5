// A drive tells which one it is, and loads, unloads and describes its cartridge.

#include <algorithm>
#include <utility>

#include "devices/tape/deck.h"
#include "devices/tape/drive_model.h"
#include "devices/tape/scsi_command.h"
#include "devices/tape/scsi_tape.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

// -- identity --

Result<DriveIdentity> ScsiTape::identify(const std::string& technology) {
    std::vector<std::byte> memory(16UL << 10U);
    const core::Buffer buffer{.data = memory.data(), .size_bytes = memory.size()};
    ScsiCommand command = command_of(ScsiCode::kInquiry);
    core::Buffer short_buffer = buffer;
    short_buffer.size_bytes = 96;
    command.bytes[4] = 96;
    const auto standard = ask(command, short_buffer);
    if (!is_good(standard)) {
        return std::unexpected(standard ? tape_sense_error(*standard->sense) : standard.error());
    }
    const auto inquiry = parse_inquiry(sent(*standard, short_buffer));
    if (!inquiry || inquiry->type != ScsiDeviceType::kTape) {
        return tape_refused(Errc::kUnsupported, "device is not a tape drive");
    }
    DriveIdentity identity{.technology = technology_of_product(inquiry->product)};
    // Also for generations that nothing is known about.
    if (find_drive_model(identity.technology) == nullptr) identity.technology = technology;
    technology_ = identity.technology;
    command.bytes[1] = 1;
    short_buffer.size_bytes = 255;
    command.bytes[4] = 255;
    command.bytes[2] = 0x80;
    if (const auto page = ask(command, short_buffer); is_good(page)) {
        identity.serial = parse_serial(sent(*page, short_buffer));
    }
    command.bytes[2] = 0x83;
    if (const auto page = ask(command, short_buffer); is_good(page)) {
        identity.designators = parse_designators(sent(*page, short_buffer));
    }
    if (identity.serial.empty()) {
        return tape_refused(Errc::kUnsupported, "drive has no serial number");
    }
    // All commands with their times.
    ScsiCommand report = command_of(ScsiCode::kMaintenanceIn);
    report.bytes[1] = 0x0c;
    report.bytes[2] = 0x80;
    report.bytes[8] = static_cast<std::uint8_t>(buffer.size_bytes >> 8U);
    report.direction = ScsiDirection::kFromDevice;
    report.data = buffer;
    if (const auto codes = run_after_changes(report); is_good(codes)) {
        for (const CommandTime& each : parse_command_times(sent(*codes, buffer))) {
            Duration& longest = times_[each.code];
            longest = std::max(longest, each.longest);
        }
    }
    return identity;
}

// -- cartridges --

Result<void> ScsiTape::check() const {
    if (!loaded_) return tape_refused(Errc::kInvalid, "no tape is loaded");
    if (loaded_->cleaning)
        return tape_refused(Errc::kUnsupported, "cleaning cartridge has no data");
    return {};
}

// Reading and writing where nobody knows it to be is refused.
Result<void> ScsiTape::check_position() const {
    const auto checked = check();
    if (!checked) return checked;
    if (!where_) return tape_refused(Errc::kIo, "position of the tape is unknown");
    return {};
}

void ScsiTape::forget_position() {
    where_.reset();
    map_ = {};
    map_is_complete_ = false;
}

Result<std::optional<LoadedTape>> ScsiTape::try_load() {
    if (loaded_) return tape_refused(Errc::kInvalid, "a tape is loaded already");
    const auto ready = run_after_changes(command_of(ScsiCode::kTestUnitReady));
    if (!ready) return std::unexpected(ready.error());
    if (is_good(ready)) return prepare();
    const ScsiSense& sense = *ready->sense;
    if (becomes_ready(sense)) return std::nullopt;
    if (sense.code == 0x3003) {
        loaded_ = LoadedTape{
            .technology = technology_, .capacity_bytes = 0, .cleaning = true, .serial = {}};
        was_told_to_load_ = false;
        return loaded_;
    }
    // A cartridge that was given back, or put in without being threaded.
    const bool waits_for_load = has_no_medium(sense) || sense.code == 0x0402;
    if (!waits_for_load || was_told_to_load_) {
        was_told_to_load_ = false;
        return std::unexpected(tape_sense_error(sense));
    }
    ScsiCommand load = command_of(ScsiCode::kLoadUnload);
    load.bytes[4] = 1;
    const auto told = run_after_changes(load);
    if (!told) return std::unexpected(told.error());
    was_told_to_load_ = true;
    if (is_good(told)) return try_load();
    if (becomes_ready(*told->sense)) return std::nullopt;
    was_told_to_load_ = false;
    return std::unexpected(tape_sense_error(*told->sense));
}

Result<std::optional<LoadedTape>> ScsiTape::prepare() {
    was_told_to_load_ = false;
    const auto held = port_.hold();
    if (!held) return std::unexpected(held.error());
    forget_position();
    early_ = false;
    unsynced_ = false;
    const auto rewound = rewind();
    if (!rewound) {
        port_.release();
        return std::unexpected(rewound.error());
    }
    auto tape = TapeDeck::examine(technology_, describe_cartridge(), 0);
    if (!tape) {
        port_.release();
        return std::unexpected(tape.error());
    }
    if (!tape->cleaning) try_out();
    was_given_back_ = false;
    loaded_ = *std::move(tape);
    return loaded_;
}

// The technology of a cartridge that does not report it is that of the drive.
CartridgeInfo ScsiTape::describe_cartridge() {
    CartridgeInfo tape;
    tape.technology = technology_;
    std::vector<std::byte> memory(4096);
    core::Buffer buffer{.data = memory.data(), .size_bytes = memory.size()};
    ScsiCommand attributes = command_of(ScsiCode::kReadAttribute);
    attributes.bytes[12] = static_cast<std::uint8_t>(buffer.size_bytes >> 8U);
    if (const auto reply = ask(attributes, buffer); is_good(reply)) {
        const CartridgeMemory read = parse_attributes(sent(*reply, buffer));
        tape.capacity_bytes = read.capacity_bytes;
        tape.serial = read.serial;
        tape.cleaning = read.cleaning;
    }
    buffer.size_bytes = 12;
    ScsiCommand mode = command_of(ScsiCode::kModeSense);
    mode.bytes[4] = 12;
    if (const auto reply = ask(mode, buffer); is_good(reply)) {
        const auto read = parse_tape_mode(sent(*reply, buffer));
        tape.write_protected = read && read->write_protected;
        const std::string technology = technology_of_density(read ? read->density.value_or(0) : 0);
        if (find_drive_model(technology) != nullptr) tape.technology = technology;
    }
    return tape;
}

// Tests the abilities of the drive at the beginning of the tape, where the right answers are known,
// because some drives give wrong answers.
void ScsiTape::try_out() {
    numbers_ = Numbers::kNone;
    locate_ = Locate::kNone;
    if (const auto block = ask_block(); block && *block == 0) {
        numbers_ = Numbers::kBlock;
        for (const Locate how : {Locate::kBy64Bits, Locate::kBy32Bits}) {
            if (locate_ == Locate::kNone && try_locate(how)) locate_ = how;
        }
    }
    if (numbers_ == Numbers::kBlock && locate_ != Locate::kNone) {
        const auto read = ask_long_position();
        const bool is_right = read && read->at_beginning && read->position == TapePosition{};
        if (is_right) numbers_ = Numbers::kBlockAndFilemarks;
    }
    // Refused commands have not moved the tape.
    where_ = TapePosition{};
}

bool ScsiTape::try_locate(Locate how) {
    locate_ = how;
    const auto reply = send_locate(0);
    locate_ = Locate::kNone;
    return is_good(reply);
}

bool ScsiTape::numbers_suffice() const {
    return numbers_ == Numbers::kBlockAndFilemarks;
}

Result<void> ScsiTape::unload() {
    Result<void> first;
    if (!loaded_) {
        // Another program may use the drive.
        if (const auto held = port_.hold(); !held) return held;
        const auto ready = run_after_changes(command_of(ScsiCode::kTestUnitReady));
        const bool is_empty = ready && ready->sense && has_no_medium(*ready->sense);
        if (!ready || is_empty) port_.release();
        if (!ready) return std::unexpected(ready.error());
        if (is_empty) {
            if (was_given_back_) return {};
            return std::unexpected(tape_sense_error(*ready->sense));
        }
    } else if (unsynced_) {
        const auto synced = write_filemarks(0, TapeDrive::Marks::kDurable);
        if (!synced) first = std::unexpected(synced.error());
    }
    forget_position();
    port_.release();
    was_told_to_load_ = false;
    auto reply = run_after_changes(command_of(ScsiCode::kLoadUnload));
    // An error of earlier writes is reported once, instead of unloading.
    if (reply && reply->sense && reply->sense->deferred) {
        if (first) first = std::unexpected(tape_sense_error(*reply->sense));
        reply = run_after_changes(command_of(ScsiCode::kLoadUnload));
    }
    if (!reply) return std::unexpected(reply.error());
    const bool is_away = is_good(reply) || has_no_medium(*reply->sense);
    if (!is_away) return std::unexpected(tape_sense_error(*reply->sense));
    loaded_.reset();
    unsynced_ = false;
    was_given_back_ = true;
    return first;
}

}  // namespace fopd::devices
