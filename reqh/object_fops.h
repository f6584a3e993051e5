#pragma once

#include "core/task.h"
#include "fop/message.h"

// The execute steps of the fops on objects; used only by the table in executors.cc.
namespace fopd::reqh {

class Operation;

Task<fop::Reply> run_read(Operation* operation);
Task<fop::Reply> run_write(Operation* operation);
Task<fop::Reply> run_append(Operation* operation);
Task<fop::Reply> run_truncate(Operation* operation);
Task<fop::Reply> run_punch(Operation* operation);

Task<fop::Reply> run_stat(Operation* operation);
Task<fop::Reply> run_set_attributes(Operation* operation);

Task<fop::Reply> run_create(Operation* operation);
Task<fop::Reply> run_lookup(Operation* operation);
Task<fop::Reply> run_list(Operation* operation);
Task<fop::Reply> run_rename(Operation* operation);
Task<fop::Reply> run_delete(Operation* operation);

Task<fop::Reply> run_upload_begin(Operation* operation);
Task<fop::Reply> run_upload_write(Operation* operation);
Task<fop::Reply> run_upload_commit(Operation* operation);
Task<fop::Reply> run_upload_abort(Operation* operation);

Task<fop::Reply> run_slots(Operation* operation);
Task<fop::Reply> run_statfs(Operation* operation);
Task<fop::Reply> run_sync(Operation* operation);
Task<fop::Reply> run_quota(Operation* operation);

}  // namespace fopd::reqh
