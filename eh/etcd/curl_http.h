#pragma once

#include <memory>
#include <string>

#include "core/result.h"
#include "eh/etcd/http.h"

namespace fopd::eh::etcd {

struct CurlHttpOptions {
    std::string ca{};  // Files as in EtcdStoreOptions.
    std::string cert{};
    std::string key{};
    std::size_t answer_max = 3U << 20U;  // Bytes of an answer, with its header.
};

// HTTP/1.1 by libcurl, with TLS for https. Each call makes a connection of its own. With reused
// connections, libcurl may send a request a second time by itself when a connection was closed.
Result<std::unique_ptr<Http>> make_curl_http(CurlHttpOptions options);

}  // namespace fopd::eh::etcd
