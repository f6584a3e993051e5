#include "eh/etcd/curl_http.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <string_view>
#include <utility>

#include <curl/curl.h>

#include "core/printable.h"

namespace fopd::eh::etcd {

namespace {

constexpr int kPollMs = 1000;  // Between two looks at what cannot be missed.

struct EasyClose {
    void operator()(CURL* easy) const { curl_easy_cleanup(easy); }
};
using Easy = std::unique_ptr<CURL, EasyClose>;

struct HeadersFree {
    void operator()(curl_slist* headers) const { curl_slist_free_all(headers); }
};
using Headers = std::unique_ptr<curl_slist, HeadersFree>;

// An answer while it arrives.
struct Incoming {
    std::size_t left = 0;  // Bytes that may still come.
    bool is_too_long = false;
    std::string body{};

    bool take(std::size_t size) {
        if (size > left) {
            is_too_long = true;
            return false;
        }
        left -= size;
        return true;
    }
};

std::size_t on_header(char* /*data*/, std::size_t unit, std::size_t count, void* incoming) {
    const std::size_t size = unit * count;
    return static_cast<Incoming*>(incoming)->take(size) ? size : 0;
}

std::size_t on_body(char* data, std::size_t unit, std::size_t count, void* incoming) {
    auto& answer = *static_cast<Incoming*>(incoming);
    const std::size_t size = unit * count;
    if (!answer.take(size)) return 0;
    answer.body.append(data, size);
    return size;
}

bool add(Headers& headers, const std::string& line) {
    curl_slist* const longer = curl_slist_append(headers.get(), line.c_str());
    if (longer == nullptr) return false;
    // The list owns its first element, to which the new one was appended.
    (void)headers.release();
    headers.reset(longer);
    return true;
}

// Sets options of a transfer.
class Options {
public:
    explicit Options(CURL* easy) : easy_(easy) {}

    template <typename Value>
    void operator()(CURLoption option, Value value) {
        ok_ = curl_easy_setopt(easy_, option, value) == CURLE_OK && ok_;
    }
    bool ok() const { return ok_; }

private:
    CURL* easy_;
    bool ok_ = true;
};

class CurlHttp final : public Http {
public:
    CurlHttp(CurlHttpOptions options, CURLM* multi) : options_(std::move(options)), multi_(multi) {}
    ~CurlHttp() override {
        curl_multi_cleanup(multi_);
        curl_global_cleanup();
    }
    CurlHttp(const CurlHttp&) = delete;
    CurlHttp& operator=(const CurlHttp&) = delete;

    std::expected<HttpAnswer, HttpFailure> post(const HttpRequest& request) override;
    void cancel() override {
        is_cancelled_.store(true);
        curl_multi_wakeup(multi_);
    }

private:
    bool prepare(Options& set, const HttpRequest& request, Headers& headers) const;
    void set_tls(Options& set) const;
    CURLcode run(CURL* easy);

    const CurlHttpOptions options_;
    CURLM* const multi_;
    std::atomic<bool> is_cancelled_ = false;
};

void CurlHttp::set_tls(Options& set) const {
    set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
    set(CURLOPT_SSL_VERIFYPEER, 1L);
    set(CURLOPT_SSL_VERIFYHOST, 2L);
    if (!options_.ca.empty()) {
        set(CURLOPT_CAINFO, options_.ca.c_str());
        set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));  // No others besides.
    }
    if (!options_.cert.empty()) {
        set(CURLOPT_SSLCERT, options_.cert.c_str());
        set(CURLOPT_SSLKEY, options_.key.c_str());
    }
}

