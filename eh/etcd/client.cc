#include "eh/etcd/client.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/ensure.h"

namespace fopd::eh::etcd {

namespace {

// Of 1.5 MiB that etcd takes in a request, unless it is told otherwise.
constexpr std::size_t kStoredViewBytesMax = 1536 * 1024 - 4096;
// etcd keeps every view until it is compacted. The root that writes a view whose number is a
// multiple of this compacts etcd, so that a change of the root does not delay that.
constexpr ViewNumber kCompactEvery = 32;
// The outcome of a swap is not held back longer for a compaction.
constexpr Duration kCompactTime = 500ms;

ViewNumber view_number_of(const ViewHandle& view) {
    return view == nullptr ? 0 : view->number();
}

bool is_same(const ViewHandle& found, const ViewHandle& written) {
    return found != nullptr && found->bytes() == written->bytes();
}

// Whether a view found in etcd is the one to be written. None: its number differs, so it proves
// nothing.
std::optional<Swapped> seen_in_place_of(const ViewHandle& next, const ViewHandle& found) {
    if (view_number_of(found) != next->number()) return std::nullopt;
    return is_same(found, next) ? Swapped::kYes : Swapped::kNo;
}

Error error_of(Errc code) {
    switch (code) {
        case Errc::kDenied: return {.code = code, .context = "etcd refuses the user"};
        case Errc::kNoSpace: return {.code = code, .context = "etcd is full"};
        case Errc::kCorrupt: return {.code = code, .context = "an answer that is not etcd's"};
        case Errc::kTimedOut: return {.code = code, .context = "etcd does not answer"};
        case Errc::kCancelled: return {.code = code, .context = "etcd: given up"};
        default: return {.code = code, .context = "etcd fails"};
    }
}

std::string with_message(const char* words, const std::string& message) {
    return message.empty() ? words : std::string(words) + " (" + message + ")";
}

}  // namespace

EtcdClient::EtcdClient(EtcdStoreOptions options, Http& http, const core::Clock& clock,
                       core::EventSink& events)
    : options_(std::move(options)),
      key_(options_.prefix + "/view"),
      http_(http),
      clock_(clock),
      events_(events) {
    ENSURE(problem_of(options_).empty());
    for (const std::string& url : options_.endpoints) endpoints_.push_back({.url = url});
}

Result<ViewHandle> EtcdClient::read() {
    auto found = find(after(clock_.now(), options_.timeout));
    if (!found) return std::unexpected(found.error());
    return found->view;
}

Swapped EtcdClient::swap(ViewNumber expected, const ViewHandle& next) {
    const bool may_be_under_way = unsettled_ != nullptr && is_same(unsettled_, next);
    const Swapped outcome =
        try_swap(expected, next).value_or(may_be_under_way ? Swapped::kUnknown : Swapped::kNo);
    unsettled_ = outcome == Swapped::kUnknown ? next : nullptr;
    return outcome;
}

std::optional<Swapped> EtcdClient::try_swap(ViewNumber expected, const ViewHandle& next) {
    const Instant deadline = after(clock_.now(), options_.timeout);
    if (next->bytes().size() > kStoredViewBytesMax) {
        emit(events_, core::Level::kError, "eh.etcd_view_too_large",
             {{"members", std::uint64_t{next->size()}},
              {"bytes", std::uint64_t{next->bytes().size()}},
              {"bytes_max", std::uint64_t{kStoredViewBytesMax}}});
        return std::nullopt;
    }
    if (!newest_ || view_number_of(newest_->view) != expected) {
        const auto found = find(deadline);
        if (!found) return std::nullopt;
        if (view_number_of(found->view) != expected) return seen_in_place_of(next, found->view);
    }
    const auto asked =
        ask_all(kTxnPath, swap_body(key_, newest_->revision, next->bytes()), deadline, &parse_swap);
    const auto outcome = conclude(asked, next, deadline);
    if (outcome == Swapped::kYes && next->number() % kCompactEvery == 0)
        compact(newest_->revision, std::min(deadline, after(clock_.now(), kCompactTime)));
    return outcome;
}

// An endpoint whose answer was lost may have put the view; the comparison lets only one of equal
// requests do that. If a later endpoint has the view, it was put. If that endpoint has another view
// of the same number, it was not.
std::optional<Swapped> EtcdClient::conclude(const Asked<SwapAnswer>& asked, const ViewHandle& next,
                                            Instant deadline) {
    newest_.reset();
    std::optional<Swapped> not_seen;
    if (asked.may_be_done) not_seen = Swapped::kUnknown;
    if (!asked.answer && asked.is_full) {
        // The request by which etcd notices that it is full is done, and refused all the same.
        const auto found = find(deadline);
        if (!found) return Swapped::kUnknown;
        const auto seen = seen_in_place_of(next, found->view);
        return seen ? seen : not_seen;
    }
    if (!asked.answer) return not_seen;
    if (asked.answer->is_put) {
        newest_ = Found{.view = next, .revision = asked.answer->revision};
        return Swapped::kYes;
    }
    const auto found = found_in(asked.answer->found);
    if (!found) return not_seen;
    newest_ = *found;
    const auto seen = seen_in_place_of(next, found->view);
    return seen ? seen : not_seen;
}

void EtcdClient::compact(std::int64_t revision, Instant deadline) {
    Endpoint& endpoint = endpoints_[first_];
    const Answer answer = ask(endpoint, kCompactPath, compact_body(revision), deadline);
    const bool is_done = answer || answer.error().refusal.is_compacted;
    if (!is_done && std::exchange(compacts_, false))
        emit(events_, core::Level::kWarn, "eh.etcd_not_compacted",
             {{"endpoint", endpoint.url}, {"reason", answer.error().reason}});
    compacts_ = is_done;
}

Result<EtcdClient::Found> EtcdClient::find(Instant deadline) {
    newest_.reset();
    auto asked = ask_all(kRangePath, read_body(key_), deadline, &parse_found);
    if (!asked.answer) return std::unexpected(asked.error);
    newest_ = *asked.answer;
    return *std::move(asked.answer);
}

Result<EtcdClient::Found> EtcdClient::parse_found(std::string_view text) {
    const auto record = parse_read(text);
    if (!record) return std::unexpected(record.error());
    return found_in(*record);
}

Result<EtcdClient::Found> EtcdClient::found_in(const std::optional<KeyValue>& record) {
    if (!record) return Found{};
    auto view = decode_view(record->value);
    if (!view)
        return std::unexpected(
            Error{.code = Errc::kCorrupt, .context = "the key PREFIX/view does not hold a view"});
    return Found{.view = std::make_shared<const CommittedView>(*std::move(view)),
                 .revision = record->revision};
}

template <typename T>
EtcdClient::Asked<T> EtcdClient::ask_all(std::string_view path, const std::string& body,
                                         Instant deadline, Result<T> (*parse)(std::string_view)) {
    Asked<T> asked;
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
        const std::size_t at = (first_ + i) % endpoints_.size();
        Endpoint& endpoint = endpoints_[at];
        // One that does not answer leaves the others their share of the time.
        const Duration left = deadline - clock_.now();
        if (left <= Duration{0}) break;
        const Duration share = left / static_cast<Duration::rep>(endpoints_.size() - i);
        const Answer answer = ask(endpoint, path, body, after(clock_.now(), share));
        auto parsed =
            answer ? parse(*answer) : Result<T>(std::unexpected(error_of(answer.error().code)));
        if (parsed) {
            note(endpoint, {});
            first_ = at;
            asked.answer = *std::move(parsed);
            return asked;
        }
        asked.error = parsed.error();
        asked.may_be_done |= answer ? true : answer.error().may_be_done;
        asked.is_full |= !answer && answer.error().refusal.is_full;
        if (parsed.error().code == Errc::kCancelled) break;
        note(endpoint, answer ? std::string_view(parsed.error().context) : answer.error().reason);
    }
    return asked;
}

