#include "tests/eh/etcd_server.h"

#include <array>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/owned_fd.h"
#include "tests/catch.h"
#include "tests/slowness.h"

namespace fopd::eh::testing {

namespace {

constexpr std::chrono::seconds kPatience{60 * fopd::testing::kSlowness};

// A port that nobody uses at the moment.
std::uint16_t free_port() {
    const core::OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    if (::bind(fd.get(), generic, size) != 0 || ::getsockname(fd.get(), generic, &size) != 0)
        throw std::runtime_error("no free port");
    return ntohs(address.sin_port);
}

TempDir directory_for_data() {
    const std::filesystem::path memory = "/dev/shm";
    return ::access(memory.c_str(), W_OK) == 0 ? TempDir(memory) : TempDir();
}

}  // namespace

std::string etcd_program() {
    const char* const path = std::getenv("PATH");
    std::istringstream folders((path == nullptr ? "" : std::string(path)) +
                               ":/usr/bin:/usr/local/bin");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::string program = folder + "/etcd";
        if (!folder.empty() && ::access(program.c_str(), X_OK) == 0) return program;
    }
    if (std::getenv("FOPD_FULL_RUN") != nullptr) FAIL("no etcd here: run scripts/setup --test");
    WARN("skipped: no etcd here");
    return {};
}

EtcdServer::EtcdServer(Options options)
    : options_(std::move(options)),
      directory_(directory_for_data()),
      client_port_(free_port()),
      peer_port_(free_port()) {}

EtcdServer::~EtcdServer() {
    if (process_ > 0) kill();
}

std::string EtcdServer::peer() const {
    return options_.name + "=http://127.0.0.1:" + std::to_string(peer_port_);
}

std::string EtcdServer::url() const {
    return (options_.has_tls ? "https" : "http") + std::string("://127.0.0.1:") +
           std::to_string(client_port_);
}

void EtcdServer::start(const std::string& cluster) {
    const std::string peer_url = "http://127.0.0.1:" + std::to_string(peer_port_);
    std::vector<std::string> command = {etcd_program(),
                                        "--name=" + options_.name,
                                        "--data-dir=" + (directory_ / "data"),
                                        "--listen-client-urls=" + url(),
                                        "--advertise-client-urls=" + url(),
                                        "--listen-peer-urls=" + peer_url,
                                        "--initial-advertise-peer-urls=" + peer_url,
                                        "--initial-cluster=" + cluster,
                                        "--logger=zap",
                                        "--log-outputs=stderr"};
    // One that is alone is its own leader the sooner the shorter these are.
    if (cluster == peer()) {
        command.emplace_back("--heartbeat-interval=10");
        command.emplace_back("--election-timeout=50");
    }
    command.insert(command.end(), options_.arguments.begin(), options_.arguments.end());
    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);

    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    {
        const std::lock_guard lock(mutex_);
        seen_ = log_.size();
        is_ended_ = false;
    }
    process_ = ::fork();
    if (process_ == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        ::dup2(ends[1], STDOUT_FILENO);
        ::dup2(ends[1], STDERR_FILENO);
        ::execv(argv[0], argv.data());
        ::_exit(127);
    }
    ::close(ends[1]);
    if (process_ < 0) throw std::runtime_error("fork");
    reader_ = std::thread([this, fd = ends[0]] { read_log(fd); });
}

void EtcdServer::read_log(int fd) {
    const core::OwnedFd owned(fd);
    std::array<char, 4096> part;
    for (;;) {
        const ssize_t size = ::read(fd, part.data(), part.size());
        const std::lock_guard lock(mutex_);
        if (size > 0) log_.append(part.data(), static_cast<std::size_t>(size));
        is_ended_ = size <= 0;
        grown_.notify_all();
        if (is_ended_) return;
    }
}

void EtcdServer::wait_for_log(const std::string& text) {
    std::unique_lock lock(mutex_);
    std::size_t at = std::string::npos;
    const bool is_there = grown_.wait_for(lock, kPatience, [&] {
        at = log_.find(text, seen_);
        return at != std::string::npos || is_ended_;
    });
    if (!is_there || at == std::string::npos) FAIL("etcd did not say: " << text << "\n" << log_);
    seen_ = at + text.size();
}

void EtcdServer::signal(int number) const {
    if (::kill(process_, number) != 0) throw std::runtime_error("kill");
}

void EtcdServer::kill() {
    signal(SIGKILL);
    ::waitpid(process_, nullptr, 0);
    reader_.join();
    process_ = -1;
}

void EtcdServer::pause() {
    signal(SIGSTOP);
    int status = 0;
    if (::waitpid(process_, &status, WUNTRACED) != process_ || !WIFSTOPPED(status))
        throw std::runtime_error("etcd did not stop");
}

void EtcdServer::go_on() {
    signal(SIGCONT);
}

}  // namespace fopd::eh::testing
