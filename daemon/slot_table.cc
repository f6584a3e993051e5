#include "daemon/slot_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/ensure.h"
#include "core/percent_text.h"
#include "core/whole_number.h"

namespace fopd::daemon {

namespace {

struct UseWord {
    SlotUse use;
    std::string_view word;
};
constexpr std::array kUseWords{UseWord{SlotUse::kEmpty, "empty"},
                               UseWord{SlotUse::kWrittenOff, "written-off"}};

// The text up to the next `end`, or nothing if `end` does not occur; `rest` continues after it.
std::optional<std::string_view> take_until(std::string_view& rest, char end) {
    const std::size_t size = rest.find(end);
    if (size == std::string_view::npos) return std::nullopt;
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size + 1);
    return taken;
}

// One word behind the pool. False if it is damaged. A word that a later version writes is ignored.
bool read_word(std::string_view word, SlotEntry& entry) {
    const auto use = std::ranges::find(kUseWords, word, &UseWord::word);
    if (use != kUseWords.end()) {
        entry.use = use->use;
        return true;
    }
    const auto key = take_until(word, '=');
    if (!key || key->empty() || word.empty()) return false;
    if (*key == "device") entry.device = word;
    if (*key == "scrubbed") return core::read_number(word, entry.scrubbed_at_s);
    if (*key == "damaged") return core::read_number(word, entry.damaged_blocks);
    if (*key != "path") return true;
    auto path = core::percent_decoded(word);
    if (path) entry.path = *std::move(path);
    return path.has_value();
}

std::optional<SlotEntry> parse_line(std::string_view line) {
    const auto number = take_until(line, ' ');
    const auto disk = take_until(line, ' ');
    if (!number || !disk) return std::nullopt;
    const auto id = devices::parse_id(*disk);
    SlotEntry entry;
    if (!id || !core::read_number(*number, entry.slot)) return std::nullopt;
    entry.disk = *id;
    const auto pool = take_until(line, ' ');
    entry.pool = pool.value_or(line);
    if (entry.pool.empty()) return std::nullopt;
    bool has_more = pool.has_value();
    while (has_more) {
        const auto word = take_until(line, ' ');
        has_more = word.has_value();
        if (!read_word(word.value_or(line), entry)) return std::nullopt;
    }
    return entry;
}

}  // namespace

std::optional<SlotTable> SlotTable::parse(std::string_view text) {
    SlotTable table;
    while (!text.empty()) {
        const auto line = take_until(text, '\n');
        if (!line) return std::nullopt;
        auto entry = parse_line(*line);
        if (!entry || table.find(entry->slot) != nullptr || table.find(entry->disk) != nullptr) {
            return std::nullopt;
        }
        table.add(*std::move(entry));
    }
    return table;
}

std::string SlotTable::text() const {
    std::string text;
    for (const SlotEntry& each : entries_) {
        text += std::to_string(each.slot) + ' ' + devices::format_id(each.disk) + ' ' + each.pool;
        if (!each.device.empty()) text += " device=" + each.device;
        if (!each.path.empty()) text += " path=" + core::percent_encoded(each.path);
        if (each.scrubbed_at_s != 0) text += " scrubbed=" + std::to_string(each.scrubbed_at_s);
        if (each.damaged_blocks != 0) text += " damaged=" + std::to_string(each.damaged_blocks);
        const auto use = std::ranges::find(kUseWords, each.use, &UseWord::use);
        if (use != kUseWords.end()) text += ' ' + std::string(use->word);
        text += '\n';
    }
    return text;
}

const SlotEntry* SlotTable::find(store::Slot slot) const {
    const auto found = std::ranges::find(entries_, slot, &SlotEntry::slot);
    return found == entries_.end() ? nullptr : &*found;
}

const SlotEntry* SlotTable::find(const devices::DiskId& disk) const {
    const auto found = std::ranges::find(entries_, disk, &SlotEntry::disk);
    return found == entries_.end() ? nullptr : &*found;
}

void SlotTable::add(SlotEntry entry) {
    ENSURE(find(entry.slot) == nullptr);
    ENSURE(find(entry.disk) == nullptr);
    const auto at = std::ranges::lower_bound(entries_, entry.slot, {}, &SlotEntry::slot);
    entries_.insert(at, std::move(entry));
}

void SlotTable::set_use(store::Slot slot, SlotUse use) {
    const auto found = std::ranges::find(entries_, slot, &SlotEntry::slot);
    ENSURE(found != entries_.end());
    found->use = use;
}

void SlotTable::set_device(store::Slot slot, std::string device, std::string path) {
    const auto found = std::ranges::find(entries_, slot, &SlotEntry::slot);
    ENSURE(found != entries_.end());
    found->device = std::move(device);
    found->path = std::move(path);
}

void SlotTable::set_damage(store::Slot slot, std::int64_t scrubbed_at_s,
                           std::uint64_t damaged_blocks) {
    const auto found = std::ranges::find(entries_, slot, &SlotEntry::slot);
    ENSURE(found != entries_.end());
    found->scrubbed_at_s = scrubbed_at_s;
    found->damaged_blocks = damaged_blocks;
}

std::optional<store::Slot> SlotTable::unused() const {
    if (entries_.empty()) return kFirst;
    const store::Slot last = entries_.back().slot;
    if (last < std::numeric_limits<store::Slot>::max()) return static_cast<store::Slot>(last + 1);
    for (store::Slot slot = kFirst; slot < last; ++slot) {
        if (find(slot) == nullptr) return slot;
    }
    return std::nullopt;
}

}  // namespace fopd::daemon
