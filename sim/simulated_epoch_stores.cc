#include "sim/simulated_epoch_stores.h"

#include <utility>

namespace fopd::sim {

namespace {

constexpr Error kFull{.code = Errc::kNoSpace, .context = "the disk is full"};

}  // namespace

void SimulatedSmallFile::read(eh::SmallFileUser& user) {
    if (!work_.closed()) reactor_.spawn(work_, read_for(&user));
}

void SimulatedSmallFile::replace(std::vector<std::byte> bytes, eh::SmallFileUser& user) {
    if (!work_.closed()) reactor_.spawn(work_, replace_for(&user, std::move(bytes)));
}

Task<bool> SimulatedSmallFile::close(Instant deadline) {
    const auto closed = co_await work_.close_by(reactor_, deadline);
    co_return closed.has_value();
}

Duration SimulatedSmallFile::some_time() {
    return Duration(static_cast<std::int64_t>(random_.below(5'000'000)));
}

Task<void> SimulatedSmallFile::read_for(eh::SmallFileUser* user) {
    [[maybe_unused]] const auto slept = co_await reactor_.sleep_for(some_time());
    if (contents_.empty()) {
        user->on_file_read(
            std::unexpected(Error{.code = Errc::kNotFound, .context = "no such file yet"}));
    } else {
        user->on_file_read(contents_.back());
    }
}

Task<void> SimulatedSmallFile::replace_for(eh::SmallFileUser* user, std::vector<std::byte> bytes) {
    while (files_.hangs) {
        [[maybe_unused]] const auto hung = co_await reactor_.sleep_for(1s);
    }
    [[maybe_unused]] const auto written = co_await reactor_.sleep_for(some_time());
    const bool is_full = files_.is_full;
    if (!is_full) contents_.push_back(std::move(bytes));
    [[maybe_unused]] const auto answered = co_await reactor_.sleep_for(some_time());
    if (is_full) {
        user->on_file_replaced(
            std::unexpected(eh::NotReplaced{.error = kFull, .has_old_bytes = true}));
    } else {
        user->on_file_replaced({});
    }
}

SimulatedEpochStores::SimulatedEpochStores(core::Reactor& reactor, core::Random random,
                                           EpochFiles& files, SimulatedViewRegister* shared)
    : incarnation_(reactor, random.fork(), files, files.incarnation),
      view_file_(reactor, random.fork(), files, files.view),
      file_views_(view_file_),
      numbers_(reactor, random.fork(), files, files.numbers) {
    if (shared != nullptr) shared_views_.emplace(*shared, reactor);
}

eh::ViewStore& SimulatedEpochStores::views() {
    if (shared_views_) return *shared_views_;
    return file_views_;
}

Task<bool> SimulatedEpochStores::close(Instant deadline) {
    if (shared_views_) co_await shared_views_->stop();
    const bool incarnation_closed = co_await incarnation_.close(deadline);
    const bool view_closed = co_await view_file_.close(deadline);
    const bool numbers_closed = co_await numbers_.close(deadline);
    const bool all_closed = incarnation_closed && view_closed && numbers_closed;
    co_return all_closed;
}

}  // namespace fopd::sim
