// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "client/object_client.h"
#include "core/reactor.h"

namespace fopd::client {

// The source of the bytes of a transfer.
class ByteSource {
public:
    virtual ~ByteSource() = default;
    // Fills `into`; returns fewer bytes only at the end. The offsets of the calls ascend, unless
    // the source repeats().
    virtual Task<Outcome<std::size_t>> read(std::uint64_t offset, std::span<std::byte> into) = 0;
    // Whether read() may go back to an earlier offset, as in a file.
    virtual bool repeats() const = 0;
    // 0: not known.
    virtual std::uint64_t size_bytes() const = 0;
};

// The destination of the bytes of a transfer, which are written in order.
class ByteSink {
public:
    virtual ~ByteSink() = default;
    virtual Task<Outcome<void>> write(std::span<const std::byte> from) = 0;
};

// A whole window that the server has taken, in one of its incarnations.
struct UploadedWindow {
    std::uint64_t index = 0;
    std::uint64_t incarnation = 0;
};

// An upload that has begun, with the windows that the server has received.
struct BegunUpload {
    fop::Fid fid{};
    std::uint64_t window_bytes = 0;
    std::vector<UploadedWindow> windows{};
};

// Receives everything that another Put needs to continue an upload.
class UploadWatcher {
public:
    virtual ~UploadWatcher() = default;
    virtual void on_begun(const BegunUpload& upload) = 0;
    virtual void on_sent(const fop::Fid& fid, UploadedWindow window) = 0;
};

struct TransferOptions {
    // Each lane has memory for one window, and moves one window at a time, so `lanes` is the number
    // of windows in flight.
    std::uint64_t window_bytes = 8U << 20;  // A multiple of fop::kBlockBytes.
    std::uint32_t lanes = 3;
    // The deadline for moving one window, retries included.
    Duration patience{30s};
    core::CancelSource* cancel = nullptr;
};

// Moves data that may be larger than memory, in windows; several windows are in flight at a time.
// An instance makes one transfer, and outlives run().
class Transfer {
public:
    // The progress; a window that is sent again counts once.
    std::uint64_t moved_bytes() const { return moved_; }

protected:
    Transfer(core::Reactor& reactor, ObjectClient& objects, TransferOptions options);
    ~Transfer() = default;
    Transfer(const Transfer&) = delete;
    Transfer& operator=(const Transfer&) = delete;

    struct Window {
        std::uint64_t offset = 0;
        std::span<std::byte> bytes{};
    };
    // Moves windows until there are no more, or one fails.
    using Lane = Task<Outcome<void>> (Transfer::*)(std::span<std::byte> memory);
    Task<Outcome<void>> run_lanes(Lane lane, std::uint64_t bytes_max);
    Task<void> run_lane(Lane lane);

    ObjectClient::Wait wait() const;
    // The source and the sink take one call at a time, in order of the windows. Waits for the turn
    // of this window; false if the end was reached meanwhile, or a window failed.
    Task<bool> take_turn(std::uint64_t offset);
    void end_turn(std::uint64_t next_offset);
    // Lets the lanes begin no more windows.
    void finish();
    bool finished() const { return finished_; }

    core::Reactor& reactor_;
    ObjectClient& objects_;
    const TransferOptions options_;
    std::uint64_t moved_ = 0;
    std::uint64_t next_ = 0;  // The offset of the next window.

private:
    std::uint64_t turn_ = 0;
    bool finished_ = false;
    core::WaitQueue turns_;
    std::optional<Problem> problem_;
};

// A transfer from a source to the server.
class Sending : public Transfer {
protected:
    Sending(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
            TransferOptions options)
        : Transfer(reactor, objects, options), source_(source) {}
    ~Sending() = default;

    // Reads the source from `next_` to its end, and sends all of it.
    Task<Outcome<void>> send_all();
    virtual Task<Outcome<void>> send(Window window) = 0;
    // Whether the server already has the window at the offset. Such a window is neither read from
    // the source nor sent.
    virtual bool is_sent(std::uint64_t /*offset*/) const { return false; }

    ByteSource& source_;
    std::uint64_t end_ = 0;  // The end of the bytes that were read.

private:
    Task<Outcome<void>> lane(std::span<std::byte> memory);
};

// Stores a whole object. If the server restarts meanwhile, the windows that it has lost are sent
// again. If the source cannot be read again, each window is made durable before its memory is used
// again. An object that fits into one window is stored with a single put.
class Put final : public Sending {
public:
    Put(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
        TransferOptions options = {});
    // Before run(). The upload of an object that does not fit into one window goes on with these
    // windows, if the server still has them. REQUIRES: of the same bytes, for the same object.
    void go_on(const BegunUpload& upload);
    // Before run(). The watcher outlives the transfer. When the transfer is cancelled, or the
    // server does not answer, an upload with a watcher is not aborted.
    void watch(UploadWatcher& watcher) { watcher_ = &watcher; }
    Task<Outcome<fop::Fid>> run(NewObject object);
    // REQUIRES: run() has succeeded. The size of the object.
    std::uint64_t size_bytes() const { return end_; }

private:
    Task<Outcome<fop::Fid>> upload(Window first);
    // After kLost the missing windows are to be sent again, after kNotFound all of them.
    Task<Outcome<void>> upload_once(Window first);
    Task<Outcome<void>> send(Window window) override;
    bool is_sent(std::uint64_t offset) const override;
    void forget_all_but(std::uint64_t incarnation);
    void record(std::uint64_t index, std::uint64_t incarnation);

    NewObject object_;
    UploadWatcher* watcher_ = nullptr;
    bool goes_on_ = false;  // The upload was begun by another transfer.
    fop::Fid fid_{};
    bool first_only_ = true;  // Only the first window was read; it is still in memory.
    // The incarnation that took each window; 0: not sent.
    std::vector<std::uint64_t> incarnations_;
};

// Writes into an existing object, beginning at an offset.
class Overwrite final : public Sending {
public:
    struct Target {
        fop::Fid fid{};
        std::uint64_t offset = 0;
        fop::Durability durability = fop::Durability::kDurable;
    };
    Overwrite(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
              TransferOptions options = {});
    Task<Outcome<void>> run(Target target);

private:
    Task<Outcome<void>> send(Window window) override;

    Target target_{};
};

// Appends to an object in chunks of fop::kTransferBytesMax; each chunk is atomic.
class Appending final : public Sending {
public:
    Appending(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
              TransferOptions options = {});
    // Returns the offset of the first chunk, or nullopt if the source was empty.
    Task<Outcome<std::optional<std::uint64_t>>> run(fop::Fid fid);

private:
    Task<Outcome<void>> send(Window window) override;

    fop::Fid fid_{};
    std::optional<std::uint64_t> first_;
};

// Reads a range of an object, up to the end of the object, into a sink.
class Get final : public Transfer {
public:
    Get(core::Reactor& reactor, ObjectClient& objects, ByteSink& sink,
        TransferOptions options = {});
    // Returns the number of bytes.
    Task<Outcome<std::uint64_t>> run(fop::Fid fid, fop::Range range);

private:
    Task<Outcome<void>> lane(std::span<std::byte> memory);

    ByteSink& sink_;
    fop::Fid fid_{};
    fop::Range range_{};
};

}  // namespace fopd::client
