#include "store/tape/tape_index.h"

#include <algorithm>
#include <utility>

#include "core/ensure.h"
#include "store/corrupt.h"
#include "store/tape/block_checksum.h"

namespace fopd::store {

namespace {

constexpr std::size_t kIndexPartBytes = 1UL << 20;

// Spaces, control characters, and '%' as %HH.
void append_escaped(std::string& line, std::string_view text) {
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte > ' ' && byte != '%' && byte != 0x7f) {
            line += c;
        } else {
            line += "%" + hex_text(byte, 2);
        }
    }
}

std::optional<std::string> unescaped(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (text.size() - i < 3) return std::nullopt;
        const auto byte = parse_hex(text.substr(i + 1, 2), 2);
        if (!byte) return std::nullopt;
        out += static_cast<char>(*byte);
        i += 2;
    }
    return out;
}

void append_field(std::string& line, std::string_view name, std::string_view text) {
    if (!line.empty()) line += ' ';
    line.append(name).append("=");
    append_escaped(line, text);
}

// Takes the fields of a line from its front.
class LineFields {
public:
    explicit LineFields(std::string_view line) : rest_(line), right_(!line.empty()) {}

    // The next field, if it has this name; else the line is wrong.
    std::string take(std::string_view name) {
        auto field = next();
        if (!field || field->first != name) {
            right_ = false;
            return {};
        }
        return std::move(field->second);
    }
    std::uint64_t number(std::string_view name) { return require(parse_decimal(take(name))); }
    // Its name, borrowed, and its text. None at the end, and if the line is wrong.
    std::optional<std::pair<std::string_view, std::string>> next() {
        if (rest_.empty() || !right_) return std::nullopt;
        const std::size_t end = std::min(rest_.find(' '), rest_.size());
        const std::string_view field = rest_.substr(0, end);
        rest_.remove_prefix(std::min(end + 1, rest_.size()));
        right_ = !(rest_.empty() && end != field.size());
        const std::size_t equals = field.find('=');
        auto text =
            equals == std::string_view::npos ? std::nullopt : unescaped(field.substr(equals + 1));
        if (!text) {
            right_ = false;
            return std::nullopt;
        }
        return std::pair(field.substr(0, equals), std::move(*text));
    }
    template <typename T>
    T require(const std::optional<T>& value) {
        right_ &= value.has_value();
        return value.value_or(T());
    }
    bool right() const { return right_; }
    bool at_end() const { return rest_.empty() && right_; }

private:
    std::string_view rest_;
    bool right_;
};

// A part of an index in memory.
class IndexPart final : public MemberSource {
public:
    std::string& text() { return text_; }

    Task<Result<void>> read(std::uint64_t offset, core::Buffer into) override {
        ENSURE(offset + into.size_bytes <= text_.size());
        const auto bytes = std::as_bytes(std::span(text_));
        std::ranges::copy(bytes.subspan(static_cast<std::size_t>(offset), into.size_bytes),
                          into.data);
        co_return Result<void>();
    }
    Task<Result<void>> checksums(std::uint64_t first, std::span<std::uint32_t> into) override {
        const auto bytes = std::as_bytes(std::span(text_));
        for (std::size_t i = 0; i < into.size(); ++i) {
            const auto at = static_cast<std::size_t>((first + i) * kMemberBlockBytes);
            const std::size_t size = std::min<std::size_t>(bytes.size() - at, kMemberBlockBytes);
            into[i] = block_checksum(bytes.subspan(at, size));
        }
        co_return Result<void>();
    }

private:
    std::string text_;
};

// Writes the file that is open.
class IndexWriter {
public:
    IndexWriter(TapeWriter& writer, TapeEntrySource& source) : writer_(writer), source_(source) {}

    Task<Result<void>> run(IndexHead head) {
        part_.text() = encode_index_head(head) + "\n";
        std::uint64_t lines = 0;
        for (;; ++lines) {
            const auto entry = co_await source_.next();
            if (!entry) co_return std::unexpected(entry.error());
            if (!entry->has_value()) break;
            const std::uint64_t file = (*entry)->file.number;
            if (file < head.first || file > head.last || !is_valid((*entry)->member)) {
                co_return std::unexpected(
                    Error{.code = Errc::kInvalid, .context = "an entry of an index"});
            }
            part_.text() += encode_index_line(**entry) + "\n";
            if (part_.text().size() < kIndexPartBytes) continue;
            const auto flushed = co_await flush();
            if (!flushed) co_return flushed;
        }
        part_.text() += encode_index_end(lines) + "\n";
        co_return co_await flush();
    }

private:
    Task<Result<void>> flush() {
        Member member;
        member.size_bytes = part_.text().size();
        member.object_bytes = member.size_bytes;
        member.mode = 0444;
        const auto added = co_await writer_.add(std::move(member), &part_);
        if (!added) co_return std::unexpected(added.error());
        part_.text().clear();
        co_return Result<void>();
    }

