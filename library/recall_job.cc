#include "library/recall_job.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "objects/block_io.h"

namespace fopd::library {

namespace {

using objects::kBlock;

// Whether the copy has the byte at that offset; or, of an object without bytes, whether it is one.
bool has_byte(const store::Copy& copy, std::uint64_t offset) {
    return copy.offset <= offset && (offset < copy.end() || copy.length == 0);
}

}  // namespace

std::vector<RecallJob::PieceCopy> RecallJob::copies_at(const MediaShelf& shelf,
                                                       const RecallNote& note,
                                                       std::uint64_t offset) {
    std::vector<PieceCopy> copies;
    for (const store::Copy& each : note.copies) {
        if (!has_byte(each, offset)) continue;
        const Cartridge* const cartridge = find_cartridge(shelf.table().all(), each.cartridge);
        if (cartridge == nullptr || !is_readable(cartridge->state)) continue;
        const auto known = std::ranges::find(copies, cartridge->id, &PieceCopy::cartridge);
        if (known == copies.end()) {
            copies.push_back({.cartridge = cartridge->id, .copy = each});
        } else if (known->copy.end() < each.end()) {
            known->copy = each;
        }
    }
    return copies;
}

bool RecallJob::may_be_back() const {
    return std::ranges::any_of(note_.copies, [this](const store::Copy& each) {
        if (!has_byte(each, next_offset_)) return false;
        const Cartridge* const cartridge =
            find_cartridge(parts_.shelf.table().all(), each.cartridge);
        return cartridge == nullptr || cartridge->state == CartridgeState::kMissing;
    });
}

std::string RecallJob::why_unreadable() const {
    std::string why;
    for (const store::Copy& each : note_.copies) {
        if (!has_byte(each, next_offset_)) continue;
        const Cartridge* const cartridge =
            find_cartridge(parts_.shelf.table().all(), each.cartridge);
        if (!why.empty()) why += "; ";
        if (cartridge == nullptr) {
            why += "cartridge " + std::string(store::text_of(each.cartridge.vsn)) + " is unknown";
            continue;
        }
        why +=
            "cartridge " + cartridge->barcode + " is " + std::string(to_string(cartridge->state));
        if (!cartridge->reason.empty()) why += " (" + cartridge->reason + ")";
    }
    return why.empty() ? "no copy of the object is known" : why;
}

Task<Result<void>> RecallJob::run(DriveUnit* drive, CartridgeId cartridge) {
    is_reading_ = true;
    const auto read = co_await read_pieces(drive, cartridge);
    is_reading_ = false;
    co_return read;
}

Task<Result<void>> RecallJob::read_pieces(DriveUnit* drive, CartridgeId cartridge) {
    while (state_ == State::kPieces) {
        if (parts_.stopping) {
            state_ = State::kAgain;
            break;
        }
        const bool begun = co_await begin();
        if (!begun) break;
        const auto copies = next_copies();
        const auto here = std::ranges::find(copies, cartridge, &PieceCopy::cartridge);
        // The next piece has no copy on this cartridge.
        if (here == copies.end()) break;
        const store::Copy copy = here->copy;
        const auto read = co_await read_piece(drive, &copy);
        if (!read) co_return read;
        if (state_ != State::kPieces) break;
        next_offset_ = copy.end();
        if (next_offset_ >= note_.size_bytes) co_await finish();
    }
    co_return Result<void>{};
}

// Takes space on the disk: not before the cartridge is loaded, so that waiting recalls take none.
Task<bool> RecallJob::begin() {
    if (begun_) co_return true;
    auto job = [fid = note_.fid](StagingDisks& disks) { return disks.returning().begin(fid); };
    const auto begun = co_await parts_.homes.run_at<ReturningObjects::Content>(locality_, &job);
    if (!begun) {
        note_home_error(begun.error());
        co_return false;
    }
    begun_ = true;
    next_offset_ = 0;
    co_return true;
}

void RecallJob::note_home_error(const Error& error) {
    // If the recall is not needed any more, the home has ended it.
    state_ = error.code == Errc::kNotFound  ? State::kDone
             : error.code == Errc::kInvalid ? State::kImpossible
                                            : State::kAgain;
    home_error_ = error;
}

Task<Result<void>> RecallJob::make_room() {
    auto job = [fid = note_.fid](StagingDisks& disks) { return disks.returning().make_room(fid); };
    co_return co_await parts_.homes.run_at<void>(locality_, &job);
}

Task<Result<void>> RecallJob::read_piece(DriveUnit* drive, const store::Copy* copy) {
    const auto reader = co_await drive->reader();
    if (!reader) co_return std::unexpected(reader.error());
    const store::TapeFile file{.number = copy->position.file, .block = copy->block};
    const auto learnt = co_await drive->learn_number(file);
    if (!learnt) co_return learnt;
    const Cartridge& cartridge = *drive->shelf().find(*drive->cartridge());
    store::TapeEntry entry{.file = {.number = copy->position.file,
                                    .block = copy->block,
                                    .file_id = DriveUnit::file_id(cartridge, copy->position.file)},
                           .position = copy->position.member,
                           .member = {.fid = copy->fid.origin(),
                                      .version = copy->version,
                                      .offset = copy->offset,
                                      .size_bytes = copy->length,
                                      .checksum = copy->checksum}};
    auto opening = (*reader)->open(std::move(entry));
    const auto opened = co_await std::move(opening);
    if (!opened) co_return opened;
    co_return co_await read_bytes(*reader, copy);
}

Task<Result<void>> RecallJob::read_bytes(store::TapeReader* reader, const store::Copy* copy) {
    std::uint64_t offset = copy->offset;
    for (;;) {
        const auto read = co_await reader->next();
        if (!read) co_return std::unexpected(read.error());
        if (read->bytes.empty()) co_return Result<void>{};
        if (parts_.stopping) {
            state_ = State::kAgain;
            co_return Result<void>{};
        }
        const std::uint64_t begin = offset;
        offset += read->bytes.size();
        // Pieces of an object overlap if it was not always written in pieces of the same size.
        if (offset <= next_offset_) continue;
        const auto known = static_cast<std::size_t>(std::max(begin, next_offset_) - begin);
        const auto rest = read->bytes.subspan(known);
        const ReturningObjects::Part part{
            .fid = note_.fid,
            .offset = begin + known,
            // The home does not write to this memory.
            .from = {.data = const_cast<std::byte*>(rest.data()), .size_bytes = rest.size()},
            .checksums = read->checksums.subspan(known / kBlock)};
        auto job = [part](StagingDisks& disks) { return disks.returning().write(part); };
        const auto written = co_await parts_.homes.run_at<void>(locality_, &job);
        if (!written) {
            note_home_error(written.error());
            co_return Result<void>{};
        }
    }
}

Task<void> RecallJob::finish() {
    begun_ = false;
    auto job = [fid = note_.fid](StagingDisks& disks) { return disks.end_return(fid); };
    const auto ended = co_await parts_.homes.run_at<void>(locality_, &job);
    if (ended) {
        state_ = State::kDone;
        is_complete_ = true;
    } else {
        note_home_error(ended.error());
    }
}

Task<void> RecallJob::abandon() {
    next_offset_ = 0;
    if (!std::exchange(begun_, false)) co_return;
    auto job = [fid = note_.fid](StagingDisks& disks) { return disks.returning().abandon(fid); };
    [[maybe_unused]] const auto done = co_await parts_.homes.run_at<void>(locality_, &job);
}

}  // namespace fopd::library
