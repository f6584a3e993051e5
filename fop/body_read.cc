#include <algorithm>
#include <bit>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "fop/body_check.h"
#include "fop/body_rows.h"
#include "fop/body_wire.h"

namespace fopd::fop {

namespace {

namespace flat = flatbuffers;

// Lists are returned as they are in the message, without a copy.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(Range) == sizeof(wire::Range) && alignof(Range) == alignof(wire::Range));
static_assert(sizeof(Fid) == sizeof(wire::Fid) && alignof(Fid) == alignof(wire::Fid));
static_assert(sizeof(Receipt) == sizeof(wire::Receipt) &&
              alignof(Receipt) == alignof(wire::Receipt));

// All functions return false if the data is malformed.

bool read(const flat::String* from, std::string_view& to) {
    to = text_of(from);
    return true;
}
template <typename Number>
bool read(const flat::Vector<Number>* from, List<Number>& to) {
    if (from != nullptr) to = List<Number>(from->data(), from->size());
    return true;
}
// FlatBuffers does not verify the alignment of lists of structs.
template <typename Wire, typename T>
bool read(const flat::Vector<const Wire*>* from, List<T>& to) {
    if (from == nullptr) return true;
    const std::uint8_t* const first = from->Data();
    if (reinterpret_cast<std::uintptr_t>(first) % alignof(T) != 0) return false;
    to = List<T>(reinterpret_cast<const T*>(first), from->size());
    return true;
}
bool read(const wire::Fid* from, Fid& to) {
    if (from != nullptr) to = {.high = from->high(), .low = from->low()};
    return true;
}
bool read(const wire::Range* from, Range& to) {
    if (from != nullptr) to = {.offset = from->offset(), .length = from->length()};
    return true;
}
bool read(const wire::Receipt* from, Receipt& to) {
    if (from != nullptr) {
        to = {.incarnation = from->incarnation(), .seq = from->seq(), .slot = from->slot()};
    }
    return true;
}
bool read(const flat::Vector<std::uint8_t>* from, SealedDescriptor& to) {
    const auto sealed = bytes_of(from);
    if (sealed.size() != to.size()) return false;
    std::ranges::copy(sealed, to.begin());
    return true;
}
bool read(const flat::Vector<std::uint8_t>* from, std::optional<SealedDescriptor>& to) {
    return from == nullptr || read(from, to.emplace());
}

// A number, a flag, or an enumerator, whose value check_request() checks.
template <typename Field, typename T>
    requires std::is_arithmetic_v<Field>
bool read(Field from, T& to) {
    static_assert(std::is_same_v<Field, T> || std::is_enum_v<T>);
    to = static_cast<T>(from);
    return true;
}

template <typename Row, std::size_t... Index>
bool read_fields([[maybe_unused]] const typename Row::Table& from, [[maybe_unused]] auto fields,
                 std::index_sequence<Index...>) {
    return (read(from.template get_field<Index>(), std::get<Index>(fields)) && ...);
}

// `type` is the position of the table in its union, and the alternative that is constructed.
template <typename Rows, typename Body>
bool read_table(std::size_t type, const void* table, Body& body) {
    if (type == 0) return true;
    if (type > std::tuple_size_v<Rows> || table == nullptr) return false;
    return visit_row<Rows>(type - 1, [&]<std::size_t Index>() {
        using Row = std::tuple_element_t<Index, Rows>;
        const auto fields = Row::fields(body.template emplace<Index + 1>());
        return read_fields<Row>(*static_cast<const typename Row::Table*>(table), fields,
                                std::make_index_sequence<std::tuple_size_v<decltype(fields)>>());
    });
}

}  // namespace

bool read_body(const wire::Request& request, RequestBody& body) {
    return read_table<RequestRows>(static_cast<std::size_t>(request.body_type()), request.body(),
                                   body);
}

ReplyBody read_body(const wire::Reply& reply) {
    ReplyBody body;
    const auto type = static_cast<std::size_t>(reply.body_type());
    if (!read_table<ReplyRows>(type, reply.body(), body) || !is_bounded(body)) return {};
    return body;
}

}  // namespace fopd::fop
