#pragma once

#include <array>

#include "eh/handler.h"

namespace fopd::eh {

// Epochs of a participant without peers: each epoch begins as soon as the participant is ready.
class LocalEpochHandler final : public EpochHandler {
public:
    explicit LocalEpochHandler(EpochRules rules = {}) : rules_(rules) {}

    const EpochRules& rules() const override { return rules_; }
    Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data,
                            Participant& participant) override;
    void last_epoch(EpochNumber current) override;

    // The newest epoch.
    EpochNumber epoch() const { return epoch_; }

private:
    const EpochRules rules_;
    EpochNumber epoch_ = kFirstEpoch;
    bool is_member_ = false;        // The participant is in that epoch.
    Participant* ready_ = nullptr;  // Set while it waits for the next epoch.
    bool calling_ = false;          // on_epoch() is running.
    std::size_t size_bytes_ = 0;    // The size of the data for the next epoch.
    std::array<std::byte, kEpochBytesMax> data_{};
};

}  // namespace fopd::eh
