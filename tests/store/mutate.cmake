# cmake -D MUTANT=<name> -D SOURCE=<file> -D OUTPUT=<file> -P mutate.cmake
# Writes the source with one of the store's rules left out.

if(MUTANT STREQUAL "flush_left_out")
    set(rule [==[        const auto flushed = co_await device_.flush();
]==])
    set(instead [==[        co_await reactor_.yield();
        const Result<void> flushed{};
]==])
elseif(MUTANT STREQUAL "freed_used_at_once")
    set(rule [==[        if (first.sequence > settled_ || first.freed_at > read_since) return;
]==])
    set(instead [==[        if (first.freed_at > read_since) return;
]==])
elseif(MUTANT STREQUAL "index_trusted_over_log")
    set(rule [==[    if (deliverable && cursor_.seq > options_.applied_seq + 1) {
]==])
    set(instead [==[    if (deliverable && options_.applied_seq == 0) {
]==])
elseif(MUTANT STREQUAL "marks_ignored")
    set(rule [==[        recorded_seq_ = std::max(recorded_seq_, (*found)->header.mark);
]==])
    set(instead "")
elseif(MUTANT STREQUAL "cleaning_drops_values")
    set(rule [==[            if (lives) kept_.put(record.key, record.value);
]==])
    set(instead [==[            static_cast<void>(lives);
]==])
elseif(MUTANT STREQUAL "cleaning_drops_extents")
    set(rule [==[    if (live.any()) kept_.rest_of_extent(record, live);
]==])
    set(instead "")
elseif(MUTANT STREQUAL "cleared_swallows_writes")
    set(rule [==[    cleared_.cut(range);
]==])
    set(instead "")
elseif(MUTANT STREQUAL "data_unchecked")
    set(rule [==[        if (core::crc32c(block) != extent.checksums[i]) co_return false;
]==])
    set(instead [==[        if (block.empty()) co_return false;
]==])
elseif(MUTANT STREQUAL "released_without_copies")
    set(rule [==[        return *covered ? Result<void>{} : uncovered();
]==])
    set(instead [==[        return {};
]==])
elseif(MUTANT STREQUAL "stale_copy_trusted")
    set(rule [==[    return copy.version == object.content_version();
]==])
    set(instead [==[    return copy.version <= object.content_version();
]==])
elseif(MUTANT STREQUAL "released_is_written")
    set(rule [==[        if ((changed.extents || changed.holes) && !is_granted) return released();
]==])
    set(instead "")
else()
    message(FATAL_ERROR "there is no mutant ${MUTANT}")
endif()

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/Mutate.cmake)
