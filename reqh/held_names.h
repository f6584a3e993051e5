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

// The names that a fop holds: while it holds a name, no other operation can give the name to
// another object or take it away. REQUIRES: let_go() is called before the fop ends.
class HeldNames {
public:
    // The fop outlives it.
    explicit HeldNames(const RunningFop& fop) : fop_(fop) {}
    HeldNames(const HeldNames&) = delete;
    HeldNames& operator=(const HeldNames&) = delete;

    struct Wanted {
        objects::ObjectName name{};
        // The fop takes the name away from the object that has it, as a rename or a delete does.
        // Then the name must have an owner (kNotFound), and the wait has a limit (kBusy).
        bool to_remove = false;
    };
    // Waits for the names. All fops take their names in the same order, so no two wait for each
    // other. REQUIRES: it holds no names.
    Task<Granted<>> hold(std::span<const Wanted> wanted);
    // The hold of wanted[index].
    const objects::NameHold& at(std::size_t index) const { return *holds_[index]; }
    // Ends all holds. Sends one message for each name of another locality.
    Task<void> let_go();
    // Ends all holds without messages. REQUIRES: the change of the names is finished, so that
    // other localities have ended their holds themselves.
    void let_go_after_change();

private:
    core::WaitOptions wait_to_remove() const;
    Refusal why_not_held(const Error& error) const;

    const RunningFop& fop_;
    std::array<std::optional<objects::NameHold>, 2> holds_;
};

}  // namespace fopd::reqh
