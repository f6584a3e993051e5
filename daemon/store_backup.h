#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/result.h"
#include "store/backup.h"
#include "store/index.h"

namespace fopd::daemon {

// A backup being written, to a file without a name, so that nothing remains of an abandoned one.
// Used by one thread at a time.
class StoreBackup final : public store::IndexShow {
public:
    // The directory is that of the node's data.
    static Result<std::unique_ptr<StoreBackup>> begin(const std::string& directory,
                                                      store::BackupHead head);
    ~StoreBackup() override;
    StoreBackup(const StoreBackup&) = delete;
    StoreBackup& operator=(const StoreBackup&) = delete;

    // Writes the table of slots, and behind it the table of media if the node has one.
    Result<void> slots(std::string_view text);
    // The index shown next becomes this tree; its `applied` comes from begin().
    void use_tree(const store::BackupTree& tree) { tree_ = tree; }
    Result<void> begin(std::uint64_t applied) override;
    Result<void> entry(const store::IndexEntry& entry) override;
    Result<void> end_tree();
    Result<void> end();
    // From any thread: the write in progress ends with kCancelled.
    void give_up() { given_up_.store(true, std::memory_order_relaxed); }

    // -- after end() --

    std::uint64_t size_bytes() const { return size_bytes_; }
    std::uint64_t tree_count() const { return tree_count_; }
    std::uint64_t entry_count() const { return entry_count_; }
    // Reads up to `size_bytes` from `offset`; fewer at the end of the file.
    Result<std::string> read(std::uint64_t offset, std::size_t size_bytes) const;

private:
    StoreBackup(int fd, const store::BackupHead& head, std::string media)
        : fd_(fd), media_(std::move(media)), writer_(head) {}
    Result<void> write_out();

    const int fd_;
    const std::string media_;  // Empty: there is no table.
    std::atomic<bool> given_up_ = false;
    store::BackupWriter writer_;
    store::BackupTree tree_;
    std::uint64_t size_bytes_ = 0;
    std::uint64_t tree_count_ = 0;
    std::uint64_t entry_count_ = 0;
};

}  // namespace fopd::daemon