    TapeWriter& writer_;
    TapeEntrySource& source_;
    IndexPart part_;
};

}  // namespace

std::string encode_index_head(const IndexHead& head) {
    std::string line;
    append_field(line, "fopd-index", "1");
    append_field(line, "vsn", head.identity.vsn.text());
    append_field(line, "node", devices::format_id(head.identity.node));
    append_field(line, "generation", std::to_string(head.identity.generation));
    append_field(line, "first", std::to_string(head.first));
    append_field(line, "last", std::to_string(head.last));
    append_field(line, "previous", index_position_text(head.previous));
    return line;
}

Result<IndexHead> parse_index_head(std::string_view line) {
    LineFields fields(line);
    const bool version = fields.take("fopd-index") == "1";
    IndexHead head;
    head.identity.vsn = fields.require(Vsn::parse(fields.take("vsn")));
    head.identity.node = fields.require(parse_node(fields.take("node")));
    const std::uint64_t generation = fields.number("generation");
    head.identity.generation = static_cast<std::uint32_t>(generation);
    head.first = fields.number("first");
    head.last = fields.number("last");
    head.previous = fields.require(parse_index_position(fields.take("previous")));
    const bool right = fields.at_end() && version && generation <= kTapeGenerationMax &&
                       head.first >= 1 && head.last >= head.first - 1 &&
                       head.last < kTapeFileNumberMax && head.previous.file < head.first;
    if (!right) return corrupt("the first line of an index");
    return head;
}

std::string encode_index_line(const TapeEntry& entry) {
    std::string line;
    append_field(line, "file", std::to_string(entry.file.number));
    append_field(line, "block", std::to_string(entry.file.block));
    append_field(line, "id", hex_text(entry.file.file_id, 16));
    append_field(line, "position", std::to_string(entry.position));
    for (const TapeField& field : member_fields(entry.member)) {
        append_field(line, field.name, field.text);
    }
    return line;
}

Result<TapeEntry> parse_index_line(std::string_view line) {
    LineFields fields(line);
    TapeEntry entry;
    entry.file.number = fields.number("file");
    entry.file.block = fields.number("block");
    entry.file.file_id = fields.require(parse_hex(fields.take("id"), 16));
    entry.position = fields.number("position");
    MemberFields member_fields;
    while (auto field = fields.next()) {
        const auto set = member_fields.set(field->first, field->second);
        if (!set) return std::unexpected(set.error());
        if (!*set) return corrupt("a line of an index");
    }
    if (!fields.at_end() || entry.file.number < 1 || entry.file.number > kTapeFileNumberMax) {
        return corrupt("a line of an index");
    }
    auto member = member_fields.finish();
    if (!member) return std::unexpected(member.error());
    entry.member = std::move(*member);
    return entry;
}

std::string encode_index_end(std::uint64_t lines) {
    return "lines=" + std::to_string(lines);
}

Result<std::uint64_t> parse_index_end(std::string_view line) {
    LineFields fields(line);
    const std::uint64_t lines = fields.number("lines");
    if (!fields.at_end()) return corrupt("the last line of an index");
    return lines;
}

Result<std::optional<TapeEntry>> IndexLines::take(std::string_view line) {
    if (complete_) return corrupt("an index goes on behind its end");
    if (!head_) {
        const auto head = parse_index_head(line);
        if (!head) return std::unexpected(head.error());
        head_ = *head;
        return std::nullopt;
    }
    if (line.starts_with("lines=")) {
        const auto lines = parse_index_end(line);
        if (!lines) return std::unexpected(lines.error());
        if (*lines != lines_) return corrupt("lines of an index are missing");
        complete_ = true;
        return std::nullopt;
    }
    auto entry = parse_index_line(line);
    if (!entry) return std::unexpected(entry.error());
    if (entry->file.number < head_->first || entry->file.number > head_->last) {
        return corrupt("an index lists a file that it does not cover");
    }
    ++lines_;
    return std::move(*entry);
}

Task<Result<TapeFile>> write_index(TapeWriter* writer, TapeEntrySource* source,
                                   IndexOptions options) {
    const TapeEnd end = writer->end();
    IndexHead head{.identity = writer->identity(),
                   .first = options.first,
                   .last = end.files,
                   .previous = options.first == 1 ? IndexPosition() : end.index};
    ENSURE(head.first == 1 || head.first == head.previous.file + 1);
    const auto begun = co_await writer->begin_file(TapeFileKind::kIndex, 0, options.now);
    if (!begun) co_return std::unexpected(begun.error());
    IndexWriter index(*writer, *source);
    const auto written = co_await index.run(head);
    if (!written) {
        if (writer->file_open()) writer->abandon();
        co_return std::unexpected(written.error());
    }
    co_return co_await writer->end_file();
}

}  // namespace fopd::store
