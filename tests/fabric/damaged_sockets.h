#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/random.h"
#include "fabric/tcp/sockets.h"

namespace fopd::fabric::testing {

using Bytes = std::vector<std::byte>;

// What happens to a stream of bytes, at one of its bytes.
struct Damage {
    enum class Kind : std::uint8_t {
        kFlip,      // One of its bits changes.
        kCut,       // The connection ends before it.
        kDrop,      // It and those that follow, `count` in all, are lost.
        kRepeat,    // The `count` bytes before it come once more.
        kInsert,    // `inserted` comes before it.
        kExchange,  // It and those that follow, `count` in all, are exchanged with the next ones.
    };
    enum class Way : std::uint8_t { kFromClient, kFromServer };

    Kind kind = Kind::kFlip;
    Way way = Way::kFromClient;
    std::size_t at = 0;
    std::size_t count = 1;
    unsigned bit = 0;
    Bytes inserted = {};
};

// Sockets, one connection of which is recorded and may be damaged.
class DamagedSockets final : public Sockets {
public:
    explicit DamagedSockets(Sockets& real) : real_(real) {}

    // For the next connection.
    void begin(std::optional<Damage> damage) {
        damage_ = std::move(damage);
        has_damaged_ = false;
        sides_ = {};
        is_next_ = true;
    }
    // What the two sides of that connection have sent so far, before the damage.
    const Bytes& sent(Damage::Way way) const { return side(way).sent; }
    bool has_damaged() const { return has_damaged_; }

    bool is_simulated() const override { return real_.is_simulated(); }
    void abandon(core::IoOp& poll) override { real_.abandon(poll); }
    Result<Listening> listen(const Address& address, int backlog) override {
        return real_.listen(address, backlog);
    }
    int accept(int listening, SocketAddress& peer) override {
        const int fd = real_.accept(listening, peer);
        if (fd >= 0 && std::exchange(is_accepted_next_, false)) sides_[1].fd = fd;
        return fd;
    }
    Result<OwnedSocket> connect(const std::string& host, const SocketAddress& peer) override {
        auto made = real_.connect(host, peer);
        if (made && std::exchange(is_next_, false)) {
            sides_[0].fd = made->fd();
            is_accepted_next_ = true;
        }
        return made;
    }
    int connect_error(int fd) override { return real_.connect_error(fd); }
    ssize_t receive(int fd, std::span<iovec> parts) override { return real_.receive(fd, parts); }
    ssize_t send(int fd, std::span<iovec> parts, Follows follows) override {
        for (const auto way : {Damage::Way::kFromClient, Damage::Way::kFromServer}) {
            if (side(way).fd == fd) return send_of(way, parts, follows);
        }
        return real_.send(fd, parts, follows);
    }
    void end(int fd) override { real_.end(fd); }
    void close(int fd) override { real_.close(fd); }

private:
    struct Side {
        int fd = -1;
        Bytes sent;
    };
    const Side& side(Damage::Way way) const { return sides_[way == Damage::Way::kFromServer]; }
    Side& side(Damage::Way way) { return sides_[way == Damage::Way::kFromServer]; }

    ssize_t send_of(Damage::Way way, std::span<iovec> parts, Follows follows) {
        Side& from = side(way);
        const std::size_t before = from.sent.size();
        for (const iovec& each : parts) {
            const auto* const bytes = static_cast<const std::byte*>(each.iov_base);
            from.sent.insert(from.sent.end(), bytes, bytes + each.iov_len);
        }
        const std::size_t taken = from.sent.size() - before;
        Bytes bytes(from.sent.begin() + static_cast<std::ptrdiff_t>(before), from.sent.end());
        const bool is_here =
            damage_ && damage_->way == way && !has_damaged_ && damage_->at < from.sent.size();
        if (is_here) {
            has_damaged_ = true;
            apply(bytes, damage_->at - before, from.sent);
        }
        // The room of a stream is larger than what is said on this connection.
        while (!bytes.empty()) {
            iovec part{.iov_base = bytes.data(), .iov_len = bytes.size()};
            const ssize_t sent = real_.send(from.fd, {&part, 1}, follows);
            if (sent < 0) return sent;
            bytes.erase(bytes.begin(), bytes.begin() + sent);
        }
        if (is_here && damage_->kind == Damage::Kind::kCut) real_.end(from.fd);
        return static_cast<ssize_t>(taken);
    }

    void apply(Bytes& bytes, std::size_t at, const Bytes& sent) const {
        const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(at);
        const auto left = static_cast<std::size_t>(bytes.end() - first);
        const std::size_t count = std::min(damage_->count, left);
        const auto end = first + static_cast<std::ptrdiff_t>(count);
        switch (damage_->kind) {
            case Damage::Kind::kFlip: *first ^= std::byte{1} << damage_->bit; break;
            case Damage::Kind::kCut: bytes.erase(first, bytes.end()); break;
            case Damage::Kind::kDrop: bytes.erase(first, end); break;
            case Damage::Kind::kRepeat: {
                const std::size_t earlier = std::min(damage_->count, damage_->at);
                const auto from = sent.begin() + static_cast<std::ptrdiff_t>(damage_->at - earlier);
                bytes.insert(first, from, from + static_cast<std::ptrdiff_t>(earlier));
                break;
            }
            case Damage::Kind::kInsert:
                bytes.insert(first, damage_->inserted.begin(), damage_->inserted.end());
                break;
            case Damage::Kind::kExchange: {
                const auto half = first + static_cast<std::ptrdiff_t>(std::min(count, left / 2));
                std::rotate(first, half, half + (half - first));
                break;
            }
        }
    }

    Sockets& real_;
    std::optional<Damage> damage_;
    bool has_damaged_ = false;
    bool is_next_ = false;
    bool is_accepted_next_ = false;
    std::array<Side, 2> sides_;
};

}  // namespace fopd::fabric::testing
