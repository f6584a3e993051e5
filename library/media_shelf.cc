#include "library/media_shelf.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "core/random.h"
#include "devices/tape/drive_model.h"
#include "objects/object_name.h"

namespace fopd::library {

namespace {

io_sched::MediumUse use_of(const Cartridge& cartridge, bool promised) {
    switch (cartridge.state) {
        case CartridgeState::kBlank:
            return promised && cartridge.rescue != Rescue::kRunning ? io_sched::MediumUse::kAll
                                                                    : io_sched::MediumUse::kRead;
        case CartridgeState::kOk:
            return cartridge.repack == Repack::kNone && cartridge.rescue != Rescue::kRunning
                       ? io_sched::MediumUse::kAll
                       : io_sched::MediumUse::kRead;
        case CartridgeState::kFull:
        case CartridgeState::kReadOnly:
        case CartridgeState::kSuspect:
        case CartridgeState::kForeign:
        // Copies on a failed cartridge are not read, but a format may use it.
        case CartridgeState::kFailed: return io_sched::MediumUse::kRead;
        case CartridgeState::kMissing:
        case CartridgeState::kExported:
        case CartridgeState::kDisabled: return io_sched::MediumUse::kNone;
    }
    ENSURE(false);
    return io_sched::MediumUse::kNone;
}

}  // namespace

MediaShelf::~MediaShelf() {
    for (const auto& [id, state] : counted_) {
        core::Counter& count = parts_.figures.media(state);
        count.set(count.get() - 1);
    }
}

Task<Result<void>> MediaShelf::load() {
    const auto text = co_await parts_.bay.read_media(&parts_.reactor);
    if (!text && text.error().code == Errc::kNotFound) co_return Result<void>{};
    if (!text) co_return std::unexpected(text.error());
    auto table = MediaTable::parse(*text);
    if (!table) co_return std::unexpected(table.error());
    table_ = *std::move(table);
    for (const Cartridge& each : table_.all()) show(each.id);
    co_return Result<void>{};
}

void MediaShelf::set_state(CartridgeId id, CartridgeState state, std::string_view reason) {
    const Cartridge* const before = table_.find(id);
    ENSURE(before != nullptr);
    const bool changes = before->state != state;
    table_.set_state(id, state, reason);
    if (state != CartridgeState::kBlank) promised_.erase(id);
    show(id);
    if (!changes) return;
    ++changes_;
    if (parts_.bell != nullptr) parts_.bell->ring();
    const std::string barcode = before->barcode;
    const bool is_bad = state != CartridgeState::kOk && state != CartridgeState::kBlank &&
                        state != CartridgeState::kFull && state != CartridgeState::kExported;
    core::emit(
        parts_.events, is_bad ? core::Level::kWarn : core::Level::kInfo, "library.medium_state",
        {{"medium", std::string_view(barcode)}, {"state", to_string(state)}, {"reason", reason}});
}

void MediaShelf::set_found(CartridgeId id) {
    const Cartridge found = *table_.find(id);
    if (found.state_before) return set_state(id, *found.state_before, found.reason_before);
    const bool is_labelled = found.generation > 0 && !found.is_label_pending;
    set_state(id, is_labelled ? CartridgeState::kOk : CartridgeState::kBlank, "");
}

Cartridge& MediaShelf::begin_generation(CartridgeId id, std::uint32_t number,
                                        std::string_view pool) {
    Cartridge* const cartridge = table_.change(id);
    ENSURE(cartridge != nullptr);
    cartridge->begin_generation(number, pool);
    ++changes_;
    if (parts_.bell != nullptr) parts_.bell->ring();
    return *cartridge;
}

void MediaShelf::note_label(CartridgeId id) {
    table_.change(id)->is_label_pending = false;
}

void MediaShelf::note_unsupported(CartridgeId id, std::string_view technology) {
    unsupported_[id].emplace(technology);
    // The technology of a cartridge that was loaded once is certain.
    const bool is_known = !table_.find(id)->technology.empty();
    const bool may_fit = std::ranges::any_of(parts_.technologies, [&](std::string_view each) {
        return !unsupported_[id].contains(each);
    });
    if (is_known || !may_fit) {
        set_state(id, CartridgeState::kFailed, "no drive can read cartridges of this generation");
    } else {
        show(id);
    }
}

// The technology of a cartridge. If it was never loaded, this is a guess: the barcode names it, or
// it is that of a drive that has not refused the cartridge.
std::string_view MediaShelf::technology_of(const Cartridge& cartridge) const {
    const devices::DriveModel* model = devices::find_drive_model(cartridge.technology);
    if (model != nullptr) return model->technology;
    const auto refused = unsupported_.find(cartridge.id);
    if (refused == unsupported_.end()) {
        model = devices::model_of_barcode(cartridge.barcode);
        const bool fits = model != nullptr &&
                          std::ranges::any_of(parts_.technologies, [&](std::string_view each) {
                              return devices::can_read(each, model->technology);
                          });
        return fits ? model->technology : parts_.technologies.front();
    }
    const auto other = std::ranges::find_if(parts_.technologies, [&](std::string_view each) {
        return !refused->second.contains(each);
    });
    return other == parts_.technologies.end() ? parts_.technologies.front() : *other;
}

void MediaShelf::set_repack(CartridgeId id, Repack repack) {
    Cartridge* const cartridge = table_.change(id);
    ENSURE(cartridge != nullptr);
    if (cartridge->repack == repack) return;
    cartridge->repack = repack;
    show(id);
    ++changes_;
    if (parts_.bell != nullptr) parts_.bell->ring();
}

void MediaShelf::move_end(CartridgeId id, const store::TapeEnd& end, std::uint64_t more_bytes) {
    Cartridge* const cartridge = table_.change(id);
    ENSURE(cartridge != nullptr);
    cartridge->files = end.files;
    cartridge->end_block = end.block;
    cartridge->index_file = end.index.file;
    cartridge->index_block = end.index.block;
    cartridge->used_bytes += more_bytes;
    show(id);
}

void MediaShelf::note_number(CartridgeId id, CartridgeId number) {
    Cartridge* const cartridge = table_.change(id);
    ENSURE(cartridge != nullptr);
    cartridge->number_on_tape.reset();
    if (number != id) cartridge->number_on_tape = number;
}

void MediaShelf::note_collection(CartridgeId id, std::string_view collection) {
    Cartridge* const cartridge = table_.change(id);
    ENSURE(cartridge != nullptr);
    cartridge->collection = collection;
    show(id);
}

std::uint64_t MediaShelf::collection_number(std::string_view collection) {
    std::uint64_t number = 0;
    for (const char each : collection) number = core::mix(number, static_cast<unsigned char>(each));
    return collection.empty() ? 0 : std::max<std::uint64_t>(number, 1);
}

Task<Result<void>> MediaShelf::save() {
    const std::uint64_t mine = ++wanted_;
    while (saved_ < mine) {
        if (saving_) {
            // No deadline: the write in progress ends.
            [[maybe_unused]] const auto woken = co_await saved_now_.wait({});
            continue;
        }
        saving_ = true;
        const std::uint64_t covers = wanted_;
        std::string text = table_.text();
        const auto written = co_await parts_.bay.write_media(&parts_.reactor, std::move(text));
        saving_ = false;
        saved_now_.wake_all();
        if (!written) {
            const std::string reason = describe(written.error());
            core::emit(parts_.events, core::Level::kError, "library.media_not_saved",
                       {{"reason", std::string_view(reason)}});
            co_return written;
        }
        saved_ = std::max(saved_, covers);
    }
    co_return Result<void>{};
}

std::uint64_t MediaShelf::free_bytes(std::uint64_t capacity_bytes, std::uint64_t used_bytes) {
    const std::uint64_t reserve = devices::early_warning_bytes(capacity_bytes) + used_bytes;
    return capacity_bytes > reserve ? capacity_bytes - reserve : 0;
}

void MediaShelf::promise(CartridgeId id, std::uint32_t pool) {
    promised_[id] = pool;
    show(id);
}

void MediaShelf::withdraw(CartridgeId id) {
    promised_.erase(id);
    show(id);
}

void MediaShelf::count(CartridgeId id, std::optional<CartridgeState> state) {
    const auto known = counted_.find(id);
    if (known != counted_.end()) {
        if (known->second == state) return;
        core::Counter& before = parts_.figures.media(known->second);
        before.set(before.get() - 1);
        counted_.erase(known);
    }
    if (!state) return;
    counted_.emplace(id, *state);
    parts_.figures.media(*state).add(1);
}

void MediaShelf::show(CartridgeId id) {
    const Cartridge* const cartridge = table_.find(id);
    const io_sched::MediumId medium{id};
    if (cartridge == nullptr) {
        count(id, std::nullopt);
        parts_.io.remove_medium(medium);
        return;
    }
    count(id, cartridge->state);
    const auto promised = promised_.find(id);
    const bool is_promised = promised != promised_.end();
    const std::string_view technology = technology_of(*cartridge);
    const devices::DriveModel* const model = devices::find_drive_model(technology);
    // The capacity of a new cartridge is known after its first load; until then, that of its
    // technology is used.
    const std::uint64_t capacity = cartridge->capacity_bytes != 0 || model == nullptr
                                       ? cartridge->capacity_bytes
                                       : model->capacity_bytes;
    parts_.io.put_medium(
        {.id = medium,
         .technology = technology,
         .pool = is_promised ? promised->second : objects::pool_id(cartridge->pool),
         .use = use_of(*cartridge, is_promised),
         .capacity_bytes = capacity,
         .free_bytes = free_bytes(capacity, cartridge->used_bytes),
         .collection = collection_number(cartridge->collection)});
}

}  // namespace fopd::library
