#include "lrs/fifo.h"

#include "core/intrusive_list.h"

namespace fopd::lrs {

namespace {

class Fifo final : public Policy {
public:
    void push(Request& request, Instant /*now*/) override { waiting_.push_back(request); }
    Next pop(Instant /*now*/) override {
        return {.request = static_cast<Request*>(waiting_.pop_front())};
    }
    void remove(Request& request) override { request.PolicyPlace::unlink(); }
    void complete(Request& /*request*/, Instant /*now*/) override {}

private:
    core::IntrusiveList<PolicyPlace> waiting_;
};

}  // namespace

std::unique_ptr<Policy> make_fifo() {
    return std::make_unique<Fifo>();
}

}  // namespace fopd::lrs
