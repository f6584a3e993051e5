#pragma once

// The file is long because RequestBody and ReplyBody at its end need the fields of all fops.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <variant>

#include "fop/fid.h"
#include "fop/range.h"

namespace fopd::fop {

// The client memory that a transfer reads or writes, sealed by the client.
using SealedDescriptor = std::array<std::byte, 64>;

// The bodies: the fields of a fop and its reply that are specific to its type; a struct for each
// type in kFopTypes. The payload is separate from the body. Texts and lists are borrowed: during
// the call when writing, from the message when reading; fop/borrowed.h copies them.

// A span of numbers or small structs, compared by contents.
template <typename T>
class List : public std::span<const T> {
public:
    using std::span<const T>::span;
    friend bool operator==(const List& one, const List& other) {
        return std::ranges::equal(one, other);
    }
};

struct NoFields {
    bool operator==(const NoFields&) const = default;
};

// The server replies as soon as it has read the request.
struct Ping : NoFields {};
struct PingReply : NoFields {};

// The payload is returned.
struct Echo : NoFields {};
struct EchoReply : NoFields {};

// `bytes`, at most kBulkEchoBytesMax, are pulled from `source` and pushed to `target`.
struct BulkEcho {
    SealedDescriptor source{};
    SealedDescriptor target{};
    std::uint64_t bytes = 0;
    bool operator==(const BulkEcho&) const = default;
};
struct BulkEchoReply {
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;  // CRC32C of the pulled bytes.
    bool operator==(const BulkEchoReply&) const = default;
};

// -- common to all changes of objects --

// When a change is acknowledged: when it is durable, or as soon as it is visible.
enum class Durability : std::uint8_t { kDurable = 0, kBuffered = 1 };

// The position of a change in the log of a slot. Within one incarnation, when a change is durable,
// all changes at lower positions are durable too.
struct Receipt {
    // The incarnation of the slot; increases each time its log is opened.
    std::uint64_t incarnation = 0;
    std::uint64_t seq = 0;  // Increases with each change, also from one incarnation to the next.
    std::uint16_t slot = 0;
    friend bool operator==(const Receipt&, const Receipt&) = default;
};
inline constexpr std::size_t kReceiptsMax = 256;

// The priority of a recall for which a client waits. Recalls with a higher priority go first.
inline constexpr std::uint8_t kRecallPriorityDefault = 128;
// The most recalls for which one fop waits.
inline constexpr std::size_t kTicketsMax = 64;
inline constexpr std::uint64_t kPinSecondsMax = 10ULL * 366 * 24 * 3600;
// The longest barcode of a cartridge, in printable ASCII.
inline constexpr std::size_t kBarcodeBytesMax = 32;

inline constexpr std::uint16_t kModeMax = 0777;  // Permission bits.

// The object's state after a change.
struct Changed {
    std::uint64_t version = 0;
    std::uint64_t size_bytes = 0;
    Receipt receipt{};
    friend bool operator==(const Changed&, const Changed&) = default;
};

struct Attributes {
    Fid fid{};
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;
    std::uint64_t created_ns = 0;  // Nanoseconds since 1970.
    std::uint64_t changed_ns = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t incarnation = 0;  // The incarnation of the slot.
    std::string_view owner{};
    std::string_view group{};
    std::string_view name{};
    std::uint16_t mode = 0;
    std::string_view collection{};
    friend bool operator==(const Attributes&, const Attributes&) = default;
};

// -- queries about the node --

// The slots, as ListedSlot in the payload.
struct Slots : NoFields {};
struct SlotsReply {
    std::uint64_t version = 0;  // Increases whenever a slot is added, removed or moved.
    bool operator==(const SlotsReply&) const = default;
};

// The space in total and per pool, as PoolEntry in the payload.
struct Statfs : NoFields {};
struct StatfsReply {
    std::uint64_t total_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t objects = 0;
    bool operator==(const StatfsReply&) const = default;
};

// -- names; the pool is named in the request's header --

// Creates an empty object on a slot that the client chose; a resent request must name the same
// slot. Replaces an object of the same name, unless no_replace is set.
struct Create {
    std::string_view name{};   // May be empty: an object without a name.
    std::string_view group{};  // Empty: the creator's first one.
    std::uint16_t slot = 0;
    std::uint16_t mode = 0;
    bool no_replace = false;
    std::string_view collection{};  // Empty: that of the group.
    bool operator==(const Create&) const = default;
};
struct CreateReply {
    Fid fid{};
    std::uint64_t version = 0;
    Receipt receipt{};
    bool operator==(const CreateReply&) const = default;
};

struct Lookup {
    std::string_view name{};
    bool operator==(const Lookup&) const = default;
};
struct LookupReply {
    Attributes attributes{};
    bool operator==(const LookupReply&) const = default;
};

struct Stat {
    Fid fid{};
    bool operator==(const Stat&) const = default;
};
struct StatReply {
    Attributes attributes{};
    bool operator==(const StatReply&) const = default;
};

// Objects by their names, in the order of the bytes, as ListEntry in the payload.
struct ListObjects {
    std::string_view prefix{};    // Bytes; it may end within a character.
    std::string_view cursor{};    // From the previous reply; empty: from the beginning.
    std::uint16_t count_max = 0;  // 0: as many as fit.
    bool operator==(const ListObjects&) const = default;
};
struct ListObjectsReply {
    std::string_view cursor{};  // For the next request.
    bool end = false;           // The list is complete.
    bool operator==(const ListObjectsReply&) const = default;
};

// Changes only the attributes named in `which`.
struct SetAttributes {
    static constexpr std::uint8_t kOwner = 1;
    static constexpr std::uint8_t kGroup = 2;
    static constexpr std::uint8_t kMode = 4;

