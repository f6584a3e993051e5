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

// Keeps the table of media durable in its file, and tells the I/O scheduler how each cartridge may
// be used. Lives on the library's reactor.
class MediaShelf {
public:
    // All outlive it.
    struct Parts {
        core::Reactor& reactor;
        LibraryBay& bay;
        core::EventSink& events;
        io_sched::MainScheduler& io;
        TapeFigures& figures;
        // The technologies of the drives, without duplicates. In static storage.
        std::vector<std::string_view> technologies{};
        LibraryBell* bell = nullptr;  // Rung when a state has changed; null: nobody listens.
    };
    explicit MediaShelf(const Parts& parts) : parts_(parts), saved_now_(parts.reactor) {}
    // Subtracts the cartridges from the figures.
    ~MediaShelf();
    MediaShelf(const MediaShelf&) = delete;
    MediaShelf& operator=(const MediaShelf&) = delete;

    // Reads the file; without a file the table is empty. Called once.
    Task<Result<void>> load();
    const MediaTable& table() const { return table_; }
    const Cartridge* find(CartridgeId id) const { return table_.find(id); }

    // Changes become durable with the next save().
    MediaTable& to_change() { return table_; }
    // Sets the state of a cartridge, with an event if the state changes.
    void set_state(CartridgeId id, CartridgeState state, std::string_view reason);
    // A missing, foreign or disabled cartridge can be used again: restores its state before, or
    // makes it blank if its label was not written.
    void set_found(CartridgeId id);
    // Notes that drives of this technology do not accept the cartridge. The cartridge becomes
    // failed if no drive of another technology may accept it.
    void note_unsupported(CartridgeId id, std::string_view technology);
    // Sets the state of the cartridge's repack.
    void set_repack(CartridgeId id, Repack repack);
    // Notes a new label without files behind it. The homes are told of it.
    Cartridge& begin_generation(CartridgeId id, std::uint32_t number, std::string_view pool);
    // Notes that the cartridge has the label of its generation.
    void note_label(CartridgeId id);
    // Sets the new end of the cartridge's data, which are `more_bytes` longer than before.
    void move_end(CartridgeId id, const store::TapeEnd& end, std::uint64_t more_bytes);
    // Notes the number in the ids of its tape files.
    void note_number(CartridgeId id, CartridgeId number);
    // Sets the collection of the objects that were written last.
    void note_collection(CartridgeId id, std::string_view collection);
    // The number by which the scheduler knows a collection; 0: none.
    static std::uint64_t collection_number(std::string_view collection);
    // Makes the table durable. Concurrent callers share a write.
    Task<Result<void>> save();

    // Tells the I/O scheduler how a cartridge may be used now. A blank cartridge can be written by
    // the pool to which it was promised.
    void show(CartridgeId id);
    // Grows with each change of a state.
    std::uint64_t changes() const { return changes_; }
    void promise(CartridgeId id, std::uint32_t pool);
    void withdraw(CartridgeId id);
    bool is_promised(CartridgeId id) const { return promised_.contains(id); }
    // A cartridge is nearly full, and nothing more is begun on it, when less than 1 /
    // kNearlyFullPart of its capacity is free.
    static constexpr std::uint64_t kNearlyFullPart = 20;
    // How many bytes of data can still be written to the cartridge.
    static std::uint64_t free_bytes(const Cartridge& cartridge) {
        return free_bytes(cartridge.capacity_bytes, cartridge.used_bytes);
    }
    static std::uint64_t free_bytes(std::uint64_t capacity_bytes, std::uint64_t used_bytes);

private:
    std::string_view technology_of(const Cartridge& cartridge) const;
    // Counts a cartridge in the figures. Nothing: the table does not contain it any more.
    void count(CartridgeId id, std::optional<CartridgeState> state);

    const Parts parts_;
    MediaTable table_;
    // The state in which a cartridge is counted in the figures.
    std::map<CartridgeId, CartridgeState> counted_;
    std::map<CartridgeId, std::uint32_t> promised_;
    // By cartridge: the technologies of drives that do not accept it.
    std::map<CartridgeId, std::set<std::string, std::less<>>> unsupported_;
    std::uint64_t changes_ = 1;
    std::uint64_t wanted_ = 0;
    std::uint64_t saved_ = 0;
    bool saving_ = false;
    core::WaitQueue saved_now_;
};

}  // namespace fopd::library
