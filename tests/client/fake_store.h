#pragma once

// A store for tests of clients. The file is long because its class answers each type of fop.

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "core/gate.h"
#include "fabric/rpc/incoming.h"
#include "fop/bodies.h"
#include "fop/fop_type.h"
#include "fop/listing.h"
#include "tests/catch.h"

namespace fopd::client::testing {

// A store of few words behind the server's side of RPC, for all localities of a node: it keeps to
// what the fops promise, in memory. It outlives the lives of its server; a crash takes it back to
// what was durable.
class FakeStore final : public fabric::IncomingUser {
public:
    struct Object {
        std::string name{};
        std::string group{};
        std::string collection{};
        std::uint16_t mode = 0;
        std::uint64_t version = 1;
        std::uint64_t changed_ns = 1'500'000'000'123'456'789;
        std::vector<std::byte> bytes{};
        bool visible = true;
        bool no_replace = false;
        std::set<std::uint64_t> blocks{};  // Of an upload.
    };
    struct State {
        std::map<fop::Fid, Object> objects{};
        std::map<std::string, fop::Fid> names{};
        std::uint64_t seq = 0;
        std::uint64_t next_fid = 1;
    };
    using RecordId = std::pair<std::array<std::byte, 16>, std::uint64_t>;

    static constexpr std::uint16_t kSlotCount = 2;  // Slot 1 is locality 0's, slot 2 locality 1's.

    // For the life of a server; `gate` is that life's.
    void serve_on(core::Reactor& reactor, core::Gate& gate) {
        reactor_ = &reactor;
        gate_ = &gate;
        arrived.clear();
        free_buffers_.clear();
        for (std::size_t i = 0; i < kBufferCount; ++i) {
            free_buffers_.push_back(memory.data() + i * kBufferBytes);
        }
    }
    void on_incoming(fabric::IncomingFop& fop) override {
        arrived.push_back(std::string(name_of(fop)));
        if (fop.request().fault != fop::Status::kDone) {
            return fop.reply({.status = fop.request().fault, .words = fop.request().fault_words});
        }
        fop.started();
        if (name_of(fop) == ignored) return;
        reactor_->spawn(*gate_, serve(&fop));
    }
    void crash() {
        ends_[incarnation] = durable.seq;
        now = durable;
        records_ = durable_records_;
        ++incarnation;
    }

    std::size_t count(std::string_view name) const {
        return static_cast<std::size_t>(std::ranges::count(arrived, name));
    }
    const Object* find(const std::string& name) const {
        const auto found = now.names.find(name);
        return found == now.names.end() ? nullptr : &now.objects.at(found->second);
    }

    // The buffers of transfers.
    static constexpr std::size_t kBufferCount = 32;
    static constexpr std::size_t kBufferBytes = 1U << 20;
    std::vector<std::byte> memory = std::vector<std::byte>(kBufferCount * kBufferBytes);

    State now;
    State durable;
    std::uint64_t incarnation = 1;
    std::vector<std::string> arrived;  // In this life.
    // Faults.
    std::string ignored;        // The type of fops that are not executed.
    std::string without_reply;  // The type of fops that are never replied to.
    int try_again = 0;          // The number of next fops that are answered try_again.
    bool changes_what_is_read = false;
    std::set<std::uint16_t> full;  // Slots.
    fop::Status when_full = fop::Status::kNoSpace;
    int full_for = -1;                        // No slot is full after this number of refusals.
    std::optional<std::uint64_t> quota_left;  // None: the server does not compare with a quota.
    int staging_full = 0;                     // The number of next changes answered so.
    std::set<std::uint16_t> missing;          // Slots; replies on them are not known either.
    // Offsets: a lost write that begins there is refused as lost when it is written again.
    std::set<std::uint64_t> overtaken;
    bool refuses_clients = false;    // From the next life on.
    std::set<std::uint64_t> denied;  // Offsets: the writer has lost its right.
    // Offsets of lost writes that are refused with this status when they are written again.
    std::map<std::uint64_t, fop::Status> not_again;
    std::set<std::uint64_t> told_late;    // Offsets: replies to writes there take 50 ms.
    std::set<std::uint16_t> written_off;  // Slots whose objects are lost.
    std::set<std::uint16_t> offline;      // Slots that are missing in the table only.
    std::set<std::size_t> away;           // Localities that open no session.
    bool begins_uploads_durably = true;
    // Objects whose bytes are on tape only, and how their recalls end, `recall_takes` later.
    std::map<fop::Fid, fop::RecallState> on_tape;
    // The patience of each wait for tape; and how many patient ones end before the recall does.
    std::vector<std::uint64_t> patiences;
    std::uint64_t waits_in_vain = 0;
    std::string why_in_vain{};  // The reason in these answers.
    Duration recall_takes{1s};
    std::uint16_t names_of_page = 0;  // Of lists that leave it to the server; 0: all of them.
    // If there are any, these names are listed, whatever the client asks for.
    std::vector<std::vector<std::string>> forged_pages;

private:
    struct Done {
        fop::Status status = fop::Status::kDone;
        fop::ReplyBody body{};
        std::vector<std::byte> payload{};
        std::vector<std::uint32_t> checksums{};
        std::vector<fop::Receipt> receipts{};
        std::vector<std::uint8_t> states{};
        std::string words{};
    };

