#include "library/cartridge.h"

#include <algorithm>

#include "core/ensure.h"

namespace fopd::library {

store::VsnText Cartridge::vsn_text() const {
    store::VsnText text{};
    ENSURE(barcode.size() >= text.size());
    std::copy_n(barcode.begin(), text.size(), text.begin());
    return text;
}

void Cartridge::begin_generation(std::uint32_t number, std::string_view of_pool) {
    generation = number;
    vsn = store::text_of(vsn_text());
    pool = of_pool;
    files = 0;
    end_block = 1;
    index_file = 0;
    index_block = 0;
    used_bytes = 0;
}

}  // namespace fopd::library
