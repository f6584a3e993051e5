#pragma once

#include <cstdint>
#include <optional>

#include "eh/view.h"

namespace fopd::eh {

// The outcome of a compare-and-swap. After kUnknown it may have happened, may happen still, or
// never: reading the store until it has a newer view tells, by the view's writer. kNo: the view was
// not written and will not be, also by no earlier swap of the same view.
enum class Swapped : std::uint8_t { kYes, kNo, kUnknown };

// Receives the outcome of a call of a ViewStore.
class ViewStoreUser {
public:
    // Null: the store has no view yet.
    virtual void on_view_read(Result<ViewHandle> view) = 0;
    virtual void on_view_swapped(Swapped outcome) = 0;

protected:
    ~ViewStoreUser() = default;
};

// Keeps the newest view. Linearizable. A user has one call in flight at a time, and is answered
// later, never within the call.
class ViewStore {
public:
    virtual ~ViewStore() = default;

    // Whether any member may become root, as it reaches the store; or only the one that has it.
    virtual bool is_shared() const = 0;
    virtual void read(ViewStoreUser& user) = 0;
    // Writes `next` if the newest view has the number `expected`, 0 being none.
    // REQUIRES: next->number() == expected + 1.
    virtual void swap(ViewNumber expected, ViewHandle next, ViewStoreUser& user) = 0;
};

}  // namespace fopd::eh
