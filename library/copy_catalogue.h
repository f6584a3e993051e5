#pragma once

#include <cstdint>
#include <memory>

#include "library/cartridge.h"
#include "library/drive_unit.h"
#include "library/home_doors.h"
#include "store/tape/tape_index.h"

namespace fopd::library {

// Lists the live copies on a cartridge for its index file, from the staging disks of all
// localities. Has one page of copies in memory at a time.
class CopyCatalogue final : public TapeCatalogue {
public:
    // Outlives it.
    explicit CopyCatalogue(HomeDoors& homes) : homes_(homes) {}

    std::unique_ptr<store::TapeEntrySource> copies_on(const Cartridge& cartridge,
                                                      std::uint64_t first_file) override;
    Task<Result<std::uint32_t>> newest_generation(store::VsnText vsn) override;

private:
    class Source;

    HomeDoors& homes_;
};

}  // namespace fopd::library
