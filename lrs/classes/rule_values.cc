#include "lrs/classes/rule_values.h"

#include <algorithm>
#include <array>
#include <utility>

#include "config/nearest.h"
#include "config/units.h"
#include "core/whole_number.h"
#include "fop/fop_type.h"

namespace fopd::lrs {

namespace {

constexpr std::string_view kHex = "0123456789abcdef";
// The characters of an address, and of the part from its first dot on.
constexpr std::string_view kIp = "0123456789abcdef:.";
constexpr std::string_view kIpEnd = "0123456789.";
// The transports' schemes; mem is within a process.
constexpr std::array<std::string_view, 4> kNetworks{"mem", "tcp", "verbs", "ofi+tcp"};
// The range of IPv4 addresses mapped to IPv6, and the addresses next to it.
constexpr AddressBytes kFourFirst{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr AddressBytes kFourLast{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
constexpr AddressBytes kBeforeFour{0, 0, 0,    0,    0,    0,    0,    0,
                                   0, 0, 0xff, 0xfe, 0xff, 0xff, 0xff, 0xff};
constexpr AddressBytes kBehindFour{0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
bool is_four(const AddressBytes& bytes) {
    return kFourFirst <= bytes && bytes <= kFourLast;
}
// Longer words get no suggestion: they cannot be misspelt short words.
constexpr std::size_t kNearBytesMax = 64;

// Whether requests of this type are seen by policies.
bool is_ruled(const fop::FopType& type) {
    return type.lane == Lane::kData;
}

bool fits_any(const Glob& glob) {
    return std::ranges::any_of(fop::kFopTypes, [&glob](const fop::FopType& type) {
        return is_ruled(type) && glob.matches(type.name);
    });
}
bool fits_any(std::string_view name) {
    const fop::FopType* const type = fop::find_fop_type(name);
    return type != nullptr && is_ruled(*type);
}

std::vector<std::string> op_words() {
    std::vector<std::string> words;
    for (const fop::FopType& type : fop::kFopTypes) {
        if (is_ruled(type)) words.emplace_back(type.name);
    }
    return words;
}

// The two ends of "a..b".
std::optional<std::pair<std::string_view, std::string_view>> range_of(const RuleToken& token) {
    if (token.has_quotes || token.has_gaps()) return std::nullopt;
    const std::string_view text = token.text;
    const std::size_t dots = text.find("..");
    if (dots == std::string_view::npos) return std::nullopt;
    return std::pair(text.substr(0, dots), text.substr(dots + 2));
}

// Addresses that are compared as text: with an interface, "fe80::1%eth0", or "unknown", which the
// transport reports for a client without a known address.
bool is_text_of_address(std::string_view text) {
    const std::size_t percent = text.find('%');
    if (percent == std::string_view::npos) return text == "unknown";
    AddressBytes unused;
    const std::string_view address = text.substr(0, percent);
    return address.find(':') != std::string_view::npos && parse_ip(address, unused) &&
           percent + 1 < text.size();
}

// Sets the last `bits` of an address to all zeros or all ones.
void fill_bits(AddressBytes& bytes, unsigned bits, bool ones) {
    for (std::size_t i = bytes.size(); i > 0 && bits > 0; --i) {
        const unsigned here = std::min(bits, 8U);
        const auto mask = static_cast<unsigned char>((1U << here) - 1);
        bytes[i - 1] =
            static_cast<unsigned char>(ones ? bytes[i - 1] | mask : bytes[i - 1] & ~unsigned{mask});
        bits -= here;
    }
}

class RuleValues {
public:
    RuleValues(Test::Values& values, std::string& text) : values_(values), text_(text) {}

    std::optional<RuleMistake> add(Key key, const RuleToken& token) {
        add_to(key, token);
        return std::move(mistake_);
    }

private:
    bool add_to(Key key, const RuleToken& token) {
        switch (key) {
            case Key::kSize: return add_size(token);
            case Key::kAddress: return add_address(token);
            case Key::kNetwork: return add_network(token);
            case Key::kOp: return add_op(token);
            case Key::kObject:
                // "" matches requests without an object.
                if (token.has_quotes && token.text.empty()) return add_one(token.text);
                return add_id(token);
            case Key::kClient:
                return add_id(token, "; the key for an address such as 10.0.0.1 is address");
            default: return add_text(token);
        }
    }

    bool fail(const RuleToken& token, std::string wrong, std::string right) {
        mistake_ = RuleMistake{
            .column = token.column, .wrong = std::move(wrong), .right = std::move(right)};
        return false;
    }

    bool read_size(const RuleToken& token, std::string_view text, std::uint64_t& size) {
        const auto parsed = config::parse_size(text);
        if (!parsed) return fail(token, parsed.error().wrong, parsed.error().right);
        size = *parsed;
        return true;
    }

    bool add_word(const RuleToken& token) {
        return token.has_gaps() ? add_glob(token.literals) : add_one(token.text);
    }
    bool add_one(const std::string& text) {
        append_rule_word(text_, text);
        values_.texts.push_back(text);
        return true;
    }
    bool add_glob(const std::vector<std::string>& literals) {
        append_rule_word(text_, literals);
        values_.globs.emplace_back(literals);
        return true;
    }

    bool add_text(const RuleToken& token) {
        const auto range = range_of(token);
        const auto low = range ? core::whole_number(range->first) : std::nullopt;
        const auto high = range ? core::whole_number(range->second) : std::nullopt;
        if (!range) return add_word(token);
        if (!low || !high) {
            return fail(token, token.shown() + " is not a range of numbers",
                        "write 500..599, or put a name that has dots in quotes");
        }
        if (*low > *high) return fail_backwards(token);
        text_ += std::to_string(*low) + ".." + std::to_string(*high);
        values_.numbers.push_back({.low = *low, .high = *high});
        return true;
    }

    bool fail_backwards(const RuleToken& token) {
        return fail(token, token.shown() + " ends before it begins", "write the lower end first");
    }

    bool add_size(const RuleToken& token) {
        if (token.has_gaps()) {
            return fail(token, token.shown() + " is not a size", "write 64k or 4k..64k");
        }
        NumberRange range;
        const auto ends = range_of(token);
        if (!read_size(token, ends ? ends->first : token.text, range.low)) return false;
        if (!read_size(token, ends ? ends->second : token.text, range.high)) return false;
        if (range.low > range.high) return fail_backwards(token);
        text_ += config::format_size(range.low);
        if (ends) text_ += ".." + config::format_size(range.high);
        values_.numbers.push_back(range);
        return true;
    }

    bool add_op(const RuleToken& token) {
        add_word(token);
        const bool has_any =
            token.has_gaps() ? fits_any(values_.globs.back()) : fits_any(token.text);
        if (has_any) return true;
        const bool is_control = fop::find_fop_type(token.text) != nullptr;
        return fail(token,
                    token.shown() + (is_control ? " is a control fop, which no rule holds back"
                                                : " is not a type of fop"),
                    did_you_mean(is_control ? std::string_view() : token.text, op_words()));
    }

    bool add_network(const RuleToken& token) {
        add_word(token);
        const bool has_any = std::ranges::any_of(kNetworks, [&](std::string_view network) {
            return token.has_gaps() ? values_.globs.back().matches(network) : token.text == network;
        });
        if (has_any) return true;
        return fail(token, token.shown() + " is not a network",
                    did_you_mean(token.text, {kNetworks.begin(), kNetworks.end()}));
    }

    // 32 hexadecimal digits, or a pattern of them.
    bool add_id(const RuleToken& token, const std::string& advice = "") {
        std::vector<std::string> literals = token.literals;
        if (!token.has_gaps()) literals.push_back(token.text);
        bool is_good = token.has_gaps() || token.text.size() == Digits{}.size();
        for (std::string& literal : literals) {
            for (char& c : literal) {
                if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
                is_good = is_good && kHex.find(c) != std::string_view::npos;
            }
        }
        if (is_good) return token.has_gaps() ? add_glob(literals) : add_one(literals.front());
        return fail(token, token.shown() + " is not an id",
                    "write 32 hexadecimal digits, or '*' for some of them" + advice);
    }

    bool add_address(const RuleToken& token) {
        if (token.has_gaps()) return add_address_glob(token);
        AddressRange range;
        if (const auto ends = range_of(token)) {
            const bool is_good =
                parse_ip(ends->first, range.low) && parse_ip(ends->second, range.high);
            if (!is_good) return fail_address(token);
            if (is_four(range.low) != is_four(range.high)) {
                return fail(token,
                            token.shown() + " begins in IPv4 and ends in IPv6, or the reverse",
                            "write a range of each, as in address={10.0.0.1..10.0.0.9 fe80::/10}");
            }
            if (range.low > range.high) return fail_backwards(token);
        } else if (const std::size_t slash = token.text.find('/'); slash != std::string::npos) {
            if (!read_network(token, slash, range)) return false;
        } else if (parse_ip(token.text, range.low)) {
            range.high = range.low;
        } else if (is_text_of_address(token.text)) {
            return add_one(token.text);
        } else {
            return fail_address(token);
        }
        text_ += token.text;
        add_range(range);
        return true;
    }

    // IPv4 addresses are compared in their mapped form, but are not part of any IPv6 range.
    void add_range(const AddressRange& range) {
        if (is_four(range.low) || range.high < kFourFirst || kFourLast < range.low) {
            values_.addresses.push_back(range);
            return;
        }
        if (range.low < kFourFirst)
            values_.addresses.push_back({.low = range.low, .high = kBeforeFour});
        if (kFourLast < range.high)
            values_.addresses.push_back({.low = kBehindFour, .high = range.high});
    }

    // A pattern of an address; after '%' comes an interface's name.
    bool add_address_glob(const RuleToken& token) {
        std::vector<std::string> literals = token.literals;
        bool has_dot = false;
        for (std::string& literal : literals) {
            for (char& c : literal) {
                if (c == '%') return add_glob(literals);
                if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
                has_dot = has_dot || c == '.';
                const std::string_view allowed = has_dot ? kIpEnd : kIp;
                if (allowed.find(c) == std::string_view::npos) return fail_address(token);
            }
        }
        return add_glob(literals);
    }

    bool fail_address(const RuleToken& token) {
        return fail(token, token.shown() + " is not an address, and host names are not looked up",
                    "write 10.0.0.1, 10.0.0.0/8, 10.0.0.1..10.0.0.9, 10.0.* or the same of IPv6");
    }

    bool read_network(const RuleToken& token, std::size_t slash, AddressRange& range) {
        const std::string_view text = token.text;
        const std::string_view host = text.substr(0, slash);
        const bool has_dots = host.find(':') == std::string_view::npos;
        const unsigned bits_max = has_dots ? 32 : 128;
        const auto bits = core::whole_number(text.substr(slash + 1));
        if (!parse_ip(host, range.low) || !bits || *bits > bits_max) return fail_address(token);
        range.high = range.low;
        const auto free_bits = bits_max - static_cast<unsigned>(*bits);
        fill_bits(range.low, free_bits, false);
        fill_bits(range.high, free_bits, true);
        return true;
    }

    Test::Values& values_;
    std::string& text_;
    std::optional<RuleMistake> mistake_;
};

}  // namespace

std::optional<RuleMistake> add_rule_value(Key key, const RuleToken& word, Test::Values& values,
                                          std::string& text) {
    return RuleValues(values, text).add(key, word);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& words) {
    const auto near = word.size() > kNearBytesMax ? std::nullopt : config::nearest(word, words);
    return near ? "did you mean " + *near + "?" : "write one of " + config::joined(words);
}

}  // namespace fopd::lrs
