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
#include "library/blame.h"
#include "library/cartridge.h"
#include "library/measured_drive.h"
#include "library/media_shelf.h"
#include "library/robot.h"
#include "store/tape/recovery.h"
#include "store/tape/tape_index.h"
#include "store/tape/tape_reader.h"
#include "store/tape/tape_writer.h"

namespace fopd::store {
struct Inspection;
}

namespace fopd::library {

class DriveUnit;

// Lists the copies that the records of objects have on a cartridge.
class TapeCatalogue {
public:
    virtual ~TapeCatalogue() = default;
    // The live copies in the tape files of a cartridge from `first_file` on. The list ends with an
    // error if a disk is missing, since its copies are then unknown.
    virtual std::unique_ptr<store::TapeEntrySource> copies_on(const Cartridge& cartridge,
                                                              std::uint64_t first_file) = 0;
    // The newest label under which the disks have recorded a copy on the cartridge; 0: none.
    virtual Task<Result<std::uint32_t>> newest_generation(store::VsnText vsn) = 0;
};

// The result of a request for a drive, and the origin of an error. The library judges drives and
// cartridges by it.
struct TapeOutcome {
    enum class Kind : std::uint8_t {
        kWorked,       // The tape was read; or it was written, durably.
        kNothingDone,  // The request needed no operation of the tape.
        kTapeError,    // The drive or the cartridge has failed.
        // The changer or a disk of the node has failed, or the data on the tape are wrong: that is
        // not the drive's fault.
        kOtherError,
    };
    Kind kind = Kind::kNothingDone;
    Result<void> result{};
};

// The work on a cartridge while it is in a drive.
class TapeJob {
public:
    virtual ~TapeJob() = default;
    // The cartridge is loaded, and its label is right. A job may run several times: on another
    // drive, or with another cartridge, after a failure. The operations of the drive tell whether
    // an error is the drive's or the cartridge's.
    virtual Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) = 0;
    // The job cannot run: the cartridge could not be brought, or another one was found.
    virtual void could_not_run() {}
    // Whether the job only writes the index file that ends a session of writing.
    virtual bool ends_session() const { return false; }
    // Whether the cartridge may have any label, since the job writes a new one.
    virtual bool takes_any_label() const { return false; }
};

// A request of the I/O scheduler for a drive, which does its work there itself.
class TapeRequest : public TapeJob, public io_sched::IoRequest {
public:
    explicit TapeRequest(Complete complete) : IoRequest(complete) {
        family = io_sched::IoFamily::kTape;
    }
};

// A request whose work is that of a job, which outlives it.
class JobRequest : public TapeRequest {
public:
    JobRequest(Complete complete, TapeJob& job) : TapeRequest(complete), job_(job) {}

    Task<Result<void>> run(DriveUnit* drive, CartridgeId cartridge) final {
        return job_.run(drive, cartridge);
    }
    void could_not_run() final { job_.could_not_run(); }
    bool ends_session() const final { return job_.ends_session(); }
    bool takes_any_label() const final { return job_.takes_any_label(); }

private:
    TapeJob& job_;
};

// A drive with its cartridge: exchanges cartridges, compares their labels with the table of media,
// and performs the requests that the I/O scheduler gives to the drive.
//
// Lives on the library's reactor. One request at a time.
class DriveUnit {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        const core::Clock& clock;
        core::EventSink& events;
        MeasuredDrive& drive;
        Robot& robot;
        MediaShelf& shelf;
        Blame& blame;  // Of the library.
        TapeCatalogue& catalogue;
        devices::NodeId node{};
    };
    explicit DriveUnit(const Parts& parts) : parts_(parts) { parts_.robot.add_drive(parts_.drive); }
    ~DriveUnit() { parts_.robot.remove_drive(parts_.drive.serial()); }
    DriveUnit(const DriveUnit&) = delete;
    DriveUnit& operator=(const DriveUnit&) = delete;

    // Performs the requests that the scheduler gives to the drive. The unit outlives it.
    std::unique_ptr<io_sched::IoExecutor> executor();

    // Loads a cartridge that an earlier life of the node has left in the drive. Called before the
    // first request.
    Task<void> look_into();
    // Loads a cartridge that people have put into the drive. REQUIRES: no request is in progress.
    Task<void> adopt(CartridgeId id);
    // Brings a cartridge and loads it. Before that, ends the session of the present cartridge and
    // puts it away. REQUIRES: no request is in progress.
    Task<Result<void>> mount(CartridgeId id);
    Task<Result<void>> unload();
    // Unloads the cartridge so that another drive can take it, because this drive has failed. The
    // session continues in the other drive.
    Task<Result<void>> hand_over();

    // -- sessions --

    // Ends the session of writing: writes an index file, which lists the copies that were written
    // since the last index file, if there are any. If the write fails, one event says so, and the
    // index file of the next session lists these copies. REQUIRES: no request is in progress.
    Task<void> end_session();
    // When the cartridge was last written or loaded, if it has copies that no index file lists.
    // Nothing: it has no such copies, or the index file could not be written.
    std::optional<Instant> session_at() const;

    // -- for jobs --

    // Writes an index file, which may list no files, to find out whether the drive and the
    // cartridge work.
    Task<Result<void>> try_writing();

    // Compares the end of the cartridge's data with the table, and returns a writer that is
    // positioned there. kCorrupt: the tape is shorter than the table says; the cartridge becomes
    // suspect. kInvalid: by its serial number it may be a copy of the cartridge.
    Task<Result<store::TapeWriter*>> writer();
    Task<Result<store::TapeReader*>> reader();
    // If the table lacks the number in the cartridge's file ids, reads it from the labels of a tape
    // file. kCorrupt: the file was not written under this label of the cartridge.
    Task<Result<void>> learn_number(store::TapeFile file);
    // Reads the identity in the cartridge's label and first file. Errors: as
    // store::read_identity(). kInvalid: the label does not match the barcode.
    Task<Result<store::TapeIdentity>> identify();
    // Notes in the table that the cartridge has this identity, and that its files are not known
    // yet. Durable on return.
    Task<Result<void>> take_over(store::TapeIdentity identity);
    // Gives the sink all copies in complete files of the cartridge. The sink must live until the
    // call has ended.
    Task<Result<store::Recovered>> find_copies(store::RecoverySink* sink);
    // Notes the number in the ids of the cartridge's tape files, if it is not known yet. False:
    // this file has another number, or was written under another label.
    bool takes_file(const store::TapeFile& file);
    // Checks that the cartridge can get a label: its first block can be read, and it can be
    // written. Changes nothing. kDenied, kInvalid: it cannot get one, with the reason.
    Task<Result<void>> can_format();
    // After can_format(): the other cartridge of the table whose label the tape has, as if barcodes
    // were exchanged. Nothing: there is none.
    std::optional<CartridgeId> other_on_tape() const { return other_on_tape_; }
    // Labels the cartridge for a pool; its data are lost. After a failure the library tries again
    // by itself only if the cartridge was blank.
    Task<Result<void>> format(std::string pool);
    // The id of a tape file, which is in its labels.
    static std::uint64_t file_id(const Cartridge& cartridge, std::uint64_t number);
    MediaShelf& shelf() { return parts_.shelf; }

    std::string_view name() const { return parts_.drive.name(); }
    const devices::TapeDrive& drive() const { return parts_.drive; }
    std::optional<CartridgeId> cartridge() const { return cartridge_; }
    DriveActivity activity() const { return activity_; }
    // When the present activity began, and how many bytes it reads or writes.
    Instant busy_since() const { return busy_since_; }
    std::uint64_t busy_bytes() const { return busy_bytes_; }
    bool is_down() const { return !down_reason_.empty(); }
    // An administrator takes the drive out of use, or into use again, also after it has failed.
    // REQUIRES: no request is in progress.
    void take_down();
    void bring_up();
    const std::string& down_reason() const { return down_reason_; }

