#include "daemon/locality_questions.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/remote.h"
#include "core/remote_task.h"

namespace fopd::daemon {

Task<std::vector<LocalityQuestions::LocalSession>> LocalityQuestions::sessions() {
    std::vector<LocalSession> all;
    for (const auto& locality : localities_) {
        auto ask = [&locality] { return locality->sessions(); };
        auto some = co_await core::run_on(control_, locality->reactor(), ask);
        for (fabric::SessionInfo& info : some) {
            all.push_back({.locality = locality->index(), .info = std::move(info)});
        }
    }
    co_return all;
}

Task<std::vector<lrs::ClassFigures>> LocalityQuestions::class_figures(std::size_t count_max) {
    std::vector<lrs::ClassFigures> all;
    for (const auto& locality : localities_) {
        auto ask = [&locality] {
            return std::pair(locality->class_figures(), locality->take_class_news());
        };
        auto some = co_await core::run_on(control_, locality->reactor(), ask);
        std::ranges::move(some.first, std::back_inserter(all));
        classes_.take(locality->index(), some.second, control_.now());
    }
    std::vector<lrs::ClassFigures> classes = lrs::together(std::move(all), count_max);
    classes_.complete(classes);
    co_return classes;
}

Task<reqh::FopList> LocalityQuestions::fops(std::size_t queued_max) {
    return fops_of([queued_max](const Locality& locality) { return locality.fops(queued_max); },
                   queued_max);
}

Task<reqh::FopList> LocalityQuestions::slow_fops() {
    return fops_of([](const Locality& locality) { return locality.slow_fops(); }, 0);
}

Task<reqh::FopList> LocalityQuestions::fops_of(FopsOf of, std::size_t queued_max) {
    reqh::FopList all;
    for (const auto& locality : localities_) {
        auto ask = [&locality, &of] { return of(*locality); };
        auto some = co_await core::run_on(control_, locality->reactor(), ask);
        all.add(std::move(some), queued_max);
    }
    co_return all;
}

Task<eh::peers::EpochStatus> LocalityQuestions::epochs() {
    Locality& first = *localities_.front();
    if (first.epochs() == nullptr) co_return {};
    auto ask = [&first] { return first.epochs()->status(); };
    co_return co_await core::run_on(control_, first.reactor(), ask);
}

// NOLINTNEXTLINE(readability-make-member-function-const): changes the node's epochs.
Task<std::expected<Duration, std::string>> LocalityQuestions::waive_majority() {
    Locality& first = *localities_.front();
    if (first.epochs() == nullptr) co_return std::unexpected("this daemon has no network");
    auto waive = [&first] { return first.epochs()->waive_majority(); };
    co_return co_await core::run_on(control_, first.reactor(), waive);
}

Task<std::vector<reqh::FopLoad::Row>> LocalityQuestions::load() {
    std::vector<reqh::FopLoad::Row> all;
    for (const auto& locality : localities_) {
        auto ask = [&locality] { return locality->load(); };
        auto some = co_await core::run_on(control_, locality->reactor(), ask);
        std::ranges::move(some, std::back_inserter(all));
    }
    co_return all;
}

Task<LocalityQuestions::Media> LocalityQuestions::drives() {
    Media media;
    for (const auto& locality : localities_) {
        if (locality->library() == nullptr) continue;
        auto ask = [&locality, &media] {
            media.not_open = locality->library()->why_not_open();
            media.drives = locality->library()->drives();
        };
        co_await core::run_on(control_, locality->reactor(), ask);
    }
    co_return media;
}

Task<LocalityQuestions::Media> LocalityQuestions::media() {
    Media media = co_await drives();
    for (const auto& locality : localities_) {
        if (locality->library() == nullptr) continue;
        auto ask = [&locality, &media] { media.cartridges = locality->library()->media(); };
        co_await core::run_on(control_, locality->reactor(), ask);
    }
    for (const auto& locality : localities_) {
        if (locality->stores() == nullptr || media.cartridges.empty()) continue;
        auto ask = [&locality, &media] {
            library::add_media_bytes(*locality->stores(), media.cartridges, media.bytes);
        };
        co_await core::run_on(control_, locality->reactor(), ask);
    }
    co_return media;
}

Task<std::vector<library::DriveRow>> LocalityQuestions::unload_drives(Duration patience) {
    std::vector<library::DriveRow> left;
    for (const auto& locality : localities_) {
        library::TapeLibrary* const library = locality->library();
        if (library == nullptr) continue;
        core::Reactor& there = locality->reactor();
        auto job = [library, &there, patience] {
            return library->unload_all(after(there.now(), patience));
        };
        auto rows = co_await core::run_task_on<std::vector<library::DriveRow>>(
            control_, there, library->gate(), job);
        if (rows) left = *std::move(rows);
    }
    co_return left;
}

Task<std::optional<reqh::FopRecord>> LocalityQuestions::trace(reqh::FopId id) {
    for (const auto& locality : localities_) {
        auto ask = [&locality, id] { return locality->trace(id); };
        auto record = co_await core::run_on(control_, locality->reactor(), ask);
        if (record) co_return record;
    }
    co_return std::nullopt;
}

}  // namespace fopd::daemon
