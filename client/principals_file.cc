// SPDX-License-Identifier: BSD-2-Clause
#include "client/principals_file.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdint>
#include <optional>

#include "config/problem.h"
#include "config/units.h"
#include "core/ensure.h"
#include "core/printable.h"
#include "fop/principal.h"

namespace fopd::client {

namespace {

constexpr std::string_view kPrincipals = "principals:";
constexpr std::string_view kRevoked = "revoked:";
constexpr std::string_view kEntry = "  - ";
constexpr std::string_view kField = "    ";
constexpr std::string_view kTokens = "  tokens:";
constexpr std::string_view kToken = "    - ";
constexpr std::string_view kGeneration = "  generation: ";

bool says_nothing(std::string_view line) {
    const auto first = line.find_first_not_of(' ');
    return first == std::string_view::npos || line[first] == '#';
}

bool is_plain_char(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
           c == '@' || c == '/';
}

// Whether the text is certainly a string in YAML without quotes.
bool is_plain(std::string_view text) {
    if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) == 0) return false;
    if (!std::ranges::all_of(text, is_plain_char)) return false;
    std::string lower(text);
    std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
    static constexpr std::array<std::string_view, 9> kWords{"true", "false", "yes", "no", "on",
                                                            "off",  "null",  "y",   "n"};
    return std::ranges::find(kWords, lower) == kWords.end();
}

std::string scalar(std::string_view text) {
    if (is_plain(text)) return std::string(text);
    std::string quoted = "\"";
    for (const char c : text) {
        if (c == '"' || c == '\\') quoted += '\\';
        quoted += c;
    }
    return quoted + '"';
}

// A word, or text in double quotes, at the front of `rest`, which is taken.
std::optional<std::string> take_scalar(std::string_view& rest) {
    std::string text;
    if (!rest.starts_with('"')) {
        const auto* const end = std::ranges::find_if_not(rest, is_plain_char);
        text.assign(rest.begin(), end);
        rest.remove_prefix(text.size());
        return text.empty() ? std::nullopt : std::optional(text);
    }
    for (std::size_t i = 1; i < rest.size(); ++i) {
        if (rest[i] == '"') {
            rest.remove_prefix(i + 1);
            return text;
        }
        if (rest[i] == '\\') {
            ++i;
            if (i == rest.size() || (rest[i] != '"' && rest[i] != '\\')) return std::nullopt;
        }
        text += rest[i];
    }
    return std::nullopt;
}

// Blanks, and a comment perhaps.
bool is_end(std::string_view rest) {
    return rest.find_first_not_of(' ') == std::string_view::npos ||
           (rest.front() == ' ' && says_nothing(rest));
}

std::optional<std::string> whole_scalar(std::string_view rest) {
    auto text = take_scalar(rest);
    if (!is_end(rest)) return std::nullopt;
    return text;
}

// "[a, b]"
std::optional<std::vector<std::string>> whole_list(std::string_view rest) {
    std::vector<std::string> list;
    if (!rest.starts_with('[')) return std::nullopt;
    rest.remove_prefix(1);
    const auto skip_blanks = [&rest] {
        rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
    };
    skip_blanks();
    while (!rest.starts_with(']')) {
        auto each = take_scalar(rest);
        if (!each) return std::nullopt;
        list.push_back(std::move(*each));
        skip_blanks();
        if (rest.starts_with(']')) break;
        if (!rest.starts_with(',')) return std::nullopt;
        rest.remove_prefix(1);
        skip_blanks();
    }
    rest.remove_prefix(1);
    if (!is_end(rest)) return std::nullopt;
    return list;
}

