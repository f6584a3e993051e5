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
    // The destination of a frame's body.
    struct Destination {
        enum class Kind : std::uint8_t {
            kWhole,  // The body is passed to on_body() as a whole.
            // Its bytes are copied into `memory`, which has the length of the body, as they arrive.
            kMemory,
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

    // Reads the next bytes of the stream. Returns how many it has read: all of them, unless pause()
    // was called. kClosed: the user has stopped the reader, which may be destroyed. Other errors:
    // the stream is invalid, or the error of on_frame(). After an error nothing more can be read.
    Result<std::size_t> take(std::span<const std::byte> bytes);
    // Called within on_body(): take() returns after this frame. Has no effect outside of take().
    void pause() { paused_ = true; }

    // The memory for the next bytes of the stream, so that the caller can receive directly into it.
    // Empty: the bytes must go through take(). The caller reports received bytes, at most the size
    // of the memory, to filled(), which returns the same as take().
    std::span<std::byte> target() const { return target_; }
    Result<void> filled(std::size_t count);
    // Skips the rest of the present body, which was to be copied into memory.
    void skip_rest();

    // The memory that the reader holds for an incomplete body.
    std::size_t held_bytes() const { return incomplete_.capacity(); }
    // Frees this memory. REQUIRES: nothing more is read.
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
    std::span<std::byte> target_;        // With kMemory: the memory for the next bytes of the body.
    std::vector<std::byte> incomplete_;  // With kWhole: the bytes of the body that have arrived.
};

}  // namespace fopd::fabric
