#include "store/log.h"

#include <utility>

#include "store/log_core.h"

namespace fopd::store {

static_assert(Log::kSegmentsMax <= kSuperblockSegmentsMax);

void Reservation::give_up() {
    core_->give_up(*this);
}

bool Log::DurableAwaiter::await_ready() const {
    return LogCore::ended(commit_);
}

void Log::DurableAwaiter::await_suspend(std::coroutine_handle<> handle) {
    LogCore::wait_for(commit_, handle);
}

Result<void> Log::DurableAwaiter::await_resume() const {
    return LogCore::result_of(commit_);
}

Log::Log(core::Reactor& reactor, devices::Device& device, SegmentSource& source,
         const LogOptions& options)
    : core_(std::make_unique<LogCore>(reactor, device, source, options)) {}

Log::~Log() = default;

Task<Result<void>> Log::format(std::vector<std::uint32_t> segments) {
    return core_->format(std::move(segments));
}

Task<Result<Replayed>> Log::open(ReplayVisitor* visitor, ReplayOptions options) {
    return core_->open(visitor, options);
}

const LogDamage& Log::damage() const {
    return core_->damage();
}

Task<Result<void>> Log::close() {
    return core_->close();
}

Task<Result<Reservation>> Log::reserve(std::uint32_t bytes, core::WaitOptions wait,
                                       Purpose purpose) {
    return core_->reserve(bytes, wait, purpose);
}

std::uint32_t Log::payload_max() const {
    return core_->payload_max();
}

std::uint64_t Log::reserved_bytes() const {
    return core_->reserved_bytes();
}

void Log::begin(Commit& commit, Reservation reservation, std::span<const std::byte> records,
                std::uint32_t record_count, Durability durability, Data data) {
    ENSURE(!records.empty());
    ENSURE(record_count > 0);
    core_->begin(commit, std::move(reservation), records, record_count, durability, data);
}

void Log::data_done(Commit& commit, const Result<void>& result) {
    core_->data_done(commit, result);
}

Log::DurableAwaiter Log::durable(Commit& commit) {
    return DurableAwaiter(commit);
}

Task<Result<void>> Log::sync(core::WaitOptions wait) {
    return core_->sync(wait);
}

Task<Result<void>> Log::settle(std::uint64_t seq, core::WaitOptions wait) {
    return core_->settle(seq, wait);
}

Task<Result<void>> Log::look_through(LogVisitor* visitor) {
    return core_->look_through(visitor);
}

std::optional<std::uint64_t> Log::last_seq_of(std::uint64_t epoch) const {
    return core_->last_seq_of(epoch);
}

std::uint64_t Log::epoch() const {
    return core_->epoch();
}

std::uint64_t Log::closed_seq() const {
    return core_->closed_seq();
}
std::uint64_t Log::begun_seq() const {
    return core_->begun_seq();
}

std::uint64_t Log::durable_seq() const {
    return core_->durable_seq();
}

std::uint64_t Log::trusted() const {
    return core_->trusted();
}

const Error* Log::failed() const {
    return core_->failed();
}

void Log::set_applied(std::uint64_t seq) {
    core_->set_applied(seq);
}

void Log::stall(const Error& why) {
    core_->stall(why);
}

void Log::refuse(const Error& why) {
    core_->refuse(why);
}

void Log::unstall() {
    core_->unstall();
}

void Log::set_segments_max(std::uint32_t count) {
    core_->set_segments_max(count);
}

void Log::set_live_bytes(std::uint64_t bytes) {
    core_->set_live_bytes(bytes);
}

std::vector<std::uint32_t> Log::segments() const {
    std::vector<std::uint32_t> numbers;
    for (const LogSegment& segment : core_->space().segments()) numbers.push_back(segment.number);
    return numbers;
}

LogSpaceFigures Log::space() const {
    const LogSpace& space = core_->space();
    return {.segments = static_cast<std::uint32_t>(space.segments().size()),
            .segments_free = static_cast<std::uint32_t>(space.free_count()),
            .segments_max = core_->segments_max()};
}

bool Log::is_full() const {
    return core_->is_full();
}

bool Log::cleaning_wanted() const {
    return core_->cleaning_wanted();
}

Task<Result<void>> Log::wait_cleaning_wanted(core::WaitOptions wait) {
    return core_->wait_cleaning_wanted(wait);
}

Task<Result<void>> Log::clean(CleanVisitor* visitor) {
    return core_->clean(visitor);
}

}  // namespace fopd::store
