#include "daemon/class_ledger.h"

#include <algorithm>
#include <array>

namespace fopd::daemon {

namespace {

// One that was not held back for so long begins to be when it is again.
constexpr Duration kQuietAfter = 10s;
// Classes that may be known to be in the log; while there are more, others are not.
constexpr std::size_t kToldMax = 1024;

}  // namespace

void ClassLedger::take(std::size_t locality, std::span<const lrs::ClassNews> news, Instant now) {
    {
        const std::lock_guard lock(mutex_);
        for (auto& each : named_) each.second.queued.erase(locality);
        others_.queued.erase(locality);
        for (const lrs::ClassNews& each : news) {
            Entry& entry = entry_of(each.name, now);
            entry.totals.add(each.added);
            entry.queued[locality] += each.queued;
            entry.heard_at = now;
        }
    }
    std::erase_if(told_, [now](const auto& each) { return now - each.second.last > kQuietAfter; });
    for (const lrs::ClassNews& each : news) {
        if (each.added.throttled > Duration::zero()) tell(each, now);
    }
}

ClassLedger::Entry& ClassLedger::entry_of(const std::string& name, Instant now) {
    const auto known = named_.find(name);
    if (known != named_.end()) return known->second;
    if (name == lrs::kOtherClasses) return others_;
    if (named_.size() < kNamedMax) return named_[name];
    const auto quietest =
        std::ranges::min_element(named_, {}, [](const auto& each) { return each.second.heard_at; });
    if (now - quietest->second.heard_at < kForgottenAfter) return others_;
    others_.totals.add(quietest->second.totals);
    named_.erase(quietest);
    return named_[name];
}

void ClassLedger::tell(const lrs::ClassNews& news, Instant now) {
    const auto known = told_.find(news.name);
    if (known == told_.end() && told_.size() == kToldMax) return;
    Told& told = known == told_.end() ? told_[news.name] : known->second;
    told.last = now;
    const bool is_new = known == told_.end() || now - told.logged >= kToldAgainAfter;
    if (!is_new) return;
    told.logged = now;
    core::emit(events_, core::Level::kInfo, "lrs.class_throttled",
               {{"class", std::string_view(news.name)},
                {"queued", news.queued},
                {"throttled_s", in_seconds(news.added.throttled)}});
}

void ClassLedger::collect(core::MetricSink& sink) const {
    const std::lock_guard lock(mutex_);
    const auto show = [&sink](std::string_view name, const Entry& entry) {
        const std::array labels{core::Label{"class", name}};
        std::uint64_t queued = 0;
        for (const auto& [locality, count] : entry.queued) queued += count;
        sink.gauge("fopd_lrs_class_queued", "Requests of a class that wait for their turn.", labels,
                   static_cast<double>(queued));
        sink.counter("fopd_lrs_served", "Requests of a class that had their turn.", labels,
                     static_cast<double>(entry.totals.served));
        sink.counter("fopd_lrs_served_bytes", "Bytes of data of a class's requests.", labels,
                     static_cast<double>(entry.totals.bytes));
        sink.counter("fopd_lrs_throttled_seconds",
                     "Time in which a class had requests waiting and was held back.", labels,
                     in_seconds(entry.totals.throttled));
    };
    for (const auto& [name, entry] : named_) show(name, entry);
    const bool has_others = !others_.totals.is_nothing() || !others_.queued.empty();
    if (has_others) show(lrs::kOtherClasses, others_);
}

}  // namespace fopd::daemon
