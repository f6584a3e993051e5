#include "tests/eh/view_store_suite.h"

#include <string>

#include "core/ensure.h"
#include "tests/catch.h"

namespace fopd::eh::testing {

ViewHandle make_view(ViewNumber number, std::uint64_t attempt, std::size_t members) {
    View view{.number = number, .epoch_low = 1, .epoch_high = 9};
    for (std::size_t i = 0; i < members; ++i) {
        const std::string name = "storage-" + std::to_string(i);
        view.roster.push_back({.name = name,
                               .incarnation = 1,
                               .address = "tcp://" + name + ".site.example:31470",
                               .joined = 1});
    }
    view.writer = {.name = "storage-0", .incarnation = 1, .attempt = attempt};
    return std::make_shared<const CommittedView>(std::move(view));
}

class StoreUser::Awaiter {
public:
    explicit Awaiter(StoreUser& user) : user_(user) {}
    bool await_ready() const { return user_.is_answered_; }
    void await_suspend(std::coroutine_handle<> handle) { user_.handle_ = handle; }
    void await_resume() const {}

private:
    StoreUser& user_;
};

Task<void> StoreUser::answer(core::Reactor* reactor) {
    reactor_ = reactor;
    co_await Awaiter(*this);
}

void StoreUser::begin() {
    is_answered_ = false;
    is_within_call_ = true;
}

void StoreUser::end() {
    ENSURE(!is_within_call_);
    if (std::exchange(reads_again_, false)) {
        begin();
        store_.read(*this);
        is_within_call_ = false;
        return;
    }
    is_answered_ = true;
    if (handle_) reactor_->schedule(std::exchange(handle_, nullptr));
}

Result<ViewHandle> StoreUser::read() {
    begin();
    store_.read(*this);
    is_within_call_ = false;
    wait_(*this);
    return *std::exchange(read_, std::nullopt);
}

Swapped StoreUser::swap(ViewHandle next) {
    begin();
    const ViewNumber expected = next->number() - 1;
    store_.swap(expected, std::move(next), *this);
    is_within_call_ = false;
    wait_(*this);
    return *std::exchange(swapped_, std::nullopt);
}

void StoreUser::on_view_read(Result<ViewHandle> view) {
    read_ = std::move(view);
    end();
}

void StoreUser::on_view_swapped(Swapped outcome) {
    swapped_ = outcome;
    end();
}

void check_view_store(StoreStage& stage, bool is_shared) {
    StoreUser* const first = stage.users().front();
    CHECK(first->read().value() == nullptr);
    CHECK(first->swap(1, 1) == Swapped::kNo);
    CHECK(first->read().value() == nullptr);
    CHECK(first->swap(0, 2) == Swapped::kYes);
    CHECK(first->swap(0, 3) == Swapped::kNo);
    CHECK(first->swap(4, 3) == Swapped::kNo);
    CHECK(first->swap(1, 4) == Swapped::kYes);
    // As long views as there are.
    const ViewHandle large = make_view(3, 5, 10'000);
    CHECK(first->swap(large) == Swapped::kYes);
    first->read_again_within_answer();
    CHECK((*first->read())->view() == large->view());

    stage.restart();
    const std::vector<StoreUser*> users = stage.users();
    CHECK((users.size() > 1) == is_shared);
    for (StoreUser* const user : users) {
        CAPTURE(user - users.front());
        CHECK((*user->read())->view() == large->view());
    }
    CHECK(users.back()->swap(3, 6) == Swapped::kYes);
    // One that has not read since.
    CHECK(users.front()->swap(3, 7) == (Swapped::kNo));
    CHECK(users.front()->swap(4, 8) == Swapped::kYes);
    for (StoreUser* const user : users) {
        const auto view = user->read();
        REQUIRE(view);
        CHECK((*view)->number() == 5);
        CHECK((*view)->view().writer.attempt == 8);
    }
}

}  // namespace fopd::eh::testing
