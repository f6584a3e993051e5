#pragma once

#include <cstddef>
#include <functional>
#include <type_traits>

#include <sys/types.h>

#include "core/time.h"

namespace fopd::bench {

// Runs the peer of a measurement, for example the server of an echo, as a process of its own on
// core 0; this process moves to core 1. So the CPU time and memory of both can be measured
// separately. REQUIRES: this process has no reactor, because the constructor forks.
class Child {
public:
    // The child's connection to its parent.
    class Parent {
    public:
        // Readable as soon as the parent is done with the child.
        int done_fd() const { return done_fd_; }
        template <typename T>
        void send(const T& value) const {
            static_assert(std::is_trivially_copyable_v<T>);
            send_bytes(&value, sizeof value);
        }

    private:
        friend Child;
        void send_bytes(const void* bytes, std::size_t size) const;
        int done_fd_ = -1;
        int send_fd_ = -1;
    };

    explicit Child(const std::function<void(const Parent&)>& body);
    // Asks the child to end, and waits for that.
    ~Child();
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Waits for the value that the child sends next.
    template <typename T>
    T receive() const {
        static_assert(std::is_trivially_copyable_v<T>);
        T value;
        receive_bytes(&value, sizeof value);
        return value;
    }
    Duration cpu_time() const;
    std::size_t resident_bytes() const;

private:
    void receive_bytes(void* bytes, std::size_t size) const;

    pid_t pid_ = -1;
    int done_fd_ = -1;
    int receive_fd_ = -1;
};

// The CPU time that this process has used.
Duration own_cpu_time();

}  // namespace fopd::bench
