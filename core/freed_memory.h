#pragma once

namespace fopd::core {

// Gives memory that was freed back to the kernel. The allocator keeps most of it otherwise: it
// returns only what lies behind everything in use. Takes some milliseconds for each 100 MiB that
// are returned, and keeps other threads from allocating meanwhile: call it after each few 10 MiB
// that were freed.
void return_freed_memory();

}  // namespace fopd::core
