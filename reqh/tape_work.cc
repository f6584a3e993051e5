#include <cstddef>
#include <optional>
#include <string>
#include <utility>

#include "fop/listing.h"
#include "library/medium_work.h"
#include "objects/fids.h"
#include "reqh/at_library.h"
#include "reqh/tape_fops.h"

namespace fopd::reqh {

namespace {

struct WorkAnswer {
    library::MediaOutcome outcome;
    std::optional<library::MediumWork> work;
    Instant now{};  // At the library's locality.
};

Task<library::MediaOutcome> nothing_done() {
    co_return library::MediaOutcome{};
}

// The order of a request, with copies of its texts.
struct WorkOrder {
    fop::MediumWork::Kind kind = fop::MediumWork::Kind::kRepack;
    fop::MediumWork::Order what = fop::MediumWork::Order::kShow;
    std::string barcode{};
    std::string pool{};
};

Task<library::MediaOutcome> begin(library::LibraryService* service, const WorkOrder& order) {
    switch (order.kind) {
        case fop::MediumWork::Kind::kRepack: return service->repack(order.barcode);
        case fop::MediumWork::Kind::kScrub: return service->scrub(order.barcode);
        case fop::MediumWork::Kind::kRescue:
            return service->rescue({.barcode = order.barcode, .pool = order.pool});
        case fop::MediumWork::Kind::kFormat: break;  // Refused by the check of the body.
    }
    return nothing_done();
}

Task<library::MediaOutcome> end(library::LibraryService* service, const WorkOrder& order) {
    switch (order.kind) {
        case fop::MediumWork::Kind::kRepack: return service->cancel_repack(order.barcode);
        case fop::MediumWork::Kind::kScrub: return service->cancel_scrub(order.barcode);
        case fop::MediumWork::Kind::kRescue: return service->cancel_rescue(order.barcode);
        case fop::MediumWork::Kind::kFormat: return service->cancel_format(order.barcode);
    }
    return nothing_done();
}

Task<library::MediaOutcome> do_order(library::LibraryService* service, const WorkOrder& order) {
    switch (order.what) {
        case fop::MediumWork::Order::kShow: return nothing_done();
        case fop::MediumWork::Order::kBegin: return begin(service, order);
        case fop::MediumWork::Order::kEnd: return end(service, order);
    }
    return nothing_done();
}

std::optional<library::MediumWork> work_of(const library::LibraryService& service,
                                           const WorkOrder& order) {
    switch (order.kind) {
        case fop::MediumWork::Kind::kRepack: return service.repack_work(order.barcode);
        case fop::MediumWork::Kind::kScrub: return service.scrub_work(order.barcode);
        case fop::MediumWork::Kind::kRescue: return service.rescue_work(order.barcode);
        case fop::MediumWork::Kind::kFormat: break;
    }
    return std::nullopt;
}

// The order must live until the call has ended.
Task<WorkAnswer> order_work(const library::LibraryDoor* door, const WorkOrder* order,
                            core::WaitOptions wait) {
    WorkAnswer answer;
    auto ordered = do_order(door->service, *order);
    auto waiting = wait_for_change(door, std::move(ordered), wait);
    answer.outcome = co_await std::move(waiting);
    answer.work = work_of(*door->service, *order);
    answer.now = door->reactor->now();
    co_return answer;
}

fop::MediumWorkReply::State work_state_of(library::MediumWork::State state) {
    using From = library::MediumWork::State;
    using To = fop::MediumWorkReply::State;
    switch (state) {
        case From::kRunning: return To::kRunning;
        case From::kDone: return To::kDone;
        case From::kPartly: return To::kPartly;
        case From::kCancelled: return To::kCancelled;
    }
    return To::kNone;
}

}  // namespace

Task<fop::Reply> run_medium_work(Operation* operation) {
    operation->enter(Phase::kExecute);
    const auto& asked = operation->body<fop::MediumWork>();
    const library::LibraryDoor* const door = door_of(*operation);
    if (door == nullptr) co_return operation->refuse(kNoLibrary);
    const auto open = co_await check_open(operation, door, Opening::kRefused);
    if (!open) co_return operation->refuse(open.error());
    const WorkOrder order{.kind = asked.kind,
                          .what = asked.order,
                          .barcode = std::string(asked.name),
                          .pool = std::string(operation->header().pool)};
    auto job = [&order, door](library::LibraryService& /*service*/, core::WaitOptions wait) {
        return order_work(door, &order, wait);
    };
    auto answer = co_await run_at_library<WorkAnswer>(operation, door, &job);
    if (!answer) co_return operation->refuse(answer.error());
    if (answer->outcome.kind != library::MediaOutcome::Kind::kDone) {
        operation->work().text = std::move(answer->outcome.words);
        co_return operation->refuse(
            {.status = status_of(answer->outcome.kind), .words = operation->work().text});
    }
    if (!answer->work) co_return fop::Reply{.body = fop::MediumWorkReply{}};
    const library::MediumWork& work = *answer->work;
    fop::ListingWriter writer(operation->buffer().span().first(fop::kListingBytesMax));
    for (std::size_t i = asked.first; i < work.listed.size(); ++i) {
        const library::MediumWork::Failure& each = work.listed[i];
        const bool fits = writer.add(fop::FailedCopyEntry{.fid = objects::fop_fid(each.fid),
                                                          .file = each.file,
                                                          .name = each.name,
                                                          .reason = each.reason});
        if (!fits) break;
    }
    const bool runs = work.state == library::MediumWork::State::kRunning;
    operation->work().text = work.reason;
    const fop::MediumWorkReply reply{
        .state = work_state_of(work.state),
        .copies = work.copies,
        .copy_bytes = work.bytes,
        .copies_done = work.copies_done,
        .bytes_done = work.bytes_done,
        .failures = work.failures,
        .listed = static_cast<std::uint32_t>(work.listed.size()),
        .elapsed_ms = milliseconds((runs ? answer->now : work.ended_at) - work.began_at),
        .reason = operation->work().text};
    co_return fop::Reply{.payload = writer.written(), .body = reply};
}

}  // namespace fopd::reqh
