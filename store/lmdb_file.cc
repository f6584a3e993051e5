#include "store/lmdb_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <limits>
#include <optional>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/byte_order.h"
#include "core/crc32c.h"
#include "store/corrupt.h"

namespace fopd::store {

namespace {

// The layout of LMDB 0.9, as this processor has it.
static_assert(std::endian::native == std::endian::little);
static_assert(sizeof(std::size_t) == 8);

constexpr std::uint32_t kLmdbMagic = 0xbeefc0de;
constexpr std::uint32_t kDataVersion = 1;
constexpr std::size_t kPageHeadBytes = 16;
constexpr std::size_t kMetaBytes = 152;
constexpr std::size_t kNodeHeadBytes = 8;
constexpr std::size_t kPageBytesMin = 512;
constexpr std::size_t kPageBytesMax = 32768;
constexpr std::uint64_t kNoPage = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMetaPages = 2;
constexpr std::uint16_t kDepthMax = 32;

constexpr std::uint16_t kBranchPage = 0x01;
constexpr std::uint16_t kLeafPage = 0x02;
constexpr std::uint16_t kOverflowPage = 0x04;
constexpr std::uint16_t kMetaPage = 0x08;
constexpr std::uint16_t kIsElsewhere = 0x01;  // Flag of a node: its value is on overflow pages.
constexpr std::uint16_t kFixedMap = 0x01;     // Flag of a file: it wants a fixed address.

struct Tree {
    std::uint16_t flags = 0;
    std::uint16_t depth = 0;
    std::uint64_t entry_count = 0;
    std::uint64_t root = kNoPage;

    static Tree read(Bytes bytes) {
        return {.flags = get_little<std::uint16_t>(bytes, 4),
                .depth = get_little<std::uint16_t>(bytes, 6),
                .entry_count = get_little<std::uint64_t>(bytes, 32),
                .root = get_little<std::uint64_t>(bytes, 40)};
    }
};

struct Meta {
    std::uint32_t page_bytes = 0;
    Tree free{};  // Transaction -> the pages that it freed.
    Tree main{};
    std::uint64_t last_page = 0;
    std::uint64_t transaction = 0;
};

// A part of a page, within its bounds.
struct Node {
    std::uint32_t low = 0;  // The size of a value, or the low bits of a child's number.
    std::uint16_t flags = 0;
    Bytes key{};
    Bytes rest{};  // Up to the end of the page.

    std::uint64_t child() const { return low | std::uint64_t{flags} << 32; }
};

class FileCheck {
public:
    explicit FileCheck(int fd, std::uint64_t size_bytes) : fd_(fd), size_bytes_(size_bytes) {}

    Result<std::uint64_t> run() {
        const auto meta = newest_meta();
        if (!meta) return std::unexpected(meta.error());
        meta_ = *meta;
        reached_.resize(size_bytes_ / meta_.page_bytes + 1);
        for (const bool is_main : {false, true}) {
            const auto checked = check_tree(is_main);
            if (!checked) return std::unexpected(checked.error());
        }
        for (const auto page : free_pages_) {
            const auto taken = take_pages(page, 1, Where::kAnywhere);
            if (!taken) return std::unexpected(taken.error());
        }
        return meta_.main.entry_count;
    }

private:
    enum class Where : std::uint8_t { kInFile, kAnywhere };
    using Page = std::vector<std::byte>;
    // Bounds of the keys below a page. They lie in pages on the path of the walk, which `pages_`
    // keeps.
    struct Bounds {
        std::optional<Bytes> first{};
        std::optional<Bytes> behind{};
    };

    Result<void> read_at(std::span<std::byte> into, std::uint64_t offset) const {
        for (std::size_t done = 0; done < into.size();) {
            const ssize_t count = ::pread(fd_, into.data() + done, into.size() - done,
                                          static_cast<off_t>(offset + done));
            if (count < 0 && errno == EINTR) continue;
            if (count < 0) return std::unexpected(os_error(errno, "read the index"));
            if (count == 0) return corrupt("the index ends too early");
            done += static_cast<std::size_t>(count);
        }
        return {};
    }

    Result<Meta> read_meta(std::uint64_t offset) const {
        std::array<std::byte, kMetaBytes> bytes;
        const auto read = read_at(bytes, offset);
        if (!read) return std::unexpected(read.error());
        const Bytes page(bytes);
        if (get_little<std::uint16_t>(page, 10) != kMetaPage ||
            get_little<std::uint32_t>(page, 16) != kLmdbMagic) {
            return corrupt("the index is not a file of LMDB");
        }
        if (get_little<std::uint32_t>(page, 20) != kDataVersion) {
            return std::unexpected(
                Error{.code = Errc::kUnsupported, .context = "the index is of another LMDB"});
        }
        const Meta meta{.page_bytes = get_little<std::uint32_t>(page, 40),
                        .free = Tree::read(page.subspan(40, 48)),
                        .main = Tree::read(page.subspan(88, 48)),
                        .last_page = get_little<std::uint64_t>(page, 136),
                        .transaction = get_little<std::uint64_t>(page, 144)};
        if (!std::has_single_bit(meta.page_bytes) || meta.page_bytes < kPageBytesMin ||
            meta.page_bytes > kPageBytesMax || (meta.free.flags & kFixedMap) != 0 ||
            meta.main.flags != 0) {
            return corrupt("head of the index");
        }
        return meta;
    }

