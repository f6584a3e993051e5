#pragma once

#include <string>

namespace fopd::eh::testing {

// Worlds in which one rule decides. Each returns what went wrong; empty: nothing.

// A member is busy, and the root dies just before it would have been evicted: the timeout goes on
// under the next root.
std::string busy_member_and_dead_root();
// The store's answer to a change of the view gets lost, and the change happens.
std::string lost_answer_of_store();
// The store's answer gets lost, and the change happens after the answer.
std::string late_swap();
// The root dies after it has sent the start of an epoch to one member only.
std::string start_reaches_one();

}  // namespace fopd::eh::testing
