#include "lrs/trr.h"

namespace fopd::lrs {

namespace {

QueueKey device_of(const Request& request) {
    return {.low = request.attributes.device};
}

Turns::SortKey key_on_device(const Request& request) {
    const RequestAttributes& about = request.attributes;
    return {about.object.high, about.object.low, about.offset};
}

}  // namespace

std::unique_ptr<Policy> make_trr(const SortedTurnsSettings& settings, std::uint64_t seed) {
    return make_sorted_turns(
        settings, &device_of,
        {.quantum = settings.quantum, .sort_key = &key_on_device, .seed = seed});
}

}  // namespace fopd::lrs
