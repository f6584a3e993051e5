#pragma once

#include <cstdint>

namespace fopd::fop {

// How a session protects its messages. Both sides must want the same.
enum class Protection : std::uint8_t {
    kSeal,     // Messages prove their sender. Data that move between memories do not, and everybody
               // on the way can read everything.
    kEncrypt,  // After the handshake everything is encrypted, and proves its sender.
};

}  // namespace fopd::fop