EtcdClient::Answer EtcdClient::ask(const Endpoint& endpoint, std::string_view path,
                                   const std::string& body, Instant deadline) {
    const bool has_user = !options_.user.empty();
    for (bool is_last = !has_user;; is_last = true) {
        if (has_user && !token_) {
            auto authenticated = authenticate(endpoint, deadline);
            if (!authenticated) return std::unexpected(std::move(authenticated.error()));
        }
        Answer answer = post(endpoint, path, body, token_.value_or(""), deadline);
        if (answer || !answer.error().refusal.wants_token || !has_user) return answer;
        // Tokens end after some time, when their server restarts, and when users are changed.
        token_.reset();
        if (is_last) return answer;
    }
}

std::expected<void, EtcdClient::Trouble> EtcdClient::authenticate(const Endpoint& endpoint,
                                                                  Instant deadline) {
    Answer answer = post(endpoint, kAuthenticatePath,
                         authenticate_body(options_.user, options_.password), {}, deadline);
    if (!answer && answer.error().refusal.has_no_auth) {
        token_ = "";
        return {};
    }
    if (!answer) {
        answer.error().may_be_done = false;  // The request itself was not sent.
        return std::unexpected(std::move(answer.error()));
    }
    auto token = parse_token(*answer);
    if (!token)
        return std::unexpected(
            Trouble{.code = token.error().code, .reason = token.error().context});
    token_ = *std::move(token);
    return {};
}

