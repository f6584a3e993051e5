#include "library/media_table.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <span>
#include <utility>

#include "core/crc32c.h"
#include "core/ensure.h"
#include "core/percent_text.h"
#include "core/whole_number.h"

namespace fopd::library {

namespace {

constexpr std::string_view kTitle = "fopd-media ";
constexpr std::string_view kVersion = "1";
constexpr std::size_t kBarcodeBytesMin = 6;
constexpr std::string_view kPending = "pending";
constexpr std::size_t kDrivesMax = 4096;
constexpr std::size_t kBarcodeBytesMax = 32;

std::uint32_t checksum(std::string_view text) {
    return core::crc32c(std::as_bytes(std::span(text.data(), text.size())));
}

std::string hex(std::uint32_t number) {
    std::array<char, 9> text{};
    std::snprintf(text.data(), text.size(), "%08x", number);
    return text.data();
}

// The words of a line, taken from its front. Remembers whether one was wrong.
class Words {
public:
    explicit Words(std::string_view line) : rest_(line) {}

    std::string_view next() {
        const std::size_t size = std::min(rest_.find(' '), rest_.size());
        const std::string_view word = rest_.substr(0, size);
        if (word.empty()) good_ = false;
        rest_.remove_prefix(size);
        // A blank at the end would be a further, empty word.
        if (rest_.size() == 1) good_ = false;
        if (!rest_.empty()) rest_.remove_prefix(1);
        return word;
    }
    void expect(std::string_view word) { good_ = good_ && next() == word; }

