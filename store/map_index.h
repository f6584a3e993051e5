#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "core/random.h"
#include "core/reactor.h"
#include "store/index.h"

namespace fopd::store {

// The durable content of a MapIndex; it outlives a simulated crash.
struct MapImage {
    std::map<std::string, std::string, std::less<>> entries{};
    std::uint64_t applied = 0;
    std::uint64_t size_bytes = 0;
    // If set, every apply() fails with it and changes nothing.
    std::optional<Error> refusal{};
    // An apply() with more changes fails with kNoSpace, as on a full file system.
    std::size_t changes_max = SIZE_MAX;
    std::uint64_t refused_count = 0;  // Calls of apply() that failed so.
    bool has_reserve = true;
};

// The index of the simulated world. A change takes a time drawn from the seed, and happens at one
// moment in it: a crash leaves all of it or nothing.
class MapIndex final : public Index {
public:
    struct World {
        core::Reactor& reactor;
        core::Random& random;
        Duration delay_max = 20ms;
    };
    // World and image outlive it.
    MapIndex(World world, MapImage& image);

    IndexReader& reader() override { return reader_; }
    std::uint64_t applied() const override { return image_.applied; }
    Task<Result<void>> apply(Step step) override;
    Task<Result<void>> show_all(IndexShow* show) override;
    IndexFigures figures() const override;
    bool has_reserve() const override { return image_.has_reserve; }
    std::uint64_t room_bytes() const override { return UINT64_MAX; }

private:
    class Reader final : public IndexReader {
    public:
        explicit Reader(const MapImage& image) : entries_(image.entries) {}
        Result<std::optional<IndexEntry>> at_or_after(Bytes key) override;
        Result<std::optional<IndexEntry>> at_or_before(Bytes key) override;
        Result<std::optional<IndexEntry>> next() override;
        Result<std::optional<IndexEntry>> previous() override;
        void release() override { viewing_ = false; }
        bool viewing() const { return viewing_; }

    private:
        using Entries = decltype(MapImage::entries);
        std::optional<IndexEntry> stand_on(Entries::const_iterator to);

        const Entries& entries_;
        std::optional<Entries::const_iterator> at_{};
        bool viewing_ = false;
    };

    static std::size_t count(const Step& step);
    void change(const Step& step);

    const World world_;
    MapImage& image_;
    Reader reader_;
    bool failed_ = false;
    bool applying_ = false;
};

}  // namespace fopd::store
