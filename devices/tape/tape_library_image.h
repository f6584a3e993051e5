#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "core/random.h"
#include "devices/tape/cartridge_text.h"
#include "devices/tape/element_address.h"
#include "devices/tape/record_map.h"

namespace fopd::devices {

// A simulated cartridge. Owned by the image of its library. Blocks that have one byte again and
// again take little memory.
class CartridgeImage {
public:
    explicit CartridgeImage(CartridgeInfo info) : info_(std::move(info)) {}

    // May be changed while no drive has it loaded.
    CartridgeInfo& info() { return info_; }
    std::uint64_t count() const { return records_.size(); }
    RecordMap map() const;

    // -- for the drive --

    // REQUIRES: it is a block that can be read, of that size.
    void read(std::uint64_t number, std::span<std::byte> into) const;
    void append(std::span<const std::byte> block);
    void append_filemark();
    // Writing begins at the record with that number: it and all behind it are lost.
    void cut(std::uint64_t number);
    void make_durable();
    // Loses the records that were not durable, from a random one on.
    void lose_suffix(core::Random& random);
    // Moves the end of the tape to this size, as all drives see it.
    void end_at(std::uint64_t size_bytes) { limit_bytes_ = size_bytes; }
    std::uint64_t limit_bytes() const { return limit_bytes_; }

    // -- for the test --

    // Power loss. A random number of the records that are not durable remain, from the first on,
    // and perhaps an unreadable one behind them. If none remains, the records that they had
    // overwritten may be there again.
    void crash(core::Random& random);
    // From now on no drive can load the cartridge.
    void break_leader() { loads_ = false; }
    void mend_leader() { loads_ = true; }
    bool loads() const { return loads_; }
    // Reading the block fails until it is overwritten. REQUIRES: it is a block.
    void make_unreadable(std::uint64_t number);
    std::uint64_t durable_count() const { return durable_; }

private:
    struct Record {
        std::uint32_t size_bytes = 0;  // 0: a filemark.
        bool readable = true;
        std::vector<std::byte> bytes = {};  // One byte if all are equal.
    };

    CartridgeInfo info_;
    std::vector<Record> records_;
    std::uint64_t durable_ =
        0;  // The number of records, from the first, that survive a crash in any case.
    // The durable records that writes have overwritten since the last sync.
    std::vector<Record> overwritten_;
    bool loads_ = true;
    std::uint64_t limit_bytes_ = std::numeric_limits<std::uint64_t>::max();
};

// The cartridges of a simulated library, where they are, and the state of its drives. Owned by the
// test; outlives the machine that uses it. An element is known by its address, as in a
// VirtualLibrary.
class TapeLibraryImage {
public:
    struct Drive {
        bool threaded = false;  // The changer cannot take the cartridge.
        bool dead = false;      // Every operation fails until somebody repairs it.
    };

    explicit TapeLibraryImage(ElementCounts size) : size_(size), drives_(size.drives) {}

    const ElementCounts& size() const { return size_; }
    bool has_element(std::uint32_t address) const { return devices::has_element(size_, address); }
    // Null: the element is empty.
    CartridgeImage* at(std::uint32_t address) const;
    Drive& drive(std::uint32_t index) { return drives_[index]; }
    // REQUIRES: `from` has a cartridge, and `to` is another element and has none.
    void move(std::uint32_t from, std::uint32_t to);

    // -- for the test --

    // Puts a blank cartridge into the first free storage element, and returns its address.
    std::uint32_t add(CartridgeInfo info);
    // People exchange two cartridges, or one and an empty element. REQUIRES: no drive has
    // them.
    void swap(std::uint32_t one, std::uint32_t other);
    // People take a cartridge away, with its data.
    void remove(std::uint32_t address);
    // People take one away and bring it back later, into the first free storage element. REQUIRES:
    // no drive has it.
    std::unique_ptr<CartridgeImage> take(std::uint32_t address);
    std::uint32_t bring(std::unique_ptr<CartridgeImage> cartridge);
    // The addresses of the elements that have cartridges.
    std::vector<std::uint32_t> full_elements() const;
    // Power loss of machine and library: see CartridgeImage. Drives keep their cartridges threaded.
    void crash(core::Random& random);
    // The machine's process has ended; the drives still write the data in their buffers.
    void settle();

private:
    const ElementCounts size_;
    std::vector<Drive> drives_;
    std::map<std::uint32_t, std::unique_ptr<CartridgeImage>> cartridges_;
};

}  // namespace fopd::devices