// "{pool: fast, bytes: 10TiB, objects: 1000}", which is taken.
std::optional<PrincipalsFile::Quota> take_quota(std::string_view& rest) {
    const auto take_word = [&rest](std::string_view word) {
        if (!rest.starts_with(word)) return false;
        rest.remove_prefix(word.size());
        return true;
    };
    PrincipalsFile::Quota quota;
    if (!take_word("{pool: ")) return std::nullopt;
    const auto pool = take_scalar(rest);
    if (!pool) return std::nullopt;
    quota.pool = *pool;
    const auto take_field = [&](std::string_view name, std::string& into) {
        if (!take_word(name)) return true;
        const auto value = take_scalar(rest);
        if (value) into = *value;
        return value.has_value();
    };
    const bool is_taken = take_field(", bytes: ", quota.bytes) &&
                          take_field(", objects: ", quota.objects) && take_word("}");
    if (!is_taken) return std::nullopt;
    // A value that the daemon refuses is no limit that could be shown.
    const bool is_readable =
        (quota.bytes.empty() || config::parse_size(quota.bytes)) &&
        (quota.objects.empty() || config::parse_integer(quota.objects, 0, INT64_MAX));
    if (!is_readable) return std::nullopt;
    return quota;
}

// "[{...}, {...}]"
std::optional<std::vector<PrincipalsFile::Quota>> whole_quotas(std::string_view rest) {
    std::vector<PrincipalsFile::Quota> quotas;
    if (!rest.starts_with('[')) return std::nullopt;
    rest.remove_prefix(1);
    while (!rest.starts_with(']')) {
        if (!quotas.empty() && !rest.starts_with(", ")) return std::nullopt;
        if (!quotas.empty()) rest.remove_prefix(2);
        auto quota = take_quota(rest);
        if (!quota) return std::nullopt;
        quotas.push_back(std::move(*quota));
    }
    rest.remove_prefix(1);
    if (!is_end(rest)) return std::nullopt;
    return quotas;
}

std::string quotas_text(const std::vector<PrincipalsFile::Quota>& quotas) {
    std::string text;
    for (const PrincipalsFile::Quota& each : quotas) {
        if (!text.empty()) text += ", ";
        text += "{pool: " + scalar(each.pool);
        if (!each.bytes.empty()) text += ", bytes: " + each.bytes;
        if (!each.objects.empty()) text += ", objects: " + each.objects;
        text += '}';
    }
    return "[" + text + "]";
}

std::string list_text(const std::vector<std::string>& list) {
    std::string text;
    for (const std::string& each : list) {
        if (!text.empty()) text += ", ";
        text += scalar(each);
    }
    return "[" + text + "]";
}

std::unexpected<std::string> foreign(const char* what) {
    return std::unexpected(std::string(what));
}

bool is_hex(std::string_view text, std::size_t digits) {
    return text.size() == digits &&
           std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

std::expected<PrincipalsFile, std::string> PrincipalsFile::parse(std::string_view text) {
    PrincipalsFile file;
    for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        file.lines_.emplace_back(text.substr(at, end - at));
        at = end + 1;
    }
    if (const auto read = file.read(); !read) return std::unexpected(read.error());
    return file;
}

std::expected<void, std::string> PrincipalsFile::read() {
    enum class Section { kNone, kPrincipals, kRevoked };
    Section section = Section::kNone;
    for (std::size_t at = 0; at < lines_.size(); ++at) {
        const std::string_view line = lines_[at];
        const auto problem = [at](std::string_view why) {
            return std::unexpected("line " + std::to_string(at + 1) + ": " + std::string(why));
        };
        if (says_nothing(line)) continue;
        if (line.find('\t') != std::string_view::npos) return problem("a tab");
        std::expected<void, std::string> taken;
        if (line.starts_with(kPrincipals) && principals_at_ == kNowhere) {
            const std::string_view rest = line.substr(kPrincipals.size());
            const bool is_empty_list = rest.starts_with(" []") && is_end(rest.substr(3));
            if (!is_end(rest) && !is_empty_list)
                return problem("expected one principal in each block");
            principals_at_ = at;
            section = Section::kPrincipals;
        } else if (line.starts_with(kRevoked) && revoked_at_ == kNowhere) {
            const bool is_block = is_end(line.substr(kRevoked.size())) || unfold_revoked(at, line);
            if (!is_block)
                return problem("the list `revoked` is in a form that fopctl does not write");
            revoked_at_ = at;
            section = Section::kRevoked;
        } else if (section == Section::kPrincipals) {
            if (line.starts_with(kEntry)) {
                principals_.emplace_back();
                blocks_.push_back({.first = at, .end = at + 1});
                taken = read_principal_line(line.substr(kEntry.size()));
            } else if (line.starts_with(kField) && !principals_.empty()) {
                blocks_.back().end = at + 1;
                taken = read_principal_line(line.substr(kField.size()));
            } else {
                taken = foreign("the line does not belong to a principal");
            }
        } else if (section == Section::kRevoked) {
            taken = read_revoked_line(at, line);
        } else {
            taken = foreign("expected principals: or revoked:");
        }
        if (!taken) return problem(taken.error());
    }
    for (std::size_t i = 0; i < principals_.size(); ++i) {
        const auto& each = principals_[i];
        const std::string where = "line " + std::to_string(blocks_[i].first + 1) + ": ";
        if (each.name.empty()) return std::unexpected(where + "a principal without a name");
        if (find(each.name) != &each) return std::unexpected(where + "a name is used twice");
    }
    return {};
}

