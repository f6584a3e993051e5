#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/events.h"
#include "core/reactor.h"
#include "core/timer_heap.h"
#include "fop/fop_type.h"
#include "fop/message.h"
#include "reqh/fop_record.h"
#include "store/object.h"

namespace fopd::fabric {
struct Caller;
}

namespace fopd::reqh {

// A locality's part of the audit trail: an event for each fop that was denied, for each fop that
// administers the node and, if wanted, for each fop that has changed an object.
//
// A client that is denied all the time must not fill the trail: of a principal's denials, only
// kDenialsMax are written in each interval, and the number of the others follows as one event.
// Fops that administer the node are no exception.
class FopAudit final : core::Timer {
public:
    static constexpr std::uint32_t kDenialsMax = 10;
    static constexpr Duration kInterval{1s};

    FopAudit(core::Reactor& reactor, core::EventSink& events);
    // Writes the number of denials that were left out.
    ~FopAudit();

    // Whether changes of objects are written, too.
    void set_changes(bool are_wanted) { changes_are_wanted_ = are_wanted; }

    // A fop that has ended; borrowed for the call.
    struct Ended {
        FopId id;
        const fop::FopType& type;
        const fabric::Caller& caller;
        std::string_view pool;        // Empty: none.
        std::string_view asked_pool;  // In the request, though there may be no such pool.
        const fop::Request& request;
        const store::Object* known;  // The object as it was before; null: it was not loaded.
        const fop::Reply& reply;
    };
    // REQUIRES: the request was verified.
    void on_end(const Ended& fop) {
        const fop::Status status = fop.reply.status;
        if (status == fop::Status::kDenied) return denied(fop);
        if (fop.type.rights.cover(fop::kAdmin)) return administered(fop);
        const bool may_have_changed =
            status == fop::Status::kDone || status == fop::Status::kOutcomeUnknown;
        const bool is_change = fop.type.repeat == fop::Repeat::kRecorded;
        if (changes_are_wanted_ && is_change && may_have_changed) changed(fop);
    }

private:
    void denied(const Ended& fop);
    void administered(const Ended& fop);
    void changed(const Ended& fop);
    // Begins the next interval.
    void begin_interval();

    core::Reactor& reactor_;
    core::EventSink& events_;
    bool changes_are_wanted_ = false;
    // Denials in this interval, by fop::share_name().
    std::map<std::string, std::uint64_t, std::less<>> denials_;
};

}  // namespace fopd::reqh
