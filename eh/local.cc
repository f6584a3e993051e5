#include "eh/local.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>

#include "core/byte_order.h"
#include "core/ensure.h"

namespace fopd::eh {

namespace {

// Between two tries to read or write the file.
constexpr Duration kLocalFileAgain = 1s;

// The last number in the file. Empty: it is none.
std::optional<EpochNumber> number_in(const std::vector<std::byte>& bytes) {
    if (bytes.size() != sizeof(EpochNumber)) return std::nullopt;
    const auto number = load_little<std::uint64_t>(bytes.data());
    constexpr auto kMost = std::numeric_limits<EpochNumber>::max() / 2;
    if (number > static_cast<std::uint64_t>(kMost)) return std::nullopt;
    return static_cast<EpochNumber>(number);
}

}  // namespace

LocalEpochHandler::LocalEpochHandler(EpochRules rules, std::optional<Numbers> numbers)
    : Timer(&on_time), rules_(rules), numbers_(numbers) {}

Result<void> LocalEpochHandler::next_epoch(EpochNumber current, std::span<const std::byte> data,
                                           Participant& participant) {
    const bool knows = is_member_ && current == epoch_;
    if (current != kFirstEpoch && !knows) return std::unexpected(kOtherEpoch);
    if (data.size() > data_.size()) return std::unexpected(kTooMuchData);
    if (ready_ != nullptr) return std::unexpected(kAlreadyWaiting);
    if (stopped_)
        return std::unexpected(Error{.code = Errc::kClosed, .context = "the node is stopping"});
    ready_ = &participant;
    size_bytes_ = data.size();
    std::ranges::copy(data, data_.begin());
    if (!calling_) begin_epochs();
    return {};
}

// If the participant becomes ready again within on_epoch(), the outermost call starts the next
// epoch: the stack does not grow.
void LocalEpochHandler::begin_epochs() {
    calling_ = true;
    while (ready_ != nullptr && has_number()) {
        is_member_ = true;
        ++epoch_;
        // Copied, because next_epoch() called from within replaces it.
        const auto said = data_;
        const std::size_t size_bytes = size_bytes_;
        std::exchange(ready_, nullptr)->on_epoch(epoch_, std::span(said).first(size_bytes));
    }
    calling_ = false;
    if (!numbers_) return;
    if (ready_ != nullptr) {
        called_at_ = numbers_->reactor.now();
        arm_for(after(called_at_, rules_.timeout));
    }
    reserve();
}

void LocalEpochHandler::last_epoch(EpochNumber current) {
    ENSURE(current == kFirstEpoch || current == epoch_);
    is_member_ = false;
    if (ready_ == nullptr) return;
    std::exchange(ready_, nullptr)
        ->on_epoch(std::unexpected(Error{.code = Errc::kCancelled, .context = "left"}), {});
}

void LocalEpochHandler::stop() {
    stopped_ = true;
    disarm();
    fail({.code = Errc::kCancelled, .os_errno = ECANCELED, .context = "stopping"});
}

// The participant is in no epoch then.
void LocalEpochHandler::fail(const Error& error) {
    if (ready_ == nullptr) return;
    is_member_ = false;
    std::exchange(ready_, nullptr)->on_epoch(std::unexpected(error), {});
}

// -- numbers --

// The file is read at the first call: it may not exist before.
void LocalEpochHandler::reserve() {
    const bool has_many = is_read_ && reserved_ - epoch_ > kBlock / 4;
    if (has_many || file_busy_ || stopped_) return;
    const Instant now = numbers_->reactor.now();
    if (now < file_not_before_) return arm_for(file_not_before_);
    file_busy_ = true;
    if (!is_read_) return numbers_->file.read(*this);
    written_ = std::max(written_, reserved_) + kBlock;
    std::vector<std::byte> bytes(sizeof written_);
    store_little(bytes.data(), static_cast<std::uint64_t>(written_));
    numbers_->file.replace(std::move(bytes), *this);
}

void LocalEpochHandler::on_file_read(Result<std::vector<std::byte>> bytes) {
    file_busy_ = false;
    if (stopped_) return;
    if (!bytes && bytes.error().code != Errc::kNotFound) return report(bytes.error());
    std::optional<EpochNumber> last = 0;
    if (bytes) last = number_in(*bytes);
    // A damaged file is like a lost one: numbers begin again.
    if (!last) report({.code = Errc::kCorrupt, .context = "the file has no number"});
    epoch_ = reserved_ = written_ = last.value_or(0);
    is_read_ = true;
    file_not_before_ = {};
    reserve();
}

void LocalEpochHandler::on_file_replaced(Replaced replaced) {
    file_busy_ = false;
    if (stopped_) return;
    if (!replaced) return report(replaced.error().error);
    file_failed_ = false;
    reserved_ = written_;
    begin_epochs();
}

// A call that waits is told so; the next one waits for the next try.
void LocalEpochHandler::report(const Error& error) {
    file_not_before_ = after(numbers_->reactor.now(), kLocalFileAgain);
    arm_for(file_not_before_);
    if (!std::exchange(file_failed_, true)) {
        emit(numbers_->events, core::Level::kError, "eh.numbers_failed",
             {{"reason", std::string_view(describe(error))}});
    }
    if (!has_number()) fail(error);
}

void LocalEpochHandler::arm_for(Instant at) {
    if (armed() && armed_at_ <= at) return;
    armed_at_ = at;
    numbers_->reactor.arm(*this, at);
}

void LocalEpochHandler::on_time(core::Timer& timer) {
    auto& self = static_cast<LocalEpochHandler&>(timer);
    if (self.stopped_) return;
    const Instant now = self.numbers_->reactor.now();
    const Instant patience = after(self.called_at_, self.rules_.timeout);
    if (self.ready_ != nullptr && now >= patience) {
        self.fail({.code = Errc::kTimedOut,
                   .os_errno = ETIMEDOUT,
                   .context = "the file of epoch numbers does not answer"});
    } else if (self.ready_ != nullptr) {
        self.arm_for(patience);
    }
    self.reserve();
}

}  // namespace fopd::eh
