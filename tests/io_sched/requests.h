#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <vector>

#include "core/random.h"
#include "devices/device.h"
#include "io_sched/disk.h"

namespace fopd::io_sched::testing {

// A request with parts of its own and a number to know it by. Its buffers have no memory.
struct NumberedRequest : DiskRequest {
    explicit NumberedRequest(Complete complete = [](IoRequest&) {}) : DiskRequest(complete) {}

    void add_part(MediumId medium, std::uint64_t offset, std::size_t size_bytes) {
        own_parts.push_back({.medium = medium, .offset = offset, .size_bytes = size_bytes});
        own_buffers.push_back({.size_bytes = size_bytes});
        parts = own_parts;
        buffers = own_buffers;
    }

    std::uint64_t number = 0;
    std::vector<IoPart> own_parts;
    std::vector<core::Buffer> own_buffers;
};

// Requests for schedulers that are tested alone: stamped as they are made.
class RequestMaker {
public:
    // One part on each medium, at the same offset.
    NumberedRequest& make(IoType type, std::initializer_list<MediumId> media, Instant now = {},
                          std::uint64_t offset = 0) {
        NumberedRequest& request = requests_.emplace_back();
        request.number = requests_.size() - 1;
        request.type = type;
        for (const MediumId medium : media) {
            request.add_part(medium, offset, devices::kBlockBytes);
        }
        request.stamp(requests_.size(), now);
        return request;
    }
    NumberedRequest& operator[](std::uint64_t number) { return requests_[number]; }
    std::size_t count() const { return requests_.size(); }

private:
    std::deque<NumberedRequest> requests_;
};

}  // namespace fopd::io_sched::testing
