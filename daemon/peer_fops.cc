#include "daemon/peer_fops.h"

#include "fop/fop_type.h"

namespace fopd::daemon {

void PeerFops::on_incoming(fabric::IncomingFop& fop) {
    const fop::FopType* const type = fop::find_fop_type(fop.request().type);
    const bool is_of_peers = type != nullptr && type->callers == fop::Callers::kPeers;
    if (!is_of_peers) return others_.on_incoming(fop);
    if (epochs_ != nullptr) return epochs_->on_message(fop);
    fop.reply({.id = fop.request().id,
               .status = fop::Status::kDenied,
               .words = "epoch messages go to the first locality"});
}

}  // namespace fopd::daemon
