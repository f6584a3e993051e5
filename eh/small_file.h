#pragma once

#include <cstddef>
#include <expected>
#include <vector>

#include "core/result.h"

namespace fopd::eh {

// Why a file was not replaced.
struct NotReplaced {
    Error error{.code = Errc::kIo};
    bool has_old_bytes = false;  // Certainly; otherwise it has the old bytes or the new ones.
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

// A small file that is replaced as a whole, durably. One call at a time; answered later, never
// within the call. When its owner has closed it, calls are not answered.
class SmallFile {
public:
    virtual ~SmallFile() = default;

    virtual void read(SmallFileUser& user) = 0;
    virtual void replace(std::vector<std::byte> bytes, SmallFileUser& user) = 0;
};

}  // namespace fopd::eh
