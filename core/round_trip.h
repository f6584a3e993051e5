#pragma once

#include "core/ensure.h"
#include "core/mailbox.h"
#include "core/reactor.h"

namespace fopd::core {

// A message that goes to another reactor and comes back. The derived class defines the work at each
// end (arrive(), come_back()) and which reactor may use its members in between. Neither direction
// blocks or allocates.
class RoundTrip : Message {
public:
    bool under_way() const { return under_way_; }

protected:
    RoundTrip(Reactor& here, Reactor& there) : Message(&deliver), here_(here), there_(there) {}
    ~RoundTrip() = default;

    // Sends the message to `there`. REQUIRES: not under_way().
    void depart() {
        ENSURE(!under_way_);
        under_way_ = true;
        is_outbound_ = true;
        there_.post(*this);
    }
    // Sends the message back. Called on `there`, exactly once for each arrive(), within it or
    // later.
    void go_back() {
        is_outbound_ = false;
        here_.post(*this);
    }

    Reactor& here() const { return here_; }
    Reactor& there() const { return there_; }

private:
    virtual void arrive() = 0;  // Called on `there`.
    // Called on `here`. May call depart() again or destroy this object.
    virtual void come_back() = 0;

    static void deliver(Message& message) {
        auto& self = static_cast<RoundTrip&>(message);
        if (self.is_outbound_) {
            self.arrive();
            return;
        }
        self.under_way_ = false;
        self.come_back();
    }

    Reactor& here_;
    Reactor& there_;
    bool under_way_ = false;    // Used on `here` only.
    bool is_outbound_ = false;  // Used by the reactor that holds the message.
};

}  // namespace fopd::core
