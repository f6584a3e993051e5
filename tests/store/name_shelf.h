#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/offload.h"
#include "core/random.h"
#include "core/virtual_world.h"
#include "store/lmdb_index.h"
#include "store/map_index.h"
#include "store/names.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/temp_dir.h"

namespace fopd::store::testing {

inline constexpr std::uint32_t kShelfPool = 1;

enum class IndexKind { kMap, kLmdb };

inline IndexKind any_kind() {
    return GENERATE(IndexKind::kMap, IndexKind::kLmdb);
}

inline devices::DiskId disk_id(unsigned number) {
    devices::DiskId id;
    id.fill(static_cast<std::byte>(number));
    return id;
}

// All names, on a reactor of their own, over an index that stays.
class NameShelf : fopd::testing::Replay {
public:
    explicit NameShelf(IndexKind kind, std::uint64_t seed = 1)
        : Replay(seed), kind_(kind), world_(seed), random_(seed), reactor_(world_.make_reactor()) {
        offload_ = core::make_virtual_offload(world_, {});
        const auto opened = open(true);
        REQUIRE(opened.has_value());
    }
    ~NameShelf() { reactor_->drop_coroutines(); }

    Result<void> open(bool anew = false, NameHead part = {}) {
        names_.reset();
        index_.reset();
        if (kind_ == IndexKind::kMap) {
            index_ = std::make_unique<MapIndex>(
                MapIndex::World{.reactor = *reactor_, .random = random_}, image_);
        } else {
            const LmdbIndex::World world{.reactor = *reactor_, .offload = *offload_};
            const LmdbIndex::Options options{.path = directory_ / "names"};
            auto made = anew ? run(LmdbIndex::create(world, options))
                             : run(LmdbIndex::open(world, options));
            if (!made) return std::unexpected(made.error());
            index_ = std::move(*made);
        }
        names_ = std::make_unique<NameShard>(
            NameShard::World{.reactor = *reactor_, .clock = world_.clock()}, *index_,
            NameShardOptions{.part = part, .overlay_bytes = 512UL << 10});
        return names_->open();
    }

    template <typename T>
    T run(Task<T> task) {
        auto result = world_.run(*reactor_, std::move(task));
        REQUIRE(result.has_value());
        return std::move(*result);
    }
    // Begins it, and lets it come as far as it can before `span` has passed.
    void begin(Task<void> task) {
        reactor_->spawn(gate_, std::move(task));
        pass(1ms);
    }
    void pass(Duration span) { world_.run_for(span); }

    Result<void> tell(NameChanges changes) { return run(names_->tell(&changes)); }
    Result<void> made(NameClaim claim) { return tell({{.claim = std::move(claim)}}); }
    Result<void> ended(NameClaim claim) {
        return tell({{.kind = NameChange::Kind::kEnded, .claim = std::move(claim)}});
    }
    Result<void> keep(unsigned disk, std::uint64_t seq) {
        const NameSink::Kept kept{.disk = disk_id(disk), .seq = seq};
        return run(names_->keep(kept));
    }
    std::optional<Fid> find(std::string_view name) {
        const auto owner = names_->find({.pool = kShelfPool, .name = name});
        REQUIRE(owner.has_value());
        return *owner ? std::optional((*owner)->fid) : std::nullopt;
    }
    std::vector<NameClaim> list(NameShard::Listing listing) {
        std::vector<NameClaim> all;
        for (;;) {
            const auto page = run(names_->list(listing));
            REQUIRE(page.has_value());
            REQUIRE(page->claims.size() <= listing.count_max);
            all.insert(all.end(), page->claims.begin(), page->claims.end());
            if (page->end) return all;
            REQUIRE(page->claims.size() == listing.count_max);
            listing.behind = all.back().name;
        }
    }
    std::vector<NameClaim> replaced(std::uint32_t count_max = 7) {
        std::vector<NameClaim> all;
        NameShard::Replaced which{.count_max = count_max};
        for (;;) {
            const auto page = run(names_->replaced(which));
            REQUIRE(page.has_value());
            all.insert(all.end(), page->claims.begin(), page->claims.end());
            if (page->end) return all;
            which.behind = all.back();
        }
    }

    NameShard& names() { return *names_; }
    MapImage& image() { return image_; }
    core::VirtualWorld& world() { return world_; }
    core::Reactor& reactor() { return *reactor_; }

private:
    const IndexKind kind_;
    TempDir directory_;
    core::VirtualWorld world_;
    core::Random random_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<core::Offload> offload_;
    MapImage image_;
    std::unique_ptr<Index> index_;
    std::unique_ptr<NameShard> names_;
    core::Gate gate_;
};

inline NameClaim claim(std::string name, std::uint64_t version, std::uint64_t object,
                       Slot slot = 0) {
    return {.pool = kShelfPool,
            .name = std::move(name),
            .version = version,
            .fid = {.high = std::uint64_t{slot} << 48, .low = object}};
}

inline Fid fid(std::uint64_t object, Slot slot = 0) {
    return claim("", 0, object, slot).fid;
}

// Someone who wants a name and keeps it until it is told to let go.
struct Wanting {
    std::optional<Result<ReservedName>> hold;
};

inline Task<void> want(NameShard* names, std::string name, core::WaitOptions wait,
                       Wanting* wanting) {
    PoolName wanted(kShelfPool, name);
    auto hold = co_await names->reserve(std::move(wanted), wait);
    wanting->hold.emplace(std::move(hold));
}

}  // namespace fopd::store::testing