    Fid fid{};
    std::string_view owner{};
    std::string_view group{};
    std::uint16_t mode = 0;
    std::uint8_t which = 0;
    bool operator==(const SetAttributes&) const = default;
};
struct SetAttributesReply {
    Changed changed{};
    bool operator==(const SetAttributesReply&) const = default;
};

// In Rename and Delete, `from` is empty, or the name that the object must still have; if it has
// another name, the status is not_found. The fid determines the slot that stores the reply.
struct Rename {
    Fid fid{};
    std::string_view from{};
    std::string_view name{};
    bool no_replace = false;
    bool operator==(const Rename&) const = default;
};
struct RenameReply {
    Changed changed{};
    bool operator==(const RenameReply&) const = default;
};

struct Delete {
    Fid fid{};
    std::string_view from{};
    bool operator==(const Delete&) const = default;
};
struct DeleteReply {
    Receipt receipt{};
    bool operator==(const DeleteReply&) const = default;
};

// -- bytes; checksums are CRC32C of the runs of the ranges, see fop/range.h --

// Into the memory of `target`; without one, into the payload of the reply. In both, the existing
// bytes of each range (up to the end of the object) follow each other.
struct Read {
    Fid fid{};
    List<Range> ranges{};
    std::optional<SealedDescriptor> target{};
    bool operator==(const Read&) const = default;
};
struct ReadReply {
    std::uint64_t bytes = 0;
    // The size of the object; determines how much of each range exists.
    std::uint64_t size_bytes = 0;
    std::uint64_t version = 0;
    std::uint64_t incarnation = 0;  // The incarnation of the slot.
    List<std::uint32_t> checksums{};
    bool operator==(const ReadReply&) const = default;
};

// The bytes of the ranges, one after the other, from the memory of `source`, or else from the
// payload. All of them are written, or none.
struct Write {
    Fid fid{};
    List<Range> ranges{};
    List<std::uint32_t> checksums{};
    std::optional<SealedDescriptor> source{};
    Durability durability = Durability::kDurable;
    // If not 0: the write was acknowledged as buffered in this incarnation of the slot, which has
    // lost it. It is refused as kLost if other clients may have changed the bytes after that
    // incarnation.
    std::uint64_t lost_in = 0;
    bool operator==(const Write&) const = default;
};
struct WriteReply {
    Changed changed{};
    bool operator==(const WriteReply&) const = default;
};

// Appends at the end of the object. The checksums are computed as for a range at offset 0, whatever
// the final offset is. Always durable: lost bytes could not be written again at the acknowledged
// offset, because another append may have used it by then.
struct Append {
    Fid fid{};
    std::uint64_t length = 0;
    List<std::uint32_t> checksums{};
    std::optional<SealedDescriptor> source{};
    bool operator==(const Append&) const = default;
};
struct AppendReply {
    std::uint64_t offset = 0;
    Changed changed{};
    bool operator==(const AppendReply&) const = default;
};

struct Truncate {
    Fid fid{};
    std::uint64_t size_bytes = 0;
    bool operator==(const Truncate&) const = default;
};
struct TruncateReply {
    Changed changed{};
    bool operator==(const TruncateReply&) const = default;
};

// Makes a hole; the size stays.
struct Punch {
    Fid fid{};
    Range range{};
    bool operator==(const Punch&) const = default;
};
struct PunchReply {
    Changed changed{};
    bool operator==(const PunchReply&) const = default;
};

// Makes acknowledged changes durable: on the slots of the given receipts, or on all slots. The
// reply has a receipt for each, in the same order: the slot's present incarnation, and the position
// up to which changes of the asked incarnation are durable. If that is below the asked position,
// the changes after it are lost, and the status is kLost.
struct Sync {
    List<Receipt> receipts{};
    bool operator==(const Sync&) const = default;
};
struct SyncReply {
    List<Receipt> receipts{};
    bool operator==(const SyncReply&) const = default;
};

// -- uploads: whole objects that are invisible until committed --

struct UploadBegin {
    std::string_view name{};
    std::string_view group{};
    std::uint64_t size_bytes = 0;  // The expected size; 0: unknown.
    std::uint16_t slot = 0;
    std::uint16_t mode = 0;
    bool no_replace = false;
    std::string_view collection{};
    bool operator==(const UploadBegin&) const = default;
};
struct UploadBeginReply {
    Fid fid{};  // The id of the upload, and of the object that it becomes.
    bool operator==(const UploadBeginReply&) const = default;
};

// Acknowledged as buffered. Whole blocks, except for the last one of the object.
struct UploadWrite {
    Fid fid{};
    Range range{};
    List<std::uint32_t> checksums{};
    std::optional<SealedDescriptor> source{};
    bool operator==(const UploadWrite&) const = default;
};
struct UploadWriteReply {
    Receipt receipt{};
    bool operator==(const UploadWriteReply&) const = default;
};

// Makes the whole upload durable and visible. The server must have `blocks` different blocks;
// otherwise some were lost, and the status is kLost: the client must write again those acknowledged
// in an incarnation other than the reply's.
struct UploadCommit {
    Fid fid{};
    std::uint64_t size_bytes = 0;
    std::uint64_t blocks = 0;
    bool operator==(const UploadCommit&) const = default;
};
struct UploadCommitReply {
    std::uint64_t version = 0;
    Receipt receipt{};
    bool operator==(const UploadCommitReply&) const = default;
};

struct UploadAbort {
    Fid fid{};
    bool operator==(const UploadAbort&) const = default;
};
struct UploadAbortReply : NoFields {};

// -- queries about the node, continued --

// Use and limits of owners in a pool, as QuotaEntry in the payload: for an administrator, all
// owners and the pools; otherwise only the caller's own. The pool is named in the header; none
// means all.
//
// With `wanted_bytes` or `wanted_objects`, the question is instead whether so many bytes and
// objects more of the caller fit its quota and that of the pool; the pool is that of the header, or
// the default pool. The status is kQuota if they do not fit. A server that does not know the fields
// answers with the list, and one that knows only `wanted_bytes` compares only the bytes.
struct Quota {
    std::string_view cursor{};  // From the previous reply; empty: from the beginning.
    // Both 0: asks for the list.
    std::uint64_t wanted_bytes = 0;
    std::uint64_t wanted_objects = 0;
    bool operator==(const Quota&) const = default;
};
struct QuotaReply {
    std::string_view cursor{};  // For the next request.
    bool end = false;           // The list is complete.
    bool compared = false;      // The wanted amount fits, and there is no list.
    bool operator==(const QuotaReply&) const = default;
};

// -- objects on tape --

// Brings an object's bytes back to a disk, if they are on tape only; they stay there at least for
// `pin_s` seconds. A recall with a higher priority goes first. An object has one recall, however
// many ask for it: its fid is the ticket.
struct Stage {
    Fid fid{};
    std::uint64_t pin_s = 0;
    std::uint8_t priority = kRecallPriorityDefault;
    bool unpin = false;  // Only ends its pin; nothing is brought back.
    bool operator==(const Stage&) const = default;
};
struct StageReply {
    bool waits = false;  // A recall was made or joined; otherwise the bytes are on a disk.
    bool operator==(const StageReply&) const = default;
};

// Frees the disk's blocks of an object that is on tape.
struct Release {
    Fid fid{};
    bool operator==(const Release&) const = default;
};
struct ReleaseReply : NoFields {};

// The recalls of the node in the order in which they are expected to end, as RecallEntry in the
// payload: at most as many as fit. Or the formats of cartridges that have not ended, the oldest
// first, as FormatEntry.
struct Recalls {
    bool formats = false;
    bool operator==(const Recalls&) const = default;
};
struct RecallsReply {
    static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};
    std::uint64_t total = 0;  // How many there are.
    bool formats = false;     // The payload lists formats; an older server lists recalls.
    // How long ago the oldest recall was asked for. kUnknown: there is none, or the server is
    // older.
    std::uint64_t oldest_ms = kUnknown;
    bool operator==(const RecallsReply&) const = default;
};

