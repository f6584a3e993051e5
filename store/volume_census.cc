#include "store/volume_census.h"

namespace fopd::store {

// Tells the allocator, if there is one, which blocks the extents use, and counts them for their
// owners. The extents come object by object.
class VolumeCensus::ExtentTaker final : public MapVisitor {
public:
    ExtentTaker(VolumeCensus& census, ObjectMap& map, Allocator* space, BadExtents bad_extents)
        : census_(census), map_(map), space_(space), bad_extents_(bad_extents) {}

    Result<void> extent(const StoredExtent& extent) override {
        if (counted_.empty() || counted_.back().fid != extent.fid) {
            counted_.push_back({.fid = extent.fid});
        }
        counted_.back().blocks += extent.count;
        if (space_ == nullptr) return {};
        const Result<void> taken = space_->take({.block = extent.block, .count = extent.count});
        if (bad_extents_ == BadExtents::kIgnored) return {};
        return taken;
    }
    // Looks up the owners here, since a visitor must not use the map while it is called.
    Task<Result<void>> between_turns() override {
        for (const Counted& each : counted_) {
            const Result<void> added = add(each);
            if (!added) co_return added;
        }
        counted_.clear();
        co_return Result<void>{};
    }

private:
    struct Counted {
        Fid fid{};
        std::uint64_t blocks = 0;
    };

    Result<void> add(const Counted& counted) {
        const auto object = map_.find(counted.fid);
        if (!object) return std::unexpected(object.error());
        if (object->has_value()) {
            if (!(*object)->is_released) census_.share_of(**object).blocks += counted.blocks;
            return {};
        }
        const auto upload = map_.find_upload(counted.fid);
        if (!upload) return std::unexpected(upload.error());
        // Blocks of a removed object, which are still to be freed, have no owner.
        if (!upload->has_value()) return {};
        census_.share_of((*upload)->object).blocks += counted.blocks;
        return {};
    }

    VolumeCensus& census_;
    ObjectMap& map_;
    Allocator* const space_;
    const BadExtents bad_extents_;
    std::vector<Counted> counted_;  // In this turn.
};

// Subtracts the blocks in cleared ranges of objects from their owners' blocks.
class VolumeCensus::ClearedCounter final : public MapVisitor {
public:
    ClearedCounter(VolumeCensus& census, ObjectMap& map, BlockCounter& counter,
                   std::uint32_t extents_a_turn)
        : census_(census), map_(map), counter_(counter), extents_a_turn_(extents_a_turn) {}

    Result<void> cleared(const Cleared& cleared) override {
        seen_.push_back(cleared);
        return {};
    }
    Task<Result<void>> between_turns() override {
        for (const Cleared& each : seen_) {
            const auto object = map_.find(each.fid);
            if (!object) co_return std::unexpected(object.error());
            if (!object->has_value() || (*object)->is_released) continue;
            OwnerShare& share = census_.share_of(**object);
            const BlockRange range{.first = each.first, .count = each.end - each.first};
            const BlockCounter::Options options{.which = BlockCounter::Which::kAll,
                                                .extents_a_turn = extents_a_turn_};
            const auto counted = co_await counter_.count(each.fid, range, options);
            if (!counted) co_return std::unexpected(counted.error());
            share.blocks -= counted->blocks;
        }
        seen_.clear();
        co_return Result<void>{};
    }

private:
    VolumeCensus& census_;
    ObjectMap& map_;
    BlockCounter& counter_;
    const std::uint32_t extents_a_turn_;
    std::vector<Cleared> seen_;  // In this turn.
};

// Counts the objects and uploads of each owner, and the blocks of objects that are on tape only.
class VolumeCensus::ObjectCounter final : public MapVisitor {
public:
    explicit ObjectCounter(VolumeCensus& census) : census_(census) {}
    Result<void> object(Fid /*fid*/, const Object& object) override {
        census_.has_released_ = census_.has_released_ || object.is_released;
        OwnerShare& share = census_.share_of(object);
        ++share.objects;
        share.blocks += object.released_blocks;
        return {};
    }
    Result<void> upload(Fid /*fid*/, const Upload& upload) override {
        ++census_.share_of(upload.object).objects;
        return {};
    }

private:
    VolumeCensus& census_;
};

// Counts the copies on each cartridge.
class VolumeCensus::CopyCounter final : public MapVisitor {
public:
    explicit CopyCounter(Copies& copies) : copies_(copies) {}
    Result<void> copy(const Copy& copy) override {
        copies_.count(copy);
        return {};
    }
    Result<void> total(const CartridgeTotal& total) override {
        copies_.count(total);
        return {};
    }

private:
    Copies& copies_;
};

// Counts the stored replies of each client, which come client by client.
class VolumeCensus::ReplyCounter final : public MapVisitor {
public:
    explicit ReplyCounter(VolumeCensus& census)
        : counted_(census.replies_), newest_(census.newest_reply_) {}
    Result<void> reply(const ReplyRecord& record) override {
        newest_ = std::max(newest_, record.made);
        if (counted_.empty() || counted_.back().client != record.key.client) {
            counted_.push_back({.client = record.key.client});
        }
        ++counted_.back().count;
        return {};
    }

private:
    std::vector<ClientReplies>& counted_;
    Duration& newest_;
};

Task<Result<void>> VolumeCensus::take(ObjectMap* map, BlockCounter* counter, Allocator* space,
                                      Options options) {
    ExtentTaker taker(*this, *map, space, options.bad_extents);
    const auto counted = co_await count(map, counter, &taker, options.extents_a_turn);
    if (!counted) co_return counted;
    if (!has_released_) map->set_no_released();
    map->copies().forget_use();
    CopyCounter copies(map->copies());
    for (const KeyKind kind : {KeyKind::kCopy, KeyKind::kTotal}) {
        const auto seen = co_await map->for_each(kind, &copies);
        if (!seen) co_return seen;
    }
    ReplyCounter replies(*this);
    co_return co_await map->for_each(KeyKind::kReply, &replies);
}

Task<Result<void>> VolumeCensus::count_owners(ObjectMap* map, BlockCounter* counter,
                                              std::uint32_t extents_a_turn) {
    ExtentTaker taker(*this, *map, nullptr, BadExtents::kIgnored);
    co_return co_await count(map, counter, &taker, extents_a_turn);
}

Task<Result<void>> VolumeCensus::count(ObjectMap* map, BlockCounter* counter, ExtentTaker* taker,
                                       std::uint32_t extents_a_turn) {
    const auto taken = co_await map->for_each(KeyKind::kExtent, taker);
    if (!taken) co_return taken;
    ClearedCounter cleared(*this, *map, *counter, extents_a_turn);
    const auto subtracted = co_await map->for_each(KeyKind::kCleared, &cleared);
    if (!subtracted) co_return subtracted;
    ObjectCounter objects(*this);
    const auto counted = co_await map->for_each(KeyKind::kObject, &objects);
    if (!counted) co_return counted;
    co_return co_await map->for_each(KeyKind::kUpload, &objects);
}

OwnerShare& VolumeCensus::share_of(const Object& object) {
    OwnerShares& owners = owners_[object.pool];
    const auto found = owners.find(object.owner);
    if (found != owners.end()) return found->second;
    return owners[std::string(object.owner)];
}

}  // namespace fopd::store
