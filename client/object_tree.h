// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "client/local_tree.h"
#include "client/put_journal.h"
#include "client/transfer.h"
#include "core/gate.h"
#include "core/wait_queue.h"

namespace fopd::client {

// Visits the objects whose names begin with a prefix, in the order of their names.
class ObjectWalk {
public:
    struct Options {
        std::string pool{};
        std::string prefix{};
        Duration patience{30s};  // The time limit for one page of names.
        core::CancelSource* cancel = nullptr;
    };
    ObjectWalk(core::Reactor& reactor, ObjectClient& objects, Options options);

    using Entry = ObjectPage::Entry;
    // Returns the next object without consuming it; take() consumes it. Null: there are no more.
    // The caller may use the returned object until it calls take().
    // Fails if the names in the server's list do not ascend strictly or lack the prefix. After any
    // failure the walk is over, and peek() returns null.
    Task<Outcome<const Entry*>> peek();
    // REQUIRES: peek() has returned an object.
    Entry take();

    const std::string& prefix() const { return options_.prefix; }
    const std::string& pool() const { return options_.pool; }

private:
    core::Reactor& reactor_;
    ObjectClient& objects_;
    const Options options_;
    ObjectPage page_;
    std::size_t next_ = 0;  // The index of the next object in page_.
    std::string last_;      // The name that was taken last; empty: no name was taken.
};

struct TreeFailure {
    enum class Cause : std::uint8_t {
        kServer,
        kFile,     // A local file could not be used; the words of `problem` name the file.
        kName,     // The name is not possible for an object, or for a file.
        kTooMany,  // More would be removed than the caller allows.
    };
    std::string name{};  // The object's name.
    Cause cause = Cause::kServer;
    Problem problem{};
};

// Receives each skipped file and each failure when it occurs.
class TreeWatcher {
public:
    virtual ~TreeWatcher() = default;
    virtual void on_failure(const TreeFailure& failure) = 0;
    // A skipped file that is not regular. `what` describes its type; `shown` is its name.
    virtual void on_skipped(std::string_view shown, std::string_view what) = 0;
    virtual void on_empty_directory(std::string_view shown) = 0;
    // An object that would be moved, in a transfer that only plans.
    struct Planned {
        std::string name{};
        std::optional<std::uint64_t> size_bytes{};  // None: the server does not know it.
    };
    virtual void on_planned(const Planned& planned) = 0;
};

// A transfer of many objects, with several in flight at a time. To move an object means what the
// subclass does with the object: store, fetch or remove it. Each object is moved as a whole or not
// at all. A failure of one object does not stop the others. REQUIRES: run() is called once.
//
// A lane is a coroutine that moves one object after another; each object in flight has its lane.
//
// When the cancel source of the options is cancelled, no more objects are begun, and objects in
// flight are given up. The transfer also ends early when the server has not answered many times in
// a row, when it refuses the session, or, with stops_at_quota, when an object does not fit the
// quota.
class TreeTransfer {
public:
    struct Options {
        std::uint32_t objects_in_flight = 16;
        // How many more objects may be in flight while the server answers quickly. This helps
        // changes: each one waits for a flush of the disk, and all changes that have arrived by
        // then share the flush.
        std::uint32_t more_in_flight = 0;
        // The time limit for one window of an object (TransferOptions::window_bytes), and for each
        // lookup or removal.
        Duration patience{30s};
        // Reports the objects that would be moved, and changes nothing.
        bool only_plans = false;
        // The objects or files that are not moved, because they exist already at the target.
        enum class Skip : std::uint8_t {
            kNothing,
            kEqual,     // Objects that certainly have the same bytes.
            kSameSize,  // Objects with the same size; their bytes may differ.
        };
        Skip skip = Skip::kNothing;
        // Ends early when an object does not fit the quota, because others would not fit, either.
        bool stops_at_quota = false;
        // With stops_at_quota: an object that does not fit the quota is tried again for a while,
        // since replaced objects free their space a moment after they were replaced.
        bool waits_for_quota = false;
        // The transfer ends after so many objects, whether they were moved, skipped or failed, and
        // neither moves nor reports the rest. Nothing: no limit.
        std::optional<std::uint64_t> items_max{};
        core::CancelSource& cancel;
    };
    Task<void> run();

    // The number of objects that were stored, fetched or removed as a whole so far. In a transfer
    // that only plans: the number of objects that would be.
    std::uint64_t objects() const { return objects_; }
    // The sum of the sizes of the objects that objects() counts. An object of unknown size counts
    // as 0 bytes.
    std::uint64_t bytes() const { return bytes_; }
    // The number of objects that Options::skip left out, because they exist at the target.
    std::uint64_t unchanged() const { return unchanged_; }
    // The sum of bytes() and of the bytes that were sent or received so far of the objects in
    // flight.
    std::uint64_t moved_bytes() const;
    // Why the transfer ended early without being cancelled.
    enum class End : std::uint8_t {
        kNotEarly,
        kNoAnswer,
        kRefused,  // The server does not let this client connect any more.
        kQuota,    // An object did not fit the quota.
    };
    End early_end() const { return early_end_; }
    bool gave_up() const { return early_end_ != End::kNotEarly; }

protected:
    struct Item {
        std::string name{};  // The object's name.
        std::string path{};  // The file's path in the local tree. Not set by TreeRemove.
        fop::Fid fid{};
        std::optional<std::uint64_t> size_bytes{};  // None: the server does not know it.
        FileStamp stamp{};                          // The stamp of the file. Set by TreePut only.
        std::uint64_t changed_ns = 0;  // When the object was changed last. Set by TreeGet only.
        bool is_directory = false;     // TreePrune: the item is an empty directory, not a file.
    };
    TreeTransfer(core::Reactor& reactor, TreeWatcher& watcher, Options options);
    ~TreeTransfer() = default;
    TreeTransfer(const TreeTransfer&) = delete;
    TreeTransfer& operator=(const TreeTransfer&) = delete;

