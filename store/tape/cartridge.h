#pragma once

#include <cstdint>
#include <optional>

#include "core/result.h"
#include "core/task.h"
#include "core/time.h"
#include "devices/tape/tape_drive.h"
#include "store/tape/labels.h"
#include "store/tape/member.h"

namespace fopd::store {

// The loaded cartridge compared with the one that the node expects.
enum class CartridgeKind : std::uint8_t {
    kOurs,             // It is the expected one.
    kBlank,            // There are no data.
    kOtherGeneration,  // The expected one, formatted earlier or later than expected.
    kOtherNode,        // With the expected barcode, but the label of another node.
    kOtherBarcode,     // The VSN in its label is not the first six characters of the barcode.
    kForeign,          // Written by other programs.
    kUnreadable,       // The first block cannot be read, as after a crash while it was written.
    kCleaning,         // It cleans drives.
};

// Such as "a cartridge of another node".
const char* describe_kind(CartridgeKind kind);

struct Inspection {
    CartridgeKind kind = CartridgeKind::kBlank;
    std::optional<VolumeLabel> label{};  // If there is a VOL1.
    std::uint32_t generation = 0;        // As the label says, if this program wrote it.
};

// Reads the first block and compares it; writes nothing. Errors of the drive are passed on.
// REQUIRES: a tape is loaded. The drive must live until the call has ended, as for the others here.
Task<Result<Inspection>> inspect(devices::TapeDrive* drive, TapeIdentity expected);
// What the inspected cartridge is where `expected` is expected instead; reads nothing.
CartridgeKind kind_if_expected(const Inspection& found, const TapeIdentity& expected);
// Does the same as inspect() where nothing but the expected cartridge will do. kInvalid: it is
// another one; the context describes it.
Task<Result<void>> require_ours(devices::TapeDrive* drive, TapeIdentity expected);

// Writes an empty tape's labels durably, and reads them again. All data on the tape are lost.
// kDenied: it is write-protected. kInvalid: it is a cleaning cartridge. kIo: the labels read differ
// from those written. REQUIRES: a tape is loaded.
Task<Result<void>> format(devices::TapeDrive* drive, TapeIdentity identity, TapeSite site,
                          WallTime now);

// The label of a cartridge.
VolumeLabel volume_label(const TapeIdentity& identity);

}  // namespace fopd::store
