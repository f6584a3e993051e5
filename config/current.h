#pragma once

#include <atomic>
#include <memory>

#include "config/schema.h"

namespace fopd::config {

// The configuration in force. Its owner, one thread at a time, replaces it; every other thread has
// a Reader of its own.
//
// Each snapshot that is replaced points to the one that came after it, and a reader walks along: to
// look costs one atomic load, to move on one reference count, nobody waits for anybody, and a
// snapshot ends with the last reader that still looks at it. A reader that never looks again keeps
// everything since alive; reloads are rare, and it lets go when it ends.
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

        // The newest snapshot. The reference holds until the next call; whoever needs it longer
        // takes pointer().
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

    // For the owner.
    const SnapshotPtr& snapshot() const { return newest_->snapshot; }
    Reader reader() const { return Reader(newest_); }

    // What became of a reload.
    struct Applied {
        Changes live;     // In force now.
        Changes waiting;  // The old value stays in force until a restart.
    };

    // Puts into force what can change at run time, all at once: a reader sees everything or nothing
    // of it. Requires: `next` is of the same schema.
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
