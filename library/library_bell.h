#pragma once

namespace fopd::library {

// Is woken when the staging disks of a locality, or the media, have news. Called on the library's
// reactor.
class LibraryBell {
public:
    virtual ~LibraryBell() = default;
    virtual void ring() = 0;
};

}  // namespace fopd::library
