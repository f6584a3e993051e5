#include "objects/writes_in_flight.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"

namespace fopd::objects {

WritesInFlight::Write::Counted WritesInFlight::Write::begin(WritesInFlight& all, const Of& of,
                                                            BlockSet wanted, BlockSet holes) {
    ENSURE(!is_counted());
    // The change decides about holes that appear later.
    if (holes.empty()) return {};
    if (const auto others = all.of_objects_.find(of.fid); others != all.of_objects_.end()) {
        for (const Write* const each : others->second) {
            if (each->of_.owner != of.owner) continue;
            static_cast<void>(holes.take(each->own_));
            // If that one's change does not begin, it hands them over.
            static_cast<void>(holes.take(each->filled_));
        }
    }
    const std::uint64_t blocks = holes.count();
    const auto verdict = all.use_.take_in_flight(*of.owner, blocks);
    if (verdict != DiskUse::Verdict::kTaken) return {.verdict = verdict, .blocks = blocks};
    wanted_ = std::move(wanted);
    own_ = std::move(holes);
    all.join(*this, of);
    return {.blocks = blocks};
}

WritesInFlight::Write::Counted WritesInFlight::Write::begin_append(WritesInFlight& all,
                                                                   const Of& of,
                                                                   const store::ReplyKey& request,
                                                                   std::uint64_t blocks) {
    ENSURE(!is_counted());
    const auto others = all.of_objects_.find(of.fid);
    const bool is_known = others != all.of_objects_.end() &&
                          std::ranges::any_of(others->second, [&](const Write* each) {
                              return each->of_.owner == of.owner && each->append_ == request;
                          });
    const std::uint64_t counted = is_known ? 0 : blocks;
    const auto verdict = all.use_.take_in_flight(*of.owner, counted);
    if (verdict != DiskUse::Verdict::kTaken) return {.verdict = verdict, .blocks = counted};
    append_ = request;
    appended_blocks_ = counted;
    all.join(*this, of);
    return {.blocks = counted};
}

void WritesInFlight::join(Write& write, const Write::Of& of) {
    write.all_ = this;
    write.of_ = of;
    of_objects_[of.fid].push_back(&write);
}

void WritesInFlight::move_counts(Write& from, Write& to, const BlockSet& blocks) {
    to.own_.add(from.own_.take(blocks));
    if (from.is_same_append_as(to)) {
        to.appended_blocks_ += std::exchange(from.appended_blocks_, 0);
    }
}

void WritesInFlight::take_over(Write& write, const BlockSet& holes) {
    for (Write* const each : of_objects_.at(write.of_.fid)) {
        if (each == &write || each->of_.owner != write.of_.owner) continue;
        move_counts(*each, write, holes);
    }
}

std::uint64_t WritesInFlight::hand_over(Write& write) {
    if (const auto others = of_objects_.find(write.of_.fid); others != of_objects_.end()) {
        for (Write* const each : others->second) {
            if (each->of_.owner == write.of_.owner) move_counts(write, *each, each->wanted_);
        }
    }
    return write.own_.count() + write.appended_blocks_;
}

std::uint64_t WritesInFlight::Write::fill(const DiskUse::Owner& owner, const BlockSet& holes) {
    if (!is_counted()) return 0;
    if (of_.owner != &owner) {
        end();
        return 0;
    }
    all_->take_over(*this, holes);
    const BlockSet filled = own_.take(holes);
    const std::uint64_t known = filled.count();
    filled_.add(filled);
    const std::uint64_t appended = std::min(appended_blocks_, holes.count() - known);
    appended_blocks_ -= appended;
    filled_by_append_ += appended;
    all_->use_.settle_in_flight(*of_.owner, known + appended);
    return known + appended;
}

std::uint64_t WritesInFlight::Write::unfill() {
    if (!is_counted()) return 0;
    const std::uint64_t blocks = filled_.count() + filled_by_append_;
    own_.add(filled_);
    filled_ = BlockSet();
    appended_blocks_ += std::exchange(filled_by_append_, 0);
    all_->use_.unsettle_in_flight(*of_.owner, blocks);
    return blocks;
}

void WritesInFlight::Write::done() {
    filled_ = BlockSet();
    filled_by_append_ = 0;
    end();
}

void WritesInFlight::Write::end() {
    if (!is_counted()) return;
    ENSURE(filled_.empty());
    ENSURE(filled_by_append_ == 0);
    WritesInFlight& all = *std::exchange(all_, nullptr);
    const auto found = all.of_objects_.find(of_.fid);
    ENSURE(found != all.of_objects_.end());
    std::erase(found->second, this);
    if (found->second.empty()) all.of_objects_.erase(found);
    all.use_.end_in_flight(*of_.owner, all.hand_over(*this));
    wanted_ = BlockSet();
    own_ = BlockSet();
    append_.reset();
    appended_blocks_ = 0;
}

}  // namespace fopd::objects
