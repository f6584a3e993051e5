#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "eh/small_file.h"

namespace fopd::eh::testing {

inline constexpr Error kNoDisk{.code = Errc::kNoSpace, .context = "full"};

// A small file in memory, whose calls end when finish() says so.
class MemoryFile final : public SmallFile {
public:
    void read(SmallFileUser& user) override {
        later_.emplace_back([this, &user] {
            if (fails_read) return user.on_file_read(std::unexpected(kNoDisk));
            if (!bytes) return user.on_file_read(std::unexpected(Error{.code = Errc::kNotFound}));
            user.on_file_read(*bytes);
        });
    }
    void replace(std::vector<std::byte> next, SmallFileUser& user) override {
        ++writes;
        later_.emplace_back([this, next = std::move(next), &user] {
            if (!fails_before) bytes = next;
            if (fails_before || fails_after) {
                return user.on_file_replaced(
                    std::unexpected(NotReplaced{.error = kNoDisk, .has_old_bytes = fails_before}));
            }
            user.on_file_replaced({});
        });
    }
    void finish() {
        while (!later_.empty()) finish_one();
    }
    // REQUIRES: a call is in flight.
    void finish_one() {
        const auto next = std::move(later_.front());
        later_.pop_front();
        next();
    }

    // The process has ended: it hears nothing of its calls.
    void forget() { later_.clear(); }

    std::optional<std::vector<std::byte>> bytes;
    std::size_t writes = 0;
    bool fails_read = false;
    bool fails_before = false;
    bool fails_after = false;

private:
    std::deque<std::function<void()>> later_;
};

}  // namespace fopd::eh::testing