    static std::string_view name_of(const fabric::IncomingFop& fop) {
        const fop::FopType* const type = fop::find_fop_type(fop.request().type);
        return type == nullptr ? "unknown" : type->name;
    }

    core::Buffer take_buffer(std::uint64_t bytes) {
        REQUIRE(!free_buffers_.empty());
        REQUIRE(bytes <= kBufferBytes);
        std::byte* const buffer = free_buffers_.back();
        free_buffers_.pop_back();
        return {.data = buffer, .size_bytes = static_cast<std::size_t>(bytes)};
    }

    Task<void> serve(fabric::IncomingFop* fop) {
        const fop::RequestBody& body = fop->request().body;
        std::vector<std::byte> data(fop->request().payload.begin(), fop->request().payload.end());
        if (const fop::SealedDescriptor* const source = source_of(body)) {
            const core::Buffer buffer = take_buffer(length_of(body));
            const auto pulled = co_await fop->pull(source, 0, buffer);
            data.assign(buffer.data, buffer.data + buffer.size_bytes);
            free_buffers_.push_back(buffer.data);
            if (!pulled) co_return fop->reply({.status = fop::Status::kTryAgain});
        }
        if (const auto* const recall = std::get_if<fop::RecallWait>(&body)) {
            const std::chrono::milliseconds patience(recall->patience_ms);
            const bool is_in_vain = recall->patience_ms != 0 && waits_in_vain > 0;
            const Duration takes =
                is_in_vain ? std::min<Duration>(recall_takes, patience) : recall_takes;
            const Instant end = after(reactor_->now(), takes);
            const auto slept = co_await reactor_->sleep_until(std::min(end, fop->deadline()),
                                                              &fop->cancel_source());
            if (!slept || end > fop->deadline()) {
                co_return fop->reply({.status = fop::Status::kTimedOut});
            }
        }
        Done done = run(*fop, data);
        const auto* const read = std::get_if<fop::Read>(&body);
        if (read != nullptr && read->target && !done.payload.empty()) {
            const core::Buffer buffer = take_buffer(done.payload.size());
            std::ranges::copy(done.payload, buffer.data);
            const auto pushed = co_await fop->push(&*read->target, 0, buffer);
            free_buffers_.push_back(buffer.data);
            if (!pushed) co_return fop->reply({.status = fop::Status::kTryAgain});
            done.payload.clear();
        }
        if (name_of(*fop) == without_reply) co_return;
        const auto* const write = std::get_if<fop::Write>(&body);
        if (write != nullptr && told_late.contains(write->ranges.front().offset)) {
            [[maybe_unused]] const auto slept = co_await reactor_->sleep_for(50ms);
        }
        fop->reply({.status = done.status,
                    .words = done.status == fop::Status::kDone ? std::string_view(done.words)
                                                               : "the fake store says no",
                    .payload = done.payload,
                    .body = done.body});
    }

    static const fop::SealedDescriptor* source_of(const fop::RequestBody& body) {
        return std::visit(
            [](const auto& each) -> const fop::SealedDescriptor* {
                if constexpr (requires {
                                  each.checksums;
                                  each.source;
                              }) {
                    return each.source ? &*each.source : nullptr;
                }
                return nullptr;
            },
            body);
    }
    static std::uint64_t length_of(const fop::RequestBody& body) {
        if (const auto* const write = std::get_if<fop::Write>(&body)) {
            return fop::total_bytes(write->ranges);
        }
        if (const auto* const append = std::get_if<fop::Append>(&body)) return append->length;
        return std::get<fop::UploadWrite>(body).range.length;
    }

