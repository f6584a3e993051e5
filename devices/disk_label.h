#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "devices/label.h"

namespace fopd::devices {

// Result of inspecting a disk, for the node and pool whose configuration names it.
enum class Verdict : std::uint8_t {
    kOurs,
    kBlank,      // Zeros where anything would have left a trace. May be taken.
    kRetired,    // Was taken out of service, by this node or for any other. May be taken.
    kOtherNode,  // Everything below is never written to.
    kOtherPool,
    kTruncated,  // Smaller than when it was taken.
    kForeign,    // Somebody else's content, or nobody can say whose.
    kDamaged,
    kNewer,  // Written by a newer version of this program.
};
std::string_view to_string(Verdict verdict);

// Whose disk it is to be.
struct Claim {
    NodeId node{};
    std::string pool;
};

// What a disk is told that is taken.
struct NewLabel {
    DiskId disk{};
    std::int64_t created_unix_ns = 0;
    std::uint32_t segment_bytes = 0;
    std::uint16_t slot = 0;
    // Retired for a disk that is not ready for use yet: whoever finds it so may take it anew.
    LabelState state = LabelState::kActive;
};

// The label of one open disk: recognises the disk, and alone writes the first two blocks. Lives on
// the disk's reactor.
class DiskLabel {
public:
    // The device outlives it.
    DiskLabel(Device& device, Claim claim);

    // Looks at the disk and changes nothing. Fails only when it cannot be read at all.
    Task<Result<Verdict>> inspect();

    // Requires, as for everything below: inspect() has succeeded.
    Verdict verdict() const { return *verdict_; }
    // For people: what the disk is, after its name: "belongs to node 01ab…".
    std::string explain() const;
    // What whoever cannot use the disk is told.
    Error refusal() const;
    // Requires: a verdict that follows from a label.
    const Label& label() const;
    // One of the two copies cannot be read, or is no label; the next that is written mends it.
    bool copy_lost() const { return copy_lost_; }

    // Makes a blank or retired disk ours, durably and in both copies; kDenied for every other. One
    // that is taken as retired can be taken again.
    Task<Result<void>> take(NewLabel fresh);
    // kDenied for a disk that is not ours.
    Task<Result<void>> set_state(LabelState state);

private:
    using Copies = std::array<std::expected<Label, LabelFlaw>, kLabelCopies>;

    Task<Result<Copies>> read_copies();
    void choose(const Copies& copies);
    Verdict judge_label() const;
    Task<Result<bool>> is_blank();
    Task<Result<bool>> is_zero(std::uint64_t offset, std::uint64_t end);
    Task<Result<void>> write(Label next);

    Device& device_;
    const Claim claim_;
    std::optional<Verdict> verdict_;
    std::optional<Label> label_;
    bool copy_lost_ = false;
    const char* content_ = "";  // What a foreign disk seems to hold.
};

}  // namespace fopd::devices
