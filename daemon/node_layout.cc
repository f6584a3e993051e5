#include "daemon/node_layout.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/remote.h"
#include "daemon/quota_metrics.h"

namespace fopd::daemon {

Quotas NodeLayout::quotas() const {
    const config::Snapshot& settings = *parts_.configuration.current();
    return {.of_pools = settings.get<std::vector<devices::PoolSettings>>(),
            .of_principals = parts_.access.current()->quotas};
}

// Later starts get higher versions, unless the clock is set back.
std::shared_ptr<objects::StoreLayout> NodeLayout::make() const {
    const Quotas limits = quotas();
    auto layout =
        std::make_shared<objects::StoreLayout>(make_store_layout(limits.of_pools, parts_.disks));
    layout->version = static_cast<std::uint64_t>(parts_.clock.wall().unix_ns);
    if (current_ != nullptr) {
        keep_counts(*layout, *current_);
        layout->version = std::max(current_->version + 1, layout->version);
    }
    set_quotas(*layout, limits);
    return layout;
}

Task<void> NodeLayout::begin() {
    if (parts_.disks.empty()) co_return;
    make_current(make());
    Locality::Beginning beginning{.all = {}, .layout = current_};
    for (const auto& locality : parts_.localities) beginning.all.push_back(locality->stores());
    add_library(beginning);
    for (const auto& locality : parts_.localities) {
        auto serve = [&locality, &beginning] { locality->serve_objects(beginning); };
        co_await core::run_on(parts_.control, locality->reactor(), serve);
    }
}

void NodeLayout::add_library(Locality::Beginning& beginning) const {
    for (const auto& locality : parts_.localities) {
        library::StagingDisks* const staging = locality->staging();
        if (staging == nullptr) return;
        beginning.tape_doors.push_back({.disks = staging,
                                        .reactor = &locality->reactor(),
                                        .gate = &locality->stores()->duties()});
        beginning.library.stagings.push_back(staging);
        library::TapeLibrary* const library = locality->library();
        if (library == nullptr) continue;
        beginning.library.service = library;
        beginning.library.reactor = &locality->reactor();
        beginning.library.gate = &library->gate();
        beginning.library_bell = library;
    }
}

Task<void> NodeLayout::publish() {
    const objects::StoreLayoutPtr layout = make();
    make_current(layout);
    for (const auto& locality : parts_.localities) {
        auto take = [&locality, &layout] { locality->set_layout(layout); };
        co_await core::run_on(parts_.control, locality->reactor(), take);
    }
}

void NodeLayout::make_current(objects::StoreLayoutPtr layout) {
    current_ = std::move(layout);
    const std::lock_guard lock(shown_);
    shown_layout_ = current_;
}

void NodeLayout::collect(core::MetricSink& sink) const {
    objects::StoreLayoutPtr layout;
    {
        const std::lock_guard lock(shown_);
        layout = shown_layout_;
    }
    if (layout != nullptr) collect_quotas(sink, *layout);
}

void NodeLayout::apply_quotas() const {
    if (current_ != nullptr) set_quotas(*current_, quotas());
}

}  // namespace fopd::daemon