// The state of a recall.
enum class RecallState : std::uint8_t {
    kWaiting = 0,
    kDone = 1,
    kFailed = 2,     // No copy can be read.
    kCancelled = 3,  // On request.
    kGone = 4,       // The object was removed.
};

// Waits until at least one of the recalls has ended. One that does not exist has ended.
struct RecallWait {
    List<Fid> fids{};  // 1 to kTicketsMax.
    // The fop is answered after this time even if no recall has ended; 0: not before the deadline.
    std::uint64_t patience_ms = 0;
    bool operator==(const RecallWait&) const = default;
};
struct RecallWaitReply {
    static constexpr std::uint64_t kUnknown = ~std::uint64_t{0};

    List<std::uint8_t> states{};  // A RecallState for each fid.
    // If none has ended, of the first: how many recalls are to end before it, and when it is
    // expected to end.
    std::uint64_t place = kUnknown;
    std::uint64_t expected_ms = kUnknown;
    // The first failed recall has failed because the data on tape differ from the written data.
    bool is_damaged = false;
    bool operator==(const RecallWaitReply&) const = default;
};

struct RecallCancel {
    Fid fid{};
    bool operator==(const RecallCancel&) const = default;
};
struct RecallCancelReply : NoFields {};

// Waits until all acknowledged changes of objects in a tape pool, which the header names, are on
// tape.
struct SyncTape : NoFields {};
struct SyncTapeReply : NoFields {};

