#include "reqh/at_library.h"

#include <memory>
#include <optional>
#include <string>

#include "core/wait_queue.h"

namespace fopd::reqh {

namespace {

constexpr Refusal kLibraryOpens{.status = fop::Status::kTryAgain,
                                .words = "the tape library is being opened"};

Task<std::optional<std::string>> ask_why_not_open(library::LibraryService* service) {
    co_return service->why_not_open();
}

// The outcome of an operation on media. The operation goes on when its fop has stopped waiting.
struct MediaChange {
    explicit MediaChange(core::Reactor& reactor) : ended(reactor) {}

    std::optional<library::MediaOutcome> outcome;
    core::WaitQueue ended;
    core::CancelSource cancel;  // Asks the operation to give up.
};

// How long a format that is given up is waited for. One that waits for a drive ends at once.
constexpr Duration kGivingUp = 1s;

library::MediaOutcome failed(std::string words) {
    return {.kind = library::MediaOutcome::Kind::kFailed, .words = std::move(words)};
}
library::MediaOutcome goes_on() {
    return failed("the operation goes on; the request does not wait for its end any more");
}

Task<void> carry_out(Task<library::MediaOutcome> work, std::shared_ptr<MediaChange> change) {
    change->outcome = co_await std::move(work);
    change->ended.wake_all();
}

Task<bool> has_ended(MediaChange* change, core::WaitOptions wait) {
    while (!change->outcome) {
        const auto woken = co_await change->ended.wait(wait);
        if (!woken) break;
    }
    co_return change->outcome.has_value();
}

}  // namespace

Task<library::MediaOutcome> wait_for_change(const library::LibraryDoor* door,
                                            Task<library::MediaOutcome> work,
                                            core::WaitOptions wait) {
    if (door->gate->closed()) co_return failed("the library stops");
    const auto change = std::make_shared<MediaChange>(*door->reactor);
    door->reactor->spawn(*door->gate, carry_out(std::move(work), change));
    const bool ended = co_await has_ended(change.get(), wait);
    if (!ended) co_return goes_on();
    co_return *change->outcome;
}

Task<library::MediaOutcome> wait_for_format(const library::LibraryDoor* door,
                                            library::LibraryService::FormatWish wish,
                                            core::WaitOptions wait) {
    if (door->gate->closed()) co_return failed("the library stops");
    const auto change = std::make_shared<MediaChange>(*door->reactor);
    wish.cancel = &change->cancel;
    auto work = door->service->format(std::move(wish));
    door->reactor->spawn(*door->gate, carry_out(std::move(work), change));
    const bool ended = co_await has_ended(change.get(), wait);
    if (ended) co_return *change->outcome;
    change->cancel.cancel();
    const core::WaitOptions moment{.deadline = after(door->reactor->now(), kGivingUp)};
    const bool given_up = co_await has_ended(change.get(), moment);
    if (!given_up) co_return goes_on();
    co_return *change->outcome;
}

Task<Granted<>> check_open(Operation* operation, const library::LibraryDoor* door,
                           Opening opening) {
    auto job = [](library::LibraryService& service, core::WaitOptions /*wait*/) {
        return ask_why_not_open(&service);
    };
    const auto asked = co_await run_at_library<std::optional<std::string>>(operation, door, &job);
    if (!asked) co_return std::unexpected(asked.error());
    if (!*asked) co_return Granted<>{};
    if ((*asked)->empty()) {
        if (opening == Opening::kWaits) co_return Granted<>{};
        co_return refused(kLibraryOpens);
    }
    operation->work().text = "the tape library is not open: " + **asked;
    co_return refused({.status = fop::Status::kBusy, .words = operation->work().text});
}

}  // namespace fopd::reqh
