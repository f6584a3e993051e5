#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

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
    std::string barcode = {};   // Of the loaded cartridge; empty: none.
    std::string activity = {};  // "idle", "reading", "writing", "exchanging", "down"
    std::string reason = {};    // Why it is down.
    std::uint64_t mounts = 0;   // Since the node was started.
};

// What is wrong with a library.
struct LibraryCondition {
    std::string name{};
    std::string not_open{};  // Why it could not be opened; empty: it is open, or is being opened.
    std::string changer_fault{};  // Why its changer does not say what it has; empty: it does.
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
    // Of an import: the cartridges that are used again.
    std::vector<Cartridge> imported = {};
    // Of an export: how many objects have copies on the cartridge, and how many of these have their
    // bytes nowhere else; and whether people can take it from an exchange element.
    std::uint64_t objects = 0;
    std::uint64_t only_here = 0;
    bool is_in_exchange = false;
};

// What may be lost with a format: nothing, copies of objects that have others or their bytes on a
// disk, or objects as well.
enum class FormatForce : std::uint8_t { kRefuseData, kForgetData, kLoseObjects };

// The node's tape library, as others than it use it: fops and the administrator. Lives on one
// locality. All calls are made on its reactor; other localities use run_task_on() or run_on() with
// LibraryDoor.
class LibraryService {
public:
    virtual ~LibraryService() = default;

    // Waits until every object of the pool that is on a disk when it is called has its copies on
    // tape, and writes them at once. kNotFound: it is not a pool of this library. kIo: some could
    // not be written.
    virtual Task<Result<void>> sync(std::string pool, core::WaitOptions wait) = 0;

    // In the order in which they are expected to end, at most `rows_max`.
    virtual std::vector<RecallRow> recalls(std::size_t rows_max) const = 0;
    // As in that list; place and expected end may be some seconds old. Nothing: there is none.
    virtual std::optional<RecallRow> find_recall(Ticket ticket) = 0;
    virtual std::vector<Cartridge> media() const = 0;
    // Somebody is going to read that list: finds out which cartridges there are, if that was not
    // done a moment ago and cartridges are not being moved.
    virtual Task<void> look_for_media() = 0;
    virtual std::vector<DriveRow> drives() const = 0;
    // Nothing: the library is open. Empty: it is being opened for the first time.
    virtual std::optional<std::string> why_not_open() const = 0;

    // Labels a cartridge for a pool. Refuses one that holds data of an object or of others, unless
    // told to forget the data, and one with the only copies of objects, unless told to lose these.
    // A format that is refused changes nothing, also where the drive finds the reason. Like load(),
    // it finds a cartridge that was brought a moment ago.
    struct FormatWish {
        std::string barcode;
        std::string pool;
        FormatForce force = FormatForce::kRefuseData;
    };
    virtual Task<MediaOutcome> format(FormatWish wish) = 0;
    // Brings a cartridge to a drive that is idle, and loads it.
    struct LoadWish {
        std::string barcode;
        std::string drive;
    };
    virtual Task<MediaOutcome> load(LoadWish wish) = 0;
    // Takes the cartridge of an idle drive back to its slot.
    virtual Task<MediaOutcome> unload(std::string drive) = 0;
    // Moves a cartridge to an exchange element, from which people can take it, and does not use it
    // until it is imported, also over restarts; its copies stay known. A library without such
    // elements leaves it where it is. Refused while it is in use, wanted by a recall, repacked or
    // scrubbed, and if objects could not be read any more, unless told that they may.
    struct ExportWish {
        std::string barcode;
        bool hides_objects = false;
    };
    virtual Task<MediaOutcome> export_medium(ExportWish wish) = 0;
    // Moves cartridges from exchange elements to storage elements, and uses those again that were
    // exported, as what they were. Empty: all of them. In a library with exchange elements these
    // include exported ones that people have put into storage elements.
    virtual Task<MediaOutcome> import_media(std::string barcode) = 0;
    // Takes a drive out of use until it is brought up again, also over restarts: it ends what it
    // does, and gives its cartridge back.
    virtual Task<MediaOutcome> take_drive_down(std::string drive) = 0;
    // Uses a drive again that was taken down, or has failed.
    virtual Task<MediaOutcome> bring_drive_up(std::string drive) = 0;

    // Begins to move the live copies on a cartridge to others of its pool, behind everything that
    // users ask for; afterwards it may be formatted. Goes on after a restart. Changes nothing if it
    // has begun already. kRefused: the other cartridges lack room, for example.
    virtual Task<MediaOutcome> repack(std::string barcode) = 0;
    // Ends that, and lets the cartridge be written again. What was moved stays moved.
    virtual Task<MediaOutcome> cancel_repack(std::string barcode) = 0;
    // The latest since the node was started; nothing: there was none.
    virtual std::optional<MediumWork> repack_work(std::string_view barcode) const = 0;

    // Begins to read the live copies on a cartridge, behind everything that users ask for, and to
    // compare them with their records. One cartridge at a time; after a restart it goes on where it
    // was. Changes nothing if it has begun already.
    virtual Task<MediaOutcome> scrub(std::string barcode) = 0;
    // Ends that.
    virtual Task<MediaOutcome> cancel_scrub(std::string barcode) = 0;
    // As above.
    virtual std::optional<MediumWork> scrub_work(std::string_view barcode) const = 0;
};

// How a locality of a node reaches its library and the staging of all localities. Immutable once
// the node serves.
struct LibraryDoor {
    LibraryService* service = nullptr;  // Null: the node has no library.
    core::Reactor* reactor = nullptr;
    core::Gate* gate = nullptr;  // Of the library's locality, for run_task_on().
    // By locality.
    std::vector<Staging*> stagings = {};
};

}  // namespace fopd::library