bool CurlHttp::prepare(Options& set, const HttpRequest& request, Headers& headers) const {
    // "Expect:" without a value: curl does not wait for a permission to send a long body.
    bool is_complete = add(headers, "Content-Type: application/json") && add(headers, "Expect:");
    if (!request.token.empty())
        is_complete = is_complete && add(headers, "Authorization: " + request.token);
    const auto ms = std::chrono::ceil<std::chrono::milliseconds>(request.time).count();
    set(CURLOPT_URL, request.url.c_str());
    set(CURLOPT_PROTOCOLS_STR, "http,https");
    set(CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
    set(CURLOPT_PROXY, "");  // Not what the environment says.
    set(CURLOPT_HTTPHEADER, headers.get());
    set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(request.body.size()));
    set(CURLOPT_POSTFIELDS, request.body.data());
    set(CURLOPT_TIMEOUT_MS, std::max(1L, static_cast<long>(ms)));
    set(CURLOPT_NOSIGNAL, 1L);    // Other threads run.
    set(CURLOPT_QUICK_EXIT, 1L);  // A resolver that hangs is not waited for.
    set(CURLOPT_FRESH_CONNECT, 1L);
    set(CURLOPT_FORBID_REUSE, 1L);
    set_tls(set);
    return is_complete && set.ok();
}

CURLcode CurlHttp::run(CURL* easy) {
    if (curl_multi_add_handle(multi_, easy) != CURLM_OK) return CURLE_OUT_OF_MEMORY;
    CURLcode result = CURLE_ABORTED_BY_CALLBACK;
    int running = 1;
    while (!is_cancelled_.load()) {
        if (curl_multi_perform(multi_, &running) != CURLM_OK || running == 0) break;
        if (curl_multi_poll(multi_, nullptr, 0, kPollMs, nullptr) != CURLM_OK) break;
    }
    int left = 0;
    while (const CURLMsg* const message = curl_multi_info_read(multi_, &left)) {
        if (message->msg == CURLMSG_DONE) result = message->data.result;
    }
    curl_multi_remove_handle(multi_, easy);
    return result;
}

std::expected<HttpAnswer, HttpFailure> CurlHttp::post(const HttpRequest& request) {
    const Easy easy(curl_easy_init());
    Headers headers;
    Incoming incoming{.left = options_.answer_max};
    std::array<char, CURL_ERROR_SIZE> text{};
    Options set(easy.get());
    set(CURLOPT_HEADERFUNCTION, &on_header);
    set(CURLOPT_HEADERDATA, &incoming);
    set(CURLOPT_WRITEFUNCTION, &on_body);
    set(CURLOPT_WRITEDATA, &incoming);
    set(CURLOPT_ERRORBUFFER, text.data());
    if (!prepare(set, request, headers))
        return std::unexpected(HttpFailure{.reason = "libcurl refuses the request"});

    const CURLcode result = run(easy.get());
    if (result == CURLE_OK) {
        long status = 0;
        curl_easy_getinfo(easy.get(), CURLINFO_RESPONSE_CODE, &status);
        return HttpAnswer{.status = static_cast<int>(status), .body = std::move(incoming.body)};
    }
    long sent = 0;
    curl_easy_getinfo(easy.get(), CURLINFO_REQUEST_SIZE, &sent);
    HttpFailure failure{.may_have_arrived = sent > 0};
    if (is_cancelled_.load()) {
        failure.code = Errc::kCancelled;
        failure.reason = "given up";
    } else if (incoming.is_too_long) {
        failure.reason = "the answer is longer than any that etcd gives";
    } else if (result == CURLE_OPERATION_TIMEDOUT) {
        failure.code = Errc::kTimedOut;
        failure.reason = sent > 0 ? "no answer in time" : "no connection in time";
    } else {
        failure.reason =
            core::printable(text[0] == '\0' ? curl_easy_strerror(result) : text.data());
    }
    return std::unexpected(std::move(failure));
}

}  // namespace

Result<std::unique_ptr<Http>> make_curl_http(CurlHttpOptions options) {
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return std::unexpected(Error{.code = Errc::kIo, .context = "start libcurl"});
    CURLM* const multi = curl_multi_init();
    if (multi == nullptr) {
        curl_global_cleanup();
        return std::unexpected(Error{.code = Errc::kNoSpace, .context = "start libcurl"});
    }
    return std::make_unique<CurlHttp>(std::move(options), multi);
}

}  // namespace fopd::eh::etcd
