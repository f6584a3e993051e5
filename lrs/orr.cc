#include "lrs/orr.h"

namespace fopd::lrs {

namespace {

QueueKey object_of(const Request& request) {
    const fop::Fid& object = request.attributes.object;
    return {.high = object.high, .low = object.low};
}

Turns::SortKey offset_of(const Request& request) {
    return {request.attributes.offset};
}

}  // namespace

std::unique_ptr<Policy> make_orr(const SortedTurnsSettings& settings, std::uint64_t seed) {
    return make_sorted_turns(settings, &object_of,
                             {.quantum = settings.quantum, .sort_key = &offset_of, .seed = seed});
}

}  // namespace fopd::lrs