EtcdClient::Answer EtcdClient::post(const Endpoint& endpoint, std::string_view path,
                                    const std::string& body, const std::string& token,
                                    Instant deadline) {
    const Duration left = deadline - clock_.now();
    if (left <= Duration{0})
        return std::unexpected(Trouble{.code = Errc::kTimedOut, .reason = "no answer in time"});
    auto answer = http_.post(
        {.url = endpoint.url + std::string(path), .body = body, .token = token, .time = left});
    if (!answer) {
        return std::unexpected(Trouble{.code = answer.error().code,
                                       .may_be_done = answer.error().may_have_arrived,
                                       .reason = std::move(answer.error().reason)});
    }
    if (answer->status != 200) return std::unexpected(trouble_of(*answer));
    return std::move(answer->body);
}

// What etcd refuses with a status of 400 to 499 it has not done, unless it is full.
EtcdClient::Trouble EtcdClient::trouble_of(const HttpAnswer& answer) const {
    const bool is_refusal = answer.status >= 400 && answer.status < 500 && answer.status != 408;
    Trouble trouble{.may_be_done = !is_refusal, .refusal = parse_refusal(answer.body)};
    const Refusal& refusal = trouble.refusal;
    if (refusal.message.empty()) {
        trouble.code = Errc::kCorrupt;
        trouble.reason =
            "HTTP status " + std::to_string(answer.status) +
            " without a message of etcd: is this address etcd's, of version 3.4 or later?";
    } else if (refusal.wants_token && options_.user.empty()) {
        trouble.code = Errc::kDenied;
        trouble.reason = with_message("etcd wants a user and a password", refusal.message);
    } else if (refusal.is_denied) {
        trouble.code = Errc::kDenied;
        trouble.reason = with_message("etcd refuses the user", refusal.message);
    } else if (refusal.is_full) {
        trouble.code = Errc::kNoSpace;
        trouble.reason = with_message("etcd is full, its quota is used up", refusal.message);
    } else if (refusal.has_no_leader) {
        trouble.code = Errc::kTimedOut;
        trouble.reason = with_message(
            "most members of etcd are away, or it elects a leader just now", refusal.message);
    } else if (answer.status == 503 && !options_.cert.empty()) {
        trouble.reason = with_message(
            "etcd's gateway does not reach its own server; where etcd wants client certificates, "
            "its own certificate must allow clientAuth, too",
            refusal.message);
    } else {
        trouble.reason = with_message("etcd fails", refusal.message);
    }
    return trouble;
}

void EtcdClient::note(Endpoint& endpoint, std::string_view reason) {
    if (endpoint.reason == reason) return;
    if (reason.empty()) {
        emit(events_, core::Level::kInfo, "eh.etcd_answers", {{"endpoint", endpoint.url}});
    } else {
        emit(events_, core::Level::kWarn, "eh.etcd_failed",
             {{"endpoint", endpoint.url}, {"reason", reason}});
    }
    endpoint.reason = reason;
}

}  // namespace fopd::eh::etcd
