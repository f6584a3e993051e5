#pragma once

#include <coroutine>
#include <cstdint>
#include <utility>

#include "core/intrusive_list.h"
#include "core/result.h"
#include "store/purpose.h"

namespace fopd::store {

class CommitPath;

enum class Durability : std::uint8_t { kDurable, kBuffered };
// Whether a commit also waits for data that are written outside the log.
enum class Data : std::uint8_t { kNone, kPending };

// Identifies a commit by the epoch of its log and its entry. Commits of an earlier epoch whose
// entries the replay did not find are lost.
struct Receipt {
    std::uint64_t epoch = 0;
    std::uint64_t seq = 0;

    friend bool operator==(const Receipt&, const Receipt&) = default;
};

// A change that becomes durable as a whole. The caller owns it and keeps it at the same address
// from begin() until durable() has returned, or, if durable() is never awaited, until data_done().
class Commit : public core::ListNode {
public:
    // The number of the entry that has the commit; set by begin(). Entries become durable in the
    // order of their numbers. Commits that share an entry have the same number, and become durable
    // in the order of their begin().
    std::uint64_t seq() const { return seq_; }

private:
    friend CommitPath;
    enum class Stage : std::uint8_t { kIdle, kBegun, kEnded };

    std::uint64_t seq_ = 0;
    std::coroutine_handle<> waiter_;
    Error error_{.code = Errc::kIo};
    Stage stage_ = Stage::kIdle;
    bool data_pending_ = false;
    bool failed_ = false;
};

// Room for the records of one commit, in the log and in memory. Returned to the log on destruction,
// unless begin() has used it. It must not outlive its log.
class Reservation {
public:
    Reservation(Reservation&& other) noexcept
        : path_(std::exchange(other.path_, nullptr)),
          bytes_(other.bytes_),
          purpose_(other.purpose_) {}
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    Reservation& operator=(Reservation&&) = delete;
    ~Reservation() {
        if (path_ != nullptr) give_up();
    }
    std::uint32_t bytes() const { return bytes_; }

private:
    friend CommitPath;
    Reservation(CommitPath* path, std::uint32_t bytes, Purpose purpose)
        : path_(path), bytes_(bytes), purpose_(purpose) {}
    void give_up();

    CommitPath* path_;
    std::uint32_t bytes_;
    Purpose purpose_;
};

}  // namespace fopd::store
