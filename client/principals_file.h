// SPDX-License-Identifier: BSD-2-Clause
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace fopd::client {

// The text of the daemon's file of principals, in the form that fopctl writes: a block of lines for
// each principal, from `  - name: ` on, and a block for revoked tokens. Comments and empty lines
// stay in place. Files that use other forms of YAML are refused.
class PrincipalsFile {
public:
    // The limit as it is written in the file; empty: no limit.
    struct Quota {
        std::string pool;
        std::string bytes;
        std::string objects;
    };
    struct Principal {
        std::string name;
        std::string key;  // Hexadecimal; never printed.
        std::vector<std::string> rights;
        std::vector<std::string> groups;
        bool delegate = false;
        std::vector<Quota> quotas = {};
        std::size_t previous_key_count = 0;
    };

    // Parses the text. On failure returns the reason with its line number; keys are never quoted.
    static std::expected<PrincipalsFile, std::string> parse(std::string_view text);

    const std::vector<Principal>& principals() const { return principals_; }
    const Principal* find(std::string_view name) const;
    bool is_revoked(std::string_view token_id) const;

    // REQUIRES: the name is not in use; rights, groups and pools are valid names, and quotas are
    // results of parse_quota().
    void add(const Principal& principal);
    // REQUIRES: the principal exists.
    void remove(std::string_view name);
    void revoke_token(std::string_view token_id);

    std::string text() const;

    // "fast=10TiB", "fast=10TiB,1000" or "fast=,1000", as in the file of principals; or the mistake
    // in the text.
    static std::expected<Quota, std::string> parse_quota(std::string_view text);

private:
    struct Block {
        std::size_t first = 0;  // The first line, as an index in lines_.
        std::size_t end = 0;
    };

    std::expected<void, std::string> read();
    bool unfold_revoked(std::size_t at, std::string_view line);
    std::expected<void, std::string> read_principal_line(std::string_view line);
    std::expected<void, std::string> read_revoked_line(std::size_t at, std::string_view line);
    void reread();

    std::vector<std::string> lines_;
    std::vector<Principal> principals_;
    std::vector<Block> blocks_;             // The lines of each principal, in the same order.
    std::size_t principals_at_ = kNowhere;  // The lines that begin the sections.
    std::size_t revoked_at_ = kNowhere;
    std::size_t tokens_at_ = kNowhere;
    bool tokens_are_empty_list_ = false;
    std::vector<std::string> revoked_;

    static constexpr std::size_t kNowhere = SIZE_MAX;
};

}  // namespace fopd::client
