#include "fabric/tcp/incomplete_messages.h"

#include <deque>

#include "tests/catch.h"

namespace fopd::fabric {

TEST_CASE("fabric incomplete messages: the oldest of whoever holds the most ends first",
          "[fabric]") {
    IncompleteMessages all;
    std::deque<IncompleteMessage> messages;
    const auto add = [&](std::size_t bytes) -> IncompleteMessage& {
        IncompleteMessage& made = messages.emplace_back(all);
        made.holds(bytes);
        return made;
    };
    IncompleteMessage& single = add(100);
    single.belongs_to("ann");
    IncompleteMessage& oldest = add(60);
    oldest.belongs_to("bob");
    IncompleteMessage& newer = add(60);
    newer.belongs_to("bob");
    IncompleteMessage& stranger = add(10);
    REQUIRE(all.bytes() == 230);
    REQUIRE(&all.worst() == &oldest);
    stranger.holds(120);
    REQUIRE(&all.worst() == &stranger);

    stranger.holds(0);
    REQUIRE(&all.worst() == &oldest);
    // It is another message now.
    oldest.completed();
    oldest.holds(60);
    REQUIRE(&all.worst() == &newer);

    newer.holds(0);
    REQUIRE(&all.worst() == &single);
    single.holds(0);
    REQUIRE(&all.worst() == &oldest);
    REQUIRE(all.bytes() == 60);
    messages.clear();
    REQUIRE(all.bytes() == 0);
}

}  // namespace fopd::fabric
