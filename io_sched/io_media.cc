#include "io_sched/io_media.h"

#include <algorithm>

#include "devices/tape/drive_model.h"

namespace fopd::io_sched {

void IoMedia::put(const IoMedium& medium) {
    const auto [at, is_new] = media_.try_emplace(medium.id, medium);
    if (!is_new && at->second == medium) return;
    ++version_;
    at->second = medium;
}

void IoMedia::remove(MediumId id) {
    if (media_.erase(id) == 0) return;
    ++version_;
}

void IoMedia::add_drive(IoDevice& drive) {
    drives_.push_back(&drive);
    ++version_;
}

void IoMedia::remove_drive(const IoDevice& drive) {
    std::erase(drives_, &drive);
    ++version_;
}

void IoMedia::wrote(MediumId id, std::uint64_t size_bytes, std::uint64_t collection) {
    const auto at = media_.find(id);
    if (at == media_.end()) return;
    IoMedium& medium = at->second;
    medium.free_bytes -= std::min(medium.free_bytes, size_bytes);
    medium.collection = collection;
    ++version_;
}

IoDevice* IoMedia::drive_with(MediumId id) const {
    auto at = std::ranges::find(drives_, std::optional(id), &IoDevice::medium);
    if (at == drives_.end()) at = std::ranges::find(drives_, std::optional(id), &IoDevice::leaving);
    return at == drives_.end() ? nullptr : *at;
}

bool IoMedia::fits(const IoDevice& drive, const IoMedium& medium, IoType type) {
    return type == IoType::kRead ? devices::can_read(drive.technology(), medium.technology)
                                 : devices::can_write(drive.technology(), medium.technology);
}

bool IoMedia::has_drive_for(const IoMedium& medium, IoType type) const {
    return std::ranges::any_of(drives_,
                               [&](const IoDevice* drive) { return fits(*drive, medium, type); });
}

bool IoMedia::has_drive_up_for(const IoMedium& medium, IoType type) const {
    return std::ranges::any_of(drives_, [&](const IoDevice* drive) {
        return drive->state() != DeviceState::kDown && fits(*drive, medium, type);
    });
}

}  // namespace fopd::io_sched
