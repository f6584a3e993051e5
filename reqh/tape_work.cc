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

Task<library::MediaOutcome> order(library::LibraryService* service, fop::MediumWork::Kind kind,
                                  fop::MediumWork::Order what, std::string barcode) {
    const bool is_repack = kind == fop::MediumWork::Kind::kRepack;
    switch (what) {
        case fop::MediumWork::Order::kShow: return nothing_done();
        case fop::MediumWork::Order::kBegin:
            return is_repack ? service->repack(std::move(barcode))
                             : service->scrub(std::move(barcode));
        case fop::MediumWork::Order::kEnd:
            return is_repack ? service->cancel_repack(std::move(barcode))
                             : service->cancel_scrub(std::move(barcode));
    }
    return nothing_done();
}

Task<WorkAnswer> order_work(library::LibraryService* service, core::Reactor* reactor,
                            fop::MediumWork::Kind kind, fop::MediumWork::Order what,
                            std::string barcode) {
    WorkAnswer answer;
    auto ordered = order(service, kind, what, barcode);
    answer.outcome = co_await std::move(ordered);
    answer.work = kind == fop::MediumWork::Kind::kRepack ? service->repack_work(barcode)
                                                         : service->scrub_work(barcode);
    answer.now = reactor->now();
    co_return answer;
}

fop::MediumWorkReply::State state_of(library::MediumWork::State state) {
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
    const std::string barcode(asked.name);
    auto job = [&asked, &barcode, door](library::LibraryService& service,
                                        core::WaitOptions /*wait*/) {
        return order_work(&service, door->reactor, asked.kind, asked.order, barcode);
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
    fop::ListingWriter writer(operation->piece().span().first(fop::kListingBytesMax));
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
        .state = state_of(work.state),
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
