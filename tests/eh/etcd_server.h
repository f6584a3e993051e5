#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "tests/temp_dir.h"

namespace fopd::eh::testing {

// The path of etcd, as Debian has it. Empty if this machine has none; in a full run that is a
// failure.
std::string etcd_program();

// A process of etcd with ports and a data directory of its own. It ends with this object.
class EtcdServer {
public:
    struct Options {
        std::string name = "one";
        std::vector<std::string> arguments{};  // Besides those for its directory and addresses.
        bool has_tls = false;
    };
    explicit EtcdServer(Options options);
    ~EtcdServer();
    EtcdServer(const EtcdServer&) = delete;
    EtcdServer& operator=(const EtcdServer&) = delete;

    // This member as NAME=URL, for the list of a cluster's members.
    std::string peer() const;
    std::string url() const;
    // Starts the process, also after kill(). `cluster` is the list of peer() of all members.
    void start(const std::string& cluster);
    void start() { start(peer()); }
    // Returns when etcd serves clients, for which its cluster needs a leader.
    void wait_until_ready() { wait_for_log("serving client traffic"); }
    // Returns when etcd's log has a line with this text that no earlier call has found.
    void wait_for_log(const std::string& text);
    void kill();
    void pause();
    void go_on();

private:
    void read_log(int fd);
    void signal(int number) const;

    const Options options_;
    const TempDir directory_;  // In memory if possible: etcd syncs often.
    const std::uint16_t client_port_;
    const std::uint16_t peer_port_;
    pid_t process_ = -1;
    std::thread reader_;
    std::mutex mutex_;
    std::condition_variable grown_;
    std::string log_;
    std::size_t seen_ = 0;
    bool is_ended_ = false;
};

}  // namespace fopd::eh::testing
