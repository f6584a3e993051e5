#include "devices/tape/tape_library_image.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "core/copy_bytes.h"
#include "core/ensure.h"

namespace fopd::devices {

namespace {

bool is_one_byte_again(std::span<const std::byte> bytes) {
    return bytes.size() > 1 && std::memcmp(bytes.data(), bytes.data() + 1, bytes.size() - 1) == 0;
}

}  // namespace

RecordMap CartridgeImage::map() const {
    RecordMap map;
    for (const Record& record : records_) {
        if (record.readable) {
            map.add(record.size_bytes);
        } else {
            map.add_unreadable(record.size_bytes);
        }
    }
    return map;
}

void CartridgeImage::read(std::uint64_t number, std::span<std::byte> into) const {
    const Record& record = records_[number];
    ENSURE(record.readable);
    ENSURE(record.size_bytes == into.size());
    if (record.bytes.size() == into.size()) {
        core::copy_bytes(record.bytes, into);
    } else {
        std::memset(into.data(), std::to_integer<int>(record.bytes.front()), into.size());
    }
}

void CartridgeImage::append(std::span<const std::byte> block) {
    const auto kept = is_one_byte_again(block) ? block.first(1) : block;
    records_.push_back({.size_bytes = static_cast<std::uint32_t>(block.size()),
                        .bytes = std::vector<std::byte>(kept.begin(), kept.end())});
}

void CartridgeImage::append_filemark() {
    records_.push_back({});
}

void CartridgeImage::cut(std::uint64_t number) {
    ENSURE(number <= records_.size());
    if (number < durable_) {
        const auto first = std::next(records_.begin(), static_cast<std::ptrdiff_t>(number));
        const auto last = std::next(records_.begin(), static_cast<std::ptrdiff_t>(durable_));
        overwritten_.insert(overwritten_.begin(), std::make_move_iterator(first),
                            std::make_move_iterator(last));
        durable_ = number;
    }
    records_.resize(number);
}

void CartridgeImage::make_durable() {
    durable_ = records_.size();
    overwritten_.clear();
}

void CartridgeImage::lose_suffix(core::Random& random) {
    cut(durable_ + random.below(records_.size() - durable_ + 1));
}

void CartridgeImage::crash(core::Random& random) {
    constexpr std::uint32_t kHalf = 500'000;
    const std::uint64_t kept = durable_ + random.below(records_.size() - durable_ + 1);
    const bool is_torn = kept < records_.size() && records_[kept].size_bytes > 0;
    Record torn;
    if (is_torn) torn.size_bytes = records_[kept].size_bytes;
    torn.readable = false;
    records_.resize(kept);
    if (kept == durable_ && !overwritten_.empty() && random.chance_ppm(kHalf)) {
        std::ranges::move(overwritten_, std::back_inserter(records_));
    } else if (is_torn && random.chance_ppm(kHalf)) {
        records_.push_back(std::move(torn));
    }
    make_durable();
}

void CartridgeImage::make_unreadable(std::uint64_t number) {
    ENSURE(records_.at(number).size_bytes > 0);
    records_[number].readable = false;
}

CartridgeImage* TapeLibraryImage::at(std::uint32_t address) const {
    const auto found = cartridges_.find(address);
    return found == cartridges_.end() ? nullptr : found->second.get();
}

void TapeLibraryImage::move(std::uint32_t from, std::uint32_t to) {
    ENSURE(has_element(to));
    auto node = cartridges_.extract(from);
    ENSURE(!node.empty());
    node.key() = to;
    const auto inserted = cartridges_.insert(std::move(node));
    ENSURE(inserted.inserted);
}

std::uint32_t TapeLibraryImage::add(CartridgeInfo info) {
    return bring(std::make_unique<CartridgeImage>(std::move(info)));
}

std::uint32_t TapeLibraryImage::bring(std::unique_ptr<CartridgeImage> cartridge) {
    std::uint32_t address = kStorageAddress;
    while (at(address) != nullptr) ++address;
    ENSURE(has_element(address));
    cartridges_.emplace(address, std::move(cartridge));
    return address;
}

std::unique_ptr<CartridgeImage> TapeLibraryImage::take(std::uint32_t address) {
    auto node = cartridges_.extract(address);
    ENSURE(!node.empty());
    return std::move(node.mapped());
}

std::vector<std::uint32_t> TapeLibraryImage::full_elements() const {
    std::vector<std::uint32_t> addresses;
    for (const auto& each : cartridges_) addresses.push_back(each.first);
    return addresses;
}

void TapeLibraryImage::swap(std::uint32_t one, std::uint32_t other) {
    ENSURE(one != other);
    ENSURE(has_element(one) && has_element(other));
    auto first = cartridges_.extract(one);
    auto second = cartridges_.extract(other);
    if (!first.empty()) first.key() = other;
    if (!second.empty()) second.key() = one;
    if (!first.empty()) cartridges_.insert(std::move(first));
    if (!second.empty()) cartridges_.insert(std::move(second));
}

void TapeLibraryImage::remove(std::uint32_t address) {
    ENSURE(cartridges_.erase(address) == 1);
}

void TapeLibraryImage::crash(core::Random& random) {
    for (const auto& [address, cartridge] : cartridges_) cartridge->crash(random);
}

void TapeLibraryImage::settle() {
    for (const auto& [address, cartridge] : cartridges_) cartridge->make_durable();
}

}  // namespace fopd::devices
