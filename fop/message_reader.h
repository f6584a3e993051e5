#pragma once

#include <cstddef>
#include <span>

#include "core/result.h"
#include "fop/message.h"

namespace fopd::fop {

// The tables of the envelope; only the implementation uses them.
namespace wire {
struct Requests;
struct Replies;
}  // namespace wire

// for (const Request request : view)
template <typename View>
class ViewIterator {
public:
    using value_type = typename View::value_type;
    using difference_type = std::ptrdiff_t;

    ViewIterator() = default;
    ViewIterator(const View& view, std::size_t index) : view_(&view), index_(index) {}
    value_type operator*() const { return (*view_)[index_]; }
    ViewIterator& operator++() {
        ++index_;
        return *this;
    }
    ViewIterator operator++(int) {
        const ViewIterator before = *this;
        ++index_;
        return before;
    }
    bool operator==(const ViewIterator&) const = default;

private:
    const View* view_ = nullptr;
    std::size_t index_ = 0;
};

// The requests of a valid message. Borrows the message; cheap to copy. Reading a request allocates
// nothing.
class RequestsView {
public:
    using value_type = Request;

    RequestHeader header() const;
    std::size_t count() const;
    // REQUIRES: index < count().
    Request operator[](std::size_t index) const;
    ViewIterator<RequestsView> begin() const { return {*this, 0}; }
    ViewIterator<RequestsView> end() const { return {*this, count()}; }

private:
    friend Result<RequestsView> read_requests(std::span<const std::byte> message);
    RequestsView(std::span<const std::byte> message, const wire::Requests& root)
        : message_(message), root_(&root) {}

    std::span<const std::byte> message_;
    const wire::Requests* root_;
};

// The replies of a valid message, likewise.
class RepliesView {
public:
    using value_type = Reply;

    std::size_t count() const;
    // REQUIRES: index < count(). An unknown status reads as kInternal.
    Reply operator[](std::size_t index) const;
    ViewIterator<RepliesView> begin() const { return {*this, 0}; }
    ViewIterator<RepliesView> end() const { return {*this, count()}; }

private:
    friend Result<RepliesView> read_replies(std::span<const std::byte> message);
    RepliesView(std::span<const std::byte> message, const wire::Replies& root)
        : message_(message), root_(&root) {}

    std::span<const std::byte> message_;
    const wire::Replies* root_;
};

// REQUIRES for these three: read_prefix() accepted the message, it has that kind, and it is aligned
// to kMessageAlignment. If they fail with kInvalid, nothing of the message may be used. For any
// bytes, all results of a view lie within the message. Check the MAC first.
Result<RequestsView> read_requests(std::span<const std::byte> message);
Result<RepliesView> read_replies(std::span<const std::byte> message);
Result<Control> read_control(std::span<const std::byte> message);

}  // namespace fopd::fop
