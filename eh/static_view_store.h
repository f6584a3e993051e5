#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "core/result.h"
#include "eh/view_store.h"

namespace fopd::eh {

// Receives the outcome of a call of a ViewFile.
class ViewFileUser {
public:
    // kNotFound: there is no file yet.
    virtual void on_file_read(Result<std::vector<std::byte>> bytes) = 0;
    // After an error the file has the old bytes or the new ones.
    virtual void on_file_replaced(Result<void> replaced) = 0;

protected:
    ~ViewFileUser() = default;
};

// A small file that is replaced as a whole, durably. One call at a time; answered later, never
// within the call.
class ViewFile {
public:
    virtual ~ViewFile() = default;

    virtual void read(ViewFileUser& user) = 0;
    virtual void replace(std::vector<std::byte> bytes, ViewFileUser& user) = 0;
};

// Keeps the newest view in a file of the one node that is root. There is no fail-over: while that
// node is down, no epoch begins.
class StaticViewStore final : public ViewStore, ViewFileUser {
public:
    explicit StaticViewStore(ViewFile& file) : file_(file) {}

    bool is_shared() const override { return false; }
    void read(ViewStoreUser& user) override;
    void swap(ViewNumber expected, ViewHandle next, ViewStoreUser& user) override;

private:
    void on_file_read(Result<std::vector<std::byte>> bytes) override;
    void on_file_replaced(Result<void> replaced) override;

    ViewFile& file_;
    ViewStoreUser* user_ = nullptr;  // Of the call in flight.
    ViewNumber expected_ = 0;
    ViewHandle next_;  // Null: a read is in flight.
};

}  // namespace fopd::eh
