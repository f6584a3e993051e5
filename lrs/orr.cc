#include "lrs/orr.h"

namespace fopd::lrs {

namespace {

QueueKey object_of(const Request& request) {
    const fop::Fid& object = request.attributes.object;
    return {.high = object.high, .low = object.low};
}

Turns::Place offset_of(const Request& request) {
    return {request.attributes.offset};
}

}  // namespace

std::unique_ptr<Policy> make_orr(const ByPlaceSettings& settings, std::uint64_t seed) {
    return make_by_place(settings, &object_of,
                         {.quantum = settings.quantum, .place = &offset_of, .seed = seed});
}

}  // namespace fopd::lrs
