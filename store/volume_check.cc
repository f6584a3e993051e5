#include "store/volume_check.h"

#include <algorithm>
#include <utility>

#include "store/record.h"

namespace fopd::store {

using Found = VolumeView::Found;

namespace {

constexpr std::uint32_t kSegmentsATurn = 64;
constexpr Duration kLookAgainAfter = 1s;
constexpr std::uint64_t kPaidAtOnce = 1UL << 20;

bool has_kind(const IndexEntry& entry, KeyKind kind) {
    return entry.key.front() == static_cast<std::byte>(kind);
}

std::string with_reason(const char* what, const char* reason) {
    return std::string(what) + ": " + reason;
}

}  // namespace

VolumeCheck::VolumeCheck(Volume& volume, const VolumeCheckOptions& options)
    : volume_(volume.view()),
      options_(options),
      served_(volume.serving()),
      owners_(volume_.space()),
      claim_check_(volume_, options.cancel),
      copy_check_(volume_) {}

VolumeCheck::~VolumeCheck() {
    volume_.watch_space(nullptr);
}

Task<Result<void>> VolumeCheck::run() {
    LogVisitor* const visitor = this;
    const auto looked = co_await volume_.look_through_log(visitor, {.cancel = options_.cancel});
    if (!looked) co_return looked;
    stage_ = "index";
    Position all{.from = {std::byte{1}}, .to = {std::byte{0xff}}};
    const auto walked = co_await walk(std::move(all), Pass::kFirst);
    if (!walked) co_return walked;
    stage_ = "space";
    const auto again = co_await walk_again();
    if (!again) co_return again;
    const auto shared = co_await judge_shared();
    if (!shared) co_return shared;
    const auto unowned = co_await judge_unowned();
    if (!unowned) co_return unowned;
    const auto counted = co_await check_counts();
    if (!counted) co_return counted;
    stage_ = "names";
    co_return co_await judge_known_claims();
}

void VolumeCheck::find(CheckFinding finding) {
    ++report_.finding_count;
    if (report_.findings.size() < CheckReport::kFindingsMax) {
        report_.findings.push_back(std::move(finding));
    }
}

Result<void> VolumeCheck::check_wanted() const {
    if (options_.cancel != nullptr && options_.cancel->cancelled()) {
        return std::unexpected(Error{.code = Errc::kCancelled, .context = "check of a disk"});
    }
    // The map of a failed volume has changes that are not in its log.
    if (served_ && !volume_.serving()) return std::unexpected(volume_.failure());
    return {};
}

Task<Result<void>> VolumeCheck::pause() {
    co_await volume_.reactor().yield();
    co_return check_wanted();
}

// -- the log --

Task<Result<void>> VolumeCheck::entry(LogEntry entry, std::uint64_t block) {
    ++report_.log_entries;
    std::uint32_t count = 0;
    const char* problem = nullptr;
    RecordReader reader(entry.payload);
    for (;;) {
        const auto record = reader.next();
        if (!record) problem = record.error().context;
        if (!record || !record->has_value()) break;
        ++count;
    }
    report_.log_records += count;
    if (problem == nullptr && count != entry.record_count)
        problem = "has another number of records";
    if (problem != nullptr) {
        find({.reason = with_reason("an entry of the log", problem),
              .range = DiskRange{.block = block, .count = 1},
              .entry = entry.seq});
    }
    paid_bytes_ += entry.payload.size();
    if (paid_bytes_ >= kPaidAtOnce) {
        const auto share = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(
            static_cast<double>(paid_bytes_) / static_cast<double>(options_.bytes_per_second)));
        paid_bytes_ = 0;
        const auto slept = co_await volume_.reactor().sleep_for(share, options_.cancel);
        if (!slept) co_return slept;
    }
    co_await volume_.reactor().maybe_yield();
    co_return check_wanted();
}

void VolumeCheck::fault(const LogFault& fault) {
    if (fault.first_seq == 0) {
        find({.reason = with_reason("a superblock of the log", fault.reason),
              .range = DiskRange{.block = fault.block, .count = 1}});
        return;
    }
    CheckFinding finding{.reason = with_reason("an entry of the log", fault.reason),
                         .entry = fault.first_seq};
    if (fault.last_seq > fault.first_seq) {
        finding.reason += "; nothing is known of those up to " + std::to_string(fault.last_seq);
    }
    if (fault.block != 0) finding.range = DiskRange{.block = fault.block, .count = 1};
    find(std::move(finding));
}

