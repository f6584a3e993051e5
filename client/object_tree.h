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
    // Borrowed until take().
    // The names ascend strictly: a list of the server that does not is a failure.
    // After a failure there are no more; all that were known before have been visited.
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
        kFile,     // The words name the file.
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

// A transfer of many objects, with several in flight at a time. Each object is moved as a whole or
// not at all. A failure of one object does not stop the others. An instance makes one transfer.
//
// When the cancel source of the options is cancelled, no more objects are begun, and objects in
// flight are given up. The transfer also ends early when the server has not answered many times in
// a row, when it refuses the session, or, with stops_at_quota, when an object does not fit the
// quota.
class TreeTransfer {
public:
    struct Options {
        std::uint32_t objects_in_flight = 16;
        // So many more objects are in flight while the server answers quickly. Each change waits
        // for a flush of the disk, and all changes that have arrived by then share the flush.
        std::uint32_t more_in_flight = 0;
        Duration patience{30s};  // The time limit of the server for one window of an object.
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
        // The most objects that are moved. Nothing: all.
        std::optional<std::uint64_t> items_max{};
        core::CancelSource& cancel;
    };
    Task<void> run();

    // The objects that were moved so far, and their bytes.
    std::uint64_t objects() const { return objects_; }
    std::uint64_t bytes() const { return bytes_; }
    // Objects that were not moved, because they are there already.
    std::uint64_t unchanged() const { return unchanged_; }
    // The bytes that were moved so far, also those of objects in flight.
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
        std::string path{};  // The file's path below the directory.
        fop::Fid fid{};
        std::optional<std::uint64_t> size_bytes{};  // None: the server does not know it.
        FileStamp stamp{};                          // The file's.
        std::uint64_t changed_ns = 0;               // When the object was changed last.
        bool is_directory = false;                  // An empty one, which is removed.
    };
    TreeTransfer(core::Reactor& reactor, TreeWatcher& watcher, Options options);
    ~TreeTransfer() = default;
    TreeTransfer(const TreeTransfer&) = delete;
    TreeTransfer& operator=(const TreeTransfer&) = delete;

    // Returns the next item; nothing: there are no more. Called again after it has returned.
    virtual Task<std::optional<Item>> next() = 0;
    // Calls done() or fail(). True: done().
    virtual Task<bool> move(Item item) = 0;
    // Whether the item exists at the target already, by the rule in Options::Skip. REQUIRES: the
    // options skip something.
    virtual Task<bool> is_there(const Item* item);
    // Called instead of move() if the transfer only plans.
    virtual Task<void> plan(Item item);

    // The next entry of a local tree; nothing: there are no more. If the walk cannot continue,
    // reports a failure of `name`.
    struct Failed {};
    Task<std::expected<std::optional<LocalEntry>, Failed>> next_entry(LocalWorld world,
                                                                      LocalWalk* walk,
                                                                      std::string name);
    void done(std::uint64_t bytes);
    void fail(TreeFailure failure);
    bool cancelled() const { return options_.cancel.cancelled(); }
    TransferOptions transfer() const;
    ObjectClient::Wait wait() const;

    // Counts the bytes of a transfer while it lasts.
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
    enum class Lane : std::uint8_t {
        kAlways,
        kWhileQuick,  // Pauses while the server is slow, or has not answered yet.
    };
    Task<void> run_lane(Lane lane);
    // False: all other lanes have ended.
    Task<bool> wait_until_quick();
    // A failed object does not count as quick, even if it failed soon.
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
    std::uint32_t lanes_ = 0;  // The lanes that do not pause.
    bool is_quick_ = false;    // The last object was quick.
    core::WaitQueue quick_turns_;
};

