#include "config/yaml_reader.h"

#include <algorithm>
#include <array>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include "config/text_check.h"
#include "core/ensure.h"
#include "core/utf8.h"

namespace fopd::config {
namespace {

// The daemon's own configuration has 4 levels. yaml-cpp recurses for each level, so this also
// bounds its stack.
constexpr std::size_t kDepthMax = 32;
// Bounds the number of problems and the size of the tree for any file.
constexpr std::size_t kNodesMax = 20'000;

// Thrown through yaml-cpp to stop it, after the problem was recorded.
struct Stop {};

// Finds lines by number, and converts yaml-cpp's marks (bytes from 0) to positions (characters from
// 1).
class Lines {
public:
    explicit Lines(std::string_view text) : text_(text) {
        while (true) {
            const std::size_t end = text.find('\n');
            lines_.push_back(text.substr(0, end));
            if (end == std::string_view::npos) return;
            text.remove_prefix(end + 1);
        }
    }

    // yaml-cpp uses -1 for an unknown position.
    Position position(const YAML::Mark& mark) {
        if (mark.line < 0 || mark.column < 0) return {};
        const std::string_view line = at(mark);
        const auto column = std::min(static_cast<std::size_t>(mark.column), line.size());
        // Continues from the last position; otherwise a line of a megabyte would be counted again
        // for each of its values.
        if (line.data() != last_line_) {
            last_line_ = line.data();
            last_column_ = 0;
            last_characters_ = 0;
        }
        if (column >= last_column_) {
            last_characters_ +=
                core::count_characters(line.substr(last_column_, column - last_column_));
        } else {
            last_characters_ -= core::count_characters(line.substr(column, last_column_ - column));
        }
        last_column_ = column;
        return {static_cast<std::uint32_t>(mark.line) + 1,
                static_cast<std::uint32_t>(last_characters_) + 1};
    }

    // The text from `mark` to the end of the file.
    std::string_view rest(const YAML::Mark& mark) const {
        if (mark.line < 0 || mark.column < 0) return {};
        const std::string_view line = at(mark);
        const auto offset = static_cast<std::size_t>(line.data() - text_.data()) +
                            std::min(static_cast<std::size_t>(mark.column), line.size());
        return line.data() == nullptr ? std::string_view() : text_.substr(offset);
    }

    // The dash of a list item without a value: yaml-cpp marks the following token instead. Lines
    // between the two are blank or comments.
    std::optional<Position> lone_dash_before(const YAML::Mark& mark) const {
        if (mark.line < 0) return std::nullopt;
        for (auto index = std::min(static_cast<std::size_t>(mark.line), lines_.size());
             index-- > 0;) {
            const std::string_view line = lines_[index].substr(0, lines_[index].find('#'));
            const std::size_t end = line.find_last_not_of(" \r");
            if (end == std::string_view::npos) continue;
            if (line[end] != '-') return std::nullopt;
            return Position{
                static_cast<std::uint32_t>(index) + 1,
                static_cast<std::uint32_t>(core::count_characters(line.substr(0, end))) + 1};
        }
        return std::nullopt;
    }

private:
    std::string_view at(const YAML::Mark& mark) const {
        const auto index = static_cast<std::size_t>(mark.line);
        return index < lines_.size() ? lines_[index] : std::string_view();
    }

    std::string_view text_;
    std::vector<std::string_view> lines_;  // Substrings of text_.
    // The last position returned: its line, and how many bytes and characters precede it.
    const char* last_line_ = nullptr;
    std::size_t last_column_ = 0;
    std::size_t last_characters_ = 0;
};

// Whether the quoted scalar at the start of `text` has a closing quote: yaml-cpp takes the end of
// the file for one.
bool is_closed(std::string_view text) {
    const char quote = text[0];
    for (std::size_t index = 1; index < text.size(); ++index) {
        if (quote == '"' && text[index] == '\\') {
            ++index;
        } else if (text[index] == quote) {
            if (quote == '"' || !text.substr(index).starts_with("''")) return true;
            ++index;
        }
    }
    return false;
}

// Builds a Node from yaml-cpp's events, and refuses YAML features that a configuration may not use.
class TreeBuilder final : public YAML::EventHandler {
public:
    TreeBuilder(Lines& lines, Problems& problems) : lines_(lines), problems_(problems) {}