    Result<Meta> newest_meta() const {
        const auto first = read_meta(0);
        if (!first) return first;
        const auto second = read_meta(first->page_bytes);
        if (!second) return second;
        if (first->page_bytes != second->page_bytes) return corrupt("heads of the index");
        return first->transaction < second->transaction ? second : first;
    }

    // Each page is used at most once. Free pages may never have been written.
    Result<void> take_pages(std::uint64_t page, std::uint64_t count, Where where) {
        if (page < kMetaPages || page > meta_.last_page || count > meta_.last_page - page + 1) {
            return corrupt("page number in the index");
        }
        for (auto taken = page; taken < page + count; ++taken) {
            if (taken >= size_bytes_ / meta_.page_bytes) {
                if (where == Where::kInFile) return corrupt("the index ends too early");
                continue;
            }
            if (reached_[taken]) return corrupt("page with two uses in the index");
            reached_[taken] = true;
        }
        return {};
    }

    Result<void> check_tree(bool is_main) {
        const Tree& tree = is_main ? meta_.main : meta_.free;
        is_main_ = is_main;
        entry_count_ = 0;
        last_key_.clear();
        if (tree.root == kNoPage) {
            if (tree.entry_count != 0 || tree.depth != 0) return corrupt("empty tree in the index");
            return {};
        }
        if (tree.depth == 0 || tree.depth > kDepthMax) return corrupt("depth of the index");
        pages_.assign(tree.depth, Page(meta_.page_bytes));
        const auto checked = check_page(tree.root, 0, {});
        if (!checked) return checked;
        if (entry_count_ != tree.entry_count) return corrupt("number of entries in the index");
        return {};
    }

    // Goes down at most kDepthMax levels.
    Result<void> check_page(  // NOLINT(misc-no-recursion)
        std::uint64_t number, std::size_t level, const Bounds& bounds) {
        const auto taken = take_pages(number, 1, Where::kInFile);
        if (!taken) return taken;
        Page& page = pages_[level];
        const auto read = read_at(page, number * meta_.page_bytes);
        if (!read) return read;
        const bool is_leaf = level + 1 == pages_.size();
        const auto lower = get_little<std::uint16_t>(page, 12);
        const auto upper = get_little<std::uint16_t>(page, 14);
        if (get_little<std::uint64_t>(page, 0) != number ||
            get_little<std::uint16_t>(page, 10) != (is_leaf ? kLeafPage : kBranchPage) ||
            lower <= kPageHeadBytes || lower % 2 != 0 || lower > upper || upper > page.size()) {
            return corrupt("page of the index");
        }
        const std::size_t count = (lower - kPageHeadBytes) / 2;
        for (std::size_t index = 0; index < count; ++index) {
            const auto checked = is_leaf ? check_leaf_entry(page, index, bounds)
                                         : check_branch_entry(page, index, count, level, bounds);
            if (!checked) return checked;
        }
        return {};
    }

    static Result<Node> node_at(Bytes page, std::size_t index) {
        const std::size_t at = get_little<std::uint16_t>(page, kPageHeadBytes + 2 * index);
        if (at < get_little<std::uint16_t>(page, 14) || at % 2 != 0 ||
            at + kNodeHeadBytes > page.size()) {
            return corrupt("offset of a node in the index");
        }
        const std::size_t key_bytes = get_little<std::uint16_t>(page, at + 6);
        if (key_bytes > page.size() - at - kNodeHeadBytes || key_bytes > kIndexKeyBytesMax) {
            return corrupt("length of a key in the index");
        }
        return Node{.low = get_little<std::uint32_t>(page, at),
                    .flags = get_little<std::uint16_t>(page, at + 4),
                    .key = page.subspan(at + kNodeHeadBytes, key_bytes),
                    .rest = page.subspan(at + kNodeHeadBytes + key_bytes)};
    }

    // The keys of the tree of free pages are numbers, those of the other tree are bytes.
    bool before(Bytes a, Bytes b) const {
        if (is_main_) return std::ranges::lexicographical_compare(a, b);
        return get_little<std::uint64_t>(a, 0) < get_little<std::uint64_t>(b, 0);
    }
    Result<void> check_key(Bytes key, const Bounds& bounds) const {
        const bool length_fits = is_main_ ? !key.empty() : key.size() == sizeof(std::uint64_t);
        if (!length_fits || (bounds.first && before(key, *bounds.first)) ||
            (bounds.behind && !before(key, *bounds.behind))) {
            return corrupt("key in the index");
        }
        return {};
    }

