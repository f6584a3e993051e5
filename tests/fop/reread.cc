#include "tests/fop/reread.h"

#include <algorithm>
#include <vector>

#include "core/ensure.h"
#include "fop/borrowed.h"
#include "fop/fop_type.h"
#include "fop/message_reader.h"
#include "fop/message_writer.h"
#include "fop/prefix.h"

namespace fopd::fop {

namespace {

// Whatever a message refers to once, its copy has as often as it is referred to.
constexpr std::size_t kGrowth =
    kControlBytesMax + kRequestOverheadMax +
    kFopsMax * (kTokenBytesMax + kWordsBytesMax + sizeof(RequestBody) + 256);

template <typename View>
std::size_t copy_bytes_max(std::span<const std::byte> message, const View& view) {
    std::size_t bytes = message.size() + kGrowth;
    for (const auto each : view) bytes += 2 * borrowed_bytes(each.body);
    return bytes;
}

class Within {
public:
    explicit Within(std::span<const std::byte> message) : message_(message) {}

    template <typename Each>
    void check(std::span<const Each> part) {
        const auto bytes = std::as_bytes(part);
        if (bytes.empty()) return;
        ENSURE(bytes.data() >= message_.data());
        ENSURE(bytes.data() + bytes.size() <= message_.data() + message_.size());
        for (const std::byte each : bytes) sum_ = sum_ ^ each;
    }
    void check(std::string_view text) { check(std::span<const char>(text)); }
    template <typename Body>
    void check_borrowed(const Body& body) {
        auto look = [this](const auto& part) { this->check(bytes_of_borrowed(part)); };
        std::visit([&look](const auto& each) { for_each_borrowed(each, look); }, body);
    }

private:
    std::span<const std::byte> message_;
    volatile std::byte sum_{};  // So that every byte is really read.
};

// What is handed out keeps its limits (docs/formats/limits.md).
template <typename Variant>
void check_lengths(const Variant& body) {
    const auto look = [](const auto& each) {
        if constexpr (requires { each.bytes; }) ENSURE(each.bytes <= kBulkEchoBytesMax);
        if constexpr (requires { each.length; }) ENSURE(each.length <= kTransferBytesMax);
        if constexpr (requires { each.size_bytes; }) ENSURE(each.size_bytes <= kOffsetMax);
        if constexpr (requires { each.range; }) ENSURE(each.range.end() <= kOffsetMax);
        if constexpr (requires { each.ranges; }) ENSURE(each.ranges.size() <= kRangesMax);
        if constexpr (requires { each.checksums; }) ENSURE(each.checksums.size() <= kChecksumsMax);
        if constexpr (requires { each.receipts; }) ENSURE(each.receipts.size() <= kReceiptsMax);
    };
    std::visit(look, body);
}

bool same(std::span<const std::byte> one, std::span<const std::byte> other) {
    return std::ranges::equal(one, other);
}

bool can_be_written(const Request& request) {
    return request.token.size() <= kTokenBytesMax;
}

void check_same(const Request& one, const Request& other) {
    ENSURE(one.id == other.id);
    ENSURE(one.type == other.type);
    ENSURE(one.timeout == other.timeout);
    ENSURE(same(one.token, other.token));
    ENSURE(same(one.payload, other.payload));
    ENSURE(one.payload.empty() || one.payload_crc == other.payload_crc);
    if (one.fault != Status::kDone) return;
    ENSURE(other.fault == Status::kDone);
    ENSURE(one.body == other.body);
    ENSURE(one.body.index() == body_index(*find_fop_type(one.type)));
}

void check_same(const Reply& one, const Reply& other) {
    ENSURE(one.id == other.id);
    ENSURE(one.status == other.status);
    ENSURE(one.words == other.words);
    ENSURE(same(one.payload, other.payload));
    ENSURE(one.payload.empty() || one.payload_crc == other.payload_crc);
    ENSURE(one.body == other.body);
}

void reread_requests(std::span<const std::byte> message, const Prefix& prefix,
                     const RequestsView& view) {
    Within within(message);
    const RequestHeader header = view.header();
    within.check(header.job);
    within.check(header.pool);
    within.check(header.user);

    std::vector<std::byte> copy(copy_bytes_max(message, view));
    MessageWriter writer;
    writer.start_requests(copy, header);
    for (const Request request : view) {
        within.check(request.token);
        within.check(request.payload);
        within.check_borrowed(request.body);
        check_lengths(request.body);
        static_cast<void>(payload_intact(request));
        if (can_be_written(request)) ENSURE(writer.add(request));
    }
    if (writer.empty()) return;
    copy.resize(writer.seal(prefix));

    ENSURE(read_prefix(copy).has_value());
    const auto again = read_requests(copy);
    ENSURE(again.has_value());
    ENSURE(again->header().job == header.job);
    ENSURE(again->header().pool == header.pool);
    ENSURE(again->header().user == header.user);
    ENSURE(again->header().priority == header.priority);
    std::size_t index = 0;
    for (const Request request : view) {
        if (can_be_written(request)) check_same(request, (*again)[index++]);
    }
    ENSURE(index == again->count());
}

void reread_replies(std::span<const std::byte> message, const Prefix& prefix,
                    const RepliesView& view) {
    Within within(message);
    std::vector<std::byte> copy(copy_bytes_max(message, view));
    MessageWriter writer;
    writer.start_replies(copy);
    for (const Reply reply : view) {
        within.check(reply.words);
        within.check(reply.payload);
        within.check_borrowed(reply.body);
        check_lengths(reply.body);
        static_cast<void>(payload_intact(reply));
        ENSURE(writer.add(reply));
    }
    copy.resize(writer.seal(prefix));

    ENSURE(read_prefix(copy).has_value());
    const auto again = read_replies(copy);
    ENSURE(again.has_value());
    ENSURE(again->count() == view.count());
    for (std::size_t index = 0; index < view.count(); ++index) {
        check_same(view[index], (*again)[index]);
    }
}

void reread_control(std::span<const std::byte> message, const Prefix& prefix,
                    const Control& control) {
    Within within(message);
    within.check(control.cancel);
    within.check(control.let_go);
    within.check(control.words);

    std::vector<std::byte> copy(kControlBytesMax);
    MessageWriter writer;
    copy.resize(writer.write_control(copy, prefix, control));

    ENSURE(read_prefix(copy).has_value());
    const auto again = read_control(copy);
    ENSURE(again.has_value());
    ENSURE(again->ping == control.ping);
    ENSURE(again->pong == control.pong);
    ENSURE(again->surrender_messages == control.surrender_messages);
    ENSURE(again->surrendered_messages == control.surrendered_messages);
    ENSURE(again->surrender_fops == control.surrender_fops);
    ENSURE(again->surrendered_fops == control.surrendered_fops);
    ENSURE(std::ranges::equal(again->cancel, control.cancel));
    ENSURE(again->bye == control.bye);
    ENSURE(again->words == control.words);
    ENSURE(std::ranges::equal(again->let_go, control.let_go));
}

}  // namespace

bool reread(std::span<const std::byte> message) {
    const auto prefix = read_prefix(message);
    if (!prefix) return false;
    const MacInput covered = mac_input(message);
    Within(message).check(covered.prefix);
    Within(message).check(covered.envelope);
    switch (prefix->kind) {
        case MessageKind::kHandshake: {
            const auto envelope = read_handshake(message);
            if (!envelope) return false;
            Within(message).check(*envelope);
            return true;
        }
        case MessageKind::kRequests: {
            const auto view = read_requests(message);
            if (!view) return false;
            reread_requests(message, *prefix, *view);
            return true;
        }
        case MessageKind::kReplies: {
            const auto view = read_replies(message);
            if (!view) return false;
            reread_replies(message, *prefix, *view);
            return true;
        }
        case MessageKind::kControl: {
            const auto control = read_control(message);
            if (!control) return false;
            reread_control(message, *prefix, *control);
            return true;
        }
    }
    return false;
}

}  // namespace fopd::fop
