// Goal: a strict reader of OpenMetrics takes what we write, and reads the figures we had.
// Method: a golden text, and a small validator of the format over awkward names and values.
#include "daemon/open_metrics.h"

#include <array>
#include <cmath>
#include <map>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "core/histogram.h"
#include "core/utf8.h"
#include "tests/catch.h"

using namespace fopd;
using namespace fopd::daemon;
using core::Label;

namespace {

template <typename Collect>
class Source final : public core::MetricSource {
public:
    explicit Source(Collect collect) : collect_(collect) {}
    void collect(core::MetricSink& sink) const override { collect_(sink); }

private:
    Collect collect_;
};

template <typename Collect>
std::string rendered(Collect collect, MetricsFormat format = MetricsFormat::kOpenMetrics) {
    const Source source(collect);
    const std::array<const core::MetricSource*, 1> sources{&source};
    return render_metrics(format, sources);
}

// "" when `text` keeps the rules of OpenMetrics 1.0, else the first that it breaks.
class Validator {
public:
    std::string check(const std::string& text) {
        if (!text.ends_with("# EOF\n")) return "does not end with # EOF";
        for (std::string_view rest = text; !rest.empty();) {
            const auto character = core::decode_utf8(rest);
            const std::size_t length = character ? character->size_bytes : 0;
            if (length == 0) return "not UTF-8";
            rest.remove_prefix(length);
        }
        std::size_t start = 0;
        for (std::size_t end; (end = text.find('\n', start)) != std::string::npos;
             start = end + 1) {
            const std::string problem = check_line(text.substr(start, end - start));
            if (!problem.empty()) return problem + ": " + text.substr(start, end - start);
        }
        const std::string problem = end_histogram();
        return problem.empty() && start != text.size() ? "no newline at the end" : problem;
    }

private:
    static constexpr auto kName = "([a-zA-Z_:][a-zA-Z0-9_:]*)";

    std::string check_line(const std::string& line) {
        if (is_ended_) return "a line after # EOF";
        if (line == "# EOF") {
            is_ended_ = true;
            return "";
        }
        return line.starts_with("# ") ? check_head(line) : check_sample(line);
    }

    std::string check_head(const std::string& line) {
        static const std::regex kForm(std::string("# (TYPE|UNIT|HELP) ") + kName + " ([^\n]*)");
        std::smatch match;
        if (!std::regex_match(line, match, kForm)) return "malformed metadata";
        if (match[1] == "TYPE") {
            if (const std::string problem = end_histogram(); !problem.empty()) return problem;
            family_ = match[2];
            type_ = match[3];
            if (!families_.insert(family_).second) return "interleaved or repeated family";
            if (type_ == "counter" && family_.ends_with("_total")) return "_total in a family";
            return type_ == "counter" || type_ == "gauge" || type_ == "histogram" ? ""
                                                                                  : "unknown type";
        }
        if (match[2] != family_) return "metadata of another family";
        if (match[1] == "UNIT" && !family_.ends_with("_" + match[3].str())) {
            return "the unit is no suffix of the name";
        }
        static const std::regex kEscaped(R"(([^"\\]|\\[n"\\])*)");
        return std::regex_match(match[3].str(), kEscaped) ? "" : "badly escaped help";
    }

