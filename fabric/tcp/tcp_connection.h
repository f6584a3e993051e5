#pragma once

#include <deque>
#include <list>
#include <optional>
#include <string>

#include "fabric/opened_memory.h"
#include "fabric/tcp/frame_reader.h"
#include "fabric/tcp/incomplete_messages.h"
#include "fabric/tcp/kept_records.h"
#include "fabric/tcp/record_reader.h"
#include "fabric/tcp/socket.h"
#include "fabric/tcp/work_turns.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class TcpMachine;

// The places of a connection in its machine: among those with work for the next poll(), and among
// those with frames to send at the end of the turn.
class WantsWork : public HasWork {
public:
    using HasWork::HasWork;
};
class WantsFlush : public HasWork {
public:
    using HasWork::HasWork;
};

class TcpConnection final : public Connection,
                            public WantsWork,
                            public WantsFlush,
                            public IncompleteMessage,
                            FrameUser,
                            Socket::User {
public:
    enum class Side : std::uint8_t { kConnecting, kAccepting };
    TcpConnection(TcpMachine& machine, ConnectionUser& user, std::string peer, Side side,
                  std::span<const std::byte> greeting);
    ~TcpConnection() override;

    void send(TransferOp& op) override;
    void read(TransferOp& op) override;
    void write(TransferOp& op) override;
    bool give_up(TransferOp& transfer) override;
    void close() override;
    void trust_peer(const std::string& principal) override;
    void encrypt(const Keys& keys) override;
    std::uint32_t in_flight() const override { return in_flight_; }
    std::string peer() const override { return peer_; }

private:
    friend TcpMachine;
    enum class State : std::uint8_t {
        kConnecting,  // The socket is not connected.
        kGreeting,    // Waits for the acceptor's answer.
        kOpen,
        kEnded,
    };
    // The data of an answer to the peer's read: opened memory, and zeros when that was taken back.
    struct Answer final : OpenedMemory::Use {
        Answer(TcpConnection& connection, std::span<const std::byte> memory)
            : owner(connection), bytes(memory) {}
        void on_left() override;

        TcpConnection& owner;
        std::span<const std::byte> bytes;
    };
    // The opened memory into which the peer's write goes that has begun to arrive. Its rest is
    // skipped when the memory was taken back.
    struct TakenWrite final : OpenedMemory::Use {
        explicit TakenWrite(FrameReader& from) : reader(from) {}
        void on_left() override { reader.skip_rest(); }

        FrameReader& reader;
    };
    struct OutFrame {
        FrameHeader header;
        std::span<const std::byte> body;
        TransferOp* op = nullptr;        // Completes when the frame has been sent.
        const Answer* answer = nullptr;  // What is sent instead of `body`, if it is an answer.

        std::span<const std::byte> content() const {
            return answer == nullptr ? body : answer->bytes;
        }
        std::size_t size() const { return header.size() + content().size(); }
    };
    // A read whose data have not arrived.
    struct AskedRead {
        TransferOp* op;  // Null: it was given up, and its data are skipped.
        std::uint32_t length;
    };
    // The state of an encrypted connection.
    struct Records {
        explicit Records(const Keys& keys)
            : writer(keys.send, fop::RecordCipher::Way::kSeal), reader(keys.receive) {}

        fop::RecordCipher writer;
        RecordReader reader;
        // The number of frames queued before encrypt(); they are sent in plain text.
        std::size_t plain_frames = 0;
        // Encrypted records that are not completely sent.
        struct Made {
            std::size_t bytes_left = 0;
            // The size of the frames in this record.
            std::size_t plain_bytes = 0;
        };
        std::deque<Made> made;
        bool more_to_make = false;      // Some queued frames did not fit into `made`.
        std::vector<std::byte> unsent;  // Their bytes, after a partial send.
        std::size_t unsent_at = 0;      // The first byte in `unsent` to send.
    };
    struct Ending {
        Error why;
        std::string words;
    };

    // -- for the machine --

    // Takes over a socket that connects, or is connected.
    void begin(OwnedSocket socket);
    // Receives, and calls the user back for the events since the last call. The connection may be
    // destroyed on return.
    void work();
    // Sends queued frames, for a limited time; flush_once() with one system call. Calls nobody
    // back.
    void flush();
    void flush_once();

    // -- FrameUser and Socket::User --
    Result<Destination> on_frame(const Frame& frame) override;
    bool on_body(const Frame& frame, std::span<const std::byte> body) override;
    void on_readable() override;
    void on_writable() override;

    void start(TransferOp& op, TransferOp::Kind kind);
    void queue(const Frame& frame, std::span<const std::byte> body, TransferOp* op = nullptr);
    void on_socket_connected();
    void flush_up_to(int sends_max);
    // Give bytes to the kernel. kSome: it takes no more now. kFailed: the connection is broken.
    enum class Sent : std::uint8_t { kAll, kSome, kFailed };
    Sent send_frames(std::size_t frames_max);
    Sent send_records();
    // Encrypts frames that are not sent, as many as fit. Returns the records, which lie in the
    // machine's buffer.
    std::span<const std::byte> encrypt_frames();
    Sent on_send_error(int os_errno);
    void count_sent_records(std::size_t bytes);
    Result<void> take(std::span<const std::byte> bytes);
    // The number of frames and records that have arrived at least in part.
    std::uint64_t begun() const {
        return reader_.begun() + (records_ == nullptr ? 0 : records_->reader.opened());
    }
    // Receives until the socket is empty, for a limited time. Returns false if the connection may
    // be gone.
    bool receive();
    bool receive_once(bool& is_empty);
    Result<Destination> answer_read(const Frame& frame);
    Result<Destination> take_read_data(const Frame& frame);
    Result<Destination> take_write(const Frame& frame);
    // The data of the oldest read have arrived.
    void end_oldest_read();
    bool give_up_read(TransferOp& read);
    bool give_up_write(TransferOp& write);
    bool may_keep_records();
    void end_kept_records();
    // How many bytes of queued frames are already sent or encrypted.
    std::size_t begun_bytes() const;
    // Zeros are sent instead of what has not been sent of a frame's body. False: there is no memory
    // for zeros.
    bool blank(std::span<const std::byte>& body);
    // Counts the memory for an incomplete message, which the machine limits.
    void count_incomplete();
    void finish(TransferOp& op, const Result<void>& result);
    // Calls completions that are due, for a limited time; false if the connection may be gone.
    bool complete_done();
    // Fails all operations in flight and ends the socket.
    void end(const Error& why);
    // Like end(); the next work() reports it to the user.
    void lose(const Error& why, std::string_view words = {});
    void want_work();
    void want_flush();
    // Removes sent bytes from the queue.
    void take_sent(std::size_t bytes);

    TcpMachine& machine_;
    ConnectionUser& user_;
    const std::string peer_;
    const Side side_;
    State state_ = State::kConnecting;
    Socket* socket_ = nullptr;  // Null before begin(), and after the end.
    std::string greeting_;      // Body of the first frame; at the accepting side already queued.
    bool tell_connected_ = false;
    std::optional<Ending> ending_;  // The end of the connection, if the user was not told yet.
    bool is_readable_ = false;
    bool send_failed_ = false;  // receive() finds the reason.

    FrameReader reader_{*this};
    TakenWrite taken_write_{reader_};
    bool is_trusted_ = false;
    std::string principal_;             // Empty: the peer has not authenticated.
    std::uint32_t first_messages_ = 0;  // Messages before the peer was trusted.
    std::uint64_t begun_before_ = 0;    // begun() at the last count_incomplete().
    // Of its principal, if some records belong to a write that was given up; else null.
    KeptRecords::Host* kept_records_ = nullptr;
    bool in_bulk_ = false;  // The last frame had a large body.

    std::deque<OutFrame> frames_;              // Frames that are not completely sent.
    std::size_t sent_bytes_ = 0;               // How much of the first frame was sent.
    std::size_t unflushed_message_bytes_ = 0;  // Of messages queued since the last flush().
    // The answers among frames_, in the same order. A list, because frames point to them, and
    // because it takes no memory while there are none.
    std::list<Answer> answers_;
    std::deque<AskedRead> reads_;       // Reads without data. Their data arrive in this order.
    std::uint32_t reads_given_up_ = 0;  // How many of reads_ were given up.
    std::uint32_t next_tag_ = 0;        // The tag of the next kRead; tags have no gaps.
    std::unique_ptr<Records> records_;  // Null until the connection is encrypted.
    std::uint32_t in_flight_ = 0;
    std::deque<TransferOp*> done_;  // Operations to complete in the next work().
};

}  // namespace fopd::fabric
