#include "daemon/slot_table.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <utility>

#include "core/ensure.h"

namespace fopd::daemon {

namespace {

// Follows the pool's name. Neither name contains a blank.
constexpr std::string_view kDeviceWord = " device=";

// Ends the line.
struct UseWord {
    SlotUse use;
    std::string_view word;
};
constexpr std::array kUseWords{UseWord{SlotUse::kEmpty, " empty"},
                               UseWord{SlotUse::kWrittenOff, " written-off"}};

// The text up to the next `end`, or nothing if `end` does not occur; `rest` continues after it.
std::optional<std::string_view> take_until(std::string_view& rest, char end) {
    const std::size_t size = rest.find(end);
    if (size == std::string_view::npos) return std::nullopt;
    const std::string_view taken = rest.substr(0, size);
    rest.remove_prefix(size + 1);
    return taken;
}

std::optional<SlotEntry> parse_line(std::string_view line) {
    const auto number = take_until(line, ' ');
    const auto disk = take_until(line, ' ');
    if (!number || !disk || line.empty()) return std::nullopt;
    SlotEntry entry;
    for (const UseWord& each : kUseWords) {
        if (!line.ends_with(each.word)) continue;
        entry.use = each.use;
        line.remove_suffix(each.word.size());
        break;
    }
    if (const std::size_t word = line.find(kDeviceWord); word != std::string_view::npos) {
        entry.device = line.substr(word + kDeviceWord.size());
        if (entry.device.empty() || word == 0) return std::nullopt;
        line = line.substr(0, word);
    }
    entry.pool = line;
    const char* const end = number->data() + number->size();
    const auto read = std::from_chars(number->data(), end, entry.slot);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    const auto id = devices::parse_id(*disk);
    if (!id) return std::nullopt;
    entry.disk = *id;
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
        if (!each.device.empty()) text += std::string(kDeviceWord) + each.device;
        const auto use = std::ranges::find(kUseWords, each.use, &UseWord::use);
        if (use != kUseWords.end()) text += use->word;
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
    const auto place = std::ranges::lower_bound(entries_, entry.slot, {}, &SlotEntry::slot);
    entries_.insert(place, std::move(entry));
}

void SlotTable::set_use(store::Slot slot, SlotUse use) {
    const auto found = std::ranges::find(entries_, slot, &SlotEntry::slot);
    ENSURE(found != entries_.end());
    found->use = use;
}

void SlotTable::set_device(store::Slot slot, std::string device) {
    const auto found = std::ranges::find(entries_, slot, &SlotEntry::slot);
    ENSURE(found != entries_.end());
    found->device = std::move(device);
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
