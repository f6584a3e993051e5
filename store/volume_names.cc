#include "store/volume_names.h"

#include <string>

#include "core/ensure.h"

namespace fopd::store {

namespace {

constexpr std::size_t kToldAtOnce = 256;

NameClaim claim_of(Fid fid, const Object& object) {
    return {.pool = object.pool,
            .name = std::string(object.name),
            .version = object.name_version,
            .fid = fid};
}

bool claims_the_same(const Object& a, const Object& b) {
    return a.pool == b.pool && a.name == b.name && a.name_version == b.name_version;
}

}  // namespace

// Tells the sink every claim of the objects that it visits.
class VolumeNames::Teller final : public MapVisitor {
public:
    explicit Teller(NameSink& sink) : sink_(sink) {}
    Result<void> object(Fid fid, const Object& object) override {
        if (!object.name.empty()) changes_.push_back({.claim = claim_of(fid, object)});
        return {};
    }
    Task<Result<void>> between_turns() override {
        if (changes_.size() < kToldAtOnce) co_return Result<void>{};
        co_return co_await tell();
    }
    Task<Result<void>> tell() {
        const auto told = co_await sink_.tell(&changes_);
        changes_.clear();
        co_return told;
    }

private:
    NameSink& sink_;
    NameChanges changes_;
};

VolumeNames::VolumeNames(const Parts& parts, devices::DiskId disk, Slot slot)
    : index_(parts.index),
      map_(parts.map),
      sink_(parts.sink),
      disk_(disk),
      slot_(slot),
      told_(parts.reactor) {}

Task<Result<std::uint64_t>> VolumeNames::ask() {
    if (sink_ == nullptr) co_return 0;
    const auto known = co_await sink_->known(disk_);
    if (!known) co_return known;
    const auto newest = map_.newest_name();
    map_.release();
    if (!newest) co_return newest;
    newest_ = *newest;
    kept_ = *known;
    if (*known >= *newest && index_.applied() > 0) co_return known;
    const auto begun = co_await begin_anew();
    if (!begun) co_return std::unexpected(begun.error());
    co_return known;
}

// The sink forgets durably before the index changes. Otherwise, after a crash, a sink that has not
// been told everything might seem to know all names.
Task<Result<void>> VolumeNames::begin_anew() {
    const NameSink::Origin origin{.disk = disk_, .slot = slot_};
    const auto forgotten = co_await sink_->forget(origin);
    if (!forgotten) co_return forgotten;
    const NameSink::Kept nothing{.disk = disk_, .seq = 0};
    const auto kept = co_await sink_->keep(nothing);
    if (!kept) co_return kept;
    kept_ = 0;
    Teller teller(*sink_);
    MapVisitor* const visitor = &teller;
    const auto shown = co_await map_.for_each(KeyKind::kObject, visitor);
    if (!shown) co_return shown;
    co_return co_await teller.tell();
}

Result<void> VolumeNames::note(Fid fid, const Object* object, NameChanges& changes) {
    if (sink_ == nullptr) return {};
    const auto old = map_.find(fid);
    if (!old) return std::unexpected(old.error());
    const bool had_name = *old && !(*old)->name.empty();
    const bool has_name = object != nullptr && !object->name.empty();
    if (had_name && has_name && claims_the_same(**old, *object)) return {};
    if (had_name) {
        changes.push_back({.kind = NameChange::Kind::kEnded, .claim = claim_of(fid, **old)});
    }
    if (has_name) changes.push_back({.claim = claim_of(fid, *object)});
    return {};
}

void VolumeNames::note_newest(std::uint64_t seq) {
    newest_ = seq;
    map_.put_newest_name(seq);
}

void VolumeNames::begun(std::uint64_t seq) {
    note_newest(seq);
    untold_.insert(seq);
}

void VolumeNames::end_untold(std::uint64_t seq) {
    const auto found = untold_.find(seq);
    ENSURE(found != untold_.end());
    untold_.erase(found);
    told_.wake_all();
}

Task<Result<void>> VolumeNames::tell(const NameChanges* changes, std::uint64_t seq) {
    const auto told = co_await sink_->tell(changes);
    if (!told && !failure_) failure_ = told.error();
    end_untold(seq);
    co_return told;
}

Task<Result<void>> VolumeNames::tell_replayed(const NameChanges* changes, std::uint64_t seq) {
    note_newest(seq);
    co_return co_await sink_->tell(changes);
}

Task<Result<void>> VolumeNames::wait_told(core::CancelSource* cancel) {
    return wait_told_up_to(newest_, cancel);
}

Task<Result<void>> VolumeNames::wait_told_up_to(std::uint64_t seq, core::CancelSource* cancel) {
    while (!untold_.empty() && *untold_.begin() <= seq) {
        // Without a deadline: every change that was begun is finished.
        const core::WaitOptions wait{.cancel = cancel};
        const auto told = co_await told_.wait(wait);
        if (!told) co_return told;
    }
    if (failure_) co_return std::unexpected(*failure_);
    co_return Result<void>{};
}

Task<Result<void>> VolumeNames::keep(std::uint64_t seq, core::CancelSource* cancel) {
    if (newest_ <= kept_) co_return Result<void>{};
    const auto told = co_await wait_told_up_to(seq, cancel);
    if (!told) co_return told;
    const NameSink::Kept upto{.disk = disk_, .seq = seq};
    const auto kept = co_await sink_->keep(upto);
    if (!kept) co_return kept;
    kept_ = seq;
    co_return Result<void>{};
}

}  // namespace fopd::store
