#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "core/intrusive_list.h"
#include "lrs/request.h"

namespace fopd::lrs {

// The waiting control requests of a locality. Principals take turns of one request; those of a
// principal stay in the order of arrival. So a flood of one principal delays no other one's by more
// than a request, and takes no more than half of the turns from data.
class ControlTurns {
public:
    // After this many control requests in a row, a data request has its turn in any case.
    static constexpr std::uint32_t kRunMax = 32;

    void push(Request& request);
    // Null: none waits.
    Request* pop();
    void remove(Request& request);
    // The one that has waited longest; null: none waits.
    Request* oldest();

    // Whether the next request goes before data requests: its principal has had no turn since the
    // last data request, and there were fewer than kRunMax.
    bool goes_first() const { return !next_.empty() && run_ < kRunMax; }
    // A data request had its turn.
    void begin_run();

private:
    // The requests of a principal. Exists while it has some, or is in had_turn_.
    struct Line : core::ListNode {
        core::IntrusiveList<PolicyPlace> waiting;
        bool had_turn = false;
        const std::string* name = nullptr;  // Its key in lines_.
    };

    void forget(const Line& line) { lines_.erase(lines_.find(*line.name)); }

    core::IntrusiveList<ArrivalPlace> arrived_;
    std::map<std::string, Line, std::less<>> lines_;
    core::IntrusiveList<Line> next_;      // Those with requests and without a turn in this run.
    core::IntrusiveList<Line> had_turn_;  // Those that have had one.
    std::uint32_t run_ = 0;               // Requests since the last data request.
};

}  // namespace fopd::lrs
