#pragma once

#include <coroutine>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/intrusive_list.h"
#include "library/drive_unit.h"
#include "library/recall_job.h"
#include "library/tape_library.h"

namespace fopd::library {

// The parts of a recall that exist only while it is served.
struct TapeLibrary::Serving {
    Serving(const RecallJob::Parts& parts, std::uint32_t locality, RecallNote note)
        : job(parts, locality, std::move(note)) {}

    RecallJob job;
    core::CancelSource cancel;
    bool pushes = false;  // The request was pushed since the recall is served.
    // A newer request for the same object. It is served next if this recall has ended.
    std::optional<RecallNote> renewed{};
    std::coroutine_handle<> reader{};  // Waits for the end of a read.
};

// The place of a recall in the list by age; the oldest is the first.
class TapeLibrary::AgePlace : public core::ListNode {};

// A pending recall of the library. While it waits for its cartridge, it is only a request of the
// I/O scheduler: very many may wait. A coroutine serves it from the time when the cartridge is
// loaded, or when the request fails because no copy can be reached.
struct TapeLibrary::Recall final : TapeRequest, AgePlace {
    Recall(TapeLibrary& its_library, std::uint32_t its_locality, const RecallNote& note);

    // Recalls below the priority of reads are background work.
    static io_sched::IoPriority class_of(std::uint8_t priority);

    Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) override;
    // Gives the request to the scheduler, to wait for one of these copies with the priority of the
    // last wish. REQUIRES: the scheduler does not have the request.
    void push(std::span<const RecallJob::PieceCopy> copies);
    // Ends the service of the recall. REQUIRES: serving() is not null.
    void end_serving();
    CartridgeId cartridge() const { return static_cast<CartridgeId>(parts.front().medium); }
    // The bytes that precede the copy on that cartridge.
    std::uint64_t offset() const { return parts.front().offset; }
    // The size of the object.
    std::uint64_t size_bytes() const {
        return serving() == nullptr ? parts.front().size_bytes : serving()->job.note().size_bytes;
    }
    Serving* serving() const { return extra == nullptr ? nullptr : extra->serving.get(); }
    bool is_reading() const { return serving() != nullptr && serving()->job.is_reading(); }

    // Exists only if the recall is served, or if several cartridges have its bytes. Few of the
    // waiting recalls have one.
    struct Extra {
        std::unique_ptr<Serving> serving{};
        std::vector<io_sched::IoPart> several_parts{};
    };

    TapeLibrary& library;
    const store::Fid fid;
    const Instant asked_at;
    std::unique_ptr<Recall> next_in_table{};
    std::unique_ptr<Extra> extra{};
    // Its place in the queue and its expected end when the queue was listed last.
    static constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};
    Instant last_end = kNever;            // kNever: unknown.
    std::uint32_t last_place = kNoPlace;  // kNoPlace: it was not in the queue.
    const std::uint16_t locality;
    std::uint8_t wish_priority;
    bool is_pushed : 1 = false;
    bool is_over : 1 = false;     // The recall has ended at the object's home.
    bool is_renewed : 1 = false;  // The recall was requested again after is_over was set.
    // Its request was withdrawn from the scheduler, to be pushed with another priority.
    bool is_raised : 1 = false;
    io_sched::IoPart only_part{};

private:
    static void on_complete(io_sched::IoRequest& request);
};

}  // namespace fopd::library
