// SPDX-License-Identifier: BSD-2-Clause
#include "client/key_file.h"

#include <array>
#include <string_view>

#include "client/secret_file.h"
#include "fop/secret.h"

namespace fopd::client {

namespace {

// More than a key and the white space around it.
constexpr std::size_t kFileMax = 512;

}  // namespace

std::expected<fop::Key, std::string> read_key_file(const std::string& path) {
    std::array<char, kFileMax> text{};
    const auto length = read_secret_file(path, text, Guard::kOwnerAlone);
    const auto key = fop::parse_key(std::string_view(text.data(), length.value_or(0)));
    fop::wipe(std::as_writable_bytes(std::span(text)));
    if (!length) return std::unexpected(length.error());
    if (!key) return std::unexpected(path + ": " + key.error().context);
    return *key;
}

}  // namespace fopd::client
