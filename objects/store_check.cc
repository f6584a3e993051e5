#include "objects/store_check.h"

#include <string_view>
#include <utility>

#include "core/cancel.h"
#include "objects/fids.h"
#include "objects/home_volume.h"
#include "objects/reply_record.h"
#include "store/volume_check.h"

namespace fopd::objects {

namespace {

// Further findings are only in the report.
constexpr std::size_t kEventsMax = 20;
// How often the use of a disk is counted again because the disk was in use meanwhile.
constexpr unsigned kIdleTries = 3;

Result<void> check_reply(store::Bytes reply) {
    const auto read = read_recorded_reply(reply);
    if (!read) return std::unexpected(read.error());
    return {};
}

std::uint64_t total_of(const ObjectCount::Counts& counts) {
    std::uint64_t total = 0;
    for (const auto& [pool, count] : counts) total += count;
    return total;
}

}  // namespace

const char* to_string(CheckStatus::State state) {
    switch (state) {
        case CheckStatus::State::kNever: return "never";
        case CheckStatus::State::kRunning: return "running";
        case CheckStatus::State::kDone: return "done";
        case CheckStatus::State::kEnded: return "ended";
        case CheckStatus::State::kFailed: return "failed";
    }
    return "unknown";
}

class StoreCheck::Run final : core::CancelHook, store::ObjectWatch {
public:
    Run(Stores& stores, HomeVolume& home, std::uint64_t bytes_per_second)
        : CancelHook(&on_stop),
          stores_(stores),
          home_(home),
          options_{.bytes_per_second = bytes_per_second,
                   .cancel = &cancel_,
                   .check_reply = &check_reply,
                   .objects = this} {
        home.ending().add(*this);
    }
    Run(const Run&) = delete;
    Run& operator=(const Run&) = delete;
    ~Run() override { CancelHook::unlink(); }

    void end() { cancel_.cancel(); }
    const CheckStatus& status() {
        if (check_ != nullptr) {
            status_.report = check_->report();
            status_.stage = check_->stage();
        }
        return status_;
    }
    bool is_running() const { return status_.state == CheckStatus::State::kRunning; }
    Task<void> carry_out(HomeVolume::Hold hold);

private:
    static void on_stop(CancelHook& hook) { static_cast<Run&>(hook).end(); }

    void seen(store::Fid fid, const store::Object* object) override {
        if (object == nullptr) knows_all_pools_ = false;
        recount_.seen(fid, object == nullptr ? PoolId{0} : object->pool);
    }
    void all_seen() override { recount_.all_seen(); }
    void compare_counts();
    Task<Result<void>> compare_use();
    Task<bool> is_idle();
    std::string name_of_pool(PoolId pool) const;
    void report(Duration took);

