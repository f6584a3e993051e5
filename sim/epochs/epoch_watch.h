#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "eh/peers/member.h"

namespace fopd::sim {

// Checks the laws of epochs for which committed views and answered calls are enough. So it can
// watch whole daemons, too, which show nothing else. A member is identified by its name in all its
// lives. A value: it can be copied.
class EpochWatch {
public:
    struct Epoch {
        eh::ViewNumber view = 0;
        std::vector<std::byte> data{};
        bool operator==(const Epoch&) const = default;
    };

    // A view was committed. Called before a call is answered with the number of this view.
    void on_commit(const eh::ViewHandle& view);
    // The store has lost its view: views are numbered from 1 again, and epochs go on with higher
    // numbers.
    void on_views_lost() { views_.clear(); }
    // A call of this member was answered with an epoch.
    void on_epoch(const std::string& member, const eh::peers::Answer& answer);

    // Notes a broken law unless `holds` is true; `about` says what was seen.
    void require(bool holds, std::string_view law, const std::string& about);
    // The first law that was broken, and how; empty: none.
    const std::string& broken() const { return broken_; }
    // The committed views; view n has index n - 1.
    const std::vector<eh::ViewHandle>& views() const { return views_; }
    // Null: no such view was committed.
    const eh::CommittedView* view(eh::ViewNumber number) const;
    const std::map<eh::EpochNumber, Epoch>& epochs() const { return epochs_; }
    // The newest epoch of all members, or of one; kFirstEpoch: there was none.
    eh::EpochNumber newest() const;
    eh::EpochNumber newest(std::string_view member) const;

private:
    void check_block(const eh::View& old, const eh::View& next);
    void note_removed(const eh::View& old, const eh::CommittedView& next);

    std::vector<eh::ViewHandle> views_;
    // By member: the incarnations that were in a view and have left it.
    std::map<std::string, std::set<eh::Incarnation>, std::less<>> removed_;
    std::map<eh::EpochNumber, Epoch> epochs_;
    std::map<std::string, eh::EpochNumber, std::less<>> newest_;
    std::string broken_;
};

}  // namespace fopd::sim
