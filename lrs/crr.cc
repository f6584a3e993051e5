#include "lrs/crr.h"

#include <bit>

#include "config/types.h"
#include "lrs/classes/key.h"
#include "lrs/policies.h"
#include "lrs/turns.h"

namespace fopd::lrs {

namespace {

// Of each locality.
constexpr std::size_t kIdleClientsMax = 4096;

class Crr final : public Policy {
public:
    explicit Crr(const Turns::Rule& rule) : turns_(rule) {}

    void push(Request& request, Instant /*now*/) override {
        turns_.push(request, std::bit_cast<QueueKey>(request.attributes.client));
    }
    Next pop(Instant now) override {
        Request* const request = turns_.pop();
        if (request != nullptr) count(*request, now);
        return {.request = request};
    }
    Adapted adapt(const PolicySettings& settings, const PolicyParts& /*parts*/,
                  Instant /*now*/) override {
        turns_.set_quantum(settings.crr.quantum);
        return Adapted::kAtOnce;
    }
    void let_pass(Request& request, Instant now) override {
        count(request, now);
        turns_.remove(request);
    }
    bool visit_classes(Instant /*now*/, const ClassVisitor& visitor) override {
        turns_.for_each([&visitor](const Turns::Shown& shown) {
            Digits digits;
            visitor({.name = hex_of_client(std::bit_cast<ClientId>(shown.key), digits),
                     .queued = shown.queued,
                     .oldest = shown.oldest == nullptr ? kNever : shown.oldest->arrived_at(),
                     .tally = shown.tally});
        });
        return true;
    }
    void remove(Request& request) override { turns_.remove(request); }
    void complete(Request& /*request*/, Instant /*now*/) override {}

private:
    static void count(const Request& request, Instant now) {
        Turns::tally_of(request).add_request(request.attributes.size_bytes, now);
    }

    Turns turns_;
};

}  // namespace

config::Record<CrrSettings> crr_record() {
    config::Record<CrrSettings> record;
    record.field("quantum", &CrrSettings::quantum,
                 config::integer<std::uint32_t>({.min = 1, .max = 65535}),
                 "Fops of a client in a row, before the next client has its turn.",
                 {.reload = config::Reload::kLive});
    return record;
}

std::unique_ptr<Policy> make_crr(const CrrSettings& settings, std::uint64_t seed) {
    return std::make_unique<Crr>(
        Turns::Rule{.quantum = settings.quantum, .seed = seed, .idle_max = kIdleClientsMax});
}

}  // namespace fopd::lrs
