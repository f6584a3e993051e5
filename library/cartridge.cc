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

std::string_view Cartridge::remark() const {
    if (!reason.empty()) return reason;
    switch (repack) {
        case Repack::kNone: return {};
        case Repack::kRunning: return "a repack is moving its copies to other cartridges";
        case Repack::kPartly: return "it was repacked, but some copies could not be moved";
        case Repack::kDone: return "it was repacked: no object has copies on it";
    }
    return {};
}

void Cartridge::begin_generation(std::uint32_t number, std::string_view of_pool) {
    generation = number;
    vsn = store::text_of(vsn_text());
    pool = of_pool;
    files = 0;
    end_block = 1;
    index_file = 0;
    index_block = 0;
    collection.clear();
    number_on_tape.reset();
    is_label_pending = false;
    state_before.reset();
    reason_before.clear();
    repack = Repack::kNone;
    node_on_tape.reset();
    rescue = Rescue::kNone;
    scrub_file = 0;
    scrub_member = 0;
    scrubbed_s = 0;
    damaged_copies = 0;
    used_bytes = 0;
}

const Cartridge* find_cartridge(std::span<const Cartridge> all, const store::Cartridge& copied_to) {
    const auto found = std::ranges::find_if(all, [&copied_to](const Cartridge& each) {
        return each.generation == copied_to.generation && each.vsn == store::text_of(copied_to.vsn);
    });
    return found == all.end() ? nullptr : &*found;
}

}  // namespace fopd::library
