#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "fabric/tcp/frame_reader.h"
#include "fop/record_cipher.h"

namespace fopd::fabric {

// An encrypted connection is a stream of records in each direction. A record has the number of
// encrypted bytes, these bytes, and a tag. The decrypted bytes of all records form the stream of
// frames.
inline constexpr std::size_t kRecordLabelBytes = 4;  // The number, little-endian.
inline constexpr std::size_t kRecordPlainMax = 16U << 10;
inline constexpr std::size_t kRecordMax =
    kRecordLabelBytes + kRecordPlainMax + fop::RecordCipher::kTagBytes;

using RecordLabel = std::array<std::byte, kRecordLabelBytes>;
RecordLabel encode_record_label(std::size_t plain_bytes);

// Decrypts received bytes for a FrameReader. Pure: the caller receives the bytes. For an incomplete
// record it holds memory, at most twice the bytes that have arrived.
class RecordReader {
public:
    explicit RecordReader(const fop::Key& key) : cipher_(key, fop::RecordCipher::Way::kOpen) {}

    // Reads the next bytes of the stream, and decrypts each complete record for `frames`: directly
    // into the memory of a body if it fits, otherwise into `scratch`, which has kRecordPlainMax
    // bytes. If a record is not authentic, the memory of the body may have undefined content.
    // Errors: as FrameReader::take(). kInvalid: a record is not valid, or not the next one.
    Result<void> take(std::span<const std::byte> bytes, FrameReader& frames,
                      std::span<std::byte> scratch);

    // How many records have been decrypted.
    std::uint64_t opened() const { return opened_; }
    std::size_t held_bytes() const { return incomplete_.capacity(); }
    // Frees the memory. REQUIRES: nothing more is read.
    void drop_incomplete() { std::vector<std::byte>().swap(incomplete_); }

private:
    Result<void> open(std::span<const std::byte> record, FrameReader& frames,
                      std::span<std::byte> scratch);

    fop::RecordCipher cipher_;
    std::uint64_t opened_ = 0;
    std::vector<std::byte> incomplete_;  // The bytes of the next record that have arrived.
};

}  // namespace fopd::fabric
