#pragma once

#include <cstddef>
#include <vector>

#include "core/result.h"

namespace fopd::eh {

// Receives the outcome of a call of a SmallFile.
class SmallFileUser {
public:
    // kNotFound: there is no file yet.
    virtual void on_file_read(Result<std::vector<std::byte>> bytes) = 0;
    // After an error the file has the old bytes or the new ones.
    virtual void on_file_replaced(Result<void> replaced) = 0;

protected:
    ~SmallFileUser() = default;
};

// A small file that is replaced as a whole, durably. One call at a time; answered later, never
// within the call.
class SmallFile {
public:
    virtual ~SmallFile() = default;

    virtual void read(SmallFileUser& user) = 0;
    virtual void replace(std::vector<std::byte> bytes, SmallFileUser& user) = 0;
};

}  // namespace fopd::eh
