#pragma once

#include <array>
#include <memory>
#include <ostream>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/poll_backend.h"
#include "core/reactor.h"
#include "core/uring_backend.h"
#include "core/virtual_world.h"
#include "tests/catch.h"

namespace fopd::core::testing {

// The three reactors, for tests that hold for each of them.
enum class Kind { kUring, kPoll, kVirtual };

inline constexpr std::array kAllKinds{Kind::kUring, Kind::kPoll, Kind::kVirtual};
inline constexpr std::array kRealKinds{Kind::kUring, Kind::kPoll};

inline std::ostream& operator<<(std::ostream& out, Kind kind) {
    constexpr std::array kNames{"io_uring", "poll", "virtual"};
    return out << kNames[static_cast<std::size_t>(kind)];
}

inline std::unique_ptr<Reactor> make_real_reactor(Kind kind, ReactorOptions options = {},
                                                  UringOptions uring = {}) {
    static const PosixClock kClock;
    static NullEventSink events;
    auto backend = kind == Kind::kUring ? make_uring_backend(kClock, events, uring)
                                        : make_poll_backend(kClock);
    if (!backend) throw std::runtime_error(describe(backend.error()));
    return std::make_unique<Reactor>(std::move(*backend), options);
}

// One reactor of some kind, and how to drive it.
class Harness {
public:
    explicit Harness(Kind kind, UringOptions uring = {}) {
        if (kind == Kind::kVirtual) {
            world_ = std::make_unique<VirtualWorld>(7);
            reactor_ = world_->make_reactor();
        } else {
            reactor_ = make_real_reactor(kind, {}, uring);
        }
    }

    Reactor& reactor() { return *reactor_; }
    Reactor* operator->() { return reactor_.get(); }
    VirtualWorld* world() { return world_.get(); }

    template <typename T>
    T run(Task<T> task) {
        if (world_ == nullptr) return reactor_->run_until_done(std::move(task));
        if constexpr (std::is_void_v<T>) {
            const bool ended = world_->run(*reactor_, std::move(task));
            REQUIRE(ended);
        } else {
            auto result = world_->run(*reactor_, std::move(task));
            REQUIRE(result.has_value());
            return std::move(*result);
        }
    }

private:
    std::unique_ptr<VirtualWorld> world_;
    std::unique_ptr<Reactor> reactor_;
};

// A file without a name, gone when it is closed.
class NamelessFile {
public:
    ~NamelessFile() { ::close(fd_); }
    NamelessFile(const NamelessFile&) = delete;
    NamelessFile& operator=(const NamelessFile&) = delete;
    int fd() const { return fd_; }

protected:
    NamelessFile(int fd, const char* call) : fd_(fd) {
        if (fd_ < 0) throw std::runtime_error(call);
    }

private:
    int fd_;
};

class TempFile : public NamelessFile {
public:
    TempFile() : NamelessFile(make(), "mkostemp") {}

private:
    static int make() {
        std::string path = "/tmp/fopd_test_XXXXXX";
        const int fd = ::mkostemp(path.data(), O_CLOEXEC);
        if (fd >= 0) ::unlink(path.c_str());
        return fd;
    }
};

// Its content is in memory alone.
class MemoryFile : public NamelessFile {
public:
    MemoryFile() : NamelessFile(::memfd_create("fopd_test", MFD_CLOEXEC), "memfd_create") {}
};

class Pipe {
public:
    Pipe() {
        if (::pipe2(ends_, O_CLOEXEC) != 0) throw std::runtime_error("pipe2");
    }
    ~Pipe() {
        ::close(ends_[0]);
        close_write_end();
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    int read_end() const { return ends_[0]; }
    void write(std::string_view text) const {
        if (::write(ends_[1], text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
            throw std::runtime_error("write to pipe");
        }
    }
    void close_write_end() {
        if (ends_[1] >= 0) ::close(ends_[1]);
        ends_[1] = -1;
    }

private:
    int ends_[2];
};

inline Buffer buffer_of(std::span<std::byte> memory) {
    return {.data = memory.data(), .size_bytes = memory.size()};
}
inline Buffer buffer_of(std::string& text) {
    return buffer_of(std::as_writable_bytes(std::span(text)));
}

}  // namespace fopd::core::testing
