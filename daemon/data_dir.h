#pragma once

#include <memory>
#include <string>

#include "daemon/start_problem.h"

namespace fopd::daemon {

// The directory a daemon keeps its data in, locked for as long as this object lives. The kernel
// gives the lock back when the process dies, however it dies; the lock file says who holds it and
// goes away at a clean end.
class DataDir {
public:
    static Started<std::unique_ptr<DataDir>> open(const std::string& path);
    ~DataDir();
    DataDir(const DataDir&) = delete;
    DataDir& operator=(const DataDir&) = delete;

    const std::string& path() const { return path_; }

    // Removes the lock file and gives the lock back, for an end without destructors.
    void release();

private:
    DataDir(std::string path, std::string lock_path, int lock_fd)
        : path_(std::move(path)), lock_path_(std::move(lock_path)), lock_fd_(lock_fd) {}

    std::string path_;
    std::string lock_path_;
    int lock_fd_;
};

}  // namespace fopd::daemon
