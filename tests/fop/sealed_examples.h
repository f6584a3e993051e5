#pragma once

#include "fop/descriptor.h"
#include "fop/token.h"
#include "tests/fop/example_bytes.h"

namespace fopd::fop {

// The examples of docs/formats/descriptor.md and docs/formats/token.md.
inline const MacKey kDescriptorKey(counting_bytes<16>(0x30));
inline const Descriptor kDescriptor{.use = DescriptorUse::kPeerWrites,
                                    .session = 7,
                                    .operation = 41,
                                    .address = 0x7f0000001000,
                                    .key = 0x1122334455667788,
                                    .bytes = 1 << 20};
inline const DescriptorNeed kDescriptorNeed{
    .use = DescriptorUse::kPeerWrites, .session = 7, .operation = 41, .bytes = 1 << 20};

inline const Key kIssuerSeed(counting_bytes<32>(0x80));
inline const Token kToken{.id = counting_bytes<16>(0x50),
                          .principal = "ann",
                          .rights = kRead | kWrite,
                          .pool = "fast",
                          .object = counting_bytes<16>(0x10),
                          .not_after = 1'800'000'000,
                          .generation = 5};

}  // namespace fopd::fop
