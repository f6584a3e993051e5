// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/local_file.h"

namespace fopd::client {

// The reason why a name cannot be a path below a directory, such as a part that is "..". Empty if
// it can.
std::string_view fault_of_path(std::string_view path);

// A directory of this machine that a tree of objects is copied from or to. Files are named by their
// paths in it. Whatever a path is, and whatever was put into the directory before or meanwhile,
// such as a symbolic link, no file outside of it is opened, made or replaced.
//
// All calls block, and may come from several threads.
class LocalTree {
public:
    // kMake is for trees that are written: they need not be readable. kEmpty is for trees that
    // would be written: the tree is only looked at, and nothing is in it.
    enum class Missing : std::uint8_t { kProblem, kMake, kEmpty };
    // The directory itself may be a symbolic link. Errors here and below are for people, and name
    // the file.
    static std::expected<std::unique_ptr<LocalTree>, std::string> open(const std::string& directory,
                                                                       Missing missing);
    ~LocalTree();
    LocalTree(const LocalTree&) = delete;
    LocalTree& operator=(const LocalTree&) = delete;

    // The name of a file for messages.
    std::string shown(std::string_view path) const;

    std::expected<std::unique_ptr<LocalSource>, std::string> open_source(
        LocalWorld world, const std::string& path) const;
    // Makes the directories above the file.
    std::expected<std::unique_ptr<LocalSink>, std::string> open_sink(LocalWorld world,
                                                                     const std::string& path) const;
    // The stamp of a regular file; none: there is no such file, or it cannot be reached.
    std::optional<FileStamp> look(const std::string& path) const;
    // Whether something else than a regular file has the path, or something else than a directory
    // that of a directory above it.
    bool is_blocked(const std::string& path) const;
    enum class What : std::uint8_t { kFile, kDirectory };
    // Removes a file of any type, or an empty directory, and then the directories above it that are
    // empty now, but not the top one. Returns 0 or an errno.
    int remove(const std::string& path, What what) const;
    bool is_there() const { return fd_ >= 0; }

    // Gives the file of open_sink() its name, unless another one that was finished before has this
    // name: to some file systems "a" and "A" are the same.
    Outcome<void> finish(LocalSink& sink);

private:
    friend class LocalWalk;
    LocalTree(std::string directory, int fd) : directory_(std::move(directory)), fd_(fd) {}

    const std::string directory_;
    const int fd_;          // -1: there is no directory.
    std::mutex finishing_;  // One file at a time: others see the names that it takes.
    std::set<FileId> finished_;
};

// One thing in a directory tree.
struct LocalEntry {
    enum class Kind : std::uint8_t { kFile, kEmptyDirectory, kSkipped, kFailed };
    Kind kind = Kind::kFile;
    std::string path{};   // In the tree.
    std::string words{};  // kSkipped: its type. kFailed: the reason, which names the file.
    FileStamp stamp{};    // kFile: its stamp.
};

// Visits all that is in a tree, in order of the names in each directory. Does not follow symbolic
// links. An entry that vanishes after its directory was read is a failure. It keeps the names of
// one directory on each level in memory.
class LocalWalk {
public:
    // Does not enter directories in which each path would be longer than `path_bytes_max`.
    LocalWalk(const LocalTree& tree, std::size_t path_bytes_max);
    // None: that was all. Blocks.
    std::optional<LocalEntry> next();
    const LocalTree& tree() const { return tree_; }

private:
    struct Level {
        std::string path{};  // The directory's path and a slash; empty: the top directory.
        std::vector<std::string> names{};
        std::size_t next = 0;
    };
    LocalEntry failed(std::string path, int os_errno) const;
    // Returns 0 or an errno.
    int enter(const std::string& path);

    const LocalTree& tree_;
    const std::size_t path_bytes_max_;
    std::vector<Level> levels_;
    bool is_begun_ = false;
};

}  // namespace fopd::client
