#include <concepts>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "fop/body_rows.h"
#include "fop/body_wire.h"
#include "fop/borrowed.h"

namespace fopd::fop {

namespace {

namespace flat = flatbuffers;
using FlatBuilder = flat::FlatBufferBuilder;
using Written = flat::Offset<void>;

wire::Fid to_wire(const Fid& fid) {
    return {fid.high, fid.low};
}
wire::Range to_wire(const Range& range) {
    return {range.offset, range.length};
}
wire::Receipt to_wire(const Receipt& receipt) {
    return {receipt.incarnation, receipt.seq, receipt.slot};
}

// Each writes what stands outside the table, and returns what stands in its field.
auto field(FlatBuilder& builder, std::string_view text) {
    return wire_text(builder, text);
}
template <typename Number>
    requires std::unsigned_integral<Number>
auto field(FlatBuilder& builder, const List<Number>& items) {
    using Made = flat::Offset<flat::Vector<Number>>;
    return items.empty() ? Made(0) : builder.CreateVector(items.data(), items.size());
}
// Copied element by element, so that padding is zero.
template <typename T>
auto field(FlatBuilder& builder, const List<T>& items) {
    using Wire = decltype(to_wire(std::declval<T>()));
    if (items.empty()) return flat::Offset<flat::Vector<const Wire*>>(0);
    Wire* into = nullptr;
    const auto made = builder.CreateUninitializedVectorOfStructs(items.size(), &into);
    for (const T& each : items) *into++ = to_wire(each);
    return flat::Offset<flat::Vector<const Wire*>>(made);
}
auto field(FlatBuilder& builder, const SealedDescriptor& sealed) {
    return wire_bytes(builder, sealed);
}
auto field(FlatBuilder& builder, const std::optional<SealedDescriptor>& sealed) {
    return sealed ? wire_bytes(builder, *sealed) : 0;
}
template <typename Number>
    requires std::is_arithmetic_v<Number> || std::is_enum_v<Number>
auto field(FlatBuilder& /*builder*/, Number number) {
    if constexpr (std::is_enum_v<Number>) {
        return static_cast<std::underlying_type_t<Number>>(number);
    } else {
        return number;
    }
}
template <typename T>
    requires requires(const T& part) { to_wire(part); }
auto field(FlatBuilder& /*builder*/, const T& part) {
    return to_wire(part);
}

// The functions that FlatBuffers generates take structs by their addresses.
template <typename Field>
auto argument(const Field& field) {
    if constexpr (requires { typename Field::Traits; }) {
        return &field;
    } else {
        return field;
    }
}

template <typename Rows>
Written write_table(FlatBuilder& builder, const auto& body) {
    if (body.index() == 0) return 0;
    return visit_row<Rows>(body.index() - 1, [&]<std::size_t Index>() {
        using Row = std::tuple_element_t<Index, Rows>;
        const auto write = [&builder](const auto&... parts) {
            const std::tuple fields{field(builder, parts)...};  // In the order of the fields.
            const auto create = [&builder](const auto&... each) {
                return Row::Table::Traits::Create(builder, argument(each)...);
            };
            return std::apply(create, fields).Union();
        };
        return std::apply(write, Row::fields(std::get<Index + 1>(body)));
    });
}

template <typename Variant>
std::size_t borrowed_max(const Variant& body) {
    std::size_t total = 0;
    auto add = [&total](const auto& part) {
        total += list_bytes_max(bytes_of_borrowed(part).size());
    };
    std::visit([&add](const auto& each) { for_each_borrowed(each, add); }, body);
    return total;
}

}  // namespace

std::size_t borrowed_wire_bytes_max(const RequestBody& body) {
    return borrowed_max(body);
}
std::size_t borrowed_wire_bytes_max(const ReplyBody& body) {
    return borrowed_max(body);
}

flat::Offset<void> write_body(FlatBuilder& builder, const RequestBody& body) {
    return write_table<RequestRows>(builder, body);
}
flat::Offset<void> write_body(FlatBuilder& builder, const ReplyBody& body) {
    return write_table<ReplyRows>(builder, body);
}

}  // namespace fopd::fop
