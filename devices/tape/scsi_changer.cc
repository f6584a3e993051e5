#include "devices/tape/scsi_changer.h"

#include <algorithm>
#include <utility>

#include "devices/tape/scsi_command.h"
#include "devices/tape/tape_error.h"

namespace fopd::devices {

namespace {

constexpr Duration kChangerTime = Duration(300s);
// Of a move, or of an inventory that looks at every cartridge.
constexpr Duration kRobotTime = Duration(1800s);
constexpr std::size_t kReportBytes = 64UL << 10U;
constexpr std::size_t kReportBytesMax = 8UL << 20U;

// The elements are not known before the robot has looked at them.
constexpr std::uint16_t kMustLook = 0x0402;

Error changer_error(const Result<ScsiReply>& reply) {
    return reply ? changer_sense_error(*reply->sense) : reply.error();
}

}  // namespace

// Changes, such as a door that was opened, are reported first.
Result<ScsiReply> ScsiChanger::run(const ScsiCommand& command) {
    return execute_after_reports(port_, command, is_attention);
}

Result<void> ScsiChanger::identify() {
    std::vector<std::byte> memory(96);
    const core::Buffer buffer{.data = memory.data(), .size_bytes = memory.size()};
    ScsiCommand command = command_of(ScsiCode::kInquiry);
    command.bytes[4] = static_cast<std::uint8_t>(memory.size());
    command.direction = ScsiDirection::kFromDevice;
    command.data = buffer;
    const auto reply = run(command);
    if (!is_good(reply)) return std::unexpected(changer_error(reply));
    const auto inquiry = parse_inquiry(sent(*reply, buffer));
    if (!inquiry || inquiry->type != ScsiDeviceType::kChanger) {
        return tape_refused(Errc::kUnsupported, "device is not a media changer");
    }
    return {};
}

Result<ElementReport> ScsiChanger::read_part(std::uint8_t type, Ids ids, std::size_t size_max) {
    std::vector<std::byte> memory(size_max);
    ScsiCommand command = command_of(ScsiCode::kReadElementStatus);
    constexpr std::uint8_t kWithBarcodes = 0x10;
    command.bytes[1] = static_cast<std::uint8_t>(kWithBarcodes | type);
    put_two(command, 4, 0xffff);
    command.bytes[6] = ids == Ids::kAsked ? 1 : 0;
    put_three(command, 7, static_cast<std::uint32_t>(size_max));
    command.direction = ScsiDirection::kFromDevice;
    command.data = {.data = memory.data(), .size_bytes = memory.size()};
    command.timeout = kChangerTime;
    auto reply = run(command);
    if (reply && reply->sense && reply->sense->code == kMustLook) {
        ScsiCommand look = command_of(ScsiCode::kInitializeElementStatus);
        look.timeout = kRobotTime;
        const auto looked = run(look);
        if (!is_good(looked)) return std::unexpected(changer_error(looked));
        reply = run(command);
    }
    if (!is_good(reply)) return std::unexpected(changer_error(reply));
    return parse_element_status(sent(*reply, command.data));
}

Result<ElementReport> ScsiChanger::read_elements(std::uint8_t type, Ids ids) {
    auto report = read_part(type, ids, kReportBytes);
    if (!report || report->size_bytes <= kReportBytes) return report;
    // Some changers forget their headers when they count.
    constexpr std::size_t kSpare = 256;
    return read_part(type, ids, std::min(report->size_bytes + kSpare, kReportBytesMax));
}

Result<std::vector<ElementStatus>> ScsiChanger::inventory() {
    std::vector<ElementStatus> elements;
    for (const std::uint8_t type : {std::uint8_t{2}, std::uint8_t{3}, std::uint8_t{4}}) {
        const bool asks = type == 4 && tells_drives_;
        auto report = read_elements(type, asks ? Ids::kAsked : Ids::kNotAsked);
        if (!report && asks && report.error().code == Errc::kInvalid) {
            tells_drives_ = false;
            report = read_elements(type, Ids::kNotAsked);
        }
        if (!report) {
            // There are no elements of this type.
            const Errc why = report.error().code;
            if (type == 3 && (why == Errc::kInvalid || why == Errc::kNotFound)) continue;
            return std::unexpected(report.error());
        }
        for (ElementStatus& each : report->elements) elements.push_back(std::move(each));
    }
    // A changer that reports no element as accessible does not report access at all.
    const bool tells_access = std::ranges::any_of(elements, [](const ElementStatus& each) {
        return each.element.kind == LibraryElement::Kind::kStorage && each.element.accessible;
    });
    if (!tells_access) {
        for (ElementStatus& each : elements) each.element.accessible = true;
    }
    std::ranges::sort(elements, {}, [](const ElementStatus& each) { return each.element.address; });
    return elements;
}

Result<void> ScsiChanger::move(std::uint32_t from, std::uint32_t to) {
    if (from > 0xffff || to > 0xffff) {
        return tape_refused(Errc::kNotFound, "library has no such element");
    }
    ScsiCommand command = command_of(ScsiCode::kMoveMedium);
    put_two(command, 4, static_cast<std::uint16_t>(from));
    put_two(command, 6, static_cast<std::uint16_t>(to));
    command.timeout = kRobotTime;
    const auto reply = run(command);
    if (!is_good(reply)) return std::unexpected(changer_error(reply));
    return {};
}

}  // namespace fopd::devices
