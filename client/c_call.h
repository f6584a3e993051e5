// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "client/fopd.h"
#include "client/session_thread.h"

// NOLINTNEXTLINE(readability-identifier-naming): C.
struct fopd_client {
    std::shared_ptr<fopd::client::SessionThread> thread;
    std::string job;
    fopd::Duration timeout;
};

namespace fopd::client {

// The request of one call of the C interface, and the memory for its data.
struct Asked {
    fop::RequestBody body{};  // monostate: run `work`; if that is empty, wait for a session.
    const void* data = nullptr;
    void* into = nullptr;
    std::size_t bytes = 0;
    Operation::Work work{};
    std::string fault{};  // Not empty: the reason why the call is invalid.
};

// Runs a call. `make` checks the arguments; it may throw std::bad_alloc. begin_call() returns at
// once; `done` is called later, or within it if the call cannot begin.
using MakeAsked = std::function<Asked()>;
void begin_call(fopd_client* client, const fopd_call* call, fopd_done done, void* context,
                const MakeAsked& make) noexcept;
int wait_for_call(fopd_client* client, const fopd_call* call, fopd_result* result,
                  const MakeAsked& make) noexcept;

// Fills the result, unless it is null, and returns the status.
int fill(fopd_result* result, fopd_status status, std::string_view words, std::size_t bytes = 0);

// Copies a struct of the caller, whose program may be built against an older header with a shorter
// struct: members beyond given.size get their defaults. REQUIRES: is_set_up(&given).
template <typename Struct>
Struct known_part(const Struct& given, void (*init)(Struct*)) {
    Struct known{};
    init(&known);
    std::memcpy(&known, &given, std::min(given.size, sizeof(Struct)));
    return known;
}
// Whether the caller has initialised the struct with its init function, which sets `size`.
template <typename Struct>
bool is_set_up(const Struct* given) {
    return given != nullptr && given->size >= sizeof(std::size_t);
}

Duration duration_of(std::uint64_t microseconds);

// A null pointer is an empty text.
std::string c_text(const char* given);

}  // namespace fopd::client

// Defines fopd_NAME() and fopd_NAME_wait() of fopd.h, which have the same middle arguments. `asked`
// makes the Asked from them.
// NOLINTBEGIN(bugprone-macro-parentheses): parameters and statements cannot have them.
#define FOPD_CALL(name, asked, ...)                                                               \
    void fopd_##name(fopd_client* client, const fopd_call* call __VA_OPT__(, ) __VA_ARGS__,       \
                     fopd_done done, void* context) {                                             \
        const auto make = [&] {                                                                   \
            using namespace fopd::client;                                                         \
            return asked;                                                                         \
        };                                                                                        \
        fopd::client::begin_call(client, call, done, context, std::ref(make));                    \
    }                                                                                             \
    int fopd_##name##_wait(fopd_client* client, const fopd_call* call __VA_OPT__(, ) __VA_ARGS__, \
                           fopd_result* result) {                                                 \
        const auto make = [&] {                                                                   \
            using namespace fopd::client;                                                         \
            return asked;                                                                         \
        };                                                                                        \
        return fopd::client::wait_for_call(client, call, result, std::ref(make));                 \
    }
// NOLINTEND(bugprone-macro-parentheses)
