#pragma once

#include <array>

#include "eh/handler.h"

namespace fopd::eh {

// Epochs of a participant that has no peers: each begins as soon as it is ready.
class LocalEpochHandler final : public EpochHandler {
public:
    explicit LocalEpochHandler(EpochRules rules = {}) : rules_(rules) {}

    const EpochRules& rules() const override { return rules_; }
    Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data,
                            Participant& participant) override;
    void last_epoch(EpochNumber current) override;

private:
    const EpochRules rules_;
    EpochNumber epoch_ = kFirstEpoch;  // The last that has begun.
    bool is_member_ = false;           // It is in that epoch.
    Participant* ready_ = nullptr;     // Waits for the next one.
    bool calling_ = false;             // on_epoch() is under way.
    std::size_t size_bytes_ = 0;       // Of what was said for the next one.
    std::array<std::byte, kEpochBytesMax> data_{};
};

}  // namespace fopd::eh
