// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstddef>
#include <expected>
#include <span>
#include <string>
#include <string_view>

namespace fopd::client {

// The absolute path of a file, with links followed; the file may be missing. Otherwise an errno.
std::expected<std::string, int> whole_path(const std::string& path);
// "<path>: <meaning of the errno>", safe for a terminal.
std::string file_words(const std::string& path, int os_errno);
// Reads up to the end, or somewhat more than `size_max` bytes. Returns 0 or an errno.
int read_all(int fd, std::size_t size_max, std::string& text);
// Returns 0 or an errno. Blocks, also on a descriptor that others have made non-blocking.
int write_all(int fd, std::span<const std::byte> from);

// A file that is read, changed and replaced as a whole; meanwhile no other fopctl changes it.
class ReplacedFile {
public:
    enum class Missing { kEmpty, kProblem };
    enum class Failure { kProblem, kBusy, kDenied };
    struct Problem {
        Failure failure = Failure::kProblem;
        std::string words;  // For people; they name the file.
    };

    // Treats a missing file as empty, or as a problem.
    static std::expected<ReplacedFile, Problem> open(const std::string& path, Missing missing);
    ReplacedFile(ReplacedFile&& other) noexcept;
    ReplacedFile(const ReplacedFile&) = delete;
    ReplacedFile& operator=(const ReplacedFile&) = delete;
    ReplacedFile& operator=(ReplacedFile&&) = delete;
    // Wipes the text, which may have keys.
    ~ReplacedFile();

    const std::string& text() const { return text_; }
    const std::string& path() const { return path_; }
    bool existed() const { return existed_; }
    // The text of replace() will be readable for this user, if root is the caller. Where others own
    // the file, and for other callers, only they read it.
    struct Reader {
        unsigned user = 0;
        unsigned group = 0;
    };
    void let_read(Reader reader);
    // The new text is durable on return. Mode and owner stay, unless let_read() was called. A new
    // file is readable by its owner, and if root makes it, by the group of the directory.
    std::expected<void, Problem> replace(std::string_view text) const;
    // Restores the file as it was opened.
    std::expected<void, Problem> put_back() const;

private:
    ReplacedFile() = default;
    std::unexpected<Problem> problem(int os_errno) const;
    bool can_read(Reader reader) const;

    std::string path_;  // With links followed.
    std::string text_;
    bool existed_ = false;
    unsigned mode_ = 0600;
    unsigned owner_ = 0;
    unsigned group_ = 0;
    int directory_fd_ = -1;  // Holds the lock.
};

// Makes a file with mode 0600. It is a problem if the file exists.
std::expected<void, ReplacedFile::Problem> write_new_secret(const std::string& path,
                                                            std::string_view text);

}  // namespace fopd::client
