#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "core/events.h"
#include "core/virtual_world.h"

namespace fopd::sim {

// Checks the promises about the calls of all clients in a simulated world: each call ends in time,
// and a call that must not run twice runs once. Keeps the first broken promise as a sentence.
class CallBook {
public:
    explicit CallBook(core::VirtualWorld& world) : world_(world) {}
    CallBook(const CallBook&) = delete;
    CallBook& operator=(const CallBook&) = delete;

    // A call in flight. If it is destroyed without end(), the client's process was killed.
    class Entry {
    public:
        // The call must have ended by `due`.
        Entry(CallBook& book, std::string what, Instant due);
        ~Entry();
        Entry(const Entry&) = delete;
        Entry& operator=(const Entry&) = delete;
        const std::string& what() const { return what_; }
        // `outcome` is a word or two.
        void end(std::string_view outcome);

    private:
        friend CallBook;
        CallBook& book_;
        const std::string what_;
        const std::uint64_t number_;
        bool ended_ = false;
    };

    // Records that the session belongs to the library client with the unique number `line`.
    void learn_session(std::uint64_t session, std::uint64_t line) { lines_[session] = line; }
    // Records an event by which a node, started for the `life`th time, reports a finished fop.
    void see_fop(std::uint32_t node, std::uint64_t life, std::span<const core::Field> fields);
    // Looks for calls that should have ended by now.
    void look();

    void break_promise(std::string sentence);
    const std::string& broken_promise() const { return broken_promise_; }
    std::size_t under_way() const { return due_.size(); }
    std::uint64_t ended() const { return ended_; }
    std::uint64_t count(std::string_view outcome) const;
    // The number of executions of calls that must not run twice.
    std::uint64_t executions() const { return runs_.size(); }
    // A readable summary of how calls ended, and how often.
    std::string summary() const;

private:
    // The node, its life, the line, and the number of the request on that line.
    using Run = std::tuple<std::uint32_t, std::uint64_t, std::uint64_t, std::uint64_t>;

    core::VirtualWorld& world_;
    std::map<std::pair<Instant, std::uint64_t>, const Entry*> due_;
    std::map<std::uint64_t, Instant> due_of_;
    std::uint64_t begun_ = 0;
    std::uint64_t ended_ = 0;
    std::map<std::string, std::uint64_t, std::less<>> outcomes_;
    std::map<std::uint64_t, std::uint64_t> lines_;  // By session.
    std::set<Run> runs_;
    std::string broken_promise_;
};

}  // namespace fopd::sim
