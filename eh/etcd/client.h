#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/clock.h"
#include "core/events.h"
#include "eh/etcd/gateway.h"
#include "eh/etcd/http.h"
#include "eh/etcd/options.h"
#include "eh/view_store.h"

namespace fopd::eh::etcd {

// Reads and swaps the view in etcd. Tries one endpoint after the other until the timeout, and
// authenticates if a user is set. The calls block, so they are made on a thread of core::Offload,
// one at a time. Logs why an endpoint fails whenever the reason changes, and when it works again.
class EtcdClient {
public:
    // REQUIRES: problem_of(options) is empty. All references outlive the client.
    EtcdClient(EtcdStoreOptions options, Http& http, const core::Clock& clock,
               core::EventSink& events);

    // Null: there is no view yet.
    Result<ViewHandle> read();
    // kUnknown: this call, or an earlier one with the same view, may have sent the request to an
    // endpoint, and no answer tells the outcome.
    Swapped swap(ViewNumber expected, const ViewHandle& next);

private:
    struct Endpoint {
        std::string url;
        std::string reason{};  // Why its last call failed; empty: it has succeeded.
    };
    struct Trouble {
        Errc code = Errc::kIo;
        bool may_be_done = false;
        std::string reason{};
        Refusal refusal{};
    };
    using Answer = std::expected<std::string, Trouble>;
    // The view in etcd, null if there is none, and the revision of etcd that wrote it.
    struct Found {
        ViewHandle view{};
        std::int64_t revision = 0;
    };
    // The first answer of an endpoint; if there is none, the failure of the last endpoint.
    template <typename T>
    struct Asked {
        std::optional<T> answer{};
        Error error{.code = Errc::kTimedOut, .context = "etcd does not answer"};
        bool may_be_done = false;  // An endpoint that gave no answer may have executed the request.
        bool is_full = false;      // An endpoint said that etcd has no space.
    };

    template <typename T>
    Asked<T> ask_all(std::string_view path, const std::string& body, Instant deadline,
                     Result<T> (*parse)(std::string_view));
    Answer ask(const Endpoint& endpoint, std::string_view path, const std::string& body,
               Instant deadline);
    Answer post(const Endpoint& endpoint, std::string_view path, const std::string& body,
                const std::string& token, Instant deadline);
    std::expected<void, Trouble> authenticate(const Endpoint& endpoint, Instant deadline);
    Trouble trouble_of(const HttpAnswer& answer) const;
    Result<Found> find(Instant deadline);
    // Nothing: this call has not written the view, and no request of it can still write it.
    std::optional<Swapped> try_swap(ViewNumber expected, const ViewHandle& next);
    std::optional<Swapped> conclude(const Asked<SwapAnswer>& asked, const ViewHandle& next,
                                    Instant deadline);
    void compact(std::int64_t revision, Instant deadline);
    void note(Endpoint& endpoint, std::string_view reason);
    static Result<Found> found_in(const std::optional<KeyValue>& record);
    static Result<Found> parse_found(std::string_view text);

    const EtcdStoreOptions options_;
    const std::string key_;
    Http& http_;
    const core::Clock& clock_;
    core::EventSink& events_;
    std::vector<Endpoint> endpoints_;
    std::size_t first_ = 0;             // The endpoint that answered last is asked first.
    std::optional<std::string> token_;  // Empty text: authentication is off in etcd.
    std::optional<Found> newest_;       // The newest view that is known to be in etcd.
    // The view of the last swap, if its outcome is unknown; null: it is known.
    ViewHandle unsettled_;
    // The last compaction has succeeded. Only the first failure in a row is logged.
    bool compacts_ = true;
};

}  // namespace fopd::eh::etcd
