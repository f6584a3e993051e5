#include "config/sample.h"

#include <string_view>

namespace fopd::config {
namespace {

// `text` as comments indented by `indent`, wrapped between words.
void write_comment(std::string& out, std::string_view text, std::size_t indent) {
    const std::string start = std::string(indent, ' ') + "#";
    std::string line = start;
    while (!text.empty()) {
        const std::size_t length = std::min(text.find_first_of(" \n"), text.size());
        const std::string_view word = text.substr(0, length);
        if (line.size() + 1 + word.size() > kColumnMax && line != start) {
            out.append(line).append("\n");
            line = start;
        }
        if (!word.empty()) line.append(" ").append(word);
        text.remove_prefix(std::min(text.size(), length + 1));
    }
    out.append(line).append("\n");
}

std::string facts(const KeyDescription& key) {
    std::string text;
    if (key.shape == KeyDescription::Shape::kList && !key.keys.empty()) {
        text = "A list of maps.";
    } else {
        text = "Allowed: " + key.allowed + ".";
    }
    text += key.need == Need::kRequired ? " Required."
                                        : " Default: " + to_line(key.default_value) + ".";
    return text + (key.reload == Reload::kLive ? " Can change at run time." : " Needs a restart.");
}

void write_keys(std::string& out, const std::vector<KeyDescription>& keys, std::size_t indent);

// An example item of a list of maps, as comments, because the list itself is empty.
void write_item(std::string& out, const KeyDescription& list, std::size_t indent) {
    write_comment(out, "An item:", indent);
    std::string item;
    write_keys(item, list.keys, 4);
    std::string_view rest = item;
    bool is_before_first_key = true;
    while (!rest.empty()) {
        std::string line(rest.substr(0, rest.find('\n')));
        rest.remove_prefix(line.size() + 1);
        const bool is_first_key = is_before_first_key && line[4] != '#';
        if (is_first_key) line[2] = '-';
        is_before_first_key = is_before_first_key && !is_first_key;
        out.append(indent, ' ').append("#").append(line).append("\n");
    }
}

void write_key(std::string& out, const KeyDescription& key, std::size_t indent) {
    write_comment(out, key.help, indent);
    if (key.shape == KeyDescription::Shape::kMap && !key.keys.empty()) {
        out.append(indent, ' ').append(key.key).append(":\n");
        write_keys(out, key.keys, indent + 2);
        return;
    }
    write_comment(out, facts(key), indent);
    if (!key.example.empty()) {
        out.append(indent, ' ').append(key.key).append(": ").append(key.example).append("\n");
        return;
    }
    Node map;
    map.kind = Node::Kind::kMap;
    map.entries.push_back({key.key, {}, key.default_value});
    out += to_yaml(map, indent);
    // Placed below the key, so that uncommenting the item and removing the [] gives a list with it.
    if (key.shape == KeyDescription::Shape::kList && !key.keys.empty()) {
        write_item(out, key, indent);
    }
}

void write_keys(std::string& out, const std::vector<KeyDescription>& keys, std::size_t indent) {
    for (const KeyDescription& key : keys) write_key(out, key, indent);
}

}  // namespace

std::string annotated_sample(const Schema& schema) {
    std::string out;
    write_comment(out,
                  "Every key with its default, or with a value that suits most nodes better, where "
                  "`Default:` says so. Keys may be left out; unknown ones are refused. "
                  "Durations need a unit (ns us ms s min h d); sizes take k M G T P and KiB to PiB "
                  "(powers of 1024) or kB to PB (powers of 1000).",
                  0);
    for (const auto& section : schema.sections()) {
        out += '\n';
        write_key(out, section->describe(), 0);
    }
    return out;
}

}  // namespace fopd::config