// -- walks through the index --

Task<Result<void>> VolumeCheck::walk(Position position, Pass pass) {
    for (bool more = true; more;) {
        const auto some = walk_some(position, pass);
        volume_.release();
        const auto judged = some ? judge(pass) : std::unexpected(some.error());
        volume_.release();
        if (!judged) {
            // The rest of the index is unknown, so blocks without an owner cannot be told.
            walked_all_ = false;
            find({.reason = with_reason("the index cannot be read", judged.error().context)});
            break;
        }
        more = *some;
        const auto named = co_await judge_claims_of_objects();
        if (!named) co_return named;
        const auto wanted = co_await pause();
        if (!wanted) co_return wanted;
    }
    co_return Result<void>{};
}

Result<bool> VolumeCheck::walk_some(Position& position, Pass pass) {
    seen_.clear();
    seen_objects_.clear();
    seen_cleared_.clear();
    copy_check_.forget();
    auto found = volume_.at_or_after({.from = position.from, .to = position.to});
    for (std::uint32_t count = 1;; ++count) {
        if (!found) return std::unexpected(found.error());
        const bool end = *found == Found::kNothing;
        const IndexEntry& entry = volume_.entry();
        const bool behind_objects = end || entry.key.front() > std::byte{'o'};
        if (pass == Pass::kFirst && behind_objects && !std::exchange(objects_seen_, true)) {
            if (options_.objects != nullptr) options_.objects->all_seen();
        }
        if (end) return false;
        if (*found == Found::kEntry) {
            const auto seen = pass == Pass::kFirst ? see(entry) : see_extent(entry);
            if (!seen && pass == Pass::kFirst) see_unreadable(entry, seen.error());
        }
        if (count == kEntriesATurn || *found == Found::kErasedKeys) {
            position.from.assign(entry.key.begin(), entry.key.end());
            position.from.push_back(std::byte{0});
            return true;
        }
        found = volume_.next();
    }
}

Result<void> VolumeCheck::see(const IndexEntry& entry) {
    switch (static_cast<KeyKind>(entry.key.front())) {
        case KeyKind::kExtent: return see_extent(entry);
        case KeyKind::kObject: return see_object(entry);
        case KeyKind::kReply: return see_reply(entry);
        case KeyKind::kCopy: ++report_.copies; return copy_check_.see(entry);
        case KeyKind::kRecall: ++report_.recalls; return copy_check_.see(entry);
        case KeyKind::kPosition:
        case KeyKind::kTotal: return copy_check_.see(entry);
        case KeyKind::kUpload: {
            ++report_.uploads;
            const auto fid = read_fid_key(KeyKind::kUpload, entry.key);
            if (!fid) return std::unexpected(fid.error());
            const auto upload = read_upload(entry.value);
            if (!upload) return std::unexpected(upload.error());
            seen_objects_.push_back(*fid);
            return {};
        }
        case KeyKind::kCleared: {
            ++report_.cleared;
            const auto cleared = read_cleared(entry.key, entry.value);
            if (!cleared) return std::unexpected(cleared.error());
            seen_cleared_.push_back(*cleared);
            return {};
        }
        case KeyKind::kNames: {
            const auto newest = read_newest_name(entry.value);
            if (!newest) return std::unexpected(newest.error());
            if (std::ranges::equal(entry.key, Key::names().bytes())) return {};
            break;
        }
    }
    return std::unexpected(Error{.code = Errc::kCorrupt, .context = "a key of no known kind"});
}

Result<void> VolumeCheck::see_extent(const IndexEntry& entry) {
    const auto extent = read_extent(entry.key, entry.value);
    if (!extent) {
        walked_all_ = false;
        return std::unexpected(extent.error());
    }
    seen_.push_back({.fid = extent->fid,
                     .first = extent->first,
                     .block = extent->block,
                     .count = extent->count});
    return {};
}

Result<void> VolumeCheck::see_object(const IndexEntry& entry) {
    ++report_.objects;
    const auto fid = read_fid_key(KeyKind::kObject, entry.key);
    if (!fid) return std::unexpected(fid.error());
    const auto object = read_object(entry.value);
    if (options_.objects != nullptr) options_.objects->seen(*fid, object ? &*object : nullptr);
    if (!object) return std::unexpected(object.error());
    seen_objects_.push_back(*fid);
    if (object->is_released) copy_check_.see_released(*fid);
    if (object->name.empty() || volume_.names() == nullptr) return {};
    claims_.push_back({.pool = object->pool,
                       .name = std::string(object->name),
                       .version = object->name_version,
                       .fid = *fid});
    return {};
}

