#pragma once

namespace fopd::library {

// Wakes the library when the staging disks of a locality or the table of media have changed. Called
// on the library's reactor.
class LibraryBell {
public:
    virtual ~LibraryBell() = default;
    virtual void ring() = 0;
};

}  // namespace fopd::library
