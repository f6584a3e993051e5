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
    // The number of bytes that read() will return in all. 0: not known.
    virtual std::uint64_t size_bytes() const = 0;
};

// The destination of the bytes of a transfer, which are written in order.
class ByteSink {
public:
    virtual ~ByteSink() = default;
    virtual Task<Outcome<void>> write(std::span<const std::byte> from) = 0;
};

// A window of an upload that the server has received as a whole. A window is a part of the object,
// of TransferOptions::window_bytes.
struct UploadedWindow {
    std::uint64_t index = 0;  // 0: the first window of the object.
    // The incarnation of the object's slot that received the window (Receipt::incarnation). A later
    // incarnation may not have the window.
    std::uint64_t incarnation = 0;
};

// An upload that has begun, with the windows that the server has received as a whole. The last
// window of an object is not among them if it is shorter.
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
    // A lane is a coroutine of the transfer that moves one window after another. Each lane has
    // memory for one window, so `lanes` is the number of windows in flight.
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
    // Moves windows, one at a time in `memory`, until there are no more or one fails.
    using Lane = Task<Outcome<void>> (Transfer::*)(std::span<std::byte> memory);
    Task<Outcome<void>> run_lanes(Lane lane, std::uint64_t bytes_max);
    Task<void> run_lane(Lane lane);

    ObjectClient::Wait wait() const;
    // A lane has the turn while it calls the source or the sink, which take one call at a time, in
    // the order of the windows. Waits until it is the turn of the window at `offset`. False: the
    // end was reached meanwhile, or a window failed, and the lane must end. After true, the lane
    // must call end_turn() or finish(), or return a failure; otherwise the other lanes wait for
    // ever.
    Task<bool> take_turn(std::uint64_t offset);
    // Gives the turn to the window at `next_offset`, the end of this lane's window. REQUIRES:
    // take_turn() has returned true to this lane.
    void end_turn(std::uint64_t next_offset);
    // Makes the lanes begin no more windows. Lanes that wait for their turn get false.
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
    // Makes run() continue an upload that another Put has begun: run() does not send the windows in
    // `upload` again unless the server has lost them. Does nothing if `upload` has another
    // window_bytes than this transfer. REQUIRES: called before run(). The upload was begun for the
    // same object, and its source had the same bytes.
    void go_on(const BegunUpload& upload);
    // Reports the upload to the watcher. If the transfer is cancelled or the server does not
    // answer, an upload with a watcher is not aborted, so that another Put can continue it.
    // REQUIRES: called before run(). The watcher outlives the transfer.
    void watch(UploadWatcher& watcher) { watcher_ = &watcher; }
    Task<Outcome<fop::Fid>> run(NewObject object);
    // REQUIRES: run() has succeeded. The size of the object.
    std::uint64_t size_bytes() const { return end_; }

private:
    Task<Outcome<fop::Fid>> upload(Window first);
    // Begins the upload if there is none, sends the windows that the server lacks, and commits.
    // After kLost the caller calls again, which sends the lost windows. After kNotFound the server
    // has lost the upload: the caller forgets it and all its windows, and calls again.
    Task<Outcome<void>> upload_once(Window first);
    Task<Outcome<void>> send(Window window) override;
    bool is_sent(std::uint64_t offset) const override;
    void forget_all_but(std::uint64_t incarnation);
    void record(std::uint64_t index, std::uint64_t incarnation);

    NewObject object_;
    UploadWatcher* watcher_ = nullptr;
    bool goes_on_ = false;  // The upload was begun by another transfer.
    fop::Fid fid_{};
    // The source was read only as far as the first window, which is still in memory.
    bool first_only_ = true;
    // By index of a window: the incarnation of the slot that received it; 0: to be sent.
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
