#include "reqh/fop_record.h"

#include <functional>

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

// The new fop counts as one of its sender's.
std::size_t SlowFops::index_for(const std::string& share) {
    if (entries_.size() < kCountMax) {
        entries_.emplace_back();
        return entries_.size() - 1;
    }
    const auto count_of = [&share](const auto& known) {
        return known.second.size() + (known.first == share ? 1 : 0);
    };
    const auto own = indices_.find(share);
    auto most = own == indices_.end() ? indices_.begin() : own;
    for (auto each = indices_.begin(); each != indices_.end(); ++each) {
        if (count_of(*each) > count_of(*most)) most = each;
    }
    const std::size_t oldest = most->second.front();
    most->second.pop_front();
    if (most->second.empty()) indices_.erase(most);
    return oldest;
}

void SlowFops::add(const FopRecord& record, const std::string& share) {
    const std::size_t index = index_for(share);
    entries_[index].number = ++last_number_;
    entries_[index].record = record;
    indices_[share].push_back(index);
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
