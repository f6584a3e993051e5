#include "library/copy_catalogue.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

namespace fopd::library {

class CopyCatalogue::Source final : public store::TapeEntrySource {
public:
    Source(HomeDoors& homes, const Cartridge& cartridge, std::uint64_t first_file)
        : homes_(homes), cartridge_(cartridge) {
        start_.on = {.vsn = cartridge.vsn_text(), .generation = cartridge.generation};
        start_.first = {.file = static_cast<std::uint32_t>(first_file)};
        cursor_ = start_;
    }

    Task<Result<std::optional<store::TapeEntry>>> next() override {
        while (at_ == page_.size()) {
            if (locality_ == homes_.count()) co_return std::nullopt;
            auto job = [this](StagingDisks& disks) { return disks.list_copies(cursor_); };
            auto page = co_await homes_.call_at<std::vector<store::TapeEntry>>(locality_, &job);
            if (!page) co_return std::unexpected(page.error());
            page_ = *std::move(page);
            at_ = 0;
            if (!page_.empty()) continue;
            ++locality_;
            cursor_ = start_;
        }
        store::TapeEntry entry = std::move(page_[at_++]);
        entry.file.file_id = DriveUnit::file_id(cartridge_, entry.file.number);
        co_return entry;
    }

private:
    HomeDoors& homes_;
    const Cartridge cartridge_;
    std::uint32_t locality_ = 0;
    StagingDisks::CopyCursor start_;
    StagingDisks::CopyCursor cursor_;
    std::vector<store::TapeEntry> page_;
    std::size_t at_ = 0;
};

std::unique_ptr<store::TapeEntrySource> CopyCatalogue::copies_on(const Cartridge& cartridge,
                                                                 std::uint64_t first_file) {
    return std::make_unique<Source>(homes_, cartridge, first_file);
}

Task<Result<std::uint32_t>> CopyCatalogue::newest_generation(store::VsnText vsn) {
    std::uint32_t newest = 0;
    for (std::uint32_t locality = 0; locality < homes_.count(); ++locality) {
        auto job = [vsn](StagingDisks& disks) { return disks.newest_generation(vsn); };
        const auto of_locality = co_await homes_.call_at<std::uint32_t>(locality, &job);
        if (!of_locality) co_return std::unexpected(of_locality.error());
        newest = std::max(newest, *of_locality);
    }
    co_return newest;
}

}  // namespace fopd::library
