#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/random.h"
#include "core/reactor.h"
#include "devices/power.h"
#include "devices/tape/deck.h"
#include "devices/tape/drive_timing.h"
#include "devices/tape/tape_drive.h"
#include "devices/tape/tape_library_image.h"

namespace fopd::devices {

// The faults of a simulated drive.
enum class TapeFault : std::uint8_t {
    kLoad,       // A load fails; the cartridge can be taken away.
    kRead,       // A block or filemark cannot be read this time.
    kWrite,      // A write fails, and some writes since the last sync are lost.
    kLateWrite,  // The same, but it is reported by the next operation that is no immediate write.
    kEarlyEnd,   // The early warning comes now, and the end of the tape soon afterwards.
    kStuck,      // An unload fails, and the cartridge stays loaded.
    kDeath,      // From now on every operation of the drive fails.
    kSlow,       // An operation takes `slow_delay` longer.
    kSilent,     // The drive does not answer: an operation times out, and has had no effect.
};
inline constexpr std::size_t kTapeFaultCount = 9;

// Rates in faults per million operations; none by default.
struct TapeFaults {
    std::uint32_t load_ppm = 0;
    std::uint32_t read_ppm = 0;
    std::uint32_t write_ppm = 0;
    std::uint32_t late_write_ppm = 0;
    std::uint32_t early_end_ppm = 0;
    std::uint32_t stuck_ppm = 0;
    std::uint32_t death_ppm = 0;
    std::uint32_t slow_ppm = 0;
    Duration slow_delay = 30s;
    std::uint32_t silent_ppm = 0;
};

struct MemoryTapeOptions {
    std::string name;
    std::string technology = "lto9";
    std::uint32_t index = 0;  // Among the drives of the library.
    std::uint64_t seed = 1;
    Power* power = nullptr;  // Null: never cut.
    TapeFaults faults = {};
};

// The drive of the simulated world. An operation takes the time of the model, has its effect at
// some moment within it, and fails as configured. Lives on its reactor; the image outlives it.
//
// Each operation that changes a cartridge has two steps of the power supply: one before it has any
// effect, and one after, before its completion.
class MemoryTape final : public TapeDrive {
public:
    MemoryTape(core::Reactor& reactor, TapeLibraryImage& image, MemoryTapeOptions options);

    std::string_view name() const override { return options_.name; }
    std::string_view serial() const override { return options_.name; }
    std::string_view technology() const override { return options_.technology; }

    Task<Result<LoadedTape>> load() override;
    Task<Result<void>> unload() override;
    const std::optional<LoadedTape>& loaded() const override { return deck_.loaded(); }
    Task<Result<TapePosition>> position() override;
    Task<Result<TapeRead>> read(core::Buffer into) override;
    Task<Result<TapeRoom>> write(core::Buffer from) override;
    Task<Result<TapeRoom>> write_filemarks(std::uint32_t count, Marks marks) override;
    Task<Result<void>> locate(std::uint64_t block) override;
    Task<Result<void>> skip_filemarks(std::uint32_t count) override;
    Task<Result<void>> to_end_of_data() override;

    // May be changed at any time.
    TapeFaults& faults() { return options_.faults; }
    // Of the operations to which the fault can happen, the next one has it, or the `nth`.
    void inject(TapeFault fault, std::uint32_t nth = 1) {
        injected_[static_cast<std::size_t>(fault)] = nth;
    }
    const DriveFigures& figures() const { return timing_.figures(); }
    bool busy() const { return in_flight_; }

private:
    bool strikes(TapeFault fault, std::uint32_t ppm);
    Result<void> begin();
    Result<void> report_late_error();
    Task<void> spend_until(Instant end);
    Result<TapeRoom> put(core::Buffer from, RoomWanted wanted, TapeRoom room);
    Task<Result<TapeRoom>> append(core::Buffer from, RoomWanted wanted);
    void lose_suffix();
    template <typename MoveDeck>
    Task<Result<void>> move(MoveDeck move_deck);
    CartridgeImage* cartridge() const;

    core::Reactor& reactor_;
    TapeLibraryImage& image_;
    MemoryTapeOptions options_;
    core::Random random_;
    std::array<std::uint32_t, kTapeFaultCount>
        injected_{};  // The operation that each fault strikes, counted from the next as 1. 0: none.
    TapeDeck deck_;
    DriveTiming timing_;
    bool late_error_ = false;  // Writes are lost, and the error is not reported yet.
    bool in_flight_ = false;
};

}  // namespace fopd::devices