Result<void> VolumeCheck::see_reply(const IndexEntry& entry) {
    ++report_.replies;
    const auto record = read_reply(entry.key, entry.value);
    if (!record) return std::unexpected(record.error());
    if (options_.check_reply == nullptr) return {};
    return options_.check_reply(record->reply);
}

void VolumeCheck::see_unreadable(const IndexEntry& entry, const Error& error) {
    CheckFinding finding{.reason = with_reason("an entry of the index", error.context)};
    if (has_kind(entry, KeyKind::kExtent)) {
        if (const auto key = read_extent_key(entry.key); key) {
            finding.object = key->fid;
            finding.object_block = key->first;
        }
    } else if (const auto cleared = read_cleared_key(entry.key); cleared) {
        finding.object = cleared->fid;
    } else if (const auto fid = read_fid_key(static_cast<KeyKind>(entry.key.front()), entry.key);
               fid) {
        finding.object = *fid;
    }
    find(std::move(finding));
}

// -- judging the entries of a turn, in the same turn --

Result<void> VolumeCheck::judge(Pass pass) {
    if (pass == Pass::kSecond) {
        for (const SeenExtent& extent : seen_) {
            shared_.note_holder(extent);
            owners_.set_owned(extent.range());
        }
        return {};
    }
    const auto judged = judge_extents();
    if (!judged) return judged;
    for (const Fid fid : seen_objects_) {
        const auto object = judge_object(fid);
        if (!object) return object;
    }
    for (const Cleared& cleared : seen_cleared_) {
        const auto one = judge_cleared(cleared);
        if (!one) return one;
    }
    std::vector<CheckFinding> findings;
    const auto copies = copy_check_.judge(findings);
    for (CheckFinding& each : findings) find(std::move(each));
    return copies;
}

Result<void> VolumeCheck::judge_extents() {
    std::optional<Owner> owner;
    const SeenExtent* before = last_.count > 0 ? &last_ : nullptr;
    for (const SeenExtent& extent : seen_) {
        const bool is_same = before != nullptr && before->fid == extent.fid;
        if (!owner || !is_same) {
            const auto found = owner_of(extent.fid);
            if (!found) return std::unexpected(found.error());
            owner = *found;
        }
        const auto judged = judge_extent(extent, *owner);
        if (!judged) return judged;
        if (is_same && before->end() > extent.first) {
            const auto overlap = overlaps(*before, extent);
            if (!overlap) return std::unexpected(overlap.error());
            if (*overlap) {
                find({.reason = "an extent overlaps the one before it",
                      .object = extent.fid,
                      .object_block = extent.first,
                      .range = extent.range()});
            }
        }
        before = &extent;
    }
    if (!seen_.empty()) last_ = SeenExtent(seen_.back());
    return {};
}

Result<void> VolumeCheck::judge_extent(const SeenExtent& extent, const Owner& owner) {
    ++report_.extents;
    report_.blocks += extent.count;
    const char* problem = nullptr;
    std::uint64_t wrong_from = extent.first;
    if (owner.kind == Owner::Kind::kNone) {
        problem = "an extent of no object";
    } else if (owner.kind == Owner::Kind::kObject && extent.end() > owner.end_block) {
        problem = "an extent behind the end of its object";
        wrong_from = std::max(extent.first, owner.end_block);
    }
    if (problem != nullptr) {
        const auto cleared = is_cleared(extent, wrong_from);
        if (!cleared) return std::unexpected(cleared.error());
        if (*cleared) problem = nullptr;
    }
    if (problem != nullptr) {
        find({.reason = problem,
              .object = extent.fid,
              .object_block = extent.first,
              .range = extent.range()});
    }
    if (const auto fault = volume_.space().fault_of(extent.range()); fault) {
        find({.reason = std::string("a block of an extent ") + fault->reason,
              .object = extent.fid,
              .object_block = extent.first + (fault->block - extent.block),
              .range = DiskRange{.block = fault->block, .count = 1}});
    }
    count_owned(extent);
    return {};
}

