// SPDX-License-Identifier: BSD-2-Clause
#include "client/store_backup.h"

#include <cerrno>
#include <span>
#include <string>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "client/exit_code.h"
#include "client/replaced_file.h"
#include "client/table.h"
#include "core/directory.h"

namespace fopd::client {

namespace {

using nlohmann::json;

int complain_about_file(const std::string& path) {
    complain("store backup: " + file_words(path, errno));
    return kExitRefused;
}

// A file that has a temporary name until it is complete.
class Draft {
public:
    explicit Draft(const std::string& path)
        : path_(path),
          draft_(path + ".tmp"),
          fd_(::open(draft_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600)) {
    }
    ~Draft() {
        if (fd_ < 0) return;
        ::close(fd_);
        if (!is_done_) ::unlink(draft_.c_str());
    }
    Draft(const Draft&) = delete;
    Draft& operator=(const Draft&) = delete;

    // When these return false, errno has the reason.
    bool is_open() const { return fd_ >= 0 && ::fchmod(fd_, 0600) == 0; }
    bool write(std::string_view bytes) const {
        errno = write_all(fd_, std::as_bytes(std::span(bytes)));
        return errno == 0;
    }
    bool finish() {
        if (::fsync(fd_) != 0 || ::rename(draft_.c_str(), path_.c_str()) != 0) return false;
        is_done_ = true;
        const auto synced = core::sync_directory(core::directory_of(path_), "sync a directory");
        if (!synced) errno = synced.error().os_errno;
        return synced.has_value();
    }

private:
    const std::string path_;
    const std::string draft_;
    const int fd_;
    bool is_done_ = false;
};

int fetch(const Call& call, const json& backup, Draft& draft) {
    const std::string which = "backup=" + std::to_string(backup.at("backup").get<std::uint64_t>());
    const std::uint64_t size_bytes = backup.at("bytes").get<std::uint64_t>();
    for (std::uint64_t at = 0; at < size_bytes;) {
        const auto part =
            call.client.get("/v1/store/backup-part?" + which + "&at=" + std::to_string(at));
        if (!part || exit_code_of(part->status) != kExitDone) return checked(call, part).error();
        if (part->body.empty()) {
            complain("store backup: the backup ends early");
            return kExitRefused;
        }
        if (!draft.write(part->body)) return complain_about_file(call.arguments.file);
        at += part->body.size();
    }
    const auto ended = call.client.post("/v1/store/backup-end?" + which);
    const auto done = checked(call, ended);
    return done ? kExitDone : done.error();
}

}  // namespace

void declare_store_backup(CLI::App& app, VerbArguments& arguments) {
    app.add_option("file", arguments.file, "The file, on this machine")->required();
}

int run_store_backup(const Call& call) {
    Draft draft(call.arguments.file);
    if (!draft.is_open()) return complain_about_file(call.arguments.file);
    const auto made = call.client.post("/v1/store/backup");
    const auto backup = checked(call, made);
    if (!backup) return backup.error();
    const int fetched = fetch(call, *backup, draft);
    if (fetched != kExitDone) return fetched;
    if (!draft.finish()) return complain_about_file(call.arguments.file);
    return show(call, made->body, [&] {
        return size_of(backup->at("bytes").get<std::uint64_t>()) + ", " +
               shown(backup->at("indexes")) + " indexes, " + shown(backup->at("entries")) +
               " entries\n";
    });
}

}  // namespace fopd::client
