#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core/random.h"
#include "lrs/request.h"
#include "lrs/scheduler.h"

namespace fopd::lrs::testing {

// A request with a number to know it by.
struct NumberedRequest : Request {
    using Request::Request;

    std::uint64_t number = 0;
};

inline ClientId client_of(std::uint8_t number) {
    ClientId client{};
    client[0] = std::byte{number};
    return client;
}

// As rules have it.
inline std::string client_text(std::uint8_t number) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    std::string text(32, '0');
    text[0] = kDigits[number >> 4];
    text[1] = kDigits[number & 15];
    return text;
}

// Requests with attributes drawn at random; numbered in the order they are made.
class RequestMaker {
public:
    explicit RequestMaker(std::uint64_t seed) : random_(seed) {}

    NumberedRequest& make(Lane lane = Lane::kData) {
        NumberedRequest& request = requests_.emplace_back();
        request.number = requests_.size() - 1;
        request.attributes.lane = lane;
        request.attributes.type = static_cast<std::uint16_t>(random_.below(4));
        request.attributes.client = client_of(static_cast<std::uint8_t>(random_.below(8)));
        request.attributes.size_bytes = random_.below(1U << 20);
        request.attributes.device = static_cast<std::uint32_t>(random_.below(3));
        request.attributes.object = {.high = std::uint64_t{request.attributes.device} << 48,
                                     .low = 1 + random_.below(4)};
        request.attributes.offset = random_.below(16) * 4096;
        request.attributes.direction = static_cast<Direction>(random_.below(3));
        return request;
    }
    NumberedRequest& operator[](std::uint64_t number) { return requests_[number]; }
    std::size_t count() const { return requests_.size(); }

private:
    core::Random random_;
    std::deque<NumberedRequest> requests_;
};

// Asks again and again while it has room, and notes what it gets.
class TakingGetter final : public Getter {
public:
    explicit TakingGetter(Scheduler& scheduler) : scheduler_(scheduler) {}

    // Asks for `count` requests, one after the other.
    void ask(std::uint64_t count) {
        wanted_ += count;
        if (!linked() && wanted_ > 0) scheduler_.next(*this);
    }
    const std::vector<std::uint64_t>& taken() const { return taken_; }
    std::uint64_t nothing_count() const { return nothing_count_; }

    void on_request(Request* request) override {
        if (request == nullptr) {
            ++nothing_count_;
            return;
        }
        taken_.push_back(static_cast<NumberedRequest*>(request)->number);
        if (--wanted_ > 0) scheduler_.next(*this);
    }

private:
    Scheduler& scheduler_;
    std::uint64_t wanted_ = 0;
    std::vector<std::uint64_t> taken_;
    std::uint64_t nothing_count_ = 0;
};

}  // namespace fopd::lrs::testing