// The cartridges by barcode, as MediumEntry in the payload.
struct Media {
    std::string_view cursor{};  // From the previous reply; empty: from the beginning.
    bool operator==(const Media&) const = default;
};
struct MediaReply {
    std::string_view cursor{};  // For the next request.
    bool end = false;           // The list is complete.
    bool operator==(const MediaReply&) const = default;
};

// Labels a cartridge for the pool that the header names. Refused if it holds data, unless these
// shall be forgotten, and if it has the only copies of objects, unless these shall be lost.
struct FormatMedium {
    std::string_view name{};  // Its barcode.
    bool forget_data = false;
    bool lose_objects = false;
    bool operator==(const FormatMedium&) const = default;
};
struct FormatMediumReply : NoFields {};

// Brings a cartridge to an idle drive, and loads it.
struct LoadMedium {
    std::string_view name{};  // Its barcode.
    std::string_view drive{};
    bool operator==(const LoadMedium&) const = default;
};
struct LoadMediumReply : NoFields {};

// Takes the cartridge of an idle drive back to its storage element.
struct UnloadDrive {
    std::string_view drive{};
    bool operator==(const UnloadDrive&) const = default;
};
struct UnloadDriveReply : NoFields {};

// Where the copies of an object's bytes are on cartridges, in the order of the bytes, as CopyEntry
// in the payload: at most as many as fit.
struct Copies {
    Fid fid{};
    bool operator==(const Copies&) const = default;
};
struct CopiesReply {
    std::uint64_t total = 0;           // How many there are.
    bool on_disk = true;               // The bytes are on a disk, too.
    std::uint64_t pinned_until_s = 0;  // Since 1970 UTC; 0: it is not pinned.
    bool operator==(const CopiesReply&) const = default;
};

// Begins or ends long work on all copies on a cartridge, or only returns its progress. For a
// rescue, the header may name the tape pool of the new objects; without a name, they stay in the
// pool in which they were.
struct MediumWork {
    enum class Kind : std::uint8_t {
        kRepack = 1,  // Its live copies are moved to other cartridges.
        kScrub = 2,   // Its live copies are read and compared.
        kRescue = 3,  // Objects are made of the copies of another node, which was lost.
        // Only to end: formats of the cartridge that wait for a drive are given up.
        kFormat = 4,
    };
    enum class Order : std::uint8_t { kShow = 0, kBegin = 1, kEnd = 2 };