// Stores each regular file of a local tree as an object, whose name is the prefix and the path.
class TreePut final : public TreeTransfer {
public:
    // All objects are made like `example`; its name is the prefix.
    TreePut(LocalWorld world, ObjectClient& objects, const LocalTree& tree, NewObject example,
            TreeWatcher& watcher, Options options);
    // Before run(). Files in the journal are skipped with Skip::kEqual, and stored files are added
    // to it.
    void use(PutJournal& journal) { journal_ = &journal; }
    // Before run(). The names of the objects of all files, also of those that are not stored. A
    // name with a slash at its end stands for all objects below it: its path is not a directory but
    // something else, such as a symbolic link to unknown files.
    void collect(std::vector<std::string>& names) { names_ = &names; }
    // Whether all files of the tree were found.
    bool has_found_all() const { return has_found_all_; }

private:
    Task<std::optional<Item>> next() override;
    Task<bool> move(Item item) override;
    Task<bool> is_there(const Item* item) override;
    Task<void> plan(Item item) override;
    Task<Outcome<ObjectInfo>> look_up(const std::string& name);
    // Nothing: the object was stored and counted.
    Task<std::optional<TreeFailure>> try_to_move(const Item* item);
    // Tries again while the quota refuses the object. Only one object at a time does this: several
    // at once could refuse each other although each would fit after another.
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

// Fetches the objects into a local tree. The path of a file is the rest of the name after the
// prefix. If one object has the name of a directory that another one needs, the latter fails.
//
// With set_aside(), an object does not fail if a file of another type is at its path or at that of
// its directory: it is added to the list of blocked objects. When the caller has removed such
// files, a second transfer fetches these objects.
class TreeGet final : public TreeTransfer {
public:
    TreeGet(LocalWorld world, ObjectClient& objects, ObjectWalk& walk, LocalTree& tree,
            TreeWatcher& watcher, Options options);
    // Before run(). The paths of the files of all objects that were listed, in order.
    void collect(std::vector<std::string>& paths) { paths_ = &paths; }
    // Before run(). Adds the names of the blocked objects.
    void set_aside(std::set<std::string>& blocked) { blocked_ = &blocked; }
    // Before run(). Fetches these objects only.
    void fetch_only(const std::set<std::string>& names) { only_ = &names; }
    // Whether all objects were listed.
    bool has_found_all() const { return has_found_all_; }

private:
    Task<std::optional<Item>> next() override;
    Task<bool> move(Item item) override;
    Task<bool> is_there(const Item* item) override;
    // Adds the object to the list of blocked objects if it is blocked. False: it is not blocked, or
    // there is no list.
    Task<bool> set_aside_if_blocked(const Item* item);
    // The object that has the name of a directory of this path. Remembers the path.
    std::optional<std::string> find_file_above(const std::string& path);

    LocalWorld world_;
    ObjectClient& client_;
    ObjectWalk& walk_;
    LocalTree& tree_;
    std::vector<std::string>* paths_ = nullptr;
    std::set<std::string>* blocked_ = nullptr;
    const std::set<std::string>* only_ = nullptr;
    bool has_found_all_ = false;
    // The earlier paths that are the beginning of the last path, in ascending length.
    std::vector<std::string> beginnings_;
};

// Removes the objects.
class TreeRemove final : public TreeTransfer {
public:
    TreeRemove(core::Reactor& reactor, ObjectClient& objects, ObjectWalk& walk,
               TreeWatcher& watcher, Options options);
    // Before run(). Objects with these names stay, and those below a name that ends with a slash.
    // They are sorted, and outlive the transfer.
    void keep(const std::vector<std::string>& names) { kept_ = &names; }

private:
    Task<std::optional<Item>> next() override;
    Task<bool> move(Item item) override;
    bool is_kept(std::string_view name) const;

    ObjectClient& client_;
    ObjectWalk& walk_;
    const std::vector<std::string>* kept_ = nullptr;
};

// Removes the files of a local tree, and its empty directories, except those with the given paths.
class TreePrune final : public TreeTransfer {
public:
    // The paths are sorted, and outlive the transfer.
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