private:
    class Executor;
    enum class Labels : std::uint8_t { kRight, kAny };
    enum class Index : std::uint8_t { kOfNewFiles, kAlways };

    Task<Result<void>> execute(const io_sched::IoRequest* request, const io_sched::IoPart* part);
    Task<TapeOutcome> bring(CartridgeId id, Labels labels);
    Task<TapeOutcome> run(TapeJob* job, io_sched::IoType type, CartridgeId id);
    Task<void> note_block();
    Task<Result<void>> load_and_check(CartridgeId id, Labels labels);
    Task<Result<void>> check_label(CartridgeId id);
    void note_generation(const store::Inspection& found);
    void take_serial(Cartridge& cartridge);
    Task<void> judge_serial(CartridgeId id);
    void note_other(const store::Inspection& found);
    Task<Result<std::uint32_t>> next_generation(CartridgeId id);
    bool needs_index() const;
    Task<Result<void>> write_index(Index which);
    Task<Result<void>> recover(store::TapeEnd known, store::TapeEnd* end);
    void judge(CartridgeId id, io_sched::IoType type, const TapeOutcome& outcome);
    // Whether an operation of the drive has failed since the trial began.
    bool has_failed() const { return parts_.drive.trial().has_failed; }
    void say_failed(CartridgeId id, std::string_view operation, const TapeOutcome& outcome);
    bool note_number(std::uint64_t found_id);
    void note_damage(CartridgeId id, std::string_view reason);
    void blame_cartridge(CartridgeId id, io_sched::IoType type, std::string_view reason);
    void go_down(std::string_view reason);
    void expect_blocks();
    void note_stuck(std::optional<CartridgeId> id, const Error& error);
    void set_stuck(CartridgeId id, std::string_view drive);
    std::optional<CartridgeId> cartridge_there() const;
    Task<void> load_found(CartridgeId id);
    // Nothing: the inventory says which cartridge it is.
    Task<Result<void>> give_back(std::optional<CartridgeId> id);
    Task<Result<void>> mount(CartridgeId id, Labels labels);
    Task<Result<void>> take_out();
    void set_activity(DriveActivity activity);
    store::TapeIdentity identity_of(const Cartridge& cartridge) const;
    void forget_positions() {
        writer_.reset();
        reader_.reset();
    }

    const Parts parts_;
    std::optional<CartridgeId> cartridge_;
    bool label_is_right_ = false;
    // The label is right, and the serial number is that of another cartridge.
    bool may_be_copy_ = false;
    // The generation in the label that is on the tape; 0: the tape has the label of another
    // cartridge.
    std::uint32_t generation_on_tape_ = 0;
    std::optional<CartridgeId> other_on_tape_;
    // The position of the tape after the last request, as a block number; 0: unknown.
    std::uint64_t block_ = 0;
    std::optional<Instant> session_at_;
    std::optional<store::TapeWriter> writer_;
    std::optional<store::TapeReader> reader_;
    DriveActivity activity_ = DriveActivity::kIdle;
    Instant busy_since_{};
    std::uint64_t busy_bytes_ = 0;
    bool did_not_load_ = false;      // The last mount() could not load the cartridge.
    bool fails_everywhere_ = false;  // The result of the last request, as in IoExecutor::Content.
    std::string down_reason_;
};

}  // namespace fopd::library
