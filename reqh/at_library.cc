#include "reqh/at_library.h"

#include <optional>
#include <string>

namespace fopd::reqh {

namespace {

constexpr Refusal kLibraryOpens{.status = fop::Status::kTryAgain,
                                .words = "the tape library is being opened"};

Task<std::optional<std::string>> ask_why_not_open(library::LibraryService* service) {
    co_return service->why_not_open();
}

}  // namespace

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
