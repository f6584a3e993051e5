#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "fabric/tcp/record_reader.h"
#include "fop/record_cipher.h"

namespace fopd::fabric::testing {

// The stream as encrypted records, with a key of zeros. `next_size()` is how many bytes the next
// record has at most.
template <typename NextSize>
std::vector<std::byte> in_records(std::span<const std::byte> stream, NextSize next_size) {
    fop::RecordCipher cipher(fop::Key(), fop::RecordCipher::Way::kSeal);
    std::vector<std::byte> records;
    while (!stream.empty()) {
        const std::array<std::span<const std::byte>, 1> parts{
            stream.first(std::min<std::size_t>(next_size(), stream.size()))};
        const RecordLabel label = encode_record_label(parts[0].size());
        records.insert(records.end(), label.begin(), label.end());
        const std::size_t at = records.size();
        records.resize(at + parts[0].size() + fop::RecordCipher::kTagBytes);
        cipher.seal(label, parts, std::span(records).subspan(at));
        stream = stream.subspan(parts[0].size());
    }
    return records;
}

}  // namespace fopd::fabric::testing
