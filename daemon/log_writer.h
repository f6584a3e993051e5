#pragma once

#include <string_view>

#include "core/time.h"

namespace fopd::daemon {

// Where the log thread puts what was formatted. It may wait; nobody else waits for it.
class LogWriter {
public:
    virtual ~LogWriter() = default;
    // False when the entry is lost. From the log thread, with all signals blocked.
    virtual bool write(std::string_view entry) = 0;
    // From any thread, once: from now on write() waits for a slow reader no longer than `span` in
    // all, and then gives up.
    virtual void limit_waiting(Duration span) = 0;
};

// Writes lines to a descriptor of any kind: file, pipe, socket, terminal. The descriptor is
// borrowed and its flags, which other processes may share, are left alone.
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
    int deadline_fd_ = -1;     // A timerfd; readable when waiting must end.
    bool is_socket_ = false;
    bool is_cut_ = false;  // The last line is not whole.
};

// Sends what format_journal() packed to the journal; when that fails, the message as a line with
// the priority in front ("<6>fopd.…") goes to the descriptor. A journal that runs but does not read
// holds write() up, and sd_journal_sendv(3) offers no limit for that: see Log::close().
class JournalWriter final : public LogWriter {
public:
    explicit JournalWriter(int fallback_fd) : fallback_(fallback_fd) {}

    bool write(std::string_view entry) override;
    void limit_waiting(Duration span) override { fallback_.limit_waiting(span); }

private:
    LineWriter fallback_;
};

// Is standard error connected to the journal, as systemd says in $JOURNAL_STREAM?
bool stderr_is_journal();

}  // namespace fopd::daemon
