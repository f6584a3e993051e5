#include "lrs/classes/bucket.h"

#include <optional>

namespace fopd::lrs {

namespace {

__extension__ using WideSigned = __int128;

// Tokens are converted in millionths, to which results are rounded.
constexpr std::int64_t kParts = 1'000'000;

// If the old limit has no such meter, the new one starts full.
Ticks carried_meter(const Meter& old, const std::optional<Limit>& old_limit,
                    const std::optional<Limit>& limit, Ticks now) {
    if (!old_limit || !limit) return 0;
    const Ticks owed = std::max<Ticks>(0, old.paid_at() - now);
    const auto parts = [](const Limit& of) { return static_cast<WideSigned>(of.burst) * kParts; };
    const auto divided_up = [](WideSigned number, WideSigned by) { return (number + by - 1) / by; };
    const WideSigned owed_parts =
        divided_up(static_cast<WideSigned>(owed) * old_limit->per_second * kParts, kTicksPerSecond);
    const WideSigned left = std::min(parts(*old_limit) - owed_parts, parts(*limit));
    const WideSigned missing = parts(*limit) - left;
    const WideSigned owed_now =
        divided_up(missing * kTicksPerSecond, static_cast<WideSigned>(limit->per_second) * kParts);
    return now + static_cast<Ticks>(std::min<WideSigned>(owed_now, kTicksMax));
}

}  // namespace

// A bucket that is paid until now + depth is empty. If it is paid until later, the difference is a
// debt; if it is paid until earlier, the difference are its tokens. Both are in the time that they
// take with the node's share.
void Meter::change_share(Share from, Share to, Ticks now, Ticks depth) {
    from = std::max<Share>(from, 1);
    to = std::max<Share>(to, 1);
    if (from == to) return;
    const Ticks empty = now + depth;
    Ticks paid_at = paid_at_.load(std::memory_order_relaxed);
    for (;;) {
        const Ticks debt = std::max(paid_at, now) - empty;
        // A smaller share has less room for tokens.
        if (debt <= 0 && to < from) return;
        const WideSigned changed = (static_cast<WideSigned>(debt) * from) / to;
        const Ticks next = empty + static_cast<Ticks>(std::min<WideSigned>(changed, kTicksMax));
        if (paid_at_.compare_exchange_weak(paid_at, next, std::memory_order_relaxed)) return;
    }
}

BucketStart carried_over(const Bucket& old, const Limits& old_limits, const Limits& limits,
                         Ticks now) {
    return {.operations_paid_at =
                carried_meter(old.operations, old_limits.operations, limits.operations, now),
            .bytes_paid_at = carried_meter(old.bytes, old_limits.bytes, limits.bytes, now)};
}

}  // namespace fopd::lrs
