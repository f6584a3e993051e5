#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "core/events.h"
#include "core/metrics.h"
#include "core/time.h"
#include "lrs/class_figures.h"

namespace fopd::daemon {

// Totals of the node's classes since it started; they outlive changes of classes, rules and
// policies. Up to kNamedMax classes are counted by name and all others together; when a new class
// appears, a class that had no news for kForgottenAfter moves to "others". Each rule in force is
// counted too; its totals go on where they were when it comes back into force. One thread adds
// news, any thread collects.
class ClassLedger {
public:
    static constexpr std::size_t kNamedMax = 100;
    static constexpr Duration kForgottenAfter = 10min;
    // Rules out of force whose totals are kept; beyond it, those longest out of force are dropped.
    static constexpr std::size_t kFormerRulesMax = 1024;
    // A class that is throttled all the time is logged this often.
    static constexpr Duration kToldAgainAfter = 1min;

    explicit ClassLedger(core::EventSink& events) : events_(events) {}

    // Takes all news of a locality at `now`: a class that is not in `news` has no requests waiting
    // there.
    void take(std::size_t locality, std::span<const lrs::ClassNews> news, Instant now);

    // Sets the rules in force. The requests of their classes are also counted per rule, from the
    // first request on. collect() shows no other rules.
    void set_rules(std::span<const std::string> names);

    void collect(core::MetricSink& sink) const;

    // Raises the figures of classes that have an entry here to their totals since the node started,
    // which the policy may have forgotten meanwhile.
    void complete(std::span<lrs::ClassFigures> classes) const;

private:
    struct Entry {
        lrs::ClassTotals totals;
        std::map<std::size_t, lrs::ClassNow> now;  // By locality; no entry: nothing waits there.
        Instant heard_at{};

        void add(const lrs::ClassNews& news, std::size_t locality, Instant at);
        lrs::ClassNow together() const;
    };

    struct RuleEntry : Entry {
        std::uint64_t in_force_at = 0;  // The last generation of rules that had this one.
    };

    void forget_now(std::size_t locality);
    void drop_former_rules();
    Entry& entry_of(const std::string& name, Instant now);
    void tell(const lrs::ClassNews& news, Instant now);
    void tell_differs(const lrs::ClassNews& news, Instant now);

    core::EventSink& events_;
    mutable std::mutex mutex_;
    std::map<std::string, Entry, std::less<>> named_;
    Entry others_;
    std::map<std::string, RuleEntry, std::less<>> rules_;
    std::uint64_t rules_generation_ = 0;  // Raised each time rules come into force.
    // When a class was last throttled and last logged; entries expire after kQuietAfter.
    struct Told {
        Instant last{};
        Instant logged{};
    };
    std::map<std::string, Told, std::less<>> told_;
    // Rules that read otherwise at another node, and when that was last heard.
    std::map<std::string, Instant, std::less<>> differs_;
};

}  // namespace fopd::daemon
