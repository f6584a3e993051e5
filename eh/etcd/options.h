#pragma once

#include <string>
#include <vector>

#include "core/time.h"

namespace fopd::eh {

// How the view store reaches etcd.
struct EtcdStoreOptions {
    std::vector<std::string> endpoints{};  // http://HOST:PORT or https://…; tried in turn.
    std::string prefix = "/fopd";          // The view is at the key PREFIX/view.
    std::string ca{};    // File, PEM: who signs etcd's certificates; empty: as the system says.
    std::string cert{};  // File, PEM: the certificate to show; empty: none.
    std::string key{};   // File, PEM: its key.
    std::string user{};  // Empty: no authentication.
    std::string password{};
    Duration timeout = 2s;  // The longest time for a call, whatever etcd does.
};

// For people; empty if the options make sense.
std::string problem_of(const EtcdStoreOptions& options);

}  // namespace fopd::eh
