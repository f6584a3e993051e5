#include "objects/object_change.h"

#include <utility>

#include "core/ensure.h"

namespace fopd::objects {

void ObjectChange::clear() {
    ENSURE(allocated_.empty());
    ENSURE(charged_.owner == nullptr);
    ENSURE(!in_flight_.is_counted());
    change_.clear();
    counted_.clear();
    freed_.clear();
    changed_.clear();
    empties_released_ = false;
    block_owner_ = {};
    coming_.reset();
    going_.reset();
}

// -- blocks --

Result<store::DiskRange> ObjectChange::allocate(std::uint32_t blocks) {
    const auto range = volume().allocate(blocks);
    if (range) allocated_.push_back(*range);
    return range;
}

Task<Result<store::DiskRange>> ObjectChange::allocate(std::uint32_t blocks,
                                                      core::WaitOptions wait) {
    auto range = allocate(blocks);
    if (range || range.error().code != Errc::kNoSpace) co_return range;
    const auto settled = co_await volume().settle_space(wait);
    if (!settled) co_return std::unexpected(settled.error());
    co_return allocate(blocks);
}

Task<Result<void>> ObjectChange::allocate_to_free(std::uint32_t count, core::WaitOptions wait) {
    ENSURE(allocated_.empty());
    while (!volume().can_allocate_to_free(count)) {
        const auto settled = co_await volume().settle_space(wait);
        if (!settled) co_return settled;
        if (volume().can_allocate_to_free(count)) break;
        const auto waited = co_await volume().wait_for_blocks(wait);
        if (!waited) co_return std::unexpected(waited.error());
        if (!*waited) {
            co_return std::unexpected(Error{.code = Errc::kNoSpace, .context = "free blocks"});
        }
    }
    for (std::uint32_t i = 0; i < count; ++i) {
        const auto range = volume().allocate(1, store::Purpose::kFreeing);
        if (!range) co_return std::unexpected(range.error());
        allocated_.push_back(*range);
    }
    co_return Result<void>{};
}

void ObjectChange::give_back_first(std::size_t ranges) {
    ENSURE(ranges <= allocated_.size());
    const auto end = allocated_.begin() + static_cast<std::ptrdiff_t>(ranges);
    for (auto range = allocated_.begin(); range != end; ++range) volume().give_back(*range);
    allocated_.erase(allocated_.begin(), end);
}

// -- quota --

DiskUse::Verdict ObjectChange::charge(PoolOwner whose, Amount amount, DiskUse::Scope scope) {
    DiskUse::Owner& account = home_->use().owner(whose);
    ENSURE(charged_.owner == nullptr || charged_.owner == &account);
    const auto verdict = home_->use().take(account, amount, scope);
    if (verdict != DiskUse::Verdict::kTaken) return verdict;
    charged_.owner = &account;
    charged_.amount.blocks += amount.blocks;
    charged_.amount.objects += amount.objects;
    charged_.scope = scope;
    return verdict;
}

Result<std::uint64_t> ObjectChange::count_holes(store::Fid fid, store::BlockRange range,
                                                BlockSet* holes) const {
    std::uint64_t blocks = range.count;
    std::uint64_t next = range.first;
    auto extents = volume().map().extents(fid, range);
    for (;;) {
        const auto extent = extents.next();
        if (!extent) return std::unexpected(extent.error());
        if (!extent->has_value()) break;
        blocks -= (*extent)->count();
        if (holes != nullptr) holes->add({.first = next, .count = (*extent)->first - next});
        next = (*extent)->end();
    }
    if (holes != nullptr) holes->add({.first = next, .count = range.end() - next});
    return blocks;
}

Result<ObjectChange::Counted> ObjectChange::count_in_flight(store::Fid fid, BlockSet wanted) {
    DiskUse::Owner& owner = home_->use().owner(block_owner_);
    WritesInFlight& writes = home_->writes_in_flight();
    if (!writes.counts(owner)) return Counted{};
    BlockSet holes;
    for (const store::BlockRange& each : wanted.ranges()) {
        const auto some = count_holes(fid, each, &holes);
        if (!some) return std::unexpected(some.error());
    }
    return in_flight_.begin(writes, {.owner = &owner, .fid = fid}, std::move(wanted),
                            std::move(holes));
}

ObjectChange::Counted ObjectChange::count_append_in_flight(store::Fid fid,
                                                           const store::ReplyKey& request,
                                                           std::uint64_t blocks) {
    DiskUse::Owner& owner = home_->use().owner(block_owner_);
    WritesInFlight& writes = home_->writes_in_flight();
    if (!writes.counts(owner)) return {};
    return in_flight_.begin_append(writes, {.owner = &owner, .fid = fid}, request, blocks);
}

Result<ObjectChange::ChargedHoles> ObjectChange::charge_holes(store::Fid fid,
                                                              store::BlockRange range) {
    const bool is_counted = in_flight_.is_counted();
    BlockSet holes;
    const auto found = count_holes(fid, range, is_counted ? &holes : nullptr);
    if (!found) return std::unexpected(found.error());
    const std::uint64_t blocks = *found;
    std::uint64_t counted = 0;
    if (is_counted) {
        DiskUse::Owner& owner = home_->use().owner(block_owner_);
        ENSURE(charged_.owner == nullptr || charged_.owner == &owner);
        counted = in_flight_.fill(owner, holes);
        charged_.owner = &owner;
        charged_.amount.blocks += counted;
        grown_ += counted;
    }
    const auto verdict = charge(block_owner_, {.blocks = blocks - counted});
    if (verdict != DiskUse::Verdict::kTaken) {
        return ChargedHoles{.verdict = verdict, .blocks = blocks - counted};
    }
    grown_ += blocks - counted;
    return ChargedHoles{.blocks = blocks};
}

void ObjectChange::will_count(PoolOwner whose, Amount amount) {
    counted_.push_back({.owner = &home_->use().owner(whose), .amount = amount});
}

void ObjectChange::will_free(PoolOwner whose, Amount amount, DiskUse::Scope scope) {
    freed_.push_back({.owner = &home_->use().owner(whose), .amount = amount, .scope = scope});
}

void ObjectChange::give_back() {
    give_back_first(allocated_.size());
    // What other writes in flight add, too, counts for these again.
    charged_.amount.blocks -= in_flight_.unfill();
    in_flight_.end();
    if (charged_.owner != nullptr) {
        home_->use().put_back(*charged_.owner, charged_.amount, charged_.scope);
    }
    charged_ = {};
    grown_ = 0;
}

// -- records --

void ObjectChange::put_object(store::Fid fid, const store::Object& object) {
    change_.records.put(store::Key::object(fid), store::write_object(value_, object));
    changed_.push_back(fid);
}

void ObjectChange::put_upload(store::Fid fid, const store::Upload& upload) {
    change_.records.put(store::Key::upload(fid), store::write_upload(value_, upload));
}

void ObjectChange::put_commit(store::Fid fid, const store::Object& object) {
    change_.records.commit(store::Key::object(fid), store::write_object(value_, object));
    changed_.push_back(fid);
}

Result<void> ObjectChange::put_from_tape(store::Fid fid, const store::Object& object,
                                         std::vector<store::Copy> copies) {
    const auto put = volume().put_from_tape(change_, fid, object, std::move(copies));
    if (put) changed_.push_back(fid);
    return put;
}

void ObjectChange::remove(store::Fid fid) {
    change_.records.remove(fid);
    changed_.push_back(fid);
}

void ObjectChange::put_reply(const store::ReplyRecord& reply) {
    change_.records.put(store::Key::reply(reply.key), store::write_reply(value_, reply));
}

Task<Result<std::uint64_t>> ObjectChange::punch(store::Fid fid, store::BlockRange range,
                                                core::WaitOptions wait) {
    return volume().punch(&change_, fid, range, wait);
}

// -- into the log --

Task<Result<store::Reservation>> ObjectChange::reserve(std::size_t more_bytes,
                                                       core::WaitOptions wait,
                                                       store::Purpose purpose) {
    const auto bytes = static_cast<std::uint32_t>(records_bytes() + more_bytes);
    return volume().reserve(bytes, wait, purpose);
}

Result<void> ObjectChange::begin(store::Reservation reservation, store::Durability durability,
                                 store::Data data) {
    const Result<void> begun = volume().begin(change_, std::move(reservation), durability, data);
    if (!begun) return begun;
    allocated_.clear();
    const auto more = static_cast<std::int64_t>(grown_) - change_.net_blocks();
    ENSURE(more >= 0);
    if (more > 0 && !empties_released_) {
        will_free(block_owner_, {.blocks = static_cast<std::uint64_t>(more)});
    }
    charged_ = {};
    grown_ = 0;
    in_flight_.done();
    for (const Charge& each : counted_) home_->use().add(*each.owner, each.amount);
    counted_.clear();
    if (coming_) home_->note_added(coming_->fid, coming_->pool);
    if (going_) home_->note_removed(going_->fid, going_->pool);
    if (home_->observer() != nullptr) {
        for (const store::Fid fid : changed_) home_->observer()->object_changed(fid);
    }
    changed_.clear();
    return {};
}

Result<void> ObjectChange::begin_part(store::BringingBack& attempt, store::BlockRange range,
                                      store::Reservation reservation, store::Data data) {
    ENSURE(charged_.owner == nullptr);
    const auto begun = volume().begin_part(attempt, change_, range, std::move(reservation), data);
    if (begun) allocated_.clear();
    return begun;
}

Task<Result<void>> ObjectChange::write_data(BlockIo* writes) {
    const auto written = co_await writes->wait();
    volume().data_done(change_, written);
    co_return written;
}

Task<Result<store::Receipt>> ObjectChange::finish() {
    const auto finished = co_await volume().finish(&change_);
    if (!finished) co_return std::unexpected(finished.error());
    for (const Charge& each : freed_) home_->use().put_back(*each.owner, each.amount, each.scope);
    freed_.clear();
    co_return *finished;
}

Task<Result<store::Receipt>> ObjectChange::commit(store::Reservation reservation) {
    const auto begun =
        begin(std::move(reservation), store::Durability::kDurable, store::Data::kNone);
    if (!begun) co_return std::unexpected(begun.error());
    co_return co_await finish();
}

}  // namespace fopd::objects
