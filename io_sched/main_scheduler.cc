#include "io_sched/main_scheduler.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/ensure.h"
#include "core/gate.h"
#include "io_sched/io_device.h"
#include "io_sched/io_schedulers.h"

namespace fopd::io_sched {

namespace {

Error error_of(Errc code, const char* context) {
    return {.code = code, .context = context};
}

bool wait_is_over(const core::WaitOptions& wait, Instant now) {
    return wait.deadline <= now || (wait.cancel != nullptr && wait.cancel->cancelled());
}

Error why_over(const core::WaitOptions& wait) {
    const bool cancelled = wait.cancel != nullptr && wait.cancel->cancelled();
    return error_of(cancelled ? Errc::kCancelled : Errc::kTimedOut, "waiting for a device");
}

}  // namespace

// Adjacent writes of one pass that are given to the device as one operation.
struct MainScheduler::Joined {
    // Joining does not make larger operations faster.
    static constexpr std::size_t kBytesMax = 256UL << 10;

    std::array<IoShare, IoExecutor::kJoinedMax> shares;
    std::size_t count = 0;
    std::size_t size_bytes = 0;

    std::uint64_t offset() const { return shares.front().part->offset; }
    bool takes(const IoPart& part) const {
        return count > 0 && count < shares.size() && part.offset == offset() + size_bytes &&
               part.size_bytes <= kBytesMax - std::min(kBytesMax, size_bytes);
    }
    void add(const IoShare& share) {
        shares[count++] = share;
        size_bytes += share.part->size_bytes;
    }
};

// A device with the state that schedulers see, and its operations.
class MainScheduler::DeviceQueue final : public IoDevice {
public:
    DeviceQueue(MediumId medium, std::unique_ptr<IoExecutor> executor, const DepthOptions& depth)
        : IoDevice(medium, depth), executor_(std::move(executor)) {}
    DeviceQueue(const Drive& drive, std::unique_ptr<IoExecutor> executor)
        : IoDevice(drive), executor_(std::move(executor)) {}

