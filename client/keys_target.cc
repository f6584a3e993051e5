// SPDX-License-Identifier: BSD-2-Clause
#include "client/keys_target.h"

#include <cstdlib>

#include <nlohmann/json.hpp>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/complaints.h"
#include "client/exit_code.h"
#include "client/table.h"
#include "config/file.h"
#include "config/node.h"
#include "config/problem.h"
#include "config/yaml_reader.h"
#include "core/printable.h"

namespace fopd::client {

namespace {

constexpr const char* kConfigDefault = "/etc/fopd/fopd.yaml";
constexpr const char* kDataDirDefault = "/var/lib/fopd";

std::optional<ReplacedFile::Reader> daemon_user() {
    const passwd* const user = ::getpwnam(kDaemonUser);
    if (user == nullptr) return std::nullopt;
    return ReplacedFile::Reader{.user = user->pw_uid, .group = user->pw_gid};
}

bool is_same_file(const std::string& one, const std::string& other) {
    const auto first = whole_path(one);
    const auto second = whole_path(other);
    return first && second && *first == *second;
}

// The file that was asked for, by the option or the variable; empty: the daemon's. The library that
// parses the command line would let the variable win, because several verbs share the option.
std::string asked_file(const Call& call) {
    if (!call.arguments.principals_file.empty()) return call.arguments.principals_file;
    const char* const variable = std::getenv("FOPD_PRINCIPALS");  // NOLINT(concurrency-mt-unsafe)
    return variable == nullptr ? "" : variable;
}

// What matters here of the configuration of a daemon that does not run.
struct DaemonConfig {
    std::string file = {};
    std::string principals = {};  // Empty: it names none.
    std::string data_dir = kDataDirDefault;
};

// Nothing, if no file was named and there is no default one that the caller may read. Otherwise,
// the words of a complaint.
std::expected<std::optional<DaemonConfig>, std::string> read_config(const std::string& named) {
    DaemonConfig found{.file = named.empty() ? kConfigDefault : named};
    if (named.empty() && ::access(kConfigDefault, R_OK) != 0) return std::nullopt;
    const auto text = config::read_file(found.file);
    if (!text) return std::unexpected(core::printable(found.file) + ": " + text.error().wrong);
    config::Problems problems;
    const auto root = config::read_yaml(*text, problems);
    if (!root) return std::unexpected(to_string(problems.front()));
    const auto value = [&root](const char* section, const char* key, std::string& into) {
        const config::Node* const map = config::find(*root, section);
        const config::Node* const node = map == nullptr ? nullptr : config::find(*map, key);
        const bool is_none = node == nullptr || node->kind != config::Node::Kind::kScalar ||
                             (!node->is_quoted && node->text == "none");
        if (!is_none) into = node->text;
    };
    value("auth", "principals", found.principals);
    value("node", "data_dir", found.data_dir);
    return found;
}

// The user that the package makes, or else the owner of the data directory.
std::optional<ReplacedFile::Reader> reader_for(const std::optional<DaemonConfig>& config) {
    if (const auto user = daemon_user()) return user;
    struct stat info{};
    if (!config || ::stat(config->data_dir.c_str(), &info) != 0) return std::nullopt;
    return ReplacedFile::Reader{.user = info.st_uid, .group = info.st_gid};
}

// The file of a daemon that does not run.
std::expected<KeysTarget, int> find_target_without_daemon(const Call& call,
                                                          const std::string& asked) {
    const auto config = read_config(call.arguments.config_file);
    if (!config) return std::unexpected(complain_about(call, config.error(), kExitConfig));
    const std::string used = *config ? (*config)->principals : "";
    if (!used.empty() && !asked.empty() && !is_same_file(asked, used)) {
        return std::unexpected(
            complain_about(call,
                           core::printable((*config)->file) + " has " + core::printable(used) +
                               " as auth.principals, not " + core::printable(asked) +
                               "; name the configuration of that fopd with --config",
                           kExitRefused));
    }
    return KeysTarget{.path = !asked.empty() ? asked
                              : used.empty() ? kPrincipalsDefault
                                             : used,
                      .is_configured = !used.empty(),
                      .reader = reader_for(*config)};
}

}  // namespace

std::expected<KeysTarget, int> find_keys_target(const Call& call) {
    const std::string asked = asked_file(call);
    const auto answer = call.client.get("/v1/keys");
    if (!answer && answer.error().kind == AdminFailure::kNoServer) {
        return find_target_without_daemon(call, asked);
    }
    const auto keys = checked(call, answer);
    if (!keys) return std::unexpected(keys.error());
    const auto& path = keys->at("principals");
    if (path.is_null()) {
        return std::unexpected(
            complain_about(call,
                           "fopd uses no file of principals: let auth.principals in " +
                               shown(keys->at("file")) + " name one, such as " +
                               (asked.empty() ? kPrincipalsDefault : core::printable(asked)),
                           kExitRefused));
    }
    KeysTarget target{.path = path.get<std::string>(),
                      .is_in_use = true,
                      .open_to_all = keys->value("open_to_all", false),
                      .reader = ReplacedFile::Reader{.user = keys->at("uid").get<unsigned>(),
                                                     .group = keys->at("gid").get<unsigned>()}};
    if (asked.empty() && (::geteuid() != 0 || target.path == kPrincipalsDefault)) return target;
    // The daemon has fewer rights than root: it must not choose which file root changes.
    if (asked.empty()) {
        return std::unexpected(complain_about(call,
                                              "fopd uses " + shown(path) +
                                                  " as its file of principals; name it with "
                                                  "--principals: root only changes what it names",
                                              kExitRefused));
    }
    if (is_same_file(asked, target.path)) return target;
    return std::unexpected(complain_about(
        call,
        "fopd uses " + shown(path) + " as its file of principals, not " + core::printable(asked),
        kExitRefused));
}

}  // namespace fopd::client
