// SPDX-License-Identifier: BSD-2-Clause
#include "client/object_client.h"

#include <algorithm>
#include <array>
#include <utility>

#include "client/chunks.h"
#include "core/ensure.h"
#include "fop/listing.h"
#include "fop/range.h"

namespace fopd::client {

namespace {

ObjectInfo info_of(const fop::Attributes& from) {
    return {.fid = from.fid,
            .size_bytes = from.size_bytes,
            .version = from.version,
            .created_ns = from.created_ns,
            .changed_ns = from.changed_ns,
            .allocated_bytes = from.allocated_bytes,
            .incarnation = from.incarnation,
            .owner = std::string(from.owner),
            .group = std::string(from.group),
            .name = std::string(from.name),
            .mode = from.mode,
            .collection = std::string(from.collection)};
}

// The results are the numbers of bytes that were read.
class ReadChunks final : public Chunks {
public:
    ReadChunks(Slots& slots, BufferedWrites& writes, fop::Fid fid, fop::Range whole,
               std::span<std::byte> into, Wait wait)
        : Chunks(slots, whole, wait), writes_(writes), fid_(fid), into_(into) {}

    // The number of bytes up to the end of the first chunk that is short.
    std::uint64_t bytes() const {
        std::uint64_t bytes = 0;
        for (std::size_t i = 0; i < results_.size(); ++i) {
            bytes += results_[i];
            if (results_[i] < range_of(i).length) break;
        }
        return bytes;
    }
    // The newest that a reply has shown.
    std::uint64_t incarnation() const { return incarnation_; }

private:
    Task<Outcome<void>> move_chunk(std::size_t index) override {
        const std::array ranges{range_of(index)};
        const auto into = memory_of(into_, index);
        for (;;) {
            auto session = co_await slots_.session_of(fid_.slot(), wait_);
            if (!session) co_return std::unexpected(std::move(session.error()));
            fabric::CallRequest asked =
                slots_.request(fop::Read{.fid = fid_, .ranges = ranges}, wait_);
            const bool in_message = fits_message(**session, into.size());
            (in_message ? asked.reply_into : asked.target) = into;
            const auto answer = co_await slots_.call(*session, asked);
            if (!answer) co_return std::unexpected(answer.error());
            if (answer->status != fop::Status::kDone) co_return refused(*answer);
            const auto* const reply = body_of<fop::ReadReply>(*answer);
            if (reply == nullptr) co_return nonsense();
            const std::array there{fop::within(ranges[0], reply->size_bytes)};
            if (reply->bytes != there[0].length ||
                reply->checksums.size() != fop::count_checksums(there) ||
                (in_message && answer->payload_bytes != reply->bytes)) {
                co_return nonsense();
            }
            if (!fop::ranges_intact(there, into.first(reply->bytes), reply->checksums)) {
                co_return failed(fop::Status::kCorrupt, "the data do not match their checksums");
            }
            results_[index] = reply->bytes;
            const std::uint64_t incarnation = reply->incarnation;
            incarnation_ = std::max(incarnation_, incarnation);
            const auto is_old = co_await writes_.catch_up(fid_, incarnation, wait_);
            if (!is_old) co_return std::unexpected(is_old.error());
            if (!*is_old) co_return {};
        }
    }

