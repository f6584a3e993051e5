#include "reqh/fop_record.h"

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

}  // namespace fopd::reqh
