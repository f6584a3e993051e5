// What pools on tape add to the problems that calls may have.

#include "sim/object_book.h"

namespace fopd::sim {

// REQUIRES: no call is in progress.
void ObjectBook::repair_tapes() {
    tapes_bad_until_ = cartridges_bad_until_ = world_.now();
    on_bad_cartridges_.clear();
}

bool ObjectBook::do_tapes_explain(const ObjectWish& wish, const Ended& ended) const {
    const client::Problem& problem = *ended.problem;
    const bool is_sync = wish.kind == ObjectWish::Kind::kSyncTape;
    switch (problem.status) {
        case fop::Status::kStaging: return ended.limited;
        case fop::Status::kNotFound: return wish.kind == ObjectWish::Kind::kCancelRecall;
        // The object is not on tape yet, or is being used; or the changer lets no library open, so
        // that nothing on tape is waited for.
        case fop::Status::kBusy:
            return wish.kind == ObjectWish::Kind::kRelease ||
                   (ended.tapes_excused &&
                    (is_sync || problem.words.starts_with("the tape library is not open")));
        case fop::Status::kCancelled: return cancelled_.contains(wish.fid);
        case fop::Status::kCorrupt:
        case fop::Status::kMediumMissing:
            return ended.tapes_excused || damaged_.contains(wish.fid) ||
                   (ended.cartridges_excused && on_bad_cartridges_.contains(wish.fid));
        case fop::Status::kInternal:
            return is_sync && (ended.tapes_excused || ended.cartridges_excused || lacks_tape_ ||
                               space_excused_);
        default: return false;
    }
}

}  // namespace fopd::sim
