#include "lrs/crr.h"

#include <bit>

#include "config/types.h"
#include "lrs/turns.h"

namespace fopd::lrs {

namespace {

class Crr final : public Policy {
public:
    explicit Crr(const Turns::Rule& rule) : turns_(rule) {}

    void push(Request& request, Instant /*now*/) override {
        turns_.push(request, std::bit_cast<QueueKey>(request.attributes.client));
    }
    Next pop(Instant /*now*/) override { return {.request = turns_.pop()}; }
    void remove(Request& request) override { turns_.remove(request); }
    void complete(Request& /*request*/, Instant /*now*/) override {}

private:
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
    return std::make_unique<Crr>(Turns::Rule{.quantum = settings.quantum, .seed = seed});
}

}  // namespace fopd::lrs
