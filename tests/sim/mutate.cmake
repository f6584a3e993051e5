# cmake -D MUTANT=<name> -D SOURCE=<file> -D OUTPUT=<file> -P mutate.cmake
# Writes the source with one of the node's rules left out.

if(MUTANT STREQUAL "replay_unchecked")
    set(rule [==[    if (lost_in >= life_.incarnation || lost_in < life_.first_known) return true;
]==])
    set(instead [==[    if (lost_in < life_.incarnation) return false;
]==])
else()
    message(FATAL_ERROR "there is no mutant ${MUTANT}")
endif()

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/Mutate.cmake)
