// SPDX-License-Identifier: BSD-2-Clause
#include "client/admin_client.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include <curl/curl.h>

#include "core/printable.h"

namespace fopd::client {

namespace {

struct EndCurl {
    void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

struct EndCurlMulti {
    void operator()(CURLM* multi) const { curl_multi_cleanup(multi); }
};

// Waits no longer than this before it looks again at what libcurl waits for.
constexpr int kLookAgainMs = 1000;

// How the request ended, or nothing when `interrupt_fd` ended it.
std::optional<CURLcode> perform(CURL* curl, int interrupt_fd) {
    const std::unique_ptr<CURLM, EndCurlMulti> multi(curl_multi_init());
    if (multi == nullptr || curl_multi_add_handle(multi.get(), curl) != CURLM_OK) {
        return CURLE_FAILED_INIT;
    }
    curl_waitfd interrupt{.fd = interrupt_fd, .events = CURL_WAIT_POLLIN, .revents = 0};
    const unsigned extra_count = interrupt_fd < 0 ? 0 : 1;
    std::optional<CURLcode> code;
    for (int running = 1; running > 0;) {
        CURLMcode state = curl_multi_perform(multi.get(), &running);
        if (state == CURLM_OK && running > 0) {
            state = curl_multi_poll(multi.get(), &interrupt, extra_count, kLookAgainMs, nullptr);
        }
        if (state != CURLM_OK) {
            code = CURLE_FAILED_INIT;
            break;
        }
        if (running > 0 && interrupt.revents != 0) break;
    }
    int left_count = 0;
    const CURLMsg* const message = curl_multi_info_read(multi.get(), &left_count);
    if (message != nullptr && message->msg == CURLMSG_DONE) code = message->data.result;
    curl_multi_remove_handle(multi.get(), curl);
    return code;
}

std::size_t take_body(char* data, std::size_t, std::size_t size, void* to) {
    auto& body = *static_cast<std::string*>(to);
    if (body.size() + size > AdminClient::kAnswerMax) return 0;
    body.append(data, size);
    return size;
}

}  // namespace

std::string in_url(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        const bool is_plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
                              (c >= 'a' && c <= 'z') || c == '-' || c == '.' || c == '_';
        if (is_plain) {
            out += c;
        } else {
            out += '%';
            out += kDigits[byte >> 4];
            out += kDigits[byte & 15];
        }
    }
    return out;
}

AdminClient::AdminClient(std::string socket_path, Duration timeout)
    : socket_path_(std::move(socket_path)),
      name_(core::printable(socket_path_)),
      timeout_(timeout) {}

std::expected<AdminAnswer, AdminProblem> AdminClient::get(const std::string& target,
                                                          int interrupt_fd) const {
    return ask(Method::kGet, target, interrupt_fd, {});
}

std::expected<AdminAnswer, AdminProblem> AdminClient::post(const std::string& target,
                                                           const std::string& body) const {
    return ask(Method::kPost, target, -1, body);
}

std::expected<AdminAnswer, AdminProblem> AdminClient::ask(Method method, const std::string& target,
                                                          int interrupt_fd,
                                                          const std::string& body) const {
    const auto problem = [&](AdminFailure kind, const std::string& why) {
        return std::unexpected(AdminProblem{.kind = kind, .message = why});
    };
    const auto no_server = [&](std::string_view why) {
        return problem(AdminFailure::kNoServer,
                       "no fopd answers at " + name_ + ": " + core::printable(why) +
                           "; start it (systemctl start fopd), or say where it is with --admin "
                           "PATH or FOPD_ADMIN");
    };
    const std::unique_ptr<CURL, EndCurl> curl(curl_easy_init());
    if (curl == nullptr) return no_server("libcurl cannot start");
    AdminAnswer answer;
    std::array<char, CURL_ERROR_SIZE> words{};
    const std::string url = "http://fopd" + target;
    const auto timeout_ms = std::chrono::ceil<std::chrono::milliseconds>(timeout_).count();
    curl_easy_setopt(curl.get(), CURLOPT_UNIX_SOCKET_PATH, socket_path_.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");  // Whatever the environment says.
    curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(timeout_ms));
    curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, words.data());
    curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &take_body);
    curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &answer.body);
    if (method == Method::kPost) {
        curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDSIZE_LARGE,
                         static_cast<curl_off_t>(body.size()));
        curl_easy_setopt(curl.get(), CURLOPT_POSTFIELDS, body.data());
    }
    const std::optional<CURLcode> ended = perform(curl.get(), interrupt_fd);
    if (!ended) return problem(AdminFailure::kInterrupted, "interrupted");
    const CURLcode code = *ended;
    if (code == CURLE_OK) {
        long status = 0;
        curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
        answer.status = static_cast<int>(status);
        return answer;
    }
    if (code == CURLE_OPERATION_TIMEDOUT) {
        return problem(AdminFailure::kTimedOut,
                       "fopd at " + name_ + " gave no answer within the time of --timeout");
    }
    long os_errno = 0;
    curl_easy_getinfo(curl.get(), CURLINFO_OS_ERRNO, &os_errno);
    if (code == CURLE_COULDNT_CONNECT && (os_errno == EACCES || os_errno == EPERM)) {
        return problem(AdminFailure::kDenied,
                       name_ + ": not allowed; be root or a member of the socket's group");
    }
    if (code == CURLE_COULDNT_CONNECT && os_errno != 0) {
        return no_server(std::system_category().message(static_cast<int>(os_errno)));
    }
    return no_server(words[0] != '\0' ? words.data() : curl_easy_strerror(code));
}

}  // namespace fopd::client
