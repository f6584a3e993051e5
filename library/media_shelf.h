#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/events.h"
#include "core/reactor.h"
#include "core/result.h"
#include "core/task.h"
#include "core/wait_queue.h"
#include "io_sched/main_scheduler.h"
#include "library/library_bay.h"
#include "library/library_bell.h"
#include "library/media_table.h"
#include "library/tape_figures.h"
#include "store/tape/tape_file.h"

namespace fopd::library {

// The table of media with the file that keeps it, and what the I/O scheduler has to know of it.
// Lives on the library's reactor.
class MediaShelf {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        LibraryBay& bay;
        core::EventSink& events;
        io_sched::MainScheduler& io;
        TapeFigures& figures;
        // Of the drives, each once. In static storage.
        std::vector<std::string_view> technologies{};
        LibraryBell* bell = nullptr;  // Rung when a state has changed; null: nobody listens.
    };
    explicit MediaShelf(const Parts& parts) : parts_(parts), saved_now_(parts.reactor) {}
    // The figures have its cartridges no longer.
    ~MediaShelf();
    MediaShelf(const MediaShelf&) = delete;
    MediaShelf& operator=(const MediaShelf&) = delete;

    // Reads the file; an empty table if there is none. Once.
    Task<Result<void>> load();
    const MediaTable& table() const { return table_; }
    const Cartridge* find(CartridgeId id) const { return table_.find(id); }

    // Changes become durable with the next save().
    MediaTable& to_change() { return table_; }
    // Sets the state, and says so if it is another one.
    void set_state(CartridgeId id, CartridgeState state, std::string_view reason);
    // A cartridge that was away or unknown can be used again: it has the state that it
    // had before, or is blank if its label was not written.
    void set_found(CartridgeId id);
    // A drive of that technology does not take the cartridge, which fails unless others may.
    void note_unsupported(CartridgeId id, std::string_view technology);
    // Notes whether its copies are moved elsewhere.
    void set_repack(CartridgeId id, Repack repack);
    // Notes that the cartridge has the label of its generation.
    void note_label(CartridgeId id);
    // Notes a new end of the cartridge's data, and that the data have become so many bytes more.
    void move_end(CartridgeId id, const store::TapeEnd& end, std::uint64_t more_bytes);
    // Notes the number in the ids of its tape files.
    void note_number(CartridgeId id, CartridgeId number);
    // Notes whose objects the cartridge's last data are.
    void note_collection(CartridgeId id, std::string_view collection);
    // The number by which the scheduler knows a collection; 0: none.
    static std::uint64_t collection_number(std::string_view collection);
    // Makes the table durable. Callers at the same time share a write.
    Task<Result<void>> save();

    // Tells the scheduler what may be done with a cartridge now. A blank one is for the pool that
    // it was promised to.
    void show(CartridgeId id);
    // Grows with each change of a state.
    std::uint64_t changes() const { return changes_; }
    void promise(CartridgeId id, std::uint32_t pool);
    void withdraw(CartridgeId id);
    bool is_promised(CartridgeId id) const { return promised_.contains(id); }
    // A cartridge is nearly full, and nothing more is begun on it, when less than 1 /
    // kNearlyFullPart of its capacity is free.
    static constexpr std::uint64_t kNearlyFullPart = 20;
    // So many bytes of data can still be written to it.
    static std::uint64_t free_bytes(const Cartridge& cartridge) {
        return free_bytes(cartridge.capacity_bytes, cartridge.used_bytes);
    }
    static std::uint64_t free_bytes(std::uint64_t capacity_bytes, std::uint64_t used_bytes);

private:
    std::string_view technology_of(const Cartridge& cartridge) const;
    // Nothing: it is not in the table any more.
    void count(CartridgeId id, std::optional<CartridgeState> state);

    const Parts parts_;
    MediaTable table_;
    std::map<CartridgeId, CartridgeState> counted_;  // In the figures.
    std::map<CartridgeId, std::uint32_t> promised_;
    // The technologies of drives that do not take a cartridge.
    std::map<CartridgeId, std::set<std::string, std::less<>>> unsupported_;
    std::uint64_t changes_ = 1;
    std::uint64_t wanted_ = 0;
    std::uint64_t saved_ = 0;
    bool saving_ = false;
    core::WaitQueue saved_now_;
};

}  // namespace fopd::library
