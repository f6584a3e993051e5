#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "core/metrics.h"
#include "core/time.h"
#include "lrs/class_figures.h"

namespace fopd::daemon {

// What the classes of a node have had since it started, whatever became of classes, rules and
// policies. So many classes are counted by their names, the others together: one that was not heard
// of for a while makes room for another. The rules in force are counted each. One thread takes
// news, any thread collects.
class ClassLedger {
public:
    static constexpr std::size_t kNamedMax = 100;
    static constexpr Duration kForgottenAfter = 10min;
    // A class that is held back all the time is in the log this often.
    static constexpr Duration kToldAgainAfter = 1min;

    explicit ClassLedger(core::EventSink& events) : events_(events) {}

    // All that a locality has to tell at `now`: of classes that are not in it nothing waits.
    void take(std::size_t locality, std::span<const lrs::ClassNews> news, Instant now);

    // The rules in force, whose classes are counted together by them too, from their first request
    // on; those that are not among them are forgotten.
    void set_rules(std::span<const std::string> names);

    void collect(core::MetricSink& sink) const;

    // What classes that have names here had is what it was since the node started, also when their
    // policy forgot them meanwhile.
    void complete(std::span<lrs::ClassFigures> classes) const;

private:
    struct Entry {
        lrs::ClassTotals totals;
        std::map<std::size_t, lrs::ClassNow> now;  // By locality; in others nothing waits.
        Instant heard_at{};

        void add(const lrs::ClassNews& news, std::size_t locality, Instant at);
        lrs::ClassNow together() const;
    };

    void forget_now(std::size_t locality);
    Entry& entry_of(const std::string& name, Instant now);
    void tell(const lrs::ClassNews& news, Instant now);

    core::EventSink& events_;
    mutable std::mutex mutex_;
    std::map<std::string, Entry, std::less<>> named_;
    Entry others_;
    std::map<std::string, Entry, std::less<>> rules_;
    // When a class was last held back, and in the log; those of the last minute.
    struct Told {
        Instant last{};
        Instant logged{};
    };
    std::map<std::string, Told, std::less<>> told_;
};

}  // namespace fopd::daemon
