#pragma once

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

// The client memory that a transfer goes to or comes from, as its owner has sealed it.
using SealedDescriptor = std::array<std::byte, 64>;

// What a fop and its reply say beyond what all have in common; a struct for each type in kFopTypes.
// A payload is no part of the body: it travels beside it. Texts and lists are borrowed: for the
// call when writing, from the message when reading; fop/borrowed.h copies them.

// Numbers or pairs of them; equal when what they refer to is.
template <typename T>
class List : public std::span<const T> {
public:
    using std::span<const T>::span;
    friend bool operator==(const List& one, const List& other) {
        return std::ranges::equal(one, other);
    }
};

// The server replies as soon as it has read the request.
struct Ping {
    bool operator==(const Ping&) const = default;
};
struct PingReply {
    bool operator==(const PingReply&) const = default;
};

// The payload comes back.
struct Echo {
    bool operator==(const Echo&) const = default;
};
struct EchoReply {
    bool operator==(const EchoReply&) const = default;
};

// `bytes`, at most kBulkEchoBytesMax, are pulled from `source` and pushed to `target`.
struct BulkEcho {
    SealedDescriptor source{};
    SealedDescriptor target{};
    std::uint64_t bytes = 0;
    bool operator==(const BulkEcho&) const = default;
};
struct BulkEchoReply {
    std::uint64_t bytes = 0;
    std::uint32_t crc = 0;  // CRC32C of what was pulled.
    bool operator==(const BulkEchoReply&) const = default;
};

// -- what all that changes objects has in common --

// When a change is acknowledged: as soon as all can see it, or when it outlives the server too.
enum class Durability : std::uint8_t { kDurable = 0, kBuffered = 1 };

// The position of a change in the log of a slot. Within one incarnation, when a change is durable,
// all changes at lower positions are durable too.
struct Receipt {
    std::uint64_t incarnation = 0;  // Of the slot: greater each time its log was opened.
    std::uint64_t seq = 0;  // Rises with each change, also from one incarnation to the next.
    std::uint16_t slot = 0;
    friend bool operator==(const Receipt&, const Receipt&) = default;
};
inline constexpr std::size_t kReceiptsMax = 256;

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
    std::uint64_t created_ns = 0;  // Since 1970.
    std::uint64_t changed_ns = 0;
    std::uint64_t allocated_bytes = 0;
    std::uint64_t incarnation = 0;  // Of the slot.
    std::string_view owner{};
    std::string_view group{};
    std::string_view name{};
    std::uint16_t mode = 0;
    friend bool operator==(const Attributes&, const Attributes&) = default;
};

// -- the whole node --

// Which slots there are, as SlotEntry in the payload.
struct Slots {
    bool operator==(const Slots&) const = default;
};
struct SlotsReply {
    std::uint64_t version = 0;  // Greater whenever a slot came, went or moved.
    bool operator==(const SlotsReply&) const = default;
};

// How much room there is, by pool as PoolEntry in the payload.
struct Statfs {
    bool operator==(const Statfs&) const = default;
};
struct StatfsReply {
    std::uint64_t total_bytes = 0;
    std::uint64_t used_bytes = 0;
    std::uint64_t free_bytes = 0;
    std::uint64_t objects = 0;
    bool operator==(const StatfsReply&) const = default;
};

// -- names; the pool is that of the request's header --

// An empty object on a slot the client chose: it asks the same one again when it repeats itself.
// One that has the name already is replaced, unless that is refused.
struct Create {
    std::string_view name{};   // May be empty: an object without a name.
    std::string_view group{};  // Empty: the creator's first one.
    std::uint16_t slot = 0;
    std::uint16_t mode = 0;
    bool no_replace = false;
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
    std::string_view cursor{};    // Of the reply before; empty: from the beginning.
    std::uint16_t count_max = 0;  // 0: as many as fit.
    bool operator==(const ListObjects&) const = default;
};
struct ListObjectsReply {
    std::string_view cursor{};  // To go on from.
    bool end = false;           // There is no more.
    bool operator==(const ListObjectsReply&) const = default;
};

// Only of what `which` names.
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

// Of these two, `from` is empty or the only name with which the object may still be meant:
// not_found when it has another one by now. The fid leads to the slot that remembers the reply.
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

// -- bytes; checksums are CRC32C of the pieces of the ranges, see fop/range.h --

