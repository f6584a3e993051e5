#pragma once

#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "core/time.h"

namespace fopd::daemon {

// The output of the log thread. May block; only the log thread waits for it.
class LogWriter {
public:
    virtual ~LogWriter() = default;
    // Returns false if the entry is lost. Called on the log thread, with all signals blocked.
    virtual bool write(std::string_view entry) = 0;
    // From now on write() waits for a slow reader at most `span` in total, and then gives up.
    // Called at most once, on any thread.
    virtual void limit_waiting(Duration span) = 0;
};

// Writes lines to a descriptor of any kind: file, pipe, socket, terminal. Borrows the descriptor
// and does not change its flags, which other processes may share.
class LineWriter final : public LogWriter {
public:
    explicit LineWriter(int fd);
    ~LineWriter() override;
    LineWriter(const LineWriter&) = delete;
    LineWriter& operator=(const LineWriter&) = delete;

    bool write(std::string_view line) override;
    void limit_waiting(Duration span) override;

private:
    bool write_all(std::string_view bytes);
    long write_some(std::string_view bytes);
    bool wait_writable();

    const int fd_;
    int nonblocking_fd_ = -1;  // The same pipe or terminal, opened a second time.
    int deadline_fd_ = -1;     // A timerfd; readable when the wait must end.
    bool is_socket_ = false;
    bool is_cut_ = false;  // The last line was written only in part.
};

// Appends lines to a file; a new one has the mode 0640, less the process's umask. If the file was
// renamed or removed since the last line, as logrotate does, the next line begins a new file. A
// symbolic link is not followed.
class FileWriter final : public LogWriter {
public:
    // The error is an errno.
    static std::expected<std::unique_ptr<FileWriter>, int> open(std::string path);
    ~FileWriter() override;
    FileWriter(const FileWriter&) = delete;
    FileWriter& operator=(const FileWriter&) = delete;

    bool write(std::string_view line) override;
    // A regular file never waits for a reader.
    void limit_waiting(Duration) override {}

private:
    FileWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}
    bool is_at_path() const;

    const std::string path_;
    int fd_;
    bool is_cut_ = false;  // The last line was written only in part.
};

// Sends entries made by format_journal() to the journal; if that fails, writes the message as a
// line prefixed with its priority ("<6>fopd.…") to the descriptor. A journal that runs but does not
// read blocks write(), and sd_journal_sendv(3) offers no time limit: see Log::close().
class JournalWriter final : public LogWriter {
public:
    explicit JournalWriter(int fallback_fd) : fallback_(fallback_fd) {}

    bool write(std::string_view entry) override;
    void limit_waiting(Duration span) override { fallback_.limit_waiting(span); }

private:
    LineWriter fallback_;
};

// Whether standard error is connected to the journal, as systemd says in $JOURNAL_STREAM.
bool stderr_is_journal();

}  // namespace fopd::daemon
