// SPDX-License-Identifier: BSD-2-Clause
// The file is long because the transfers of trees share the walk, the lanes and the ways to fail.
#include "client/object_tree.h"

#include <algorithm>
#include <climits>
#include <utility>

#include "client/replaced_file.h"
#include "core/ensure.h"
#include "core/printable.h"
#include "fop/name.h"

namespace fopd::client {

namespace {

// Less than for single objects, as several are in flight. Smaller objects are put in one fop.
constexpr std::uint64_t kTreeWindowBytes = 2U << 20;
constexpr std::uint32_t kTreeLanes = 2;

using Cause = TreeFailure::Cause;

TreeFailure unusable_name(std::string name, std::string_view why) {
    return {.name = std::move(name),
            .cause = Cause::kName,
            .problem = {.status = fop::Status::kMalformed, .words = std::string(why)}};
}

TreeFailure unusable_file(std::string name, std::string words) {
    return {.name = std::move(name),
            .cause = Cause::kFile,
            .problem = {.status = fop::Status::kInternal, .words = std::move(words)}};
}

TreeFailure unmoved(std::string name, Problem problem) {
    return {.name = std::move(name), .cause = Cause::kServer, .problem = std::move(problem)};
}

bool is_over_quota(const TreeFailure& failure) {
    return failure.cause == Cause::kServer && failure.problem.status == fop::Status::kQuota;
}

// How long an object waits for the space of replaced objects, and the pauses between its tries.
constexpr Duration kQuotaPatience = 10s;
constexpr Duration kQuotaPauseMin = 10ms;
constexpr Duration kQuotaPauseMax = 500ms;

// A server that takes longer for an object is not quick: it may limit the rate of the client.
// Shorter than all time limits for fops, so that no fop runs into its limit because of more fops in
// flight.
constexpr Duration kQuick = 250ms;

// The version of an object that was put, until it is changed.
constexpr std::uint64_t kFirstVersion = 1;

// Writes into the journal how far the upload of a file is.
class JournaledUpload final : public UploadWatcher {
public:
    struct File {
        std::string path{};
        FileStamp stamp{};
        std::string group{};
        std::string collection{};
    };
    JournaledUpload(PutJournal& journal, File file) : journal_(journal), file_(std::move(file)) {}