// Into the memory of `target`; without one, into the payload of the reply. Either holds what there
// is of each range before the end of the object, one behind the other.
struct Read {
    Fid fid{};
    List<Range> ranges{};
    std::optional<SealedDescriptor> target{};
    bool operator==(const Read&) const = default;
};
struct ReadReply {
    std::uint64_t bytes = 0;
    std::uint64_t size_bytes = 0;  // Of the object: it says how much of each range is there.
    std::uint64_t version = 0;
    std::uint64_t incarnation = 0;  // Of the slot.
    List<std::uint32_t> checksums{};
    bool operator==(const ReadReply&) const = default;
};

// From the memory of `source`, or else from the payload: the bytes of the ranges, one behind the
// other. All of it is written, or nothing.
struct Write {
    Fid fid{};
    List<Range> ranges{};
    List<std::uint32_t> checksums{};
    std::optional<SealedDescriptor> source{};
    Durability durability = Durability::kDurable;
    // Not 0: it was acknowledged as buffered in this incarnation of the slot, which has lost it. It
    // is refused as kLost where others may have changed the bytes after that incarnation.
    std::uint64_t lost_in = 0;
    bool operator==(const Write&) const = default;
};
struct WriteReply {
    Changed changed{};
    bool operator==(const WriteReply&) const = default;
};

// Behind the end. The checksums are those of the range from 0, wherever it will lie. Always
// durable: bytes that were lost could not be put back where the reply said they are, for somebody
// else's may lie there by then.
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

// Makes durable what was acknowledged before: of the slots of the receipts, or of all slots. The
// reply has a receipt for each, in the same order: the slot's incarnation now, and up to where the
// changes of the asked incarnation are durable. Where that is before the asked one, the changes
// behind it are lost, and the status is kLost.
struct Sync {
    List<Receipt> receipts{};
    bool operator==(const Sync&) const = default;
};
struct SyncReply {
    List<Receipt> receipts{};
    bool operator==(const SyncReply&) const = default;
};

// -- whole objects: nobody sees them before they are committed --

struct UploadBegin {
    std::string_view name{};
    std::string_view group{};
    std::uint64_t size_bytes = 0;  // As far as it is known; 0: it is not.
    std::uint16_t slot = 0;
    std::uint16_t mode = 0;
    bool no_replace = false;
    bool operator==(const UploadBegin&) const = default;
};
struct UploadBeginReply {
    Fid fid{};  // Of the upload, and of the object it becomes.
    bool operator==(const UploadBeginReply&) const = default;
};

// Acknowledged as buffered. Whole blocks, but for the last one of the object.
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

// Makes all of it durable and visible. The server holds `blocks` different blocks, or some of them
// were lost and the status is kLost: those acknowledged in another incarnation than the reply's are
// to be written again.
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
struct UploadAbortReply {
    bool operator==(const UploadAbortReply&) const = default;
};

// -- the whole node again --

// What owners have in a pool and may have, as QuotaEntry in the payload: all of them and the pools
// for an administrator, else what is the caller's. The pool is that of the header; none means all.
struct Quota {
    std::string_view cursor{};  // Of the reply before; empty: from the beginning.
    bool operator==(const Quota&) const = default;
};
struct QuotaReply {
    std::string_view cursor{};  // To go on from.
    bool end = false;           // There is no more.
    bool operator==(const QuotaReply&) const = default;
};

// An alternative's index is its type in the unions of wire.fbs; monostate: none, or none we know.
using RequestBody =
    std::variant<std::monostate, Ping, Echo, BulkEcho, Slots, Statfs, Create, Lookup, Stat,
                 ListObjects, SetAttributes, Rename, Delete, Read, Write, Append, Truncate, Punch,
                 Sync, UploadBegin, UploadWrite, UploadCommit, UploadAbort, Quota>;
using ReplyBody = std::variant<std::monostate, PingReply, EchoReply, BulkEchoReply, SlotsReply,
                               StatfsReply, CreateReply, LookupReply, StatReply, ListObjectsReply,
                               SetAttributesReply, RenameReply, DeleteReply, ReadReply, WriteReply,
                               AppendReply, TruncateReply, PunchReply, SyncReply, UploadBeginReply,
                               UploadWriteReply, UploadCommitReply, UploadAbortReply, QuotaReply>;

}  // namespace fopd::fop
