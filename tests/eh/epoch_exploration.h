#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "eh/peers/member.h"
#include "sim/epochs/epoch_laws.h"

namespace fopd::eh::testing {

// How much of each may happen in a small world.
struct ExplorationBudget {
    const char* name = "";
    int calls = 2;  // Of each member.
    int jumps = 3;  // Times a member's clock advances by the time after which a root is silent.
    int crashes = 0;
    int doubles = 0;
    int leaves = 0;
    int unknown = 0;  // Answers of the store that get lost.
    // Two: the root has two children. One: the root, a child, and the child's child.
    std::size_t fanout = 2;
    // The messages from one member to another arrive in the order in which they were sent, but for
    // some.
    bool is_in_order = false;
    int overtakes = 0;  // Messages that arrive before earlier ones.
};

struct Explored {
    std::uint64_t states = 0;
    std::uint64_t steps = 0;
    std::size_t depth = 0;
    bool is_whole = false;  // Every state within the budget was seen.
    std::string wrong;
};

// Explores what three members with a common view store may do, starting as members of one view: in
// every state each message in flight may be the next to arrive, each answer of the store the next
// to happen, and each member's clock may run ahead of the others. A swap happens in one step and is
// answered in another. Any number of messages may be lost: a message that has not arrived is never
// missed. States that were seen, perhaps with more left of what may happen or with more messages in
// flight, are not gone on from.
Explored explore(const ExplorationBudget& budget, std::uint64_t states_max);

}  // namespace fopd::eh::testing
