#include "devices/health.h"

#include <algorithm>

namespace fopd::devices {

namespace {

// An error caused or requested by the caller, not by the operating system.
bool is_lawful(const Error& error) {
    if (error.code == Errc::kClosed) return true;
    if (error.os_errno != 0) return false;
    return error.code == Errc::kInvalid || error.code == Errc::kTimedOut ||
           error.code == Errc::kCancelled;
}

}  // namespace

const char* to_string(DeviceState state) {
    switch (state) {
        case DeviceState::kGood: return "good";
        case DeviceState::kSuspect: return "suspect";
        case DeviceState::kReadOnly: return "read-only";
    }
    return "unknown";
}

const char* to_string(DeviceOp op) {
    switch (op) {
        case DeviceOp::kRead: return "read";
        case DeviceOp::kWrite: return "write";
        case DeviceOp::kFlush: return "flush";
        case DeviceOp::kDiscard: return "discard";
    }
    return "unknown";
}

bool Health::ended(const Ended& what, Instant now) {
    Figures& figures = figures_[static_cast<std::size_t>(what.op)];
    figures.count.add(1);
    figures.latency.record(what.took);
    if (what.result) figures.bytes.add(what.size_bytes);
    const bool is_slow = what.took > rule_.slow_after;
    bool changed = what.result && !is_slow && forgive(now);
    if (is_slow) {
        figures.slow.add(1);
        changed = note_slow(now) || changed;
    }
    if (what.result || is_lawful(what.result.error())) return changed;

    figures.errors.add(1);
    switch (what.op) {
        case DeviceOp::kRead: return mark_suspect("a read failed", now) || changed;
        case DeviceOp::kDiscard: return mark_suspect("a discard failed", now) || changed;
        case DeviceOp::kWrite:
            // The storage below is full. The writer handles that.
            if (what.result.error().code == Errc::kNoSpace) return changed;
            return mark_read_only("a write failed") || changed;
        case DeviceOp::kFlush: return mark_read_only("a flush failed") || changed;
    }
    return changed;
}

bool Health::note_slow(Instant now) {
    slow_lately_.push_back(now);
    if (slow_lately_.size() > rule_.slow_count) slow_lately_.erase(slow_lately_.begin());
    const bool is_often =
        slow_lately_.size() == rule_.slow_count && now <= after(slow_lately_.front(), rule_.memory);
    return is_often && mark_suspect("slow operations", now);
}

bool Health::mark_suspect(const char* reason, Instant now) {
    if (state() == DeviceState::kReadOnly) return false;
    suspect_until_ = std::max(suspect_until_, after(now, rule_.memory));
    return change(DeviceState::kSuspect, reason);
}

bool Health::mark_read_only(const char* reason) {
    if (state() == DeviceState::kReadOnly) return false;  // Keeps the first reason.
    return change(DeviceState::kReadOnly, reason);
}

bool Health::forgive(Instant now) {
    return may_be_good(now) && change(DeviceState::kGood, "");
}

bool Health::change(DeviceState state, const char* reason) {
    const bool is_other = state != this->state();
    reason_.store(reason, std::memory_order_relaxed);
    state_.store(state, std::memory_order_relaxed);
    return is_other;
}

}  // namespace fopd::devices
