#pragma once

#include <cstddef>
#include <expected>
#include <vector>

#include "core/result.h"

namespace fopd::eh {

// Why a file was not replaced.
struct NotReplaced {
    Error error{.code = Errc::kIo};
    // The file certainly has its old bytes. False: it has the old or the new bytes.
    bool has_old_bytes = false;
};
using Replaced = std::expected<void, NotReplaced>;

// Receives the outcome of a call of a SmallFile.
class SmallFileUser {
public:
    // kNotFound: there is no file yet.
    virtual void on_file_read(Result<std::vector<std::byte>> bytes) = 0;
    virtual void on_file_replaced(Replaced replaced) = 0;

protected:
    ~SmallFileUser() = default;
};

// A small file that is replaced as a whole, durably. One call is in flight at a time. The user is
// answered later, never within the call, and not at all after the owner of the file has closed it.
class SmallFile {
public:
    virtual ~SmallFile() = default;

    virtual void read(SmallFileUser& user) = 0;
    virtual void replace(std::vector<std::byte> bytes, SmallFileUser& user) = 0;
};

}  // namespace fopd::eh
