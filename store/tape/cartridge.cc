#include "store/tape/cartridge.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/ensure.h"
#include "core/whole_number.h"
#include "store/aligned_memory.h"
#include "store/tape/block_reader.h"

namespace fopd::store {

namespace {

constexpr std::string_view kImplementation = "FOPD ";
constexpr std::size_t kGenerationDigits = 8;
constexpr std::size_t kOwnerCharacters = 14;

// Half of a node's id, which is all that the owner's field has room for.
std::string owner_text(const devices::NodeId& node) {
    std::string text = devices::format_id(node).substr(0, kOwnerCharacters);
    for (char& c : text) {
        if (c >= 'a') c = static_cast<char>(c - 'a' + 'A');
    }
    return text;
}

// Nothing if another program wrote the label.
std::optional<std::uint32_t> generation_of(const VolumeLabel& label) {
    const std::string_view text = label.implementation;
    if (!text.starts_with(kImplementation)) return std::nullopt;
    const std::string_view digits = text.substr(kImplementation.size());
    if (digits.size() != kGenerationDigits) return std::nullopt;
    return core::whole_number<std::uint32_t>(digits);
}

CartridgeKind compare_label(const VolumeLabel& label, std::uint32_t generation,
                            const TapeIdentity& expected) {
    if (label.vsn != expected.vsn) return CartridgeKind::kOtherBarcode;
    if (label.owner != owner_text(expected.node)) return CartridgeKind::kOtherNode;
    if (generation != expected.generation) return CartridgeKind::kOtherGeneration;
    return CartridgeKind::kOurs;
}

Task<Result<void>> write_label(devices::TapeDrive* drive, core::Buffer buffer, TapeLabel label) {
    std::ranges::copy(label, buffer.data);
    buffer.size_bytes = label.size();
    const auto room = co_await drive->write(buffer);
    if (!room) co_return std::unexpected(room.error());
    if (*room == devices::TapeRoom::kFull) {
        co_return std::unexpected(Error{.code = Errc::kNoSpace, .context = "tape without room"});
    }
    co_return Result<void>();
}

}  // namespace

const char* describe_kind(CartridgeKind kind) {
    switch (kind) {
        case CartridgeKind::kOurs: return "the expected cartridge";
        case CartridgeKind::kBlank: return "a blank cartridge";
        case CartridgeKind::kOtherGeneration:
            return "a cartridge that was formatted at another time";
        case CartridgeKind::kOtherNode: return "a cartridge of another node";
        case CartridgeKind::kOtherBarcode: return "a cartridge whose label has another barcode";
        case CartridgeKind::kForeign:
            return "a cartridge of another program, or its label is damaged";
        case CartridgeKind::kUnreadable: return "a cartridge whose label cannot be read";
        case CartridgeKind::kCleaning: return "a cleaning cartridge";
    }
    return "";
}

VolumeLabel volume_label(const TapeIdentity& identity) {
    ENSURE(identity.generation <= kTapeGenerationMax);
    std::string generation = std::to_string(identity.generation);
    generation.insert(0, kGenerationDigits - generation.size(), '0');
    return {.vsn = identity.vsn,
            .access = ' ',
            .implementation = std::string(kImplementation) + generation,
            .owner = owner_text(identity.node)};
}

Task<Result<Inspection>> inspect(devices::TapeDrive* drive, TapeIdentity expected) {
    Inspection found;
    const auto& loaded = drive->loaded();
    ENSURE(loaded.has_value());
    if (loaded->cleaning) {
        found.kind = CartridgeKind::kCleaning;
        co_return found;
    }
    BlockReader reader(*drive);
    const auto allocated = reader.allocate();
    if (!allocated) co_return std::unexpected(allocated.error());
    const auto located = co_await drive->locate(0);
    if (!located) co_return std::unexpected(located.error());
    const auto block = co_await reader.next();
    const bool is_damaged = !block && block.error().code == Errc::kCorrupt;
    if (!block && !is_damaged) co_return std::unexpected(block.error());
    if (block && block->met == devices::TapeMark::kEndOfData) co_return found;

    const bool is_unreadable = is_damaged && !reader.too_large();
    found.kind = is_unreadable ? CartridgeKind::kUnreadable : CartridgeKind::kForeign;
    if (!block || block->met != devices::TapeMark::kBlock) co_return found;
    const auto label = parse_volume_label(block->bytes);
    if (!label) co_return found;
    found.label = *label;
    const auto generation = generation_of(*label);
    if (!generation) co_return found;
    found.generation = *generation;
    found.kind = compare_label(*label, *generation, expected);
    co_return found;
}

CartridgeKind kind_if_expected(const Inspection& found, const TapeIdentity& expected) {
    switch (found.kind) {
        case CartridgeKind::kOurs:
        case CartridgeKind::kOtherGeneration:
        case CartridgeKind::kOtherNode:
        case CartridgeKind::kOtherBarcode:
            return compare_label(*found.label, found.generation, expected);
        case CartridgeKind::kBlank:
        case CartridgeKind::kForeign:
        case CartridgeKind::kUnreadable:
        case CartridgeKind::kCleaning: break;
    }
    return found.kind;
}

Task<Result<void>> require_ours(devices::TapeDrive* drive, TapeIdentity expected) {
    const auto found = co_await inspect(drive, expected);
    if (!found) co_return std::unexpected(found.error());
    if (found->kind != CartridgeKind::kOurs) {
        co_return std::unexpected(
            Error{.code = Errc::kInvalid, .context = describe_kind(found->kind)});
    }
    co_return Result<void>();
}

Task<Result<void>> format(devices::TapeDrive* drive, TapeIdentity identity, TapeSite site,
                          WallTime now) {
    const auto& loaded = drive->loaded();
    ENSURE(loaded.has_value());
    if (loaded->write_protected) {
        co_return std::unexpected(Error{.code = Errc::kDenied, .context = "write-protected tape"});
    }
    if (loaded->cleaning) {
        co_return std::unexpected(Error{.code = Errc::kInvalid, .context = "cleaning cartridge"});
    }
    const auto memory = AlignedMemory::allocate(4096);
    if (!memory) co_return std::unexpected(memory.error());
    const auto located = co_await drive->locate(0);
    if (!located) co_return std::unexpected(located.error());
    const TapeLabel volume = encode_volume_label(volume_label(identity));
    const auto first = co_await write_label(drive, memory->buffer(), volume);
    if (!first) co_return first;
    FileLabels labels;
    labels.vsn = identity.vsn;
    labels.site = std::move(site);
    set_day(labels, now);
    const auto second = co_await write_label(drive, memory->buffer(), encode_prelabel(labels));
    if (!second) co_return second;
    const auto marked = co_await drive->write_filemarks(1, devices::TapeDrive::Marks::kDurable);
    if (!marked) co_return std::unexpected(marked.error());
    if (*marked == devices::TapeRoom::kFull) {
        co_return std::unexpected(Error{.code = Errc::kNoSpace, .context = "tape without room"});
    }
    const auto found = co_await inspect(drive, identity);
    if (!found) co_return std::unexpected(found.error());
    if (found->kind != CartridgeKind::kOurs) {
        co_return std::unexpected(
            Error{.code = Errc::kIo, .context = "the label reads back differently"});
    }
    co_return Result<void>();
}

}  // namespace fopd::store
