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

// Where the bytes of a transfer come from.
class ByteSource {
public:
    virtual ~ByteSource() = default;
    // Fills `into`; fewer bytes are the last ones. Called for one place after the other, and again
    // for what was read before only if it repeats().
    virtual Task<Outcome<std::size_t>> read(std::uint64_t offset, std::span<std::byte> into) = 0;
    virtual bool repeats() const = 0;
    // As far as it is known; 0: it is not.
    virtual std::uint64_t size_bytes() const = 0;
};

// Where they go to, one behind the other.
class ByteSink {
public:
    virtual ~ByteSink() = default;
    virtual Task<Outcome<void>> write(std::span<const std::byte> from) = 0;
};

struct TransferOptions {
    // Memory: so much for each of those that move bytes side by side.
    std::uint64_t window_bytes = 8U << 20;  // A multiple of fop::kBlockBytes.
    std::uint32_t lanes = 3;
    // How long the server may take for one window.
    Duration patience{30s};
    core::CancelSource* cancel = nullptr;
};

// Moves what may be larger than memory: windows of it are read, and several are on their way at a
// time. Objects of one window are moved in it as a whole. One transfer each; it outlives run().
class Transfer {
public:
    // How far it is; a window that is sent again counts once.
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
    // What a lane does: it ends when there are no more windows, or with a problem.
    using Lane = Task<Outcome<void>> (Transfer::*)(std::span<std::byte> memory);
    Task<Outcome<void>> run_lanes(Lane lane, std::uint64_t bytes_max);
    Task<void> run_lane(Lane lane);

    ObjectClient::Wait wait() const;
    // Until the source or the sink, which take one call at a time, is this window's; false when the
    // end was reached meanwhile, or something failed.
    Task<bool> take_turn(std::uint64_t offset);
    void end_turn(std::uint64_t next_offset);
    // No more windows.
    void finish();
    bool finished() const { return finished_; }

    core::Reactor& reactor_;
    ObjectClient& objects_;
    const TransferOptions options_;
    std::uint64_t moved_ = 0;
    std::uint64_t next_ = 0;  // Where the next window begins.

private:
    std::uint64_t turn_ = 0;
    bool finished_ = false;
    core::WaitQueue turns_;
    std::optional<Problem> problem_;
};

// From a source to the server, in order of reading.
class Sending : public Transfer {
protected:
    Sending(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
            TransferOptions options)
        : Transfer(reactor, objects, options), source_(source) {}
    ~Sending() = default;

    // Reads from `next_` on to the end and sends all of it.
    Task<Outcome<void>> send_all();
    virtual Task<Outcome<void>> send(Window window) = 0;
    // Whether the window needs neither be read nor sent.
    virtual bool is_sent(std::uint64_t /*offset*/) const { return false; }

    ByteSource& source_;
    std::uint64_t end_ = 0;  // Of what was read.

private:
    Task<Outcome<void>> lane(std::span<std::byte> memory);
};

// A whole object. A server that starts anew meanwhile is sent again what it has lost; of a source
// that does not repeat itself nothing is forgotten before it is durable.
class Put final : public Sending {
public:
    Put(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
        TransferOptions options = {});
    Task<Outcome<fop::Fid>> run(NewObject object);

private:
    Task<Outcome<fop::Fid>> upload(Window first);
    // kLost: what is missing now is to be sent again; kNotFound: everything.
    Task<Outcome<void>> upload_once(Window first);
    Task<Outcome<void>> send(Window window) override;
    bool is_sent(std::uint64_t offset) const override;
    void forget_all_but(std::uint64_t incarnation);

    NewObject object_;
    fop::Fid fid_{};
    bool first_only_ = true;                   // What was read is still in memory.
    std::vector<std::uint64_t> incarnations_;  // In which each window was taken; 0: in none.
};

// Into an object that is there, from an offset on.
class Overwrite final : public Sending {
public:
    struct Place {
        fop::Fid fid{};
        std::uint64_t offset = 0;
        fop::Durability durability = fop::Durability::kDurable;
    };
    Overwrite(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
              TransferOptions options = {});
    Task<Outcome<void>> run(Place place);

private:
    Task<Outcome<void>> send(Window window) override;

    Place place_{};
};

// Behind the end of an object, in pieces of fop::kTransferBytesMax, each of which is atomic.
class Appending final : public Sending {
public:
    Appending(core::Reactor& reactor, ObjectClient& objects, ByteSource& source,
              TransferOptions options = {});
    // Where the first piece lies; nothing when there was none.
    Task<Outcome<std::optional<std::uint64_t>>> run(fop::Fid fid);

private:
    Task<Outcome<void>> send(Window window) override;

    fop::Fid fid_{};
    std::optional<std::uint64_t> first_;
};

// A range of an object into a sink. What lies behind the end of the object is left out.
class Get final : public Transfer {
public:
    Get(core::Reactor& reactor, ObjectClient& objects, ByteSink& sink,
        TransferOptions options = {});
    // How many bytes there were.
    Task<Outcome<std::uint64_t>> run(fop::Fid fid, fop::Range range);

private:
    Task<Outcome<void>> lane(std::span<std::byte> memory);

    ByteSink& sink_;
    fop::Fid fid_{};
    fop::Range range_{};
};

}  // namespace fopd::client
