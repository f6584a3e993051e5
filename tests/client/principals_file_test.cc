// Goal: fopctl changes what it wrote itself, keeps everything else of the file as it is, and
// refuses what it does not understand instead of guessing.
#include "client/principals_file.h"

#include <string>

#include "daemon/access.h"
#include "tests/catch.h"

namespace fopd::client {

namespace {

const std::string kKeyOne(64, '1');
const std::string kKeyTwo(64, '2');

PrincipalsFile parsed(const std::string& text) {
    auto file = PrincipalsFile::parse(text);
    if (!file) FAIL(file.error());
    return *file;
}

PrincipalsFile::Principal principal(const std::string& name, const std::string& key) {
    return {.name = name,
            .key = key,
            .rights = {"read", "write"},
            .groups = {},
            .delegate = false,
            .previous_key_count = 0};
}

// What the daemon, which reads YAML, makes of it: how many principals, or why not.
std::string daemon_says(const std::string& text) {
    const auto access = daemon::make_access({.principals_file = "file",
                                             .principals = text,
                                             .peer_keys = {},
                                             .issuer = fop::IssuerPublic{},
                                             .mode = daemon::AuthSettings::Mode::kRequired});
    if (!access) return access.error().message;
    return std::to_string((*access)->principal_count) + " principals";
}

}  // namespace

TEST_CASE("fopctl principals file: an added principal is a block that the daemon reads",
          "[client]") {
    PrincipalsFile file = parsed("");
    PrincipalsFile::Principal second = principal("o'brien \"x\\y\"", kKeyTwo);
    second.groups = {"staff", "no"};
    second.delegate = true;

    file.add(principal("backup", kKeyOne));
    file.add(second);
    file.revoke_token(std::string(32, 'a'));
    file.revoke_token(std::string(32, '7'));

    REQUIRE(file.text() ==
            "principals:\n"
            "  - name: backup\n"
            "    key: " +
                kKeyOne +
                "\n"
                "    rights: [read, write]\n"
                "  - name: \"o'brien \\\"x\\\\y\\\"\"\n"
                "    key: " +
                kKeyTwo +
                "\n"
                "    rights: [read, write]\n"
                "    groups: [staff, \"no\"]\n"
                "    delegate: true\n"
                "revoked:\n"
                "  tokens:\n"
                "    - 77777777777777777777777777777777\n"
                "    - aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
    REQUIRE(daemon_says(file.text()) == "2 principals");
    REQUIRE(file.find(second.name)->groups == second.groups);
    REQUIRE(file.find(second.name)->delegate);
    REQUIRE(file.is_revoked(std::string(32, '7')));
}

TEST_CASE("fopctl principals file: a change leaves all other text as it is", "[client]") {
    const std::string before =
        "# Ours.\n\nprincipals:\n  # The first.\n  - name: one\n    key: " + kKeyOne +
        "\n    rights: [ read ,write ]  # Enough.\n\n"
        "    previous_keys: []\n";
    const std::string after = "\n# Gone.\nrevoked:  # Some.\n  generation: 3\n";
    PrincipalsFile file = parsed(before + after);

    file.add(principal("two", kKeyTwo));
    const std::string added = file.text();
    file.remove("two");

    REQUIRE(added == before + "  - name: two\n    key: " + kKeyTwo +
                         "\n    rights: [read, write]\n" + after);
    REQUIRE(file.text() == before + after);
    REQUIRE(daemon_says(added) == "2 principals");
}

TEST_CASE("fopctl principals file: the last one to go leaves a list that is empty", "[client]") {
    PrincipalsFile file = parsed("principals:\n  - name: one\n    key: " + kKeyOne + "\n");

    file.remove("one");
    const std::string empty = file.text();
    file.add(principal("two", kKeyTwo));

    REQUIRE(empty == "principals: []\n");
    REQUIRE(daemon_says(empty) == "0 principals");
    REQUIRE(file.text() ==
            "principals:\n  - name: two\n    key: " + kKeyTwo + "\n    rights: [read, write]\n");
}

TEST_CASE("fopctl principals file: revoked tokens on one line, as the manual shows them",
          "[client]") {
    PrincipalsFile file = parsed("principals: []\nrevoked: { tokens: [], generation: 7 }\n");

    file.revoke_token(std::string(32, 'b'));

    REQUIRE(file.text() ==
            "principals: []\nrevoked:\n  tokens:\n    - bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"
            "  generation: 7\n");
}

TEST_CASE("fopctl principals file: an empty list of tokens is added to", "[client]") {
    PrincipalsFile file = parsed("revoked:\n  tokens: []\n  generation: 2\n");

    file.revoke_token(std::string(32, 'b'));

    REQUIRE(file.text() ==
            "revoked:\n  tokens:\n    - bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\n"
            "  generation: 2\n");
    REQUIRE(daemon_says(file.text()) == "0 principals");
}

TEST_CASE("fopctl principals file: another style is refused with its line", "[client]") {
    struct Row {
        const char* text;
        const char* line;
    };
    const Row row = GENERATE(
        Row{"principals: [{name: a}]\n", "line 1: "}, Row{"principals:\n- name: a\n", "line 2: "},
        Row{"principals:\n  - {name: a}\n", "line 2: "},
        Row{"principals:\n  - name: a\n      key: x\n", "line 3: "},
        Row{"principals:\n  - name: 'a'\n", "line 2: "},
        Row{"principals:\n  - name: a b\n", "line 2: "},
        Row{"principals:\n  - name: &x a\n", "line 2: "},
        Row{"principals:\n  - key: x\n", "line 2: "},
        Row{"principals:\n  - name: a\n    rights:\n      - read\n", "line 3: "},
        Row{"principals:\n  - name: a\n  - name: a\n", "line 3: "},
        Row{"principals:\n  - name: a\n    colour: red\n", "line 3: "},
        Row{"principals:\n  - name: a\n\tkey: x\n", "line 3: "},
        Row{"principals:\nprincipals:\n", "line 2: "}, Row{"revoked: {}\n", "line 1: "},
        Row{"revoked: { tokens: [], generation: x }\n", "line 1: "},
        Row{"revoked:\n  tokens: [a]\n", "line 2: "},
        Row{"revoked:\n  tokens:\n    - short\n", "line 3: "}, Row{"other: 1\n", "line 1: "},
        Row{"--- \n", "line 1: "});

    const auto file = PrincipalsFile::parse(row.text);

    CAPTURE(row.text);
    REQUIRE_FALSE(file.has_value());
    REQUIRE(file.error().starts_with(row.line));
}

}  // namespace fopd::client
