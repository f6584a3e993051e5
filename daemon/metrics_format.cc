#include "daemon/metrics_format.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

namespace fopd::daemon {

namespace {

std::string_view trimmed(std::string_view text) {
    constexpr std::string_view kBlanks = " \t";
    const std::size_t begin = text.find_first_not_of(kBlanks);
    if (begin == std::string_view::npos) return {};
    return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string in_lower_case(std::string_view text) {
    std::string lower(text);
    for (char& c : lower) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lower;
}

// Takes the part before the next separator that is not in quotes, without blanks around it.
std::string_view take_part(std::string_view& text, char separator) {
    bool is_quoted = false;
    std::size_t end = 0;
    for (; end < text.size(); ++end) {
        const char c = text[end];
        if (is_quoted && c == '\\') {
            ++end;
        } else if (c == '"') {
            is_quoted = !is_quoted;
        } else if (c == separator && !is_quoted) {
            break;
        }
    }
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return trimmed(part);
}

// From 0 to 1000; none: it has another form.
std::optional<int> parse_quality(std::string_view text) {
    double quality = 0;
    const char* const end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, quality, std::chars_format::fixed);
    const bool is_number = parsed.ec == std::errc() && parsed.ptr == end;
    if (!is_number || !(quality >= 0 && quality <= 1)) return std::nullopt;
    return static_cast<int>(quality * 1000 + 0.5);
}

// One of the media ranges of the header: "text/plain;version=0.0.4;q=0.5".
struct MediaRange {
    std::string type;
    std::string version{};
    int quality = 1000;
};

std::optional<MediaRange> parse_range(std::string_view text) {
    MediaRange range{.type = in_lower_case(take_part(text, ';'))};
    while (!text.empty()) {
        std::string_view value = take_part(text, ';');
        const std::string key = in_lower_case(take_part(value, '='));
        if (value.size() >= 2 && value.front() == '"' && value.back() == '"') {
            value = value.substr(1, value.size() - 2);
        }
        value = trimmed(value);
        if (key == "version") range.version = value;
        if (key != "q") continue;
        const auto quality = parse_quality(value);
        if (!quality) return std::nullopt;
        range.quality = *quality;
    }
    return range;
}

// How much a format is wanted, by the range that fits it best.
struct Wish {
    std::string_view type;  // The type of the format: "text/plain".
    std::string_view version;
    int fit = 0;  // How exactly the range fits: 1 "*/*", 2 "text/*", 3 "text/plain".
    int quality = 0;

    void look_at(const MediaRange& range) {
        const std::string_view group = type.substr(0, type.find('/'));
        const bool has_version = range.version.empty() || range.version == version;
        int range_fit = 0;
        if (range.type == "*/*") range_fit = 1;
        if (range.type == std::string(group) + "/*") range_fit = 2;
        if (range.type == type && has_version) range_fit = 3;
        const bool is_better = range_fit > fit || (range_fit == fit && range.quality > quality);
        if (range_fit == 0 || !is_better) return;
        fit = range_fit;
        quality = range.quality;
    }
};

}  // namespace

std::string_view content_type_of(MetricsFormat format) {
    return format == MetricsFormat::kOpenMetrics
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

MetricsFormat preferred_format(std::string_view accept) {
    Wish open{.type = "application/openmetrics-text", .version = "1.0.0"};
    Wish text{.type = "text/plain", .version = "0.0.4"};
    while (!accept.empty()) {
        const auto range = parse_range(take_part(accept, ','));
        if (!range) continue;
        open.look_at(*range);
        text.look_at(*range);
    }
    const bool is_named = open.fit == 3;
    const bool is_preferred =
        open.quality > text.quality || (open.quality == text.quality && is_named);
    return open.quality > 0 && is_preferred ? MetricsFormat::kOpenMetrics : MetricsFormat::kText;
}

}  // namespace fopd::daemon
