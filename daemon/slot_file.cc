#include "daemon/slot_file.h"

#include <string_view>
#include <utility>

namespace fopd::daemon {

// A damaged table is rebuilt from the disks' labels. Only the slot of an absent disk may then be
// assigned again, which is detected when that disk appears.
SlotTable SlotFile::read() {
    const auto text = bay_->read_slots();
    if (!text && text.error().code == Errc::kNotFound) return {};
    auto table = text ? SlotTable::parse(*text) : std::nullopt;
    if (table) {
        written_ = *text;
        return *std::move(table);
    }
    emit(events_, core::Level::kError, "daemon.slots_lost",
         {{"reason", text ? std::string_view("the file slots is damaged")
                          : std::string_view(text.error().context)}});
    return {};
}

Result<void> SlotFile::write(const SlotTable& table) {
    std::string text = table.text();
    if (text == written_) return {};
    written_.reset();
    const auto written = bay_->write_slots(text);
    if (written) {
        written_ = std::move(text);
    } else {
        emit(events_, core::Level::kError, "daemon.slots_not_written",
             {{"reason", std::string_view(written.error().context)}});
    }
    return written;
}

}  // namespace fopd::daemon
