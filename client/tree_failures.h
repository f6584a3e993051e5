// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "client/exit_code.h"
#include "client/object_tree.h"

namespace fopd::client {

// The value of `code` for the failure in fopctl's JSON.
std::string_view code_of(const TreeFailure& failure);
ExitCode exit_code_of(const TreeFailure& failure);

// Collects the failures of a command on many objects, such as `put --recursive`. Keeps the first
// kListedMax, and counts the others.
class TreeFailures {
public:
    static constexpr std::uint64_t kListedMax = 1000;
    struct Listed {
        std::string name{};
        std::string words{};
        std::string_view code{};
        ExitCode exit_code = kExitDone;
    };
    // Whether the first failures are kept for listed(), or failures are only counted.
    enum class Keep : std::uint8_t { kNothing, kListed };
    explicit TreeFailures(Keep keep) : keep_(keep) {}

    // False: there are more than can be listed.
    bool add(const TreeFailure& failure);

    std::uint64_t count() const { return count_; }
    std::uint64_t unlisted_count() const { return count_ > kListedMax ? count_ - kListedMax : 0; }
    const std::vector<Listed>& listed() const { return listed_; }
    // The exit code of the first failure.
    ExitCode exit_code() const { return exit_code_; }

private:
    const Keep keep_;
    std::uint64_t count_ = 0;
    std::vector<Listed> listed_;
    ExitCode exit_code_ = kExitDone;
};

}  // namespace fopd::client
