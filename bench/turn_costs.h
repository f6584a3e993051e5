#pragma once

namespace fopd::bench {

// What the turns of `tcp` count (fabric/tcp/tcp_machine.h), measured in this thread, without a
// machine and without sessions.
struct TurnCosts {
    // Of frames that have no body, which are the smallest.
    double parsed_byte_ns = 0;
    // What takes as long as parsing one byte: bytes that the kernel copies to where they belong,
    // that it takes to be sent, and that are encrypted or decrypted in large records, whichever
    // takes longer.
    double received_bytes = 0;
    double sent_bytes = 0;
    double ciphered_bytes = 0;
    // Parsed bytes that take as long as a record of 32 bytes, a call that receives nothing, and one
    // that sends a byte.
    double record = 0;
    double empty_receive = 0;
    double short_send = 0;
};

TurnCosts measure_turn_costs();

}  // namespace fopd::bench
