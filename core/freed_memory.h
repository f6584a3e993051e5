#pragma once

namespace fopd::core {

// Gives memory that was freed back to the kernel. The allocator keeps most of it otherwise: it
// returns only what lies behind everything in use. Takes some milliseconds for each 100 MiB that
// are returned, so call it only after much was freed.
void return_freed_memory();

}  // namespace fopd::core
