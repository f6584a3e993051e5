// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>

#include "client/transfer.h"
#include "core/cancel.h"
#include "core/offload.h"
#include "core/reactor.h"

namespace fopd::client {

// What local files use: blocking calls run on the offload, so that the sessions stay alive.
struct LocalWorld {
    core::Reactor& reactor;
    core::Offload& offload;
    core::CancelSource& cancel;
};

// A file, or with "-" standard input. Only a regular file can be read again.
class LocalSource final : public ByteSource {
public:
    // The error is for people, and names the file.
    static std::expected<std::unique_ptr<LocalSource>, std::string> open(LocalWorld world,
                                                                         const std::string& path);
    ~LocalSource() override;

    Task<Outcome<std::size_t>> read(std::uint64_t offset, std::span<std::byte> into) override;
    bool repeats() const override { return is_regular_; }
    std::uint64_t size_bytes() const override { return size_bytes_; }

private:
    LocalSource(LocalWorld world, std::string name) : world_(world), name_(std::move(name)) {}
    Task<Outcome<std::size_t>> read_regular(std::uint64_t offset, std::span<std::byte> into);
    Task<Outcome<std::size_t>> read_stream(std::span<std::byte> into);

    LocalWorld world_;
    const std::string name_;
    int fd_ = -1;
    bool is_regular_ = false;
    std::uint64_t begin_ = 0;  // Standard input may be a file that was read up to here.
    std::uint64_t size_bytes_ = 0;
};

// A file, or with "-" standard output. A regular file appears as a whole or not at all: it is
// written under a temporary name or none, and gets its name when it is finished.
class LocalSink final : public ByteSink {
public:
    static std::expected<std::unique_ptr<LocalSink>, std::string> open(LocalWorld world,
                                                                       const std::string& path);
    // Drops the file unless it was finished.
    ~LocalSink() override;

    Task<Outcome<void>> write(std::span<const std::byte> from) override;
    Outcome<void> finish();

private:
    LocalSink(LocalWorld world, std::string name) : world_(world), name_(std::move(name)) {}
    bool open_draft(const std::string& path, unsigned mode);

    LocalWorld world_;
    const std::string name_;
    std::string path_{};   // The file that is created or replaced; empty: written directly.
    std::string draft_{};  // The temporary name; empty: none.
    int fd_ = -1;
};

}  // namespace fopd::client