    // Returns the next item; nothing: there are no more. Lanes call next() one at a time, and not
    // again after it has returned nothing.
    virtual Task<std::optional<Item>> next() = 0;
    // Stores, fetches or removes the item. Returns true after it has called done(). Returns false
    // after it has called fail(), or if the item is neither done nor a failure, such as one that
    // TreeGet sets aside. Several lanes call move() at the same time.
    virtual Task<bool> move(Item item) = 0;
    // Whether the item exists at the target already, by the rule in Options::Skip. REQUIRES: the
    // options skip something.
    virtual Task<bool> is_there(const Item* item);
    // Reports the item to the watcher and calls done(). Called instead of move() if the transfer
    // only plans.
    virtual Task<void> plan(Item item);

    // Returns the next entry of a local tree; nothing: there are no more. If the walk cannot
    // continue, calls fail() with `name` and returns Failed.
    struct Failed {};
    Task<std::expected<std::optional<LocalEntry>, Failed>> next_entry(LocalWorld world,
                                                                      LocalWalk* walk,
                                                                      std::string name);
    void done(std::uint64_t bytes);
    void fail(TreeFailure failure);
    bool cancelled() const { return options_.cancel.cancelled(); }
    TransferOptions transfer() const;
    ObjectClient::Wait wait() const;

    // While an InFlight exists, moved_bytes() of the tree includes the bytes of the transfer.
    // REQUIRES: the tree and the transfer outlive the InFlight.
    class InFlight {
    public:
        InFlight(TreeTransfer& tree, const Transfer& transfer) : tree_(tree), transfer_(transfer) {
            tree_.in_flight_.insert(&transfer_);
        }
        ~InFlight() { tree_.in_flight_.erase(&transfer_); }
        InFlight(const InFlight&) = delete;
        InFlight& operator=(const InFlight&) = delete;

    private:
        TreeTransfer& tree_;
        const Transfer& transfer_;
    };

    core::Reactor& reactor_;
    TreeWatcher& watcher_;
    const Options options_;

private:
    // The kind of a lane.
    enum class Lane : std::uint8_t {
        kAlways,      // One of Options::objects_in_flight.
        kWhileQuick,  // One of Options::more_in_flight. Begins no object while is_quick_ is false.
    };
    // Takes and moves objects until there are no more, or the transfer ends early.
    Task<void> run_lane(Lane lane);
    // Waits until is_quick_. False: all lanes of the kind kAlways have ended, so the caller ends.
    Task<bool> wait_until_quick();
    // Sets is_quick_ after an object that was begun at `begun`. A failed object is not quick, even
    // if it failed soon.
    void note_speed(Instant begun, bool is_done);
    Task<std::optional<Item>> take_next();

    std::uint64_t objects_ = 0;
    std::uint64_t bytes_ = 0;
    std::uint64_t unchanged_ = 0;
    std::uint64_t taken_ = 0;
    std::set<const Transfer*> in_flight_;
    std::uint32_t unanswered_ = 0;  // Objects without an answer since the last answer.
    End early_end_ = End::kNotEarly;
    bool ended_ = false;
    bool is_taking_ = false;
    core::WaitQueue turns_;
    std::uint32_t lanes_ = 0;  // How many lanes of the kind kAlways have not ended.
    bool is_quick_ = false;    // The object that ended last was moved in less than kQuick.
    core::WaitQueue quick_turns_;
};

// Stores each regular file of a local tree as an object, whose name is the prefix and the path.
class TreePut final : public TreeTransfer {
public:
    // All objects are made like `example`; its name is the prefix.
    TreePut(LocalWorld world, ObjectClient& objects, const LocalTree& tree, NewObject example,
            TreeWatcher& watcher, Options options);
    // Adds stored files to the journal. With Skip::kEqual, a file is skipped if it has not changed
    // since it was added to the journal, and the server still has the unchanged object made of it.
    // REQUIRES: called before run(). The journal outlives the transfer.
    void use(PutJournal& journal) { journal_ = &journal; }
    // Appends the name of the object of each file to `names`, also of files that are skipped or
    // fail. For a file that is not regular, such as a symbolic link to a directory, also appends
    // the name and a slash, which stands for all objects whose names begin so. REQUIRES: called
    // before run(). `names` outlives the transfer.
    void collect(std::vector<std::string>& names) { names_ = &names; }
    // Whether run() has visited the whole tree and could look at each file and directory in it.
    bool has_found_all() const { return has_found_all_; }

private:
    Task<std::optional<Item>> next() override;
    Task<bool> move(Item item) override;
    Task<bool> is_there(const Item* item) override;
    Task<void> plan(Item item) override;
    Task<Outcome<ObjectInfo>> look_up(const std::string& name);
    // Nothing: the object was stored and counted.
    Task<std::optional<TreeFailure>> try_to_move(const Item* item);
    // Stores an object that the quota has refused once: tries again for a while, until the quota
    // does not refuse it any more. Returns nothing if the object was stored, or else the last
    // failure. Only one object at a time tries again: several at once could use up the quota for
    // each other, although each would fit after another one is done.
    Task<std::optional<TreeFailure>> move_when_quota_allows(const Item* item, TreeFailure refused);