    BufferedWrites& writes_;
    const fop::Fid fid_;
    const std::span<std::byte> into_;
    std::uint64_t incarnation_ = 0;
};

}  // namespace

ObjectClient::ObjectClient(fabric::SessionHost& host, ObjectClientOptions options)
    : options_(std::move(options)),
      slots_(host, options_),
      writes_(slots_),
      uploads_(slots_, writes_.held()),
      tape_(slots_) {
    ENSURE(options_.window > 0);
    ENSURE(options_.fop_bytes > 0);
    ENSURE(options_.fop_bytes % fop::kBlockBytes == 0);
    ENSURE(options_.fop_bytes <= fop::kTransferBytesMax);
}

// -- names and attributes --

Task<Outcome<fop::Fid>> ObjectClient::create(NewObject object, Wait wait) {
    const Slots::Attempt attempt = [&](std::uint16_t slot) {
        return create_at(slot, &object, wait);
    };
    std::string pool = object.pool;
    co_return co_await slots_.make_object(std::move(pool), &attempt, wait);
}

Task<Outcome<fop::Fid>> ObjectClient::create_at(std::uint16_t slot, const NewObject* object,
                                                Wait wait) {
    fabric::CallRequest asked = slots_.request(fop::Create{.name = object->name,
                                                           .group = object->group,
                                                           .slot = slot,
                                                           .mode = object->mode,
                                                           .no_replace = object->no_replace,
                                                           .collection = object->collection},
                                               wait);
    asked.header.pool = object->pool;
    const auto answer = co_await slots_.ask_slot(slot, asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const created = body_of<fop::CreateReply>(*answer);
    if (created == nullptr || created->fid.slot() != slot) co_return nonsense();
    writes_.held().release(created->receipt);
    co_return created->fid;
}

Task<Outcome<ObjectInfo>> ObjectClient::lookup(std::string pool, std::string name, Wait wait) {
    for (;;) {
        fabric::CallRequest asked = slots_.request(fop::Lookup{.name = name}, wait);
        asked.header.pool = pool;
        const auto answer = co_await slots_.ask_home(asked);
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const found = body_of<fop::LookupReply>(*answer);
        if (found == nullptr) co_return nonsense();
        const fop::Attributes& attributes = found->attributes;
        ObjectInfo info = info_of(attributes);
        const std::uint64_t incarnation = attributes.incarnation;
        auto reported = writes_.report_lost(info.fid);
        if (!reported) co_return std::unexpected(std::move(reported.error()));
        const auto is_old = co_await writes_.catch_up(info.fid, incarnation, wait);
        if (!is_old) co_return std::unexpected(is_old.error());
        if (*is_old) continue;
        co_await writes_.catch_up_others(info.fid.slot(), incarnation, wait);
        co_return info;
    }
}

Task<Outcome<ObjectInfo>> ObjectClient::stat(fop::Fid fid, Wait wait) {
    for (;;) {
        auto reported = writes_.report_lost(fid);
        if (!reported) co_return std::unexpected(std::move(reported.error()));
        const auto answer =
            co_await slots_.ask_slot(fid.slot(), slots_.request(fop::Stat{.fid = fid}, wait));
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const found = body_of<fop::StatReply>(*answer);
        if (found == nullptr) co_return nonsense();
        ObjectInfo info = info_of(found->attributes);
        const std::uint64_t incarnation = found->attributes.incarnation;
        const auto is_old = co_await writes_.catch_up(fid, incarnation, wait);
        if (!is_old) co_return std::unexpected(is_old.error());
        if (*is_old) continue;
        co_await writes_.catch_up_others(fid.slot(), incarnation, wait);
        co_return info;
    }
}

Task<Outcome<ObjectPage>> ObjectClient::list(ListWish wish, Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = slots_.request(
        fop::ListObjects{.prefix = wish.prefix, .cursor = wish.cursor, .count_max = wish.count_max},
        wait);
    asked.header.pool = wish.pool;
    asked.reply_into = payload;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::ListObjectsReply>(*answer);
    const auto entries = fop::read_list(std::span(payload).first(answer->payload_bytes));
    if (reply == nullptr || !entries) co_return nonsense();
    ObjectPage page{.entries = {}, .cursor = std::string(reply->cursor), .end = reply->end};
    // Without progress the caller would go on for ever.
    if (!page.end && page.cursor <= wish.cursor) co_return nonsense();
    for (const fop::ListEntry& entry : *entries) {
        page.entries.push_back({.fid = entry.fid,
                                .size_bytes = entry.size_bytes,
                                .changed_ns = entry.changed_ns,
                                .name = std::string(entry.name)});
    }
    co_return page;
}

Task<Outcome<std::vector<PoolSpace>>> ObjectClient::statfs(Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    fabric::CallRequest asked = slots_.request(fop::Statfs{}, wait);
    asked.reply_into = payload;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto entries = fop::read_pools(std::span(payload).first(answer->payload_bytes));
    if (!entries) co_return nonsense();
    std::vector<PoolSpace> pools;
    for (const fop::PoolEntry& entry : *entries) {
        pools.push_back({.pool = std::string(entry.pool),
                         .total_bytes = entry.total_bytes,
                         .used_bytes = entry.used_bytes,
                         .free_bytes = entry.free_bytes,
                         .objects = entry.objects});
    }
    co_return pools;
}

Task<Outcome<std::map<std::string, std::uint32_t>>> ObjectClient::missing_disks(Wait wait) {
    const auto loaded = co_await slots_.load(wait);
    if (!loaded) co_return std::unexpected(loaded.error());
    co_return slots_.missing_disks();
}

Task<Outcome<bool>> ObjectClient::is_on_missing_disk(fop::Fid fid, Wait wait) {
    const auto loaded = co_await slots_.load(wait);
    if (!loaded) co_return std::unexpected(loaded.error());
    co_return slots_.is_missing(fid.slot());
}

Task<Outcome<ObjectClient::KnownPool>> ObjectClient::known_pool(std::string pool, Wait wait) {
    const auto loaded = co_await slots_.load(wait);
    if (!loaded) co_return std::unexpected(loaded.error());
    KnownPool known{.name = slots_.name_of(pool)};
    known.is_staged = slots_.is_staged(known.name);
    co_return known;
}

Task<Outcome<std::vector<QuotaUse>>> ObjectClient::quota(std::string pool, Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);
    std::vector<QuotaUse> uses;
    std::string cursor;
    for (bool is_end = false; !is_end;) {
        fabric::CallRequest asked = slots_.request(fop::Quota{.cursor = cursor}, wait);
        asked.header.pool = pool;
        asked.reply_into = payload;
        const auto answer = co_await slots_.ask_home(asked);
        if (!answer) co_return std::unexpected(answer.error());
        const auto* const reply = body_of<fop::QuotaReply>(*answer);
        const auto entries = fop::read_quotas(std::span(payload).first(answer->payload_bytes));
        if (reply == nullptr || !entries) co_return nonsense();
        is_end = reply->end;
        // Without progress the caller would go on for ever.
        if (!is_end && reply->cursor <= cursor) co_return nonsense();
        cursor = std::string(reply->cursor);
        for (const fop::QuotaEntry& entry : *entries) {
            const bool of_pool = entry.whose == fop::QuotaEntry::Whose::kPool;
            uses.push_back({.pool = std::string(entry.pool),
                            .owner = std::nullopt,
                            .used_bytes = entry.used_bytes,
                            .limit_bytes = entry.limit_bytes,
                            .used_objects = entry.used_objects,
                            .limit_objects = entry.limit_objects});
            if (!of_pool) uses.back().owner = std::string(entry.owner);
        }
    }
    co_return uses;
}

Task<Outcome<bool>> ObjectClient::fits_quota(std::string pool, WantedSpace wanted, Wait wait) {
    std::vector<std::byte> payload(fop::kListingBytesMax);  // For the list of an older server.
    const fop::Quota body{.wanted_bytes = wanted.bytes, .wanted_objects = wanted.objects};
    fabric::CallRequest asked = slots_.request(body, wait);
    asked.header.pool = pool;
    asked.reply_into = payload;
    const auto answer = co_await slots_.ask_home(asked);
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::QuotaReply>(*answer);
    if (reply == nullptr) co_return nonsense();
    co_return reply->compared;
}

Task<Outcome<void>> ObjectClient::set_attributes(fop::Fid fid, AttributeWish wish, Wait wait) {
    fop::SetAttributes body{.fid = fid, .mode = wish.mode.value_or(0)};
    if (wish.owner) body.owner = *wish.owner;
    if (wish.group) body.group = *wish.group;
    body.which = static_cast<std::uint8_t>((wish.owner ? fop::SetAttributes::kOwner : 0) |
                                           (wish.group ? fop::SetAttributes::kGroup : 0) |
                                           (wish.mode ? fop::SetAttributes::kMode : 0));
    auto answer = co_await writes_.change(fid, slots_.request(body, wait));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    writes_.end_change(fid);
    co_return {};
}

Task<Outcome<void>> ObjectClient::rename(RenameWish wish, Wait wait) {
    fabric::CallRequest asked = slots_.request(
        fop::Rename{
            .fid = wish.fid, .from = wish.from, .name = wish.name, .no_replace = wish.no_replace},
        wait);
    asked.header.pool = wish.pool;
    auto answer = co_await writes_.change(wish.fid, asked);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    writes_.end_change(wish.fid);
    co_return {};
}

Task<Outcome<void>> ObjectClient::remove(fop::Fid fid, std::string from, Wait wait) {
    auto answer =
        co_await writes_.change(fid, slots_.request(fop::Delete{.fid = fid, .from = from}, wait));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    writes_.held().forget(fid);
    writes_.end_change(fid);
    co_return {};
}

// -- data --

Task<Outcome<std::uint64_t>> ObjectClient::read(fop::Fid fid, std::uint64_t offset,
                                                std::span<std::byte> into, Wait wait) {
    // A read is short at the end of the object, and no object ends beyond kOffsetMax.
    const std::uint64_t left = fop::kOffsetMax - std::min(offset, fop::kOffsetMax);
    const fop::Range whole{.offset = offset, .length = std::min<std::uint64_t>(into.size(), left)};
    const auto sound = fop::check_range(whole);
    if (!sound) co_return failed(fop::Status::kMalformed, sound.error().context);
    auto reported = writes_.report_lost(fid);
    if (!reported) co_return std::unexpected(std::move(reported.error()));
    ReadChunks chunks(slots_, writes_, fid, whole, into, wait);
    auto moved = co_await chunks.move();
    if (!moved) co_return std::unexpected(std::move(moved.error()));
    reported = writes_.report_lost(fid);
    if (!reported) co_return std::unexpected(std::move(reported.error()));
    co_await writes_.catch_up_others(fid.slot(), chunks.incarnation(), wait);
    co_return chunks.bytes();
}

Task<Outcome<std::uint64_t>> ObjectClient::append(fop::Fid fid, std::span<const std::byte> from,
                                                  Wait wait) {
    if (from.size() > fop::kTransferBytesMax) {
        co_return failed(fop::Status::kTooLarge, "more than 4 MiB cannot be appended at once");
    }
    // The end of the object must not depend on writes that the server may have lost.
    if (writes_.held().holds(fid)) {
        auto synced = co_await writes_.make_durable({.fid = fid}, wait);
        if (!synced) co_return std::unexpected(std::move(synced.error()));
    }
    const auto checksums = checksums_of({.offset = 0, .length = from.size()}, from);
    const fop::Append body{.fid = fid, .length = from.size(), .checksums = checksums};
    auto answer = co_await writes_.change(fid, slots_.request(body, wait), from);
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    const auto* const reply = body_of<fop::AppendReply>(*answer);
    const fop::Range appended{.offset = reply == nullptr ? 0 : reply->offset,
                              .length = from.size()};
    const bool makes_sense = reply != nullptr && fop::check_range(appended).has_value();
    if (makes_sense) writes_.held().cut(fid, appended, reply->changed.receipt);
    writes_.end_change(fid);
    if (!makes_sense) co_return nonsense();
    const std::uint64_t incarnation = reply->changed.receipt.incarnation;
    co_await writes_.catch_up_others(fid.slot(), incarnation, wait);
    co_return appended.offset;
}

Task<Outcome<void>> ObjectClient::truncate(fop::Fid fid, std::uint64_t size_bytes, Wait wait) {
    const fop::Truncate body{.fid = fid, .size_bytes = size_bytes};
    auto answer = co_await writes_.change(fid, slots_.request(body, wait));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    writes_.held().cut(fid, {.offset = size_bytes, .length = fop::kOffsetMax - size_bytes},
                       *receipt_of(*answer));
    writes_.end_change(fid);
    co_await writes_.catch_up_others(fid.slot(), receipt_of(*answer)->incarnation, wait);
    co_return {};
}

Task<Outcome<void>> ObjectClient::punch(fop::Fid fid, fop::Range range, Wait wait) {
    const fop::Punch body{.fid = fid, .range = range};
    auto answer = co_await writes_.change(fid, slots_.request(body, wait));
    if (!answer) co_return std::unexpected(std::move(answer.error()));
    writes_.held().clear(fid, range, *receipt_of(*answer));
    writes_.end_change(fid);
    co_await writes_.catch_up_others(fid.slot(), receipt_of(*answer)->incarnation, wait);
    co_return {};
}

// -- durability --

Task<Outcome<void>> ObjectClient::sync(Wait wait) {
    auto durable = co_await writes_.make_durable({}, wait);
    if (!durable) co_return durable;
    co_return writes_.report_all_lost();
}

// Nothing is known of the writes of other clients: asks for all that were acknowledged.
Task<Outcome<void>> ObjectClient::sync_node(Wait wait) {
    const auto answer = co_await slots_.ask_home(slots_.request(fop::Sync{}, wait));
    if (!answer) co_return std::unexpected(answer.error());
    co_return {};
}

Task<Outcome<void>> ObjectClient::sync_object(ObjectInfo found, Wait wait) {
    fop::Receipt any{.incarnation = found.incarnation};
    any.slot = found.fid.slot();
    const std::array receipts{any};
    const fop::Sync body{.receipts = receipts};
    const auto answer = co_await slots_.ask_slot(any.slot, slots_.request(body, wait));
    if (!answer) co_return std::unexpected(answer.error());
    const auto* const reply = body_of<fop::SyncReply>(*answer);
    if (reply == nullptr || reply->receipts.size() != 1) co_return nonsense();
    if (reply->receipts[0].incarnation == any.incarnation) co_return {};
    co_return failed(fop::Status::kLost, "the server has restarted: buffered writes are lost");
}

}  // namespace fopd::client
