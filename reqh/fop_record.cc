#include "reqh/fop_record.h"

#include <functional>
#include <map>

#include "core/ensure.h"
#include "core/stable_sort.h"
#include "core/whole_number.h"
#include "fabric/session/session.h"

namespace fopd::reqh {

namespace {

constexpr char kSeparator = '-';

}  // namespace

std::string format_fop_id(FopId id) {
    return fabric::format_session_id(id.session) + kSeparator + std::to_string(id.request);
}

std::optional<FopId> parse_fop_id(std::string_view text) {
    const std::size_t separator = text.find(kSeparator);
    if (separator == std::string_view::npos) return std::nullopt;
    const auto session = core::whole_number(text.substr(0, separator), 16);
    const auto request = core::whole_number(text.substr(separator + 1));
    if (!session || !request) return std::nullopt;
    return FopId{.session = *session, .request = *request};
}

void FopList::add(FopList other, std::size_t queued_max) {
    left_out += other.left_out;
    fops.insert(fops.end(), other.fops.begin(), other.fops.end());
    core::stable_sort(fops, std::less{}, &FopRecord::arrived_at);
    std::size_t queued = 0;
    left_out += std::erase_if(fops, [&](const FopRecord& each) {
        return each.state == FopRecord::State::kQueued && ++queued > queued_max;
    });
}

FopRecord& FopHistory::add() {
    if (records_.size() < kCountMax) return records_.emplace_back();
    FopRecord& oldest = records_[next_];
    next_ = (next_ + 1) % kCountMax;
    return oldest;
}

const FopRecord* FopHistory::find(FopId id) const {
    for (std::size_t back = 1; back <= records_.size(); ++back) {
        const FopRecord& record = records_[(next_ + records_.size() - back) % records_.size()];
        if (record.id == id) return &record;
    }
    return nullptr;
}

// -- slow fops --

SlowFops::Entry& SlowFops::place_for(std::string_view share) {
    if (entries_.size() < kCountMax) return entries_.emplace_back();
    // Ordered, so that a tie has one outcome; the new fop counts as one of its sender's.
    std::map<std::string_view, std::size_t> counts{{share, 1}};
    for (const Entry& each : entries_) ++counts[each.share.view()];
    std::string_view most = share;
    for (const auto& [name, count] : counts) {
        if (count > counts[most]) most = name;
    }
    Entry* oldest = nullptr;
    for (Entry& each : entries_) {
        const bool is_older = oldest == nullptr || each.number < oldest->number;
        if (each.share.view() == most && is_older) oldest = &each;
    }
    ENSURE(oldest != nullptr);
    return *oldest;
}

void SlowFops::add(const FopRecord& record, std::string_view share) {
    const ShortText known(share);
    Entry& place = place_for(known.view());
    place.number = ++last_number_;
    place.share = known;
    place.record = record;
}

const FopRecord* SlowFops::find(FopId id) const {
    const Entry* newest = nullptr;
    for (const Entry& each : entries_) {
        const bool is_newer = newest == nullptr || each.number > newest->number;
        if (each.record.id == id && is_newer) newest = &each;
    }
    return newest == nullptr ? nullptr : &newest->record;
}

std::vector<FopRecord> SlowFops::all() const {
    std::vector<const Entry*> sorted;
    for (const Entry& each : entries_) sorted.push_back(&each);
    std::ranges::sort(sorted, std::less{}, [](const Entry* each) { return each->number; });
    std::vector<FopRecord> records;
    for (const Entry* each : sorted) records.push_back(each->record);
    return records;
}

}  // namespace fopd::reqh
