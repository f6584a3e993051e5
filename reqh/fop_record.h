#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/time.h"
#include "fop/fop_type.h"
#include "fop/status.h"
#include "fop/time_spent.h"
#include "reqh/phase.h"
#include "reqh/progress.h"

namespace fopd::reqh {

// Identifies a fop on its node while the node runs. Both sides of a session know it.
struct FopId {
    std::uint64_t session = 0;
    std::uint64_t request = 0;
    friend bool operator==(const FopId&, const FopId&) = default;
};

// "5f3a-17": the session in hexadecimal digits, the request in decimal ones.
std::string format_fop_id(FopId id);
std::optional<FopId> parse_fop_id(std::string_view text);

// A short text that is copied without allocation, and truncated if too long.
class ShortText {
public:
    static constexpr std::size_t kBytesMax = 63;

    ShortText() = default;
    explicit ShortText(std::string_view text)
        : bytes_count_(static_cast<std::uint8_t>(std::min(text.size(), kBytesMax))) {
        std::copy_n(text.begin(), bytes_count_, bytes_.begin());
    }
    std::string_view view() const { return {bytes_.data(), bytes_count_}; }

private:
    std::uint8_t bytes_count_ = 0;
    std::array<char, kBytesMax> bytes_;  // Only the first bytes_count_ are set.
};

// The state of a fop, or its outcome.
struct FopRecord {
    enum class State : std::uint8_t { kQueued, kRunning, kFinished };

    FopId id;
    const fop::FopType* type = nullptr;
    State state = State::kFinished;
    fop::Status status = fop::Status::kDone;  // The status of a finished fop.
    ShortText peer;
    ShortText principal;
    ShortText of_class;  // In the policy, as far as it is known; empty: no policy held it.
    ShortText of_rule;   // The rule of that class; empty: no rule made it.
    Instant arrived_at{};
    PhaseTimes times;
    Wait wait{};                 // The reason for which it waits now.
    Progress::Longest waited{};  // Its longest wait, also for its turn; of a finished fop.
    fop::TimeSpent spent{};      // Of a finished fop.
};

// Fops that have not ended, the oldest first.
struct FopList {
    std::vector<FopRecord> fops;
    std::uint64_t left_out = 0;  // Queued fops that are not in the list, because it has a limit.

    // Adds the list of another locality. At most `queued_max` queued fops remain.
    void add(FopList other, std::size_t queued_max);
};

// The most recently finished fops.
class FopHistory {
public:
    static constexpr std::size_t kCountMax = 256;

    FopHistory() { records_.reserve(kCountMax); }

    // Returns the record for the next fop, replacing the oldest.
    FopRecord& add();
    // The newest record with that id.
    const FopRecord* find(FopId id) const;
    std::size_t count() const { return records_.size(); }
    // All of them, in no order.
    std::span<const FopRecord> all() const { return records_; }

private:
    std::vector<FopRecord> records_;
    std::size_t next_ = 0;  // Index of the oldest, once all are used.
};

// The last slow fops of each principal. When the list is full, the oldest of the principal that has
// the most gives way, so that no principal can drive the fops of all others out. Adding one takes
// a time that depends on the number of principals, not on that of the fops.
class SlowFops {
public:
    static constexpr std::size_t kCountMax = FopHistory::kCountMax;

    SlowFops() { entries_.reserve(kCountMax); }

    // `share` is the name under which the fop's sender is counted.
    void add(const FopRecord& record, const std::string& share);
    // The newest record with that id.
    const FopRecord* find(FopId id) const;
    // All of them, in the order in which they were added.
    std::vector<FopRecord> all() const;

private:
    struct Entry {
        std::uint64_t number = 0;  // Increases with each record.
        FopRecord record{};
    };
    std::size_t index_for(const std::string& share);

    std::vector<Entry> entries_;
    // The entries of each principal, the oldest first. Ordered, so that a tie has one outcome.
    std::map<std::string, std::deque<std::size_t>> indices_;
    std::uint64_t last_number_ = 0;
};

}  // namespace fopd::reqh
