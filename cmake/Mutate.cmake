# Included with `rule` and `instead` set: writes SOURCE as OUTPUT with the one instead of the other. Fails when the
# source does not have the lines any more that say the rule: the mutant has to follow it.
file(READ ${SOURCE} text)
string(FIND "${text}" "${rule}" first)
string(FIND "${text}" "${rule}" last REVERSE)
if(first EQUAL -1 OR NOT first EQUAL last)
    message(FATAL_ERROR "${SOURCE} does not say once what ${MUTANT} leaves out")
endif()
string(REPLACE "${rule}" "${instead}" text "${text}")
file(WRITE ${OUTPUT} "${text}")