// Whether a cleared range covers the extent from this block on.
Result<bool> VolumeCheck::is_cleared(const SeenExtent& extent, std::uint64_t from) {
    const Key to = Key::cleared(extent.fid, kObjectBlocksMax);
    auto found = volume_.at_or_after({.from = Key::cleared(extent.fid, extent.end()), .to = to});
    for (;; found = volume_.next()) {
        if (!found) return std::unexpected(found.error());
        if (*found == Found::kNothing) return false;
        if (*found == Found::kErasedKeys) continue;
        const auto cleared = read_cleared(volume_.entry().key, volume_.entry().value);
        if (cleared && cleared->first <= from) return true;
    }
}

// Looks up the extent before again, which may be from an earlier turn.
Result<bool> VolumeCheck::overlaps(const SeenExtent& before, const SeenExtent& extent) {
    const Key key = Key::extent(before.fid, before.first);
    const auto value = volume_.get(key);
    if (!value) return std::unexpected(value.error());
    if (!*value) return false;
    const auto now = read_extent(key, **value);
    return now && now->end() > extent.first;
}

Result<VolumeCheck::Owner> VolumeCheck::owner_of(Fid fid) {
    const auto object = volume_.get(Key::object(fid));
    if (!object) return std::unexpected(object.error());
    if (*object) {
        // The end of a damaged object, which is a finding of its own, is unknown.
        const auto read = read_object(**object);
        const std::uint64_t bytes = read ? read->size_bytes : kObjectBytesMax;
        return Owner{.kind = Owner::Kind::kObject, .end_block = (bytes + 4095) / 4096};
    }
    const auto upload = volume_.get(Key::upload(fid));
    if (!upload) return std::unexpected(upload.error());
    if (*upload) return Owner{.kind = Owner::Kind::kUpload};
    return Owner{};
}

Result<void> VolumeCheck::judge_object(Fid fid) {
    unsigned kinds = 0;
    for (const Key& key : {Key::object(fid), Key::upload(fid)}) {
        const auto value = volume_.get(key);
        if (!value) return std::unexpected(value.error());
        if (*value) ++kinds;
    }
    const char* problem = nullptr;
    if (fid.slot() != volume_.slot()) problem = "an object of another disk";
    if (kinds > 1) problem = "it is an object and an upload";
    if (problem != nullptr) find({.reason = problem, .object = fid});
    return {};
}

// Cleared ranges of removed objects may overlap.
Result<void> VolumeCheck::judge_cleared(const Cleared& cleared) {
    const Fid fid = cleared.fid;
    if (fid.slot() != volume_.slot())
        find({.reason = "a cleared range of another disk", .object = fid});
    const auto object = volume_.get(Key::object(fid));
    if (!object) return std::unexpected(object.error());
    if (!*object) return {};
    const Key to = Key::cleared(fid, kObjectBlocksMax);
    const auto found = volume_.past_erased(
        volume_.at_or_after({.from = Key::cleared(fid, cleared.end + 1), .to = to}));
    if (!found) return std::unexpected(found.error());
    if (*found == Found::kNothing) return {};
    const auto next = read_cleared(volume_.entry().key, volume_.entry().value);
    if (next && next->first <= cleared.end) {
        find({.reason = "cleared ranges overlap", .object = fid, .object_block = next->first});
    }
    return {};
}

// -- which extents have a block --

void VolumeCheck::count_owned(const SeenExtent& extent) {
    const DiskRange range = extent.range();
    for (std::uint64_t block = range.block; block < range.block + range.count; ++block) {
        if (owners_.covers(block) && owners_.is_owned(block)) shared_.add(block);
    }
    owners_.set_owned(range);
}

// Blocks allocated since the walk began are marked already.
void VolumeCheck::settled(DiskRange range) {
    for (std::uint64_t block = range.block; block < range.block + range.count; ++block) {
        if (!owners_.is_owned(block) && promised_before_ > 0) --promised_before_;
    }
    owners_.set_owned(range);
}

Task<Result<void>> VolumeCheck::forget_owned() {
    for (std::size_t word = 0; word < owners_.words(); word += BlockOwners::kWordsATurn) {
        owners_.forget(word);
        const auto wanted = co_await pause();
        if (!wanted) co_return wanted;
    }
    co_return Result<void>{};
}

