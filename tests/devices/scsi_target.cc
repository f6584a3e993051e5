#include "tests/devices/scsi_target.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/ensure.h"

namespace fopd::devices::testing {

namespace {

ScsiReply sense_of(std::uint8_t key, std::uint16_t code) {
    return {.sense = ScsiSense{.key = key, .code = code}};
}

ScsiReply refused() {
    return sense_of(ScsiSense::kIllegalRequest, 0x2000);
}

ScsiReply wrong_field() {
    return sense_of(ScsiSense::kIllegalRequest, 0x2400);
}

std::uint32_t three_of(const ScsiCommand& command, std::size_t at) {
    return three_at(std::as_bytes(std::span(command.bytes)), at);
}

ScsiReply send(const ScsiCommand& command, std::span<const std::byte> bytes) {
    const std::size_t size = std::min(bytes.size(), command.data.size_bytes);
    std::ranges::copy(bytes.first(size), command.data.data);
    return {.transferred_bytes = size};
}

ScsiReply send(const ScsiCommand& command, const std::string& text) {
    return send(command, std::as_bytes(std::span(text)));
}

std::string number_text(std::uint64_t value, std::size_t size) {
    std::string text;
    for (std::size_t i = size; i-- > 0;) text += static_cast<char>(value >> (8 * i));
    return text;
}

std::string padded(std::string text, std::size_t size) {
    text.resize(size, ' ');
    return text;
}

std::string serial_of(std::uint32_t index) {
    return "SN000" + std::to_string(index);
}

}  // namespace

// -- ports --

class ScsiTarget::DrivePort final : public ScsiPort {
public:
    DrivePort(ScsiTarget& target, std::uint32_t index) : target_(target), index_(index) {}
    ~DrivePort() override { release(); }
    DrivePort(const DrivePort&) = delete;
    DrivePort& operator=(const DrivePort&) = delete;

