// Whatever a peer sends as an epoch message: what is accepted says the same when it is written
// again, and a member that gets it keeps its promises.
//
//     build/fuzz/bin/fuzz_epoch -max_len=4096 tests/fuzz/corpus/epoch
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/ensure.h"
#include "eh/peers/member.h"
#include "eh/view.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;

namespace {

ViewHandle small_view() {
    View view{.number = 3, .epoch_low = 1, .epoch_high = 100};
    for (const char* const name : {"a", "b", "c", "d"})
        view.roster.push_back({.name = name, .incarnation = 1, .address = name, .joined = 1});
    return std::make_shared<const CommittedView>(std::move(view));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    const auto message = decode(bytes);
    if (!message) return 0;
    ENSURE(std::ranges::equal(encode(*message), bytes));

    MemberOptions options;
    options.fanout = 2;
    for (const char* const self : {"a", "b", "d"}) {
        Member member(options, {.name = self, .address = self}, 0, Instant{1s});
        member.seat(small_view(), Instant{1s});
        (void)member.next_epoch(kFirstEpoch, {}, Instant{1s});
        for (const char* const from : {"a", "b", "c", "z"}) {
            if (from == std::string_view(self)) continue;
            member.on_message({.name = from, .address = from}, *message, Instant{2s});
            for (const Effect& effect : member.take_effects()) {
                if (const auto* const sent = std::get_if<Send>(&effect))
                    ENSURE(encode(sent->message).size() <= kMessageBytesMax);
            }
            ENSURE(member.contributions() <= options.fanout + 1);
        }
        member.on_time(Instant{3s});
    }
    return 0;
}