    Node take_root() { return std::move(root_); }

    void OnDocumentStart(const YAML::Mark& mark) override {
        if (document_count_++ == 0) return;
        report(lines_.position(mark), "yaml", "text after the end of the document",
               "a configuration is one document: check indentation and '---'");
        throw Stop{};
    }
    void OnDocumentEnd() override {}

    void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
        const bool is_refused = refuse_properties(mark, "?", anchor);
        Node node = make(is_refused ? Node::Kind::kRefused : Node::Kind::kNull, mark);
        if (!frames_.empty()) {
            const Frame& frame = frames_.back();
            const std::string_view rest = lines_.rest(mark);
            const bool is_written =
                !rest.empty() && std::string_view("~nN,").find(rest[0]) != std::string_view::npos;
            if (frame.has_key) node.position = frame.key_position;
            if (frame.node.kind == Node::Kind::kList && !is_written) {
                node.position = lines_.lone_dash_before(mark).value_or(node.position);
            }
        }
        add(std::move(node));
    }

    void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override {
        report(lines_.position(mark), path(), "an alias", kWriteItOut);
        add(make(Node::Kind::kRefused, mark));
    }

    void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  const std::string& value) override {
        const bool is_refused =
            refuse_properties(mark, tag, anchor) || refuse_sprawl(mark, value, tag == "!");
        Node node = make(is_refused ? Node::Kind::kRefused : Node::Kind::kScalar, mark);
        node.is_quoted = tag == "!";
        node.text = value;
        add(std::move(node));
    }

    void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                         YAML::EmitterStyle::value /*style*/) override {
        open(Node::Kind::kList, mark, tag, anchor);
    }
    void OnSequenceEnd() override { close(); }

    void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                    YAML::EmitterStyle::value /*style*/) override {
        open(Node::Kind::kMap, mark, tag, anchor);
    }
    void OnMapEnd() override { close(); }

