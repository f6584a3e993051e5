// Whatever a view store returns: what is accepted says the same when it is written again, has each
// member once, and follows from another view by the difference to it.
//
//     build/fuzz/bin/fuzz_view -max_len=4096 tests/fuzz/corpus/view
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>

#include "core/ensure.h"
#include "eh/peers/member.h"
#include "eh/view.h"

using namespace fopd;
using namespace fopd::eh;
using namespace fopd::eh::peers;

namespace {

// Some of its members are also in the views of the kept corpus.
View base_view() {
    View view{.number = 1, .epoch_low = 1, .epoch_high = 100};
    for (const char* const name : {"a", "b", "x", "c"})
        view.roster.push_back({.name = name, .incarnation = 1, .address = name, .joined = 1});
    return view;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    const auto bytes = std::as_bytes(std::span(data, size_bytes));
    const auto view = decode_view(bytes);
    if (!view) return 0;
    ENSURE(std::ranges::equal(encode_view(*view), bytes));

    const auto committed = std::make_shared<const CommittedView>(*view);
    for (std::size_t i = 0; i < committed->size(); ++i) {
        const RosterEntry& entry = committed->at(i);
        ENSURE(committed->find(entry.name, entry.incarnation) == i);
    }
    const View base = base_view();
    if (view->number > base.number) {
        if (const auto change = difference(base, *view)) {
            const auto again = apply(base, *change);
            ENSURE(again.has_value());
            ENSURE(*again == *view);
        }
    }

    // A member reads it, as one that wants to join and as one that has a seat.
    for (const bool is_seated : {false, true}) {
        const MemberOptions options;
        Member member(options, {.name = "b", .address = "b"}, 1, Instant{1s});
        if (is_seated) member.seat(std::make_shared<const CommittedView>(base), Instant{1s});
        (void)member.next_epoch(kFirstEpoch, {}, Instant{1s});
        if (!is_seated) member.on_persisted(2, Instant{1s});
        if (is_seated) member.on_time(Instant{1s} + options.root_silent);
        bool reads = false;
        for (const Effect& effect : member.take_effects())
            reads = reads || std::holds_alternative<ReadStore>(effect);
        if (!reads) continue;
        member.on_view_read(ViewHandle(committed), Instant{2s} + options.root_silent);
        for (const Effect& effect : member.take_effects()) {
            if (const auto* const sent = std::get_if<Send>(&effect))
                ENSURE(encode(sent->message).size() <= kMessageBytesMax);
        }
    }
    return 0;
}