    // The first key of a branch page is ignored: all keys before the second are below the first
    // child.
    Result<void> check_branch_entry(  // NOLINT(misc-no-recursion)
        Bytes page, std::size_t index, std::size_t count, std::size_t level, const Bounds& bounds) {
        const auto node = node_at(page, index);
        if (!node) return std::unexpected(node.error());
        Bounds below = bounds;
        if (index > 0) {
            const auto checked = check_key(node->key, bounds);
            if (!checked) return checked;
            below.first = node->key;
        }
        if (index + 1 < count) {
            const auto next = node_at(page, index + 1);
            if (!next) return std::unexpected(next.error());
            const auto checked = check_key(next->key, bounds);
            if (!checked) return checked;
            below.behind = next->key;
        }
        return check_page(node->child(), level + 1, below);
    }

    Result<void> check_leaf_entry(Bytes page, std::size_t index, const Bounds& bounds) {
        const auto node = node_at(page, index);
        if (!node) return std::unexpected(node.error());
        const auto checked = check_key(node->key, bounds);
        if (!checked) return checked;
        if (entry_count_ > 0 && !before(last_key_, node->key)) {
            return corrupt("order of keys in the index");
        }
        last_key_.assign(node->key.begin(), node->key.end());
        ++entry_count_;
        const auto value = value_of(*node);
        if (!value) return std::unexpected(value.error());
        if (!is_main_) return note_free(*value);
        const auto whole = checked_value(node->key, *value);
        if (!whole) return std::unexpected(whole.error());
        return {};
    }

    Result<Bytes> value_of(const Node& node) {
        if (node.flags == 0) {
            if (node.low > node.rest.size()) return corrupt("length of a value in the index");
            return node.rest.first(node.low);
        }
        if (node.flags != kIsElsewhere || node.rest.size() < sizeof(std::uint64_t)) {
            return corrupt("kind of a value in the index");
        }
        return value_elsewhere(get_little<std::uint64_t>(node.rest, 0), node.low);
    }

    Result<Bytes> value_elsewhere(std::uint64_t number, std::uint32_t size_bytes) {
        std::array<std::byte, kPageHeadBytes> head;
        const auto first = take_pages(number, 1, Where::kInFile);
        if (!first) return std::unexpected(first.error());
        const auto read = read_at(head, number * meta_.page_bytes);
        if (!read) return std::unexpected(read.error());
        const std::uint64_t count = get_little<std::uint32_t>(Bytes(head), 12);
        if (get_little<std::uint64_t>(Bytes(head), 0) != number ||
            get_little<std::uint16_t>(Bytes(head), 10) != kOverflowPage || count == 0 ||
            kPageHeadBytes + size_bytes > count * meta_.page_bytes) {
            return corrupt("overflow page of the index");
        }
        const auto others =
            count == 1 ? Result<void>{} : take_pages(number + 1, count - 1, Where::kInFile);
        if (!others) return std::unexpected(others.error());
        elsewhere_.resize(size_bytes);
        const auto value = read_at(elsewhere_, number * meta_.page_bytes + kPageHeadBytes);
        if (!value) return std::unexpected(value.error());
        return elsewhere_;
    }

    // The value is a number of pages and their page numbers.
    Result<void> note_free(Bytes list) {
        constexpr std::size_t kNumberBytes = sizeof(std::uint64_t);
        if (list.size() < kNumberBytes) return corrupt("free pages of the index");
        const auto count = get_little<std::uint64_t>(list, 0);
        if (count > list.size() / kNumberBytes - 1) return corrupt("free pages of the index");
        for (std::size_t i = 1; i <= count; ++i) {
            free_pages_.push_back(get_little<std::uint64_t>(list, i * kNumberBytes));
        }
        return {};
    }

    const int fd_;
    const std::uint64_t size_bytes_;
    Meta meta_{};
    std::vector<bool> reached_;
    std::vector<std::uint64_t> free_pages_;
    bool is_main_ = false;
    std::uint64_t entry_count_ = 0;
    std::vector<std::byte> last_key_;
    std::vector<Page> pages_;  // From the root to the present page.
    std::vector<std::byte> elsewhere_;
};

}  // namespace

std::uint32_t entry_sum(Bytes key, Bytes value) {
    return core::crc32c(value, core::crc32c(key));
}

Result<Bytes> checked_value(Bytes key, Bytes stored) {
    if (stored.size() < kSumBytes) return corrupt("value in the index");
    const auto value = stored.first(stored.size() - kSumBytes);
    if (get_little<std::uint32_t>(stored, value.size()) != entry_sum(key, value)) {
        return corrupt("checksum in the index");
    }
    return value;
}

Result<LmdbFileFigures> check_lmdb_file(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return std::unexpected(os_error(errno, "open the index"));
    struct stat status{};
    if (::fstat(fd, &status) != 0) {
        const int stat_errno = errno;
        ::close(fd);
        return std::unexpected(os_error(stat_errno, "look at the index"));
    }
    const auto size_bytes = static_cast<std::uint64_t>(status.st_size);
    const auto entry_count = FileCheck(fd, size_bytes).run();
    ::close(fd);
    if (!entry_count) return std::unexpected(entry_count.error());
    return LmdbFileFigures{.size_bytes = size_bytes, .entry_count = *entry_count};
}

}  // namespace fopd::store