// Marks the blocks that extents have, or that are allocated or freed meanwhile.
Task<Result<void>> VolumeCheck::walk_again() {
    shared_.join();
    const auto forgotten = co_await forget_owned();
    if (!forgotten) co_return forgotten;
    volume_.watch_space(this);
    promised_before_ = volume_.space().promised_blocks();
    const Key from = Key::first_of(KeyKind::kExtent);
    const Key to = Key::last_of(KeyKind::kExtent);
    Position extents{.from = {from.bytes().begin(), from.bytes().end()},
                     .to = {to.bytes().begin(), to.bytes().end()}};
    co_return co_await walk(std::move(extents), Pass::kSecond);
}

Task<Result<void>> VolumeCheck::judge_shared() {
    shared_.sort_holders();
    for (const DiskRange range : shared_.ranges()) {
        auto judged = shared_.judge(range, volume_);
        volume_.release();
        if (!judged) co_return std::unexpected(judged.error());
        if (*judged) find(**std::move(judged));
        const auto wanted = co_await pause();
        if (!wanted) co_return wanted;
    }
    co_return Result<void>{};
}

// -- blocks without an owner --

Task<Result<void>> VolumeCheck::judge_unowned() {
    if (!walked_all_) co_return Result<void>{};
    volume_.space().each_waiting([this](DiskRange range) { owners_.set_owned(range); });
    for (std::size_t word = 0; word < owners_.words(); word += BlockOwners::kWordsATurn) {
        owners_.look_for_unowned(word);
        const auto wanted = co_await pause();
        if (!wanted) co_return wanted;
    }
    // A block without an owner may be one that was allocated before the walk and gets its record
    // soon, as long as there are such blocks.
    const Instant end = after(volume_.reactor().now(), options_.patience);
    for (;;) {
        owners_.drop_owned();
        const bool is_certain = owners_.unowned().empty() || promised_before_ == 0;
        if (is_certain || volume_.reactor().now() >= end) break;
        const auto slept = co_await volume_.reactor().sleep_for(kLookAgainAfter, options_.cancel);
        if (!slept) co_return slept;
        const auto wanted = check_wanted();
        if (!wanted) co_return wanted;
    }
    const char* const reason = promised_before_ == 0
                                   ? "blocks in use without an owner"
                                   : "blocks without an owner, or allocated long ago and not used";
    for (const DiskRange range : owners_.unowned()) find({.reason = reason, .range = range});
    volume_.watch_space(nullptr);
    co_return Result<void>{};
}

Task<Result<void>> VolumeCheck::check_counts() {
    for (std::uint32_t segment = 0; segment < volume_.space().segment_count(); ++segment) {
        if (!volume_.space().is_counted_well(segment)) {
            const std::uint32_t blocks = volume_.space().segment_blocks();
            const std::uint64_t first =
                volume_.space().first_block() + std::uint64_t{segment} * blocks;
            find({.reason = "the blocks in use of a segment are counted wrongly",
                  .range = DiskRange{.block = first, .count = blocks}});
        }
        if (segment % kSegmentsATurn != 0) continue;
        const auto wanted = co_await pause();
        if (!wanted) co_return wanted;
    }
    if (!volume_.space().are_sums_right()) {
        find({.reason = "the free space of the disk is counted wrongly"});
    }
    co_return Result<void>{};
}

// -- names --

void VolumeCheck::find_claims(const std::vector<NameClaim>& claims, const char* reason) {
    for (const NameClaim& claim : claims) {
        find({.reason = reason, .object = claim.fid, .name = claim.name});
    }
}

Task<Result<void>> VolumeCheck::judge_claims_of_objects() {
    std::vector<NameClaim> claims = std::exchange(claims_, {});
    const auto unknown = co_await claim_check_.unknown(std::move(claims));
    if (!unknown) co_return std::unexpected(unknown.error());
    find_claims(*unknown, "the name of an object is missing from the index of names");
    co_return Result<void>{};
}

Task<Result<void>> VolumeCheck::judge_known_claims() {
    if (volume_.names() == nullptr) co_return Result<void>{};
    NameSink::ClaimCursor cursor;
    for (bool end = false; !end;) {
        auto page = co_await volume_.names()->claims(volume_.slot(), std::move(cursor));
        if (!page) co_return std::unexpected(page.error());
        report_.names += page->claims.size();
        cursor = std::move(page->next);
        end = page->end;
        const auto unmade = co_await claim_check_.unmade(std::move(page->claims));
        if (!unmade) co_return std::unexpected(unmade.error());
        find_claims(*unmade, "the index of names lists a name that its object does not have");
        const auto wanted = co_await pause();
        if (!wanted) co_return wanted;
    }
    co_return Result<void>{};
}

}  // namespace fopd::store