    LocalWorld world_;
    ObjectClient& client_;
    const LocalTree& tree_;
    const NewObject example_;
    LocalWalk walk_;
    PutJournal* journal_ = nullptr;
    std::vector<std::string>* names_ = nullptr;
    bool has_found_all_ = false;
    bool has_missed_some_ = false;
    bool waits_for_quota_ = false;  // An object waits for the quota.
    core::WaitQueue quota_turns_;
};

// Fetches the objects of a walk into a local tree. The path of a file is the object's name without
// the prefix of the walk. If there are objects "a" and "a/b", then "a/b" fails, because the file of
// "a" is where the directory of "a/b" would be.
//
// With set_aside(), an object does not fail if a file of another type is at its path or at that of
// its directory: it is added to the list of blocked objects. When the caller has removed such
// files, a second transfer fetches these objects.
class TreeGet final : public TreeTransfer {
public:
    TreeGet(LocalWorld world, ObjectClient& objects, ObjectWalk& walk, LocalTree& tree,
            TreeWatcher& watcher, Options options);
    // Appends the path of the file of each listed object to `paths`, in the order of the names,
    // also of objects that fail. REQUIRES: called before run(). `paths` outlives the transfer.
    void collect(std::vector<std::string>& paths) { paths_ = &paths; }
    // Adds the names of the blocked objects to `blocked`. REQUIRES: called before run(). `blocked`
    // outlives the transfer.
    void set_aside(std::set<std::string>& blocked) { blocked_ = &blocked; }
    // Fetches only the objects with these names. REQUIRES: called before run(). `names` outlives
    // the transfer.
    void fetch_only(const std::set<std::string>& names) { only_ = &names; }
    // Whether run() has come to the end of the walk without a failure of the walk.
    bool has_found_all() const { return has_found_all_; }

private:
    Task<std::optional<Item>> next() override;
    Task<bool> move(Item item) override;
    Task<bool> is_there(const Item* item) override;
    // Adds the object to the list of blocked objects if it is blocked. False: it is not blocked, or
    // there is no list.
    Task<bool> set_aside_if_blocked(const Item* item);
    // Returns the name of an earlier object whose file is where a directory above `path` would be.
    // Nothing: there is none, and `path` is remembered for later calls. REQUIRES: the paths of
    // successive calls ascend, as the names of a walk do.
    std::optional<std::string> find_file_above(const std::string& path);

    LocalWorld world_;
    ObjectClient& client_;
    ObjectWalk& walk_;
    LocalTree& tree_;
    std::vector<std::string>* paths_ = nullptr;
    std::set<std::string>* blocked_ = nullptr;
    const std::set<std::string>* only_ = nullptr;
    bool has_found_all_ = false;
    // The last path that was remembered, and the earlier ones that it begins with, shortest first.
    std::vector<std::string> beginnings_;
};

// Removes the objects of a walk from the server, except those that keep() names.
class TreeRemove final : public TreeTransfer {
public:
    TreeRemove(core::Reactor& reactor, ObjectClient& objects, ObjectWalk& walk,
               TreeWatcher& watcher, Options options);
    // Objects with these names are not removed. A name that ends with a slash keeps all objects
    // whose names begin with it. REQUIRES: called before run(). `names` is sorted in ascending
    // order and outlives the transfer.
    void keep(const std::vector<std::string>& names) { kept_ = &names; }

private:
    Task<std::optional<Item>> next() override;
    Task<bool> move(Item item) override;
    bool is_kept(std::string_view name) const;

    ObjectClient& client_;
    ObjectWalk& walk_;
    const std::vector<std::string>* kept_ = nullptr;
};

// Removes the files of a local tree except those with the given paths, and all empty directories
// except the top one.
class TreePrune final : public TreeTransfer {
public:
    // REQUIRES: `kept` is sorted in ascending order and outlives the transfer.
    TreePrune(LocalWorld world, LocalTree& tree, const std::vector<std::string>& kept,
              TreeWatcher& watcher, Options options);

private:
    Task<std::optional<Item>> next() override;
    Task<bool> move(Item item) override;

    LocalWorld world_;
    LocalTree& tree_;
    const std::vector<std::string>& kept_;
    LocalWalk walk_;
};

}  // namespace fopd::client
