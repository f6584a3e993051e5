#include "eh/peers/joiners.h"

#include <utility>

#include "core/ensure.h"

namespace fopd::eh::peers {

const Joiner* Joiners::find(const std::string& name) const {
    const auto found = joiners_.find(name);
    return found == joiners_.end() ? nullptr : &found->second;
}

Instant Joiners::first(bool replaces) const {
    const std::multiset<Instant>& times = times_[replaces ? 1 : 0];
    return times.empty() ? kNever : *times.begin();
}

void Joiners::note(const Joiner& joiner) {
    times_[joiner.replaces ? 1 : 0].insert(joiner.not_before);
}

void Joiners::forget(const Joiner& joiner) {
    std::multiset<Instant>& times = times_[joiner.replaces ? 1 : 0];
    times.erase(times.find(joiner.not_before));
}

void Joiners::put(const std::string& name, Joiner joiner) {
    erase(name);
    note(joiner);
    joiners_.emplace(name, std::move(joiner));
}

void Joiners::may_enter_now(const std::string& name) {
    const auto found = joiners_.find(name);
    ENSURE(found != joiners_.end());
    forget(found->second);
    found->second.not_before = Instant{};
    note(found->second);
}

void Joiners::erase(const std::string& name) {
    const auto found = joiners_.find(name);
    if (found == joiners_.end()) return;
    forget(found->second);
    joiners_.erase(found);
}

void Joiners::follow(const CommittedView& view) {
    for (auto& times : times_) times.clear();
    for (auto each = joiners_.begin(); each != joiners_.end();) {
        const auto known = view.find(each->first);
        if (known && view.at(*known).incarnation >= each->second.incarnation) {
            each = joiners_.erase(each);
            continue;
        }
        each->second.replaces = known.has_value();
        note(each->second);
        ++each;
    }
}

}  // namespace fopd::eh::peers