private:
    static constexpr const char* kWriteItOut = "write the value out where it is needed";

    // A list or map that is being read.
    struct Frame {
        Node node;
        // In a map: the key whose value comes next. Unusable keys are skipped with their value.
        bool has_key = false;
        bool is_key_usable = false;
        std::string key;
        std::string shown_key;
        Position key_position;
    };

    void report(Position position, std::string key, std::string wrong, std::string right) {
        problems_.push_back({"", position, std::move(key), std::move(wrong), std::move(right)});
    }

    // For a file that exceeds the limits, other problems are not reported.
    [[noreturn]] void give_up(const YAML::Mark& mark, std::string wrong, std::string right) {
        problems_.clear();
        report(lines_.position(mark), path(), std::move(wrong), std::move(right));
        throw Stop{};
    }

    // The path of the next node, "pools[2].quota".
    std::string path() const {
        std::string text;
        for (const Frame& frame : frames_) {
            if (frame.node.kind == Node::Kind::kList) {
                text.append("[").append(std::to_string(frame.node.items.size())).append("]");
            } else if (frame.has_key) {
                if (!text.empty()) text += '.';
                text += frame.shown_key;
            }
        }
        return text.empty() ? "file" : text;
    }

    Node make(Node::Kind kind, const YAML::Mark& mark) {
        if (++node_count_ > kNodesMax) {
            give_up(mark, "more than " + std::to_string(kNodesMax) + " keys and values before here",
                    "a configuration has a few hundred");
        }
        Node node;
        node.kind = kind;
        node.position = lines_.position(mark);
        return node;
    }

    // A node's mark is the start of its tag or anchor. "?" and "!" are yaml-cpp's own tags.
    bool refuse_properties(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
        const bool has_tag = (tag != "?" && tag != "!") || lines_.rest(mark).starts_with('!');
        const Position position = lines_.position(mark);
        if (has_tag) report(position, path(), "a tag", "leave it out: every key knows its type");
        if (anchor != 0) report(position, path(), "an anchor", kWriteItOut);
        return has_tag || anchor != 0;
    }

    // Refuses a scalar that swallowed other text: up to the end of the file because a quote is
    // missing, or the next line because of its indentation.
    bool refuse_sprawl(const YAML::Mark& mark, const std::string& value, bool is_quoted) {
        const std::string_view rest = lines_.rest(mark);
        const bool has_quotes = rest.starts_with('"') || rest.starts_with('\'');
        const bool is_open = is_quoted && has_quotes && !is_closed(rest);
        const bool is_folded = !is_quoted && !rest.starts_with(value);
        if (is_open) {
            report(lines_.position(mark), path(), "a quote that is not closed", "close it");
        }
        if (is_folded) {
            report(lines_.position(mark), path(), "text that goes on in the next line",
                   "check that line, or put quotes around the text");
        }
        return is_open || is_folded;
    }

    void open(Node::Kind kind, const YAML::Mark& mark, const std::string& tag,
              YAML::anchor_t anchor) {
        refuse_properties(mark, tag, anchor);
        if (frames_.size() >= kDepthMax) {
            give_up(mark, "lists and maps nested more than " + std::to_string(kDepthMax) + " deep",
                    "no key needs more than a few levels");
        }
        frames_.push_back(
            Frame{.node = make(kind, mark), .key = {}, .shown_key = {}, .key_position = {}});
    }

    void close() {
        ENSURE(!frames_.empty());
        Node node = std::move(frames_.back().node);
        frames_.pop_back();
        add(std::move(node));
    }

    void add(Node node) {
        if (frames_.empty()) {
            root_ = std::move(node);
            return;
        }
        Frame& frame = frames_.back();
        if (frame.node.kind == Node::Kind::kList) {
            frame.node.items.push_back(std::move(node));
        } else if (!frame.has_key) {
            take_key(frame, std::move(node));
        } else {
            if (frame.is_key_usable) {
                frame.node.entries.push_back(
                    {std::move(frame.key), frame.key_position, std::move(node)});
            }
            frame.has_key = false;
        }
    }

    void take_key(Frame& frame, Node node) {
        frame.is_key_usable = node.kind == Node::Kind::kScalar;
        if (!frame.is_key_usable && node.kind != Node::Kind::kRefused) {
            const bool is_null = node.kind == Node::Kind::kNull;
            report(node.position, path(),
                   is_null ? "a value without a key" : "a list or map as key",
                   "write a word, a colon and the value");
        }
        frame.has_key = true;
        frame.shown_key = frame.is_key_usable ? shown_key(node.text) : "?";
        frame.key = std::move(node.text);
        frame.key_position = node.position;
    }

    Lines& lines_;
    Problems& problems_;
    Node root_;
    std::vector<Frame> frames_;
    std::size_t node_count_ = 0;
    int document_count_ = 0;
};

