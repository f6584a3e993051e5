#include "devices/tape/sg_port.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <scsi/sg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "core/killed_process.h"
#include "core/signal_mask.h"
#include "core/whole_number.h"
#include "devices/tape/tape_drive.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kCheckCondition = 0x02;
constexpr std::uint8_t kBusyStatus = 0x08;
constexpr std::uint8_t kReservationConflict = 0x18;
constexpr std::uint8_t kTaskSetFull = 0x28;
constexpr std::uint16_t kHostTimedOut = 0x03;

bool is_tape_name(const std::string& name) {
    constexpr std::string_view kPrefix = "nst";
    return name.starts_with(kPrefix) &&
           core::whole_number<unsigned>(std::string_view(name).substr(kPrefix.size()));
}

template <typename Accept>
std::string name_in(const fs::path& directory, Accept accept) {
    std::error_code failed;
    for (fs::directory_iterator at(directory, failed), end; !failed && at != end;
         at.increment(failed)) {
        std::string name = at->path().filename().string();
        if (accept(name)) return name;
    }
    return {};
}

int direction_of(ScsiDirection direction) {
    switch (direction) {
        case ScsiDirection::kNoData: return SG_DXFER_NONE;
        case ScsiDirection::kFromDevice: return SG_DXFER_FROM_DEV;
        case ScsiDirection::kToDevice: return SG_DXFER_TO_DEV;
    }
    return SG_DXFER_NONE;
}

}  // namespace

Result<ScsiNode> find_scsi_node(const std::string& path) {
    struct stat found{};
    if (::stat(path.c_str(), &found) != 0) return tape_os_error("find a SCSI device");
    if (!S_ISCHR(found.st_mode)) return tape_refused(Errc::kInvalid, "not a SCSI device");
    const fs::path device = "/sys/dev/char/" + std::to_string(major(found.st_rdev)) + ":" +
                            std::to_string(minor(found.st_rdev)) + "/device";
    ScsiNode node;
    unsigned type = 0;
    std::ifstream type_file(device / "type");
    if (!(type_file >> type) || type > 0x1f) {
        return tape_refused(Errc::kInvalid, "not a SCSI device");
    }
    node.type = scsi_device_type(static_cast<std::uint8_t>(type));
    const std::string generic = name_in(device / "scsi_generic", [](const auto&) { return true; });
    if (generic.empty()) {
        return tape_refused(Errc::kUnsupported, "the kernel's module sg is not loaded");
    }
    node.generic_path = "/dev/" + generic;
    const std::string tape = name_in(device / "scsi_tape", is_tape_name);
    if (!tape.empty()) node.tape_path = "/dev/" + tape;
    return node;
}

Result<std::unique_ptr<SgPort>> SgPort::open(const ScsiNode& node) {
    core::OwnedFd generic(::open(node.generic_path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (generic.get() < 0) return tape_os_error("open a SCSI device");
    int version = 0;
    constexpr int kVersionMin = 30'000;
    if (::ioctl(generic.get(), SG_GET_VERSION_NUM, &version) != 0 || version < kVersionMin) {
        return tape_refused(Errc::kInvalid, "not a file of the driver sg");
    }
    // So that memory for a block is there before it is needed; without it the kernel looks for it.
    int reserved = static_cast<int>(kTapeBlockMax);
    [[maybe_unused]] const int failed = ::ioctl(generic.get(), SG_SET_RESERVED_SIZE, &reserved);
    return std::unique_ptr<SgPort>(new SgPort(std::move(generic), node.tape_path));
}

Result<void> SgPort::lock() {
    return core::lock_file(
        generic_.get(), {.held = "library is open in another daemon", .failed = "lock a library"});
}

Result<void> SgPort::hold() {
    if (tape_path_.empty() || tape_.get() >= 0) return {};
    core::OwnedFd tape(::open(tape_path_.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
    if (tape.get() < 0) return tape_os_error("open a tape drive");
    tape_ = std::move(tape);
    return {};
}

Result<ScsiReply> SgPort::execute(const ScsiCommand& command) {
    std::array<unsigned char, 16> bytes = command.bytes;
    std::array<std::byte, 64> sense{};
    sg_io_hdr_t io{};
    io.interface_id = 'S';
    io.dxfer_direction = direction_of(command.direction);
    io.cmd_len = command.size;
    io.cmdp = bytes.data();
    io.mx_sb_len = static_cast<unsigned char>(sense.size());
    io.sbp = reinterpret_cast<unsigned char*>(sense.data());
    io.dxfer_len = static_cast<unsigned int>(command.data.size_bytes);
    io.dxferp = command.data.data;
    const auto timeout = std::chrono::duration_cast<std::chrono::milliseconds>(command.timeout);
    io.timeout = static_cast<unsigned int>(
        std::min<std::int64_t>(timeout.count(), std::numeric_limits<int>::max()));
    {
        // If a signal interrupted the wait, the outcome of the command would be unknown.
        const core::SignalsBlocked blocked;
        if (::ioctl(generic_.get(), SG_IO, &io) != 0) return tape_os_error("SCSI command");
    }
    if (io.host_status == kHostTimedOut) {
        return tape_refused(Errc::kTimedOut, "device does not answer");
    }
    ScsiReply reply;
    const int rest = std::clamp(io.resid, 0, static_cast<int>(io.dxfer_len));
    reply.transferred_bytes = io.dxfer_len - static_cast<unsigned int>(rest);
    if (io.status == kReservationConflict) {
        return tape_refused(Errc::kBusy, "device is reserved by another machine");
    }
    if (io.status == kBusyStatus || io.status == kTaskSetFull) {
        return tape_refused(Errc::kBusy, "device is busy");
    }
    if (io.status == kCheckCondition || io.sb_len_wr > 0) {
        reply.sense = parse_sense(std::span(sense).first(io.sb_len_wr));
        if (!reply.sense) return tape_refused(Errc::kIo, "device does not say why it has failed");
        return reply;
    }
    if (io.status != 0 || io.host_status != 0) {
        return tape_refused(Errc::kIo, "device cannot be reached");
    }
    return reply;
}

}  // namespace fopd::devices
