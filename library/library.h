#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cancel.h"
#include "core/gate.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "library/cartridge.h"
#include "library/medium_work.h"
#include "library/recall.h"

namespace fopd::library {

class Staging;

// A drive as lists show it.
struct DriveRow {
    std::string name;
    std::string serial;
    std::string technology;
    std::string barcode = {};   // The loaded cartridge; empty: none.
    std::string activity = {};  // "idle", "reading", "writing", "exchanging", "down"
    std::string reason = {};    // Why the drive is down.
    std::uint64_t mounts = 0;   // Since the node was started.
};

// A format of a cartridge that has not ended, as lists show it.
struct FormatRow {
    std::string barcode;
    std::string pool;
    Instant asked_at{};
    bool has_begun = false;  // It does not wait for a drive any more.
};

// The faults of a library.
struct LibraryCondition {
    std::string name{};
    std::string not_open{};       // Why it is not open; empty: it is open, or is being opened.
    std::string changer_fault{};  // The error of the last inventory; empty: it has succeeded.
    std::vector<DriveRow> drives_down{};
    // Labelled cartridges that cannot be read, or whose content is not as recorded. Those that an
    // administrator has taken out or disabled are no fault.
    std::vector<Cartridge> bad_media{};
};

// The outcome of an administrator's operation on a cartridge or drive, with the reason of a
// failure.
struct MediaOutcome {
    enum class Kind : std::uint8_t {
        kDone,
        kNoSuchMedium,
        kNoSuchDrive,
        kRefused,  // It is in use, holds data, …: `words` says it.
        kFailed,
    };
    Kind kind = Kind::kDone;
    std::string words = {};
    // The cartridges that an import has put into use again.
    std::vector<Cartridge> imported = {};
    // After an export: how many objects have copies on the cartridge, how many of these have no
    // bytes elsewhere, and whether the cartridge lies in an exchange element, for people to take.
    std::uint64_t objects = 0;
    std::uint64_t only_here = 0;
    bool is_in_exchange = false;
};

inline MediaOutcome outcome(MediaOutcome::Kind kind, std::string words) {
    return {.kind = kind, .words = std::move(words)};
}
inline MediaOutcome failed_outcome(const Error& error) {
    return outcome(MediaOutcome::Kind::kFailed, describe(error));
}
inline MediaOutcome outcome(const Result<void>& result) {
    return result ? MediaOutcome{} : failed_outcome(result.error());
}
inline MediaOutcome no_such_medium(const std::string& barcode) {
    return outcome(MediaOutcome::Kind::kNoSuchMedium, "there is no cartridge " + barcode);
}

// The data that a format may destroy. kRefuseData: none. kForgetData: copies of objects whose bytes
// are also on a disk or on another cartridge. kLoseObjects: also the last copies of objects.
enum class FormatForce : std::uint8_t { kRefuseData, kForgetData, kLoseObjects };

// The interface of the node's tape library for fops and administrators. Lives on one locality. All
// calls are made on its reactor; other localities use run_task_on() or run_on() with LibraryDoor.
class LibraryService {
public:
    virtual ~LibraryService() = default;

    // Writes the objects of a pool to tape at once, and waits until each object that is on a disk
    // at the time of the call has its copies. kNotFound: this library does not have the pool. kIo:
    // some objects could not be written.
    virtual Task<Result<void>> sync(std::string pool, core::WaitOptions wait) = 0;

    // The recalls in the order in which they are expected to end, at most `rows_max`. If there are
    // 10 000 or more, what it says of them may be a second old for each 10 000.
    virtual std::vector<RecallRow> recalls(std::size_t rows_max) const = 0;
    virtual PendingRecalls pending_recalls() const = 0;
    // The row of one recall; its place and expected end may be some seconds old. Nothing: there is
    // no such recall.
    virtual std::optional<RecallRow> find_recall(Ticket ticket) = 0;
    // The reason why no recall can be served until an administrator does something, and what to do,
    // for people. Empty: recalls are served.
    virtual std::string why_recalls_wait() const = 0;
    virtual std::vector<Cartridge> media() const = 0;
    // Called before the cartridges are listed: asks the changer which ones the library has, unless
    // that was done a moment ago or the changer is in use.
    virtual Task<void> look_for_media() = 0;
    virtual std::vector<DriveRow> drives() const = 0;
    // The reason why the library is not open, for people. Nothing: it is open. Empty text: it is
    // being opened for the first time.
    virtual std::optional<std::string> why_not_open() const = 0;

