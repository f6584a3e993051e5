#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "core/events.h"
#include "core/reactor.h"
#include "core/timer_heap.h"
#include "eh/handler.h"
#include "eh/small_file.h"

namespace fopd::eh {

// The epoch handler of a participant without peers: each epoch begins as soon as the participant is
// ready. Numbers of epochs are reserved in blocks in a file, so that they also increase over
// restarts. The first epoch waits until the first block is reserved. If the file fails, the handler
// tries again.
class LocalEpochHandler final : public EpochHandler, SmallFileUser, core::Timer {
public:
    // All members outlive the handler.
    struct Numbers {
        core::Reactor& reactor;
        core::EventSink& events;
        SmallFile& file;  // Keeps the last number that may have been used.
    };
    // How many numbers are reserved at a time. The next block is reserved when less than a quarter
    // is left.
    static constexpr EpochNumber kBlock = 1 << 20;

    // Without `numbers` epochs are numbered from 1, and no epoch waits for a number to be reserved.
    explicit LocalEpochHandler(EpochRules rules = {}, std::optional<Numbers> numbers = {});
    LocalEpochHandler(const LocalEpochHandler&) = delete;
    LocalEpochHandler& operator=(const LocalEpochHandler&) = delete;

    const EpochRules& rules() const override { return rules_; }
    Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data,
                            Participant& participant) override;
    void last_epoch(EpochNumber current) override;
    // Ends a pending call. From now on it refuses calls, and does not use the file.
    void stop();

    // The newest epoch.
    EpochNumber epoch() const { return epoch_; }

private:
    void on_file_read(Result<std::vector<std::byte>> bytes) override;
    void on_file_replaced(Replaced replaced) override;
    static void on_time(core::Timer& timer);
    bool has_number() const { return !numbers_ || epoch_ < reserved_; }
    void begin_epochs();
    void reserve();
    void report(const Error& error);
    void fail(const Error& error);
    void arm_for(Instant at);

    const EpochRules rules_;
    const std::optional<Numbers> numbers_;
    EpochNumber epoch_ = kFirstEpoch;
    bool is_member_ = false;        // The participant takes part in epoch_.
    Participant* ready_ = nullptr;  // Set while it waits for the next epoch.
    bool calling_ = false;          // on_epoch() is running.
    std::size_t size_bytes_ = 0;    // The size of the data for the next epoch.
    std::array<std::byte, kEpochBytesMax> data_{};

    EpochNumber reserved_ = 0;  // Numbers up to this one may be used.
    // The file may contain this number: its write is in flight, or has failed.
    EpochNumber written_ = 0;
    bool is_read_ = false;  // The file has been read.
    bool file_busy_ = false;
    bool file_failed_ = false;  // The last failure was reported, and no call has succeeded since.
    bool stopped_ = false;
    Instant called_at_{};
    Instant armed_at_{};
    Instant file_not_before_{};  // No try before this time, after a failure.
};

}  // namespace fopd::eh
