#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/reactor.h"
#include "core/round_trip.h"
#include "core/task.h"
#include "core/timer_heap.h"
#include "core/wait_queue.h"
#include "eh/handler.h"

namespace fopd::eh {

// Lets the localities of a node take part in epochs as one participant. When all localities are
// ready for an epoch, the fold combines their data and asks the node's handler for the epoch. Lives
// on one reactor. Each locality has an End of it, which it outlives.
class LocalityFold final : Participant {
public:
    class End;

    // `node` is the handler of the node, on the same reactor, and outlives this.
    LocalityFold(core::Reactor& reactor, EpochHandler& node);
    LocalityFold(const LocalityFold&) = delete;
    LocalityFold& operator=(const LocalityFold&) = delete;

private:
    // A locality that takes part.
    struct Seat {
        End* end = nullptr;
        enum class State : std::uint8_t {
            kInEpoch,  // It is in the present epoch, and not ready for the next one.
            kReady,    // It is ready, and waits until the others are.
            kAsked,    // The node has contributed its data, and waits for the epoch.
            kLeftOut,  // It was not ready in time. The others do not wait for it.
        };
        State state = State::kReady;
    };
    class Timeout final : public core::Timer {
    public:
        explicit Timeout(LocalityFold& fold) : Timer(&fire), fold_(fold) {}

    private:
        static void fire(core::Timer& timer) { static_cast<Timeout&>(timer).fold_.begin(); }
        LocalityFold& fold_;
    };

    bool has(Seat::State state) const;
    void join(End& end);
    void leave(End& end);
    void look();
    void begin();
    std::size_t combine();
    void on_epoch(Result<EpochNumber> epoch, std::span<const std::byte> data) override;

    core::Reactor& reactor_;
    EpochHandler& node_;
    const EpochRules rules_;
    Timeout timeout_;
    EpochNumber epoch_ = kFirstEpoch;  // The node's epoch.
    Instant begun_at_{};               // When that epoch began.
    bool is_asking_ = false;           // The node waits for the next epoch.
    std::vector<Seat> seats_;
    alignas(8) std::array<std::byte, kEpochBytesMax> data_{};
};

// The epoch handler of a locality, on its reactor.
class LocalityFold::End final : public EpochHandler {
public:
    End(core::Reactor& reactor, LocalityFold& fold);
    End(const End&) = delete;
    End& operator=(const End&) = delete;

    const EpochRules& rules() const override { return fold_.rules_; }
    Result<void> next_epoch(EpochNumber current, std::span<const std::byte> data,
                            Participant& participant) override;
    void last_epoch(EpochNumber current) override;

    // Waits until the fold does not use this end any more. REQUIRES: the participant has left.
    Task<void> close();

private:
    friend LocalityFold;

    // Carries the data to the fold, stays there until the epoch begins, and brings its data back.
    class Ready final : public core::RoundTrip {
    public:
        Ready(core::Reactor& here, core::Reactor& there, End& end)
            : RoundTrip(here, there), end_(end) {}

        void go() { depart(); }
        // Called on the fold's reactor.
        void answer(Result<EpochNumber> epoch, std::span<const std::byte> data);
        std::span<std::byte> data() { return std::span(data_).first(size_bytes_); }

        Result<EpochNumber> epoch = kFirstEpoch;
        std::uint64_t ask = 0;  // The number of the call of next_epoch() to which it belongs.
        void put(std::span<const std::byte> data);

    private:
        void arrive() override { end_.fold_.join(end_); }
        void come_back() override { end_.on_answer(); }

        End& end_;
        std::size_t size_bytes_ = 0;
        alignas(8) std::array<std::byte, kEpochBytesMax> data_{};
    };
    class Leave final : public core::RoundTrip {
    public:
        Leave(core::Reactor& here, core::Reactor& there, End& end)
            : RoundTrip(here, there), end_(end) {}

        void go() { depart(); }

    private:
        void arrive() override {
            end_.fold_.leave(end_);
            go_back();
        }
        void come_back() override { end_.send(); }

        End& end_;
    };

    bool is_under_way() const { return ready_.under_way() || leave_.under_way(); }
    void send();
    void on_answer();

    LocalityFold& fold_;
    // The participant's epoch; kFirstEpoch: it takes part in none.
    EpochNumber epoch_ = kFirstEpoch;
    Participant* waiting_ = nullptr;  // Set while it waits for the next epoch.
    std::uint64_t asks_ = 0;          // Calls of next_epoch().
    bool has_more_ = false;           // `next_` has to be sent.
    bool is_leaving_ = false;         // The fold has to be told that the participant has left.
    bool is_known_ = false;           // The fold knows of the participant.
    bool calling_ = false;            // on_epoch() is running.
    std::size_t next_bytes_ = 0;
    std::array<std::byte, kEpochBytesMax> next_{};
    Ready ready_;
    Leave leave_;
    core::WaitQueue home_;
};

}  // namespace fopd::eh