// Plain words for yaml-cpp's messages.
struct SyntaxHint {
    std::string_view message;
    const char* wrong;
    const char* right;
};
const std::array kSyntaxHints{
    SyntaxHint{YAML::ErrorMsg::END_OF_MAP, "the map does not go on here",
               "indent its keys alike, write 'key: value' with a space, and quote text with ': '"},
    SyntaxHint{YAML::ErrorMsg::END_OF_MAP_FLOW, "a map in braces does not go on here",
               "separate its keys with commas and close it with }"},
    SyntaxHint{YAML::ErrorMsg::END_OF_SEQ, "the list does not go on here",
               "start each item with '- ', indented alike"},
    SyntaxHint{YAML::ErrorMsg::END_OF_SEQ_FLOW, "a list in brackets does not go on here",
               "separate its items with commas and close it with ]"},
    SyntaxHint{YAML::ErrorMsg::FLOW_END, "a ] or } that closes nothing", "remove or match it"},
    SyntaxHint{YAML::ErrorMsg::BLOCK_ENTRY, "a list item where none can be",
               "start the list on a line of its own, outside of [] and {}"},
    SyntaxHint{YAML::ErrorMsg::MAP_KEY, "a key where none can be", "start it on a line of its own"},
    SyntaxHint{YAML::ErrorMsg::MAP_VALUE, "a ': ' where no key can be",
               "indent keys alike, one on a line, and quote text that has ': ' in it"},
    SyntaxHint{YAML::ErrorMsg::EOF_IN_SCALAR, "a quote that is not closed", "close it"},
    SyntaxHint{YAML::ErrorMsg::DOC_IN_SCALAR, "a quote that is not closed", "close it"},
    SyntaxHint{YAML::ErrorMsg::UNKNOWN_TOKEN, "a character that starts nothing",
               "quote text that starts with one of @ ` % , ? : -"},
    SyntaxHint{YAML::ErrorMsg::UNKNOWN_ANCHOR, "an alias", "quote text that starts with *"},
    SyntaxHint{YAML::ErrorMsg::ALIAS_NOT_FOUND, "an alias", "quote text that starts with *"},
    SyntaxHint{YAML::ErrorMsg::CHAR_IN_ALIAS, "an alias", "quote text that starts with *"},
    SyntaxHint{YAML::ErrorMsg::ANCHOR_NOT_FOUND, "an anchor", "quote text that starts with &"},
    SyntaxHint{YAML::ErrorMsg::CHAR_IN_ANCHOR, "an anchor", "quote text that starts with &"},
    SyntaxHint{YAML::ErrorMsg::TAG_WITH_NO_SUFFIX, "a tag", "quote text that starts with !"},
    SyntaxHint{YAML::ErrorMsg::CHAR_IN_TAG_HANDLE, "a tag", "quote text that starts with !"},
    SyntaxHint{YAML::ErrorMsg::END_OF_VERBATIM_TAG, "a tag", "quote text that starts with !"},
    SyntaxHint{YAML::ErrorMsg::INVALID_ESCAPE, "an unknown escape", "write \\\\ for a backslash"},
    SyntaxHint{YAML::ErrorMsg::INVALID_HEX, "an escape with too few hexadecimal digits",
               "write \\xNN or \\uNNNN"},
    SyntaxHint{YAML::ErrorMsg::INVALID_UNICODE, "an escape for a character that does not exist",
               "write the character itself"},
};

void report_syntax(Lines& lines, const YAML::Exception& error, Problems& problems) {
    Problem problem{"", lines.position(error.mark), "yaml", error.msg, "write valid YAML"};
    for (const SyntaxHint& hint : kSyntaxHints) {
        if (!error.msg.starts_with(hint.message)) continue;
        problem.wrong = hint.wrong;
        problem.right = hint.right;
        break;
    }
    problems.push_back(std::move(problem));
}

}  // namespace

std::optional<Node> read_yaml(std::string_view text, Problems& problems) {
    if (!check_text(text, problems)) return std::nullopt;
    Lines lines(text);
    TreeBuilder builder(lines, problems);
    try {
        std::istringstream stream{std::string(text)};
        YAML::Parser parser(stream);
        // The second call finds nothing, or the builder refuses it.
        while (parser.HandleNextDocument(builder)) {
        }
        return builder.take_root();
    } catch (const Stop&) {
        return std::nullopt;
    } catch (const YAML::Exception& error) {
        report_syntax(lines, error, problems);
    } catch (const std::exception& error) {
        problems.push_back({"", {}, "yaml", error.what(), "write valid YAML"});
    }
    return std::nullopt;
}

}  // namespace fopd::config