    Done run(const fabric::IncomingFop& fop, const std::vector<std::byte>& data) {
        if (missing.contains(slot_of(fop.request().body))) {
            return refuse(fop::Status::kMediumMissing);
        }
        const bool is_recorded =
            fop::find_fop_type(fop.request().type)->repeat == fop::Repeat::kRecorded;
        const RecordId id{fop.caller().client, fop.request().id};
        if (is_recorded && records_.contains(id)) return records_.at(id);
        if (try_again > 0) {
            --try_again;
            return {.status = fop::Status::kTryAgain};
        }
        if (needs_tape(fop.request().body)) return refuse(fop::Status::kStaging);
        if (staging_full > 0 && adds_bytes(fop.request().body)) {
            --staging_full;
            return refuse(fop::Status::kStagingFull);
        }
        Done done =
            std::visit([&](const auto& body) { return on(body, data); }, fop.request().body);
        if (is_recorded) records_[id] = done;
        if (is_durable(fop.request().body)) flush();
        return done;
    }

    static bool adds_bytes(const fop::RequestBody& body) {
        return std::holds_alternative<fop::Write>(body) ||
               std::holds_alternative<fop::Append>(body) ||
               std::holds_alternative<fop::UploadWrite>(body);
    }
    bool is_full(std::uint16_t slot) {
        if (!full.contains(slot)) return false;
        if (full_for > 0) --full_for;
        if (full_for == 0) full.clear();
        return true;
    }

    static std::uint16_t slot_of(const fop::RequestBody& body) {
        return std::visit(
            [](const auto& each) -> std::uint16_t {
                if constexpr (requires { each.slot; }) return each.slot;
                if constexpr (requires { each.fid; }) return each.fid.slot();
                return 0;
            },
            body);
    }
    bool needs_tape(const fop::RequestBody& body) const {
        const bool needs_bytes =
            std::holds_alternative<fop::Read>(body) || std::holds_alternative<fop::Write>(body) ||
            std::holds_alternative<fop::Append>(body) ||
            std::holds_alternative<fop::Truncate>(body) || std::holds_alternative<fop::Punch>(body);
        return needs_bytes && std::visit(
                                  [this](const auto& each) {
                                      if constexpr (requires { each.fid; }) {
                                          return on_tape.contains(each.fid);
                                      }
                                      return false;
                                  },
                                  body);
    }
    bool is_durable(const fop::RequestBody& body) const {
        if (std::holds_alternative<fop::UploadBegin>(body)) return begins_uploads_durably;
        if (const auto* const write = std::get_if<fop::Write>(&body)) {
            return write->durability == fop::Durability::kDurable;
        }
        return !std::holds_alternative<fop::UploadWrite>(body) &&
               !std::holds_alternative<fop::Read>(body) &&
               !std::holds_alternative<fop::Stat>(body) &&
               !std::holds_alternative<fop::Lookup>(body) &&
               !std::holds_alternative<fop::Slots>(body);
    }
    void flush() {
        durable = now;
        durable_records_ = records_;
    }

    // -- each type --

    static Done refuse(fop::Status status) { return {.status = status}; }
    fop::Receipt receipt(std::uint16_t slot) const {
        return {.incarnation = incarnation, .seq = now.seq, .slot = slot};
    }
    fop::Receipt next_receipt(std::uint16_t slot) {
        ++now.seq;
        return receipt(slot);
    }
    Object* object(const fop::Fid& fid, bool visible = true) {
        const auto found = now.objects.find(fid);
        return found == now.objects.end() || found->second.visible != visible ? nullptr
                                                                              : &found->second;
    }
    fop::Changed change(const fop::Fid& fid, Object& object) {
        return {.version = ++object.version,
                .size_bytes = object.bytes.size(),
                .receipt = next_receipt(fid.slot())};
    }
    fop::Fid new_fid(std::uint16_t slot) {
        return {.high = std::uint64_t{slot} << 48, .low = now.next_fid++};
    }
    static void put(Object& object, std::uint64_t offset, std::span<const std::byte> data) {
        object.bytes.resize(std::max<std::size_t>(object.bytes.size(), offset + data.size()));
        std::ranges::copy(data, object.bytes.begin() + static_cast<std::ptrdiff_t>(offset));
    }
    void take_name(const std::string& name, const fop::Fid& fid) {
        if (name.empty()) return;
        if (const auto old = now.names.find(name); old != now.names.end() && old->second != fid) {
            now.objects.erase(old->second);
        }
        now.names[name] = fid;
    }

