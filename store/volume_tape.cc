// The part of a volume for tapes: copies of its objects on cartridges, objects with bytes released
// from the disk, and recalls.

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "core/ensure.h"
#include "core/stable_sort.h"
#include "store/volume.h"

namespace fopd::store {

namespace {

constexpr BlockRange kAll{.first = 0, .count = kObjectBlocksMax};

constexpr std::size_t kKeyValueBytes = kRecordHeadBytes + 2;
constexpr std::size_t kCopyRecordBytes = kKeyValueBytes + kCopyKeyBytes + kCopyValueBytes;
constexpr std::size_t kTotalRecordBytes = kKeyValueBytes + kTotalKeyBytes + kTotalValueBytes;
constexpr std::size_t kDropRecordBytes = kKeyValueBytes + kCopyKeyBytes;
constexpr std::size_t kRecallRecordBytes = kKeyValueBytes + kRecallBytesMax;

std::unexpected<Error> invalid(const char* what) {
    return std::unexpected(Error{.code = Errc::kInvalid, .context = what});
}

std::unexpected<Error> busy(const char* what) {
    return std::unexpected(Error{.code = Errc::kBusy, .context = what});
}

std::unexpected<Error> no_object() {
    return std::unexpected(Error{.code = Errc::kNotFound, .context = "there is no such object"});
}

bool by_position(const Copy& one, const Copy& other) {
    return std::pair(one.cartridge, one.position) < std::pair(other.cartridge, other.position);
}

bool have_same_position(const Copy& one, const Copy& other) {
    return one.cartridge.vsn == other.cartridge.vsn && one.position == other.position;
}

class RecallLister final : public MapVisitor {
public:
    Result<void> recall(Fid fid, const Recall& recall) override {
        all.push_back({.fid = fid, .recall = recall});
        return {};
    }

    std::vector<RecallOf> all;
};

}  // namespace

Task<Result<Receipt>> Volume::commit(Change* change, Reservation room) {
    const auto begun = begin(*change, std::move(room), Durability::kDurable, Data::kNone);
    if (!begun) co_return std::unexpected(begun.error());
    co_return co_await finish(change);
}

// -- copies --

// Writes the records of copies, in the turn in which their change begins.
class Volume::CopyRecords {
public:
    // `coming`: the object of all copies, if the same change brings it.
    CopyRecords(ObjectMap& map, RecordWriter& records, const Object* coming = nullptr)
        : map_(map), records_(records), coming_(coming) {}

    // REQUIRES: by ascending key.
    Result<void> add(const Copy& copy);
    void add_totals();
    const CopiesAdded& added() const { return added_; }

private:
    Result<void> count_of_object(Fid fid);

