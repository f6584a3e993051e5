#include "lrs/delay.h"

#include <map>
#include <utility>

#include "config/types.h"
#include "core/random.h"

namespace fopd::lrs {

namespace {

class Delay final : public Policy {
public:
    Delay(const DelaySettings& settings, std::uint64_t seed) : settings_(settings), random_(seed) {}

    void push(Request& request, Instant /*now*/) override {
        const bool delayed = random_.below(100) < settings_.percent;
        const auto span =
            delayed ? Duration(random_.between(settings_.min.count(), settings_.max.count()))
                    : Duration::zero();
        const auto [at, is_new] = waiting_.emplace(
            std::pair(after(request.arrived_at(), span), ++last_number_), &request);
        ENSURE(is_new);
        // The map entry, by which remove() finds it.
        request.PolicyPlace::queue = &*at;
    }
    Next pop(Instant now) override {
        if (waiting_.empty()) return {};
        const auto first = waiting_.begin();
        const Instant due = first->first.first;
        if (due > now) return {.again = due};
        Request* const request = first->second;
        waiting_.erase(first);
        return {.request = request};
    }
    void remove(Request& request) override {
        const auto* const row = static_cast<const Waiting::value_type*>(request.PolicyPlace::queue);
        waiting_.erase(Waiting::key_type(row->first));
    }
    void complete(Request& /*request*/, Instant /*now*/) override {}

private:
    // Waiting requests by due time, then by arrival.
    using Waiting = std::map<std::pair<Instant, std::uint64_t>, Request*>;

    const DelaySettings settings_;
    core::Random random_;
    Waiting waiting_;
    std::uint64_t last_number_ = 0;
};

}  // namespace

config::Record<DelaySettings> delay_record() {
    config::Record<DelaySettings> record;
    const config::DurationRule rule{.max = 1h};
    record.field("min", &DelaySettings::min, config::duration(rule),
                 "A delayed fop waits for at least this time.", {.reload = config::Reload::kLive});
    record.field("max", &DelaySettings::max, config::duration(rule),
                 "A delayed fop waits for at most this time.", {.reload = config::Reload::kLive});
    record.field("percent", &DelaySettings::percent,
                 config::integer<std::uint32_t>({.min = 0, .max = 100}),
                 "How many of a hundred fops are delayed.", {.reload = config::Reload::kLive});
    record.check([](const DelaySettings& value, config::Complaints& complaints) {
        if (value.min > value.max)
            complaints.add("max", "is less than min", "write one that is at least min");
    });
    return record;
}

std::unique_ptr<Policy> make_delay(const DelaySettings& settings, std::uint64_t seed) {
    return std::make_unique<Delay>(settings, seed);
}

}  // namespace fopd::lrs