    // The text of "key=text".
    std::string_view value(std::string_view key) {
        const std::string_view word = next();
        if (word.size() <= key.size() || !word.starts_with(key) || word[key.size()] != '=') {
            good_ = false;
            return {};
        }
        return word.substr(key.size() + 1);
    }
    // Accepts only the encoding that text() writes, so that a table has exactly one text.
    void read(std::string_view key, std::string& into) {
        const std::string_view word = value(key);
        auto text = core::percent_decoded(word);
        if (!text || core::percent_encoded(*text) != word) good_ = false;
        into = std::move(text).value_or("");
    }
    template <typename Number>
    void number(std::string_view text, Number& into) {
        const auto number = core::whole_number<Number>(text);
        if (!number || std::to_string(*number) != text) good_ = false;
        into = number.value_or(0);
    }
    template <typename Number>
    void read(std::string_view key, Number& into) {
        number(value(key), into);
    }
    void fail() { good_ = false; }
    // A number that is left out of the text if it is 0.
    template <typename Number>
    void read_if_there(std::string_view key, Number& into) {
        if (!has(key)) return;
        read(key, into);
        if (into == 0) good_ = false;
    }
    // Whether the next word has this key.
    bool has(std::string_view key) const {
        return rest_.size() > key.size() && rest_.starts_with(key) && rest_[key.size()] == '=';
    }
    bool ended() const { return good_ && rest_.empty(); }

private:
    std::string_view rest_;
    bool good_ = true;
};

std::string line_of(const Cartridge& each) {
    const auto text = [](std::string_view key, std::string_view value) {
        return " " + std::string(key) + "=" + core::percent_encoded(value);
    };
    const auto number = [](std::string_view key, std::uint64_t value) {
        return " " + std::string(key) + "=" + std::to_string(value);
    };
    return "cartridge " + std::to_string(each.id) + " " + each.barcode +
           text("state", to_string(each.state)) + text("vsn", each.vsn) + text("pool", each.pool) +
           text("technology", each.technology) + text("serial", each.serial) +
           number("generation", each.generation) + number("capacity", each.capacity_bytes) +
           number("files", each.files) + number("end", each.end_block) +
           number("index-file", each.index_file) + number("index-block", each.index_block) +
           number("used", each.used_bytes) + number("mounts", each.mounts) +
           number("failures", each.failures) + text("reason", each.reason) +
           (each.collection.empty() ? "" : text("collection", each.collection)) +
           (each.number_on_tape ? number("number-on-tape", *each.number_on_tape) : "") +
           (each.state_before ? text("before", to_string(*each.state_before)) +
                                    text("before-reason", each.reason_before)
                              : "") +
           (each.is_label_pending ? text("label", kPending) : "") +
           (each.repack == Repack::kNone ? "" : text("repack", to_string(each.repack))) +
           (each.node_on_tape ? text("node-on-tape", devices::format_id(*each.node_on_tape)) : "") +
           (each.rescue == Rescue::kNone ? "" : text("rescue", to_string(each.rescue))) +
           (each.scrub_file == 0 ? "" : number("scrub", each.scrub_file)) +
           (each.scrub_member == 0 ? "" : number("scrub-member", each.scrub_member)) +
           (each.scrubbed_s == 0 ? "" : number("scrubbed", each.scrubbed_s)) +
           (each.damaged_copies == 0 ? "" : number("damaged", each.damaged_copies)) + "\n";
}

// Whether a cartridge that was away has this state again when it is back.
bool is_kept(CartridgeState state) {
    return state == CartridgeState::kFull || state == CartridgeState::kReadOnly ||
           state == CartridgeState::kSuspect || state == CartridgeState::kFailed;
}

// Whether the reason of a state still holds after the cartridge was away. A cartridge that did not
// load is tried again: people may have repaired it.
bool stays_while_away(const Cartridge& cartridge) {
    const bool may_load = cartridge.state == CartridgeState::kFailed &&
                          std::string_view(cartridge.reason).starts_with(kDoesNotLoad);
    return is_kept(cartridge.state) && !may_load;
}

std::optional<Cartridge> parse_line(std::string_view line) {
    Words words(line);
    Cartridge each;
    words.expect("cartridge");
    words.number(words.next(), each.id);
    each.barcode = words.next();
    const auto state = parse_cartridge_state(words.value("state"));
    if (!state || !is_barcode(each.barcode) || each.id == 0) words.fail();
    each.state = state.value_or(CartridgeState::kBlank);
    words.read("vsn", each.vsn);
    words.read("pool", each.pool);
    words.read("technology", each.technology);
    words.read("serial", each.serial);
    words.read("generation", each.generation);
    words.read("capacity", each.capacity_bytes);
    words.read("files", each.files);
    words.read("end", each.end_block);
    words.read("index-file", each.index_file);
    words.read("index-block", each.index_block);
    words.read("used", each.used_bytes);
    words.read("mounts", each.mounts);
    words.read("failures", each.failures);
    words.read("reason", each.reason);
    if (words.has("collection")) {
        words.read("collection", each.collection);
        if (each.collection.empty()) words.fail();
    }
    if (words.has("number-on-tape")) {
        words.read("number-on-tape", each.number_on_tape.emplace());
        if (each.number_on_tape == each.id) words.fail();
    }
    if (words.has("before")) {
        each.state_before = parse_cartridge_state(words.value("before"));
        words.read("before-reason", each.reason_before);
        if (!each.state_before || !is_away(each.state) || !is_kept(*each.state_before))
            words.fail();
    }
    if (words.has("label")) {
        each.is_label_pending = words.value("label") == kPending;
        if (!each.is_label_pending) words.fail();
    }
    if (words.has("repack")) {
        const auto repack = parse_repack(words.value("repack"));
        if (!repack || *repack == Repack::kNone) words.fail();
        each.repack = repack.value_or(Repack::kNone);
    }
    if (words.has("node-on-tape")) {
        const std::string_view text = words.value("node-on-tape");
        each.node_on_tape = devices::parse_id(text);
        if (!each.node_on_tape || devices::format_id(*each.node_on_tape) != text) words.fail();
    }
    if (words.has("rescue")) {
        const auto rescue = parse_rescue(words.value("rescue"));
        if (!rescue || *rescue == Rescue::kNone) words.fail();
        each.rescue = rescue.value_or(Rescue::kNone);
    }
    words.read_if_there("scrub", each.scrub_file);
    words.read_if_there("scrub-member", each.scrub_member);
    words.read_if_there("scrubbed", each.scrubbed_s);
    words.read_if_there("damaged", each.damaged_copies);
    const std::size_t reason_bytes = std::max(each.reason.size(), each.reason_before.size());
    if (!words.ended() || reason_bytes > MediaTable::kReasonBytesMax) return std::nullopt;
    return each;
}

std::optional<std::string> parse_drive_line(std::string_view line) {
    Words words(line);
    std::string serial;
    words.expect("drive-down");
    words.read("serial", serial);
    if (!words.ended() || serial.empty()) return std::nullopt;
    return serial;
}

Error damaged() {
    return {.code = Errc::kCorrupt, .context = "the table of media is damaged"};
}

// Takes the next line, without its end.
std::optional<std::string_view> take_line(std::string_view& rest) {
    const std::size_t size = rest.find('\n');
    if (size == rest.npos) return std::nullopt;
    const std::string_view line = rest.substr(0, size);
    rest.remove_prefix(size + 1);
    return line;
}

}  // namespace

std::optional<CartridgeState> parse_cartridge_state(std::string_view name) {
    const auto found = std::ranges::find(kCartridgeStateNames, name);
    if (found == kCartridgeStateNames.end()) return std::nullopt;
    return static_cast<CartridgeState>(found - kCartridgeStateNames.begin());
}

std::optional<Repack> parse_repack(std::string_view name) {
    const auto found = std::ranges::find(kRepackNames, name);
    if (found == kRepackNames.end()) return std::nullopt;
    return static_cast<Repack>(found - kRepackNames.begin());
}

std::optional<Rescue> parse_rescue(std::string_view name) {
    const auto found = std::ranges::find(kRescueNames, name);
    if (found == kRescueNames.end()) return std::nullopt;
    return static_cast<Rescue>(found - kRescueNames.begin());
}

bool is_barcode(std::string_view text) {
    if (text.size() < kBarcodeBytesMin || text.size() > kBarcodeBytesMax) return false;
    return std::ranges::all_of(
        text, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); });
}

