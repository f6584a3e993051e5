// Transfers of a connection: between memory of this side and memory that is opened to the peer.
#include <algorithm>

#include "fabric/connection_errors.h"
#include "fabric/tcp/tcp_connection.h"
#include "fabric/tcp/tcp_machine.h"

namespace fopd::fabric {

namespace {

// Reads that a peer may have outstanding.
constexpr std::size_t kReadsToAnswerMax = 1024;

constexpr Error kUnasked{.code = Errc::kInvalid, .context = "data for no pending read"};
constexpr Error kTooManyReads{.code = Errc::kInvalid, .context = "too many reads at a time"};
constexpr Error kNoZeros{.code = Errc::kNoSpace, .context = "cannot map zeros to send"};

}  // namespace

// -- of the peer, with memory that is opened to it --

Result<FrameUser::Destination> TcpConnection::answer_read(const Frame& frame) {
    const auto memory = machine_.opened_.find(frame.memory(), frame.length, Access::kRead);
    if (!memory) return std::unexpected(kNotOpened);
    if (answers_.size() == kReadsToAnswerMax) return std::unexpected(kTooManyReads);
    Answer& answer = answers_.emplace_back(*this, memory->bytes);
    queue({.kind = FrameKind::kReadData, .length = frame.length, .tag = frame.tag}, {});
    frames_.back().answer = &answer;
    if (!memory->is_taken_back) {
        machine_.opened_.add_use(frame.key, answer);
    } else if (!blank(answer.bytes)) {
        return std::unexpected(kNoZeros);
    }
    return Destination{};
}

Result<FrameUser::Destination> TcpConnection::take_write(const Frame& frame) {
    const auto memory = machine_.opened_.find(frame.memory(), frame.length, Access::kWrite);
    if (!memory) return std::unexpected(kNotOpened);
    if (memory->is_taken_back) return Destination{.kind = Destination::Kind::kNowhere};
    machine_.opened_.add_use(frame.key, taken_write_);
    return Destination{.kind = Destination::Kind::kMemory, .memory = memory->bytes};
}

void TcpConnection::Answer::on_left() {
    if (!owner.blank(bytes)) owner.lose(kNoZeros);  // Destroys this answer.
}

bool TcpConnection::blank(std::span<const std::byte>& body) {
    const std::span<std::byte> zeros = machine_.zeros(body.size());
    if (zeros.size() < body.size()) return false;
    body = zeros;
    return true;
}

// -- of this side, with memory of the peer --

Result<FrameUser::Destination> TcpConnection::take_read_data(const Frame& frame) {
    const auto oldest_tag = static_cast<std::uint32_t>(next_tag_ - reads_.size());
    if (reads_.empty() || frame.tag != oldest_tag) return std::unexpected(kUnasked);
    const AskedRead& asked = reads_.front();
    if (frame.length != asked.length) return std::unexpected(kUnasked);
    if (asked.op == nullptr) return Destination{.kind = Destination::Kind::kNowhere};
    return Destination{.kind = Destination::Kind::kMemory, .memory = asked.op->local.bytes};
}

void TcpConnection::end_oldest_read() {
    TransferOp* const op = reads_.front().op;
    reads_.pop_front();
    if (op == nullptr) {
        --reads_given_up_;
    } else {
        finish(*op, {});
    }
}

bool TcpConnection::give_up(TransferOp& transfer) {
    ENSURE(transfer.in_flight && transfer.kind != TransferOp::Kind::kSend);
    if (transfer.kind == TransferOp::Kind::kRead) return give_up_read(transfer);
    return give_up_write(transfer);
}

bool TcpConnection::give_up_read(TransferOp& read) {
    const auto asked = std::ranges::find(reads_, &read, &AskedRead::op);
    if (asked == reads_.end()) return true;  // It has ended.
    if (reads_given_up_ == kGivenUpMax) return false;
    ++reads_given_up_;
    asked->op = nullptr;
    const Frame* const incomplete = reader_.current();
    const bool is_filled = asked == reads_.begin() && incomplete != nullptr &&
                           incomplete->kind == FrameKind::kReadData && !reader_.target().empty();
    if (is_filled) reader_.skip_rest();
    finish(read, std::unexpected(kGivenUp));
    return true;
}

bool TcpConnection::give_up_write(TransferOp& write) {
    std::size_t bytes_before = 0;
    for (auto each = frames_.begin(); each != frames_.end(); ++each) {
        if (each->op != &write) {
            bytes_before += each->size();
            continue;
        }
        const bool has_begun = bytes_before < begun_bytes();
        if (has_begun && !may_keep_records()) return false;
        each->op = nullptr;
        finish(write, std::unexpected(kGivenUp));
        if (has_begun) {
            if (!blank(each->body)) lose(kNoZeros);
            return true;
        }
        // The peer has not heard of it.
        const auto frames_before = static_cast<std::size_t>(each - frames_.begin());
        if (records_ != nullptr && frames_before < records_->plain_frames) {
            --records_->plain_frames;
        }
        if (records_ != nullptr) records_->more_to_make = false;
        frames_.erase(each);
        return true;
    }
    return true;  // It has ended.
}

// The records of a write that has begun stay until the peer takes them. No transfer, and so no
// share of transfers, counts their memory: the connections of a principal that may have some are
// limited.
bool TcpConnection::may_keep_records() {
    if (records_ == nullptr || kept_records_ != nullptr) return true;
    KeptRecords& all = machine_.kept_records_;
    if (!all.may_take(all.find(principal_))) return false;
    kept_records_ = &all.take(principal_);
    return true;
}

void TcpConnection::end_kept_records() {
    if (kept_records_ == nullptr) return;
    machine_.kept_records_.give_back(*std::exchange(kept_records_, nullptr));
}

std::size_t TcpConnection::begun_bytes() const {
    std::size_t bytes = sent_bytes_;
    if (records_ == nullptr) return bytes;
    for (const Records::Made& each : records_->made) bytes += each.plain_bytes;
    return bytes;
}

}  // namespace fopd::fabric
