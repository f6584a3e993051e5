#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "core/task.h"
#include "objects/names.h"
#include "reqh/refusal.h"
#include "reqh/running_fop.h"

namespace fopd::reqh {

// The names that a fop holds: no other operation can give them to another object meanwhile. All
// holds are released before the fop ends.
class HeldNames {
public:
    // The fop outlives it.
    explicit HeldNames(const RunningFop& fop) : fop_(fop) {}
    HeldNames(const HeldNames&) = delete;
    HeldNames& operator=(const HeldNames&) = delete;

    struct Wanted {
        objects::ObjectName name{};
        bool to_leave = false;
    };
    // Waits for the names, in the order that all fops keep. REQUIRES: it holds none.
    Task<Granted<>> hold(std::span<const Wanted> wanted);
    // `index` is the index of the name in `wanted`.
    const objects::NameHold& at(std::size_t index) const { return *holds_[index]; }
    // Lets go of the names that no change was made under. One message for each on another locality.
    Task<void> let_go();
    // Lets go of names that were changed: their parts were told of the change.
    void let_go_told();

private:
    core::WaitOptions wait_to_leave() const;
    Refusal why_not_held(const Error& error) const;

    const RunningFop& fop_;
    std::array<std::optional<objects::NameHold>, 2> holds_;
};

}  // namespace fopd::reqh
