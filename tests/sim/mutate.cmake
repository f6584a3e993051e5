# cmake -D MUTANT=<name>:<source> -D SOURCE=<file> -D OUTPUT=<file> -P mutate.cmake
# Writes the source with one of the node's rules left out.

if(MUTANT STREQUAL "replay_unchecked:objects/changed_ranges.cc")
    set(rule [==[    if (lost_in >= life_.incarnation || lost_in < life_.first_known) return true;
]==])
    set(instead [==[    if (lost_in < life_.incarnation) return false;
]==])
elseif(MUTANT STREQUAL "filemark_not_awaited:store/tape/tape_writer.cc")
    set(rule [==[    const auto room = co_await drive_.sync();
]==])
    set(instead [==[    const Result<devices::TapeRoom> room = devices::TapeRoom::kPlenty;
]==])
elseif(MUTANT STREQUAL "released_before_record:library/staging_room.cc")
    set(rule [==[    if (!have_copies(*copies, wanted, 0, size_bytes)) {
]==])
    set(instead [==[    if (wanted == 0 && size_bytes == 0) {
]==])
elseif(MUTANT STREQUAL "released_before_record:store/released_rules.cc")
    set(rule [==[        return *covered ? Result<void>{} : uncovered();
]==])
    set(instead [==[        return {};
]==])
elseif(MUTANT STREQUAL "label_not_compared:library/drive_label.cc")
    set(rule [==[    const bool fits = may_be_blank ? found->kind == Kind::kBlank || may_be_labelled
                                   : found->kind == (is_labelled ? Kind::kOurs : Kind::kBlank);
]==])
    set(instead [==[    const bool fits = may_be_blank || may_be_labelled || found.has_value();
]==])
elseif(MUTANT STREQUAL "stale_catalogue_trusted:store/tape/tape_writer.cc")
    set(rule [==[    if (found->filemarks >= 3 * (end.files + 1)) {
        co_return corrupt("the tape has more files than its catalogue");
    }
]==])
    set(instead "")
else()
    message(FATAL_ERROR "there is no mutant ${MUTANT}")
endif()

include(${CMAKE_CURRENT_LIST_DIR}/../../cmake/Mutate.cmake)