    // Labels a cartridge for a pool. Refuses a cartridge with copies or foreign data, unless
    // `force` allows that they are forgotten, and one with the last copies of objects, unless
    // `force` allows that these are lost. A refused format changes nothing, also if the drive finds
    // the reason. Like load(), it finds a cartridge that was brought a moment ago.
    struct FormatWish {
        std::string barcode;
        std::string pool;
        FormatForce force = FormatForce::kRefuseData;
        // Ends the wait for a drive; the cartridge is then not formatted. A format that has begun
        // is finished. Null: nothing ends the wait. Outlives the call.
        core::CancelSource* cancel = nullptr;
    };
    virtual Task<MediaOutcome> format(FormatWish wish) = 0;
    // The formats that wait for a drive or have begun, the oldest first.
    virtual std::vector<FormatRow> formats() const = 0;
    // Gives up the formats of a cartridge that wait for a drive. kNoSuchMedium: there are none.
    // kRefused: one has begun, and is finished.
    virtual Task<MediaOutcome> cancel_format(std::string barcode) = 0;
    // Brings a cartridge to an idle drive, and loads it.
    struct LoadWish {
        std::string barcode;
        std::string drive;
    };
    virtual Task<MediaOutcome> load(LoadWish wish) = 0;
    // Takes the cartridge of an idle drive back to its storage element.
    virtual Task<MediaOutcome> unload(std::string drive) = 0;
    // Moves a cartridge to an exchange element, from which people can take it. The library does not
    // use it until it is imported, also after a restart, but keeps the records of its copies. A
    // library without exchange elements leaves the cartridge where it is. Refused while the
    // cartridge is in use, needed by a recall, repacked or scrubbed. Also refused if objects could
    // not be read any more, unless `hides_objects` is set.
    struct ExportWish {
        std::string barcode;
        bool hides_objects = false;
    };
    virtual Task<MediaOutcome> export_medium(ExportWish wish) = 0;
    // Moves a cartridge from an exchange element to a storage element. An exported cartridge is
    // used again, in its state from before the export. Empty barcode: all cartridges in exchange
    // elements, and in a library with such elements also exported cartridges that people have put
    // into storage elements.
    virtual Task<MediaOutcome> import_media(std::string barcode) = 0;
    // Takes a drive out of use until bring_drive_up(), also over restarts. The drive ends its
    // operation and gives its cartridge back first.
    virtual Task<MediaOutcome> take_drive_down(std::string drive) = 0;
    // Uses a drive again that was taken down or has failed.
    virtual Task<MediaOutcome> bring_drive_up(std::string drive) = 0;

    // Begins a repack: moves the live copies on a cartridge to others of its pool, with a lower
    // priority than all work for users. Afterwards the cartridge may be formatted. A repack goes on
    // after a restart. Has no effect if one is in progress. kRefused: the other cartridges lack
    // room, for example.
    virtual Task<MediaOutcome> repack(std::string barcode) = 0;
    // Ends a repack, and lets the cartridge be written again. Moved copies stay moved.
    virtual Task<MediaOutcome> cancel_repack(std::string barcode) = 0;
    // The latest repack since the start of the node; nothing: there was none.
    virtual std::optional<MediumWork> repack_work(std::string_view barcode) const = 0;

    // Begins a scrub: reads the live copies on a cartridge and compares them with their records,
    // with a lower priority than all work for users. One cartridge is scrubbed at a time. A scrub
    // goes on after a restart. Has no effect if one is in progress.
    virtual Task<MediaOutcome> scrub(std::string barcode) = 0;
    // Ends a scrub.
    virtual Task<MediaOutcome> cancel_scrub(std::string barcode) = 0;
    // The latest scrub since the start of the node; nothing: there was none.
    virtual std::optional<MediumWork> scrub_work(std::string_view barcode) const = 0;

    // Begins a rescue of a cartridge that was written by another node, or by this node before it
    // was lost. Makes objects, whose bytes are on tape only, from all copies on the cartridge. From
    // then on the cartridge belongs to this node. One cartridge is rescued at a time. After a
    // restart the rescue begins anew, which does no harm. Has no effect if a rescue of the
    // cartridge is in progress. kRefused: for example, this node has records of copies on the
    // cartridge.
    struct RescueWish {
        std::string barcode;
        // The pool of the new objects. Empty: the tape pool with the name of the pool in which the
        // objects were.
        std::string pool = {};
    };
    virtual Task<MediaOutcome> rescue(RescueWish wish) = 0;
    // Ends a rescue. The objects that were made stay.
    virtual Task<MediaOutcome> cancel_rescue(std::string barcode) = 0;
    // The latest rescue since the start of the node; nothing: there was none. An object that lacks
    // pieces counts as a failure until they are found.
    virtual std::optional<MediumWork> rescue_work(std::string_view barcode) const = 0;
};

// How a locality of a node reaches its library and the staging of all localities. Immutable once
// the node serves.
struct LibraryDoor {
    LibraryService* service = nullptr;  // Null: the node has no library.
    core::Reactor* reactor = nullptr;
    core::Gate* gate = nullptr;  // The library's gate, for run_task_on().
    // The staging of each locality.
    std::vector<Staging*> stagings = {};
};

}  // namespace fopd::library
