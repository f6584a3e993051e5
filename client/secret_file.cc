// SPDX-License-Identifier: BSD-2-Clause
#include "client/secret_file.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/owned_fd.h"
#include "core/secret_mode.h"
#include "fop/secret.h"
#include "fop/token.h"

namespace fopd::client {

namespace {

// More than a key and the white space around it.
constexpr std::size_t kKeyFileMax = 512;
// More than a token in text and the white space around it.
constexpr std::size_t kTokenFileMax = 1024;
// Less than any token in text, and more than a usual name of a file.
constexpr std::size_t kTokenTextMin = 128;

// Whether a file is refused that others can read or change, or that is another user's.
enum class Guard : std::uint8_t { kNone, kOwnerAlone };

std::unexpected<std::string> cannot_read(const std::string& path, int os_errno) {
    return std::unexpected(path + ": " + std::system_category().message(os_errno));
}

// The reason why others can use the file; empty if they cannot.
std::string why_open_to_others(const std::string& path, int fd) {
    struct stat info{};
    if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) return {};
    if (info.st_uid != ::geteuid() && info.st_uid != 0) {
        return path + ": it belongs to another user (uid " + std::to_string(info.st_uid) +
               "); make a copy of your own with mode 0600";
    }
    const std::string problem = core::secret_mode_problem(info.st_mode, S_IRWXG | S_IRWXO);
    return problem.empty() ? problem : path + ": " + problem;
}

// Returns the number of bytes of a short file, at most as many as there is room for. The mode of a
// pipe does not matter: nobody else can open it.
std::expected<std::size_t, std::string> read_secret_file(const std::string& path,
                                                         std::span<char> into, Guard guard) {
    const core::OwnedFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK));
    if (file.get() < 0) return cannot_read(path, errno);
    if (guard == Guard::kOwnerAlone) {
        if (std::string why = why_open_to_others(path, file.get()); !why.empty()) {
            return std::unexpected(std::move(why));
        }
    }
    std::size_t length = 0;
    ssize_t got = 0;
    do {
        got = ::read(file.get(), into.data() + length, into.size() - length);
        if (got > 0) length += static_cast<std::size_t>(got);
    } while (got > 0 || (got < 0 && errno == EINTR));
    if (got < 0) return cannot_read(path, errno);
    return length;
}

std::expected<std::vector<std::byte>, std::string> parse_token(std::string_view text) {
    auto bytes = fop::parse_token_text(text);
    if (!bytes) return std::unexpected(bytes.error().context);
    const auto token = fop::read_unverified(*bytes);
    if (!token) return std::unexpected(token.error().context);
    return std::move(*bytes);
}

bool may_be_token(std::string_view text) {
    return text.size() >= kTokenTextMin && !text.contains('/');
}

}  // namespace

std::expected<fop::Key, std::string> read_key_file(const std::string& path) {
    std::array<char, kKeyFileMax> text{};
    const auto length = read_secret_file(path, text, Guard::kOwnerAlone);
    const auto key = fop::parse_key(std::string_view(text.data(), length.value_or(0)));
    fop::wipe(std::as_writable_bytes(std::span(text)));
    if (!length) return std::unexpected(length.error());
    if (!key) return std::unexpected(path + ": " + key.error().context);
    return *key;
}

std::expected<std::vector<std::byte>, std::string> read_token(const std::string& token_or_file) {
    if (auto token = parse_token(token_or_file)) return token;
    std::array<char, kTokenFileMax> text{};
    const auto length = read_secret_file(token_or_file, text, Guard::kNone);
    if (!length && may_be_token(token_or_file)) {
        return std::unexpected("it is neither a token nor a file that can be read");
    }
    if (!length) return std::unexpected(length.error());
    auto token = parse_token(std::string_view(text.data(), *length));
    if (!token) return std::unexpected(token_or_file + ": " + token.error());
    return token;
}

}  // namespace fopd::client
