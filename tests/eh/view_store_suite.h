#pragma once

#include <coroutine>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "eh/view_store.h"
#include "tests/core/reactor_kinds.h"

namespace fopd::eh::testing {

// A lawful view; `attempt` tells two of one number apart.
ViewHandle make_view(ViewNumber number, std::uint64_t attempt, std::size_t members = 1);

// Calls a store, and has the answer when the call returns.
class StoreUser final : public ViewStoreUser {
public:
    // `wait` returns when the user was answered.
    StoreUser(ViewStore& store, std::function<void(StoreUser&)> wait)
        : store_(store), wait_(std::move(wait)) {}

    Result<ViewHandle> read();
    Swapped swap(ViewHandle next);
    Swapped swap(ViewNumber expected, std::uint64_t attempt) {
        return swap(make_view(expected + 1, attempt));
    }
    // A read that the store is asked for while it gives this user its answer.
    void read_again_within_answer() { reads_again_ = true; }

    // For `wait`: on a reactor.
    bool is_answered() const { return is_answered_; }
    Task<void> answer(core::Reactor* reactor);

private:
    class Awaiter;
    void on_view_read(Result<ViewHandle> view) override;
    void on_view_swapped(Swapped outcome) override;
    void begin();
    void end();

    ViewStore& store_;
    std::function<void(StoreUser&)> wait_;
    std::optional<Result<ViewHandle>> read_;
    std::optional<Swapped> swapped_;
    bool is_answered_ = false;
    bool is_within_call_ = false;
    bool reads_again_ = false;
    core::Reactor* reactor_ = nullptr;
    std::coroutine_handle<> handle_;
};

// A view store of some kind, empty at first, in working order.
class StoreStage {
public:
    virtual ~StoreStage() = default;
    // Ways to one view, as several nodes have them; one, if it is not shared.
    virtual std::vector<StoreUser*> users() = 0;
    // Makes them anew, as by a restart of all nodes.
    virtual void restart() = 0;
};

// What every view store keeps.
void check_view_store(StoreStage& stage, bool is_shared);

}  // namespace fopd::eh::testing
