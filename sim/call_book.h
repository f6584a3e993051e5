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

// What a world's clients were promised about their calls, and whether it was kept: each ends, and
// in time; what must not run twice does not. The first broken promise is kept as a sentence.
class CallBook {
public:
    explicit CallBook(core::VirtualWorld& world) : world_(world) {}
    CallBook(const CallBook&) = delete;
    CallBook& operator=(const CallBook&) = delete;

    // A call under way. Destroyed without an end(), it went with its client's process.
    class Entry {
    public:
        // It must have ended by `due`.
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

    // The session belongs to this client of the library: `line` is another one for each.
    void learn_session(std::uint64_t session, std::uint64_t line) { lines_[session] = line; }
    // A node in its `life`th life has finished a fop, and says so in an event.
    void see_fop(std::uint32_t node, std::uint64_t life, std::span<const core::Field> fields);
    // Looks for calls that should have ended by now.
    void look();

    void break_promise(std::string sentence);
    const std::string& broken_promise() const { return broken_promise_; }
    std::size_t under_way() const { return due_.size(); }
    std::uint64_t ended() const { return ended_; }
    std::uint64_t count(std::string_view outcome) const;
    // Executions of what must not run twice.
    std::uint64_t executions() const { return runs_.size(); }
    // How calls ended, and how often, for people.
    std::string summary() const;

private:
    // Node, its life, the line, and the request's number there.
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
