#include "daemon/open_metrics.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <map>

#include "core/ensure.h"
#include "core/utf8.h"

namespace fopd::daemon {

namespace {

struct Bucket {
    std::uint64_t limit_ns;
    std::string_view seconds;  // In the number format of the specification.
};
constexpr std::array kTwelveBuckets{
    Bucket{25'000, "2.5e-05"},    Bucket{100'000, "0.0001"},    Bucket{250'000, "0.00025"},
    Bucket{1'000'000, "0.001"},   Bucket{2'500'000, "0.0025"},  Bucket{10'000'000, "0.01"},
    Bucket{25'000'000, "0.025"},  Bucket{100'000'000, "0.1"},   Bucket{250'000'000, "0.25"},
    Bucket{1'000'000'000, "1.0"}, Bucket{2'500'000'000, "2.5"}, Bucket{10'000'000'000, "10.0"},
};
static_assert(std::ranges::is_sorted(kTwelveBuckets, {}, &Bucket::limit_ns));
constexpr std::array kFourBuckets{
    Bucket{1'000'000, "0.001"},
    Bucket{10'000'000, "0.01"},
    Bucket{100'000'000, "0.1"},
    Bucket{1'000'000'000, "1.0"},
};

std::span<const Bucket> limits_of(core::Buckets buckets) {
    if (buckets == core::Buckets::kFour) return kFourBuckets;
    return kTwelveBuckets;
}

constexpr std::array<std::string_view, 3> kUnits{"seconds", "bytes", "ratio"};

std::string_view unit_of(std::string_view name) {
    for (const std::string_view unit : kUnits) {
        if (name.size() > unit.size() && name.ends_with(unit) &&
            name[name.size() - unit.size() - 1] == '_') {
            return unit;
        }
    }
    return {};
}

// Invalid UTF-8 becomes U+FFFD, because the format requires UTF-8.
enum class Quotes : std::uint8_t { kEscaped, kPlain };
void append_escaped(std::string& out, std::string_view text, Quotes quotes = Quotes::kEscaped) {
    while (!text.empty()) {
        const auto character = core::decode_utf8(text);
        const std::size_t length = character ? character->size_bytes : 0;
        const char first = text.front();
        if (length == 0) {
            out += "\xef\xbf\xbd";
        } else if (first == '\n') {
            out += "\\n";
        } else {
            const bool is_quote = first == '"' && quotes == Quotes::kEscaped;
            if (is_quote || first == '\\') out += '\\';
            out += text.substr(0, length);
        }
        text.remove_prefix(std::max<std::size_t>(length, 1));
    }
}

void append_metric_value(std::string& out, double number) {
    if (std::isnan(number)) {
        out += "NaN";
    } else if (std::isinf(number)) {
        out += number < 0 ? "-Inf" : "+Inf";
    } else {
        std::array<char, 32> text{};
        const auto end = std::to_chars(text.data(), text.data() + text.size(), number).ptr;
        out.append(text.data(), end);
    }
}

void append_metric_value(std::string& out, std::uint64_t number) {
    out += std::to_string(number);
}

class TextSink final : public core::MetricSink {
public:
    explicit TextSink(MetricsFormat format) : format_(format) {}

    void counter(std::string_view name, std::string_view help, std::span<const core::Label> labels,
                 double value) override {
        ENSURE(value >= 0);
        append_sample(family(name, "counter", help), name, "_total", labels, {}, value);
    }

    void gauge(std::string_view name, std::string_view help, std::span<const core::Label> labels,
               double value) override {
        append_sample(family(name, "gauge", help), name, "", labels, {}, value);
    }

    // The histogram changes meanwhile: cumulative counts must not fall from one bucket to the next.
    void time_histogram(std::string_view name, std::string_view help,
                        std::span<const core::Label> labels, const core::Histogram& value,
                        core::Buckets buckets) override {
        std::string& out = family(name, "histogram", help);
        const std::uint64_t sum_ns = value.sum();
        std::uint64_t seen = 0;
        for (const Bucket& bucket : limits_of(buckets)) {
            seen = std::max(seen, value.count_up_to(bucket.limit_ns));
            append_sample(out, name, "_bucket", labels, bucket.seconds, seen);
        }
        seen = std::max(seen, value.count());
        append_sample(out, name, "_bucket", labels, "+Inf", seen);
        append_sample(out, name, "_count", labels, {}, seen);
        append_sample(out, name, "_sum", labels, {}, static_cast<double>(sum_ns) / 1e9);
    }

    std::string text() const {
        std::string all;
        for (const auto& [name, family] : families_) all += family.head + family.samples;
        return is_open() ? all + "# EOF\n" : all;
    }

private:
    struct Family {
        std::string_view type;
        std::string head;
        std::string samples;
    };

    bool is_open() const { return format_ == MetricsFormat::kOpenMetrics; }

    // The text to which the family's samples are appended.
    std::string& family(std::string_view name, std::string_view type, std::string_view help) {
        const auto [at, is_new] = families_.try_emplace(std::string(name));
        Family& family = at->second;
        if (is_new) {
            family.type = type;
            append_head(family.head, name, type, help);
        }
        ENSURE(family.type == type);
        return family.samples;
    }

    void append_head(std::string& out, std::string_view name, std::string_view type,
                     std::string_view help) const {
        const bool has_suffix = type == "counter" && !is_open();
        const auto line = [&](std::string_view what) -> std::string& {
            out += "# ";
            out += what;
            out += ' ';
            out += name;
            out += has_suffix ? "_total " : " ";
            return out;
        };
        line("TYPE") += type;
        out += '\n';
        if (const std::string_view unit = unit_of(name); !unit.empty() && is_open()) {
            line("UNIT") += unit;
            out += '\n';
        }
        append_escaped(line("HELP"), help, is_open() ? Quotes::kEscaped : Quotes::kPlain);
        out += '\n';
    }

    template <typename Number>
    static void append_sample(std::string& out, std::string_view name, std::string_view suffix,
                              std::span<const core::Label> labels, std::string_view le,
                              Number value) {
        out += name;
        out += suffix;
        char separator = '{';
        const auto append_label = [&](std::string_view key, std::string_view text) {
            out += separator;
            out += key;
            out += "=\"";
            append_escaped(out, text);
            out += '"';
            separator = ',';
        };
        for (const core::Label& label : labels) append_label(label.key, label.value);
        if (!le.empty()) append_label("le", le);
        if (separator == ',') out += '}';
        out += ' ';
        append_metric_value(out, value);
        out += '\n';
    }

    const MetricsFormat format_;
    std::map<std::string, Family, std::less<>> families_;
};

}  // namespace

std::string render_metrics(MetricsFormat format,
                           std::span<const core::MetricSource* const> sources) {
    TextSink sink(format);
    for (const core::MetricSource* const source : sources) source->collect(sink);
    return sink.text();
}

}  // namespace fopd::daemon
