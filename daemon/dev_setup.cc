#include "daemon/dev_setup.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/printable.h"

namespace fopd::daemon {

namespace {

namespace fs = std::filesystem;

std::unexpected<StartProblem> refuse(const std::string& path, const char* why) {
    return std::unexpected(
        StartProblem{.exit_code = kExitDataDir, .message = "--dev: " + path + ": " + why});
}

enum class Existing : std::uint8_t { kKeep, kReplace };

// Written beside its place and renamed, so that nobody ever reads half of it.
Started<void> write_file(const std::string& path, std::string_view text, mode_t mode,
                         Existing existing) {
    std::error_code ignored;
    if (existing == Existing::kKeep && fs::exists(path, ignored)) return {};
    const std::string draft = path + ".new";
    const int fd =
        ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return refuse(draft, std::strerror(errno));
    const bool written = ::write(fd, text.data(), text.size()) == static_cast<ssize_t>(text.size());
    const int write_errno = errno;
    ::close(fd);
    if (!written) return refuse(draft, std::strerror(write_errno));
    if (::rename(draft.c_str(), path.c_str()) != 0) return refuse(path, std::strerror(errno));
    return {};
}

std::string random_key() {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::array<unsigned char, 32> bytes{};
    // At most 256 bytes come whole, once the system has gathered enough of them since it was
    // started.
    while (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    }
    std::string text;
    for (const unsigned char byte : bytes) {
        text.push_back(kDigits[byte >> 4U]);
        text.push_back(kDigits[byte & 0xfU]);
    }
    text.push_back('\n');
    return text;
}

// For a shell: within single quotes everything is itself, but for the quote.
std::string shell_quoted(const std::string& text) {
    std::string out = "'";
    for (const char each : text) {
        if (each == '\'') {
            out += "'\\''";
        } else {
            out += each;
        }
    }
    return out + "'";
}

// For YAML: within single quotes a quote is written twice.
std::string yaml_quoted(const std::string& text) {
    std::string out = "'";
    for (const char each : text) {
        out += each;
        if (each == '\'') out += each;
    }
    return out + "'";
}

// A symlink counts as its maker's.
bool is_ours(const std::string& path) {
    struct stat info{};
    return ::lstat(path.c_str(), &info) == 0 && info.st_uid == ::geteuid();
}

std::string config_text(const std::string& dir) {
    return "# Written once by fopd --dev; edit it as you like. `fopd --print-config --config` "
           "shows\n"
           "# every key there is.\n"
           "node: { name: dev, data_dir: " +
           yaml_quoted(dir + "/data") +
           " }\n"
           "auth: { peer_key: " +
           yaml_quoted(dir + "/peer.key") +
           " }\n"
           "admin: { socket: " +
           yaml_quoted(dir + "/admin.sock") + " }\n";
}

}  // namespace

std::string default_dev_dir() {
    const char* const state = std::getenv("XDG_STATE_HOME");
    const std::string base = state != nullptr && *state != '\0' ? state : "/var/tmp";
    return base + "/fopd-dev";
}

Started<DevSetup> make_dev_setup(const std::string& dir_given, DevDir chosen) {
    std::error_code failed;
    const std::string dir = fs::absolute(dir_given, failed).lexically_normal().string();
    if (failed) return refuse(dir_given, failed.message().c_str());
    std::string printable;
    core::append_printable(printable, dir);
    if (printable != dir) {
        return refuse(dir,
                      "no configuration file can name it: it has a control or invisible "
                      "character, or is not UTF-8");
    }
    // A directory of its own is nobody else's business; one that is there already stays as it is.
    const bool is_new = !fs::exists(dir, failed);
    fs::create_directories(dir, failed);
    if (failed) return refuse(dir, failed.message().c_str());
    if (chosen == DevDir::kDefault && !is_ours(dir)) {
        return refuse(dir, "belongs to another user; name a directory of your own, --dev DIR");
    }
    fs::create_directories(dir + "/data", failed);
    if (failed) return refuse(dir, failed.message().c_str());
    if (is_new && ::chmod(dir.c_str(), 0700) != 0) return refuse(dir, std::strerror(errno));

    const DevSetup setup{.dir = dir, .config_file = dir + "/fopd.yaml"};
    if (auto key = write_file(dir + "/peer.key", random_key(), 0600, Existing::kKeep); !key) {
        return std::unexpected(key.error());
    }
    if (auto config = write_file(setup.config_file, config_text(dir), 0644, Existing::kKeep);
        !config) {
        return std::unexpected(config.error());
    }
    const std::string env = "export FOPD_ADMIN=" + shell_quoted(dir + "/admin.sock") + "\n";
    if (auto written = write_file(dir + "/env.sh", env, 0644, Existing::kReplace); !written) {
        return std::unexpected(written.error());
    }
    return setup;
}

}  // namespace fopd::daemon
