#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/clock.h"
#include "core/events.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "devices/label.h"
#include "devices/tape/tape_drive.h"
#include "io_sched/io_executor.h"
#include "io_sched/io_request.h"
#include "library/cartridge.h"
#include "library/media_shelf.h"
#include "library/robot.h"
#include "store/tape/tape_index.h"
#include "store/tape/tape_reader.h"
#include "store/tape/tape_writer.h"

namespace fopd::library {

class DriveUnit;

// What the node knows of the copies on its cartridges.
class TapeCatalogue {
public:
    virtual ~TapeCatalogue() = default;
    // The live copies in tape files of a cartridge from `first_file` on. It ends with an error
    // where not all of them are known, as a disk is missing.
    virtual std::unique_ptr<store::TapeEntrySource> copies_on(const Cartridge& cartridge,
                                                              std::uint64_t first_file) = 0;
};

// What is done with a cartridge while it is in a drive.
class TapeJob {
public:
    virtual ~TapeJob() = default;
    // The cartridge is loaded, and its label is right. A job may run several times: on another
    // drive, or with another cartridge, after a failure. An error is the drive's or the
    // cartridge's.
    virtual Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) = 0;
    // It cannot run, as the cartridge could not be brought or is another one.
    virtual void could_not_run() {}
    // Whether it only ends the session of writing.
    virtual bool ends_session() const { return false; }
    // Whether the cartridge may have any label, as it will get another one.
    virtual bool takes_any_label() const { return false; }
};

// A request of the I/O scheduler for a drive.
class TapeRequest : public io_sched::IoRequest {
public:
    TapeRequest(Complete complete, TapeJob& job) : IoRequest(complete), job_(job) {
        family = io_sched::IoFamily::kTape;
    }
    TapeJob& job() const { return job_; }

private:
    TapeJob& job_;
};

// A drive, with the cartridge that it has: exchanges cartridges, compares their labels with what
// they should be, and performs the requests that the scheduler gives to it.
//
// Lives on the library's reactor. One request at a time.
class DriveUnit {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        const core::Clock& clock;
        core::EventSink& events;
        devices::TapeDrive& drive;
        Robot& robot;
        MediaShelf& shelf;
        TapeCatalogue& catalogue;
        devices::NodeId node{};
    };
    explicit DriveUnit(const Parts& parts) : parts_(parts) {}

    // Performs the requests that the scheduler gives to the drive. The unit outlives it.
    std::unique_ptr<io_sched::IoExecutor> executor();

    // Loads a cartridge that an earlier life of the node has left in the drive. Called before the
    // first request.
    Task<void> look_into();
    // Brings a cartridge, or takes the one out that is there, whose session ends. REQUIRES: no
    // request is in progress.
    Task<Result<void>> mount(CartridgeId id) { return mount(id, Labels::kRight); }
    Task<Result<void>> unload();

    // -- sessions --

    // A session of writing ends with a tape file that lists the copies since the last one, if there
    // are any. If it cannot be written, that is said once, and the next session's lists them.
    // REQUIRES: no other request is in progress.
    Task<void> end_session();
    // When the cartridge that has such copies was written or loaded last; nothing: it has none, or
    // they could not be listed since.
    std::optional<Instant> session_at() const;

    // -- for jobs --

    // The writer at the end of the cartridge's data, which was found and compared with the table.
    // kCorrupt: the tape is shorter than the table says; it is suspect then.
    Task<Result<store::TapeWriter*>> writer();
    Task<Result<store::TapeReader*>> reader();
    // Labels the cartridge for a pool, whatever is on it.
    Task<Result<void>> format(std::string pool);
    // The id of a tape file, which is in its labels.
    static std::uint64_t file_id(const Cartridge& cartridge, std::uint64_t number);
    MediaShelf& shelf() { return parts_.shelf; }

    std::string_view name() const { return parts_.drive.name(); }
    const devices::TapeDrive& drive() const { return parts_.drive; }
    std::optional<CartridgeId> cartridge() const { return cartridge_; }
    std::string_view activity() const { return activity_; }
    bool is_down() const { return !down_reason_.empty(); }
    const std::string& down_reason() const { return down_reason_; }

private:
    class Executor;
    enum class Labels : std::uint8_t { kRight, kAny };

    Task<Result<void>> execute(const io_sched::IoRequest* request, const io_sched::IoPart* part);
    Task<Result<void>> load_and_check(CartridgeId id, Labels labels);
    Task<Result<void>> check_label(CartridgeId id);
    bool needs_index() const;
    Task<Result<void>> write_index();
    Task<Result<void>> recover(store::TapeEnd known, store::TapeEnd* end);
    void note_failure(CartridgeId id, io_sched::IoType type, const Error& error);
    void go_down(std::string_view reason);
    Task<Result<void>> mount(CartridgeId id, Labels labels);
    store::TapeIdentity identity_of(const Cartridge& cartridge) const;
    void forget_positions() {
        writer_.reset();
        reader_.reset();
    }

    const Parts parts_;
    std::optional<CartridgeId> cartridge_;
    bool label_is_right_ = false;
    std::optional<Instant> session_at_;
    std::optional<store::TapeWriter> writer_;
    std::optional<store::TapeReader> reader_;
    std::string_view activity_ = "idle";
    std::uint32_t failures_in_turn_ = 0;
    std::string down_reason_;
};

}  // namespace fopd::library
