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

// The parts of a recall that exist only while it is served, or if several cartridges have copies.
struct TapeLibrary::Served {
    struct Serving {
        Serving(const RecallJob::Parts& parts, std::uint32_t locality, RecallNote note)
            : job(parts, locality, std::move(note)) {}

        void end() {
            cancel.cancel();
            if (of_request) of_request->cancel();
        }

        RecallJob job;
        core::CancelSource cancel;
        std::optional<core::CancelSource> of_request;  // Cancels the request of the last push().
        // A newer request for the same object. It is served next if this recall has ended.
        std::optional<RecallNote> renewed{};
        std::coroutine_handle<> reader{};  // Waits for the end of a read.
    };

    std::unique_ptr<std::vector<io_sched::IoPart>> several_parts{};
    std::unique_ptr<Serving> serving{};
};

// The place of a recall in the list by age; the oldest is the first.
class TapeLibrary::AgePlace : public core::ListNode {};

// A pending recall of the library. While it waits for its cartridge, it is only a request of the
// I/O scheduler. A coroutine serves it from the time when the cartridge is loaded, or when the
// request fails because no copy can be reached.
struct TapeLibrary::Recall final : Served, AgePlace, TapeJob, TapeRequest {
    Recall(TapeLibrary& its_library, std::uint32_t its_locality, const RecallNote& note);

    static io_sched::IoPriority class_of(std::uint8_t priority);

    Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) override;
    // Pushes it to wait for one of these copies, with the priority of the last wish. REQUIRES: the
    // scheduler does not have it.
    void push(std::span<const RecallJob::Place> places);
    CartridgeId cartridge() const { return static_cast<CartridgeId>(parts.front().medium); }
    // The bytes that precede the copy on that cartridge.
    std::uint64_t offset() const { return parts.front().offset; }
    bool is_reading() const { return serving != nullptr && serving->job.is_reading(); }

    TapeLibrary& library;
    const store::Fid fid;
    const std::uint64_t size_bytes;
    const Instant asked_at;
    const std::uint32_t number;  // In the order in which the library took them.
    const std::uint16_t locality;
    std::uint8_t wish_priority;
    bool is_pushed = false;
    bool is_over = false;    // The recall has ended at the object's home.
    bool is_raised = false;  // Its request was withdrawn to be pushed with another priority.
    // Its place and expected end when the list was last made.
    static constexpr std::uint32_t kNoPlace = ~std::uint32_t{0};
    std::uint32_t last_place = kNoPlace;  // kNoPlace: it was not in the list.
    Instant last_end = kNever;            // kNever: unknown.
    io_sched::IoPart only_part{};

private:
    static void on_complete(io_sched::IoRequest& request);
};

}  // namespace fopd::library
