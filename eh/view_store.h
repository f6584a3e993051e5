#pragma once

#include <cstdint>
#include <optional>

#include "eh/view.h"

namespace fopd::eh {

// The outcome of a compare-and-swap. kNo: the view is not written and will not be, also not by an
// earlier swap of the same view. kUnknown: the view may have been written, may be written later, or
// never. The caller reads the store until it has a newer view; the `writer` of that view tells
// whether the swap has succeeded.
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

    // Whether all members reach the store, so that each of them can become root. False: only one
    // member does.
    virtual bool is_shared() const = 0;
    virtual void read(ViewStoreUser& user) = 0;
    // Writes `next` if the newest view in the store has the number `expected`; 0: if the store has
    // no view. REQUIRES: next->number() == expected + 1.
    virtual void swap(ViewNumber expected, ViewHandle next, ViewStoreUser& user) = 0;
};

}  // namespace fopd::eh
