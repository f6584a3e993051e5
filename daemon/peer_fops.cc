#include "daemon/peer_fops.h"

#include "fop/fop_type.h"

namespace fopd::daemon {

void PeerFops::on_incoming(fabric::IncomingFop& fop) {
    if (!fop::is_of_peers(fop.request().type)) return others_.on_incoming(fop);
    if (epochs_ != nullptr) return epochs_->on_message(fop);
    fop.reply({.id = fop.request().id,
               .status = fop::Status::kDenied,
               .words = "epoch messages go to the first locality"});
}

}  // namespace fopd::daemon
