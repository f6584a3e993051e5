#pragma once

#include <cstddef>
#include <cstdint>

#include "core/intrusive_list.h"

namespace fopd::fabric {

class InBufferQueue;
class InControlQueue;
struct SendShare;

// The sessions of one principal that wait for a send buffer, in order of arrival. `Place` is the
// list node of a session.
template <typename Place>
struct SendLine final : core::ListNode {
    explicit SendLine(const SendShare& owner) : share(owner) {}

    const SendShare& share;
    core::IntrusiveList<Place> waiting;
};

// The send buffers that one principal's sessions use. A principal may use up to four times as many
// as are left: one that is alone gets most of them, and a later one always finds some.
struct SendShare {
    // How many more the principal may take while `left` are free.
    std::size_t room(std::size_t left) const {
        const std::size_t most = kTimesTheRest * left;
        // Each buffer taken reduces what is left.
        return held >= most ? 0 : (most - held + kTimesTheRest) / (kTimesTheRest + 1);
    }
    bool waits() const { return for_fops.linked() || for_control.linked(); }

    static constexpr std::size_t kTimesTheRest = 4;

    std::uint32_t sessions = 0;
    std::size_t held = 0;  // Includes buffers that are set aside for its sessions.
    SendLine<InBufferQueue> for_fops{*this};
    SendLine<InControlQueue> for_control{*this};
};

// The lines of all principals that have sessions waiting; they take turns.
template <typename Place>
class SendTurns {
public:
    void wait(SendLine<Place>& line, Place& place) {
        if (!place.linked()) line.waiting.push_back(place);
        if (!line.linked()) lines_.push_back(line);
    }
    // Takes out the first session of the next principal that may have one of the buffers left.
    Place* next(std::size_t left) {
        if (left == 0) return nullptr;
        const SendLine<Place>* first = nullptr;
        while (!lines_.empty() && &lines_.front() != first) {
            SendLine<Place>& line = *lines_.pop_front();
            if (line.waiting.empty()) continue;  // Its sessions have ended.
            lines_.push_back(line);
            if (line.share.room(left) > 0) return line.waiting.pop_front();
            if (first == nullptr) first = &line;
        }
        return nullptr;
    }
    bool anybody() {
        lines_.for_each([](SendLine<Place>& line) {
            if (line.waiting.empty()) line.unlink();
        });
        return !lines_.empty();
    }

private:
    core::IntrusiveList<SendLine<Place>> lines_;
};

}  // namespace fopd::fabric
