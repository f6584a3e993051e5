// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "client/local_file.h"
#include "client/transfer.h"
#include "core/owned_fd.h"

namespace fopd::client {

// Records the files of a directory that have been stored, in a file that outlives the program:
// another run does not send these files again, and goes on with the uploads that were in progress.
//
// The file is only added to, a line at a time, so that a program that is killed loses nothing but
// its last line. A line that is damaged is ignored: its file is sent again.
class PutJournal {
public:
    struct Stored {
        FileStamp stamp{};  // The file's when it was read.
        fop::Fid fid{};     // The object that was made of it.
    };
    struct Begun {
        FileStamp stamp{};
        std::string group{};  // The group of the new object.
        std::string collection{};
        BegunUpload upload{};
        bool is_seen = false;  // Whether the file was looked for with find().
    };

    // With kRead the file is not changed, and a missing file is an empty journal. kWrite fails
    // while another program writes to the journal. The error is for people, and names the file.
    enum class Access : std::uint8_t { kRead, kWrite };
    static std::expected<std::unique_ptr<PutJournal>, std::string> open(const std::string& path,
                                                                        Access access);
    PutJournal(const PutJournal&) = delete;
    PutJournal& operator=(const PutJournal&) = delete;

    // The record of the file of this path; null: there is none. Valid until the next change.
    const Stored* find(const std::string& path);
    const Begun* find_upload(const std::string& path) const;
    void add(const std::string& path, const Stored& stored);
    void add_upload(const std::string& path, Begun begun);
    void add_sent(const fop::Fid& fid, UploadedWindow window);
    // Forgets all files that were neither looked for with find() nor added, and their uploads.
    // REQUIRES: that was done for every file of the directory.
    void forget_others();

private:
    explicit PutJournal(std::string path) : path_(std::move(path)) {}

    struct Known {
        Stored stored{};
        bool is_seen = false;
    };
    void read_line(std::string_view line);
    void keep(const fop::Fid& fid, UploadedWindow window);
    void forget_upload(const std::string& path);
    void append(const std::string& line);
    // Replaces the file by one without outdated lines. Returns 0 or an errno.
    int rewrite();
    std::string text() const;

    const std::string path_;
    core::OwnedFd file_;  // Locked. -1: opened with kRead, or writing has failed.
    std::unordered_map<std::string, Known> known_;
    std::map<std::string, Begun> uploads_;
    std::map<fop::Fid, std::string> paths_;  // Of the uploads.
    std::uint64_t line_count_ = 0;
};

// A directory whose files are stored below a prefix in a pool of a server.
struct PutTarget {
    std::string server{};
    std::string pool{};
    std::string prefix{};
    std::string directory{};
};
// The path of the target's journal. Empty: the environment names no directory for journals.
std::string journal_path(const PutTarget& target);
// Makes the directories of journal_path(). Returns 0 or an errno.
int make_journal_directory(const std::string& path);

}  // namespace fopd::client
