// The part of a machine's life that has to do with tapes: copies on cartridges, which outlive every
// crash, released objects, and recalls.

#include <algorithm>
#include <utility>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "tests/store/volume_stage.h"

namespace fopd::store::testing {

namespace {

constexpr std::array<VsnText, 3> kCartridges{{{'T', 'P', '0', '0', '0', '1'},
                                              {'T', 'P', '0', '0', '0', '2'},
                                              {'T', 'P', '0', '0', '0', '3'}}};

std::string name_of(Fid fid) {
    return "object " + std::to_string(fid.low);
}

// Blocks of a copy, the last of which may be short.
BlockRange blocks_of(const Copy& copy) {
    const std::uint64_t first = copy.offset / kBlock;
    return {.first = first, .count = (copy.end() + kBlock - 1) / kBlock - first};
}

bool passes(const Error& error) {
    return error.code == Errc::kNoSpace;
}

}  // namespace

bool Machine::is_released(Fid fid) {
    const auto object = volume_->map().find(fid);
    return object && object->has_value() && (*object)->is_released;
}

Task<Result<void>> Machine::use_tape(Fid fid, core::Random* random, AlignedMemory* memory) {
    if (!remains_.objects[fid].back().exists) co_return Result<void>{};
    const std::uint64_t what = random->below(16);
    if (what < 2) co_return co_await touch(fid);
    if (what < 4) co_return co_await recall(fid, random);
    if (what < 5) co_return co_await drop(fid, random);
    if (is_released(fid)) {
        if (what < 8) co_return co_await change_released(fid, random, memory);
        if (what < 9) co_return co_await empty(fid);
        if (what < 10) co_return co_await migrate(fid, random, memory);
        co_return co_await bring_back(fid, random, memory);
    }
    if (what < 11) co_return co_await migrate(fid, random, memory);
    co_return co_await release(fid);
}

// -- copies --

// Writes the object, or a part of it, to a cartridge, and records that; in between the object may
// change.
Task<Result<void>> Machine::migrate(Fid fid, core::Random* random, AlignedMemory* memory) {
    TapeBook& book = remains_.tape;
    const ObjectState state = remains_.objects[fid].back();
    const std::uint64_t blocks = state.size_bytes / kBlock;
    if (blocks == 0) co_return Result<void>{};
    const VsnText& vsn = kCartridges[random->below(kCartridges.size())];
    const std::uint64_t cut = random->below(2) == 0 ? 0 : random->below(blocks);
    std::vector<Copy> copies;
    for (const BlockRange piece :
         {BlockRange{.first = 0, .count = cut}, BlockRange{.first = cut, .count = blocks - cut}}) {
        if (piece.count == 0 || random->below(8) == 0) continue;
        TapeFile file{
            .fid = fid, .blocks = piece, .checksum = static_cast<std::uint32_t>(random->next())};
        file.stamps.insert(state.stamps.lower_bound(piece.first),
                           state.stamps.lower_bound(piece.end()));
        const std::uint32_t number = book.next_file++;
        copies.push_back({.fid = fid,
                          .offset = piece.first * kBlock,
                          .length = piece.count * kBlock,
                          .version = state.version,
                          .cartridge = {.vsn = vsn, .generation = 1},
                          .position = {.file = number, .member = random->below(2) * 4096},
                          .block = std::uint64_t{number} * 64,
                          .checksum = file.checksum,
                          .written_s = number});
        book.files[{vsn, number}] = std::move(file);
    }
    if (!is_released(fid) && random->below(4) == 0) {
        const auto written = co_await write(fid, random, memory);
        if (!written && !passes(written.error())) co_return written;
        if (written) ++book.stale;
    }
    std::uint64_t bytes = 0;
    const std::map<CopyKey, Copy> before = book.acknowledged;
    for (const Copy& each : copies) {
        bytes += each.length;
        book.acknowledged.erase(key_of(each));
    }
    const bool is_stale = remains_.objects[fid].back().version != state.version;
    const std::size_t count = copies.size();
    std::vector<Copy> given = copies;
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    book.bytes_max += bytes;
    const auto added = co_await volume_->add_copies(std::move(given), wait);
    if (!added) {
        const bool is_refused = added.error().code == Errc::kBusy;
        if (is_refused || passes(added.error())) {
            book.bytes_max -= bytes;
            for (const Copy& each : copies) {
                const auto kept = before.find(key_of(each));
                if (kept != before.end()) book.acknowledged.insert(*kept);
            }
        }
        if (!is_refused) co_return std::unexpected(added.error());
        ++book.refused;
        co_return Result<void>{};
    }
    book.bytes_min += bytes;
    if ((is_stale ? added->dead : added->live) != count) {
        violate(std::to_string(added->dead) + " copies of " + name_of(fid) +
                " are said to be dead");
    }
    if (!is_stale) {
        for (const Copy& each : copies) book.acknowledged[key_of(each)] = each;
    }
    co_return Result<void>{};
}

// Whichever the object can spare.
Task<Result<void>> Machine::drop(Fid fid, core::Random* random) {
    const auto copies = volume_->copies_of(fid);
    if (!copies) co_return std::unexpected(copies.error());
    std::vector<CopyKey> keys;
    for (const Copy& each : *copies) {
        if (random->below(2) == 0) keys.push_back(key_of(each));
    }
    const std::vector<CopyKey> dropped_keys = keys;
    std::map<CopyKey, Copy> before = remains_.tape.acknowledged;
    for (const CopyKey& each : keys) remains_.tape.acknowledged.erase(each);
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    const auto dropped =
        co_await volume_->drop_copies(std::move(keys), Volume::Loss::kRefused, wait);
    if (dropped) co_return Result<void>{};
    if (dropped.error().code == Errc::kBusy || passes(dropped.error())) {
        for (const CopyKey& each : dropped_keys) {
            const auto kept = before.find(each);
            if (kept != before.end()) remains_.tape.acknowledged.insert(*kept);
        }
        ++remains_.tape.refused;
        co_return Result<void>{};
    }
    co_return dropped;
}

// Reads what the copies of the object have. All acknowledged ones of its content must be there; and
// if it is released they are its bytes.
bool Machine::read_copies(Fid fid, ObjectState& found, bool is_released) {
    const auto copies = volume_->copies_of(fid);
    if (!copies) {
        violate(std::string("copies cannot be read: ") + copies.error().context);
        return false;
    }
    std::uint64_t covered = 0;
    for (const Copy& each : *copies) {
        const auto file = remains_.tape.files.find({each.cartridge.vsn, each.position.file});
        if (file == remains_.tape.files.end() || file->second.fid != fid ||
            file->second.checksum != each.checksum || file->second.blocks != blocks_of(each) ||
            each.version != found.version) {
            violate("a copy of " + name_of(fid) + " is not what the tape has");
            return false;
        }
        if (!is_released) continue;
        if (each.offset <= covered) covered = std::max(covered, each.end());
        for (const auto& [block, stamp] : file->second.stamps) found.stamps[block] = stamp;
    }
    for (const auto& [key, copy] : remains_.tape.acknowledged) {
        if (key.fid != fid || copy.version != found.version) continue;
        if (std::ranges::find(*copies, copy) == copies->end()) {
            violate("an acknowledged copy of " + name_of(fid) + " is missing");
            return false;
        }
    }
    if (!is_released) return true;
    ++remains_.tape.reads;
    if (covered >= found.size_bytes) return true;
    violate("released " + name_of(fid) + " has no copies of its bytes from " +
            std::to_string(covered) + " on");
    return false;
}

// The figures of the cartridges are those of the copies that are found, and of all that was
// recorded.
void Machine::check_cartridges() {
    std::map<VsnText, std::uint64_t> live;
    for (const auto& [fid, states] : remains_.objects) {
        const auto copies = volume_->copies_of(fid);
        if (!copies) return violate("copies cannot be read");
        for (const Copy& each : *copies) live[each.cartridge.vsn] += each.length;
    }
    std::uint64_t total = 0;
    for (const auto& [vsn, use] : volume_->cartridges()) {
        total += use.total_bytes;
        std::uint64_t listed = 0;
        const auto copies = volume_->copies_on(vsn, {}, 100'000);
        if (!copies) return violate(std::string("a cartridge: ") + copies.error().context);
        for (const Copy& each : *copies) listed += each.length;
        if (use.live_bytes != live[vsn] || listed != live[vsn]) {
            violate("a cartridge has " + std::to_string(live[vsn]) + " live bytes, counted were " +
                    std::to_string(use.live_bytes) + ", listed " + std::to_string(listed));
        }
        if (use.live_bytes > use.total_bytes) violate("more is live than was recorded");
        live.erase(vsn);
    }
    std::erase_if(live, [](const auto& each) { return each.second == 0; });
    if (!live.empty()) violate("a cartridge with copies is not counted");
    if (total < remains_.tape.bytes_min || total > remains_.tape.bytes_max) {
        violate("recorded were " + std::to_string(remains_.tape.bytes_min) + " to " +
                std::to_string(remains_.tape.bytes_max) + " bytes, counted " +
                std::to_string(total));
    }
    volume_->map().release();
}

// -- released objects --

// It is tried whether the copies suffice or not. The state is the same afterwards.
Task<Result<void>> Machine::release(Fid fid) {
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    const std::uint64_t version = remains_.objects[fid].back().version;
    const auto released = co_await volume_->release(fid, version, wait);
    if (!released && released.error().code == Errc::kInvalid) {
        ++remains_.tape.refused;
        co_return Result<void>{};
    }
    if (!released) co_return std::unexpected(released.error());
    ++remains_.tape.releases;
    if (released->blocks != remains_.objects[fid].back().stamps.size()) {
        violate(name_of(fid) + " released " + std::to_string(released->blocks) + " blocks");
    }
    co_return Result<void>{};
}

// A write that does not care is refused, and changes nothing.
Task<Result<void>> Machine::change_released(Fid fid, core::Random* random, AlignedMemory* memory) {
    static_cast<void>(memory);
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    auto room = co_await volume_->reserve(kPutRecordBytesMax + extent_record_bytes(1), wait);
    if (!room) co_return std::unexpected(room.error());
    ObjectState state = remains_.objects[fid].back();
    Change change;
    const bool is_write = random->below(2) == 0;
    std::optional<DiskRange> target;
    if (is_write) {
        const auto allocated = volume_->allocate(1);
        if (!allocated) co_return std::unexpected(allocated.error());
        target = *allocated;
        const std::array<std::uint32_t, 1> checksum{};
        change.records.extent(fid, {.block = target->block, .checksums = checksum});
    } else {
        change.records.punch(fid, 0, 1);
    }
    if (random->below(2) == 0) {
        ++state.version;
        put_object(change.records, fid, state, remains_.version);
    }
    const auto begun = volume_->begin(change, std::move(*room), Durability::kBuffered, Data::kNone);
    if (begun) {
        violate("a change of released " + name_of(fid) + " is accepted");
        const auto finished = co_await volume_->finish(&change);
        if (!finished) co_return std::unexpected(finished.error());
        co_return Result<void>{};
    }
    if (target) volume_->give_back(*target);
    ++remains_.tape.refused;
    if (begun.error().code == Errc::kBusy) co_return Result<void>{};
    co_return begun;
}

// Truncated to nothing.
Task<Result<void>> Machine::empty(Fid fid) {
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    auto reserved = co_await volume_->reserve(kPunchRecordBytes + kPutRecordBytesMax, wait);
    if (!reserved) co_return std::unexpected(reserved.error());
    ObjectState state = remains_.objects[fid].back();
    state.size_bytes = 0;
    ++state.version;
    state.attribute_changes = 0;
    state.stamps.clear();
    Change change;
    put_object(change.records, fid, state, remains_.version);
    const BlockRange all{.first = 0, .count = kObjectBlocksMax};
    const auto punched = co_await volume_->punch(&change, fid, all, wait);
    if (!punched) co_return std::unexpected(punched.error());
    remains_.objects[fid].push_back(state);
    const auto begun =
        volume_->begin(change, std::move(*reserved), Durability::kDurable, Data::kNone);
    if (!begun) co_return begun;
    const auto finished = co_await volume_->finish(&change);
    if (!finished) co_return std::unexpected(finished.error());
    acknowledge(fid, state);
    co_return Result<void>{};
}

// Part by part, in any order, and not always to the end.
Task<Result<void>> Machine::bring_back(Fid fid, core::Random* random, AlignedMemory* memory) {
    TapeBook& book = remains_.tape;
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    auto attempt = co_await volume_->begin_bringing_back(fid, wait);
    if (!attempt) co_return std::unexpected(attempt.error());
    while (!attempt->is_complete()) {
        if (random->below(8) == 0) {
            ++book.abandoned;
            if (random->below(2) == 0) co_return Result<void>{};
            const auto dropped = co_await volume_->drop_parts(fid, wait);
            if (!dropped) co_return std::unexpected(dropped.error());
            co_return Result<void>{};
        }
        BlockRange part = attempt->missing();
        const std::uint64_t skipped = random->below(part.count);
        part = {.first = part.first + skipped,
                .count = 1 + random->below(std::min<std::uint64_t>(part.count - skipped, 12))};
        const auto brought = co_await bring_part(&*attempt, part, memory);
        if (!brought) co_return brought;
    }
    std::optional<Recall> kept;
    if (random->below(2) == 0) kept = Recall{.ticket = book.next_ticket++};
    MaybeTicket& ticket = book.recalls[fid];
    ticket.after = kept ? std::optional(kept->ticket) : std::nullopt;
    const auto ended = co_await volume_->end_bringing_back(&*attempt, std::move(kept), wait);
    if (!ended) {
        if (passes(ended.error())) ticket.after = ticket.before;
        co_return std::unexpected(ended.error());
    }
    ticket.before = ticket.after;
    ++book.returns;
    co_return Result<void>{};
}

// The blocks that the state has; the others are holes.
Task<Result<void>> Machine::bring_part(BringingBack* attempt, BlockRange range,
                                       AlignedMemory* memory) {
    const Fid fid = attempt->fid();
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    auto room = co_await volume_->reserve(
        static_cast<std::uint32_t>(range.count * extent_record_bytes(1)), wait);
    if (!room) co_return std::unexpected(room.error());
    // What the tape has.
    ObjectState on_tape;
    on_tape.size_bytes = attempt->size_bytes();
    on_tape.version = attempt->content_version();
    if (!read_copies(fid, on_tape, true)) co_return Result<void>{};
    Change change;
    std::vector<std::pair<DiskRange, std::size_t>> writes;
    std::size_t at = 0;
    for (std::uint64_t block = range.first; block < range.end(); ++block) {
        const auto stamp = on_tape.stamps.find(block);
        if (stamp == on_tape.stamps.end()) continue;
        const auto allocated = volume_->allocate(1);
        if (!allocated) {
            for (const auto& [given, unused] : writes) volume_->give_back(given);
            co_return std::unexpected(allocated.error());
        }
        const auto bytes = memory->span().subspan(at, kBlock);
        fill(bytes, fid, block, stamp->second);
        const std::array<std::uint32_t, 1> checksum{core::crc32c(bytes)};
        change.records.extent(fid,
                              {.first = block, .block = allocated->block, .checksums = checksum});
        writes.emplace_back(*allocated, at);
        at += kBlock;
    }
    if (writes.empty()) {
        attempt->add(range);
        co_return Result<void>{};
    }
    const auto begun =
        volume_->begin_part(*attempt, change, range, std::move(*room), Data::kPending);
    if (!begun) co_return begun;
    Result<void> written{};
    for (const auto& [allocated, from_byte] : writes) {
        core::Buffer from = memory->buffer();
        from.data += from_byte;
        from.size_bytes = kBlock;
        const auto one = co_await disk_->write(from, allocated.block * kBlock);
        if (!one) written = one;
    }
    volume_->data_done(change, written);
    const auto finished = co_await volume_->finish(&change);
    if (!finished) co_return std::unexpected(finished.error());
    co_return Result<void>{};
}

// -- attributes and recalls --

Task<Result<void>> Machine::touch(Fid fid) {
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    auto room = co_await volume_->reserve(kPutRecordBytesMax, wait);
    if (!room) co_return std::unexpected(room.error());
    ObjectState state = remains_.objects[fid].back();
    ++state.attribute_changes;
    Change change;
    put_object(change.records, fid, state, remains_.version, is_released(fid));
    remains_.objects[fid].push_back(state);
    const auto begun = volume_->begin(change, std::move(*room), Durability::kDurable, Data::kNone);
    if (!begun) co_return begun;
    const auto finished = co_await volume_->finish(&change);
    if (!finished) co_return std::unexpected(finished.error());
    acknowledge(fid, state);
    co_return Result<void>{};
}

Task<Result<void>> Machine::recall(Fid fid, core::Random* random) {
    TapeBook& book = remains_.tape;
    const core::WaitOptions wait{.deadline = after(machine_.reactor().now(), 5s)};
    MaybeTicket& ticket = book.recalls[fid];
    Result<void> done{};
    if (random->below(3) == 0) {
        ticket.after = std::nullopt;
        done = co_await volume_->end_recall(fid, wait);
    } else {
        ticket.after = book.next_ticket++;
        Recall recall{.ticket = *ticket.after, .requester = "alice"};
        const auto put = co_await volume_->put_recall(fid, std::move(recall), wait);
        if (!put) done = std::unexpected(put.error());
    }
    if (!done && passes(done.error())) ticket.after = ticket.before;
    if (done) ticket.before = ticket.after;
    co_return done;
}

void Machine::compare_recall(Fid fid, bool after_recovery) {
    const auto found = volume_->map().find_recall(fid);
    if (!found) return violate("a recall cannot be read");
    MaybeTicket& ticket = remains_.tape.recalls[fid];
    const std::optional<std::uint64_t> there =
        found->has_value() ? std::optional((*found)->ticket) : std::nullopt;
    volume_->map().release();
    const auto object = volume_->map().find(fid);
    const bool exists = object && object->has_value();
    volume_->map().release();
    const bool is_known = there == ticket.after || (after_recovery && there == ticket.before);
    // It ends with its object.
    if (exists ? is_known : !there) {
        ticket = {.before = there, .after = there};
        return;
    }
    violate("the recall of " + name_of(fid) + " is another one");
}

}  // namespace fopd::store::testing
