#include "store/map_index.h"

#include <iterator>

#include "core/ensure.h"

namespace fopd::store {

MapIndex::MapIndex(World world, MapImage& image) : world_(world), image_(image), reader_(image) {}

Task<Result<void>> MapIndex::apply(Step step) {
    ENSURE(!applying_);
    if (failed_) co_return std::unexpected(Error{.code = Errc::kIo, .context = "index has failed"});
    applying_ = true;
    const Duration before{world_.random.between(0, world_.delay_max.count())};
    const Duration behind{world_.random.between(0, world_.delay_max.count())};
    auto slept = co_await world_.reactor.sleep_for(before);
    if (slept && image_.refusal) {
        slept = std::unexpected(*image_.refusal);
        failed_ = image_.refusal->code != Errc::kNoSpace;
    }
    if (slept && count(step) > image_.changes_max) {
        ++image_.refused_count;
        slept = std::unexpected(Error{.code = Errc::kNoSpace, .context = "too many changes"});
    }
    if (slept) {
        change(step);
        slept = co_await world_.reactor.sleep_for(behind);
    }
    applying_ = false;
    co_return slept;
}

std::size_t MapIndex::count(const Step& step) {
    std::size_t count = 0;
    step.changes->rewind();
    while (step.changes->next()) ++count;
    return count;
}

void MapIndex::change(const Step& step) {
    ENSURE(!reader_.viewing());
    auto& entries = image_.entries;
    step.changes->rewind();
    while (const auto changed = step.changes->next()) {
        if (const auto there = entries.find(as_text(changed->key)); there != entries.end()) {
            image_.size_bytes -= there->first.size() + there->second.size();
            entries.erase(there);
        }
        if (!changed->value) continue;
        entries.emplace(as_text(changed->key), as_text(*changed->value));
        image_.size_bytes += changed->key.size() + changed->value->size();
    }
    image_.applied = step.applied;
}

IndexFigures MapIndex::figures() const {
    return {.entry_count = image_.entries.size(), .size_bytes = image_.size_bytes};
}

// Runs at once, on the same thread: nothing waits for it in the simulated world.
Task<Result<void>> MapIndex::show_all(IndexShow* show) {
    const auto begun = show->begin(image_.applied);
    if (!begun) co_return begun;
    for (const auto& [key, value] : image_.entries) {
        const IndexEntry entry{.key = std::as_bytes(std::span(key)),
                               .value = std::as_bytes(std::span(value))};
        const auto shown = show->entry(entry);
        if (!shown) co_return shown;
    }
    co_return Result<void>{};
}

Result<std::optional<IndexEntry>> MapIndex::Reader::at_or_after(Bytes key) {
    return stand_on(entries_.lower_bound(as_text(key)));
}

Result<std::optional<IndexEntry>> MapIndex::Reader::at_or_before(Bytes key) {
    const auto above = entries_.upper_bound(as_text(key));
    return stand_on(above == entries_.begin() ? entries_.end() : std::prev(above));
}

Result<std::optional<IndexEntry>> MapIndex::Reader::next() {
    ENSURE(at_.has_value());
    return stand_on(std::next(*at_));
}

Result<std::optional<IndexEntry>> MapIndex::Reader::previous() {
    ENSURE(at_.has_value());
    return stand_on(*at_ == entries_.begin() ? entries_.end() : std::prev(*at_));
}

std::optional<IndexEntry> MapIndex::Reader::stand_on(Entries::const_iterator to) {
    viewing_ = true;
    at_.reset();
    if (to == entries_.end()) return std::nullopt;
    at_ = to;
    return IndexEntry{.key = std::as_bytes(std::span(to->first)),
                      .value = std::as_bytes(std::span(to->second))};
}

}  // namespace fopd::store
