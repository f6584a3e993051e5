#pragma once

#include <string>
#include <vector>

#include "core/time.h"

namespace fopd::eh {

// How the view store reaches etcd.
struct EtcdStoreOptions {
    std::vector<std::string> endpoints{};  // http://HOST:PORT or https://…; tried in turn.
    std::string prefix = "/fopd";          // The view is at the key PREFIX/view.
    // PEM file with the authorities that sign etcd's certificates; empty: the system's authorities.
    std::string ca{};
    std::string cert{};  // PEM file with our certificate; empty: none.
    std::string key{};   // PEM file with the key of the certificate.
    std::string user{};  // Empty: no authentication.
    std::string password{};
    Duration timeout = 2s;  // The longest time for a call, with all its tries.
};

// Why the options are invalid, for people; empty if they are valid.
std::string problem_of(const EtcdStoreOptions& options);

}  // namespace fopd::eh
