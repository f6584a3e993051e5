#pragma once

#include "core/ensure.h"
#include "core/mailbox.h"
#include "core/reactor.h"

namespace fopd::core {

// A message to another reactor and back: what derives from it says what happens at either end, and
// whose its members are meanwhile. It waits for nobody, and allocates nothing.
class RoundTrip : Message {
public:
    bool under_way() const { return under_way_; }

protected:
    RoundTrip(Reactor& here, Reactor& there) : Message(&deliver), here_(here), there_(there) {}
    ~RoundTrip() = default;

    // Requires: it is not under way.
    void depart() {
        ENSURE(!under_way_);
        under_way_ = true;
        is_outbound_ = true;
        there_.post(*this);
    }
    // On `there`, once for each arrival: in arrive(), or later.
    void go_back() {
        is_outbound_ = false;
        here_.post(*this);
    }

    Reactor& here() const { return here_; }
    Reactor& there() const { return there_; }

private:
    virtual void arrive() = 0;     // On `there`.
    virtual void come_back() = 0;  // On `here`. It may depart again, or destroy this.

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
    bool under_way_ = false;    // Of `here`.
    bool is_outbound_ = false;  // Of whoever has the message.
};

}  // namespace fopd::core