    Result<ScsiReply> execute(const ScsiCommand& command) override {
        return target_.drive_command(index_, command);
    }
    Result<void> hold() override {
        Drive& drive = target_.drive(index_);
        if (drive.held_by_others) {
            return std::unexpected(Error{.code = Errc::kBusy, .context = "open a tape drive"});
        }
        drive.held = true;
        return {};
    }
    void release() override { target_.drive(index_).held = false; }

private:
    ScsiTarget& target_;
    const std::uint32_t index_;
};

class ScsiTarget::RobotPort final : public ScsiPort {
public:
    explicit RobotPort(ScsiTarget& target) : target_(target) {}
    Result<ScsiReply> execute(const ScsiCommand& command) override {
        return target_.robot_command(command);
    }

private:
    ScsiTarget& target_;
};

ScsiTarget::ScsiTarget(TapeLibraryImage& image, ScsiTalents talents)
    : image_(image), talents_(talents), drives_(image.size().drives) {}

ScsiTarget::~ScsiTarget() = default;

ScsiLibraryPorts ScsiTarget::ports() {
    ScsiLibraryPorts ports;
    ports.changer = std::make_unique<RobotPort>(*this);
    for (std::uint32_t i = 0; i < drives_.size(); ++i) {
        ports.drives.push_back(std::make_unique<DrivePort>(*this, i));
    }
    return ports;
}

void ScsiTarget::power_cycle() {
    for (Drive& drive : drives_) {
        if (drive.deck.loaded()) drive.deck.unload();
        drive.threaded = false;
        drive.held = false;
        drive.next = {ScsiSense{.key = ScsiSense::kUnitAttention, .code = 0x2900}};
    }
}

// -- drives --

ScsiReply ScsiTarget::drive_command(std::uint32_t index, const ScsiCommand& command) {
    Drive& drive = drives_[index];
    drive.codes.push_back(command.bytes[0]);
    drive.last_timeout = command.timeout;
    const bool is_inquiry = command.bytes[0] == static_cast<std::uint8_t>(ScsiCode::kInquiry);
    if (!is_inquiry && !drive.next.empty()) {
        ScsiReply reply{.sense = drive.next.front()};
        drive.next.pop_front();
        if (drive.executes_next) static_cast<void>(execute(index, command));
        return reply;
    }
    return execute(index, command);
}

ScsiReply ScsiTarget::execute(std::uint32_t index, const ScsiCommand& command) {
    switch (const ScsiCode code{command.bytes[0]}; code) {
        case ScsiCode::kInquiry:
        case ScsiCode::kMaintenanceIn: return describe_drive(index, command);
        case ScsiCode::kTestUnitReady: return ready(index);
        case ScsiCode::kLoadUnload: return load(index, command);
        default: break;
    }
    if (const ScsiReply not_ready = ready(index); not_ready.sense) return not_ready;
    switch (const ScsiCode code{command.bytes[0]}; code) {
        case ScsiCode::kRewind: return locate(index, 0);
        case ScsiCode::kRead: return read(index, command);
        case ScsiCode::kWrite: return write(index, command);
        case ScsiCode::kWriteFilemarks: return write_filemarks(index, command);
        case ScsiCode::kSpace: return space(index, command);
        case ScsiCode::kLocate10:
            if (talents_.locate == ScsiTalents::Locate::kNone) return refused();
            return locate(index, four_at(std::as_bytes(std::span(command.bytes)), 3));
        case ScsiCode::kLocate16:
            if (talents_.locate != ScsiTalents::Locate::kBy64Bits) return refused();
            return locate(index, eight_at(std::as_bytes(std::span(command.bytes)), 4));
        case ScsiCode::kReadPosition: return position(index, command);
        case ScsiCode::kReadAttribute: return attributes(index, command);
        case ScsiCode::kModeSense: {
            const LoadedTape& tape = *drives_[index].deck.loaded();
            std::string mode(12, '\0');
            mode[2] = static_cast<char>(tape.write_protected ? 0x90 : 0x10);
            mode[3] = 8;
            mode[4] = static_cast<char>(tape.technology == "lto8" ? 0x5e : 0x60);
            return send(command, mode);
        }
        default: return refused();
    }
}

ScsiReply ScsiTarget::describe_drive(std::uint32_t index, const ScsiCommand& command) {
    const Drive& drive = drives_[index];
    if (ScsiCode{command.bytes[0]} == ScsiCode::kMaintenanceIn) {
        if (!talents_.tells) return refused();
        // Of READ: 60 s usually, 25 minutes at most.
        const std::string times = std::string("\x08\0\0\0\0\x02\0\x06", 8) +
                                  std::string("\0\x0a\0\0", 4) + number_text(60, 4) +
                                  number_text(1500, 4);
        return send(command, number_text(times.size(), 4) + times);
    }
    if ((command.bytes[1] & 1U) == 0) {
        return send(command, std::string("\x01\x80\x06\x02\x5b\0\0\0", 8) + padded("IBM", 8) +
                                 padded(drive.product, 16) + "1234");
    }
    const std::string serial = serial_of(index);
    if (command.bytes[2] == 0x80) {
        return send(command,
                    std::string("\x01\x80\0", 3) + static_cast<char>(serial.size()) + serial);
    }
    const std::string name = padded("IBM", 8) + padded(drive.product, 16) + serial;
    const std::string designator =
        std::string("\x02\x01\0", 3) + static_cast<char>(name.size()) + name;
    return send(command,
                std::string("\x01\x83\0", 3) + static_cast<char>(designator.size()) + designator);
}

// Threads the cartridge in the drive, if it can be.
bool ScsiTarget::thread(std::uint32_t index) {
    Drive& drive = drives_[index];
    drive.threaded = true;
    auto tape = TapeDeck::examine("lto9", cartridge(index).info(), 0);
    if (!tape) return false;
    drive.deck.load(std::move(*tape), cartridge(index).map());
    return true;
}

ScsiReply ScsiTarget::ready(std::uint32_t index) {
    Drive& drive = drives_[index];
    if (image_.at(kDriveAddress + index) == nullptr || !drive.threaded) {
        return sense_of(ScsiSense::kNotReady, 0x3a00);
    }
    if (drive.busy_answers > 0) {
        --drive.busy_answers;
        return sense_of(ScsiSense::kNotReady, 0x0401);
    }
    if (!drive.deck.loaded()) return sense_of(ScsiSense::kNotReady, 0x3000);
    if (drive.deck.loaded()->cleaning) return sense_of(ScsiSense::kNotReady, 0x3003);
    return {};
}

ScsiReply ScsiTarget::load(std::uint32_t index, const ScsiCommand& command) {
    Drive& drive = drives_[index];
    if (image_.at(kDriveAddress + index) == nullptr) {
        return sense_of(ScsiSense::kNotReady, 0x3a00);
    }
    if ((command.bytes[4] & 1U) != 0) {
        if (!drive.threaded && !thread(index)) return sense_of(ScsiSense::kMediumError, 0x3000);
        return {};
    }
    if (drive.deck.loaded()) drive.deck.unload();
    if (drive.threaded) cartridge(index).make_durable();
    drive.threaded = false;
    return {};
}

ScsiReply ScsiTarget::data_end() const {
    return sense_of(talents_.sloppy ? ScsiSense::kNoSense : ScsiSense::kBlankCheck, 0x0005);
}

ScsiReply ScsiTarget::read(std::uint32_t index, const ScsiCommand& command) {
    TapeDeck& deck = drives_[index].deck;
    const auto next = deck.next();
    if (!*next) return data_end();
    const TapeRecord record = **next;
    deck.pass();
    const auto wanted = static_cast<std::int64_t>(three_of(command, 2));
    if (record.is_filemark()) {
        ScsiReply reply = sense_of(ScsiSense::kNoSense, 0x0001);
        reply.sense->filemark = true;
        reply.sense->information = wanted;
        return reply;
    }
    if (!record.readable) return sense_of(ScsiSense::kMediumError, 0x1100);
    std::vector<std::byte> block(record.size_bytes);
    cartridge(index).read(record.number, block);
    ScsiReply reply = send(command, block);
    if (record.size_bytes != wanted) {
        reply.sense = ScsiSense{.wrong_length = true, .information = wanted - record.size_bytes};
        const auto extra =
            static_cast<std::size_t>(std::max<std::int64_t>(wanted - record.size_bytes, 0));
        if (talents_.sloppy && extra < reply.transferred_bytes) {
            std::ranges::fill(command.data.span().subspan(extra), std::byte{0});
            reply.transferred_bytes = extra;
        }
    }
    return reply;
}

ScsiReply ScsiTarget::write(std::uint32_t index, const ScsiCommand& command) {
    TapeDeck& deck = drives_[index].deck;
    const RoomWanted wanted{.size_bytes = three_of(command, 2)};
    const auto room = deck.may_write(wanted);
    if (!room) return sense_of(ScsiSense::kDataProtect, 0x2700);
    ScsiReply reply;
    if (*room != TapeRoom::kPlenty) {
        reply = sense_of(ScsiSense::kNoSense, 0x0002);
        reply.sense->end_of_medium = true;
    }
    if (*room == TapeRoom::kFull) {
        reply.sense->key = ScsiSense::kVolumeOverflow;
        return reply;
    }
    cartridge(index).cut(deck.position().block);
    deck.cut();
    deck.wrote(wanted);
    cartridge(index).append(command.data.span().first(wanted.size_bytes));
    return reply;
}

ScsiReply ScsiTarget::write_filemarks(std::uint32_t index, const ScsiCommand& command) {
    Drive& drive = drives_[index];
    TapeDeck& deck = drive.deck;
    const std::uint32_t count = three_of(command, 2);
    if ((command.bytes[1] & 1U) == 0 && std::exchange(drive.fails_next_sync, false)) {
        return {.sense = ScsiSense{
                    .key = ScsiSense::kMediumError, .code = 0x0c00, .end_of_medium = true}};
    }
    const RoomWanted wanted{.size_bytes = 0, .count = count};
    const auto room = deck.may_write(wanted);
    if (!room) return sense_of(ScsiSense::kDataProtect, 0x2700);
    ScsiReply reply;
    if (*room != TapeRoom::kPlenty) {
        reply = sense_of(ScsiSense::kNoSense, 0x0002);
        reply.sense->end_of_medium = true;
    }
    if (*room == TapeRoom::kFull && count > 0) {
        reply.sense->key = ScsiSense::kVolumeOverflow;
        reply.sense->information = count;
        return reply;
    }
    if (count > 0) {
        cartridge(index).cut(deck.position().block);
        deck.cut();
        deck.wrote(wanted);
        for (std::uint32_t i = 0; i < count; ++i) cartridge(index).append_filemark();
    }
    if ((command.bytes[1] & 1U) == 0) cartridge(index).make_durable();
    return reply;
}

ScsiReply ScsiTarget::space(std::uint32_t index, const ScsiCommand& command) {
    TapeDeck& deck = drives_[index].deck;
    const std::uint32_t count = three_of(command, 2);
    const std::uint64_t before = deck.position().filemarks;
    switch (command.bytes[1] & 7U) {
        case 0:
            if (count == 0xff'ffff) {
                deck.move_to(deck.position().block - 1);
                return {};
            }
            for (std::uint32_t i = 0; i < count; ++i) {
                const auto next = deck.next();
                if (!*next) return data_end();
                deck.pass();
                if (!(*next)->is_filemark() || talents_.sloppy) continue;
                ScsiReply reply = sense_of(ScsiSense::kNoSense, 0x0001);
                reply.sense->filemark = true;
                reply.sense->information = count - i;
                return reply;
            }
            return {};
        case 1: {
            if (deck.move_behind_filemarks(count)) return {};
            ScsiReply reply = data_end();
            if (!talents_.sloppy) {
                reply.sense->information =
                    static_cast<std::int64_t>(count - (deck.position().filemarks - before));
            }
            return reply;
        }
        case 3: {
            const auto moved = deck.move_to_end_of_data();
            ENSURE(moved.has_value());
            return {};
        }
        default: return wrong_field();
    }
}

ScsiReply ScsiTarget::locate(std::uint32_t index, std::uint64_t block) {
    if (drives_[index].deck.move_to_block(block)) return {};
    return data_end();
}

ScsiReply ScsiTarget::position(std::uint32_t index, const ScsiCommand& command) {
    using Numbers = ScsiTalents::Numbers;
    const TapePosition position = drives_[index].deck.position();
    const std::uint8_t form = command.bytes[1] & 0x1fU;
    if (form == 0) {
        const bool is_unknown = talents_.numbers == Numbers::kNone;
        const auto flags = static_cast<char>(is_unknown ? 0x14 : 0);
        const std::string block = number_text(is_unknown ? 0 : position.block, 4);
        return send(command, std::string(1, flags) + std::string(3, '\0') + block + block +
                                 std::string(8, '\0'));
    }
    // A drive that does not know it answers nevertheless.
    if (talents_.numbers == Numbers::kNone) return send(command, "\x20" + std::string(31, '\0'));
    if (form != 6 || talents_.numbers == Numbers::kBlock) return wrong_field();
    const auto flags = static_cast<char>(position.block == 0 ? 0x80 : 0);
    return send(command, std::string(1, flags) + std::string(7, '\0') +
                             number_text(position.block, 8) + number_text(position.filemarks, 8) +
                             std::string(8, '\0'));
}

ScsiReply ScsiTarget::attributes(std::uint32_t index, const ScsiCommand& command) {
    if (!talents_.tells) return refused();
    const CartridgeInfo& info = cartridge(index).info();
    const std::string capacity =
        std::string("\0\x01\x80\0\x08", 5) + number_text(info.capacity_bytes >> 20U, 8);
    const std::string serial = std::string("\x04\x01\x81\0\x20", 5) + padded(info.serial, 32);
    return send(command, number_text(capacity.size() + serial.size(), 4) + capacity + serial);
}

// -- the changer --

ScsiReply ScsiTarget::robot_command(const ScsiCommand& command) {
    robot_.codes.push_back(command.bytes[0]);
    if (!robot_.next.empty()) {
        ScsiReply reply{.sense = robot_.next.front()};
        robot_.next.pop_front();
        return reply;
    }
    switch (const ScsiCode code{command.bytes[0]}; code) {
        case ScsiCode::kInquiry:
            return send(command, std::string("\x08\x80\x06\x02\x5b\0\0\0", 8) + padded("IBM", 8) +
                                     padded("3573-TL", 16) + "1234");
        case ScsiCode::kInitializeElementStatus: robot_.must_look = false; return {};
        case ScsiCode::kReadElementStatus: return elements(command);
        case ScsiCode::kMoveMedium: return move(command);
        default: return refused();
    }
}

ScsiReply ScsiTarget::elements(const ScsiCommand& command) {
    if (robot_.must_look) return sense_of(ScsiSense::kNotReady, 0x0402);
    const std::uint8_t type = command.bytes[1] & 0x0fU;
    const bool tells_drives = (command.bytes[6] & 1U) != 0;
    if (tells_drives && !robot_.tells_drives) return wrong_field();
    const auto ranges = element_ranges(image_.size());
    const ElementRange range = type == 2 ? ranges[2] : type == 3 ? ranges[1] : ranges[0];
    std::string descriptors;
    std::size_t size = 0;
    for (std::uint32_t i = 0; i < range.count; ++i) {
        const std::uint32_t address = range.first + i;
        const CartridgeImage* const cartridge = image_.at(address);
        std::string one = number_text(address, 2);
        std::uint8_t flags = cartridge == nullptr ? 0 : 1;
        if (robot_.tells_access) flags |= 0x08U;
        one += static_cast<char>(flags);
        one += std::string(9, '\0');
        one += padded(cartridge == nullptr ? "" : "" + image_.at(address)->info().barcode, 32);
        one += std::string(4, '\0');
        if (tells_drives) {
            const std::string name =
                padded("IBM", 8) + padded("ULTRIUM-TD9", 16) + padded(serial_of(i), 10);
            one += std::string("\x02\x01\0", 3) + static_cast<char>(name.size()) + name;
        }
        size = one.size();
        descriptors += one;
    }
    const std::string page = std::string(1, static_cast<char>(type)) + "\x80" +
                             number_text(size, 2) + number_text(descriptors.size(), 4) +
                             descriptors;
    std::size_t total = page.size();
    if (robot_.cuts_reports) total -= 8;
    const std::string report =
        number_text(range.first, 2) + number_text(range.count, 2) + number_text(total, 4) + page;
    return send(command, report.substr(0, 8 + total));
}

ScsiReply ScsiTarget::move(const ScsiCommand& command) {
    const auto bytes = std::as_bytes(std::span(command.bytes));
    const std::uint32_t from = two_at(bytes, 4);
    const std::uint32_t to = two_at(bytes, 6);
    if (!image_.has_element(from) || !image_.has_element(to)) {
        return sense_of(ScsiSense::kIllegalRequest, 0x2101);
    }
    if (image_.at(from) == nullptr) return sense_of(ScsiSense::kIllegalRequest, 0x3b0e);
    if (image_.at(to) != nullptr) return sense_of(ScsiSense::kIllegalRequest, 0x3b0d);
    const auto is_drive = [this](std::uint32_t address) {
        return address >= kDriveAddress && address - kDriveAddress < drives_.size();
    };
    if (is_drive(from) && drives_[from - kDriveAddress].threaded) {
        return sense_of(ScsiSense::kIllegalRequest, 0x5302);
    }
    image_.move(from, to);
    if (is_drive(to)) {
        const std::uint32_t index = to - kDriveAddress;
        [[maybe_unused]] const bool threaded = thread(index);
        drives_[index].next.push_back({.key = ScsiSense::kUnitAttention, .code = 0x2800});
    }
    return {};
}

}  // namespace fopd::devices::testing