    // The upload of the same file that an earlier run has begun. Null: there is none, or the file
    // has changed.
    const BegunUpload* earlier() const {
        const PutJournal::Begun* const begun = journal_.find_upload(file_.path);
        const bool is_same = begun != nullptr && begun->stamp == file_.stamp &&
                             begun->group == file_.group && begun->collection == file_.collection;
        return is_same ? &begun->upload : nullptr;
    }
    void on_begun(const BegunUpload& upload) override {
        journal_.add_upload(file_.path, {.stamp = file_.stamp,
                                         .group = file_.group,
                                         .collection = file_.collection,
                                         .upload = upload});
    }
    void on_sent(const fop::Fid& fid, UploadedWindow window) override {
        journal_.add_sent(fid, window);
    }

private:
    PutJournal& journal_;
    const File file_;
};

}  // namespace

// -- names --

ObjectWalk::ObjectWalk(core::Reactor& reactor, ObjectClient& objects, Options options)
    : reactor_(reactor), objects_(objects), options_(std::move(options)) {}

Task<Outcome<const ObjectWalk::Entry*>> ObjectWalk::peek() {
    while (next_ == page_.entries.size() && !page_.end) {
        ObjectClient::ListWish wish{
            .pool = options_.pool, .prefix = options_.prefix, .cursor = page_.cursor};
        const Wait wait{.deadline = after(reactor_.now(), options_.patience),
                        .cancel = options_.cancel};
        auto page = co_await objects_.list(std::move(wish), wait);
        next_ = 0;
        if (!page) {
            page_ = {.end = true};
            co_return std::unexpected(std::move(page.error()));
        }
        page_ = std::move(*page);
    }
    const Entry* entry = next_ == page_.entries.size() ? nullptr : &page_.entries[next_];
    if (entry == nullptr) co_return entry;
    const bool is_ours = entry->name.starts_with(options_.prefix);
    const bool ascends = entry->name > last_;
    if (is_ours && ascends) co_return entry;
    page_ = {.end = true};
    next_ = 0;
    if (!is_ours) co_return nonsense();
    co_return failed(fop::Status::kInternal, "the server's list is not in order");
}

ObjectWalk::Entry ObjectWalk::take() {
    ENSURE(next_ < page_.entries.size());
    last_ = page_.entries[next_].name;
    return std::move(page_.entries[next_++]);
}

// -- common to all transfers --

TreeTransfer::TreeTransfer(core::Reactor& reactor, TreeWatcher& watcher, Options options)
    : reactor_(reactor),
      watcher_(watcher),
      options_(options),
      turns_(reactor),
      quick_turns_(reactor) {
    ENSURE(options_.objects_in_flight > 0);
}

TransferOptions TreeTransfer::transfer() const {
    return {.window_bytes = kTreeWindowBytes,
            .lanes = kTreeLanes,
            .patience = options_.patience,
            .cancel = &options_.cancel};
}

ObjectClient::Wait TreeTransfer::wait() const {
    return {.deadline = after(reactor_.now(), options_.patience), .cancel = &options_.cancel};
}

std::uint64_t TreeTransfer::moved_bytes() const {
    std::uint64_t moved = bytes_;
    for (const Transfer* each : in_flight_) moved += each->moved_bytes();
    return moved;
}

Task<void> TreeTransfer::run() {
    core::Gate gate;
    lanes_ = options_.objects_in_flight;
    for (std::uint32_t i = 0; i < options_.objects_in_flight; ++i) {
        reactor_.spawn(gate, run_lane(Lane::kAlways));
    }
    for (std::uint32_t i = 0; i < options_.more_in_flight; ++i) {
        reactor_.spawn(gate, run_lane(Lane::kWhileQuick));
    }
    co_await gate.close(reactor_);  // Every lane ends: its waits have deadlines.
}

Task<bool> TreeTransfer::wait_until_quick() {
    while (!is_quick_ && lanes_ > 0) {
        // No deadline: the other lanes end, as their waits have deadlines.
        [[maybe_unused]] const auto woken = co_await quick_turns_.wait({});
    }
    co_return lanes_ > 0;
}

void TreeTransfer::note_speed(Instant begun, bool is_done) {
    is_quick_ = is_done && reactor_.now() - begun < kQuick;
    if (is_quick_) quick_turns_.wake_all();
}

Task<void> TreeTransfer::run_lane(Lane lane) {
    for (;;) {
        if (lane == Lane::kWhileQuick) {
            const bool goes_on = co_await wait_until_quick();
            if (!goes_on) co_return;
        }
        auto item = co_await take_next();
        if (!item) break;
        if (options_.skip != Options::Skip::kNothing) {
            const bool skipped = co_await is_there(&*item);
            if (skipped) {
                ++unchanged_;
                co_await reactor_.maybe_yield();
                continue;
            }
        }
        if (options_.only_plans) {
            co_await plan(std::move(*item));
            // The server need not be asked for each object.
            co_await reactor_.maybe_yield();
        } else {
            const Instant begun = reactor_.now();
            const bool is_done = co_await move(std::move(*item));
            note_speed(begun, is_done);
        }
    }
    if (lane == Lane::kAlways && --lanes_ == 0) quick_turns_.wake_all();
}

Task<bool> TreeTransfer::is_there(const Item* /*item*/) {
    co_return false;
}

Task<void> TreeTransfer::plan(Item item) {
    watcher_.on_planned({.name = std::move(item.name), .size_bytes = item.size_bytes});
    done(item.size_bytes.value_or(0));
    co_return;
}

Task<std::optional<TreeTransfer::Item>> TreeTransfer::take_next() {
    while (is_taking_) {
        // No deadline: the lane that takes has one.
        [[maybe_unused]] const auto woken = co_await turns_.wait({});
    }
    if (ended_ || gave_up() || cancelled()) co_return std::nullopt;
    if (options_.items_max && taken_ == *options_.items_max) co_return std::nullopt;
    is_taking_ = true;
    auto item = co_await next();
    is_taking_ = false;
    if (item) {
        ++taken_;
    } else {
        ended_ = true;
    }
    turns_.wake_all();
    co_return item;
}

Task<std::expected<std::optional<LocalEntry>, TreeTransfer::Failed>> TreeTransfer::next_entry(
    LocalWorld world, LocalWalk* walk, std::string name) {
    auto job = [walk] { return walk->next(); };
    auto found = co_await world.offload.run(reactor_, job);
    if (found) co_return *std::move(found);
    fail(unusable_file(std::move(name),
                       core::printable(walk->tree().shown({})) + ": " + describe(found.error())));
    co_return std::unexpected(Failed{});
}

void TreeTransfer::done(std::uint64_t bytes) {
    ++objects_;
    bytes_ += bytes;
    unanswered_ = 0;
}

void TreeTransfer::fail(TreeFailure failure) {
    const bool is_of_server = failure.cause == Cause::kServer;
    const bool is_silence = is_of_server && client::is_silence(failure.problem);
    // Not reported: the caller that cancelled the transfer knows why.
    if (is_silence && cancelled()) return;
    // Failures of this machine say nothing about the server.
    if (failure.problem.answered) unanswered_ = 0;
    if (is_silence && ++unanswered_ >= options_.objects_in_flight) early_end_ = End::kNoAnswer;
    if (is_of_server && !failure.problem.answered &&
        failure.problem.status == fop::Status::kDenied) {
        early_end_ = End::kRefused;
    }
    if (options_.stops_at_quota && is_over_quota(failure)) early_end_ = End::kQuota;
    watcher_.on_failure(failure);
}

// -- storing --

TreePut::TreePut(LocalWorld world, ObjectClient& objects, const LocalTree& tree, NewObject example,
                 TreeWatcher& watcher, Options options)
    : TreeTransfer(world.reactor, watcher, options),
      world_(world),
      client_(objects),
      tree_(tree),
      example_(std::move(example)),
      walk_(tree,
            fop::kObjectNameBytesMax - std::min(fop::kObjectNameBytesMax, example_.name.size())),
      quota_turns_(world.reactor) {}

Task<std::optional<TreeTransfer::Item>> TreePut::next() {
    while (!cancelled()) {
        std::string owner = example_.name;
        auto found = co_await next_entry(world_, &walk_, std::move(owner));
        if (!found) break;
        if (!*found) {
            has_found_all_ = !has_missed_some_;
            break;
        }
        LocalEntry entry = std::move(**found);
        std::string name = example_.name + entry.path;
        // A skipped file has a name, too. The files of a directory that failed are not known.
        const bool has_name =
            entry.kind == LocalEntry::Kind::kFile || entry.kind == LocalEntry::Kind::kSkipped;
        if (names_ != nullptr && has_name) names_->push_back(name);
        if (names_ != nullptr && entry.kind == LocalEntry::Kind::kSkipped) {
            names_->push_back(name + "/");
        }
        has_missed_some_ |= entry.kind == LocalEntry::Kind::kFailed;
        switch (entry.kind) {
            case LocalEntry::Kind::kSkipped:
                watcher_.on_skipped(tree_.shown(entry.path), entry.words);
                continue;
            case LocalEntry::Kind::kEmptyDirectory:
                watcher_.on_empty_directory(tree_.shown(entry.path));
                continue;
            case LocalEntry::Kind::kFailed:
                fail(unusable_file(std::move(name), std::move(entry.words)));
                continue;
            case LocalEntry::Kind::kFile: break;
        }
        if (const auto good = fop::check_object_name(name); !good) {
            fail(unusable_name(std::move(name), good.error().context));
            continue;
        }
        Item item{.name = std::move(name),
                  .path = std::move(entry.path),
                  .size_bytes = entry.stamp.size_bytes,
                  .stamp = entry.stamp};
        co_return item;
    }
    co_return std::nullopt;
}

Task<Outcome<ObjectInfo>> TreePut::look_up(const std::string& name) {
    return client_.lookup(example_.pool, name, wait());
}

// An object that is to be new is never there already: that is a failure.
Task<bool> TreePut::is_there(const Item* item) {
    if (example_.no_replace) co_return false;
    fop::Fid stored{};
    // Looked for in any case, so that the journal keeps it.
    const PutJournal::Stored* const known =
        journal_ == nullptr ? nullptr : journal_->find(item->path);
    if (options_.skip == Options::Skip::kEqual) {
        if (known == nullptr || known->stamp != item->stamp) co_return false;
        stored = known->fid;
    }
    const auto info = co_await look_up(item->name);
    // If it cannot be found out, the put will fail and tell.
    if (!info || info->size_bytes != item->stamp.size_bytes) co_return false;
    if (!example_.group.empty() && info->group != example_.group) co_return false;
    if (!example_.collection.empty() && info->collection != example_.collection) co_return false;
    if (options_.skip == Options::Skip::kSameSize) co_return true;
    co_return info->fid == stored && info->version == kFirstVersion;
}

Task<void> TreePut::plan(Item item) {
    if (example_.no_replace) {
        auto info = co_await look_up(item.name);
        if (info) info = failed(fop::Status::kExists, "an object of that name exists already");
        if (info.error().status != fop::Status::kNotFound) {
            fail(unmoved(std::move(item.name), std::move(info.error())));
            co_return;
        }
    }
    co_await TreeTransfer::plan(std::move(item));
}

Task<bool> TreePut::move(Item item) {
    auto failure = co_await try_to_move(&item);
    if (failure && options_.waits_for_quota && is_over_quota(*failure)) {
        TreeFailure refused = *std::move(failure);
        failure = co_await move_when_quota_allows(&item, std::move(refused));
        // The wait was interrupted, so it is not known whether the quota allows the object.
        if (cancelled()) co_return false;
    }
    const bool is_done = !failure;
    if (failure) fail(*std::move(failure));
    co_return is_done;
}

Task<std::optional<TreeFailure>> TreePut::move_when_quota_allows(const Item* item,
                                                                 TreeFailure refused) {
    std::optional<TreeFailure> failure(std::move(refused));
    while (waits_for_quota_) {
        // No deadline: the object that waits gives up after kQuotaPatience.
        [[maybe_unused]] const auto woken = co_await quota_turns_.wait({});
    }
    waits_for_quota_ = true;
    const Instant end = after(reactor_.now(), kQuotaPatience);
    Duration pause = kQuotaPauseMin;
    while (failure && is_over_quota(*failure) && !gave_up() && reactor_.now() < end) {
        const auto slept = co_await reactor_.sleep_for(pause, &options_.cancel);
        if (!slept) break;
        failure = co_await try_to_move(item);
        pause = std::min(pause * 2, kQuotaPauseMax);
    }
    waits_for_quota_ = false;
    quota_turns_.wake_all();
    co_return failure;
}

Task<std::optional<TreeFailure>> TreePut::try_to_move(const Item* item) {
    auto job = [this, item] { return tree_.open_source(world_, item->path); };
    auto opened = co_await world_.offload.run(reactor_, job);
    if (!opened) co_return unmoved(item->name, failed(opened.error()).error());
    if (!*opened) co_return unusable_file(item->name, std::move(opened->error()));
    LocalSource& source = ***opened;
    Put put(reactor_, client_, source, transfer());
    NewObject object = example_;
    object.name = item->name;
    std::optional<JournaledUpload> upload;
    if (journal_ != nullptr && source.is_settled() && !object.no_replace) {
        upload.emplace(*journal_, JournaledUpload::File{.path = item->path,
                                                        .stamp = source.stamp(),
                                                        .group = object.group,
                                                        .collection = object.collection});
        if (const BegunUpload* const earlier = upload->earlier()) put.go_on(*earlier);
        put.watch(*upload);
    }
    const InFlight shown(*this, put);
    auto fid = co_await put.run(std::move(object));
    if (!fid) co_return unmoved(item->name, std::move(fid.error()));
    const auto now = co_await source.check_unchanged(put.size_bytes());
    if (!now) {
        const bool is_of_file = now.error().status == fop::Status::kInternal;
        co_return is_of_file ? unusable_file(item->name, now.error().words)
                             : unmoved(item->name, now.error());
    }
    const FileStamp& stamp = source.stamp();
    if (journal_ != nullptr && source.is_settled() && *now == stamp) {
        journal_->add(item->path, {.stamp = stamp, .fid = *fid});
    }
    done(put.size_bytes());
    co_return std::nullopt;
}

// -- fetching --

TreeGet::TreeGet(LocalWorld world, ObjectClient& objects, ObjectWalk& walk, LocalTree& tree,
                 TreeWatcher& watcher, Options options)
    : TreeTransfer(world.reactor, watcher, options),
      world_(world),
      client_(objects),
      walk_(walk),
      tree_(tree) {}

Task<std::optional<TreeTransfer::Item>> TreeGet::next() {
    for (;;) {
        auto found = co_await walk_.peek();
        if (!found) fail(unmoved(walk_.prefix(), std::move(found.error())));
        has_found_all_ = found && *found == nullptr;
        if (!found || *found == nullptr) co_return std::nullopt;
        ObjectWalk::Entry entry = walk_.take();
        if (only_ != nullptr && !only_->contains(entry.name)) continue;
        std::string path = entry.name.substr(walk_.prefix().size());
        if (paths_ != nullptr) paths_->push_back(path);
        // The server is not trusted to give the names of objects only.
        const std::string_view fault = fault_of_path(path);
        if (!fault.empty()) {
            fail(unusable_name(std::move(entry.name),
                               "it cannot be the name of a file: " + std::string(fault)));
            continue;
        }
        if (const auto file = find_file_above(path)) {
            fail(unusable_name(std::move(entry.name), "the object " + core::printable(*file) +
                                                          " is a file there, not a directory"));
            continue;
        }
        Item item{.name = std::move(entry.name), .path = std::move(path)};
        if (entry.size_bytes != fop::kSizeUnknown) item.size_bytes = entry.size_bytes;
        item.changed_ns = entry.changed_ns;
        co_return item;
    }
}

// A file that was fetched has the time at which its object was changed last.
Task<bool> TreeGet::is_there(const Item* item) {
    if (!item->size_bytes) co_return false;
    auto job = [this, item] { return tree_.look(item->path); };
    const auto looked = co_await world_.offload.run(reactor_, job);
    if (!looked || !*looked) co_return false;
    const FileStamp& stamp = **looked;
    if (stamp.size_bytes != *item->size_bytes) co_return false;
    co_return options_.skip == Options::Skip::kSameSize ||
        stamp.modified_ns == static_cast<std::int64_t>(item->changed_ns);
}

std::optional<std::string> TreeGet::find_file_above(const std::string& path) {
    // Names ascend: a prefix of neither this path nor a later one is dropped.
    while (!beginnings_.empty() && !path.starts_with(beginnings_.back())) beginnings_.pop_back();
    const auto file = std::ranges::find_if(beginnings_, [&path](const std::string& beginning) {
        return path.size() > beginning.size() && path[beginning.size()] == '/';
    });
    if (file != beginnings_.end()) return walk_.prefix() + *file;
    beginnings_.push_back(path);
    return std::nullopt;
}

Task<bool> TreeGet::set_aside_if_blocked(const Item* item) {
    if (blocked_ == nullptr) co_return false;
    auto job = [this, item] { return tree_.is_blocked(item->path); };
    const auto is_blocked = co_await world_.offload.run(reactor_, job);
    if (!is_blocked || !*is_blocked) co_return false;
    blocked_->insert(item->name);
    co_return true;
}

Task<bool> TreeGet::move(Item item) {
    std::string name = item.name;
    std::string pool = walk_.pool();
    auto info = co_await client_.lookup(std::move(pool), std::move(name), wait());
    if (!info) {
        fail(unmoved(std::move(item.name), std::move(info.error())));
        co_return false;
    }
    auto job = [this, &item] { return tree_.open_sink(world_, item.path); };
    auto opened = co_await world_.offload.run(reactor_, job);
    if (!opened) {
        fail(unmoved(std::move(item.name), failed(opened.error()).error()));
        co_return false;
    }
    if (!*opened) {
        const bool is_later = co_await set_aside_if_blocked(&item);
        if (!is_later) fail(unusable_file(std::move(item.name), std::move(opened->error())));
        co_return false;
    }
    LocalSink& sink = ***opened;
    Get get(reactor_, client_, sink, transfer());
    const InFlight shown(*this, get);
    const fop::Range whole{.offset = 0, .length = info->size_bytes};
    auto got = co_await get.run(info->fid, whole);
    if (got && *got != info->size_bytes) {
        got = failed(fop::Status::kTryAgain, "it became shorter in the meantime");
    }
    if (!got) {
        fail(unmoved(std::move(item.name), std::move(got.error())));
        co_return false;
    }
    sink.set_modified(info->changed_ns);
    auto end = [this, &sink] { return tree_.finish(sink); };
    auto finished = co_await world_.offload.run(reactor_, end);
    if (!finished) {
        fail(unmoved(std::move(item.name), failed(finished.error()).error()));
        co_return false;
    }
    if (!*finished) {
        fail(unusable_file(std::move(item.name), std::move(finished->error().words)));
        co_return false;
    }
    done(*got);
    co_return true;
}

// -- removing --

TreeRemove::TreeRemove(core::Reactor& reactor, ObjectClient& objects, ObjectWalk& walk,
                       TreeWatcher& watcher, Options options)
    : TreeTransfer(reactor, watcher, options), client_(objects), walk_(walk) {}

Task<std::optional<TreeTransfer::Item>> TreeRemove::next() {
    ObjectWalk::Entry entry;
    do {
        auto found = co_await walk_.peek();
        if (!found) fail(unmoved(walk_.prefix(), std::move(found.error())));
        if (!found || *found == nullptr) co_return std::nullopt;
        entry = walk_.take();
    } while (is_kept(entry.name));
    Item item{.name = std::move(entry.name), .fid = entry.fid};
    if (entry.size_bytes != fop::kSizeUnknown) item.size_bytes = entry.size_bytes;
    co_return item;
}

bool TreeRemove::is_kept(std::string_view name) const {
    if (kept_ == nullptr) return false;
    if (std::ranges::binary_search(*kept_, name)) return true;
    for (std::size_t slash = name.find('/'); slash != name.npos;
         slash = name.find('/', slash + 1)) {
        if (std::ranges::binary_search(*kept_, name.substr(0, slash + 1))) return true;
    }
    return false;
}

Task<bool> TreeRemove::move(Item item) {
    std::string from = item.name;
    auto removed = co_await client_.remove(item.fid, std::move(from), wait());
    if (!removed) {
        fail(unmoved(std::move(item.name), std::move(removed.error())));
        co_return false;
    }
    done(item.size_bytes.value_or(0));
    co_return true;
}

// -- removing local files --

TreePrune::TreePrune(LocalWorld world, LocalTree& tree, const std::vector<std::string>& kept,
                     TreeWatcher& watcher, Options options)
    : TreeTransfer(world.reactor, watcher, options),
      world_(world),
      tree_(tree),
      kept_(kept),
      walk_(tree, PATH_MAX) {}

Task<std::optional<TreeTransfer::Item>> TreePrune::next() {
    while (!cancelled()) {
        std::string unnamed;
        auto found = co_await next_entry(world_, &walk_, std::move(unnamed));
        if (!found || !*found) break;
        LocalEntry entry = std::move(**found);
        if (entry.kind == LocalEntry::Kind::kFailed) {
            fail(unusable_file(std::move(entry.path), std::move(entry.words)));
            continue;
        }
        const bool is_directory = entry.kind == LocalEntry::Kind::kEmptyDirectory;
        const bool is_top = entry.path.empty();
        if (is_top || (!is_directory && std::ranges::binary_search(kept_, entry.path))) continue;
        Item item{.name = tree_.shown(entry.path), .path = std::move(entry.path)};
        if (entry.kind == LocalEntry::Kind::kFile) item.size_bytes = entry.stamp.size_bytes;
        item.is_directory = is_directory;
        co_return item;
    }
    co_return std::nullopt;
}

Task<bool> TreePrune::move(Item item) {
    auto job = [this, &item] {
        return tree_.remove(
            item.path, item.is_directory ? LocalTree::What::kDirectory : LocalTree::What::kFile);
    };
    const auto os_errno = co_await world_.offload.run(reactor_, job);
    if (!os_errno) {
        fail(unusable_file(item.path,
                           core::printable(item.name) + ": " + describe(os_errno.error())));
        co_return false;
    }
    if (*os_errno != 0) {
        fail(unusable_file(item.path, file_words(item.name, *os_errno)));
        co_return false;
    }
    done(item.size_bytes.value_or(0));
    co_return true;
}

}  // namespace fopd::client
