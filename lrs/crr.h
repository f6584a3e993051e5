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
    Key by = Key::kClient;  // What takes turns: clients, jobs, principals or users.
    friend bool operator==(const CrrSettings&, const CrrSettings&) = default;
};
config::Record<CrrSettings> crr_record();

// Clients (or jobs, principals, users) take turns of up to `quantum` requests; the requests of each
// are in the order of arrival. A client is all its sessions. With Key::kClient, principals take
// turns, and in the turn of a principal it is the turn of its next client: who comes as many
// clients has no more. The seed is that of the table of those who ask.
std::unique_ptr<Policy> make_crr(const CrrSettings& settings, std::uint64_t seed);

// The name of the class of such a request: the client's id, or for example "job=dd.0".
std::string crr_class_name(const RequestAttributes& attributes, Key by);

}  // namespace fopd::lrs
