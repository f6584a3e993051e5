#pragma once

#include <cstdint>
#include <vector>

#include "core/task.h"
#include "fop/message.h"
#include "library/cartridge.h"
#include "store/fid.h"

// Executes the fops on objects on tape, and on the tape library.
namespace fopd::reqh {

class Operation;

// Records a recall of an object whose bytes are on tape only. The fop ends at once with the status
// kStaging, and the client waits for the recall. REQUIRES: called at the object's home, and the fop
// holds no lock there.
Task<fop::Reply> ask_for_recall(Operation* operation, store::Fid fid);

// Called at the object's home when the caller has got so many bytes of the object: an object that
// was recalled for it need not stay on its disk any longer when all are read.
void note_read(Operation* operation, store::Fid fid, std::uint64_t bytes);

// Called at the home of a slot when a change did not fit on its disk: the staging begins to make
// room, so that the client may try again. Returns at once.
void ask_for_room(Operation* operation, store::Slot slot, std::uint64_t free_blocks);

// The cartridges of the node; empty if it has no library, or the library is not open.
Task<std::vector<library::Cartridge>> list_cartridges(Operation* operation);

Task<fop::Reply> run_stage(Operation* operation);
Task<fop::Reply> run_release(Operation* operation);
Task<fop::Reply> run_recalls(Operation* operation);
Task<fop::Reply> run_recall_wait(Operation* operation);
Task<fop::Reply> run_recall_cancel(Operation* operation);
Task<fop::Reply> run_sync_tape(Operation* operation);
Task<fop::Reply> run_media(Operation* operation);
Task<fop::Reply> run_format_medium(Operation* operation);
Task<fop::Reply> run_load_medium(Operation* operation);
Task<fop::Reply> run_unload_drive(Operation* operation);
Task<fop::Reply> run_medium_work(Operation* operation);
Task<fop::Reply> run_set_drive(Operation* operation);
Task<fop::Reply> run_export_medium(Operation* operation);
Task<fop::Reply> run_import_media(Operation* operation);
Task<fop::Reply> run_copies(Operation* operation);

}  // namespace fopd::reqh
