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

#include "core/ensure.h"
#include "core/printable.h"
#include "fop/key.h"
#include "fop/token.h"

namespace fopd::daemon {

namespace {

namespace fs = std::filesystem;

std::unexpected<StartProblem> refuse_dev(const std::string& path, const char* why) {
    return std::unexpected(
        StartProblem{.exit_code = kExitDataDir, .message = "--dev: " + path + ": " + why});
}

// Returns 0 or the errno. A short write is retried; the next write reports the cause.
int write_all(int fd, std::string_view text) {
    while (!text.empty()) {
        const ssize_t size = ::write(fd, text.data(), text.size());
        if (size < 0) return errno;
        text.remove_prefix(static_cast<std::size_t>(size));
    }
    return 0;
}

enum class Existing : std::uint8_t { kKeep, kReplace };

// Written under a temporary name and renamed, so that a partial file is never read.
Started<void> write_file(const std::string& path, std::string_view text, mode_t mode,
                         Existing existing) {
    std::error_code ignored;
    if (existing == Existing::kKeep && fs::exists(path, ignored)) return {};
    const std::string draft = path + ".new";
    const int fd =
        ::open(draft.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0) return refuse_dev(draft, std::strerror(errno));
    const int write_errno = write_all(fd, text);
    const int close_errno = ::close(fd) == 0 ? 0 : errno;
    if (const int why = write_errno != 0 ? write_errno : close_errno; why != 0) {
        ::unlink(draft.c_str());
        return refuse_dev(draft, std::strerror(why));
    }
    if (::rename(draft.c_str(), path.c_str()) != 0) return refuse_dev(path, std::strerror(errno));
    return {};
}

std::string random_key() {
    static constexpr std::string_view kDigits = "0123456789abcdef";
    std::array<unsigned char, 32> bytes{};
    // Up to 256 bytes are returned whole once the kernel's generator is initialised.
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

// For a shell: within single quotes only the quote itself is special.
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

// A user that can write to the directory, or replace it, chooses the configuration and the key. A
// symlink's owner counts, too. Empty if the directory is ours alone.
std::string why_not_ours(const std::string& dir) {
    struct stat link{};
    struct stat info{};
    if (::lstat(dir.c_str(), &link) != 0 || ::stat(dir.c_str(), &info) != 0) {
        return std::strerror(errno);
    }
    if (!S_ISDIR(info.st_mode)) return std::strerror(ENOTDIR);
    if (link.st_uid != ::geteuid() || info.st_uid != ::geteuid()) {
        return "belongs to another user; name a directory of your own, --dev DIR";
    }
    if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return "others can write into it; chmod go-w, or name another, --dev DIR";
    }
    return {};
}

// A sparse file, which takes space as it fills.
std::string device_text(const std::string& dir, const std::string& name) {
    return "  - { name: " + name + ", path: " + yaml_quoted(dir + '/' + name + ".img") +
           ", size: 8GiB, thin: true, pool: fast }\n";
}

std::string config_text(const std::string& dir) {
    return "# Written once by fopd --dev; edit it as you like. This command shows all keys:\n"
           "#     fopd --print-config --config " +
           shell_quoted(dir + "/fopd.yaml") +
           "\n"
           "node: { name: dev, data_dir: " +
           yaml_quoted(dir + "/data") +
           " }\n"
           "fabric: { listen: [\"tcp://127.0.0.1:31470\"] }\n"
           "auth: { principals: " +
           yaml_quoted(dir + "/principals.yaml") + ", peer_key: " + yaml_quoted(dir + "/peer.key") +
           ", issuer_public: " + yaml_quoted(dir + "/issuer.pub") +
           " }\n"
           "admin: { socket: " +
           yaml_quoted(dir + "/admin.sock") +
           " }\n"
           "io_sched: { tape: { read_algo: grouped_read, write_algo: grouped_write } }\n"
           "pools:\n"
           "  - { name: fast }\n"
           "  - { name: cold, family: tape, staging: fast }\n"
           "libraries:\n"
           "  - { name: vtl0, path: " +
           yaml_quoted(dir + "/vtl0") +
           ", drives: 2, cartridges: 8, pool: cold, migrate_age: 10s }\n"
           "devices:\n" +
           device_text(dir, "d0") + device_text(dir, "d1");
}

// Creates both halves of the key pair, unless there is one already: one half is useless without the
// other.
Started<void> make_issuer(const std::string& dir) {
    std::error_code ignored;
    if (fs::exists(dir + "/issuer.pub", ignored)) return {};
    const std::string text = random_key();
    const auto key = fop::parse_key(text);
    ENSURE(key.has_value());
    auto written = write_file(dir + "/issuer.key", text, 0600, Existing::kReplace);
    if (!written) return written;
    const std::string public_half = fop::to_text(fop::Issuer(*key).public_half()) + '\n';
    return write_file(dir + "/issuer.pub", public_half, 0600, Existing::kReplace);
}

// One client with all rights.
std::string principals_text(const std::string& key) {
    return "# Principals that may connect; written once by fopd --dev. fopctl key "
           "create|list|revoke edits "
           "it.\n"
           "principals:\n"
           "  - name: dev\n"
           "    key: " +
           key +  // Ends with a newline.
           "    rights: [read, write, create, delete, admin]\n";
}

}  // namespace

std::string default_dev_dir() {
    const char* const state = std::getenv("XDG_STATE_HOME");
    const std::string base = state != nullptr && *state != '\0' ? state : "/var/tmp";
    return base + "/fopd-dev";
}

Started<DevSetup> make_dev_setup(const std::string& dir_given) {
    std::error_code failed;
    fs::path path = fs::absolute(dir_given, failed).lexically_normal();
    if (failed) return refuse_dev(dir_given, failed.message().c_str());
    if (!path.has_filename()) path = path.parent_path();  // The path ended in a slash.
    const std::string dir = path.string();
    std::string printable;
    core::append_printable(printable, dir);
    if (printable != dir) {
        return refuse_dev(dir,
                          "no configuration file can name it: it has a control or invisible "
                          "character, or is not UTF-8");
    }
    fs::create_directories(path.parent_path(), failed);
    if (failed) return refuse_dev(dir, failed.message().c_str());
    if (::mkdir(dir.c_str(), 0700) != 0 && errno != EEXIST) {
        return refuse_dev(dir, std::strerror(errno));
    }
    if (const std::string why = why_not_ours(dir); !why.empty())
        return refuse_dev(dir, why.c_str());
    fs::create_directories(dir + "/data", failed);
    if (failed) return refuse_dev(dir, failed.message().c_str());

    DevSetup setup{.dir = dir, .config_file = dir + "/fopd.yaml"};
    if (auto key = write_file(dir + "/peer.key", random_key(), 0600, Existing::kKeep); !key) {
        return std::unexpected(key.error());
    }
    if (auto issuer = make_issuer(dir); !issuer) return std::unexpected(issuer.error());
    // The client's key is written first: with principals made for another key, the owner would be
    // locked out.
    const std::string client_key = random_key();
    std::error_code ignored;
    if (!fs::exists(dir + "/principals.yaml", ignored)) {
        if (auto key = write_file(dir + "/client.key", client_key, 0600, Existing::kReplace);
            !key) {
            return std::unexpected(key.error());
        }
        if (auto file = write_file(dir + "/principals.yaml", principals_text(client_key), 0600,
                                   Existing::kKeep);
            !file) {
            return std::unexpected(file.error());
        }
    }
    if (auto config = write_file(setup.config_file, config_text(dir), 0644, Existing::kKeep);
        !config) {
        return std::unexpected(config.error());
    }
    return setup;
}

Started<void> write_dev_environment(const DevSetup& setup, const std::string& server) {
    std::string text;
    const auto add = [&text](const char* name, const std::string& value) {
        text += std::string("export ") + name + '=' + shell_quoted(value) + '\n';
    };
    add("FOPD_ADMIN", setup.dir + "/admin.sock");
    if (!server.empty()) add("FOPD_SERVER", server);
    add("FOPD_KEY", setup.dir + "/client.key");
    add("FOPD_PRINCIPALS", setup.dir + "/principals.yaml");
    return write_file(setup.dir + "/env.sh", text, 0644, Existing::kReplace);
}

}  // namespace fopd::daemon