    Stores& stores_;
    HomeVolume& home_;
    core::CancelSource cancel_;
    ObjectCount recount_;
    bool knows_all_pools_ = true;  // No record of an object was unreadable.
    const store::VolumeCheckOptions options_;
    store::VolumeCheck* check_ = nullptr;  // Null unless it runs.
    CheckStatus status_{.state = CheckStatus::State::kRunning};
};

Task<void> StoreCheck::Run::carry_out(HomeVolume::Hold /*hold*/) {
    const Instant began_at = stores_.parts().reactor.now();
    store::VolumeCheck check(home_.volume(), options_);
    check_ = &check;
    home_.set_recount(&recount_);
    auto done = co_await check.run();
    if (done) compare_counts();
    if (done) done = co_await compare_use();
    home_.set_recount(nullptr);
    check_ = nullptr;
    CancelHook::unlink();
    status_.report = check.report();
    status_.stage.clear();
    status_.state = CheckStatus::State::kDone;
    if (!done) {
        const bool is_ended = done.error().code == Errc::kCancelled;
        status_.state = is_ended ? CheckStatus::State::kEnded : CheckStatus::State::kFailed;
        status_.problem = done.error().context;
    }
    report(stores_.parts().reactor.now() - began_at);
}

// Both counts include creations and removals, noted in the same reactor turns.
void StoreCheck::Run::compare_counts() {
    if (!home_.objects().is_whole() || !recount_.is_whole()) return;
    ObjectCount::Counts there = recount_.get();
    ObjectCount::Counts counted = home_.objects().get();
    if (!knows_all_pools_) {
        if (total_of(there) == total_of(counted)) return;
        check_->find({.reason = "there are " + std::to_string(total_of(there)) + " objects, and " +
                                std::to_string(total_of(counted)) + " are counted"});
        return;
    }
    for (const auto& [pool, count] : counted) there.try_emplace(pool, 0);
    for (const auto& [pool, count] : there) {
        if (count == counted[pool]) continue;
        check_->find({.reason = "there are " + std::to_string(count) + " objects of pool " +
                                name_of_pool(pool) + ", and " + std::to_string(counted[pool]) +
                                " are counted"});
    }
}

std::string StoreCheck::Run::name_of_pool(PoolId pool) const {
    const LayoutPool* const found = stores_.layout().find_pool(pool);
    return found == nullptr ? "number " + std::to_string(pool) : found->name;
}

// Whether all changes of the disk are durable, and nobody else uses it.
Task<bool> StoreCheck::Run::is_idle() {
    const core::WaitOptions wait{.cancel = &cancel_};
    const auto synced = co_await home_.volume().sync(wait);
    co_return synced&& home_.hold_count() == 1 &&
        home_.volume().durable_seq() == home_.volume().newest().seq;
}

// Blocks and objects of the owners, as their quotas count them. Changes charge before their records
// are written, and refund afterwards, so the counts agree only while the disk is idle; on a disk
// that is never idle they are not compared.
Task<Result<void>> StoreCheck::Run::compare_use() {
    for (unsigned tries = 0; tries < kIdleTries && home_.volume().serving(); ++tries) {
        const bool was_idle = co_await is_idle();
        if (cancel_.cancelled()) {
            co_return std::unexpected(
                Error{.code = Errc::kCancelled, .context = "check of a disk"});
        }
        if (!was_idle) continue;
        const std::uint64_t seq = home_.volume().newest().seq;
        auto there = co_await home_.volume().count_owners();
        // The check has reported already that the index cannot be read.
        if (!there) break;
        const bool is_same = home_.hold_count() == 1 && home_.volume().newest().seq == seq;
        if (!is_same) continue;
        store::PoolShares counted = home_.use().shares();
        for (const auto& [pool, owners] : counted) {
            for (const auto& [owner, share] : owners) (*there)[pool].try_emplace(owner);
        }
        for (const auto& [pool, owners] : *there) {
            for (const auto& [owner, share] : owners) {
                const store::OwnerShare known = counted[pool][owner];
                if (known == share) continue;
                check_->find({.reason = owner + " has " + std::to_string(share.blocks) +
                                        " blocks and " + std::to_string(share.objects) +
                                        " objects in pool " + name_of_pool(pool) + ", and " +
                                        std::to_string(known.blocks) + " and " +
                                        std::to_string(known.objects) + " are counted"});
            }
        }
        break;
    }
    co_return Result<void>{};
}

void StoreCheck::Run::report(Duration took) {
    status_.took = took;
    core::EventSink& events = stores_.parts().events;
    const std::uint64_t slot = home_.slot();
    for (std::size_t i = 0; i < status_.report.findings.size() && i < kEventsMax; ++i) {
        const store::CheckFinding& finding = status_.report.findings[i];
        const std::string object = finding.object ? format_fid(*finding.object) : "";
        const std::string name = finding.object ? home_.name_of(*finding.object) : "";
        core::emit_each(events, core::Level::kError, "store.check_found",
                        {{"device", home_.device_name()},
                         {"slot", slot},
                         {"object", std::string_view(object)},
                         {"name", std::string_view(name)},
                         {"block", finding.range ? finding.range->block : std::uint64_t{0}},
                         {"what", std::string_view(finding.reason)}});
    }
    const bool is_well =
        status_.state == CheckStatus::State::kDone && status_.report.finding_count == 0;
    core::emit(events, is_well ? core::Level::kInfo : core::Level::kWarn, "store.checked",
               {{"device", home_.device_name()},
                {"slot", slot},
                {"result", std::string_view(to_string(status_.state))},
                {"objects", status_.report.objects},
                {"findings", status_.report.finding_count},
                {"seconds", in_seconds(took)}});
}

StoreCheck::StoreCheck(Stores& stores, std::uint64_t bytes_per_second)
    : stores_(stores), bytes_per_second_(bytes_per_second) {}

StoreCheck::~StoreCheck() = default;

Result<void> StoreCheck::begin(store::Slot slot) {
    HomeVolume* const home = stores_.find(slot);
    if (home == nullptr || home->ending().cancelled()) {
        return std::unexpected(Error{.code = Errc::kNotFound, .context = "the disk is not there"});
    }
    std::unique_ptr<Run>& run = runs_[slot];
    if (run != nullptr && run->is_running()) {
        return std::unexpected(Error{.code = Errc::kBusy, .context = "a check is under way"});
    }
    run = std::make_unique<Run>(stores_, *home, bytes_per_second_);
    HomeVolume::Hold hold(*home);
    stores_.parts().reactor.spawn(stores_.duties(), run->carry_out(std::move(hold)));
    return {};
}

void StoreCheck::end(store::Slot slot) {
    const auto run = runs_.find(slot);
    if (run != runs_.end() && run->second->is_running()) run->second->end();
}

CheckStatus StoreCheck::status(store::Slot slot) const {
    const auto run = runs_.find(slot);
    return run == runs_.end() ? CheckStatus{} : run->second->status();
}

std::uint64_t StoreCheck::finding_count(store::Slot slot) const {
    const auto run = runs_.find(slot);
    return run == runs_.end() ? 0 : run->second->status().report.finding_count;
}

}  // namespace fopd::objects
