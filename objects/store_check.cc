#include "objects/store_check.h"

#include <string>
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

Result<void> check_reply(store::Bytes reply) {
    const auto read = read_recorded_reply(reply);
    if (!read) return std::unexpected(read.error());
    return {};
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

    void seen(store::Fid fid) override { recount_.seen(fid); }
    void all_seen() override { recount_.all_seen(); }
    void compare_counts();
    void report(Duration took);

    Stores& stores_;
    HomeVolume& home_;
    core::CancelSource cancel_;
    ObjectCount recount_;
    const store::VolumeCheckOptions options_;
    store::VolumeCheck* check_ = nullptr;  // Null unless it runs.
    CheckStatus status_{.state = CheckStatus::State::kRunning};
};

Task<void> StoreCheck::Run::carry_out(HomeVolume::Hold /*hold*/) {
    const Instant began_at = stores_.parts().reactor.now();
    store::VolumeCheck check(home_.volume(), options_);
    check_ = &check;
    home_.set_recount(&recount_);
    const auto done = co_await check.run();
    if (done) compare_counts();
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
    const std::uint64_t there = recount_.get();
    const std::uint64_t counted = home_.objects().get();
    if (there == counted) return;
    check_->find({.reason = "there are " + std::to_string(there) + " objects, and " +
                            std::to_string(counted) + " are counted"});
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
