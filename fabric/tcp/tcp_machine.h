#pragma once

#include <memory>
#include <vector>

#include "core/events.h"
#include "core/poller.h"
#include "core/wait_queue.h"
#include "fabric/opened_memory.h"
#include "fabric/tcp/kept_records.h"
#include "fabric/tcp/tcp_connection.h"
#include "fabric/tcp/tcp_transport.h"
#include "fabric/transport.h"

namespace fopd::fabric {

class TcpMachine final : public TransferMachine, core::Poller {
public:
    TcpMachine(core::Reactor& reactor, MessageUser& messages, const MachineOptions& options,
               const TcpOptions& tcp, Sockets& sockets);
    // REQUIRES: stopped. Does not hold at the end of a simulated world, where a process may end at
    // any time.
    ~TcpMachine() override;

    Result<void*> register_memory(std::span<std::byte> memory) override;
    Result<RemoteMemory> open_memory(std::span<std::byte> memory, Access access) override;
    void close_memory(const RemoteMemory& memory) override;
    bool take_back_memory(const RemoteMemory& memory) override;
    std::unique_ptr<Connection> connect(const Address& peer, std::span<const std::byte> hello,
                                        ConnectionUser& user) override;
    std::unique_ptr<Connection> accept(std::unique_ptr<ConnectionRequest> request,
                                       std::span<const std::byte> answer,
                                       ConnectionUser& user) override;
    Task<void> stop() override;
    std::uint32_t in_flight() const override { return in_flight_; }

private:
    friend TcpConnection;
    bool poll() override;
    void end_of_turn() override;
    Duration sleep_max() override;

    // Sends a part of what the connection has queued before the turn ends, if the turn allows it.
    void flush_early(TcpConnection& connection);
    // Whether the connection whose work() runs still exists. Checked after each call of the user.
    bool still_has(const TcpConnection* at_work) const { return at_work_ == at_work; }
    // Called when the machine has work for another turn. A real reactor asks sleep_max(); a
    // simulated reactor does not, and needs a timer.
    void want_turn() {
        if (is_simulated_) reactor_.arm(wake_up_, reactor_.now());
    }
    // Counts bytes that went through a parser, and bytes that went directly to their target.
    void count_received(std::size_t parsed, std::size_t direct) {
        work_.add_cost(parsed + direct / kCopiedPerParsed);
    }
    // Counts received encrypted bytes, in which `begun` records and frames began.
    void count_decrypted(std::uint64_t begun, std::size_t bytes) {
        work_.add_cost(begun * kCostOfBeginning + bytes / kCipheredPerParsed);
    }
    // Counts what the user does with a message, or when an operation completes.
    void count_call_back() { work_.add_cost(kCostOfCallBack); }
    void count_end() { work_.add_cost(kCostOfEnd); }
    // Counts a system call that sent so many bytes.
    void count_send(std::size_t bytes) {
        sending_.add_cost(kCostOfSend + bytes / kCopiedPerParsed);
    }
    // Counts the frames that were encrypted in one record. Sending the record is counted apart.
    void count_encrypted(std::size_t bytes) {
        sending_.add_cost(kCostOfBeginning + bytes / kCipheredPerParsed);
    }
    // Zeros to send in place of memory that must not be used any more. They take address space, but
    // no memory. Returns fewer than `count` if the system gives none. REQUIRES: count <=
    // kFrameTransferMax.
    std::span<std::byte> zeros(std::size_t count);
    // Allocates the memory for encrypted records. Called for the first encrypted connection.
    void make_room_for_records();
    // Ends connections until incomplete messages need no more memory than the receive buffers
    // would.
    void limit_incomplete();
    // Passes a message to the user, aligned to fop::kMessageAlignment.
    void deliver(std::span<const std::byte> message, const TcpConnection& by);

    class WakeUp final : public core::Timer {
    public:
        WakeUp() : Timer([](core::Timer&) {}) {}
    };

    // Measured by `bench_fabric costs`, rounded to powers of two.
    //
    // Parsing one byte costs as much as receiving this many directly into their target, or sending
    // this many.
    static constexpr std::size_t kCopiedPerParsed = 4;
    // The cost of serving a connection, besides that of what it receives: its system calls, even if
    // nothing has arrived.
    static constexpr std::size_t kCostOfWork = 1U << 10;
    // The cost of a system call that sends, however little.
    static constexpr std::size_t kCostOfSend = 8U << 10;
    // Decrypting and encrypting cost less for each byte, and more for each record, however small.
    static constexpr std::size_t kCipheredPerParsed = 2;
    static constexpr std::size_t kCostOfBeginning = 512;
    // The user handles a message, or goes on when an operation completes; when a connection ends,
    // it gives up all that it has for the connection.
    static constexpr std::size_t kCostOfCallBack = 1U << 10;
    static constexpr std::size_t kCostOfEnd = 32U << 10;
    // The most bytes of encrypted records that one system call sends.
    static constexpr std::size_t kRecordsOutBytes = 16 * kRecordMax;

    // How many connections may keep encrypted records of writes that were given up, until they are
    // sent. These use at most 64 MiB.
    static constexpr std::size_t kKeepRecordsMax = 256;

    core::Reactor& reactor_;
    MessageUser& messages_;
    const MachineOptions options_;
    const TcpOptions tcp_;
    std::vector<std::byte> arrivals_;  // The buffer into which connections receive, one at a time.
    std::vector<std::byte> aligned_;   // Room for one message.
    // Room for encrypted connections; empty until there is one.
    std::vector<std::byte> records_out_;
    std::vector<std::byte> decrypted_;
    std::span<std::byte> zeros_;
    OpenedMemory opened_;
    WorkTurns work_;
    WorkTurns sending_;  // The work here is sending, at the end of a turn.
    IncompleteMessages incomplete_;
    // The connection whose work() runs; null if it was destroyed meanwhile.
    TcpConnection* at_work_ = nullptr;
    std::size_t connection_count_ = 0;  // Of all that exist.
    Socket::Home sockets_;
    const bool is_simulated_;
    WakeUp wake_up_;
    core::WaitQueue sockets_gone_;
    std::uint32_t in_flight_ = 0;
    KeptRecords kept_records_{kKeepRecordsMax};
};

}  // namespace fopd::fabric