std::string MediaTable::text() const {
    std::string text = std::string(kTitle) + std::string(kVersion) + "\n";
    text += "next " + std::to_string(next_) + "\n";
    for (const std::string& each : drives_down_) {
        text += "drive-down serial=" + core::percent_encoded(each) + "\n";
    }
    for (const Cartridge& each : cartridges_) text += line_of(each);
    return text + "end " + hex(checksum(text)) + "\n";
}

Result<MediaTable> MediaTable::parse(std::string_view text) {
    std::string_view rest = text;
    const auto title = take_line(rest);
    if (!title || !title->starts_with(kTitle)) return std::unexpected(damaged());
    if (title->substr(kTitle.size()) != kVersion) {
        return std::unexpected(Error{.code = Errc::kUnsupported,
                                     .context = "the table of media is of a later version"});
    }
    MediaTable table;
    const auto next = take_line(rest);
    Words next_words(next.value_or(""));
    next_words.expect("next");
    next_words.number(next_words.next(), table.next_);
    if (!next_words.ended()) return std::unexpected(damaged());
    for (;;) {
        const std::string_view before = text.substr(0, text.size() - rest.size());
        const auto line = take_line(rest);
        if (!line) return std::unexpected(damaged());
        if (line->starts_with("end ")) {
            if (!rest.empty() || line->substr(4) != hex(checksum(before))) break;
            return table;
        }
        if (line->starts_with("drive-down ")) {
            const auto serial = parse_drive_line(*line);
            const bool is_in_order =
                serial && table.cartridges_.empty() &&
                (table.drives_down_.empty() || *table.drives_down_.rbegin() < *serial) &&
                table.drives_down_.size() < kDrivesMax;
            if (!is_in_order) break;
            table.drives_down_.insert(*serial);
            continue;
        }
        auto each = parse_line(*line);
        if (!each || each->id >= table.next_ || table.find(each->barcode) != nullptr) break;
        if (!table.cartridges_.empty() && each->id <= table.cartridges_.back().id) break;
        if (table.cartridges_.size() == kCartridgesMax) break;
        table.cartridges_.push_back(*std::move(each));
    }
    return std::unexpected(damaged());
}

const Cartridge* MediaTable::find(CartridgeId id) const {
    const auto found = std::ranges::lower_bound(cartridges_, id, {}, &Cartridge::id);
    return found == cartridges_.end() || found->id != id ? nullptr : &*found;
}

const Cartridge* MediaTable::find(std::string_view barcode) const {
    const auto found = std::ranges::find(cartridges_, barcode, &Cartridge::barcode);
    return found == cartridges_.end() ? nullptr : &*found;
}

Cartridge* MediaTable::add(std::string_view barcode) {
    ENSURE(is_barcode(barcode));
    ENSURE(find(barcode) == nullptr);
    if (cartridges_.size() == kCartridgesMax) return nullptr;
    cartridges_.push_back({.id = next_, .barcode = std::string(barcode)});
    ++next_;
    return &cartridges_.back();
}

Cartridge* MediaTable::change(CartridgeId id) {
    const auto found = std::ranges::lower_bound(cartridges_, id, {}, &Cartridge::id);
    return found == cartridges_.end() || found->id != id ? nullptr : &*found;
}

void MediaTable::set_state(CartridgeId id, CartridgeState state, std::string_view reason) {
    Cartridge* const cartridge = change(id);
    ENSURE(cartridge != nullptr);
    if (!is_away(state)) {
        cartridge->state_before.reset();
        cartridge->reason_before.clear();
    } else if (stays_while_away(*cartridge)) {
        cartridge->state_before = cartridge->state;
        cartridge->reason_before = std::move(cartridge->reason);
    }
    cartridge->state = state;
    cartridge->reason = reason.substr(0, kReasonBytesMax);
}

void MediaTable::set_drive_down(std::string_view serial, bool is_down) {
    const auto found = drives_down_.find(serial);
    if (is_down == (found != drives_down_.end())) return;
    if (is_down) {
        drives_down_.emplace(serial);
    } else {
        drives_down_.erase(found);
    }
}

void MediaTable::forget(CartridgeId id) {
    const auto erased =
        std::erase_if(cartridges_, [id](const auto& each) { return each.id == id; });
    ENSURE(erased == 1);
}

}  // namespace fopd::library