    template <typename Body>
    Done on(const Body& /*body*/, const std::vector<std::byte>& /*data*/) {
        return refuse(fop::Status::kUnknownFop);
    }
    Done on(const fop::RecallWait& body, const std::vector<std::byte>& /*data*/) {
        Done done;
        patiences.push_back(body.patience_ms);
        if (body.patience_ms != 0 && waits_in_vain > 0) {
            done.states.assign(body.fids.size(), 0);
            done.body = fop::RecallWaitReply{
                .states = done.states, .place = waits_in_vain, .expected_ms = 60'000};
            done.words = why_in_vain;
            --waits_in_vain;
            return done;
        }
        for (const fop::Fid& fid : body.fids) {
            const auto found = on_tape.find(fid);
            const auto state = found == on_tape.end() ? fop::RecallState::kDone : found->second;
            done.states.push_back(static_cast<std::uint8_t>(state));
            if (state == fop::RecallState::kFailed) done.words = "all copies are damaged";
            if (state == fop::RecallState::kDone) on_tape.erase(fid);
        }
        done.body = fop::RecallWaitReply{.states = done.states};
        return done;
    }
    Done on(const fop::Slots& /*body*/, const std::vector<std::byte>& /*data*/) {
        Done done{.body = fop::SlotsReply{.version = 1}, .payload = std::vector<std::byte>(256)};
        fop::ListingWriter writer(done.payload);
        for (std::uint16_t slot = 1; slot <= kSlotCount; ++slot) {
            writer.add(fop::ListedSlot{.slot = slot,
                                       .locality = static_cast<std::uint16_t>(slot - 1),
                                       .state = offline.contains(slot)
                                                    ? fop::ListedSlotState::kMissing
                                                    : fop::ListedSlotState::kOnline,
                                       .in_default_pool = true,
                                       .pool = "fast"});
        }
        done.payload.resize(writer.written().size());
        return done;
    }
    Done on(const fop::Quota& body, const std::vector<std::byte>& /*data*/) {
        const bool is_over = quota_left && body.wanted_bytes > *quota_left;
        if (is_over || body.wanted_objects > 100) return refuse(fop::Status::kQuota);
        return {.body = fop::QuotaReply{.end = true, .compared = quota_left.has_value()}};
    }
    Done on(const fop::Create& body, const std::vector<std::byte>& /*data*/) {
        if (is_full(body.slot)) return refuse(when_full);
        const std::string name(body.name);
        if (body.no_replace && now.names.contains(name)) return refuse(fop::Status::kExists);
        const fop::Fid fid = new_fid(body.slot);
        now.objects[fid] = {.name = name,
                            .group = std::string(body.group),
                            .collection = std::string(body.collection),
                            .mode = body.mode};
        take_name(name, fid);
        return {.body =
                    fop::CreateReply{.fid = fid, .version = 1, .receipt = next_receipt(body.slot)}};
    }
    Done attributes(const fop::Fid& fid, bool by_name) {
        const Object* const found = object(fid);
        if (found == nullptr) return refuse(fop::Status::kNotFound);
        Done done;
        const fop::Attributes all{.fid = fid,
                                  .size_bytes = found->bytes.size(),
                                  .version = found->version,
                                  .changed_ns = found->changed_ns,
                                  .incarnation = incarnation,
                                  .owner = "tester",
                                  .group = found->group,
                                  .name = found->name,
                                  .mode = found->mode,
                                  .collection = found->collection};
        if (by_name) {
            done.body = fop::LookupReply{.attributes = all};
        } else {
            done.body = fop::StatReply{.attributes = all};
        }
        return done;
    }
    Done on(const fop::Lookup& body, const std::vector<std::byte>& /*data*/) {
        const auto found = now.names.find(std::string(body.name));
        if (found == now.names.end()) return refuse(fop::Status::kNotFound);
        return attributes(found->second, true);
    }
    Done on(const fop::Stat& body, const std::vector<std::byte>& /*data*/) {
        return attributes(body.fid, false);
    }
    Done on(const fop::ListObjects& body, const std::vector<std::byte>& /*data*/) {
        if (!forged_pages.empty()) return forged_list(body.cursor);
        Done done{.payload = std::vector<std::byte>(fop::kListingBytesMax)};
        fop::ListingWriter writer(done.payload);
        last_cursor_ = body.cursor;
        const std::uint16_t count_max = body.count_max != 0 ? body.count_max : names_of_page;
        std::size_t count = 0;
        bool end = true;
        for (const auto& [name, fid] : now.names) {
            if (!name.starts_with(body.prefix) || name <= body.cursor) continue;
            if (count_max != 0 && count == count_max) {
                end = false;
                break;
            }
            ++count;
            const Object& each = now.objects.at(fid);
            writer.add(fop::ListEntry{.fid = fid,
                                      .size_bytes = each.bytes.size(),
                                      .changed_ns = each.changed_ns,
                                      .name = name});
            last_cursor_ = name;
        }
        done.payload.resize(writer.written().size());
        done.body = fop::ListObjectsReply{.cursor = last_cursor_, .end = end};
        return done;
    }
    // The cursor is as many letters as pages were given.
    Done forged_list(std::string_view cursor) {
        Done done{.payload = std::vector<std::byte>(fop::kListingBytesMax)};
        fop::ListingWriter writer(done.payload);
        const std::size_t page = cursor.size();
        for (const std::string& name : forged_pages.at(page)) {
            REQUIRE(writer.add(fop::ListEntry{.fid = {.high = 1, .low = 1}, .name = name}));
        }
        done.payload.resize(writer.written().size());
        last_cursor_ = std::string(page + 1, 'x');
        done.body =
            fop::ListObjectsReply{.cursor = last_cursor_, .end = page + 1 == forged_pages.size()};
        return done;
    }
    Done on(const fop::Rename& body, const std::vector<std::byte>& /*data*/) {
        Object* const found = object(body.fid);
        if (found == nullptr || (!body.from.empty() && found->name != body.from)) {
            return refuse(fop::Status::kNotFound);
        }
        const std::string name(body.name);
        if (body.no_replace && now.names.contains(name)) return refuse(fop::Status::kExists);
        now.names.erase(found->name);
        found->name = name;
        take_name(name, body.fid);
        return {.body = fop::RenameReply{.changed = change(body.fid, *found)}};
    }
    Done on(const fop::Delete& body, const std::vector<std::byte>& /*data*/) {
        Object* const found = object(body.fid);
        if (found == nullptr || (!body.from.empty() && found->name != body.from)) {
            return refuse(fop::Status::kNotFound);
        }
        now.names.erase(found->name);
        now.objects.erase(body.fid);
        return {.body = fop::DeleteReply{.receipt = next_receipt(body.fid.slot())}};
    }
    Done on(const fop::Read& body, const std::vector<std::byte>& /*data*/) {
        const Object* const found = object(body.fid);
        if (found == nullptr) return refuse(fop::Status::kNotFound);
        Done done;
        std::vector<fop::Range> there;
        for (const fop::Range& range : body.ranges) {
            there.push_back(fop::within(range, found->bytes.size()));
            const auto bytes =
                std::span(found->bytes)
                    .subspan(there.back().length == 0 ? 0 : range.offset, there.back().length);
            done.payload.insert(done.payload.end(), bytes.begin(), bytes.end());
        }
        done.checksums.resize(fop::count_checksums(there));
        fop::checksum_ranges(there, done.payload, done.checksums);
        done.body = fop::ReadReply{.bytes = done.payload.size(),
                                   .size_bytes = found->bytes.size(),
                                   .version = found->version,
                                   .incarnation = incarnation,
                                   .checksums = done.checksums};
        if (changes_what_is_read && !done.payload.empty()) done.payload.back() ^= std::byte{1};
        return done;
    }
    Done on(const fop::Write& body, const std::vector<std::byte>& data) {
        Object* const found = object(body.fid);
        if (found == nullptr) return refuse(fop::Status::kNotFound);
        if (!fop::ranges_intact(body.ranges, data, body.checksums)) {
            return refuse(fop::Status::kCorrupt);
        }
        if (body.lost_in != 0 && overtaken.contains(body.ranges.front().offset)) {
            return refuse(fop::Status::kLost);
        }
        const auto refused = not_again.find(body.ranges.front().offset);
        if (body.lost_in != 0 && refused != not_again.end()) return refuse(refused->second);
        if (denied.contains(body.ranges.front().offset)) return refuse(fop::Status::kDenied);
        std::size_t at = 0;
        for (const fop::Range& range : body.ranges) {
            put(*found, range.offset, std::span(data).subspan(at, range.length));
            at += range.length;
        }
        return {.body = fop::WriteReply{.changed = change(body.fid, *found)}};
    }
    Done on(const fop::Append& body, const std::vector<std::byte>& data) {
        Object* const found = object(body.fid);
        if (found == nullptr) return refuse(fop::Status::kNotFound);
        const std::uint64_t offset = found->bytes.size();
        put(*found, offset, data);
        return {.body = fop::AppendReply{.offset = offset, .changed = change(body.fid, *found)}};
    }
    Done on(const fop::Truncate& body, const std::vector<std::byte>& /*data*/) {
        Object* const found = object(body.fid);
        if (found == nullptr) return refuse(fop::Status::kNotFound);
        found->bytes.resize(body.size_bytes);
        return {.body = fop::TruncateReply{.changed = change(body.fid, *found)}};
    }
    Done on(const fop::Punch& body, const std::vector<std::byte>& /*data*/) {
        Object* const found = object(body.fid);
        if (found == nullptr) return refuse(fop::Status::kNotFound);
        const fop::Range there = fop::within(body.range, found->bytes.size());
        const auto first = found->bytes.begin() + static_cast<std::ptrdiff_t>(there.offset);
        std::fill_n(first, there.length, std::byte{0});
        return {.body = fop::PunchReply{.changed = change(body.fid, *found)}};
    }
    Done on(const fop::Sync& body, const std::vector<std::byte>& /*data*/) {
        flush();
        Done done;
        for (fop::Receipt each : body.receipts) {
            if (written_off.contains(each.slot)) {
                done.status = fop::Status::kLost;
                done.receipts.push_back({.slot = each.slot});
                continue;
            }
            const bool goes_on = each.incarnation == incarnation;
            const std::uint64_t end = goes_on ? durable.seq : ends_.at(each.incarnation);
            if (end < each.seq) done.status = fop::Status::kLost;
            done.receipts.push_back({.incarnation = incarnation, .seq = end, .slot = each.slot});
        }
        done.body = fop::SyncReply{.receipts = done.receipts};
        return done;
    }
    Done on(const fop::UploadBegin& body, const std::vector<std::byte>& /*data*/) {
        if (is_full(body.slot)) return refuse(when_full);
        const fop::Fid fid = new_fid(body.slot);
        now.objects[fid] = {.name = std::string(body.name),
                            .group = std::string(body.group),
                            .collection = std::string(body.collection),
                            .mode = body.mode,
                            .visible = false,
                            .no_replace = body.no_replace};
        return {.body = fop::UploadBeginReply{.fid = fid}};
    }
    Done on(const fop::UploadWrite& body, const std::vector<std::byte>& data) {
        Object* const found = object(body.fid, false);
        if (found == nullptr) return refuse(fop::Status::kNotFound);
        const std::array ranges{body.range};
        if (!fop::ranges_intact(ranges, data, body.checksums)) {
            return refuse(fop::Status::kCorrupt);
        }
        put(*found, body.range.offset, data);
        for (std::uint64_t at = body.range.offset; at < body.range.end(); at += fop::kBlockBytes) {
            found->blocks.insert(at / fop::kBlockBytes);
        }
        return {.body = fop::UploadWriteReply{.receipt = next_receipt(body.fid.slot())}};
    }
    Done on(const fop::UploadCommit& body, const std::vector<std::byte>& /*data*/) {
        Object* const found = object(body.fid, false);
        if (found == nullptr) return refuse(fop::Status::kNotFound);
        if (found->blocks.size() != body.blocks) {
            return {.status = fop::Status::kLost,
                    .body = fop::UploadCommitReply{.receipt = receipt(body.fid.slot())}};
        }
        if (found->no_replace && now.names.contains(found->name)) {
            return refuse(fop::Status::kExists);
        }
        found->visible = true;
        found->bytes.resize(body.size_bytes);
        take_name(found->name, body.fid);
        return {.body =
                    fop::UploadCommitReply{.version = 1, .receipt = next_receipt(body.fid.slot())}};
    }
    Done on(const fop::UploadAbort& body, const std::vector<std::byte>& /*data*/) {
        if (object(body.fid, false) == nullptr) return refuse(fop::Status::kNotFound);
        now.objects.erase(body.fid);
        return {.body = fop::UploadAbortReply{}};
    }

    core::Reactor* reactor_ = nullptr;
    core::Gate* gate_ = nullptr;
    std::map<std::uint64_t, std::uint64_t> ends_;  // The last durable seq of each incarnation.
    std::map<RecordId, Done> records_;
    std::map<RecordId, Done> durable_records_;
    std::vector<std::byte*> free_buffers_;  // Those that are free.
    std::string last_cursor_;
};

}  // namespace fopd::client::testing
