// Whatever is on a cartridge: a recovery ends, finds copies in complete files only, and the
// cartridge can then be written to at the position that it gives.
//
//     build/fuzz/bin/fuzz_tape_image -max_len=40000 tests/fuzz/corpus/tape_image
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/byte_order.h"
#include "core/ensure.h"
#include "core/virtual_world.h"
#include "devices/tape/memory_library.h"
#include "devices/tape/tape_library_image.h"
#include "devices/tape/virtual_library.h"
#include "store/tape/recovery.h"
#include "store/tape/tape_reader.h"
#include "store/tape/tape_writer.h"

using namespace fopd;
using namespace fopd::store;

namespace {

class Found final : public RecoverySink {
public:
    Task<Result<void>> found(TapeEntry entry) override {
        entries.push_back(std::move(entry));
        co_return Result<void>();
    }
    Task<Result<void>> damaged(std::uint64_t, Error) override { co_return Result<void>(); }

    std::vector<TapeEntry> entries;
};

// The framing of SIMH, as far as it is right.
void put_records(std::span<const std::byte> image, devices::CartridgeImage& into) {
    while (image.size() >= 4) {
        const auto length = get_little<std::uint32_t>(image, 0);
        image = image.subspan(4);
        if (length == 0) {
            into.append_filemark();
            continue;
        }
        const std::size_t padded = std::size_t{length} + length % 2;
        if (image.size() < padded + 4) break;
        into.append(image.first(length));
        image = image.subspan(padded + 4);
    }
    into.make_durable();
}

Task<void> read_all(devices::TapeDrive* drive) {
    const auto loaded = co_await drive->load();
    ENSURE(loaded.has_value());
    const auto identity = co_await read_identity(drive);
    if (!identity) co_return;
    Found found;
    TapeRecovery recovery(*drive, *identity);
    const auto recovered = co_await recovery.run({}, &found);
    if (!recovered) co_return;
    ENSURE(!recovered->shorter);
    TapeReader reader(*drive, *identity);
    constexpr std::size_t kReadMax = 20;
    for (std::size_t i = 0; i < found.entries.size() && i < kReadMax; ++i) {
        ENSURE(found.entries[i].file.number <= recovered->end.files);
        TapeEntry entry = found.entries[i];
        const auto opened = co_await reader.open(std::move(entry));
        if (!opened) continue;
        while (true) {
            const auto part = co_await reader.next();
            if (!part || part->bytes.empty()) break;
        }
    }
    TapeWriter writer(*drive, *identity, {});
    const auto opened = co_await writer.open(recovered->end);
    ENSURE(opened.has_value());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
    devices::TapeLibraryImage image({.drives = 1, .exchange = 0, .storage = 1});
    image.move(image.add({.barcode = "FPD001L9"}), devices::kDriveAddress);
    put_records(std::as_bytes(std::span(data, size_bytes)), *image.at(devices::kDriveAddress));
    core::VirtualWorld world(1);
    const auto reactor = world.make_reactor();
    devices::MemoryLibrary library(*reactor, image, {});
    ENSURE(world.run(*reactor, read_all(&library.drive(0))));
    return 0;
}
