#include "tests/store/index_stage.h"

#include <algorithm>
#include <stdexcept>

namespace fopd::store::testing {

std::optional<IndexChange> ListedChanges::next() {
    if (at_ == changes_.end()) return std::nullopt;
    const auto& [key, value] = *at_++;
    IndexChange change{.key = bytes_of(key), .value = std::nullopt};
    if (value) change.value = bytes_of(*value);
    return change;
}

std::ostream& operator<<(std::ostream& out, IndexKind kind) {
    constexpr std::array kNames{"map", "LMDB", "LMDB with threads"};
    return out << kNames[static_cast<std::size_t>(kind)];
}

IndexStage::IndexStage(IndexKind kind, std::uint64_t seed, std::size_t map_bytes)
    : Replay(seed), kind_(kind), random_(seed) {
    options_.path = file();
    options_.disk_id.fill(std::byte{7});
    options_.map_bytes = map_bytes;
    if (kind == IndexKind::kLmdbWithThreads) {
        auto backend = core::make_poll_backend(clock_);
        if (!backend) throw std::runtime_error(describe(backend.error()));
        reactor_ = std::make_unique<core::Reactor>(std::move(*backend));
        auto offload = core::make_thread_offload({});
        if (!offload) throw std::runtime_error(describe(offload.error()));
        offload_ = std::move(*offload);
    } else {
        world_ = std::make_unique<core::VirtualWorld>(seed);
        reactor_ = world_->make_reactor();
        offload_ = core::make_virtual_offload(*world_, {});
    }
    const auto created = create();
    if (!created) throw std::runtime_error(describe(created.error()));
}

Result<void> IndexStage::take(Result<std::unique_ptr<LmdbIndex>> index) {
    if (!index) return std::unexpected(index.error());
    index_ = std::move(*index);
    return {};
}

Result<void> IndexStage::open() {
    if (kind_ == IndexKind::kMap) {
        index_ = std::make_unique<MapIndex>(
            MapIndex::World{.reactor = *reactor_, .random = random_}, image_);
        return {};
    }
    return take(run(LmdbIndex::open({.reactor = *reactor_, .offload = *offload_}, options_)));
}

Result<void> IndexStage::create() {
    if (kind_ == IndexKind::kMap) return open();
    return take(run(LmdbIndex::create({.reactor = *reactor_, .offload = *offload_}, options_)));
}

Result<void> IndexStage::apply(const Changes& changes, std::uint64_t applied) {
    ListedChanges listed(changes);
    return run(index().apply({.changes = &listed, .applied = applied}));
}

Entries IndexStage::all() {
    Entries forwards;
    auto& reader = index().reader();
    constexpr std::array kFirst{std::byte{1}};
    for (auto entry = reader.at_or_after(kFirst); entry && *entry; entry = reader.next()) {
        forwards.emplace_hint(forwards.end(), text_of((*entry)->key), text_of((*entry)->value));
    }
    Entries backwards;
    const std::string last(kIndexKeyBytesMax, '\xff');
    for (auto entry = reader.at_or_before(bytes_of(last)); entry && *entry;
         entry = reader.previous()) {
        backwards.emplace(text_of((*entry)->key), text_of((*entry)->value));
    }
    reader.release();
    REQUIRE(forwards == backwards);
    REQUIRE(forwards.size() == index().figures().entry_count);
    return forwards;
}

}  // namespace fopd::store::testing
