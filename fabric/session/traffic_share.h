#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/intrusive_list.h"
#include "fabric/session/credits.h"
#include "fabric/session/share_room.h"

namespace fopd::fabric {

class InBufferQueue;
class InControlQueue;
class InTransferQueue;
struct TrafficShare;

// The sessions of one principal that wait for a send buffer or to start a transfer, in order of
// arrival. `Place` is the list node of a session.
template <typename Place>
struct ShareLine final : core::ListNode {
    explicit ShareLine(const TrafficShare& owner) : share(owner) {}

    const TrafficShare& share;
    core::IntrusiveList<Place> waiting;
};

// The send buffers, transfers and credits that the sessions of one principal use. Each of the three
// is limited by share_room(). Each principal may always have one transfer.
struct TrafficShare {
    // How many more buffers the principal may take while `left` are free.
    std::size_t room(std::size_t left) const { return share_room(held, left); }
    // How many more transfers the principal may start while `left` are free.
    std::size_t transfer_room(std::size_t left) const {
        return std::max<std::size_t>(share_room(transfers_in_flight, left),
                                     transfers_in_flight == 0);
    }
    bool waits() const { return for_fops.linked() || for_control.linked(); }

    std::uint32_t sessions = 0;
    std::size_t held = 0;  // Includes buffers that are set aside for its sessions.
    std::size_t transfers_in_flight = 0;
    CreditPool::Share message_credits;
    CreditPool::Share fop_credits;
    ShareLine<InBufferQueue> for_fops{*this};
    ShareLine<InControlQueue> for_control{*this};
    ShareLine<InTransferQueue> for_transfers{*this};
};

// The lines of all principals whose sessions wait. The principals take turns.
template <typename Place>
class ShareTurns {
public:
    void wait(ShareLine<Place>& line, Place& place) {
        if (!place.linked()) line.waiting.push_back(place);
        if (!line.linked()) lines_.push_back(line);
    }
    // Takes out the first session of the next principal for which `may_take(share)` holds.
    template <typename MayTake>
    Place* next(MayTake may_take) {
        const ShareLine<Place>* first = nullptr;
        while (!lines_.empty() && &lines_.front() != first) {
            ShareLine<Place>& line = *lines_.pop_front();
            if (line.waiting.empty()) continue;  // Its sessions have ended.
            lines_.push_back(line);
            if (may_take(line.share)) return line.waiting.pop_front();
            if (first == nullptr) first = &line;
        }
        return nullptr;
    }
    bool anybody() {
        lines_.for_each([](ShareLine<Place>& line) {
            if (line.waiting.empty()) line.unlink();
        });
        return !lines_.empty();
    }

private:
    core::IntrusiveList<ShareLine<Place>> lines_;
};

}  // namespace fopd::fabric
