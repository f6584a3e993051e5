#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/intrusive_list.h"

namespace fopd::fabric {

class HasWork;

// The connections of a machine that have work of one kind, and the order in which they are served.
// The principals of the peers take turns, and so do the connections of a principal: with many
// connections a principal has no more of a turn than with one. Peers that have not authenticated
// are one principal. Pure: the machine serves the connections.
//
// The unit of costs is the time to parse one byte of small frames, about a nanosecond.
class WorkTurns {
public:
    // No service begins in a turn that has cost this much, about a millisecond. The last one may
    // cost some more.
    static constexpr std::size_t kTurnCostMax = 1U << 20;
    // No early service begins in a turn that has cost this much. One costs about a quarter of a
    // turn at most, so a quarter is left to all that wait.
    static constexpr std::size_t kEarlyCostMax = kTurnCostMax / 2;
    // What a principal may cost before the next one that waits is served. What it has cost in
    // excess while others waited counts against its next turns.
    static constexpr std::size_t kQuantum = 256U << 10;

    WorkTurns() = default;
    // REQUIRES: all connections are gone.
    ~WorkTurns() = default;
    WorkTurns(const WorkTurns&) = delete;
    WorkTurns& operator=(const WorkTurns&) = delete;

    // A turn of the machine begins.
    void begin_turn();
    // The next connection to serve in this turn; it has no work until it asks again. Null: the turn
    // is over, because it costs enough, or as many were served as had work when it began.
    HasWork* next();
    // Begins a service before begin_turn(). Its cost is part of the turn that follows. False: the
    // connection has to wait for that turn, because its principal has a debt of a quantum, or
    // because the turn has cost too much. Otherwise end_service() follows.
    bool serve_early(HasWork& place);
    // Serving the connection has cost so much, in addition.
    void add_cost(std::size_t cost);
    // Whether the connection that is being served may do more.
    bool may_go_on(const HasWork& served) const;
    // The connection was served, and may be gone.
    void end_service();
    // Whether no connection has work.
    bool empty() const { return waiting_count_ == 0; }

private:
    friend HasWork;
    // The connections of one principal. Linked while some have work.
    struct Line final : core::ListNode {
        std::size_t connections = 0;
        core::IntrusiveList<HasWork> waiting;  // Those with work.
        // What it has cost while others waited, less a quantum for each turn that it has let pass.
        std::size_t debt = 0;
    };
    using Lines = std::map<std::string, Line>;

    void begin_service(HasWork& place);
    void put_last(Line& line);

    Line strangers_;
    Lines of_principals_;
    core::IntrusiveList<Line> lines_;  // The first is served next.
    std::size_t waiting_count_ = 0;    // In all lines.
    std::size_t left_ = 0;             // How many more connections this turn serves.
    std::size_t cost_ = 0;             // Of this turn.
    Line* served_ = nullptr;           // Null: none is being served, or its connections are gone.
    std::size_t served_cost_ = 0;
    bool is_served_early_ = false;
};

// The place of one connection among those with work.
class HasWork : public core::ListNode {
public:
    explicit HasWork(WorkTurns& turns) : turns_(turns), line_(&turns.strangers_) {}
    ~HasWork();

    // The peer has proved that it is this principal. Once.
    void belongs_to(const std::string& principal);
    // The connection has work. REQUIRES: not linked.
    void join();
    // The connection has no work any more. Idempotent. Used instead of unlink(), which would leave
    // the connection counted.
    void withdraw();

private:
    friend WorkTurns;
    WorkTurns& turns_;
    WorkTurns::Line* line_;
    WorkTurns::Lines::iterator principal_ = turns_.of_principals_.end();  // end(): a stranger.
};

}  // namespace fopd::fabric
