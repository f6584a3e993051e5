#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <string>

#include "core/time.h"
#include "eh/handler.h"
#include "eh/view.h"

namespace fopd::eh::peers {

struct Joiner {
    Incarnation incarnation = 0;
    std::string address{};
    // The joiner is not admitted before this time: until then, a member with the same name may
    // answer that it is alive. Zero: there is no such member, or its process is known to have
    // ended.
    Instant not_before{};
    EpochNumber newest = 0;  // The newest epoch in which the joiner took part.
    // The view has an earlier process of this name, for which other members wait.
    bool replaces = false;
};

// The requests to join that a root has not decided yet, by name. Each message asks when the next
// one may be admitted, so that takes no longer with many of them: whoever has the peer key may
// invent names. A value.
class Joiners {
public:
    bool empty() const { return joiners_.empty(); }
    std::size_t size() const { return joiners_.size(); }
    const std::map<std::string, Joiner>& all() const { return joiners_; }
    // Null: there is none.
    const Joiner* find(const std::string& name) const;
    // The first time at which one of these may be admitted; kNever: there is none.
    Instant first_replacing() const { return first(true); }
    Instant first_new() const { return first(false); }

    // In place of an earlier request of this name.
    void put(const std::string& name, Joiner joiner);
    // The process that has the name in the view has ended. REQUIRES: there is such a joiner.
    void may_enter_now(const std::string& name);
    void erase(const std::string& name);
    // The requests are about this view now: those that it has fulfilled are gone.
    void follow(const CommittedView& view);

private:
    Instant first(bool replaces) const;
    void note(const Joiner& joiner);
    void forget(const Joiner& joiner);

    std::map<std::string, Joiner> joiners_;
    std::array<std::multiset<Instant>, 2> times_;  // not_before, by `replaces`.
};

}  // namespace fopd::eh::peers
