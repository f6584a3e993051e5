#include "fop/borrowed.h"

#include <cstdint>
#include <cstring>
#include <variant>

#include "core/ensure.h"

namespace fopd::fop {

namespace {

template <typename Variant>
std::size_t bytes_borrowed_by(const Variant& body) {
    std::size_t total = 0;
    auto add = [&total](const auto& part) {
        const std::size_t bytes = bytes_of_borrowed(part).size();
        total += (bytes + kBorrowedAlignment - 1) / kBorrowedAlignment * kBorrowedAlignment;
    };
    std::visit([&add](const auto& each) { for_each_borrowed(each, add); }, body);
    return total;
}

template <typename Variant>
void keep_borrowed_by(Variant& body, std::span<std::byte> room) {
    ENSURE(reinterpret_cast<std::uintptr_t>(room.data()) % kBorrowedAlignment == 0);
    auto keep = [&room]<typename Part>(Part& part) {
        const auto from = bytes_of_borrowed(part);
        if (from.empty()) {
            part = {};
            return;
        }
        const std::size_t taken =
            (from.size() + kBorrowedAlignment - 1) / kBorrowedAlignment * kBorrowedAlignment;
        ENSURE(taken <= room.size());
        std::memcpy(room.data(), from.data(), from.size());
        using Element = typename Part::value_type;
        part = Part(reinterpret_cast<const Element*>(room.data()), part.size());
        room = room.subspan(taken);
    };
    std::visit([&keep](auto& each) { for_each_borrowed(each, keep); }, body);
}

}  // namespace

std::size_t borrowed_bytes(const RequestBody& body) {
    return bytes_borrowed_by(body);
}
std::size_t borrowed_bytes(const ReplyBody& body) {
    return bytes_borrowed_by(body);
}

void keep_borrowed(RequestBody& body, std::span<std::byte> room) {
    keep_borrowed_by(body, room);
}
void keep_borrowed(ReplyBody& body, std::span<std::byte> room) {
    keep_borrowed_by(body, room);
}

}  // namespace fopd::fop
