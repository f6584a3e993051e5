#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/random.h"
#include "core/reactor.h"
#include "core/timer_heap.h"
#include "eh/handler.h"

namespace fopd::sim {

// Epochs of participants on one reactor, without members and messages: an epoch begins when all
// participants are ready, after the time that real members would need to agree. Their data are
// combined in random order.
class EpochBarrier {
public:
    struct Options {
        Duration cost{};        // From the last that is ready until the epoch begins.
        Duration raggedness{};  // Each hears of it up to so much later.
        std::uint64_t seed = 1;
    };
    class End;

    EpochBarrier(core::Reactor& reactor, const eh::EpochRules& rules, const Options& options)
        : reactor_(reactor), rules_(rules), options_(options), random_(options.seed) {}
    EpochBarrier(const EpochBarrier&) = delete;
    EpochBarrier& operator=(const EpochBarrier&) = delete;

    // Of one participant; destroyed before the barrier.
    std::unique_ptr<End> make_end();

    eh::EpochNumber epoch() const { return epoch_; }  // The newest one; 0: none yet.
    // The combined data of the newest epoch.
    const std::vector<std::byte>& data() const { return data_; }

private:
    void look();
    std::vector<std::byte> combined();

    core::Reactor& reactor_;
    const eh::EpochRules rules_;
    const Options options_;
    core::Random random_;
    eh::EpochNumber epoch_ = 0;
    std::vector<std::byte> data_;
    std::vector<End*> ends_;
};

// The handler of a participant.
class EpochBarrier::End final : public eh::EpochHandler, core::Timer {
public:
    explicit End(EpochBarrier& barrier) : Timer(&on_time), barrier_(barrier) {}
    ~End() override;

    const eh::EpochRules& rules() const override { return barrier_.rules_; }
    Result<void> next_epoch(eh::EpochNumber current, std::span<const std::byte> data,
                            eh::Participant& participant) override;
    void last_epoch(eh::EpochNumber current) override;

    // While it is cut off it hears only errors, each after the timeout, and the others go on
    // without it.
    void cut_off(bool is_cut_off);

private:
    friend EpochBarrier;
    static void on_time(core::Timer& timer) { static_cast<End&>(timer).answer(); }
    void answer();
    // Whether the others wait for it.
    bool takes_part() const { return is_member_ && !is_cut_off_; }

    EpochBarrier& barrier_;
    eh::EpochNumber epoch_ = eh::kFirstEpoch;  // The participant's epoch.
    eh::Participant* waiting_ = nullptr;
    std::vector<std::byte> contributed_;
    Result<eh::EpochNumber> next_ = eh::kFirstEpoch;  // The answer in flight, if there is one.
    std::vector<std::byte> data_;
    bool is_member_ = false;
    bool is_cut_off_ = false;
};

}  // namespace fopd::sim
