#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "config/record.h"
#include "lrs/classes/key.h"
#include "lrs/policy.h"

namespace fopd::lrs {

struct CrrSettings {
    std::uint32_t quantum = 1;
    // Each value of this key has a queue: each client, job, principal or user.
    Key by = Key::kClient;
    friend bool operator==(const CrrSettings&, const CrrSettings&) = default;
};
config::Record<CrrSettings> crr_record();

// Clients (or jobs, principals, users) take turns of up to `quantum` requests; each one's requests
// stay in the order of arrival. All sessions of a client count as one. With Key::kClient,
// principals take turns, and each turn of a principal goes to its next client: a principal gains
// nothing by using many client ids. `seed` is for the hash of the queue keys.
std::unique_ptr<Policy> make_crr(const CrrSettings& settings, std::uint64_t seed);

// The name of a request's class: the client's id, or for example "job=dd.0". By principals, the
// classes of peers and of clients without a key are called "peers" and "unauthenticated", whatever
// principal they claim.
std::string crr_class_name(const RequestAttributes& attributes, Key by);

}  // namespace fopd::lrs
