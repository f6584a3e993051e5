#include "eh/static_view_store.h"

#include <utility>

#include "core/ensure.h"

namespace fopd::eh {

namespace {

// Null: there is no view yet.
Result<ViewHandle> view_in(const Result<std::vector<std::byte>>& bytes) {
    if (!bytes && bytes.error().code == Errc::kNotFound) return ViewHandle{};
    if (!bytes) return std::unexpected(bytes.error());
    auto view = decode_view(*bytes);
    if (!view) return std::unexpected(view.error());
    return std::make_shared<const CommittedView>(*std::move(view));
}

}  // namespace

void StaticViewStore::read(ViewStoreUser& user) {
    ENSURE(user_ == nullptr);
    user_ = &user;
    file_.read(*this);
}

void StaticViewStore::swap(ViewNumber expected, ViewHandle next, ViewStoreUser& user) {
    ENSURE(user_ == nullptr);
    ENSURE(next->number() == expected + 1);
    user_ = &user;
    expected_ = expected;
    next_ = std::move(next);
    file_.read(*this);
}

void StaticViewStore::on_file_read(Result<std::vector<std::byte>> bytes) {
    const Result<ViewHandle> view = view_in(bytes);
    if (next_ == nullptr) return std::exchange(user_, nullptr)->on_view_read(view);
    const ViewNumber number = !view || *view == nullptr ? 0 : (*view)->number();
    if (view && number == expected_) return file_.replace(next_->bytes(), *this);
    next_.reset();
    // An unreadable file was not written by this call, but its view is not known either.
    const Swapped outcome = view ? Swapped::kNo : Swapped::kUnknown;
    std::exchange(user_, nullptr)->on_view_swapped(outcome);
}

void StaticViewStore::on_file_replaced(Replaced replaced) {
    next_.reset();
    Swapped outcome = Swapped::kYes;
    if (!replaced) outcome = replaced.error().has_old_bytes ? Swapped::kNo : Swapped::kUnknown;
    std::exchange(user_, nullptr)->on_view_swapped(outcome);
}

}  // namespace fopd::eh
