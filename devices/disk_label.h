#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "devices/label.h"

namespace fopd::devices {

// Result of inspecting a disk for the node and pool that have it in their configuration.
enum class Verdict : std::uint8_t {
    kOurs,
    kBlank,      // Zeros wherever other uses would have left data. May be taken.
    kRetired,    // Was taken out of service, by this node or for any other. May be taken.
    kOtherNode,  // This and all below are never written to.
    kOtherPool,
    kTruncated,  // Smaller than when it was taken.
    kForeign,    // Contents that are not ours, or unknown.
    kDamaged,
    kNewer,  // Written by a newer version of this program.
};
std::string_view to_string(Verdict verdict);

// The node and pool that want the disk.
struct Claim {
    NodeId node{};
    std::string pool;
};

// The label's contents for a disk that is taken.
struct NewLabel {
    DiskId disk{};
    std::int64_t created_unix_ns = 0;
    std::uint32_t segment_bytes = 0;
    std::uint16_t slot = 0;
    // kRetired for a disk that is not ready for use yet: after a crash, it can be taken again.
    LabelState state = LabelState::kActive;
};

// The label of one open disk: identifies the disk, and is the only writer of its first two blocks.
// Lives on the disk's reactor.
class DiskLabel {
public:
    // The device outlives it.
    DiskLabel(Device& device, Claim claim);

    // Inspects the disk without changes. Fails only if the disk cannot be read at all.
    Task<Result<Verdict>> inspect();

    // REQUIRES, as all functions below: inspect() has succeeded.
    Verdict verdict() const { return *verdict_; }
    // In words, to follow the disk's name: "belongs to node 01ab…".
    std::string explain() const;
    // The error for a disk that cannot be used.
    Error refusal() const;
    // REQUIRES: a verdict that is based on a label.
    const Label& label() const;
    // Whether one of the two copies is unreadable or not a label; the next write repairs it. For
    // tests.
    bool copy_lost() const { return copy_lost_; }

    // Makes a blank or retired disk ours, durably and in both copies; kDenied for all others. A
    // disk taken as retired can be taken again.
    Task<Result<void>> take(NewLabel fresh);
    // kDenied if the disk is not ours.
    Task<Result<void>> set_state(LabelState state);

private:
    Task<Result<LabelCopies>> read_copies();
    void choose(const LabelCopies& copies);
    Verdict judge_label() const;
    Task<Result<bool>> is_blank();
    Task<Result<bool>> is_zero(std::uint64_t offset, std::uint64_t end);
    Task<Result<void>> write(Label next);

    Device& device_;
    const Claim claim_;
    std::optional<Verdict> verdict_;
    std::optional<Label> label_;
    bool copy_lost_ = false;
    const char* content_ = "";  // The kind of content that a foreign disk seems to have.
};

}  // namespace fopd::devices
