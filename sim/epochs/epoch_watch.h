#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "eh/peers/member.h"

namespace fopd::sim {

// The laws of epochs that show in committed views and in answers alone, so for whole daemons too.
// Members are known by name, over all their lives. A value.
class EpochWatch {
public:
    struct Epoch {
        eh::ViewNumber view = 0;
        std::vector<std::byte> data{};
        bool operator==(const Epoch&) const = default;
    };

    // Each committed view, before an answer has its number.
    void on_commit(const eh::ViewHandle& view);
    // The numbers of views begin again, those of epochs do not.
    void on_views_lost() { views_.clear(); }
    // A call of this member was answered with an epoch.
    void on_epoch(const std::string& member, const eh::peers::Answer& answer);

    // A law, and what is to be said if it does not hold.
    void require(bool holds, std::string_view law, const std::string& about);
    // The first law that was broken, and how; empty: none.
    const std::string& broken() const { return broken_; }
    // View n is at n - 1.
    const std::vector<eh::ViewHandle>& views() const { return views_; }
    // Null: no such view was committed.
    const eh::CommittedView* view(eh::ViewNumber number) const;
    const std::map<eh::EpochNumber, Epoch>& epochs() const { return epochs_; }
    // The newest epoch of any member, and of this one; kFirstEpoch: none.
    eh::EpochNumber newest() const;
    eh::EpochNumber newest(std::string_view member) const;

private:
    void check_block(const eh::View& old, const eh::View& next);
    void note_removed(const eh::View& old, const eh::CommittedView& next);

    std::vector<eh::ViewHandle> views_;
    // Incarnations that were in a view, and are in none any more.
    std::map<std::string, std::set<eh::Incarnation>, std::less<>> removed_;
    std::map<eh::EpochNumber, Epoch> epochs_;
    std::map<std::string, eh::EpochNumber, std::less<>> newest_;
    std::string broken_;
};

}  // namespace fopd::sim
