#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "fabric/tcp/frame.h"

namespace fopd::fabric {

// Receives the frames of a FrameReader.
class FrameUser {
public:
    // Where the body of a frame goes.
    struct Destination {
        enum class Kind : std::uint8_t {
            kWhole,    // To on_body(), as a whole.
            kMemory,   // Into `memory`, which has the length of the body, as its bytes arrive.
            kNowhere,  // The bytes are skipped.
        };
        Kind kind = Kind::kWhole;
        std::span<std::byte> memory = {};
    };
    // A frame begins. An error ends the reading: the reader returns it.
    virtual Result<Destination> on_frame(const Frame& frame) = 0;
    // The body has arrived; `body` is empty unless its destination is kWhole, and is valid during
    // the call. Returns false if the reader is to stop, because it may have been destroyed
    // meanwhile.
    virtual bool on_body(const Frame& frame, std::span<const std::byte> body) = 0;

protected:
    ~FrameUser() = default;
};

// Appends a part of a frame or record to its earlier parts; the whole has `total_bytes`. The memory
// is at most twice the bytes that have arrived, so a peer that announces much and sends little
// takes little memory.
void hold_part(std::vector<std::byte>& held, std::span<const std::byte> part,
               std::size_t total_bytes);

// Splits a stream of bytes into frames. Pure: the caller receives the bytes. For a body that must
// be delivered as a whole it holds memory, at most twice the bytes that have arrived.
class FrameReader {
public:
    explicit FrameReader(FrameUser& user) : user_(user) {}

    // The next bytes of the stream. Returns how many it has read: all, unless it was told to pause.
    // kClosed: the user has stopped the reader, which may be gone. Other errors are of the stream,
    // or from on_frame(). After an error nothing more can be read.
    Result<std::size_t> take(std::span<const std::byte> bytes);
    // For on_body(): take() returns after this frame. No effect outside of take().
    void pause() { paused_ = true; }

    // The memory that the next bytes of the stream belong to, so that the caller can receive
    // directly into it; empty if they must go through take(). At most this many bytes are then
    // reported with filled(), which returns as take() does.
    std::span<std::byte> target() const { return target_; }
    Result<void> filled(std::size_t count);
    // The rest of a body that goes into memory is skipped instead.
    void skip_rest();

    // The memory that it has for a body that must be delivered as a whole and is incomplete.
    std::size_t held_bytes() const { return incomplete_.capacity(); }
    // Frees it. REQUIRES: nothing more is read.
    void drop_incomplete() { std::vector<std::byte>().swap(incomplete_); }
    // How many frames have begun.
    std::uint64_t begun() const { return begun_; }

    // The frame whose body is incomplete; null between frames.
    const Frame* current() const { return in_body_ ? &frame_ : nullptr; }

private:
    Result<void> begin_frame();
    // Takes bytes of the body, and returns how many.
    Result<std::size_t> take_body(std::span<const std::byte> bytes);
    Result<void> end_body(std::span<const std::byte> body);

    FrameUser& user_;
    FrameHeader header_{};
    std::size_t header_bytes_ = 0;  // How many bytes of the next header have arrived.
    std::uint64_t begun_ = 0;
    bool paused_ = false;
    Frame frame_;
    bool in_body_ = false;
    FrameUser::Destination::Kind kind_ = FrameUser::Destination::Kind::kWhole;
    std::size_t body_left_ = 0;          // How many bytes of the body have not arrived.
    std::span<std::byte> target_;        // With kMemory: where the next bytes of the body go.
    std::vector<std::byte> incomplete_;  // With kWhole: the bytes of the body that have arrived.
};

}  // namespace fopd::fabric
