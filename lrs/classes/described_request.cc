#include "lrs/classes/described_request.h"

#include "core/whole_number.h"
#include "fop/principal.h"
#include "lrs/classes/rule_reader.h"

namespace fopd::lrs {

namespace {

using Kind = RuleToken::Kind;

bool read_value(RuleReader& reader, RuleToken& value) {
    const RuleToken& word = reader.here();
    if (word.kind != Kind::kWord || word.has_gaps()) {
        return reader.fail(word.column, "expected a single value, found " + word.shown(),
                           "write one value");
    }
    value = word;
    reader.next();
    return true;
}

// One group, or several in braces.
bool read_groups(RuleReader& reader, std::vector<std::string>& groups) {
    std::string unused;
    return reader.read_list(unused, [&reader, &groups] {
        RuleToken value;
        if (!read_value(reader, value)) return false;
        if (!value.text.empty()) groups.push_back(value.text);
        return true;
    });
}

bool read_op(RuleReader& reader, const RuleToken& token, std::uint16_t& number) {
    Test::Values unused;
    std::string unused_text;
    if (!reader.add_value(Key::kOp, token, unused, unused_text)) return false;
    number = fop::find_fop_type(token.text)->number;
    return true;
}

bool read_id(RuleReader& reader, Key key, const RuleToken& token,
             std::array<std::uint64_t, 2>& words) {
    Test::Values values;
    std::string digits;
    if (!reader.add_value(key, token, values, digits)) return false;
    const std::string_view text = digits;
    const std::size_t middle = text.size() / 2;
    // The text is empty for a request without an object.
    words = {core::whole_number(text.substr(0, middle), 16).value_or(0),
             core::whole_number(text.substr(middle), 16).value_or(0)};
    return true;
}

// A single address, as a client has it.
bool check_address(RuleReader& reader, const RuleToken& token) {
    Test::Values values;
    std::string unused;
    if (!reader.add_value(Key::kAddress, token, values, unused)) return false;
    if (values.addresses.empty() || values.addresses[0].low == values.addresses[0].high)
        return true;
    return reader.fail(token.column, token.shown() + " is more than one address", "write one");
}

// A known transport scheme.
bool check_network(RuleReader& reader, const RuleToken& token) {
    Test::Values unused;
    std::string unused_text;
    return reader.add_value(Key::kNetwork, token, unused, unused_text);
}

// Keys whose value is a number, or text with a required form.
bool read_number(RuleReader& reader, Key key, const RuleToken& token,
                 RequestAttributes& attributes) {
    std::array<std::uint64_t, 2> words{};
    switch (key) {
        case Key::kAddress: return check_address(reader, token);
        case Key::kNetwork: return check_network(reader, token);
        case Key::kSize: return reader.read_size(token, attributes.size_bytes);
        case Key::kOp: return read_op(reader, token, attributes.type);
        case Key::kClient:
            if (!read_id(reader, key, token, words)) return false;
            for (std::size_t i = 0; i < attributes.client.size(); ++i) {
                const auto shift = 56 - 8 * (i % 8);
                attributes.client[i] = static_cast<std::byte>(words[i / 8] >> shift);
            }
            return true;
        case Key::kObject:
            if (!read_id(reader, key, token, words)) return false;
            attributes.object = {.high = words[0], .low = words[1]};
            return true;
        default: return true;
    }
}

}  // namespace

std::expected<std::unique_ptr<DescribedRequest>, RuleMistake> DescribedRequest::parse(
    std::string_view text) {
    RuleReader reader(text);
    if (!reader.is_split()) return reader.failed();
    auto described = std::make_unique<DescribedRequest>();
    RequestAttributes& attributes = described->attributes_;
    KeySet seen;
    while (!reader.at_end()) {
        Key key{};
        RuleToken value;
        const std::size_t column = reader.here().column;
        if (!reader.read_key(key)) return reader.failed();
        if (!reader.expect(Kind::kEqual, "write key=value")) return reader.failed();
        if (seen.has(key)) {
            reader.fail(column, std::string(name_of(key)) + " is there twice", "write it once");
            return reader.failed();
        }
        seen.add(key);
        if (key == Key::kGroup) {
            if (!read_groups(reader, described->groups_)) return reader.failed();
            continue;
        }
        if (!read_value(reader, value)) return reader.failed();
        if (!read_number(reader, key, value, attributes)) return reader.failed();
        described->texts_[static_cast<std::size_t>(key)] = value.text;
    }
    described->borrow_texts();
    return described;
}

void DescribedRequest::borrow_texts() {
    const auto text_for = [this](Key key) -> std::string& {
        return texts_[static_cast<std::size_t>(key)];
    };
    attributes_.groups = groups_;
    attributes_.job = text_for(Key::kJob);
    attributes_.pool = text_for(Key::kPool);
    attributes_.principal = text_for(Key::kPrincipal);
    share_ =
        fop::share_name({.kind = fop::AuthKind::kPrincipal, .name = text_for(Key::kPrincipal)});
    attributes_.share = share_;
    attributes_.user = text_for(Key::kUser);
    // A peer address has the form that the transport gives it.
    std::string& peer = text_for(Key::kAddress);
    if (peer.find(':') != std::string::npos) peer = '[' + peer + ']';
    if (const std::string& scheme = text_for(Key::kNetwork); !scheme.empty()) {
        peer.insert(0, scheme + "://");
    }
    peer += ":0";
    attributes_.peer = peer;
}

}  // namespace fopd::lrs
