#pragma once

#include <atomic>
#include <memory>

#include "config/schema.h"

namespace fopd::config {

// The configuration in force. Its owner, one thread at a time, replaces it; every other thread
// reads it through its own Reader.
//
// Each replaced snapshot points to its successor, and a reader follows these links: a look costs
// one atomic load, each step one reference count. Nothing blocks, and a snapshot is freed when its
// last reader has moved on. A reader that never looks again keeps all later snapshots alive;
// reloads are rare, and the reader releases them when it ends.
class Current {
    struct Version;

public:
    // One thread's view of the configuration. Copy it before handing it to another thread. May
    // outlive the Current it came from, and then sees its last snapshot.
    class Reader {
    public:
        Reader(const Reader&) = default;
        Reader(Reader&&) noexcept = default;
        Reader& operator=(Reader other) noexcept {
            version_.swap(other.version_);
            return *this;
        }
        ~Reader();

        // The newest snapshot. The reference is valid until the next call; use pointer() to keep it
        // longer.
        const Snapshot& snapshot() { return *latest().snapshot; }
        const SnapshotPtr& pointer() { return latest().snapshot; }

    private:
        friend class Current;
        explicit Reader(std::shared_ptr<Version> version) : version_(std::move(version)) {}

        const Version& latest();

        std::shared_ptr<Version> version_;
    };

    explicit Current(SnapshotPtr snapshot);
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;
    ~Current();

    // The newest snapshot, for the owner of this object.
    const SnapshotPtr& snapshot() const { return newest_->snapshot; }
    Reader reader() const { return Reader(newest_); }

    // The result of a reload.
    struct Applied {
        Changes live;     // In force now.
        Changes waiting;  // The old value stays in force until a restart.
    };

    // Applies all changes that can take effect at run time, at once: a reader sees all of them or
    // none. REQUIRES: `next` has the same schema.
    Applied apply(const SnapshotPtr& next);

private:
    struct Version {
        explicit Version(SnapshotPtr s) : snapshot(std::move(s)) {}

        const SnapshotPtr snapshot;
        // Written once, before has_next, and never again.
        std::shared_ptr<Version> next;
        std::atomic<bool> has_next{false};
    };

    std::shared_ptr<Version> newest_;
};

}  // namespace fopd::config
