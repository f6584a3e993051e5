#pragma once

#include <memory>
#include <string>

#include "core/owned_fd.h"
#include "devices/tape/scsi_pages.h"
#include "devices/tape/scsi_port.h"

namespace fopd::devices {

// The files of the kernel that lead to a SCSI device.
struct ScsiNode {
    std::string generic_path = {};  // Of the driver sg, such as "/dev/sg3".
    // Of the driver st, such as "/dev/nst0". Empty: the device is no tape drive, or the driver has
    // not taken it.
    std::string tape_path = {};
    ScsiDeviceType type = ScsiDeviceType::kOther;
};

// From any path of the device: that of sg, st or ch, or a link to it. kNotFound: nothing is there.
// kInvalid: it is no SCSI device. kUnsupported: the driver sg has not taken it.
Result<ScsiNode> find_scsi_node(const std::string& path);

// A device of this machine, which commands reach through the driver sg.
class SgPort final : public ScsiPort {
public:
    static Result<std::unique_ptr<SgPort>> open(const ScsiNode& node);

    Result<ScsiReply> execute(const ScsiCommand& command) override;
    // Opens the tape's file of the driver st until release(): the kernel lets only one program open
    // it at a time.
    Result<void> hold() override;
    void release() override { tape_ = {}; }

    // Locks the device as long as this port exists, against other processes that call this.
    // kBusy: one of them has the lock.
    Result<void> lock();

private:
    SgPort(core::OwnedFd generic, std::string tape_path)
        : generic_(std::move(generic)), tape_path_(std::move(tape_path)) {}

    core::OwnedFd generic_;
    const std::string tape_path_;
    core::OwnedFd tape_;
};

}  // namespace fopd::devices
