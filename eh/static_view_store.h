#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"
#include "eh/small_file.h"
#include "eh/view_store.h"

namespace fopd::eh {

// Keeps the newest view in a file of one node, which is always the root. No other node takes over:
// while that node is down, no epoch begins.
class StaticViewStore final : public ViewStore, SmallFileUser {
public:
    explicit StaticViewStore(SmallFile& file) : file_(file) {}

    bool is_shared() const override { return false; }
    void read(ViewStoreUser& user) override;
    void swap(ViewNumber expected, ViewHandle next, ViewStoreUser& user) override;

private:
    void on_file_read(Result<std::vector<std::byte>> bytes) override;
    void on_file_replaced(Replaced replaced) override;

    SmallFile& file_;
    ViewStoreUser* user_ = nullptr;  // The user of the call in flight.
    ViewNumber expected_ = 0;
    ViewHandle next_;  // Null: a read is in flight.
};

}  // namespace fopd::eh
