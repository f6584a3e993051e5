#pragma once

#include <concepts>
#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "core/ensure.h"
#include "fop/bodies.h"
#include "fop/wire_generated.h"

// Which members of the bodies are which fields in wire.fbs: all that reading and writing need.
namespace fopd::fop {

template <auto... Members>
constexpr auto members_of(auto& part) {
    return std::tie(part.*Members...);
}

// What a member of a body fills in its table: one field, or for Changed and Attributes a field with
// each of their members.
constexpr auto fields_in(auto& member) {
    return std::tie(member);
}
template <typename Part>
    requires std::same_as<std::remove_const_t<Part>, Changed>
constexpr auto fields_in(Part& changed) {
    return members_of<&Changed::version, &Changed::size_bytes, &Changed::receipt>(changed);
}
template <typename Part>
    requires std::same_as<std::remove_const_t<Part>, Attributes>
constexpr auto fields_in(Part& attributes) {
    return members_of<&Attributes::fid, &Attributes::size_bytes, &Attributes::version,
                      &Attributes::created_ns, &Attributes::changed_ns,
                      &Attributes::allocated_bytes, &Attributes::incarnation, &Attributes::owner,
                      &Attributes::group, &Attributes::name, &Attributes::mode,
                      &Attributes::collection>(attributes);
}

// A table, and the members of its body in the order of the table's fields.
template <typename WireTable, auto... Members>
struct BodyRow {
    using Table = WireTable;
    static constexpr auto fields(auto& body) { return std::tuple_cat(fields_in(body.*Members)...); }
};

// A row for each alternative of RequestBody, and then of ReplyBody, but for the first one, which is
// no body.
using RequestRows = std::tuple<
    BodyRow<wire::PingRequest>, BodyRow<wire::EchoRequest>,
    BodyRow<wire::BulkEchoRequest, &BulkEcho::source, &BulkEcho::target, &BulkEcho::bytes>,
    BodyRow<wire::SlotsRequest>, BodyRow<wire::StatfsRequest>,
    BodyRow<wire::CreateObjectRequest, &Create::name, &Create::group, &Create::slot, &Create::mode,
            &Create::no_replace, &Create::collection>,
    BodyRow<wire::LookupRequest, &Lookup::name>, BodyRow<wire::StatRequest, &Stat::fid>,
    BodyRow<wire::ListRequest, &ListObjects::prefix, &ListObjects::cursor, &ListObjects::count_max>,
    BodyRow<wire::SetAttributesRequest, &SetAttributes::fid, &SetAttributes::owner,
            &SetAttributes::group, &SetAttributes::mode, &SetAttributes::which>,
    BodyRow<wire::RenameRequest, &Rename::fid, &Rename::from, &Rename::name, &Rename::no_replace>,
    BodyRow<wire::DeleteRequest, &Delete::fid, &Delete::from>,
    BodyRow<wire::ReadRequest, &Read::fid, &Read::ranges, &Read::target>,
    BodyRow<wire::WriteRequest, &Write::fid, &Write::ranges, &Write::checksums, &Write::source,
            &Write::durability, &Write::lost_in>,
    BodyRow<wire::AppendRequest, &Append::fid, &Append::length, &Append::checksums,
            &Append::source>,
    BodyRow<wire::TruncateRequest, &Truncate::fid, &Truncate::size_bytes>,
    BodyRow<wire::PunchRequest, &Punch::fid, &Punch::range>,
    BodyRow<wire::SyncRequest, &Sync::receipts>,
    BodyRow<wire::UploadBeginRequest, &UploadBegin::name, &UploadBegin::group,
            &UploadBegin::size_bytes, &UploadBegin::slot, &UploadBegin::mode,
            &UploadBegin::no_replace, &UploadBegin::collection>,
    BodyRow<wire::UploadWriteRequest, &UploadWrite::fid, &UploadWrite::range,
            &UploadWrite::checksums, &UploadWrite::source>,
    BodyRow<wire::UploadCommitRequest, &UploadCommit::fid, &UploadCommit::size_bytes,
            &UploadCommit::blocks>,
    BodyRow<wire::UploadAbortRequest, &UploadAbort::fid>,
    BodyRow<wire::QuotaRequest, &Quota::cursor, &Quota::wanted_bytes, &Quota::wanted_objects>,
    BodyRow<wire::StageRequest, &Stage::fid, &Stage::pin_s, &Stage::priority, &Stage::unpin>,
    BodyRow<wire::ReleaseRequest, &Release::fid>, BodyRow<wire::RecallsRequest, &Recalls::formats>,
    BodyRow<wire::RecallWaitRequest, &RecallWait::fids, &RecallWait::patience_ms>,
    BodyRow<wire::RecallCancelRequest, &RecallCancel::fid>, BodyRow<wire::SyncTapeRequest>,
    BodyRow<wire::MediaRequest, &Media::cursor>,
    BodyRow<wire::FormatMediumRequest, &FormatMedium::name, &FormatMedium::forget_data,
            &FormatMedium::lose_objects>,
    BodyRow<wire::LoadMediumRequest, &LoadMedium::name, &LoadMedium::drive>,
    BodyRow<wire::UnloadDriveRequest, &UnloadDrive::drive>,
    BodyRow<wire::CopiesRequest, &Copies::fid>,
    BodyRow<wire::MediumWorkRequest, &MediumWork::name, &MediumWork::kind, &MediumWork::order,
            &MediumWork::first>,
    BodyRow<wire::SetDriveRequest, &SetDrive::drive, &SetDrive::down>,
    BodyRow<wire::ExportMediumRequest, &ExportMedium::name, &ExportMedium::hide_objects>,
    BodyRow<wire::ImportMediaRequest, &ImportMedia::name>,
    BodyRow<wire::EpochMessageRequest, &EpochMessage::from, &EpochMessage::message>>;
using ReplyRows = std::tuple<
    BodyRow<wire::PingReply>, BodyRow<wire::EchoReply>,
    BodyRow<wire::BulkEchoReply, &BulkEchoReply::bytes, &BulkEchoReply::crc>,
    BodyRow<wire::SlotsReply, &SlotsReply::version>,
    BodyRow<wire::StatfsReply, &StatfsReply::total_bytes, &StatfsReply::used_bytes,
            &StatfsReply::free_bytes, &StatfsReply::objects>,
    BodyRow<wire::CreateObjectReply, &CreateReply::fid, &CreateReply::version,
            &CreateReply::receipt>,
    BodyRow<wire::AttributesReply, &LookupReply::attributes>,
    BodyRow<wire::AttributesReply, &StatReply::attributes>,
    BodyRow<wire::ListReply, &ListObjectsReply::cursor, &ListObjectsReply::end>,
    BodyRow<wire::ChangeReply, &SetAttributesReply::changed>,
    BodyRow<wire::ChangeReply, &RenameReply::changed>,
    BodyRow<wire::DeleteReply, &DeleteReply::receipt>,
    BodyRow<wire::ReadReply, &ReadReply::bytes, &ReadReply::size_bytes, &ReadReply::version,
            &ReadReply::incarnation, &ReadReply::checksums>,
    BodyRow<wire::ChangeReply, &WriteReply::changed>,
    BodyRow<wire::AppendReply, &AppendReply::offset, &AppendReply::changed>,
    BodyRow<wire::ChangeReply, &TruncateReply::changed>,
    BodyRow<wire::ChangeReply, &PunchReply::changed>,
    BodyRow<wire::SyncReply, &SyncReply::receipts>,
    BodyRow<wire::UploadBeginReply, &UploadBeginReply::fid>,
    BodyRow<wire::UploadWriteReply, &UploadWriteReply::receipt>,
    BodyRow<wire::UploadCommitReply, &UploadCommitReply::version, &UploadCommitReply::receipt>,
    BodyRow<wire::UploadAbortReply>,
    BodyRow<wire::QuotaReply, &QuotaReply::cursor, &QuotaReply::end, &QuotaReply::compared>,
    BodyRow<wire::StageReply, &StageReply::waits>, BodyRow<wire::ReleaseReply>,
    BodyRow<wire::RecallsReply, &RecallsReply::total, &RecallsReply::formats,
            &RecallsReply::oldest_ms>,
    BodyRow<wire::RecallWaitReply, &RecallWaitReply::states, &RecallWaitReply::place,
            &RecallWaitReply::expected_ms, &RecallWaitReply::is_damaged>,
    BodyRow<wire::RecallCancelReply>, BodyRow<wire::SyncTapeReply>,
    BodyRow<wire::MediaReply, &MediaReply::cursor, &MediaReply::end>,
    BodyRow<wire::FormatMediumReply>, BodyRow<wire::LoadMediumReply>,
    BodyRow<wire::UnloadDriveReply>,
    BodyRow<wire::CopiesReply, &CopiesReply::total, &CopiesReply::on_disk,
            &CopiesReply::pinned_until_s>,
    BodyRow<wire::MediumWorkReply, &MediumWorkReply::state, &MediumWorkReply::copies,
            &MediumWorkReply::copy_bytes, &MediumWorkReply::copies_done,
            &MediumWorkReply::bytes_done, &MediumWorkReply::failures, &MediumWorkReply::listed,
            &MediumWorkReply::elapsed_ms, &MediumWorkReply::reason>,
    BodyRow<wire::SetDriveReply>,
    BodyRow<wire::ExportMediumReply, &ExportMediumReply::objects, &ExportMediumReply::only_here,
            &ExportMediumReply::in_exchange>,
    BodyRow<wire::ImportMediaReply, &ImportMediaReply::total>, BodyRow<wire::EpochMessageReply>>;

static_assert(std::variant_size_v<RequestBody> == 1 + std::tuple_size_v<RequestRows>);
static_assert(std::variant_size_v<ReplyBody> == 1 + std::tuple_size_v<ReplyRows>);

// Calls `visit` with the row's number as its template argument. REQUIRES: there is such a row.
template <typename Rows>
auto visit_row(std::size_t row, const auto& visit) {
    using Visited = decltype(visit.template operator()<0>());
    return [&]<std::size_t... Index>(std::index_sequence<Index...>) {
        Visited visited{};
        const bool is_there =
            ((row == Index && (visited = visit.template operator()<Index>(), true)) || ...);
        ENSURE(is_there);
        return visited;
    }(std::make_index_sequence<std::tuple_size_v<Rows>>());
}

}  // namespace fopd::fop
