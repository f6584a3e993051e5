#include "lrs/sorted_turns.h"

#include <expected>
#include <string>

#include "config/types.h"

namespace fopd::lrs {

namespace {

// A whole turn is sorted at once, which blocks the reactor.
constexpr std::uint32_t kQuantumMax = 4096;

config::TypePtr<Offsets> offsets_type() {
    return std::make_shared<config::ScalarType<Offsets>>(
        "logical",
        [](const config::Node& scalar) -> std::expected<Offsets, config::Mistake> {
            if (scalar.text == "logical") return Offsets::kLogical;
            if (scalar.text == "physical") {
                return std::unexpected(config::Mistake{
                    "where data lies on its disk is not known before a fop runs",
                    "write logical; io_sched's elevator goes by the places on the disk"});
            }
            return std::unexpected(config::Mistake{
                config::in_quotes(scalar.text) + " are not offsets", "write logical"});
        },
        [](const Offsets& /*offsets*/) { return config::plain_scalar("logical"); });
}

class SortedTurns final : public Policy {
public:
    SortedTurns(OrderedOps ops, QueueKey (*key)(const Request& request), const Turns::Rule& rule)
        : ops_(ops), key_(key), turns_(rule) {}

    void push(Request& request, Instant /*now*/) override {
        if (is_ordered(request)) {
            turns_.push(request, key_(request));
        } else {
            others_.push_back(request);
        }
    }
    Next pop(Instant /*now*/) override {
        const bool take_other = turns_.empty() || (others_next_ && !others_.empty());
        others_next_ = !take_other;
        if (take_other) return {.request = static_cast<Request*>(others_.pop_front())};
        return {.request = turns_.pop()};
    }
    void remove(Request& request) override {
        if (is_ordered(request)) {
            turns_.remove(request);
        } else {
            request.PolicyPlace::unlink();
        }
    }
    void complete(Request& /*request*/, Instant /*now*/) override {}

private:
    bool is_ordered(const Request& request) const {
        const RequestAttributes& about = request.attributes;
        if (!about.object.is_set() || about.direction == Direction::kNone) return false;
        const auto wanted =
            about.direction == Direction::kRead ? OrderedOps::kReads : OrderedOps::kWrites;
        return ops_ == OrderedOps::kBoth || ops_ == wanted;
    }

    const OrderedOps ops_;
    QueueKey (*const key_)(const Request& request);
    Turns turns_;
    core::IntrusiveList<PolicyPlace> others_;  // In the order of arrival.
    bool others_next_ = false;
};

}  // namespace

config::Record<SortedTurnsSettings> sorted_turns_record(const char* whose) {
    config::Record<SortedTurnsSettings> record;
    record.field("quantum", &SortedTurnsSettings::quantum,
                 config::integer<std::uint32_t>({.min = 1, .max = kQuantumMax}),
                 std::string("Fops of ") + whose + " that are sorted and run in one turn.",
                 {.reload = config::Reload::kLive});
    record.field("ops", &SortedTurnsSettings::ops,
                 config::choice<OrderedOps>({{"reads", OrderedOps::kReads},
                                             {"writes", OrderedOps::kWrites},
                                             {"both", OrderedOps::kBoth}}),
                 "Which fops are sorted; other fops take turns with these, one by one.",
                 {.reload = config::Reload::kLive});
    record.field("offsets", &SortedTurnsSettings::offsets, offsets_type(),
                 "The offsets by which fops are sorted: those in the object. io_sched sorts by "
                 "place on the disk.",
                 {.reload = config::Reload::kLive});
    return record;
}

std::unique_ptr<Policy> make_sorted_turns(const SortedTurnsSettings& settings,
                                          QueueKey (*key)(const Request& request),
                                          const Turns::Rule& rule) {
    return std::make_unique<SortedTurns>(settings.ops, key, rule);
}

}  // namespace fopd::lrs