    IoExecutor& executor() { return *executor_; }
    core::Gate& gate() { return gate_; }
    // Writes chosen in this pass, which may still be extended.
    Joined& joined() { return joined_; }
    // Between these its medium is taken out for another drive.
    void begin_take_out(IoType type) {
        leaving_.emplace(gate_.enter());
        begin(type);
        set_medium(std::nullopt);
    }
    void end_take_out(IoType type) {
        end(type);
        leaving_.reset();
    }

private:
    const std::unique_ptr<IoExecutor> executor_;
    core::Gate gate_;
    std::optional<core::Gate::Holder> leaving_;
    Joined joined_;
};

// -- requests: timer and cancellation --

void LimitedRequest::on_time(core::Timer& timer) {
    auto& self = static_cast<LimitedRequest&>(timer);
    self.owner_->give_up(self, why_over(self.wait));
}

void LimitedRequest::on_cancel(core::CancelHook& hook) {
    auto& self = static_cast<LimitedRequest&>(hook);
    self.owner_->give_up(self, why_over(self.wait));
}

void IoRequest::stamp(std::uint64_t arrival, Instant now) {
    ENSURE(!parts.empty());
    ENSURE(type != IoType::kFormat || parts.size() == 1);
    missing_count_ =
        type == IoType::kRead ? required_count : static_cast<std::uint16_t>(parts.size());
    ENSURE(missing_count_ > 0);
    ENSURE(missing_count_ <= parts.size());
    for (IoPart& part : parts) {
        part.state = IoPart::State::kWaiting;
        part.failed_on = 0;
    }
    arrival_ = arrival;
    arrived_at_ = now;
    waited_ = {};
}

void IoRequest::withdraw() {
    owner_->leave(*this);
}

// -- devices --

MainScheduler::MainScheduler(core::Reactor& reactor, const IoSchedSettings& settings)
    : Timer(&on_time),
      reactor_(reactor),
      settings_(settings),
      latency_goal_(settings.latency_goal.value_or(Duration::zero())),
      depth_max_(settings.depth_max),
      families_{IoSchedulers::load_from_config(settings),
                IoSchedulers::load_from_config(settings.tape, media_)} {
    reactor_.add_poller(*this);
}

MainScheduler::~MainScheduler() {
    while (WaitingPlace* const place = waiting_.pop_front()) {
        auto& request = static_cast<IoRequest&>(*place);
        of(request).remove_request(request);
        request.owner_ = nullptr;
        forget_limit(request);
    }
    while (WaitingPlace* const place = over_.pop_front()) {
        static_cast<IoRequest&>(*place).owner_ = nullptr;
    }
}

Result<void> MainScheduler::add_device(MediumId medium, std::unique_ptr<IoExecutor> executor,
                                       bool rotational) {
    ENSURE(!closed_);
    if (find(medium) != nullptr) {
        return std::unexpected(error_of(Errc::kBusy, "the medium is in another device"));
    }
    const DepthOptions depth = depth_options(rotational, latency_goal_, depth_max_);
    devices_.push_back(std::make_unique<DeviceQueue>(medium, std::move(executor), depth));
    of(*devices_.back()).add_device(*devices_.back());
    want_pass();
    return {};
}

Task<Result<void>> MainScheduler::remove_device(MediumId medium) {
    DeviceQueue* const leaving = find(medium);
    if (leaving == nullptr || leaving->gate().closed()) {
        co_return std::unexpected(error_of(Errc::kNotFound, "no device has the medium"));
    }
    co_await remove(leaving);
    co_return Result<void>{};
}

Task<void> MainScheduler::remove(DeviceQueue* leaving) {
    of(*leaving).remove_device(*leaving);
    want_pass();
    co_await leaving->gate().close(reactor_);
    std::erase_if(devices_, [leaving](const auto& device) { return device.get() == leaving; });
}

MainScheduler::DeviceQueue* MainScheduler::find(MediumId medium) const {
    for (const auto& device : devices_) {
        if (device->is_fixed() && device->medium() == medium) return device.get();
    }
    return nullptr;
}

const IoDevice* MainScheduler::device(MediumId medium) const {
    return find(medium);
}

// -- drives and their media --

Result<IoDevice*> MainScheduler::add_drive(const IoDevice::Drive& drive,
                                           std::unique_ptr<IoExecutor> executor) {
    ENSURE(!closed_);
    const auto has_number = [&](const auto& device) { return device->number() == drive.number; };
    if (std::ranges::any_of(devices_, has_number)) {
        return std::unexpected(error_of(Errc::kBusy, "another drive has the number"));
    }
    devices_.push_back(std::make_unique<DeviceQueue>(drive, std::move(executor)));
    DeviceQueue& added = *devices_.back();
    media_.add_drive(added);
    of(added).add_device(added);
    want_pass();
    return &added;
}

Task<void> MainScheduler::remove_drive(IoDevice& drive) {
    ENSURE(!drive.is_fixed());
    media_.remove_drive(drive);
    return remove(&static_cast<DeviceQueue&>(drive));
}

void MainScheduler::set_drive_state(IoDevice& drive, DeviceState state) {
    ENSURE(!drive.is_fixed());
    drive.set_state(state);
    media_.drive_changed();
    want_pass();
}

void MainScheduler::set_drive_medium(IoDevice& drive, std::optional<MediumId> medium) {
    ENSURE(drive.is_idle());
    drive.set_medium(medium);
    want_pass();
}

void MainScheduler::put_medium(const IoMedium& medium) {
    media_.put(medium);
    want_pass();
}

void MainScheduler::remove_medium(MediumId medium) {
    media_.remove(medium);
    want_pass();
}

void MainScheduler::use(const IoSchedSettings& settings) {
    if (closed_ || settings == settings_) return;
    settings_ = settings;
    std::vector<IoRequest*> waiting;
    waiting_.for_each(
        [&](WaitingPlace& place) { waiting.push_back(&static_cast<IoRequest&>(place)); });
    std::ranges::sort(waiting, {}, &IoRequest::arrival);
    for (IoRequest* const request : waiting) of(*request).remove_request(*request);
    for (const auto& device : devices_) of(*device).remove_device(*device);
    families_ = {IoSchedulers::load_from_config(settings),
                 IoSchedulers::load_from_config(settings.tape, media_)};
    for (const auto& device : devices_) {
        if (!device->gate().closed()) of(*device).add_device(*device);
    }
    for (IoRequest* const request : waiting) of(*request).push_request(*request);
    want_pass();
}

// -- pushing requests --

void MainScheduler::push(IoRequest& request) {
    ENSURE(!closed_);
    ENSURE(request.owner_ == nullptr);
    request.owner_ = this;
    if (request.keeps_age_) {
        request.stamp(request.arrival(), request.arrived_at());
    } else {
        request.stamp(++arrivals_, reactor_.now());
    }
    request.keeps_age_ = false;
    request.result = {};
    request.given_up_ = false;
    want_pass();
    if (is_over(request)) {
        request.result =
            std::unexpected(why_over(static_cast<const LimitedRequest&>(request).wait));
        request.missing_count_ = 0;
        over_.push_back(request);
        return;
    }
    let_wait(request);
}

void MainScheduler::cancel(IoRequest& request) {
    request.given_up_ = true;
    if (request.waiting()) give_up(request, error_of(Errc::kCancelled, "wait for a device"));
}

bool MainScheduler::is_over(const IoRequest& request) const {
    return request.is_limited_ &&
           wait_is_over(static_cast<const LimitedRequest&>(request).wait, reactor_.now());
}

// REQUIRES: its deadline has not passed, and it is not cancelled.
void MainScheduler::let_wait(IoRequest& request) {
    of(request).push_request(request);
    waiting_.push_back(request);
    waiting_counts_[static_cast<std::size_t>(request.type)].add(1);
    if (!request.is_limited_) return;
    auto& limited = static_cast<LimitedRequest&>(request);
    if (limited.wait.deadline != kNever) reactor_.arm(limited, limited.wait.deadline);
    if (limited.wait.cancel != nullptr) limited.wait.cancel->add(limited);
}

void MainScheduler::forget_limit(IoRequest& request) {
    if (!request.is_limited_) return;
    auto& limited = static_cast<LimitedRequest&>(request);
    limited.Timer::disarm();
    limited.CancelHook::unlink();
}

void MainScheduler::leave(IoRequest& request) {
    of(request).remove_request(request);
    forget_wait(request);
}

// It is in no scheduler any more.
void MainScheduler::forget_wait(IoRequest& request) {
    core::Counter& count = waiting_counts_[static_cast<std::size_t>(request.type)];
    count.set(count.get() - 1);
    request.WaitingPlace::unlink();
    forget_limit(request);
}

// -- a pass --

// Requests a pass at the end of this turn; if that pass is over, the timer makes another turn.
void MainScheduler::want_pass() {
    if (changed_) return;
    changed_ = true;
    reactor_.arm(*this, reactor_.now());
}

// The pass runs at the end of the turn that this begins.
void MainScheduler::on_time(core::Timer& timer) {
    static_cast<MainScheduler&>(timer).changed_ = true;
}

void MainScheduler::end_of_turn() {
    if (!changed_) return;
    changed_ = false;
    disarm();
    for (const auto& family : families_) {
        if (!family->has_devices() && !family->has_waiting()) continue;
        family->dispatch_devices(reactor_.now());
        while (IoRequest* const request = family->peek_request(reactor_.now())) schedule(*request);
    }
    for (const auto& device : devices_) choose_joined(*device);
    // Started in this turn, so that the kernel gets them at once; after all are chosen, because an
    // operation may end immediately.
    for (auto& [device, operation] : chosen_) reactor_.start(device->gate(), std::move(operation));
    chosen_.clear();
    end_over();
    if (changed_) return;  // There is another pass.
    Instant next = kNever;
    for (const auto& family : families_) {
        if (family->has_waiting()) next = std::min(next, family->next_time(reactor_.now()));
    }
    if (next != kNever) reactor_.arm(*this, std::max(next, reactor_.now()));
}

void MainScheduler::schedule(IoRequest& request) {
    while (request.missing_count_ > 0) {
        const auto pair = of(request).get_device_medium_pair(request, reactor_.now());
        if (!pair) return give_up(request, pair.error());
        if (!pair->has_value()) return of(request).requeue(request);
        const DeviceMedium& found = **pair;
        choose(static_cast<DeviceQueue&>(*found.device), request, request.parts[found.part],
               static_cast<DeviceQueue*>(found.from));
    }
    of(request).remove_taken(request);
    forget_wait(request);
    request.waited_ = reactor_.now() - request.arrived_at_;
    figures_of(request).wait.record(request.waited_);
}

void MainScheduler::choose(DeviceQueue& device, IoRequest& request, IoPart& part,
                           DeviceQueue* from) {
    const IoShare share{.request = &request, .part = &part};
    ++request.running_count_;
    figures_of(request).dispatched.add(1);
    if (!device.is_fixed()) {
        if (from != nullptr) from->begin_take_out(request.type);
        if (device.medium() != part.medium) device.exchange(part.medium);
        if (request.type == IoType::kWrite) {
            media_.wrote(part.medium, part.size_bytes, request.collection);
        }
    }
    if (request.type != IoType::kWrite || !device.is_fixed()) {
        device.begin(request.type, part.size_bytes);
        chosen_.push_back({&device, execute(&device, share, from)});
        return;
    }
    if (device.joined().takes(part)) {
        figures_of(request).joined.add(1);
        device.grow(device.joined().size_bytes, part.size_bytes);
    } else {
        choose_joined(device);
        device.begin(request.type, part.size_bytes);
    }
    device.joined().add(share);
}

// Joined writes are one operation, and count as one.
void MainScheduler::choose_joined(DeviceQueue& device) {
    Joined& joined = device.joined();
    if (joined.count == 0) return;
    if (joined.count == 1) {
        chosen_.push_back({&device, execute(&device, joined.shares.front())});
    } else {
        chosen_.push_back({&device, execute_joined(&device, joined)});
    }
    joined.count = 0;
    joined.size_bytes = 0;
}

Task<void> MainScheduler::execute(DeviceQueue* device, IoShare share, DeviceQueue* from) {
    const Running what{.type = share.request->type,
                       .size_bytes = share.part->size_bytes,
                       .began = reactor_.now(),
                       .priority = share.request->priority};
    Result<void> result;
    DeviceQueue* at_work = device;  // The result is of this one.
    if (from != nullptr) {
        const Result<void> taken = co_await take_out(from, what.type);
        result = taken;
        if (!taken) at_work = from;
    }
    if (result) {
        Task<Result<void>> operation = device->executor().execute(*share.request, *share.part);
        const Result<void> done = co_await std::move(operation);
        result = done;
    } else {
        device->executor().could_not_execute(*share.request);
    }
    operation_ended(*device, what, result.has_value());
    part_ended(*at_work, share, result);
}

Task<Result<void>> MainScheduler::take_out(DeviceQueue* from, IoType type) {
    Task<Result<void>> operation = from->executor().take_out();
    const Result<void> taken = co_await std::move(operation);
    const IoExecutor::Content content = from->executor().content();
    from->set_medium(content.medium, content.position);
    note_down(*from);
    from->set_idle_since(reactor_.now());
    from->end_take_out(type);
    want_pass();
    co_return taken;
}

void MainScheduler::note_down(DeviceQueue& device) {
    if (device.state() != DeviceState::kReady || !device.executor().content().is_down) return;
    set_drive_state(device, DeviceState::kDown);
}

Task<void> MainScheduler::execute_joined(DeviceQueue* device, Joined joined) {
    const Running what{.type = IoType::kWrite,
                       .size_bytes = joined.size_bytes,
                       .began = reactor_.now(),
                       .priority = joined.shares[0].request->priority};
    const std::span<const IoShare> writes(joined.shares.data(), joined.count);
    Task<Result<void>> operation = device->executor().execute_joined(writes);
    const Result<void> result = co_await std::move(operation);
    operation_ended(*device, what, result.has_value());
    for (std::size_t i = 0; i < joined.count; ++i) {
        part_ended(*device, joined.shares[i], result);
    }
}

void MainScheduler::operation_ended(DeviceQueue& device, const Running& what, bool succeeded) {
    device.end(what.type, what.size_bytes);
    if (!device.is_fixed()) {
        const IoExecutor::Content content = device.executor().content();
        if (succeeded) {
            device.set_position(content.position);
        } else {
            device.set_medium(content.medium, content.position);
        }
        note_down(device);
        device.set_idle_since(reactor_.now());
        want_pass();
        return;
    }
    // Background work is large, or goes where a disk is slow: the depth is for clients.
    const bool is_of_clients = what.priority == IoPriority::kForeground;
    if (succeeded && is_of_clients && what.type != IoType::kFormat) {
        device.learn(reactor_.now() - what.began, what.size_bytes);
    }
    want_pass();
}

// -- completion --

void MainScheduler::part_ended(DeviceQueue& device, const IoShare& share,
                               const Result<void>& result) {
    IoRequest& request = *share.request;
    IoPart& part = *share.part;
    --request.running_count_;
    part.state = result ? IoPart::State::kDone : IoPart::State::kFailed;
    if (!result) {
        // A read may find another medium.
        const bool may_go_elsewhere =
            request.type == IoType::kRead || !device.executor().content().fails_everywhere;
        const bool replaceable = may_go_elsewhere && !request.given_up_ && !closed_ &&
                                 !is_over(request) && of(request).retry(request, part, device);
        if (request.result) request.result = result;
        if (replaceable) {
            const bool waits = request.waiting();
            ++request.missing_count_;
            if (!waits) let_wait(request);
        } else if (request.waiting()) {
            leave(request);
            request.missing_count_ = 0;
        }
    }
    if (request.missing_count_ == 0 && request.running_count_ == 0) complete(request);
}

// REQUIRES: request.waiting().
void MainScheduler::give_up(IoRequest& request, const Error& why) {
    leave(request);
    request.missing_count_ = 0;
    request.given_up_ = true;
    if (request.result) request.result = std::unexpected(why);
    if (request.running_count_ > 0) return;
    over_.push_back(request);
    want_pass();
}

void MainScheduler::end_over() {
    // Requests pushed by these completions are completed later.
    core::IntrusiveList<WaitingPlace> ending;
    while (WaitingPlace* const place = over_.pop_front()) ending.push_back(*place);
    while (WaitingPlace* const place = ending.pop_front()) {
        complete(static_cast<IoRequest&>(*place));
    }
}

void MainScheduler::complete(IoRequest& request) {
    // The error of a part that another part has replaced does not count.
    const auto done = std::ranges::count(request.parts, IoPart::State::kDone, &IoPart::state);
    const bool all = request.type != IoType::kRead;
    const std::uint64_t required = all ? request.parts.size() : request.required_count;
    if (static_cast<std::uint64_t>(done) >= required) request.result = {};

    if (!request.result) figures_of(request).failed.add(1);
    request.owner_ = nullptr;
    request.complete_(request);
}

Task<void> MainScheduler::stop() {
    closed_ = true;
    while (!waiting_.empty()) {
        give_up(static_cast<IoRequest&>(waiting_.front()),
                error_of(Errc::kClosed, "the I/O scheduler stops"));
    }
    end_over();
    for (std::size_t index = 0; index < devices_.size(); ++index) {
        DeviceQueue& device = *devices_[index];
        co_await device.gate().close(reactor_);
    }
    while (!devices_.empty()) {
        of(*devices_.back()).remove_device(*devices_.back());
        devices_.pop_back();
    }
    reactor_.remove_poller(*this);
}

// -- figures --

std::uint64_t MainScheduler::waiting_count(IoType type) const {
    return waiting_counts_[static_cast<std::size_t>(type)].get();
}

void MainScheduler::collect(core::MetricSink& sink, std::string_view locality) const {
    for (std::size_t type = 0; type < kIoTypeCount; ++type) {
        const Figures& seen = figures_[type];
        const std::array labels{core::Label{"locality", locality},
                                core::Label{"type", kIoTypeNames[type]}};
        sink.gauge("fopd_io_sched_waiting", "Requests that wait for a device.", labels,
                   static_cast<double>(waiting_count(static_cast<IoType>(type))));
        sink.counter("fopd_io_sched_dispatched", "Operations given to a device.", labels,
                     static_cast<double>(seen.dispatched.get()));
        if (type == static_cast<std::size_t>(IoType::kWrite)) {
            sink.counter("fopd_io_sched_joined", "Writes that went with the one before.", labels,
                         static_cast<double>(seen.joined.get()));
        }
        sink.counter("fopd_io_sched_failed", "Requests that ended with an error or were given up.",
                     labels, static_cast<double>(seen.failed.get()));
        sink.time_histogram("fopd_io_sched_wait_seconds",
                            "How long requests waited for their devices.", labels, seen.wait,
                            core::Buckets::kTwelve);
    }
}

}  // namespace fopd::io_sched
