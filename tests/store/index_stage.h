#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "core/clock.h"
#include "core/offload.h"
#include "core/poll_backend.h"
#include "core/virtual_world.h"
#include "store/index.h"
#include "store/lmdb_index.h"
#include "store/map_index.h"
#include "tests/catch.h"
#include "tests/replay.h"
#include "tests/store/text_bytes.h"
#include "tests/temp_dir.h"

namespace fopd::store::testing {

using Entries = std::map<std::string, std::string, std::less<>>;
// None: the key goes.
using Changes = std::map<std::string, std::optional<std::string>, std::less<>>;

// Changes as an index takes them.
class ListedChanges final : public IndexChanges {
public:
    explicit ListedChanges(const Changes& changes) : changes_(changes), at_(changes.begin()) {}
    void rewind() override { at_ = changes_.begin(); }
    std::optional<IndexChange> next() override;

private:
    const Changes& changes_;
    Changes::const_iterator at_;
};

enum class IndexKind { kMap, kLmdb, kLmdbWithThreads };
inline constexpr std::array kIndexKinds{IndexKind::kMap, IndexKind::kLmdb,
                                        IndexKind::kLmdbWithThreads};
std::ostream& operator<<(std::ostream& out, IndexKind kind);

// An index of some kind, on a reactor, that can be closed and opened again.
class IndexStage : fopd::testing::Replay {
public:
    explicit IndexStage(IndexKind kind, std::uint64_t seed = 1, std::size_t map_bytes = 1UL << 30);

    Index& index() { return *index_; }
    core::Reactor& reactor() { return *reactor_; }
    core::VirtualWorld& world() { return *world_; }
    MapImage& image() { return image_; }
    std::string file() const { return directory_ / "index"; }
    LmdbIndex::Options& options() { return options_; }

    Result<void> open();
    Result<void> create();
    void close() { index_.reset(); }
    Result<void> apply(const Changes& changes, std::uint64_t applied);
    // All there is, forwards; backwards it is the same.
    Entries all();

    template <typename T>
    T run(Task<T> task) {
        if (world_ == nullptr) return reactor_->run_until_done(std::move(task));
        auto result = world_->run(*reactor_, std::move(task));
        REQUIRE(result.has_value());
        return std::move(*result);
    }

private:
    Result<void> take(Result<std::unique_ptr<LmdbIndex>> index);

    const IndexKind kind_;
    TempDir directory_;
    core::PosixClock clock_;
    std::unique_ptr<core::VirtualWorld> world_;
    std::unique_ptr<core::Reactor> reactor_;
    std::unique_ptr<core::Offload> offload_;
    core::Random random_;
    LmdbIndex::Options options_;
    MapImage image_;
    std::unique_ptr<Index> index_;
};

}  // namespace fopd::store::testing