    ObjectMap& map_;
    RecordWriter& records_;
    const Object* const coming_;
    ValueBuffer value_;
    std::map<VsnText, CartridgeTotal> totals_;
    std::optional<Fid> fid_;
    std::size_t copies_of_fid_ = 0;
    CopiesAdded added_;
};

Result<void> Volume::CopyRecords::count_of_object(Fid fid) {
    if (fid == fid_) return {};
    const auto found = map_.copies().find_of(fid);
    if (!found) return found;
    fid_ = fid;
    copies_of_fid_ = map_.copies().found().size();
    return {};
}

Result<void> Volume::CopyRecords::add(const Copy& copy) {
    if (!is_copy_valid(copy)) return invalid("a copy that no object can have");
    const VsnText& vsn = copy.cartridge.vsn;
    const CartridgeUse use = map_.copies().use_of(vsn);
    const bool is_known = use.total_copies > 0 || use.live_copies > 0;
    const bool is_newer = is_known && copy.cartridge.generation > use.cartridge.generation;
    if (is_known && copy.cartridge.generation < use.cartridge.generation) {
        return invalid("the cartridge was formatted since");
    }
    if (is_newer && use.live_copies > 0) return busy("copies of before its format are recorded");
    const auto before = map_.copies().find(key_of(copy));
    if (!before) return std::unexpected(before.error());
    if (before->has_value() && **before == copy) {
        ++added_.live;
        return {};
    }
    const auto owner = map_.copies().at(vsn, copy.position);
    if (!owner) return std::unexpected(owner.error());
    if (*owner && *owner != key_of(copy)) return invalid("another copy lies there");

    auto [total, is_first] = totals_.try_emplace(vsn, CartridgeTotal{.cartridge = copy.cartridge});
    if (is_first && is_known && !is_newer) {
        total->second.copies = use.total_copies;
        total->second.bytes = use.total_bytes;
    }
    if (total->second.cartridge != copy.cartridge) return invalid("two generations of a cartridge");
    ++total->second.copies;
    total->second.bytes += copy.length;

    std::optional<Object> object;
    if (coming_ != nullptr) {
        object = *coming_;
    } else {
        const auto found = map_.find(copy.fid);
        if (!found) return std::unexpected(found.error());
        object = *found;
    }
    if (!object || !is_of_content(copy, *object)) {
        ++added_.dead;
        return {};
    }
    const std::uint64_t size_bytes = object->size_bytes;
    if (copy.end() > size_bytes || (copy.length == 0 && size_bytes > 0)) {
        return invalid("a copy of bytes that its object does not have");
    }
    const bool is_needed = coming_ == nullptr && object->is_released;
    if (is_needed && before->has_value() && copy.end() < (*before)->end()) {
        return busy("a released object needs the longer copy");
    }
    const auto counted = count_of_object(copy.fid);
    if (!counted) return counted;
    if (!before->has_value() && ++copies_of_fid_ > kCopiesOfObjectMax) {
        return invalid("an object of too many copies");
    }
    records_.put(copy_key(key_of(copy)), write_copy(value_, copy));
    ++added_.live;
    return {};
}

void Volume::CopyRecords::add_totals() {
    for (const auto& [vsn, total] : totals_) {
        records_.put(Key::total(vsn), write_total(value_, total));
    }
}

Task<Result<Volume::CopiesAdded>> Volume::add_copies(std::vector<Copy> copies,
                                                     core::WaitOptions wait) {
    ENSURE(copies.size() <= kCopiesAtOnceMax);
    if (copies.empty()) co_return CopiesAdded{.receipt = newest()};
    std::ranges::sort(copies, by_position);
    if (std::ranges::adjacent_find(copies, have_same_position) != copies.end()) {
        co_return invalid("two copies at one position");
    }
    std::ranges::sort(copies, {}, key_of);
    if (std::ranges::adjacent_find(copies, {}, key_of) != copies.end()) {
        co_return invalid("two copies of the same bytes on one cartridge");
    }
    const std::size_t bytes = copies.size() * (kCopyRecordBytes + kTotalRecordBytes);
    // On a full disk too, because objects that have copies may leave it.
    auto room = co_await reserve(static_cast<std::uint32_t>(bytes), wait, Purpose::kCutting);
    if (!room) co_return std::unexpected(room.error());
    Change change;
    CopyRecords records(map_, change.records);
    for (const Copy& each : copies) {
        const auto added = records.add(each);
        if (!added) co_return std::unexpected(added.error());
    }
    records.add_totals();
    CopiesAdded added = records.added();
    if (change.records.count() == 0) {
        // They may have been recorded by a change that is not durable yet.
        added.receipt = newest();
        const auto synced = co_await sync(wait);
        if (!synced) co_return std::unexpected(synced.error());
        co_return added;
    }
    const auto receipt = co_await commit(&change, std::move(*room));
    if (!receipt) co_return std::unexpected(receipt.error());
    added.receipt = *receipt;
    co_return added;
}

Task<Result<void>> Volume::drop_copies(std::vector<CopyKey> copies, Loss loss,
                                       core::WaitOptions wait) {
    ENSURE(copies.size() <= kCopiesAtOnceMax);
    if (copies.empty()) co_return Result<void>{};
    const auto bytes = static_cast<std::uint32_t>(copies.size() * kDropRecordBytes);
    auto room = co_await reserve(bytes, wait, Purpose::kFreeing);
    if (!room) co_return std::unexpected(room.error());
    Change change;
    for (const CopyKey& each : copies) {
        const auto there = map_.copies().find(each);
        if (!there) co_return std::unexpected(there.error());
        if (there->has_value()) change.records.forget(copy_key(each));
    }
    if (change.records.count() == 0) co_return Result<void>{};
    change.grant_ = {.accepts_loss = loss == Loss::kAccepted};
    const auto dropped = co_await commit(&change, std::move(*room));
    if (!dropped) co_return std::unexpected(dropped.error());
    co_return Result<void>{};
}

Task<Result<void>> Volume::forget_cartridge(VsnText vsn, Loss loss, core::WaitOptions wait) {
    for (;;) {
        const auto page = copies_on(vsn, {}, kCopiesAtOnceMax);
        if (!page) co_return std::unexpected(page.error());
        if (page->empty()) break;
        std::vector<CopyKey> keys;
        for (const Copy& each : *page) keys.push_back(key_of(each));
        const auto dropped = co_await drop_copies(std::move(keys), loss, wait);
        if (!dropped) co_return dropped;
    }
    auto room = co_await reserve(kKeyValueBytes + kTotalKeyBytes, wait, Purpose::kFreeing);
    if (!room) co_return std::unexpected(room.error());
    if (!map_.copies().use().contains(vsn)) co_return Result<void>{};
    if (map_.copies().use_of(vsn).live_copies > 0) {
        co_return busy("copies were recorded while the cartridge was forgotten");
    }
    Change change;
    change.records.forget(Key::total(vsn));
    const auto forgotten = co_await commit(&change, std::move(*room));
    if (!forgotten) co_return std::unexpected(forgotten.error());
    co_return Result<void>{};
}

Result<std::vector<Copy>> Volume::copies_of(Fid fid) {
    const auto found = map_.copies().find_of(fid);
    map_.release();
    if (!found) return std::unexpected(found.error());
    return map_.copies().found();
}

// -- released objects --

std::uint32_t Volume::from_tape_bytes(std::size_t copies) {
    return static_cast<std::uint32_t>(kPutRecordBytesMax +
                                      copies * (kCopyRecordBytes + kTotalRecordBytes));
}

Result<void> Volume::put_from_tape(Change& change, Fid fid, const Object& object,
                                   std::vector<Copy> copies) {
    ENSURE(copies.size() <= kCopiesAtOnceMax);
    ENSURE(change.records.count() == 0);
    if (!object.is_released || object.size_bytes == 0) return invalid("no bytes are on tape");
    std::ranges::sort(copies, {}, key_of);
    if (std::ranges::adjacent_find(copies, {}, key_of) != copies.end()) {
        return invalid("two copies of the same bytes on one cartridge");
    }
    std::uint64_t covered = 0;
    for (const Copy& each : copies) {
        const bool fits = each.fid == fid && is_of_content(each, object);
        if (!fits) return invalid("a copy of another content");
        if (each.offset <= covered) covered = std::max(covered, each.end());
    }
    if (covered != object.size_bytes) return invalid("the copies do not have all bytes");
    ValueBuffer value;
    change.records.put(Key::object(fid), write_object(value, object));
    CopyRecords records(map_, change.records, &object);
    for (const Copy& each : copies) {
        const auto added = records.add(each);
        if (!added) return added;
    }
    records.add_totals();
    change.grant_ = {.purpose = ReleasedRules::Grant::Purpose::kFromTape,
                     .fid = fid,
                     .content_version = object.content_version()};
    return {};
}

Result<Object> Volume::released_object(Fid fid) {
    const auto object = map_.find(fid);
    if (!object) return std::unexpected(object.error());
    if (!object->has_value()) return no_object();
    if (!(*object)->is_released) return invalid("the bytes of the object are on the disk");
    return **object;
}

Task<Result<Volume::ReleasedBytes>> Volume::release(Fid fid, std::uint64_t content_version,
                                                    core::WaitOptions wait) {
    auto room = co_await reserve(kPunchRecordBytes + kPutRecordBytesMax, wait, Purpose::kCutting);
    if (!room) co_return std::unexpected(room.error());
    Change change;
    const auto punched = co_await punch(&change, fid, kAll, wait);
    if (!punched) co_return std::unexpected(punched.error());
    // Read in the turn in which the change begins: the name may have changed meanwhile.
    const auto found = map_.find(fid);
    if (!found) co_return std::unexpected(found.error());
    if (!found->has_value()) co_return no_object();
    Object object = **found;
    if (object.is_released || object.size_bytes == 0) co_return invalid("nothing to release");
    if (object.content_version() != content_version) co_return busy("the object has changed");
    object.is_released = true;
    object.released_blocks = *punched;
    ValueBuffer value;
    change.records.put(Key::object(fid), write_object(value, object));
    const auto receipt = co_await commit(&change, std::move(*room));
    if (!receipt) co_return std::unexpected(receipt.error());
    co_return ReleasedBytes{.receipt = *receipt, .blocks = *punched};
}

Task<Result<std::uint64_t>> Volume::drop_parts(Fid fid, core::WaitOptions wait) {
    auto room = co_await reserve(kPunchRecordBytes, wait, Purpose::kFreeing);
    if (!room) co_return std::unexpected(room.error());
    Change change;
    const auto punched = co_await punch(&change, fid, kAll, wait);
    if (!punched) co_return std::unexpected(punched.error());
    const auto object = released_object(fid);
    if (!object) co_return std::unexpected(object.error());
    if (*punched == 0) co_return std::uint64_t{0};
    change.grant_ = {.purpose = ReleasedRules::Grant::Purpose::kParts,
                     .fid = fid,
                     .content_version = object->content_version()};
    const auto dropped = co_await commit(&change, std::move(*room));
    if (!dropped) co_return std::unexpected(dropped.error());
    co_return *punched;
}

Task<Result<BringingBack>> Volume::begin_bringing_back(Fid fid, core::WaitOptions wait) {
    const auto dropped = co_await drop_parts(fid, wait);
    if (!dropped) co_return std::unexpected(dropped.error());
    const auto object = released_object(fid);
    if (!object) co_return std::unexpected(object.error());
    co_return BringingBack(fid, object->content_version(), object->size_bytes);
}

Result<void> Volume::begin_part(BringingBack& attempt, Change& change, BlockRange range,
                                Reservation reservation, Data data) {
    if (change.records.count() == 0) return invalid("a part without blocks");
    RecordReader reader(change.records.bytes());
    for (;;) {
        const auto record = reader.next();
        ENSURE(record.has_value());
        if (!record->has_value()) break;
        const Record& each = **record;
        const bool is_part = each.kind == RecordKind::kExtent && each.fid == attempt.fid() &&
                             each.first >= range.first && each.first + each.count <= range.end();
        if (!is_part) return invalid("a part that has other changes");
    }
    const auto object = map_.find(attempt.fid());
    if (!object) return std::unexpected(object.error());
    if (!object->has_value() || !(*object)->is_released ||
        (*object)->content_version() != attempt.content_version()) {
        return busy("the object has changed");
    }
    change.grant_ = {.purpose = ReleasedRules::Grant::Purpose::kParts,
                     .fid = attempt.fid(),
                     .content_version = attempt.content_version()};
    const auto begun = begin(change, std::move(reservation), Durability::kBuffered, data);
    if (begun) attempt.add(range);
    return begun;
}

Task<Result<Receipt>> Volume::end_bringing_back(BringingBack* attempt, std::optional<Recall> kept,
                                                core::WaitOptions wait) {
    if (!attempt->is_complete()) co_return invalid("parts of the object are missing");
    auto room = co_await reserve(kPutRecordBytesMax + kRecallRecordBytes, wait);
    if (!room) co_return std::unexpected(room.error());
    const Fid fid = attempt->fid();
    const auto found = map_.find(fid);
    if (!found) co_return std::unexpected(found.error());
    const bool is_same = found->has_value() && (*found)->is_released &&
                         (*found)->content_version() == attempt->content_version();
    if (!is_same) co_return busy("the object has changed");
    Object object = **found;
    object.is_released = false;
    object.released_blocks = 0;
    Change change;
    ValueBuffer value;
    change.records.put(Key::object(fid), write_object(value, object));
    const auto recall = map_.find_recall(fid);
    if (!recall) co_return std::unexpected(recall.error());
    if (kept) {
        change.records.put(Key::recall(fid), write_recall(value, *kept));
    } else if (recall->has_value()) {
        change.records.forget(Key::recall(fid));
    }
    change.grant_ = {.purpose = ReleasedRules::Grant::Purpose::kEnd,
                     .fid = fid,
                     .content_version = attempt->content_version()};
    co_return co_await commit(&change, std::move(*room));
}

// -- recalls --

Task<Result<Receipt>> Volume::put_recall(Fid fid, Recall recall, core::WaitOptions wait) {
    if (recall.requester.size() > kPrincipalBytesMax) co_return invalid("a long name");
    auto room = co_await reserve(kRecallRecordBytes, wait);
    if (!room) co_return std::unexpected(room.error());
    const auto object = map_.find(fid);
    if (!object) co_return std::unexpected(object.error());
    if (!object->has_value()) co_return no_object();
    Change change;
    ValueBuffer value;
    change.records.put(Key::recall(fid), write_recall(value, recall));
    co_return co_await commit(&change, std::move(*room));
}

Task<Result<void>> Volume::end_recall(Fid fid, core::WaitOptions wait) {
    const Key key = Key::recall(fid);
    const auto bytes = static_cast<std::uint32_t>(kKeyValueBytes + key.bytes().size());
    auto room = co_await reserve(bytes, wait, Purpose::kFreeing);
    if (!room) co_return std::unexpected(room.error());
    const auto recall = map_.find_recall(fid);
    if (!recall) co_return std::unexpected(recall.error());
    if (!recall->has_value()) co_return Result<void>{};
    Change change;
    change.records.forget(key);
    const auto ended = co_await commit(&change, std::move(*room));
    if (!ended) co_return std::unexpected(ended.error());
    co_return Result<void>{};
}

Task<Result<std::vector<RecallOf>>> Volume::recalls() {
    RecallLister lister;
    const auto listed = co_await map_.for_each(KeyKind::kRecall, &lister);
    if (!listed) co_return std::unexpected(listed.error());
    core::stable_sort(lister.all, std::less{},
                      [](const RecallOf& each) { return each.recall.ticket; });
    co_return std::move(lister.all);
}

}  // namespace fopd::store