    std::string check_sample(const std::string& line) {
        static const std::string kLabel = R"([a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\]|\\[n"\\])*")";
        static const std::regex kForm(std::string(kName) + R"((?:\{()" + kLabel + "(?:," + kLabel +
                                      R"()*)\})? (NaN|[+-]Inf|-?[0-9.]+(?:e[+-][0-9]+)?))");
        std::smatch match;
        if (!std::regex_match(line, match, kForm)) return "malformed sample";
        const std::string name = match[1];
        if (!name.starts_with(family_)) return "sample of another family";
        const std::string suffix = name.substr(family_.size());
        static const std::map<std::string, std::set<std::string>> kSuffixes{
            {"counter", {"_total"}}, {"gauge", {""}}, {"histogram", {"_bucket", "_count", "_sum"}}};
        if (!kSuffixes.at(type_).contains(suffix)) return "wrong suffix for the type";
        if (!samples_.insert(name + "{" + match[2].str()).second) return "sample twice";
        const double value = std::stod(match[3]);
        if (type_ == "counter" && !(value >= 0)) return "counter below zero";
        if (suffix == "_bucket") return check_bucket(match[2], value);
        if (suffix == "_count" && value != last_bucket_) return "_count is not the last bucket";
        return "";
    }

    std::string check_bucket(const std::string& labels, double value) {
        static const std::regex kLe(R"re(le="([^"]*)"$)re");
        std::smatch match;
        if (!std::regex_search(labels, match, kLe)) return "bucket without le";
        const bool is_last = match[1] == "+Inf";
        const double limit = is_last ? HUGE_VAL : std::stod(match[1]);
        if (is_in_histogram_ && limit <= last_limit_) return "buckets out of order";
        if (is_in_histogram_ && value < last_bucket_) return "buckets fall";
        is_in_histogram_ = !is_last;
        last_limit_ = limit;
        last_bucket_ = value;
        return "";
    }

    std::string end_histogram() const { return is_in_histogram_ ? "no +Inf bucket" : ""; }

    bool is_ended_ = false;
    std::string family_;
    std::string type_;
    std::set<std::string> families_;
    std::set<std::string> samples_;
    bool is_in_histogram_ = false;
    double last_limit_ = 0;
    double last_bucket_ = 0;
};

std::string problem_of(const std::string& text) {
    return Validator().check(text);
}

}  // namespace

TEST_CASE("open metrics: nothing to show is still a whole answer", "[daemon][metrics]") {
    REQUIRE(render_metrics(MetricsFormat::kOpenMetrics, {}) == "# EOF\n");
}

TEST_CASE("open metrics: counters and gauges are grouped by name", "[daemon][metrics]") {
    const std::string text = rendered([](core::MetricSink& sink) {
        for (const std::string_view index : {"0", "1"}) {
            const std::array labels{Label{"locality", index}};
            sink.counter("fopd_busy_seconds", "Time spent working.", labels, 1.5);
            sink.gauge("fopd_buffers_free", "Buffers nobody holds.", labels, 1024);
        }
        const std::array labels{Label{"path", "a\"b\\c\nd\xff"}, Label{"op", "read"}};
        sink.gauge("fopd_device_busy_ratio", "Share of \"busy\" time.", labels, -HUGE_VAL);
        sink.counter("fopd_starts", "Starts.", {}, 3e18);
    });

    REQUIRE(text ==
            "# TYPE fopd_buffers_free gauge\n"
            "# HELP fopd_buffers_free Buffers nobody holds.\n"
            "fopd_buffers_free{locality=\"0\"} 1024\n"
            "fopd_buffers_free{locality=\"1\"} 1024\n"
            "# TYPE fopd_busy_seconds counter\n"
            "# UNIT fopd_busy_seconds seconds\n"
            "# HELP fopd_busy_seconds Time spent working.\n"
            "fopd_busy_seconds_total{locality=\"0\"} 1.5\n"
            "fopd_busy_seconds_total{locality=\"1\"} 1.5\n"
            "# TYPE fopd_device_busy_ratio gauge\n"
            "# UNIT fopd_device_busy_ratio ratio\n"
            "# HELP fopd_device_busy_ratio Share of \\\"busy\\\" time.\n"
            "fopd_device_busy_ratio{path=\"a\\\"b\\\\c\\nd\xef\xbf\xbd\",op=\"read\"} -Inf\n"
            "# TYPE fopd_starts counter\n"
            "# HELP fopd_starts Starts.\n"
            "fopd_starts_total 3e+18\n"
            "# EOF\n");
    const std::string problem = problem_of(text);
    CAPTURE(problem);
    REQUIRE(problem.empty());
}

