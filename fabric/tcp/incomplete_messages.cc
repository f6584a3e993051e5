#include "fabric/tcp/incomplete_messages.h"

#include <utility>

#include "core/ensure.h"

namespace fopd::fabric {

IncompleteMessage& IncompleteMessages::worst() {
    Share* most = &strangers_;
    for (auto& [name, share] : of_principals_) {
        if (share.bytes > most->bytes) most = &share;
    }
    return most->messages.front();
}

IncompleteMessage::IncompleteMessage(IncompleteMessages& all)
    : all_(all), share_(&all.strangers_), principal_(all.of_principals_.end()) {}

IncompleteMessage::~IncompleteMessage() {
    holds(0);
    if (principal_ == all_.of_principals_.end()) return;
    if (--share_->connections == 0) all_.of_principals_.erase(principal_);
}

void IncompleteMessage::belongs_to(const std::string& principal) {
    ENSURE(principal_ == all_.of_principals_.end());
    const std::size_t bytes = bytes_;
    holds(0);
    principal_ = all_.of_principals_.try_emplace(principal).first;
    share_ = &principal_->second;
    ++share_->connections;
    holds(bytes);
}

void IncompleteMessage::holds(std::size_t bytes) {
    const std::size_t before = std::exchange(bytes_, bytes);
    all_.bytes_ = all_.bytes_ - before + bytes;
    share_->bytes = share_->bytes - before + bytes;
    if (bytes == 0) {
        unlink();
    } else if (!linked()) {
        share_->messages.push_back(*this);
    }
}

}  // namespace fopd::fabric
