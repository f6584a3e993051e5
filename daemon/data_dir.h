#pragma once

#include <memory>
#include <string>

#include "daemon/start_problem.h"

namespace fopd::daemon {

// The daemon's data directory, locked while this object lives. The kernel releases the lock when
// the process ends in any way; the lock file names the holder and is removed at a clean end.
class DataDir {
public:
    static Started<std::unique_ptr<DataDir>> open(const std::string& path);
    ~DataDir();
    DataDir(const DataDir&) = delete;
    DataDir& operator=(const DataDir&) = delete;

    const std::string& path() const { return path_; }

    // Removes the lock file and releases the lock, for a process that exits without destructors.
    void release();

private:
    DataDir(std::string path, std::string lock_path, int lock_fd)
        : path_(std::move(path)), lock_path_(std::move(lock_path)), lock_fd_(lock_fd) {}

    std::string path_;
    std::string lock_path_;
    int lock_fd_;
};

}  // namespace fopd::daemon
