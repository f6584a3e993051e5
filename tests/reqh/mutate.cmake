# cmake -D MUTANT=<name> -D SOURCE=<file> -D OUTPUT=<file> -P mutate.cmake
# Writes the source with one of the request handler's rules broken.

if(MUTANT STREQUAL "append_lock_before_pull")
    set(rule [==[    const auto brought = co_await writer.bring();
    if (!brought) co_return operation->refuse(brought.error());
    if (brought->has_value()) co_return **brought;
    const auto locked = co_await operation->lock_whole(fid);
    if (!locked) co_return operation->refuse(locked.error());
]==])
    set(instead [==[    const auto locked = co_await operation->lock_whole(fid);
    if (!locked) co_return operation->refuse(locked.error());
    const auto brought = co_await writer.bring();
    if (!brought) co_return operation->refuse(brought.error());
    if (brought->has_value()) co_return **brought;
]==])
elseif(MUTANT STREQUAL "write_lock_before_pull")
    set(rule [==[    const auto brought = co_await writer.bring();
    if (!brought) co_return operation->refuse(brought.error());
    if (brought->has_value()) co_return **brought;
    const auto locked = co_await operation->lock(lock_for_write(fid, blocks));
    if (!locked) co_return operation->refuse(locked.error());
]==])
    set(instead [==[    const auto locked = co_await operation->lock(lock_for_write(fid, blocks));
    if (!locked) co_return operation->refuse(locked.error());
    const auto brought = co_await writer.bring();
    if (!brought) co_return operation->refuse(brought.error());
    if (brought->has_value()) co_return **brought;
]==])
elseif(MUTANT STREQUAL "resend_unrecorded")
    set(rule [==[    if (*newest < reply_key_.request_number) co_return std::nullopt;
]==])
    set(instead [==[    if (*newest <= reply_key_.request_number) co_return std::nullopt;
]==])
else()
    message(FATAL_ERROR "there is no mutant ${MUTANT}")
endif()

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/Mutate.cmake)
