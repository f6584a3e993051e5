#include "reqh/executors.h"

#include <algorithm>
#include <array>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/buffer_pool.h"
#include "core/crc32c.h"
#include "fop/range.h"
#include "objects/fids.h"
#include "objects/reply_record.h"
#include "reqh/object_fops.h"
#include "reqh/operation.h"
#include "reqh/tape_fops.h"

namespace fopd::reqh {

namespace {

// For fops that change nothing: the client may resend the request over another session.
fop::Reply failed_without_trace(const Error& error) {
    const bool has_lost_session = error.code == Errc::kClosed;
    return {.status = has_lost_session ? fop::Status::kTryAgain : fop::status_of(error.code),
            .words = error.context};
}

Task<fop::Reply> run_ping(Operation* operation) {
    operation->enter(Phase::kExecute);
    co_return fop::Reply{.body = fop::PingReply{}};
}

Task<fop::Reply> run_echo(Operation* operation) {
    operation->enter(Phase::kExecute);
    const fop::Request& request = operation->request();
    co_return fop::Reply{
        .payload = request.payload, .payload_crc = request.payload_crc, .body = fop::EchoReply{}};
}

Task<fop::Reply> run_bulk_echo(Operation* operation) {
    operation->enter(Phase::kExecute);
    const auto& request = operation->body<fop::BulkEcho>();
    fop::BulkEchoReply done;
    while (done.bytes < request.bytes) {
        core::Buffer buffer = operation->buffer();
        buffer.size_bytes = std::min<std::uint64_t>(buffer.size_bytes, request.bytes - done.bytes);
        const auto pulled = co_await operation->client().pull(&request.source, done.bytes, buffer);
        if (!pulled) co_return failed_without_trace(pulled.error());

        done.crc = core::crc32c(buffer.span(), done.crc);
        const auto pushed = co_await operation->client().push(&request.target, done.bytes, buffer);
        if (!pushed) co_return failed_without_trace(pushed.error());

        done.bytes += buffer.size_bytes;
        co_await operation->reactor().maybe_yield();
    }
    co_return fop::Reply{.body = done};
}

// -- functions for the table --

template <typename Body>
store::Slot slot_of_fid(const fop::Request& request) {
    return std::get<Body>(request.body).fid.slot();
}
template <typename Body>
Aim aim_of(const fop::Request& request) {
    const auto& body = std::get<Body>(request.body);
    Aim aim{.object = body.fid};
    if constexpr (requires { body.ranges; }) {
        if (!body.ranges.empty()) aim.offset = body.ranges.front().offset;
    } else if constexpr (requires { body.range; }) {
        aim.offset = body.range.offset;
    } else if constexpr (std::is_same_v<Body, fop::Append>) {
        aim.offset = lrs::kAtEnd;
    }
    return aim;
}
template <typename Body>
store::Slot slot_named(const fop::Request& request) {
    return std::get<Body>(request.body).slot;
}

// Makes the reply's body from the recorded reply.
template <typename Body>
fop::Reply told_again(const Operation& operation, const objects::RecordedReply& reply) {
    Body body;
    if constexpr (requires { body.fid; }) body.fid = objects::fop_fid(reply.fid);
    if constexpr (requires { body.offset; }) body.offset = reply.offset;
    if constexpr (requires { body.version; }) body.version = reply.version;
    if constexpr (requires { body.receipt; }) body.receipt = operation.durable_receipt();
    if constexpr (requires { body.changed; }) body.changed = operation.changed_then(reply);
    return {.body = body};
}

std::uint64_t bulk_of_bulk_echo(const fop::Request& request) {
    return std::get<fop::BulkEcho>(request.body).bytes;
}
std::uint64_t bulk_of_read(const fop::Request& request) {
    return fop::total_bytes(std::get<fop::Read>(request.body).ranges);
}
std::uint64_t bulk_of_write(const fop::Request& request) {
    const auto& write = std::get<fop::Write>(request.body);
    return write.source ? fop::total_bytes(write.ranges) : 0;
}
std::uint64_t bulk_of_append(const fop::Request& request) {
    const auto& append = std::get<fop::Append>(request.body);
    return append.source ? append.length : 0;
}
std::uint64_t bulk_of_upload_write(const fop::Request& request) {
    const auto& write = std::get<fop::UploadWrite>(request.body);
    return write.source ? write.range.length : 0;
}

// What follows from the bodies of the type at the same index.
template <std::size_t Index>
constexpr void add_bodies_part(Executor& executor) {
    using Body = std::variant_alternative_t<Index + 1, fop::RequestBody>;
    using ReplyBody = std::variant_alternative_t<Index + 1, fop::ReplyBody>;
    if constexpr (requires(Body body) { body.fid; }) {
        executor.slot = &slot_of_fid<Body>;
        executor.aim = &aim_of<Body>;
    } else if constexpr (requires(Body body) { body.slot; }) {
        executor.slot = &slot_named<Body>;
    }
    if constexpr (fop::kFopTypes[Index].repeat == fop::Repeat::kRecorded) {
        executor.told_again = &told_again<ReplyBody>;
    }
}

// In the order of fop::kFopTypes. To add a type: write its steps and add its row.
constexpr std::array kRows{
    Executor{.name = "ping", .needs_stores = false, .about = About::kAnything, .run = &run_ping},
    Executor{.name = "echo", .needs_stores = false, .run = &run_echo},
    Executor{.name = "bulk_echo",
             .needs_stores = false,
             .needs_buffer = true,
             .bulk_bytes = &bulk_of_bulk_echo,
             .run = &run_bulk_echo},
    Executor{.name = "slots", .about = About::kAnything, .needs_buffer = true, .run = &run_slots},
    Executor{.name = "statfs", .needs_buffer = true, .run = &run_statfs},
    Executor{.name = "create", .about = About::kPool, .run = &run_create},
    Executor{.name = "lookup", .about = About::kName, .run = &run_lookup},
    Executor{.name = "stat", .about = About::kObject, .run = &run_stat},
    Executor{.name = "list", .about = About::kPool, .needs_buffer = true, .run = &run_list},
    Executor{.name = "set_attributes", .about = About::kObject, .run = &run_set_attributes},
    Executor{.name = "rename", .about = About::kObject, .run = &run_rename},
    Executor{.name = "delete", .about = About::kObject, .run = &run_delete},
    Executor{.name = "read",
             .about = About::kObject,
             .needs_buffer = true,
             .bulk_bytes = &bulk_of_read,
             .run = &run_read},
    Executor{.name = "write",
             .about = About::kObject,
             .needs_buffer = true,
             .bulk_bytes = &bulk_of_write,
             .run = &run_write},
    Executor{.name = "append",
             .about = About::kObject,
             .needs_buffer = true,
             .bulk_bytes = &bulk_of_append,
             .run = &run_append},
    Executor{
        .name = "truncate", .about = About::kObject, .needs_buffer = true, .run = &run_truncate},
    Executor{.name = "punch", .about = About::kObject, .needs_buffer = true, .run = &run_punch},
    Executor{.name = "sync", .about = About::kAnything, .run = &run_sync},
    Executor{.name = "upload_begin", .about = About::kPool, .run = &run_upload_begin},
    Executor{.name = "upload_write",
             .about = About::kPool,
             .needs_buffer = true,
             .bulk_bytes = &bulk_of_upload_write,
             .run = &run_upload_write},
    Executor{.name = "upload_commit",
             .about = About::kPool,
             .needs_buffer = true,
             .run = &run_upload_commit},
    Executor{.name = "upload_abort", .about = About::kPool, .run = &run_upload_abort},
    Executor{.name = "quota", .about = About::kPool, .needs_buffer = true, .run = &run_quota},
    Executor{.name = "stage", .about = About::kObject, .run = &run_stage},
    Executor{.name = "release", .about = About::kObject, .run = &run_release},
    Executor{
        .name = "recalls", .about = About::kAnything, .needs_buffer = true, .run = &run_recalls},
    Executor{.name = "recall_wait", .about = About::kAnything, .run = &run_recall_wait},
    Executor{.name = "recall_cancel", .about = About::kObject, .run = &run_recall_cancel},
    Executor{.name = "sync_tape", .about = About::kPool, .run = &run_sync_tape},
    Executor{.name = "media", .about = About::kAnything, .needs_buffer = true, .run = &run_media},
    Executor{.name = "format_medium", .run = &run_format_medium},
    Executor{.name = "load_medium", .run = &run_load_medium},
    Executor{.name = "unload_drive", .run = &run_unload_drive},
    Executor{.name = "copies", .about = About::kObject, .needs_buffer = true, .run = &run_copies},
    Executor{.name = "medium_work", .needs_buffer = true, .run = &run_medium_work},
    Executor{.name = "set_drive", .run = &run_set_drive},
    Executor{.name = "export_medium", .run = &run_export_medium},
    Executor{.name = "import_media", .needs_buffer = true, .run = &run_import_media},
    Executor{.name = "epoch", .needs_stores = false, .run = nullptr},
};
constexpr auto kExecutors = []<std::size_t... Index>(std::index_sequence<Index...>) {
    std::array rows = kRows;
    (add_bodies_part<Index>(rows[Index]), ...);
    return rows;
}(std::make_index_sequence<kRows.size()>());
static_assert(std::ranges::equal(kExecutors, fop::kFopTypes, {}, &Executor::name,
                                 &fop::FopType::name),
              "each type of fop has its executor, at the same index");

bool is_about_pool(const Executor& executor) {
    return executor.about != About::kNode && executor.about != About::kAnything;
}

// The pool in the record of the object that the fop names, if its home is this locality.
std::optional<objects::PoolId> pool_in_record(const Executor& executor, const fop::Request& request,
                                              objects::Stores& stores) {
    if (executor.aim == nullptr) return std::nullopt;
    const store::Fid fid = objects::store_fid(executor.aim(request).object);
    const objects::HomeVolume* const home = stores.find(fid.slot());
    return home == nullptr ? std::nullopt : home->pool_of(fid);
}

// A contradiction between the fop's type and its other described properties.
std::optional<std::string> contradiction(const lrs::RequestAttributes& described) {
    const fop::FopType* const type = fop::find_fop_type(described.type);
    if (type == nullptr) return std::nullopt;
    const Executor& executor = executor_of(*type);
    const bool moves_bytes =
        fop::request_may_carry(type->payload) || executor.bulk_bytes != nullptr;
    const char* wrong = nullptr;
    if (!described.pool.empty() && !is_about_pool(executor)) wrong = " is about no pool";
    if (described.object.is_set() && executor.aim == nullptr) wrong = " names no object by its id";
    if (described.size_bytes > 0 && !moves_bytes) wrong = " moves no data";
    if (wrong == nullptr) return std::nullopt;
    return std::string(type->name) + wrong;
}

}  // namespace

const Executor& executor_of(const fop::FopType& type) {
    return kExecutors[static_cast<std::size_t>(&type - fop::kFopTypes.data())];
}

bool moves_client_memory(const fop::Request& request) {
    return std::visit(
        [](const auto& body) {
            if constexpr (requires { body.target.has_value(); }) {
                return body.target.has_value();
            } else if constexpr (requires { body.source.has_value(); }) {
                return body.source.has_value();
            } else {
                return requires { body.source; };
            }
        },
        request.body);
}

const objects::LayoutPool* pool_of(const Executor& executor, const fop::Request& request,
                                   std::string_view header_pool, objects::Stores& stores) {
    const objects::StoreLayout& layout = stores.layout();
    if (!is_about_pool(executor)) return nullptr;
    if (executor.slot == nullptr) return layout.find_pool(header_pool);
    const objects::LayoutSlot* const slot = layout.find_slot(executor.slot(request));
    if (slot == nullptr) return nullptr;
    const objects::LayoutPool* const own = layout.find_pool(slot->pool);
    if (!layout.is_staging(slot->pool)) return own;
    if (const auto recorded = pool_in_record(executor, request, stores)) {
        return layout.find_pool(*recorded);
    }
    const bool names_none = header_pool.empty() && executor.aim != nullptr;
    const objects::LayoutPool* const named = names_none ? nullptr : layout.find_pool(header_pool);
    return named != nullptr && named->disk_pool() == slot->pool ? named : own;
}

std::optional<Impossible> complete(lrs::RequestAttributes& described,
                                   const objects::StoreLayout& layout) {
    using enum Impossible::Kind;
    auto wrong = contradiction(described);
    if (wrong) return Impossible{.kind = kContradiction, .words = std::move(*wrong)};
    const std::string_view said = described.pool;
    const objects::LayoutPool* pool = said.empty() ? nullptr : layout.find_pool(said);
    if (pool == nullptr && !said.empty()) {
        return Impossible{.kind = kUnknown, .words = "there is no pool " + std::string(said)};
    }
    if (described.object.is_set()) {
        const objects::LayoutSlot* const slot = layout.find_slot(described.object.slot());
        const objects::LayoutPool* const own =
            slot == nullptr ? nullptr : layout.find_pool(slot->pool);
        if (own == nullptr) {
            return Impossible{.kind = kUnknown, .words = "the object is on no slot of this node"};
        }
        if (pool == nullptr) pool = own;
        // Its disk may also have objects of the pools that it is the staging of.
        if (pool->disk_pool() != own->id) {
            return Impossible{.kind = kContradiction,
                              .words = "the object is in the pool " + own->name};
        }
    }
    const fop::FopType* const type = fop::find_fop_type(described.type);
    const bool names_pool =
        type != nullptr && is_about_pool(executor_of(*type)) && executor_of(*type).slot == nullptr;
    if (pool == nullptr && names_pool) pool = layout.find_pool("");
    if (pool != nullptr) described.pool = pool->name;
    return std::nullopt;
}

}  // namespace fopd::reqh