TEST_CASE("open metrics: the older format has no unit and no end, and counters in full",
          "[daemon][metrics]") {
    const std::string text = rendered(
        [](core::MetricSink& sink) {
            const std::array labels{Label{"path", "a\"b\\c\nd"}};
            sink.gauge("fopd_device_busy_ratio", "Share of \"busy\\\" time.", labels, 0.5);
            sink.counter("fopd_busy_seconds", "Time spent working.", {}, 1.5);
        },
        MetricsFormat::kText);

    REQUIRE(text ==
            "# TYPE fopd_busy_seconds_total counter\n"
            "# HELP fopd_busy_seconds_total Time spent working.\n"
            "fopd_busy_seconds_total 1.5\n"
            "# TYPE fopd_device_busy_ratio gauge\n"
            "# HELP fopd_device_busy_ratio Share of \"busy\\\\\" time.\n"
            "fopd_device_busy_ratio{path=\"a\\\"b\\\\c\\nd\"} 0.5\n");
}

TEST_CASE("open metrics: a histogram shows its times in fixed buckets", "[daemon][metrics]") {
    core::Histogram histogram;
    histogram.record(800ns);
    histogram.record(3ms);
    histogram.record(3ms);
    histogram.record(40min);

    const std::string text = rendered([&](core::MetricSink& sink) {
        const std::array labels{Label{"op", "read"}};
        sink.time_histogram("fopd_fop_seconds", "Time from arrival to reply.", labels, histogram,
                            core::Buckets::kTwelve);
    });

    const std::string problem = problem_of(text);
    CAPTURE(problem);
    REQUIRE(problem.empty());
    REQUIRE_THAT(text, ContainsSubstring("# UNIT fopd_fop_seconds seconds\n"));
    REQUIRE_THAT(text,
                 ContainsSubstring("fopd_fop_seconds_bucket{op=\"read\",le=\"2.5e-05\"} 1\n"));
    REQUIRE_THAT(text, ContainsSubstring("fopd_fop_seconds_bucket{op=\"read\",le=\"0.0025\"} 1\n"));
    REQUIRE_THAT(text, ContainsSubstring("fopd_fop_seconds_bucket{op=\"read\",le=\"0.01\"} 3\n"));
    REQUIRE_THAT(text, ContainsSubstring("fopd_fop_seconds_bucket{op=\"read\",le=\"10.0\"} 3\n"));
    REQUIRE_THAT(text, ContainsSubstring("fopd_fop_seconds_bucket{op=\"read\",le=\"+Inf\"} 4\n"
                                         "fopd_fop_seconds_count{op=\"read\"} 4\n"
                                         "fopd_fop_seconds_sum{op=\"read\"} 2400.0060008\n"));
}

TEST_CASE("open metrics: a histogram with few buckets has one for each power of ten",
          "[daemon][metrics]") {
    core::Histogram histogram;
    for (const int ms : {1, 5, 50, 500, 5000}) histogram.record(ms * 1ms - 200us);

    const std::string text = rendered([&](core::MetricSink& sink) {
        sink.time_histogram("fopd_a_seconds", "Help.", {}, histogram, core::Buckets::kFour);
    });

    REQUIRE_THAT(text, ContainsSubstring("fopd_a_seconds_bucket{le=\"0.001\"} 1\n"
                                         "fopd_a_seconds_bucket{le=\"0.01\"} 2\n"
                                         "fopd_a_seconds_bucket{le=\"0.1\"} 3\n"
                                         "fopd_a_seconds_bucket{le=\"1.0\"} 4\n"
                                         "fopd_a_seconds_bucket{le=\"+Inf\"} 5\n"));
}

TEST_CASE("open metrics: labels of any bytes keep the format", "[daemon][metrics]") {
    std::string every_byte;
    for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
    core::Histogram histogram;

    const std::string text = rendered([&](core::MetricSink& sink) {
        const std::array labels{Label{"name", every_byte}};
        sink.counter("fopd_a", every_byte, labels, 0);
        sink.gauge("fopd_b", every_byte, labels, std::nan(""));
        sink.time_histogram("fopd_c_seconds", every_byte, labels, histogram, core::Buckets::kFour);
    });

    const std::string problem = problem_of(text);
    CAPTURE(problem);
    REQUIRE(problem.empty());
}
