#include "reqh/change_space.h"

namespace fopd::reqh {

Granted<> ChangeSpace::check_room(std::uint64_t blocks) const {
    const store::SpaceUse use = fop_.volume().space_use();
    // Pending blocks count: they become free without further action.
    if (blocks <= use.free_blocks + use.waiting_blocks) return {};
    return refused(fop::Status::kNoSpace, "not enough space left on the disk of the object");
}

Task<Granted<store::DiskRange>> ChangeSpace::allocate(std::uint32_t blocks) {
    const Waiting waiting = fop_.waits_for({.what = WaitsFor::kSpace});
    const auto range = co_await change_.allocate(blocks, fop_.wait());
    if (!range) co_return refused(why_no_space(range.error()));
    co_return *range;
}

Task<Granted<>> ChangeSpace::allocate_to_free(std::uint32_t count) {
    const Waiting waiting = fop_.waits_for({.what = WaitsFor::kSpace});
    const auto allocated = co_await change_.allocate_to_free(count, fop_.wait());
    if (!allocated) co_return refused(why_no_space(allocated.error()));
    co_return Granted<>{};
}

Refusal ChangeSpace::why_no_space(const Error& error) {
    if (error.code != Errc::kNoSpace) return untraced(error);
    return {.status = fop::Status::kNoSpace, .words = "there is no space left on its disk"};
}

Granted<> ChangeSpace::check_quota(objects::PoolOwner whose, objects::Amount amount) {
    objects::DiskUse& use = fop_.home().use();
    const auto verdict = use.check(use.owner(whose), amount);
    if (verdict == objects::DiskUse::Verdict::kTaken) return {};
    return refused(why_over_quota(whose, amount, verdict));
}

Granted<> ChangeSpace::charge(objects::PoolOwner whose, objects::Amount amount,
                              objects::DiskUse::Scope scope) {
    const auto verdict = change_.charge(whose, amount, scope);
    if (verdict == objects::DiskUse::Verdict::kTaken) return {};
    return refused(why_over_quota(whose, amount, verdict));
}

Granted<> ChangeSpace::charge_holes(store::Fid fid, store::BlockRange blocks) {
    const auto charged = change_.charge_holes(fid, blocks);
    if (!charged) return refused(charged.error());
    if (charged->verdict == objects::DiskUse::Verdict::kTaken) return {};
    return refused(
        why_over_quota(change_.block_owner(), {.blocks = charged->blocks}, charged->verdict));
}

Refusal ChangeSpace::why_over_quota(objects::PoolOwner whose, objects::Amount wanted,
                                    objects::DiskUse::Verdict verdict) {
    const objects::LayoutPool* const pool = fop_.stores().layout().find_pool(whose.pool);
    const std::string_view pool_name = pool == nullptr ? std::string_view() : pool->name;
    return words_.over_quota(fop_.home().use().owner(whose), pool_name, wanted, verdict);
}

}  // namespace fopd::reqh