    std::string_view name{};  // Its barcode.
    Kind kind = Kind::kRepack;
    Order order = Order::kShow;
    std::uint32_t first = 0;  // The failure with which the list in the payload begins.
    bool operator==(const MediumWork&) const = default;
};
// The payload has FailedCopyEntry: at most as many as fit.
struct MediumWorkReply {
    enum class State : std::uint8_t {
        kNone = 0,  // There was no such work since the node was started.
        kRunning = 1,
        kDone = 2,
        kPartly = 3,  // The work is over, and a part of it failed.
        kCancelled = 4,
    };

    State state = State::kNone;
    // The copies when the work began, or when it went on after the node was started.
    std::uint64_t copies = 0;
    std::uint64_t copy_bytes = 0;  // The bytes of these copies.
    std::uint64_t copies_done = 0;
    std::uint64_t bytes_done = 0;
    std::uint64_t failures = 0;
    // The number of failures in the list, which have the numbers from 0 on.
    std::uint32_t listed = 0;
    std::uint64_t elapsed_ms = 0;  // The time until now, or until the end of the work.
    std::string_view reason{};     // Why a part of the work failed.
    bool operator==(const MediumWorkReply&) const = default;
};

// Takes a drive out of use, or uses it again.
struct SetDrive {
    std::string_view drive{};
    bool down = false;
    bool operator==(const SetDrive&) const = default;
};
struct SetDriveReply : NoFields {};

// Takes a cartridge out of use and to an exchange element, if the library has any. Refused while it
// is in use, and if objects could not be read any more, unless these shall be hidden.
struct ExportMedium {
    std::string_view name{};  // Its barcode.
    bool hide_objects = false;
    bool operator==(const ExportMedium&) const = default;
};
struct ExportMediumReply {
    std::uint64_t objects = 0;    // Objects that have copies on the cartridge.
    std::uint64_t only_here = 0;  // Objects whose bytes are nowhere else.
    bool in_exchange = false;     // People can take it from an exchange element.
    bool operator==(const ExportMediumReply&) const = default;
};

// Takes exported cartridges into use again, and those that people have put into exchange elements.
// The payload has MediumEntry of them: at most as many as fit.
struct ImportMedia {
    std::string_view name{};  // The barcode of one; empty: all.
    bool operator==(const ImportMedia&) const = default;
};
struct ImportMediaReply {
    std::uint32_t total = 0;  // How many there were.
    bool operator==(const ImportMediaReply&) const = default;
};

// A message between members of epochs, which only they understand (docs/formats/epoch.md).
inline constexpr std::size_t kEpochMessageBytesMax = 15 * 1024;
inline constexpr std::size_t kAddressBytesMax = 255;
struct EpochMessage {
    std::string_view from{};  // The address at which the sender listens.
    List<std::uint8_t> message{};
    bool operator==(const EpochMessage&) const = default;
};
struct EpochMessageReply : NoFields {};

// An alternative's index is its type in the unions of wire.fbs; monostate: none, or an unknown one.
using RequestBody =
    std::variant<std::monostate, Ping, Echo, BulkEcho, Slots, Statfs, Create, Lookup, Stat,
                 ListObjects, SetAttributes, Rename, Delete, Read, Write, Append, Truncate, Punch,
                 Sync, UploadBegin, UploadWrite, UploadCommit, UploadAbort, Quota, Stage, Release,
                 Recalls, RecallWait, RecallCancel, SyncTape, Media, FormatMedium, LoadMedium,
                 UnloadDrive, Copies, MediumWork, SetDrive, ExportMedium, ImportMedia,
                 EpochMessage>;
using ReplyBody =
    std::variant<std::monostate, PingReply, EchoReply, BulkEchoReply, SlotsReply, StatfsReply,
                 CreateReply, LookupReply, StatReply, ListObjectsReply, SetAttributesReply,
                 RenameReply, DeleteReply, ReadReply, WriteReply, AppendReply, TruncateReply,
                 PunchReply, SyncReply, UploadBeginReply, UploadWriteReply, UploadCommitReply,
                 UploadAbortReply, QuotaReply, StageReply, ReleaseReply, RecallsReply,
                 RecallWaitReply, RecallCancelReply, SyncTapeReply, MediaReply, FormatMediumReply,
                 LoadMediumReply, UnloadDriveReply, CopiesReply, MediumWorkReply, SetDriveReply,
                 ExportMediumReply, ImportMediaReply, EpochMessageReply>;

}  // namespace fopd::fop
