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

Task<WorkAnswer> order_work(library::LibraryService* service, core::Reactor* reactor,
                            fop::MediumWork::Order order, std::string barcode) {
    WorkAnswer answer;
    if (order == fop::MediumWork::Order::kBegin) answer.outcome = co_await service->repack(barcode);
    if (order == fop::MediumWork::Order::kEnd) {
        answer.outcome = co_await service->cancel_repack(barcode);
    }
    answer.work = service->repack_work(barcode);
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
    const std::string barcode(asked.name);
    auto job = [&asked, &barcode, door](library::LibraryService& service,
                                        core::WaitOptions /*wait*/) {
        return order_work(&service, door->reactor, asked.order, barcode);
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
        .bytes = work.bytes,
        .copies_done = work.copies_done,
        .bytes_done = work.bytes_done,
        .failures = work.failures,
        .listed = static_cast<std::uint32_t>(work.listed.size()),
        .elapsed_ms = milliseconds((runs ? answer->now : work.ended_at) - work.began_at),
        .reason = operation->work().text};
    co_return fop::Reply{.payload = writer.written(), .body = reply};
}

}  // namespace fopd::reqh