// "revoked: { tokens: [], generation: 0 }" becomes a block. False if the line is anything else.
bool PrincipalsFile::unfold_revoked(std::size_t at, std::string_view line) {
    std::string text;
    for (const char c : line) {
        if (c != ' ') text += c;
    }
    constexpr std::string_view kBegin = "revoked:{tokens:[],generation:";
    if (!text.starts_with(kBegin) || !text.ends_with('}')) return false;
    const std::string number = text.substr(kBegin.size(), text.size() - kBegin.size() - 1);
    const bool is_number = !number.empty() && number.find_first_not_of("0123456789") == number.npos;
    if (!is_number) return false;
    const std::vector<std::string> block{std::string(kRevoked), std::string(kTokens) + " []",
                                         std::string(kGeneration) + number};
    const auto entry = lines_.begin() + static_cast<std::ptrdiff_t>(at);
    lines_.insert(lines_.erase(entry), block.begin(), block.end());
    return true;
}

std::expected<void, std::string> PrincipalsFile::read_principal_line(std::string_view line) {
    Principal& principal = principals_.back();
    const auto colon = line.find(": ");
    const std::string_view field = line.substr(0, colon);
    if (colon == std::string_view::npos) return foreign("not a field of a principal");
    std::string_view value = line.substr(colon + 2);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    const auto take = [](auto&& found, auto& into) -> std::expected<void, std::string> {
        if (!found) return foreign("a value in a form that fopctl does not write");
        into = *found;
        return {};
    };
    if (field == "name") return take(whole_scalar(value), principal.name);
    if (field == "key") return take(whole_scalar(value), principal.key);
    if (field == "rights") return take(whole_list(value), principal.rights);
    if (field == "groups") return take(whole_list(value), principal.groups);
    if (field == "previous_keys") {
        const auto keys = whole_list(value);
        if (keys) principal.previous_key_count = keys->size();
        std::vector<std::string> unused;
        return take(keys, unused);
    }
    if (field == "quotas") return take(whole_quotas(value), principal.quotas);
    if (field == "delegate") {
        const auto word = whole_scalar(value);
        if (word == "true" || word == "false") {
            principal.delegate = word == "true";
            return {};
        }
    }
    return foreign("a field of a principal that fopctl does not know");
}

std::expected<void, std::string> PrincipalsFile::read_revoked_line(std::size_t at,
                                                                   std::string_view line) {
    if (line.starts_with(kTokens) && tokens_at_ == kNowhere) {
        const std::string_view rest = line.substr(kTokens.size());
        tokens_are_empty_list_ = rest.starts_with(" []") && is_end(rest.substr(3));
        if (!is_end(rest) && !tokens_are_empty_list_) {
            return foreign("expected one revoked token in each line");
        }
        tokens_at_ = at;
        return {};
    }
    if (line.starts_with(kToken) && tokens_at_ != kNowhere && !tokens_are_empty_list_) {
        const auto id = whole_scalar(line.substr(kToken.size()));
        if (!id || !is_hex(*id, 32)) return foreign("not a token number of 32 hexadecimal digits");
        revoked_.push_back(*id);
        return {};
    }
    if (line.starts_with(kGeneration) && whole_scalar(line.substr(kGeneration.size()))) return {};
    return foreign("an unknown field of a revoked token");
}

void PrincipalsFile::reread() {
    auto again = parse(text());
    ENSURE(again.has_value());  // It is what this class wrote.
    *this = std::move(*again);
}

