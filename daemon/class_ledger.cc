#include "daemon/class_ledger.h"

#include <algorithm>
#include <array>
#include <utility>

namespace fopd::daemon {

namespace {

// A class that is throttled again after this time without throttling is logged anew.
constexpr Duration kQuietAfter = 10s;
// Classes whose logging is remembered; further throttled classes are not logged.
constexpr std::size_t kToldMax = 1024;

}  // namespace

void ClassLedger::take(std::size_t locality, std::span<const lrs::ClassNews> news, Instant now) {
    {
        const std::lock_guard lock(mutex_);
        forget_now(locality);
        for (const lrs::ClassNews& each : news) {
            entry_of(each.name, now).add(each, locality, now);
            const auto rule = rules_.find(each.rule);
            if (rule != rules_.end()) rule->second.add(each, locality, now);
        }
    }
    std::erase_if(told_, [now](const auto& each) { return now - each.second.last > kQuietAfter; });
    std::erase_if(differs_, [now](const auto& each) { return now - each.second > kQuietAfter; });
    for (const lrs::ClassNews& each : news) {
        if (each.now.cluster && each.now.cluster->differs) tell_differs(each, now);
        if (each.added.throttled > Duration::zero()) tell(each, now);
    }
}

void ClassLedger::set_rules(std::span<const std::string> names) {
    const std::lock_guard lock(mutex_);
    ++rules_generation_;
    for (const std::string& name : names) rules_[name].in_force_at = rules_generation_;
    drop_former_rules();
}

void ClassLedger::drop_former_rules() {
    std::vector<std::pair<std::uint64_t, std::string_view>> former;
    for (const auto& [name, entry] : rules_) {
        if (entry.in_force_at != rules_generation_) former.emplace_back(entry.in_force_at, name);
    }
    if (former.size() <= kFormerRulesMax) return;
    std::ranges::sort(former);
    former.resize(former.size() - kFormerRulesMax);
    for (const auto& [in_force_at, name] : former) rules_.erase(rules_.find(name));
}

void ClassLedger::forget_now(std::size_t locality) {
    for (auto& each : named_) each.second.now.erase(locality);
    for (auto& each : rules_) each.second.now.erase(locality);
    others_.now.erase(locality);
}

void ClassLedger::Entry::add(const lrs::ClassNews& news, std::size_t locality, Instant at) {
    totals.add(news.added);
    now[locality].add(news.now);
    heard_at = at;
}

lrs::ClassNow ClassLedger::Entry::together() const {
    lrs::ClassNow all;
    for (const auto& [locality, part] : now) all.add(part);
    return all;
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
    const auto named = named_.find(news.name);
    const lrs::ClassNow stands = named == named_.end() ? news.now : named->second.together();
    core::emit(events_, core::Level::kInfo, "lrs.class_throttled",
               {{"class", std::string_view(news.name)},
                {"queued", stands.queued},
                {"oldest_s", in_seconds(stands.oldest)},
                {"ops_per_s", stands.operations_per_second},
                {"bytes_per_s", stands.bytes_per_second},
                {"throttled_s", in_seconds(news.added.throttled)}});
}

void ClassLedger::tell_differs(const lrs::ClassNews& news, Instant now) {
    const auto [known, is_new] = differs_.try_emplace(news.rule, now);
    known->second = now;
    if (!is_new) return;
    core::emit(events_, core::Level::kWarn, "lrs.rule_differs",
               {{"rule", std::string_view(news.rule)}, {"class", std::string_view(news.name)}});
}

void ClassLedger::complete(std::span<lrs::ClassFigures> classes) const {
    const std::lock_guard lock(mutex_);
    for (lrs::ClassFigures& each : classes) {
        const auto named = named_.find(each.name);
        // Requests counted before this class got a ledger entry appear only in the policy's
        // figures.
        if (named != named_.end()) each.raise_to(named->second.totals);
    }
}

void ClassLedger::collect(core::MetricSink& sink) const {
    const std::lock_guard lock(mutex_);
    const auto show = [this, &sink](std::string_view name, const Entry& entry) {
        const std::array labels{core::Label{"class", name}};
        const lrs::ClassNow stands = entry.together();
        sink.gauge("fopd_lrs_class_queued", "Requests of a class that wait for their turn.", labels,
                   static_cast<double>(stands.queued));
        sink.gauge("fopd_lrs_class_oldest_seconds",
                   "How long the oldest request of a class has waited for its turn.", labels,
                   in_seconds(stands.oldest));
        sink.counter("fopd_lrs_served", "Requests of a class that had their turn.", labels,
                     static_cast<double>(entry.totals.served));
        sink.counter("fopd_lrs_served_bytes", "Bytes of data of a class's requests.", labels,
                     static_cast<double>(entry.totals.bytes));
        sink.counter("fopd_lrs_throttled_seconds",
                     "Time in which a class had requests waiting and was held back.", labels,
                     in_seconds(entry.totals.throttled));
        // Classes that are counted together have no share.
        if (!stands.cluster || &entry == &others_) return;
        sink.gauge("fopd_lrs_class_share",
                   "The node's share of the limits that a class has in the whole cluster.", labels,
                   stands.cluster->share);
    };
    for (const auto& [name, entry] : named_) show(name, entry);
    const bool has_others = !others_.totals.is_nothing() || !others_.now.empty();
    if (has_others) show(lrs::kOtherClasses, others_);
    for (const auto& [name, entry] : rules_) {
        if (entry.in_force_at != rules_generation_) continue;
        const std::array labels{core::Label{"rule", name}};
        sink.gauge("fopd_lrs_rule_queued", "Requests of a rule's classes that wait for their turn.",
                   labels, static_cast<double>(entry.together().queued));
        sink.counter("fopd_lrs_rule_served", "Requests of a rule's classes that had their turn.",
                     labels, static_cast<double>(entry.totals.served));
        sink.counter("fopd_lrs_rule_served_bytes", "Bytes of data of a rule's requests.", labels,
                     static_cast<double>(entry.totals.bytes));
        sink.counter("fopd_lrs_rule_throttled_seconds",
                     "Time in which classes of a rule had requests waiting and were held back.",
                     labels, in_seconds(entry.totals.throttled));
    }
}

}  // namespace fopd::daemon
