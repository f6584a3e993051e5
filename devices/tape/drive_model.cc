#include "devices/tape/drive_model.h"

#include <algorithm>
#include <array>
#include <string>

#include "core/ensure.h"

namespace fopd::devices {

namespace {

constexpr std::uint64_t kMega = 1'000'000;
constexpr std::uint64_t kTera = 1'000'000'000'000;

// Times and rates are IBM's for full-height drives; of LTO-6 only those of half-height ones are
// published, and no rewind. The floor of LTO-6 and LTO-10 is assumed, in proportion to their rates.
// The range of LPOS and the costs of a locate were fitted at CERN to LTO-7 drives with type M
// cartridges; IBM's mean locate times of the others are near to what they give, but for LTO-9,
// which is faster (45 s). Tapes of LTO-9 are 8 % longer.
constexpr std::array kModels{
    DriveModel{.technology = "lto6",
               .capacity_bytes = 2'500'000 * kMega,
               .rate_bytes_s = 160 * kMega,
               .floor_bytes_s = 54 * kMega,
               .buffer_bytes = 512UL << 20,
               .load = 12s,
               .unload = 17s,
               .rewind_mean = 60s,
               .wraps = 136},
    DriveModel{.technology = "lto7",
               .capacity_bytes = 6 * kTera,
               .rate_bytes_s = 300 * kMega,
               .floor_bytes_s = 101 * kMega,
               .buffer_bytes = 1024UL << 20,
               .load = 15s,
               .unload = 20s,
               .rewind_mean = 60s,
               .wraps = 112},
    DriveModel{.technology = "lto8",
               .capacity_bytes = 12 * kTera,
               .rate_bytes_s = 360 * kMega,
               .floor_bytes_s = 112 * kMega,
               .buffer_bytes = 1024UL << 20,
               .load = 15s,
               .unload = 24s,
               .rewind_mean = 59s,
               .wraps = 208},
    DriveModel{.technology = "lto9",
               .capacity_bytes = 18 * kTera,
               .rate_bytes_s = 400 * kMega,
               .floor_bytes_s = 177 * kMega,
               .buffer_bytes = 1024UL << 20,
               .load = 17s,
               .unload = 30s,
               .rewind_mean = 55s,
               .wraps = 280},
    DriveModel{.technology = "lto10",
               .capacity_bytes = 30 * kTera,
               .rate_bytes_s = 400 * kMega,
               .floor_bytes_s = 177 * kMega,
               .buffer_bytes = 1024UL << 20,
               .load = 12s,
               .unload = 27s,
               .rewind_mean = 62s,
               .wraps = 280},
};

// part / whole of `span`, without overflow for whatever fits on a tape. REQUIRES: part <= whole.
std::uint64_t share(std::uint64_t span, std::uint64_t part, std::uint64_t whole) {
    __extension__ using Wide = unsigned __int128;
    return static_cast<std::uint64_t>(Wide{span} * part / whole);
}

Duration time_at(std::uint64_t size_bytes, std::uint64_t rate_bytes_s) {
    constexpr std::uint64_t kSecond = 1'000'000'000;
    const std::uint64_t seconds = size_bytes / rate_bytes_s;
    const std::uint64_t rest = size_bytes % rate_bytes_s * kSecond / rate_bytes_s;
    return Duration{static_cast<Duration::rep>(seconds * kSecond + rest)};
}

std::uint64_t bytes_in(Duration span, std::uint64_t rate_bytes_s) {
    return share(rate_bytes_s, static_cast<std::uint64_t>(span.count()), 1'000'000'000);
}

bool is_forward(std::uint32_t wrap) {
    return wrap % 2 == 0;
}

std::uint32_t band_of(const DriveModel& model, std::uint32_t wrap) {
    return static_cast<std::uint32_t>(std::uint64_t{wrap} * kTapeBands / model.wraps);
}

std::uint64_t distance(std::uint64_t one, std::uint64_t other) {
    return one < other ? other - one : one - other;
}

// part / whole of the way along the wrap, in its direction.
PhysicalPosition position_in(const DriveModel& model, std::uint64_t wrap, std::uint64_t part,
                             std::uint64_t whole) {
    if (wrap >= model.wraps) {
        wrap = model.wraps - 1;
        part = whole;
    }
    const auto number = static_cast<std::uint32_t>(wrap);
    const std::uint64_t along = share(model.lpos_length, part, whole);
    return {.wrap = number,
            .lpos = model.lpos_begin + (is_forward(number) ? along : model.lpos_length - along)};
}

int generation_of(const DriveModel* model) {
    return model == nullptr ? -1 : static_cast<int>(model - kModels.data());
}

// How many generations the cartridge is older than the drive; -1 if the drive cannot read it.
int generations_back(std::string_view drive, std::string_view cartridge) {
    const int own = generation_of(find_drive_model(drive));
    const int other = generation_of(find_drive_model(cartridge));
    if (own < 0 || other < 0 || other > own) return -1;
    // LTO-8 dropped the generation before the last one, and LTO-10 all older ones.
    const int read_back = drive == "lto10" ? 0 : drive == "lto8" || drive == "lto9" ? 1 : 2;
    return own - other <= read_back ? own - other : -1;
}

}  // namespace

std::span<const DriveModel> drive_models() {
    return kModels;
}

const DriveModel* find_drive_model(std::string_view technology) {
    const auto* const found = std::ranges::find(kModels, technology, &DriveModel::technology);
    return found == kModels.end() ? nullptr : found;
}

const DriveModel* model_of_barcode(std::string_view barcode) {
    constexpr std::size_t kNumberSize = 6;
    if (barcode.size() != kNumberSize + 2 || barcode[kNumberSize] != 'L') return nullptr;
    if (barcode.back() == 'A') return find_drive_model("lto10");
    return find_drive_model(std::string("lto") + barcode.back());
}

bool can_read(std::string_view drive, std::string_view cartridge) {
    return generations_back(drive, cartridge) >= 0;
}

bool can_write(std::string_view drive, std::string_view cartridge) {
    const int back = generations_back(drive, cartridge);
    return back == 0 || back == 1;
}

DriveModel with_capacity(const DriveModel& model, std::uint64_t capacity_bytes) {
    ENSURE(capacity_bytes > 0);
    DriveModel other = model;
    other.capacity_bytes = capacity_bytes;
    return other;
}

std::uint64_t early_warning_bytes(std::uint64_t capacity_bytes) {
    const std::uint64_t wanted =
        std::clamp<std::uint64_t>(capacity_bytes / 64, 1UL << 20, 1UL << 30);
    return std::min(wanted, capacity_bytes / 4);
}

PhysicalPosition beginning_of(const DriveModel& model) {
    return {.wrap = 0, .lpos = model.lpos_begin};
}

PhysicalPosition position_of_byte(const DriveModel& model, std::uint64_t byte) {
    __extension__ using Wide = unsigned __int128;
    // In units of 1 / wraps of a byte, so that the last byte is at the end of the last wrap.
    const Wide along = Wide{byte} * model.wraps;
    const auto wrap = static_cast<std::uint64_t>(along / model.capacity_bytes);
    const auto part = static_cast<std::uint64_t>(along % model.capacity_bytes);
    return position_in(model, wrap, part, model.capacity_bytes);
}

Duration locate_time(const DriveModel& model, PhysicalPosition from, PhysicalPosition to) {
    if (from == to) return Duration{0};
    const LocateCosts& costs = model.costs;
    const auto far = static_cast<Duration::rep>(distance(from.lpos, to.lpos));
    Duration time = costs.base + far * costs.per_lpos;
    const std::uint64_t middle = model.lpos_begin + model.lpos_length / 2;
    if ((from.lpos < middle) != (to.lpos < middle)) time += costs.half_change;
    if (from.wrap == to.wrap) {
        const bool is_behind = is_forward(to.wrap) ? to.lpos < from.lpos : to.lpos > from.lpos;
        if (is_behind) time += costs.step_back;
    } else {
        time += costs.wrap_change;
        if (band_of(model, from.wrap) != band_of(model, to.wrap)) time += costs.band_change;
        if (is_forward(from.wrap) != is_forward(to.wrap)) time += costs.direction_change;
    }
    return std::max(time, Duration{0});
}

Duration rewind_time(const DriveModel& model, PhysicalPosition from) {
    const auto whole = static_cast<std::uint64_t>(2 * model.rewind_mean.count());
    const std::uint64_t far = distance(from.lpos, model.lpos_begin);
    return Duration{static_cast<Duration::rep>(share(whole, far, model.lpos_length))};
}

Duration transfer_time(const DriveModel& model, std::uint64_t size_bytes) {
    return time_at(size_bytes, model.rate_bytes_s);
}

// Empties the buffer at the two rates.
void WriteStream::drain(Instant until) {
    if (until <= now_) return;
    Duration left = until - now_;
    now_ = until;
    if (!moving_) return;
    const std::uint64_t half = model_->buffer_bytes / 2;
    if (buffered_bytes_ > half) {
        const Duration to_half = time_at(buffered_bytes_ - half, model_->rate_bytes_s);
        if (left < to_half) {
            buffered_bytes_ -= bytes_in(left, model_->rate_bytes_s);
            return;
        }
        buffered_bytes_ = half;
        left -= to_half;
    }
    const std::uint64_t written = bytes_in(left, model_->floor_bytes_s);
    moving_ = written <= buffered_bytes_;
    buffered_bytes_ -= std::min(written, buffered_bytes_);
}

void WriteStream::start(Instant now) {
    if (moving_) return;
    now_ = std::max(now_, now);
    if (at_end_of_data_) {
        ++backhitches_;
        now_ += kBackhitch;
    }
    at_end_of_data_ = true;
    moving_ = true;
}

Instant WriteStream::write(Instant now, std::uint64_t size_bytes) {
    drain(now);
    buffered_bytes_ += size_bytes;
    if (buffered_bytes_ >= model_->buffer_bytes / 4) start(now);
    if (buffered_bytes_ <= model_->buffer_bytes) return now;
    const std::uint64_t excess = buffered_bytes_ - model_->buffer_bytes;
    now_ = std::max(now_, now) + time_at(excess, model_->rate_bytes_s);
    buffered_bytes_ -= excess;
    return now_;
}

Instant WriteStream::flush(Instant now) {
    drain(now);
    if (buffered_bytes_ == 0) {
        moving_ = false;
        return std::max(now_, now);
    }
    start(now);
    now_ = std::max(now_, now) + time_at(buffered_bytes_, model_->rate_bytes_s);
    buffered_bytes_ = 0;
    moving_ = false;
    return now_;
}

}  // namespace fopd::devices
