#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "io_sched/io_device.h"
#include "io_sched/io_request.h"

namespace fopd::io_sched {

enum class MediumUse : std::uint8_t {
    kAll,
    kRead,  // Can be read and formatted, not written: full or read-only, for example.
    kNone,  // Cannot be used: missing or disabled.
};

// A medium that is not fixed in a device, as schedulers see it.
struct IoMedium {
    MediumId id{};
    Technology technology;
    std::uint32_t pool = 0;
    MediumUse use = MediumUse::kAll;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t free_bytes = 0;  // The space for writes, labels and headers included.
    // The collection of the last write; 0: none.
    std::uint64_t collection = 0;

    bool allows(IoType type) const {
        return use == MediumUse::kAll || (use == MediumUse::kRead && type != IoType::kWrite);
    }
    friend bool operator==(const IoMedium&, const IoMedium&) = default;
};

// The media of a family, and the drives that can take them. Schedulers read it. Used on one
// reactor.
class IoMedia {
public:
    // Replaces an earlier description of the medium.
    void put(const IoMedium& medium);
    void remove(MediumId id);
    const IoMedium* find(MediumId id) const {
        const auto at = media_.find(id);
        return at == media_.end() ? nullptr : &at->second;
    }
    // Counts a write of so many bytes of a collection to the medium.
    void wrote(MediumId id, std::uint64_t size_bytes, std::uint64_t collection);
    const std::map<MediumId, IoMedium>& all() const { return media_; }

    void add_drive(IoDevice& drive);
    void remove_drive(const IoDevice& drive);
    const std::vector<IoDevice*>& drives() const { return drives_; }
    // The drive that has the medium, or that is giving it back; null if it is in none.
    IoDevice* drive_with(MediumId id) const;
    // The state of a drive has changed.
    void drive_changed() { ++version_; }
    // Whether the drive can be used for a request of that type on that medium.
    static bool fits(const IoDevice& drive, const IoMedium& medium, IoType type);
    // Whether any drive can be used for it, ready or not.
    bool has_drive_for(const IoMedium& medium, IoType type) const;
    // Whether a drive that is not down can be used for it.
    bool has_drive_up_for(const IoMedium& medium, IoType type) const;

    // Grows with every change.
    std::uint64_t version() const { return version_; }

private:
    std::map<MediumId, IoMedium> media_;
    std::vector<IoDevice*> drives_;
    std::uint64_t version_ = 1;
};

}  // namespace fopd::io_sched
