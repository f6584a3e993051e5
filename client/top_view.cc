// SPDX-License-Identifier: BSD-2-Clause
#include "client/top_view.h"

#include <algorithm>
#include <utility>

#include "client/table.h"
#include "core/stable_sort.h"

namespace fopd::client {

namespace {

using Cell = TopTable::Cell;

struct KeyOfView {
    char key;
    TopView view;
    const char* title;
};
constexpr std::array kViews{
    KeyOfView{'o', TopView::kOps, "OP"}, KeyOfView{'c', TopView::kClasses, "CLASS"},
    KeyOfView{'p', TopView::kPrincipals, "PRINCIPAL"}, KeyOfView{'d', TopView::kDevices, "DEVICE"},
    KeyOfView{'l', TopView::kLocalities, "LOCALITY"}};

constexpr std::array kHelp{"o c p d l  show operations, classes, principals, devices, localities",
                           "< >        sort by the column to the left, to the right",
                           "r          sort the other way round",
                           "?          show this, or the table again", "q          end"};

Cell whole(std::uint64_t number) {
    return {std::to_string(number), static_cast<double>(number)};
}
Cell rate(double number) {
    return {fixed(number, 0), number};
}
Cell bytes(double number) {
    return {size_of(static_cast<std::uint64_t>(number)), number};
}
Cell percent(double share) {
    return {fixed(share * 100, 1), share};
}
Cell latency(double us) {
    if (us <= 0) return {"-", 0};
    return {latency_of(us / 1e6), us};
}
TopTable load_table(const char* title, const std::vector<LoadRates>& loads) {
    TopTable table{.titles = {title, "OPS/S", "BYTES/S", "P50", "P99"}, .rows = {}};
    for (const LoadRates& at : loads) {
        table.rows.push_back(
            {{at.name, 0}, rate(at.ops), bytes(at.bytes), latency(at.p50_us), latency(at.p99_us)});
    }
    return table;
}

TopTable top_class_table(const std::vector<ClassRates>& classes) {
    TopTable table{
        .titles = {"CLASS", "QUEUED", "OPS/S", "BYTES/S", "P50", "P99", "HELD %", "OLDEST"},
        .rows = {}};
    for (const ClassRates& at : classes) {
        table.rows.push_back({{at.load.name, 0},
                              whole(at.queued),
                              rate(at.load.ops),
                              bytes(at.load.bytes),
                              latency(at.load.p50_us),
                              latency(at.load.p99_us),
                              percent(at.throttled),
                              {span_of(at.oldest_s), at.oldest_s}});
    }
    return table;
}

TopTable top_locality_table(const std::vector<LocalityLoad<double>>& localities) {
    TopTable table{.titles = {"LOCALITY", "CORE", "BUSY %", "TURNS/S", "SLEEPS/S", "RESUMED/S",
                              "I/O/S", "MESSAGES/S", "BUFFERS"},
                   .rows = {}};
    for (const auto& at : localities) {
        const double core = at.core.is_number() ? at.core.get<double>() : -1;
        table.rows.push_back({whole(at.index),
                              {shown(at.core), core},
                              percent(at.busy),
                              rate(at.turns),
                              rate(at.sleeps),
                              rate(at.resumed),
                              rate(at.io),
                              rate(at.messages),
                              whole(at.buffers_free)});
    }
    return table;
}

std::string text_of(const TopTable& of, std::size_t width_max) {
    std::vector<std::vector<std::string>> rows{of.titles};
    for (const auto& row : of.rows) {
        std::vector<std::string>& texts = rows.emplace_back();
        for (const Cell& cell : row) texts.push_back(cell.text);
    }
    return table(rows, {}, width_max);
}

std::string title_line(const TopSample& now) {
    return now.name + "  " + now.state + "  up " + span_of(now.uptime_s);
}

nlohmann::ordered_json json_of(const LoadRates& at) {
    return {{"name", at.name},
            {"ops_per_s", at.ops},
            {"bytes_per_s", at.bytes},
            {"p50_us", at.p50_us},
            {"p99_us", at.p99_us}};
}

}  // namespace

TopTable top_table(TopView view, const TopRates& rates) {
    switch (view) {
        case TopView::kOps: return load_table("OP", rates.ops);
        case TopView::kClasses: return top_class_table(rates.classes);
        case TopView::kPrincipals: return load_table("PRINCIPAL", rates.principals);
        case TopView::kDevices: return load_table("DEVICE", rates.devices);
        case TopView::kLocalities: return top_locality_table(rates.localities);
    }
    return {};
}

std::string top_page(const TopSample& now, const TopRates& rates) {
    std::string page =
        title_line(now) + "\n" + text_of(top_locality_table(rates.localities), kPageWidth);
    for (const auto view :
         {TopView::kClasses, TopView::kOps, TopView::kPrincipals, TopView::kDevices}) {
        const TopTable table = top_table(view, rates);
        if (!table.rows.empty()) page += "\n" + text_of(table, kPageWidth);
    }
    return page;
}

std::string top_json(const TopRates& rates) {
    nlohmann::ordered_json object{{"interval_s", rates.interval_s}};
    object["localities"] = nlohmann::ordered_json::array();
    for (const auto& at : rates.localities) {
        object["localities"].push_back({{"index", at.index},
                                        {"core", at.core},
                                        {"busy", at.busy},
                                        {"turns_per_s", at.turns},
                                        {"sleeps_per_s", at.sleeps},
                                        {"resumed_per_s", at.resumed},
                                        {"io_per_s", at.io},
                                        {"messages_per_s", at.messages},
                                        {"buffers_free", at.buffers_free}});
    }
    object["classes"] = nlohmann::ordered_json::array();
    for (const ClassRates& at : rates.classes) {
        object["classes"].push_back({{"name", at.load.name},
                                     {"queued", at.queued},
                                     {"served_per_s", at.load.ops},
                                     {"bytes_per_s", at.load.bytes},
                                     {"p50_us", at.load.p50_us},
                                     {"p99_us", at.load.p99_us},
                                     {"throttled_share", at.throttled},
                                     {"oldest_s", at.oldest_s}});
    }
    const auto add = [&object](const char* key, const std::vector<LoadRates>& loads) {
        object[key] = nlohmann::ordered_json::array();
        for (const LoadRates& at : loads) object[key].push_back(json_of(at));
    };
    add("ops", rates.ops);
    add("principals", rates.principals);
    add("devices", rates.devices);
    return dumped(object) + "\n";
}

void TopScreen::set(TopSample now, TopRates rates) {
    now_ = std::move(now);
    rates_ = std::move(rates);
    has_rates_ = true;
}

std::vector<std::string> TopScreen::frame(std::size_t columns, std::size_t rows) const {
    TopTable table = top_table(view_, rates_);
    sort(table);
    std::vector<std::string> lines;
    std::string body;
    if (shows_help_) {
        for (const char* line : kHelp) body += std::string(line) + "\n";
    } else if (has_rates_) {
        body = text_of(table, columns);
    }
    lines.push_back(has_rates_ ? title_line(now_) : "waiting for figures");
    for (std::size_t begin = 0; begin < body.size();) {
        const std::size_t end = body.find('\n', begin);
        lines.push_back(body.substr(begin, end - begin));
        begin = end + 1;
    }
    // The last line of the terminal is the footer.
    lines.resize(std::max<std::size_t>(rows, 1) - 1);
    lines.push_back(footer(table));
    for (std::string& line : lines) line = clipped(line, columns);
    return lines;
}

std::string TopScreen::footer(const TopTable& table) const {
    std::string text;
    for (const KeyOfView& each : kViews) {
        const std::string letter(1, each.key);
        text += (each.view == view_ ? "[" + letter + "]" : letter) + " ";
    }
    return text + "view  < > r sort: " + table.titles[order().column] +
           (order().is_descending ? ", largest first" : ", smallest first") + "  ? help  q quit";
}

void TopScreen::sort(TopTable& table) const {
    const std::size_t column = order().column;
    const auto is_before = [column](const auto& one, const auto& other) {
        const Cell& a = one[column];
        const Cell& b = other[column];
        return a.number != b.number ? a.number < b.number : column == 0 && a.text < b.text;
    };
    if (order().is_descending) {
        core::stable_sort(
            table.rows, [&](const auto& one, const auto& other) { return is_before(other, one); });
    } else {
        core::stable_sort(table.rows, is_before);
    }
}

bool TopScreen::on_key(char key) {
    if (key == 'q') return false;
    if (key == '?') {
        shows_help_ = !shows_help_;
        return true;
    }
    const auto* const chosen = std::ranges::find(kViews, key, &KeyOfView::key);
    if (chosen != kViews.end()) {
        view_ = chosen->view;
        shows_help_ = false;
    }
    const std::size_t count = top_table(view_, rates_).titles.size();
    if (key == '<' || key == '>') {
        order().column = (order().column + (key == '<' ? count - 1 : 1)) % count;
        order().is_descending = order().column != 0;
    }
    if (key == 'r') order().is_descending = !order().is_descending;
    return true;
}

}  // namespace fopd::client
