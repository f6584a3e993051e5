#include "fabric/tcp/tcp_connection.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "fabric/connection_errors.h"
#include "fabric/tcp/tcp_machine.h"

namespace fopd::fabric {

namespace {

// One turn receives and sends at most this often for a connection, so that others get theirs. See
// WorkTurns, too.
constexpr int kReceivesPerTurn = 4;
constexpr int kSendsPerTurn = 4;
// When messages of so many bytes are queued, a part of them is sent before the end of the turn, if
// WorkTurns allows it, so that the peer works on them while this turn goes on. Transfers do not
// count: they keep both sides busy anyway, and take a quarter more CPU if each is sent alone.
constexpr std::size_t kMessageBytesToFlush = 32U << 10;
// Frames that one system call sends.
constexpr std::size_t kFramesPerSend = 32;
// complete_done() completes at least so many operations, even if receiving has used up what the
// turn may cost: a peer that sends all the time would otherwise hold the memory of what was sent to
// it. As many as one service sends.
constexpr std::size_t kCompletionsAtLeast = kSendsPerTurn * kFramesPerSend;
// Bytes that one system call sends, if they are not encrypted: room for a transfer of 1 MiB and its
// header.
constexpr std::size_t kBytesPerSend = (1U << 20) + (4U << 10);
// Bodies of this size are received directly into their memory, apart from the bytes that arrive
// together with their header. The receive that expects such a header therefore asks for few bytes.
constexpr std::size_t kBulkBytes = 32U << 10;
constexpr std::size_t kBytesBesideBulk = 4U << 10;
// The most bytes of any other receive, besides the rest of a body that has begun: a turn that has
// cost enough ends between receives.
constexpr std::size_t kOtherBytes = 64U << 10;
// An incomplete message counts as at least so many bytes. Otherwise a thousand connections with one
// byte each would have to end, with system calls for each, to make room for one message.
constexpr std::size_t kIncompleteBytesMin = 256;
// Parts of frames in one encrypted record.
constexpr std::size_t kPartsPerRecord = 32;

constexpr Error kUnexpected{.code = Errc::kInvalid, .context = "frame out of place"};
// While the connecting side waits for the answer to its first frame.
constexpr Error kNotAnswered{.code = Errc::kClosed,
                             .context =
                                 "the server ended the connection without an answer; perhaps "
                                 "it listens at ofi+tcp://, not at tcp://"};
constexpr Error kNotOurs{.code = Errc::kInvalid,
                         .context = "the answer is not that of an fopd that listens at tcp://"};
constexpr Error kTooManyMessages{.code = Errc::kInvalid,
                                 .context = "too many messages before the handshake is complete"};

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

std::string text_of(std::span<const std::byte> bytes) {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

TcpConnection::TcpConnection(TcpMachine& machine, ConnectionUser& user, std::string peer, Side side,
                             std::span<const std::byte> greeting)
    : WantsWork(machine.work_),
      WantsFlush(machine.sending_),
      IncompleteMessage(machine.incomplete_),
      machine_(machine),
      user_(user),
      peer_(std::move(peer)),
      side_(side),
      greeting_(text_of(greeting)) {
    ++machine.connection_count_;
}

TcpConnection::~TcpConnection() {
    if (socket_ != nullptr) socket_->end();
    machine_.in_flight_ -= in_flight_;
    --machine_.connection_count_;
    if (machine_.at_work_ == this) machine_.at_work_ = nullptr;
}

void TcpConnection::begin(OwnedSocket socket) {
    socket_ = new Socket(machine_.reactor_, machine_.sockets_, std::move(socket), *this);
    if (side_ == Side::kConnecting) {
        socket_->watch_output();
        return;
    }
    state_ = State::kOpen;
    const auto length = static_cast<std::uint32_t>(greeting_.size());
    queue({.kind = FrameKind::kAccept, .length = length}, bytes_of(greeting_));
    tell_connected_ = true;
    want_work();
    socket_->watch_input();
}

void TcpConnection::on_socket_connected() {
    if (const int failed = socket_->connect_error(); failed != 0) {
        return lose(not_connected(failed));
    }
    state_ = State::kGreeting;
    const auto length = static_cast<std::uint32_t>(greeting_.size());
    queue({.kind = FrameKind::kConnect, .length = length}, bytes_of(greeting_));
    socket_->watch_input();
}

void TcpConnection::on_readable() {
    is_readable_ = true;
    want_work();
}

void TcpConnection::on_writable() {
    if (state_ == State::kConnecting) {
        on_socket_connected();
    } else {
        want_flush();
    }
}

void TcpConnection::want_work() {
    WantsWork& place = *this;
    if (place.linked()) return;
    place.join();
    machine_.want_turn();
}

void TcpConnection::want_flush() {
    WantsFlush& place = *this;
    if (place.linked()) return;
    place.join();
    machine_.want_turn();
}

// -- operations --

void TcpConnection::send(TransferOp& op) {
    start(op, TransferOp::Kind::kSend);
}
void TcpConnection::read(TransferOp& op) {
    start(op, TransferOp::Kind::kRead);
}
void TcpConnection::write(TransferOp& op) {
    start(op, TransferOp::Kind::kWrite);
}

void TcpConnection::start(TransferOp& op, TransferOp::Kind kind) {
    ENSURE(!op.in_flight);
    op.in_flight = true;
    op.kind = kind;
    ++in_flight_;
    ++machine_.in_flight_;
    if (state_ != State::kOpen) {
        const bool ended = state_ == State::kEnded;
        return finish(op, std::unexpected(ended ? kEndedHere : kTooEarly));
    }
    ENSURE(op.local.bytes.size() <= kFrameTransferMax);
    Frame frame{.kind = FrameKind::kMessage,
                .length = static_cast<std::uint32_t>(op.local.bytes.size())};
    if (kind == TransferOp::Kind::kSend) {
        queue(frame, op.local.bytes, &op);
        unflushed_message_bytes_ += frame.length;
        const bool is_much = unflushed_message_bytes_ >= kMessageBytesToFlush;
        if (is_much && !socket_->watches_output()) machine_.flush_early(*this);
        return;
    }
    frame.key = op.remote.key;
    frame.address = op.remote.address;
    if (kind == TransferOp::Kind::kWrite) {
        frame.kind = FrameKind::kWrite;
        return queue(frame, op.local.bytes, &op);
    }
    frame.kind = FrameKind::kRead;
    frame.tag = next_tag_++;
    reads_.push_back({.op = &op, .length = frame.length});
    queue(frame, {});
}

void TcpConnection::queue(const Frame& frame, std::span<const std::byte> body, TransferOp* op) {
    frames_.push_back({.header = encode_frame(frame), .body = body, .op = op});
    want_flush();
}

void TcpConnection::finish(TransferOp& op, const Result<void>& result) {
    op.result = result;
    done_.push_back(&op);
    want_work();
}

// -- sending --

void TcpConnection::flush() {
    flush_up_to(kSendsPerTurn);
}

void TcpConnection::flush_once() {
    flush_up_to(1);
}

void TcpConnection::flush_up_to(int sends_max) {
    unflushed_message_bytes_ = 0;
    if (socket_ == nullptr || send_failed_ || state_ == State::kConnecting) return;
    const WantsFlush& place = *this;
    for (int i = 0; i < sends_max && !frames_.empty() && machine_.sending_.may_go_on(place); ++i) {
        const bool is_plain = records_ == nullptr || records_->plain_frames > 0;
        const std::size_t plain_frames =
            records_ == nullptr ? frames_.size() : records_->plain_frames;
        switch (is_plain ? send_frames(plain_frames) : send_records()) {
            case Sent::kAll: break;
            case Sent::kSome: return socket_->watch_output();
            case Sent::kFailed: return;
        }
    }
    if (frames_.empty()) return end_kept_records();
    want_flush();
}

TcpConnection::Sent TcpConnection::send_frames(std::size_t frames_max) {
    std::array<iovec, 2 * kFramesPerSend> parts;
    std::size_t count = 0;
    std::size_t skip = sent_bytes_;
    std::size_t total = 0;
    const auto add = [&](std::span<const std::byte> bytes) {
        const std::size_t skipped = std::min(skip, bytes.size());
        skip -= skipped;
        const std::size_t taken = std::min(bytes.size() - skipped, kBytesPerSend - total);
        if (taken == 0) return;
        parts[count].iov_base = const_cast<std::byte*>(bytes.data()) + skipped;
        parts[count].iov_len = taken;
        total += taken;
        ++count;
    };
    const std::size_t frames = std::min(frames_max, kFramesPerSend);
    for (std::size_t at = 0; at < frames; ++at) {
        add(frames_[at].header);
        add(frames_[at].content());
    }
    const ssize_t sent = socket_->send(std::span(parts).first(count), Sockets::Follows::kNothing);
    machine_.count_send(sent < 0 ? 0 : static_cast<std::size_t>(sent));
    if (sent < 0) return on_send_error(static_cast<int>(-sent));
    take_sent(static_cast<std::size_t>(sent));
    return static_cast<std::size_t>(sent) == total ? Sent::kAll : Sent::kSome;
}

TcpConnection::Sent TcpConnection::on_send_error(int os_errno) {
    if (os_errno == EINTR) return Sent::kAll;
    if (os_errno == EAGAIN) return Sent::kSome;
    // The peer may have sent something before it ended the connection.
    send_failed_ = true;
    on_readable();
    return Sent::kFailed;
}

TcpConnection::Sent TcpConnection::send_records() {
    Records& records = *records_;
    const bool is_rest = !records.unsent.empty();
    const std::span<const std::byte> bytes =
        is_rest ? std::span<const std::byte>(records.unsent).subspan(records.unsent_at)
                : encrypt_frames();
    iovec part{.iov_base = const_cast<std::byte*>(bytes.data()), .iov_len = bytes.size()};
    const auto follows =
        records.more_to_make ? Sockets::Follows::kMore : Sockets::Follows::kNothing;
    const ssize_t result = socket_->send({&part, 1}, follows);
    const Sent outcome = result < 0 ? on_send_error(static_cast<int>(-result)) : Sent::kAll;
    const std::size_t sent = result < 0 ? 0 : static_cast<std::size_t>(result);
    machine_.count_send(sent);
    count_sent_records(sent);
    if (sent == bytes.size()) {
        std::vector<std::byte>().swap(records.unsent);
        records.unsent_at = 0;
        return Sent::kAll;
    }
    // A record is encrypted once: the bytes that were not sent are kept.
    if (is_rest) {
        records.unsent_at += sent;
    } else {
        records.unsent.assign(bytes.begin() + static_cast<std::ptrdiff_t>(sent), bytes.end());
    }
    return result < 0 ? outcome : Sent::kSome;
}

void TcpConnection::count_sent_records(std::size_t bytes) {
    std::deque<Records::Made>& made = records_->made;
    std::size_t plain_bytes = 0;
    while (bytes > 0) {
        const std::size_t taken = std::min(bytes, made.front().bytes_left);
        made.front().bytes_left -= taken;
        bytes -= taken;
        if (made.front().bytes_left > 0) break;
        plain_bytes += made.front().plain_bytes;
        made.pop_front();
    }
    take_sent(plain_bytes);
}

std::span<const std::byte> TcpConnection::encrypt_frames() {
    std::array<std::span<const std::byte>, kPartsPerRecord> parts;
    std::size_t part_count = 0;
    std::size_t record_bytes = 0;
    std::span<std::byte> left(machine_.records_out_);
    const auto end_record = [&] {
        if (record_bytes == 0) return;
        const RecordLabel label = encode_record_label(record_bytes);
        std::ranges::copy(label, left.begin());
        left = left.subspan(label.size());
        const std::size_t sealed_bytes = record_bytes + fop::RecordCipher::kTagBytes;
        records_->writer.seal(label, std::span(parts).first(part_count), left.first(sealed_bytes));
        left = left.subspan(sealed_bytes);
        records_->made.push_back(
            {.bytes_left = label.size() + sealed_bytes, .plain_bytes = record_bytes});
        machine_.count_encrypted(record_bytes);
        part_count = 0;
        record_bytes = 0;
    };
    std::size_t skip = sent_bytes_;
    // False when there is no room for more.
    const auto add = [&](std::span<const std::byte> bytes) {
        const std::size_t skipped = std::min(skip, bytes.size());
        skip -= skipped;
        bytes = bytes.subspan(skipped);
        while (!bytes.empty()) {
            if (record_bytes == 0 && left.size() < kRecordMax) return false;
            const auto part = bytes.first(std::min(bytes.size(), kRecordPlainMax - record_bytes));
            parts[part_count++] = part;
            record_bytes += part.size();
            bytes = bytes.subspan(part.size());
            if (record_bytes == kRecordPlainMax || part_count == parts.size()) end_record();
        }
        return true;
    };
    bool is_all = true;
    for (const OutFrame& frame : frames_) {
        is_all = add(frame.header) && add(frame.content());
        if (!is_all) break;
    }
    records_->more_to_make = !is_all;
    end_record();
    return std::span<const std::byte>(machine_.records_out_)
        .first(machine_.records_out_.size() - left.size());
}

void TcpConnection::take_sent(std::size_t bytes) {
    std::size_t left = sent_bytes_ + bytes;
    while (!frames_.empty()) {
        const OutFrame& first = frames_.front();
        const std::size_t size = first.size();
        if (left < size) break;
        left -= size;
        if (first.op != nullptr) finish(*first.op, {});
        if (first.answer != nullptr) answers_.pop_front();
        frames_.pop_front();
        if (records_ != nullptr && records_->plain_frames > 0) --records_->plain_frames;
    }
    sent_bytes_ = left;
}

// -- receiving --

bool TcpConnection::receive() {
    const WantsWork& place = *this;
    bool is_empty = false;
    bool sends_failed_before = false;
    for (int i = 0; i < kReceivesPerTurn && !is_empty && machine_.work_.may_go_on(place); ++i) {
        sends_failed_before = send_failed_;
        if (!receive_once(is_empty)) return false;
        if (state_ == State::kEnded) return true;
        count_incomplete();
        if (state_ == State::kEnded) return true;
    }
    // A send had failed before the receive that found nothing, so all that the peer has sent is
    // received. If it failed during that receive, another one follows in the next turn.
    if (is_empty && sends_failed_before) {
        lose(kEndedThere);
        return true;
    }
    if (!is_empty) {
        // The rest in the next turn.
        is_readable_ = true;
        want_work();
        return true;
    }
    socket_->watch_input();
    return true;
}

bool TcpConnection::receive_once(bool& is_empty) {
    // Encrypted bytes go through the record reader, which knows the target of a body.
    const std::span<std::byte> direct =
        records_ == nullptr ? reader_.target() : std::span<std::byte>();
    std::span<std::byte> rest(machine_.arrivals_);
    // Behind a large body that goes directly to its memory only the next header is expected, for
    // which few bytes are enough. A skipped body has no memory and is received into the large
    // buffer.
    const bool is_beside_bulk = in_bulk_ && (!direct.empty() || reader_.current() == nullptr);
    if (records_ == nullptr) {
        rest = rest.first(is_beside_bulk ? kBytesBesideBulk : kOtherBytes);
    } else {
        rest = rest.first(std::min(rest.size(), reader_.target().size() + kOtherBytes));
    }
    std::array<iovec, 2> parts{
        iovec{.iov_base = direct.data(), .iov_len = direct.size()},
        iovec{.iov_base = rest.data(), .iov_len = rest.size()},
    };
    const TcpMachine& machine = machine_;
    const ssize_t received = socket_->receive(parts);
    if (received == -EINTR) return true;
    if (received == -EAGAIN) {
        is_empty = true;
        return true;
    }
    if (received <= 0) {
        lose(state_ == State::kGreeting ? kNotAnswered : kEndedThere);
        return true;
    }
    const auto count = static_cast<std::size_t>(received);
    is_empty = count < direct.size() + rest.size();
    const std::size_t direct_bytes = std::min(count, direct.size());
    if (records_ == nullptr) machine_.count_received(count - direct_bytes, direct_bytes);
    Result<void> taken = {};
    if (direct_bytes > 0) taken = reader_.filled(direct_bytes);
    if (taken && count > direct_bytes) taken = take(rest.first(count - direct_bytes));
    if (taken) return true;
    if (!machine.still_has(this)) return false;
    if (state_ != State::kEnded) lose(state_ == State::kGreeting ? kNotOurs : taken.error());
    return true;
}

Result<void> TcpConnection::take(std::span<const std::byte> bytes) {
    if (records_ == nullptr) {
        const auto taken = reader_.take(bytes);
        if (!taken) return std::unexpected(taken.error());
        bytes = bytes.subspan(*taken);
        // The remaining bytes came after the message from which on this connection is encrypted.
        if (bytes.empty()) return {};
    }
    TcpMachine& machine = machine_;
    const std::uint64_t begun_before = begun();
    const auto taken = records_->reader.take(bytes, reader_, machine.decrypted_);
    if (taken) machine.count_decrypted(begun() - begun_before, bytes.size());
    return taken;
}

void TcpConnection::count_incomplete() {
    const std::size_t in_record = records_ == nullptr ? 0 : records_->reader.held_bytes();
    if (std::exchange(begun_before_, begun()) != begun()) IncompleteMessage::completed();
    const std::size_t held = reader_.held_bytes() + in_record;
    IncompleteMessage::holds(held == 0 ? 0 : std::max(held, kIncompleteBytesMin));
    machine_.limit_incomplete();
}

Result<FrameUser::Destination> TcpConnection::on_frame(const Frame& frame) {
    in_bulk_ = frame.body_bytes() >= kBulkBytes;
    if (state_ == State::kGreeting) {
        const bool is_answer = frame.kind == FrameKind::kAccept || frame.kind == FrameKind::kRefuse;
        if (!is_answer) return std::unexpected(kUnexpected);
        return Destination{};
    }
    switch (frame.kind) {
        case FrameKind::kMessage:
            if (!is_trusted_ && ++first_messages_ > kFirstMessagesMax) {
                return std::unexpected(kTooManyMessages);
            }
            if (frame.length >
                (is_trusted_ ? machine_.options_.receive_buffer_bytes : kFirstMessageBytesMax)) {
                return std::unexpected(kTooLong);
            }
            return Destination{};
        case FrameKind::kRead: return answer_read(frame);
        case FrameKind::kReadData: return take_read_data(frame);
        case FrameKind::kWrite: return take_write(frame);
        case FrameKind::kConnect:
        case FrameKind::kAccept:
        case FrameKind::kRefuse: break;
    }
    return std::unexpected(kUnexpected);
}

bool TcpConnection::on_body(const Frame& frame, std::span<const std::byte> body) {
    TcpMachine& machine = machine_;
    switch (frame.kind) {
        case FrameKind::kAccept:
            state_ = State::kOpen;
            user_.on_connected(body);
            break;
        case FrameKind::kRefuse: lose(kRefused, text_of(body)); break;
        case FrameKind::kMessage: machine.deliver(body, *this); break;
        case FrameKind::kReadData: end_oldest_read(); return true;
        case FrameKind::kWrite: taken_write_.unlink(); return true;
        case FrameKind::kRead:
        case FrameKind::kConnect: return true;
    }
    return machine.still_has(this) && state_ != State::kEnded;
}

// -- the user --

void TcpConnection::trust_peer(const std::string& principal) {
    is_trusted_ = true;
    principal_ = principal;
    IncompleteMessage::belongs_to(principal);
    WantsWork::belongs_to(principal);
    WantsFlush::belongs_to(principal);
}

void TcpConnection::encrypt(const Keys& keys) {
    if (state_ != State::kOpen) return;
    ENSURE(records_ == nullptr);
    records_ = std::make_unique<Records>(keys);
    records_->plain_frames = frames_.size();
    machine_.make_room_for_records();
    reader_.pause();
}

void TcpConnection::work() {
    const TcpMachine& machine = machine_;
    if (tell_connected_) {
        tell_connected_ = false;
        if (state_ == State::kOpen) user_.on_connected({});
        if (!machine.still_has(this)) return;
    }
    if (is_readable_ && socket_ != nullptr) {
        is_readable_ = false;
        if (!receive()) return;
    }
    if (!complete_done()) return;
    if (ending_) {
        const Ending ending = *std::exchange(ending_, {});
        machine_.count_end();
        user_.on_closed(ending.why, ending.words);
    }
}

bool TcpConnection::complete_done() {
    TcpMachine& machine = machine_;
    const WantsWork& place = *this;
    // At most the operations that are in the list now; a completion may start others.
    const std::size_t present = done_.size();
    for (std::size_t i = 0; i < present && !done_.empty(); ++i) {
        if (i >= kCompletionsAtLeast && !machine.work_.may_go_on(place)) break;
        machine.count_call_back();
        TransferOp& op = *done_.front();
        done_.pop_front();
        --in_flight_;
        --machine.in_flight_;
        op.in_flight = false;
        op.complete(op);
        if (!machine.still_has(this)) return false;
    }
    if (!done_.empty()) want_work();
    return true;
}

void TcpConnection::end(const Error& why) {
    state_ = State::kEnded;
    if (socket_ != nullptr) std::exchange(socket_, nullptr)->end();
    WantsFlush::withdraw();
    for (const OutFrame& frame : frames_) {
        if (frame.op != nullptr) finish(*frame.op, std::unexpected(why));
    }
    frames_.clear();
    answers_.clear();
    taken_write_.unlink();
    end_kept_records();
    for (const AskedRead& each : reads_) {
        if (each.op != nullptr) finish(*each.op, std::unexpected(why));
    }
    reads_.clear();
    reader_.drop_incomplete();
    if (records_ != nullptr) {
        records_->reader.drop_incomplete();
        std::vector<std::byte>().swap(records_->unsent);
        records_->made.clear();
    }
    IncompleteMessage::completed();
}

void TcpConnection::lose(const Error& why, std::string_view words) {
    if (state_ == State::kEnded) return;
    end(kEndedThere);
    ending_ = Ending{.why = why, .words = std::string(words)};
    want_work();
}

void TcpConnection::close() {
    ending_.reset();
    tell_connected_ = false;
    if (state_ == State::kEnded) return;
    // Operations that have succeeded and are not completed yet are in flight, too.
    for (TransferOp* op : done_) op->result = std::unexpected(kEndedHere);
    end(kEndedHere);
}

}  // namespace fopd::fabric
