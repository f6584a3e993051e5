#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "core/time.h"

namespace fopd::store {

// The labels of a tape, as bytes; see docs/formats/tape.md. They are those of ISO 1001 (ANSI
// X3.27), with user labels as CASTOR and CTA write them ("AUL"). Each is one block.
inline constexpr std::size_t kTapeLabelBytes = 80;
using TapeLabel = std::array<std::byte, kTapeLabelBytes>;

// A volume serial number: six upper case letters and digits.
class Vsn {
public:
    static constexpr std::size_t kCharacters = 6;

    Vsn() { text_.fill('0'); }
    // Nothing if the text is not a VSN.
    static std::optional<Vsn> parse(std::string_view text);
    // The first six characters. Nothing if the barcode is shorter, or they are not a VSN.
    static std::optional<Vsn> from_barcode(std::string_view barcode) {
        return parse(barcode.substr(0, kCharacters));
    }

    std::string_view text() const { return {text_.data(), text_.size()}; }

    friend auto operator<=>(const Vsn&, const Vsn&) = default;

private:
    std::array<char, kCharacters> text_;
};

// VOL1, the first block of a tape.
struct VolumeLabel {
    Vsn vsn;
    char access = ' ';           // Blank: everybody may read it.
    std::string implementation;  // At most 13 characters, as the owner at most 14.
    std::string owner;

    friend bool operator==(const VolumeLabel&, const VolumeLabel&) = default;
};

TapeLabel encode_volume_label(const VolumeLabel& label);
// kCorrupt: not a VOL1, or one of another standard.
Result<VolumeLabel> parse_volume_label(std::span<const std::byte> block);

// The kind of a tape file: copies of objects, the list of all files before it, or the empty file
// that a format writes and the first file replaces.
enum class TapeFileKind : std::uint8_t { kObjects, kIndex, kPrelabel };

// Where a file was written. The labels have room for the first 8 characters of site, vendor and
// model, 10 of the mover, and 12 of the serial number; lower case becomes upper case, and other
// characters than letters and digits become '-'.
struct TapeSite {
    std::string site;
    std::string mover;  // The host.
    std::string vendor;
    std::string model;
    std::string serial;  // Of the drive.

    friend bool operator==(const TapeSite&, const TapeSite&) = default;
};

inline constexpr std::uint64_t kTapeFileNumberMax = 9'999'999'999;

// The labels before a tape file (HDR1, HDR2, UHL1) or behind it (EOF1, EOF2, UTL1).
struct FileLabels {
    enum class Side : std::uint8_t { kHeader, kTrailer };

    Vsn vsn;
    TapeFileKind kind = TapeFileKind::kObjects;
    std::uint64_t file_id = 0;  // Of kObjects; zero for others.
    std::uint64_t number = 1;   // Of the file on the tape, from 1 on.
    // Of a trailer: the data blocks of the file, modulo a million. Zero in a header.
    std::uint32_t blocks = 0;
    std::uint16_t year = 2000;  // The day of writing, 1900 to 2199.
    std::uint16_t day = 1;      // Of the year, from 1 on.
    TapeSite site;

    friend bool operator==(const FileLabels&, const FileLabels&) = default;
};

inline constexpr std::size_t kFileLabels = 3;
inline constexpr std::uint32_t kLabelBlocksEnd = 1'000'000;

// Sets the day of writing.
void set_day(FileLabels& labels, WallTime when);

// REQUIRES: number, year and day are in their ranges.
std::array<TapeLabel, kFileLabels> encode_file_labels(FileLabels::Side side,
                                                      const FileLabels& labels);
// kCorrupt: they are not three labels as encode_file_labels() makes them.
Result<FileLabels> parse_file_labels(FileLabels::Side side,
                                     std::span<const TapeLabel, kFileLabels> labels);

// The HDR1 that a format writes.
TapeLabel encode_prelabel(const FileLabels& labels);

}  // namespace fopd::store