const PrincipalsFile::Principal* PrincipalsFile::find(std::string_view name) const {
    const auto found = std::ranges::find(principals_, name, &Principal::name);
    return found == principals_.end() ? nullptr : &*found;
}

bool PrincipalsFile::is_revoked(std::string_view token_id) const {
    return std::ranges::find(revoked_, token_id) != revoked_.end();
}

void PrincipalsFile::add(const Principal& principal) {
    ENSURE(find(principal.name) == nullptr);
    if (principals_at_ == kNowhere) {
        principals_at_ = lines_.size();
        lines_.emplace_back();
    }
    std::vector<std::string> block{std::string(kEntry) + "name: " + scalar(principal.name),
                                   std::string(kField) + "key: " + principal.key,
                                   std::string(kField) + "rights: " + list_text(principal.rights)};
    if (!principal.groups.empty()) {
        block.push_back(std::string(kField) + "groups: " + list_text(principal.groups));
    }
    if (principal.delegate) block.push_back(std::string(kField) + "delegate: true");
    if (!principal.quotas.empty()) {
        block.push_back(std::string(kField) + "quotas: " + quotas_text(principal.quotas));
    }
    if (blocks_.empty()) lines_[principals_at_] = kPrincipals;  // It may have been an empty list.
    const std::size_t at = blocks_.empty() ? principals_at_ + 1 : blocks_.back().end;
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(at), block.begin(), block.end());
    reread();
}

void PrincipalsFile::remove(std::string_view name) {
    const Principal* const principal = find(name);
    ENSURE(principal != nullptr);
    const Block block = blocks_[static_cast<std::size_t>(principal - principals_.data())];
    if (principals_.size() == 1) lines_[principals_at_] = std::string(kPrincipals) + " []";
    lines_.erase(lines_.begin() + static_cast<std::ptrdiff_t>(block.first),
                 lines_.begin() + static_cast<std::ptrdiff_t>(block.end));
    reread();
}

void PrincipalsFile::revoke_token(std::string_view token_id) {
    if (is_revoked(token_id)) return;
    if (revoked_at_ == kNowhere) {
        revoked_at_ = lines_.size();
        lines_.emplace_back(kRevoked);
    }
    if (tokens_at_ == kNowhere) {
        tokens_at_ = revoked_at_ + 1;
        lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(tokens_at_),
                      std::string(kTokens));
    }
    lines_[tokens_at_] = kTokens;
    lines_.insert(lines_.begin() + static_cast<std::ptrdiff_t>(tokens_at_) + 1,
                  std::string(kToken) + std::string(token_id));
    reread();
}

std::expected<PrincipalsFile::Quota, std::string> PrincipalsFile::parse_quota(
    std::string_view text) {
    const std::size_t equals = text.find('=');
    const std::string_view pool = text.substr(0, equals);
    const std::string_view limits = equals == text.npos ? "" : text.substr(equals + 1);
    const std::size_t comma = limits.find(',');
    const std::string_view bytes = limits.substr(0, comma);
    const bool has_objects = comma != limits.npos;
    const std::string_view objects = has_objects ? limits.substr(comma + 1) : "";
    if (!fop::is_name(pool) || pool.empty() || (bytes.empty() && !has_objects)) {
        return std::unexpected("a quota is POOL=BYTES, POOL=BYTES,OBJECTS or POOL=,OBJECTS, not " +
                               config::in_quotes(text));
    }
    const auto wrong = [pool](const char* what, const config::Mistake& mistake) {
        return std::unexpected("the quota of " + std::string(what) + " in pool " +
                               core::printable(pool) + ": " + mistake.wrong + "; " + mistake.right);
    };
    if (!bytes.empty()) {
        const auto size = config::parse_size(bytes);
        if (!size) return wrong("bytes", size.error());
    }
    if (has_objects) {
        const auto count = config::parse_integer(objects, 0, INT64_MAX);
        if (!count) return wrong("objects", count.error());
    }
    return Quota{
        .pool = std::string(pool), .bytes = std::string(bytes), .objects = std::string(objects)};
}

std::string PrincipalsFile::text() const {
    std::string text;
    for (const std::string& line : lines_) text += line + '\n';
    return text;
}

}  // namespace fopd::client
