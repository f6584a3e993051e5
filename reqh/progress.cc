#include "reqh/progress.h"

#include <algorithm>
#include <cstdio>

#include "core/ensure.h"
#include "objects/range_locks.h"

namespace fopd::reqh {

namespace {

std::string_view words_of(WaitsFor what) {
    switch (what) {
        case WaitsFor::kNothing: return "";
        case WaitsFor::kTurn: return "its turn";
        case WaitsFor::kLimit: return "the limit of its class";
        case WaitsFor::kBuffer: return "a buffer";
        case WaitsFor::kSameRequest: return "the same request, which runs already";
        case WaitsFor::kName: return "a name that another fop holds";
        case WaitsFor::kLock: return "a lock";
        case WaitsFor::kClientSends: return "data from the client";
        case WaitsFor::kClientTakes: return "the client to take the data";
        case WaitsFor::kLogRoom: return "room in the log";
        case WaitsFor::kSpace: return "space on the disk to be free";
        case WaitsFor::kDisk: return "reads or writes of the disk";
        case WaitsFor::kLog: return "the log to be durable";
        case WaitsFor::kLocality: return "a turn of another locality";
        case WaitsFor::kTape: return "a tape";
        case WaitsFor::kCount: return "";
    }
    return "";
}

}  // namespace

std::string to_text(const Wait& wait) {
    if (wait.what != WaitsFor::kLock) return std::string(words_of(wait.what));
    std::array<char, 128> text;
    const auto high = static_cast<unsigned long long>(wait.object.high);
    const auto low = static_cast<unsigned long long>(wait.object.low);
    const bool has_blocks = wait.blocks.first != objects::kAttributesBlock;
    const bool is_whole = has_blocks && wait.blocks.count == objects::kWholeObject.count;
    int length = 0;
    if (is_whole || !has_blocks) {
        length = std::snprintf(text.data(), text.size(), "a lock of %s of object %016llx%016llx",
                               is_whole ? "all" : "the attributes", high, low);
    } else {
        length = std::snprintf(
            text.data(), text.size(), "a lock of blocks %llu to %llu of object %016llx%016llx",
            static_cast<unsigned long long>(wait.blocks.first),
            static_cast<unsigned long long>(wait.blocks.first + wait.blocks.count - 1), high, low);
    }
    ENSURE(length > 0);
    return {text.data(), static_cast<std::size_t>(length)};
}

void Progress::begin(Instant now) {
    longest_ = {};
    sums_ = {};
    enter(Phase::kQueued, now);
    set_wait({}, now);
}

void Progress::enter(Phase phase, Instant now) {
    begin_write();
    phase_.store(phase, std::memory_order_release);
    since_ns_.store(now.time_since_epoch().count(), std::memory_order_release);
    end_write();
}

void Progress::begin_wait(const Wait& wait, Instant now) {
    wait_ = wait;
    wait_began_ = now;
    set_wait(wait, now);
}

void Progress::end_wait(Instant now) {
    // now() of another locality may be earlier.
    const Duration span = std::max(now - wait_began_, Duration::zero());
    if (span > longest_.span) longest_ = {.wait = wait_, .span = span};
    const auto index = static_cast<std::size_t>(wait_.what);
    ENSURE(index < sums_.size());
    sums_[index] += span;
    wait_ = {};
    set_wait({}, now);
}

void Progress::set_wait(const Wait& wait, Instant now) {
    begin_write();
    what_.store(wait.what, std::memory_order_release);
    waits_since_ns_.store(now.time_since_epoch().count(), std::memory_order_release);
    object_high_.store(wait.object.high, std::memory_order_release);
    object_low_.store(wait.object.low, std::memory_order_release);
    first_.store(wait.blocks.first, std::memory_order_release);
    count_.store(wait.blocks.count, std::memory_order_release);
    end_write();
}

std::optional<Progress::Now> Progress::read() const {
    const std::uint32_t turn = turn_.load(std::memory_order_acquire);
    if (turn % 2 != 0) return std::nullopt;
    const Now now{
        .phase = phase_.load(std::memory_order_acquire),
        .since = Instant(Duration(since_ns_.load(std::memory_order_acquire))),
        .wait = {.what = what_.load(std::memory_order_acquire),
                 .object = {.high = object_high_.load(std::memory_order_acquire),
                            .low = object_low_.load(std::memory_order_acquire)},
                 .blocks = {.first = first_.load(std::memory_order_acquire),
                            .count = count_.load(std::memory_order_acquire)}},
        .waits_since = Instant(Duration(waits_since_ns_.load(std::memory_order_acquire)))};
    if (turn_.load(std::memory_order_relaxed) != turn) return std::nullopt;
    return now;
}

}  // namespace fopd::reqh
