// Goal: whatever is wrong with a file is said exactly: where, what, and what would be right.
// Method: a table of bad files against the example schema, each with all the lines it must give.
// The file is long because the table is: a row is a file and its lines, and has no code.
#include <string>
#include <string_view>
#include <vector>

#include "config/schema.h"
#include "tests/catch.h"
#include "tests/config/example_schema.h"

using namespace fopd::config;
using namespace std::string_view_literals;

namespace {

struct BadFile {
    const char* name;
    std::string_view text;
    std::vector<std::string> expected;
};

// clang-format off
std::vector<BadFile> bad_files() {
    return {
        {"unknown key, near",
         "node:\n"
         "  nmae: x\n",
         {R"(f.yaml:2:3: node.nmae: unknown key, did you mean "name"?)"}},
        {"unknown key, dash for underscore",
         "node: {data-dir: /x}\n",
         {R"(f.yaml:1:8: node.data-dir: unknown key, did you mean "data_dir"?)"}},
        {"unknown key, far",
         "node:\n"
         "  colour: red\n",
         {"f.yaml:2:3: node.colour: unknown key, known here: name, data_dir, drain_timeout, motto, verbose, metrics, key_file"}},
        {"unknown section, near",
         "limit: {}\n",
         {R"(f.yaml:1:1: limit: unknown key, did you mean "limits"?)"}},
        {"unknown section, far",
         "everything: 1\n",
         {"f.yaml:1:1: everything: unknown key, known here: node, limits, storage"}},
        {"unknown key in a nested map",
         "limits:\n"
         "  tape:\n"
         "    ordr: none\n",
         {R"(f.yaml:3:5: limits.tape.ordr: unknown key, did you mean "order"?)"}},
        {"unknown key in an item",
         "storage:\n"
         "  pools:\n"
         "    - {name: a, qouta: 1G}\n",
         {R"(f.yaml:3:17: storage.pools[0].qouta: unknown key, did you mean "quota"?)"}},
        {"unknown key of strange characters",
         "node:\n"
         R"(  "na\e[31m me": x)" "\n",
         {R"(f.yaml:2:3: node."na\x1b[31m me": unknown key, known here: name, data_dir, drain_timeout, motto, verbose, metrics, key_file)"}},
        {"key in upper case",
         "node: {NAME: x}\n",
         {R"(f.yaml:1:8: node.NAME: unknown key, did you mean "name"?)"}},
        {"double key",
         "node:\n"
         "  name: a\n"
         "  name: b\n",
         {"f.yaml:3:3: node.name: given already in line 2, keep one of the two"}},
        {"double section",
         "node: {name: a}\n"
         "limits: {}\n"
         "node: {name: b}\n",
         {"f.yaml:3:1: node: given already in line 1, keep one of the two"}},
        {"double key in an item",
         "storage:\n"
         "  pools:\n"
         "    - name: a\n"
         "      quota: 1\n"
         "      quota: 2\n",
         {"f.yaml:5:7: storage.pools[0].quota: given already in line 4, keep one of the two"}},
        {"missing key in an item",
         "storage:\n"
         "  pools:\n"
         "    - quota: 1G\n",
         {"f.yaml:3:7: storage.pools[0].name: missing, write text of 1 to 1024 letters, digits, '.', '_' or '-'"}},
        {"missing key in an empty item",
         "storage:\n"
         "  pools:\n"
         "    - {name: a}\n"
         "    - {}\n",
         {"f.yaml:4:7: storage.pools[1].name: missing, write text of 1 to 1024 letters, digits, '.', '_' or '-'"}},
        {"empty item",
         "storage:\n"
         "  pools:\n"
         "    - {name: a}\n"
         "    -\n"
         "    # nothing\n"
         "    - {name: b}\n",
         {"f.yaml:4:5: storage.pools[1].name: missing, write text of 1 to 1024 letters, digits, '.', '_' or '-'"}},
        {"empty last item",
         "storage:\n"
         "  pools:\n"
         "    -\n",
         {"f.yaml:3:5: storage.pools[0].name: missing, write text of 1 to 1024 letters, digits, '.', '_' or '-'"}},
        {"null item",
         "storage: {pools: [~]}\n",
         {"f.yaml:1:19: storage.pools[0].name: missing, write text of 1 to 1024 letters, digits, '.', '_' or '-'"}},
        {"empty name of an item",
         "storage:\n"
         "  pools:\n"
         R"(    - name: "")" "\n",
         {R"(f.yaml:3:13: storage.pools[0].name: "" is empty, write text of 1 to 1024 letters, digits, '.', '_' or '-')"}},
        {"two items of one name",
         "storage:\n"
         "  pools:\n"
         "    - name: a\n"
         "    - name: b\n"
         "    - quota: 5\n"
         "      name: a\n",
         {"f.yaml:6:13: storage.pools[2].name: the same as storage.pools[0].name, give each its own name"}},
        {"too many items",
         "storage:\n"
         "  pools: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}, {name: f}, {name: g}, {name: h}, {name: i}]\n",
         {"f.yaml:2:10: storage.pools: 9 items, write a list of at most 8, each a map of name, quota, age_max, family"}},
        {"too few items, one of them wrong",
         "storage:\n"
         "  weights: [1, x]\n",
         {"f.yaml:2:12: storage.weights: 2 items, write a list of 3, each a whole number from 0 to 100",
          R"(f.yaml:2:16: storage.weights[1]: "x" is not a whole number, write a whole number from 0 to 100)"}},
        {"empty list where one is needed",
         "storage:\n"
         "  listen: []\n",
         {"f.yaml:2:11: storage.listen: 0 items, write a list of 1 to 4, each text of 1 to 1024 characters"}},
        {"double in a list without doubles",
         "storage:\n"
         R"(  peers: ["a:1", "b:1", "a:1"])" "\n",
         {"f.yaml:2:25: storage.peers[2]: the same as storage.peers[0], list each only once"}},
        {"value for a list",
         "storage:\n"
         "  listen: tcp://0.0.0.0:1\n",
         {"f.yaml:2:11: storage.listen: a single value, write a list of 1 to 4, each text of 1 to 1024 characters"}},
        {"map for a list",
         "storage:\n"
         "  pools: {name: a}\n",
         {"f.yaml:2:10: storage.pools: a map, write a list of at most 8, each a map of name, quota, age_max, family"}},
        {"nothing for a list",
         "storage:\n"
         "  pools:\n",
         {"f.yaml:2:3: storage.pools: no value, write a list of at most 8, each a map of name, quota, age_max, family"}},
        {"list for a map",
         "limits:\n"
         "  tape: [a]\n",
         {"f.yaml:2:9: limits.tape: a list, write a map of order, wait_min, wait_max"}},
        {"value for a section",
         "node: x\n",
         {"f.yaml:1:7: node: a single value, write a map of name, data_dir, drain_timeout, motto, verbose, metrics, key_file"}},
        {"list for a section",
         "node:\n"
         "  - name: x\n",
         {"f.yaml:2:3: node: a list, write a map of name, data_dir, drain_timeout, motto, verbose, metrics, key_file"}},
        {"list for a value",
         "node:\n"
         "  name: [a]\n",
         {"f.yaml:2:9: node.name: a list, write text of 1 to 16 letters, digits, '.', '_' or '-'"}},
        {"map for a value",
         "node:\n"
         "  name: {a: b}\n",
         {"f.yaml:2:9: node.name: a map, write text of 1 to 16 letters, digits, '.', '_' or '-'"}},
        {"nothing for a value",
         "node:\n"
         "  name:\n"
         "  verbose: true\n",
         {"f.yaml:2:3: node.name: no value, write text of 1 to 16 letters, digits, '.', '_' or '-'"}},
        {"null for a value",
         "node:\n"
         "  name: ~\n",
         {"f.yaml:2:3: node.name: no value, write text of 1 to 16 letters, digits, '.', '_' or '-'"}},
        {"null word for a value",
         "node: {name: null}\n",
         {"f.yaml:1:8: node.name: no value, write text of 1 to 16 letters, digits, '.', '_' or '-'"}},
        {"list at the top",
         "- node\n",
         {"f.yaml:1:1: file: a list, write a map of node, limits, storage"}},
        {"word at the top",
         "hello\n",
         {"f.yaml:1:1: file: a single value, write a map of node, limits, storage"}},
        {"text too long",
         "node: {name: abcdefghijklmnopq}\n",
         {R"(f.yaml:1:14: node.name: "abcdefghijklmnopq" is too long, write text of 1 to 16 letters, digits, '.', '_' or '-')"}},
        {"text too long in characters, not bytes",
         "node: {motto: \303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244}\n",
         {"f.yaml:1:15: node.motto: \"\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244\303\244...\" is too long, write text of at most 40 characters"}},
        {"empty text",
         "node: {name: ''}\n",
         {R"(f.yaml:1:14: node.name: "" is empty, write text of 1 to 16 letters, digits, '.', '_' or '-')"}},
        {"text with a forbidden character",
         R"(node: {name: "a b"})" "\n",
         {R"(f.yaml:1:14: node.name: "a b" has a character that is not allowed, write text of 1 to 16 letters, digits, '.', '_' or '-')"}},
        {"text with an escaped control character",
         R"(node: {motto: "a\x07b"})" "\n",
         {R"(f.yaml:1:15: node.motto: "a\x07b" has a control or invisible character, write text of at most 40 characters)"}},
        {"text with an escaped NUL",
         R"(node: {motto: "a\0b"})" "\n",
         {R"(f.yaml:1:15: node.motto: "a\x00b" has a control or invisible character, write text of at most 40 characters)"}},
        {"text with an escaped newline",
         R"(node: {motto: "a\nb"})" "\n",
         {R"(f.yaml:1:15: node.motto: "a\x0ab" has a control or invisible character, write text of at most 40 characters)"}},
        {"text in a block",
         "node:\n"
         "  motto: |\n"
         "    a\n"
         "    b\n",
         {R"(f.yaml:2:10: node.motto: "a\x0ab\x0a" has a control or invisible character, write text of at most 40 characters)"}},
        {"relative path",
         "node: {data_dir: var/lib}\n",
         {R"(f.yaml:1:18: node.data_dir: "var/lib" is not absolute, write an absolute path such as /var/lib/fopd)"}},
        {"path from home",
         "node: {data_dir: ~/fopd}\n",
         {R"(f.yaml:1:18: node.data_dir: "~/fopd" is not absolute, write the home directory out)"}},
        {"empty path",
         R"(node: {data_dir: ""})" "\n",
         {R"(f.yaml:1:18: node.data_dir: "" is empty, write an absolute path such as /var/lib/fopd)"}},
        {"path with a control character",
         R"(node: {data_dir: "/a\x1b[2J"})" "\n",
         {R"(f.yaml:1:18: node.data_dir: "/a\x1b[2J" has a control or invisible character, write an absolute path such as /var/lib/fopd)"}},
        {"yes for true",
         "node: {verbose: yes}\n",
         {R"(f.yaml:1:17: node.verbose: "yes" is neither true nor false, write true or false)"}},
        {"Off for false",
         "node: {verbose: Off}\n",
         {R"(f.yaml:1:17: node.verbose: "Off" is neither true nor false, write false)"}},
        {"True for true",
         "node: {verbose: True}\n",
         {R"(f.yaml:1:17: node.verbose: "True" is neither true nor false, write true or false)"}},
        {"1 for true",
         "node: {verbose: 1}\n",
         {R"(f.yaml:1:17: node.verbose: "1" is neither true nor false, write true or false)"}},
        {"quoted true",
         R"(node: {verbose: "true"})" "\n",
         {R"(f.yaml:1:17: node.verbose: "true" is text, write true or false, without quotes)"}},
        {"word for a boolean",
         "node: {verbose: maybe}\n",
         {R"(f.yaml:1:17: node.verbose: "maybe" is neither true nor false, write true or false)"}},
        {"duration without a unit",
         "node: {drain_timeout: 30}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "30" has no unit, write 30s, 30ms or another of ns, us, ms, s, min, h or d)"}},
        {"duration in m",
         "node: {drain_timeout: 5m}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "5m" is ambiguous, write 5min or 5ms)"}},
        {"duration with an unknown unit",
         "node: {drain_timeout: 5sec}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "5sec" has the unknown unit "sec", units are ns, us, ms, s, min, h or d)"}},
        {"duration in upper case",
         "node: {drain_timeout: 5S}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "5S" has the unknown unit "S", did you mean "s"? units are ns, us, ms, s, min, h or d)"}},
        {"duration with a space",
         "node: {drain_timeout: 5 s}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "5 s" has a space in it, write number and unit together, as one word)"}},
        {"duration with a fraction",
         "node: {drain_timeout: 1.5h}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "1.5h" is not a whole number, use a smaller unit instead of a fraction)"}},
        {"negative duration",
         "node: {drain_timeout: -5s}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "-5s" is negative, write a duration such as 30s or 250ms, from 1s to 1h)"}},
        {"duration of two parts",
         "node: {drain_timeout: 1h30min}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "1h30min" has the unknown unit "h30min", units are ns, us, ms, s, min, h or d)"}},
        {"duration too short",
         "node: {drain_timeout: 10ms}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "10ms" is too short, write a duration such as 30s or 250ms, from 1s to 1h)"}},
        {"duration too long",
         "node: {drain_timeout: 2h}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "2h" is too long, write a duration such as 30s or 250ms, from 1s to 1h)"}},
        {"duration of nothing",
         R"(node: {drain_timeout: ""})" "\n",
         {R"(f.yaml:1:23: node.drain_timeout: "" is empty, write a duration such as 30s or 250ms, from 1s to 1h)"}},
        {"duration beyond 64 bits",
         "node: {drain_timeout: 9999999999999999999999s}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "9999999999999999999999s" is too large, write a duration such as 30s or 250ms, from 1s to 1h)"}},
        {"duration beyond 292 years",
         "limits: {tape: {wait_max: 106752d}}\n",
         {R"(f.yaml:1:27: limits.tape.wait_max: "106752d" is too large, write a duration such as 30s or 250ms)"}},
        {"word for a duration",
         "node: {drain_timeout: forever}\n",
         {R"(f.yaml:1:23: node.drain_timeout: "forever" does not start with a digit, write a duration such as 30s or 250ms, from 1s to 1h)"}},
        {"size with an unknown unit",
         "limits: {buffers: 64XB}\n",
         {R"(f.yaml:1:19: limits.buffers: "64XB" has the unknown unit "XB", units are B, k, M, G, T, P, KiB to PiB (1024) or kB to PB (1000))"}},
        {"size in lower case",
         "limits: {buffers: 64m}\n",
         {R"(f.yaml:1:19: limits.buffers: "64m" has the unknown unit "m", did you mean "M"? units are B, k, M, G, T, P, KiB to PiB (1024) or kB to PB (1000))"}},
        {"size with a fraction",
         "limits: {buffers: 1.5GiB}\n",
         {R"(f.yaml:1:19: limits.buffers: "1.5GiB" is not a whole number, use a smaller unit instead of a fraction)"}},
        {"size too small",
         "limits: {buffers: 4k}\n",
         {R"(f.yaml:1:19: limits.buffers: "4k" is too small, write a size such as 64MiB or 4k, from 1MiB to 1TiB)"}},
        {"size too large",
         "limits: {buffers: 2TiB}\n",
         {R"(f.yaml:1:19: limits.buffers: "2TiB" is too large, write a size such as 64MiB or 4k, from 1MiB to 1TiB)"}},
        {"size not a multiple",
         "limits: {block: 1000}\n",
         {R"(f.yaml:1:17: limits.block: "1000" is not a multiple, write a size such as 64MiB or 4k, at least 512, a multiple of 512)"}},
        {"size beyond 64 bits",
         "limits: {buffers: 16384PiB}\n",
         {R"(f.yaml:1:19: limits.buffers: "16384PiB" is too large, write a size such as 64MiB or 4k, from 1MiB to 1TiB)"}},
        {"negative size",
         "limits: {buffers: -1}\n",
         {R"(f.yaml:1:19: limits.buffers: "-1" is negative, write a size such as 64MiB or 4k, from 1MiB to 1TiB)"}},
        {"word for a number",
         "limits: {foms_max: many}\n",
         {R"(f.yaml:1:20: limits.foms_max: "many" is not a whole number, write a whole number from 1 to 1000000)"}},
        {"number too small",
         "limits: {foms_max: 0}\n",
         {R"(f.yaml:1:20: limits.foms_max: "0" is too small, write a whole number from 1 to 1000000)"}},
        {"number too large",
         "limits: {foms_max: 1000001}\n",
         {R"(f.yaml:1:20: limits.foms_max: "1000001" is too large, write a whole number from 1 to 1000000)"}},
        {"number beyond 64 bits",
         "limits: {foms_max: 99999999999999999999}\n",
         {R"(f.yaml:1:20: limits.foms_max: "99999999999999999999" is too large, write a whole number from 1 to 1000000)"}},
        {"negative number below its range",
         "limits: {nice: -21}\n",
         {R"(f.yaml:1:16: limits.nice: "-21" is too small, write a whole number from -20 to 19)"}},
        {"octal number",
         "limits: {foms_max: 010}\n",
         {R"(f.yaml:1:20: limits.foms_max: "010" starts with 0, drop the leading zeros)"}},
        {"hexadecimal number",
         "limits: {foms_max: 0x10}\n",
         {R"(f.yaml:1:20: limits.foms_max: "0x10" is not a whole number, write a whole number from 1 to 1000000)"}},
        {"number with a fraction",
         "limits: {foms_max: 1.0}\n",
         {R"(f.yaml:1:20: limits.foms_max: "1.0" is not a whole number, write a whole number from 1 to 1000000)"}},
        {"number with a plus",
         "limits: {foms_max: +1}\n",
         {R"(f.yaml:1:20: limits.foms_max: "+1" is not a whole number, write a whole number from 1 to 1000000)"}},
        {"number in underscores",
         "limits: {foms_max: 1_000}\n",
         {R"(f.yaml:1:20: limits.foms_max: "1_000" is not a whole number, write a whole number from 1 to 1000000)"}},
        {"quoted number",
         R"(limits: {foms_max: "5"})" "\n",
         {R"(f.yaml:1:20: limits.foms_max: "5" is text, write a whole number from 1 to 1000000, without quotes)"}},
        {"number or auto",
         "limits: {cores: all}\n",
         {R"(f.yaml:1:17: limits.cores: "all" is not a whole number, write a whole number from 1 to 64, or auto)"}},
        {"number or auto too large",
         "limits: {cores: 65}\n",
         {R"(f.yaml:1:17: limits.cores: "65" is too large, write a whole number from 1 to 64, or auto)"}},
        {"list for number or auto",
         "limits: {cores: [0, 1]}\n",
         {"f.yaml:1:17: limits.cores: a list, write a whole number from 1 to 64, or auto"}},
        {"relative path or none",
         "node: {key_file: peer.key}\n",
         {R"(f.yaml:1:18: node.key_file: "peer.key" is not absolute, write an absolute path such as /var/lib/fopd, or none)"}},
        {"rate without a unit",
         "limits: {rate: 200}\n",
         {R"(f.yaml:1:16: limits.rate: "200" does not end with /s, write a rate such as 200/s or 50MB/s)"}},
        {"rate of what",
         "limits: {rate: 50M/s}\n",
         {R"(f.yaml:1:16: limits.rate: "50M/s" does not say of what, write bytes as 50MB/s and operations as 200/s)"}},
        {"rate in an unknown unit",
         "limits: {rate: 50XB/s}\n",
         {R"(f.yaml:1:16: limits.rate: "50XB" has the unknown unit "XB", units are /s, with a size in front for bytes)"}},
        {"rate per minute",
         "limits: {rate: 5/min}\n",
         {R"(f.yaml:1:16: limits.rate: "5/min" does not end with /s, write a rate such as 200/s or 50MB/s)"}},
        {"choice, near",
         "limits: {mode: require}\n",
         {R"(f.yaml:1:16: limits.mode: "require" is not allowed here, did you mean "required"? write required, optional or none)"}},
        {"choice, far",
         "limits: {mode: perhaps}\n",
         {R"(f.yaml:1:16: limits.mode: "perhaps" is not allowed here, write required, optional or none)"}},
        {"choice in upper case",
         "limits: {mode: NONE}\n",
         {R"(f.yaml:1:16: limits.mode: "NONE" is not allowed here, did you mean "none"? write required, optional or none)"}},
        {"empty choice",
         "limits: {mode: ''}\n",
         {R"(f.yaml:1:16: limits.mode: "" is not allowed here, write required, optional or none)"}},
        {"address without a port",
         "node: {metrics: localhost}\n",
         {R"(f.yaml:1:17: node.metrics: "localhost" has no port, write HOST:PORT such as 127.0.0.1:9420, [::1]:9420 or node-a:9420)"}},
        {"address without a host",
         R"(node: {metrics: ":9420"})" "\n",
         {R"(f.yaml:1:17: node.metrics: ":9420" has no host, write 0.0.0.0 or [::] for every interface)"}},
        {"address of every interface",
         R"(node: {metrics: "*:9420"})" "\n",
         {R"(f.yaml:1:17: node.metrics: "*:9420" has no host, write 0.0.0.0 or [::] for every interface)"}},
        {"address with a large port",
         R"(node: {metrics: "127.0.0.1:65536"})" "\n",
         {R"(f.yaml:1:17: node.metrics: port "65536" is too large, write a port from 0 to 65535)"}},
        {"address with a word as port",
         R"(node: {metrics: "127.0.0.1:http"})" "\n",
         {R"(f.yaml:1:17: node.metrics: port "http" is not a whole number, write a port from 0 to 65535)"}},
        {"address with five numbers",
         R"(node: {metrics: "1.2.3.4.5:1"})" "\n",
         {R"(f.yaml:1:17: node.metrics: "1.2.3.4.5" is not an IPv4 address, write HOST:PORT such as 127.0.0.1:9420, [::1]:9420 or node-a:9420)"}},
        {"address with large numbers",
         R"(node: {metrics: "1.2.3.256:1"})" "\n",
         {R"(f.yaml:1:17: node.metrics: "1.2.3.256" is not an IPv4 address, write HOST:PORT such as 127.0.0.1:9420, [::1]:9420 or node-a:9420)"}},
        {"IPv6 address without brackets",
         R"(node: {metrics: "::1:9420"})" "\n",
         {R"(f.yaml:1:17: node.metrics: "::1:9420" has more than one ':', write an IPv6 address in brackets, such as [::1]:9420)"}},
        {"IPv6 address without a port",
         R"(node: {metrics: "[::1]"})" "\n",
         {R"(f.yaml:1:17: node.metrics: "[::1]" has no port, write HOST:PORT such as 127.0.0.1:9420, [::1]:9420 or node-a:9420)"}},
        {"wrong IPv6 address",
         R"(node: {metrics: "[::g]:1"})" "\n",
         {R"(f.yaml:1:17: node.metrics: "[::g]" is not an IPv6 address, write HOST:PORT such as 127.0.0.1:9420, [::1]:9420 or node-a:9420)"}},
        {"wrong host name",
         R"(node: {metrics: "-a:1"})" "\n",
         {R"(f.yaml:1:17: node.metrics: "-a" is not a host name, write HOST:PORT such as 127.0.0.1:9420, [::1]:9420 or node-a:9420)"}},
        {"URL for an address",
         R"(node: {metrics: "tcp://a:1"})" "\n",
         {R"(f.yaml:1:17: node.metrics: "tcp://a:1" is a URL, write HOST:PORT such as 127.0.0.1:9420, [::1]:9420 or node-a:9420)"}},
        {"check of a nested map",
         "limits:\n"
         "  tape:\n"
         "    wait_max: 2s\n"
         "    wait_min: 3s\n",
         {"f.yaml:4:15: limits.tape.wait_min: longer than wait_max, write at most 2s"}},
        {"check against a default",
         "limits: {tape: {wait_max: 1ms}}\n",
         {"f.yaml:1:16: limits.tape.wait_min: longer than wait_max, write at most 1ms"}},
        {"check of an item",
         "storage:\n"
         "  pools:\n"
         "    - {name: a}\n"
         "    - {name: b, family: paper}\n",
         {"f.yaml:4:25: storage.pools[1].family: paper burns, write disk or tape"}},
        {"check waits for right keys",
         "limits: {tape: {wait_max: 2s, wait_min: 3s, order: x}}\n",
         {R"(f.yaml:1:52: limits.tape.order: "x" is not allowed here, write required, optional or none)"}},
        {"many at once, in order",
         "storage:\n"
         "  listen: [a, '']\n"
         "  pools: [{quota: -1}]\n"
         "node:\n"
         R"(  name: "a b")" "\n"
         "  verbose: yes\n"
         "  drain_timeout: 5\n"
         "  nme: x\n"
         "limits: {mode: nne, buffers: 1, cores: 0}\n"
         "whatever: 1\n",
         {R"(f.yaml:2:15: storage.listen[1]: "" is empty, write text of 1 to 1024 characters)",
          "f.yaml:3:11: storage.pools[0].name: missing, write text of 1 to 1024 letters, digits, '.', '_' or '-'",
          R"(f.yaml:3:19: storage.pools[0].quota: "-1" is negative, write a size such as 64MiB or 4k)",
          R"(f.yaml:5:9: node.name: "a b" has a character that is not allowed, write text of 1 to 16 letters, digits, '.', '_' or '-')",
          R"(f.yaml:6:12: node.verbose: "yes" is neither true nor false, write true or false)",
          R"(f.yaml:7:18: node.drain_timeout: "5" has no unit, write 5s, 5ms or another of ns, us, ms, s, min, h or d)",
          R"(f.yaml:8:3: node.nme: unknown key, did you mean "name"?)",
          R"(f.yaml:9:16: limits.mode: "nne" is not allowed here, did you mean "none"? write required, optional or none)",
          R"(f.yaml:9:30: limits.buffers: "1" is too small, write a size such as 64MiB or 4k, from 1MiB to 1TiB)",
          R"(f.yaml:9:40: limits.cores: "0" is too small, write a whole number from 1 to 64, or auto)",
          "f.yaml:10:1: whatever: unknown key, known here: node, limits, storage"}},
        {"a column after wide characters",
         "node: {motto: \303\244\303\266\303\274, verbose: on}\n",
         {R"(f.yaml:1:29: node.verbose: "on" is neither true nor false, write true or false)"}},
        {"carriage returns",
         "node:\r\n"
         "  verbose: on\r\n"
         "  name: \"\"\r\n",
         {R"(f.yaml:2:12: node.verbose: "on" is neither true nor false, write true or false)",
          R"(f.yaml:3:9: node.name: "" is empty, write text of 1 to 16 letters, digits, '.', '_' or '-')"}},
        {"anchor",
         "node: &x {name: a}\n",
         {"f.yaml:1:7: node: an anchor, write the value out where it is needed"}},
        {"anchor and alias",
         "node:\n"
         "  name: &n a\n"
         "  motto: *n\n",
         {"f.yaml:2:9: node.name: an anchor, write the value out where it is needed",
          "f.yaml:3:10: node.motto: an alias, write the value out where it is needed"}},
        {"alias of nothing",
         "node: *x\n",
         {"f.yaml:1:7: yaml: an alias, quote text that starts with *"}},
        {"alias in a list",
         "storage:\n"
         "  weights: [&a 1, *a, 2]\n",
         {"f.yaml:2:13: storage.weights[0]: an anchor, write the value out where it is needed",
          "f.yaml:2:19: storage.weights[1]: an alias, write the value out where it is needed"}},
        {"alias as key",
         "node: &x {name: a}\n"
         "*x : 1\n",
         {"f.yaml:1:7: node: an anchor, write the value out where it is needed",
          "f.yaml:2:1: file: an alias, write the value out where it is needed"}},
        {"anchor on nothing",
         "node:\n"
         "  name: &a\n",
         {"f.yaml:2:9: node.name: an anchor, write the value out where it is needed"}},
        {"anchor under a key of strange characters",
         R"("na\e[2J": &a x)" "\n",
         {R"(f.yaml:1:1: "na\x1b[2J": unknown key, known here: node, limits, storage)",
          R"(f.yaml:1:12: "na\x1b[2J": an anchor, write the value out where it is needed)"}},
        {"merge key",
         "node:\n"
         "  <<: {name: a}\n",
         {"f.yaml:2:3: node.<<: a merge key, write the keys out where they are needed"}},
        {"tag",
         "node:\n"
         "  name: !!str a\n",
         {"f.yaml:2:9: node.name: a tag, leave it out: every key knows its type"}},
        {"custom tag",
         "node: !include other.yaml\n",
         {"f.yaml:1:7: node: a tag, leave it out: every key knows its type"}},
        {"tag on nothing",
         "node:\n"
         "  motto: !!str\n",
         {"f.yaml:2:10: node.motto: a tag, leave it out: every key knows its type"}},
        {"non-specific tag",
         "node:\n"
         "  motto: ! a\n",
         {"f.yaml:2:10: node.motto: a tag, leave it out: every key knows its type"}},
        {"verbatim tag",
         "node:\n"
         "  motto: !<?> a\n",
         {"f.yaml:2:10: node.motto: a tag, leave it out: every key knows its type"}},
        {"tag without a suffix",
         "node: {motto: !a! b}\n",
         {"f.yaml:1:18: yaml: a tag, quote text that starts with !"}},
        {"two documents",
         "node: {}\n"
         "---\n"
         "limits: {}\n",
         {"f.yaml:2:1: yaml: text after the end of the document, a configuration is one document: check indentation and '---'"}},
        {"text behind the document",
         "{node: {}}\n"
         "limits\n",
         {"f.yaml:2:1: yaml: text after the end of the document, a configuration is one document: check indentation and '---'"}},
        {"only a comma",
         ",\n",
         {"f.yaml:1:1: yaml: text after the end of the document, a configuration is one document: check indentation and '---'"}},
        {"text after the end",
         "node: {}\n"
         "...\n"
         "limits: {}\n",
         {"f.yaml:3:1: yaml: text after the end of the document, a configuration is one document: check indentation and '---'"}},
        {"directive",
         "%YAML 1.1\n"
         "---\n"
         "node: {}\n",
         {"f.yaml:1:1: yaml: a YAML directive, leave out lines that start with %"}},
        {"list as key",
         "[a]: b\n",
         {"f.yaml:1:1: file: a list or map as key, write a word, a colon and the value"}},
        {"map as key",
         "? {a: b}\n"
         ": c\n",
         {"f.yaml:1:3: file: a list or map as key, write a word, a colon and the value"}},
        {"no key",
         ": b\n",
         {"f.yaml:1:1: file: a value without a key, write a word, a colon and the value"}},
        {"null as key",
         "~: b\n",
         {"f.yaml:1:1: file: a value without a key, write a word, a colon and the value"}},
        {"tab for indentation",
         "node:\n"
         "\tname: a\n",
         {"f.yaml:2:1: yaml: a tab, indent and separate with spaces"}},
        {"tab in a comment",
         "node: {} #\ta\n",
         {"f.yaml:1:11: yaml: a tab, indent and separate with spaces"}},
        {"NUL byte",
         "node: {}\000\n"sv,
         {"f.yaml:1:9: yaml: a NUL byte, write plain text"}},
        {"control character",
         "# a\007\n",
         {"f.yaml:1:4: yaml: a control or invisible character, write it as an escape in double quotes or leave it out"}},
        {"end of file character",
         "node: {}\n"
         "\004\n"
         "limit: {}\n",
         {"f.yaml:2:1: yaml: a control or invisible character, write it as an escape in double quotes or leave it out"}},
        {"C1 control character",
         "# a\302\205\n",
         {"f.yaml:1:4: yaml: a control or invisible character, write it as an escape in double quotes or leave it out"}},
        {"right-to-left override",
         "# \342\200\256gnp\n",
         {"f.yaml:1:3: yaml: a control or invisible character, write it as an escape in double quotes or leave it out"}},
        {"lone carriage return",
         "node: {}\rlimits: {}\n",
         {"f.yaml:1:9: yaml: a carriage return without a newline, end lines with a newline"}},
        {"tab, NUL and control character",
         "\t\000\001\t\n"sv,
         {"f.yaml:1:1: yaml: a tab, indent and separate with spaces",
          "f.yaml:1:2: yaml: a NUL byte, write plain text",
          "f.yaml:1:3: yaml: a control or invisible character, write it as an escape in double quotes or leave it out"}},
        {"unclosed bracket",
         "storage:\n"
         "  weights: [1, 2\n"
         "node: {}\n",
         {"f.yaml:2:16: storage.weights[1]: text that goes on in the next line, check that line, or put quotes around the text",
          "f.yaml:3:5: yaml: a list in brackets does not go on here, separate its items with commas and close it with ]"}},
        {"unclosed brace",
         "node: {name: a\n",
         {"f.yaml:2:1: yaml: a map in braces does not go on here, separate its keys with commas and close it with }"}},
        {"closed too often",
         "storage: {weights: [1, 2, 3]]}\n",
         {"f.yaml:1:29: yaml: a ] or } that closes nothing, remove or match it"}},
        {"wrong closing",
         "storage: {weights: [1, 2, 3}}\n",
         {"f.yaml:1:28: yaml: a ] or } that closes nothing, remove or match it"}},
        {"unclosed quote",
         "node:\n"
         R"(  name: "a)" "\n",
         {"f.yaml:2:9: node.name: a quote that is not closed, close it"}},
        {"unclosed single quote",
         "node:\n"
         "  name: 'a\n",
         {"f.yaml:2:9: node.name: a quote that is not closed, close it"}},
        {"bad indentation",
         "node:\n"
         "  name: a\n"
         "   motto: b\n",
         {"f.yaml:2:9: node.name: text that goes on in the next line, check that line, or put quotes around the text",
          "f.yaml:3:9: yaml: a ': ' where no key can be, indent keys alike, one on a line, and quote text that has ': ' in it"}},
        {"less indentation",
         "node:\n"
         "    name: a\n"
         "  motto: b\n",
         {"f.yaml:3:3: yaml: the map does not go on here, indent its keys alike, write 'key: value' with a space, and quote text with ': '"}},
        {"two keys on a line",
         "node: name: a\n",
         {"f.yaml:1:11: yaml: a ': ' where no key can be, indent keys alike, one on a line, and quote text that has ': ' in it"}},
        {"text with colon",
         "node:\n"
         "  motto: a: b\n",
         {"f.yaml:2:11: yaml: a ': ' where no key can be, indent keys alike, one on a line, and quote text that has ': ' in it"}},
        {"missing space",
         "node:\n"
         "  name:a\n"
         "  motto: b\n",
         {"f.yaml:3:8: yaml: a ': ' where no key can be, indent keys alike, one on a line, and quote text that has ': ' in it"}},
        {"missing comma",
         "node: {name: a motto: b}\n",
         {"f.yaml:1:21: yaml: a map in braces does not go on here, separate its keys with commas and close it with }"}},
        {"list item beside key",
         "storage: - a\n",
         {"f.yaml:1:10: yaml: a list item where none can be, start the list on a line of its own, outside of [] and {}"}},
        {"item in a map",
         "node:\n"
         "  name: a\n"
         "  - b\n",
         {"f.yaml:3:3: yaml: the map does not go on here, indent its keys alike, write 'key: value' with a space, and quote text with ': '"}},
        {"key in a list",
         "storage:\n"
         "  listen:\n"
         "    - a\n"
         "    b: c\n",
         {"f.yaml:4:5: yaml: the map does not go on here, indent its keys alike, write 'key: value' with a space, and quote text with ': '"}},
        {"reserved character",
         "node: {motto: @a}\n",
         {"f.yaml:1:15: yaml: a character that starts nothing, quote text that starts with one of @ ` % , ? : -"}},
        {"backtick",
         "node:\n"
         "  motto: `a`\n",
         {"f.yaml:2:10: yaml: a character that starts nothing, quote text that starts with one of @ ` % , ? : -"}},
        {"unknown escape",
         R"(node: {motto: "\q"})" "\n",
         {R"(f.yaml:1:18: yaml: an unknown escape, write \\ for a backslash)"}},
        {"bad escape",
         R"(node: {motto: "\xzz"})" "\n",
         {R"(f.yaml:1:20: yaml: an escape with too few hexadecimal digits, write \xNN or \uNNNN)"}},
        {"escaped surrogate",
         R"(node: {motto: "\ud800"})" "\n",
         {"f.yaml:1:22: yaml: an escape for a character that does not exist, write the character itself"}},
        {"bad block indicator",
         "node:\n"
         "  motto: |0\n"
         "    a\n",
         {"f.yaml:2:12: yaml: cannot set zero indentation for a block scalar, write valid YAML"}},
        {"text over two lines",
         "node:\n"
         "  motto: a\n"
         "    verbose\n",
         {"f.yaml:2:10: node.motto: text that goes on in the next line, check that line, or put quotes around the text"}},
        {"unquoted star",
         "node: {metrics: *:9420}\n",
         {"f.yaml:1:17: yaml: an alias, quote text that starts with *"}},
        {"unquoted ampersand",
         "node:\n"
         "  motto: & a\n",
         {"f.yaml:2:11: yaml: an anchor, quote text that starts with &"}},
        {"unclosed quote at the very end",
         "node:\n"
         R"(  motto: ")",
         {"f.yaml:2:10: node.motto: a quote that is not closed, close it"}},
        {"unclosed quote after an escape",
         "node:\n"
         R"(  motto: "a\")" "\n",
         {"f.yaml:2:10: node.motto: a quote that is not closed, close it"}},
        {"unclosed single quote after a doubled one",
         "node:\n"
         "  motto: 'a''\n",
         {"f.yaml:2:10: node.motto: a quote that is not closed, close it"}},
        {"tag on a map",
         "node: !x {name: ''}\n",
         {"f.yaml:1:7: node: a tag, leave it out: every key knows its type",
          R"(f.yaml:1:17: node.name: "" is empty, write text of 1 to 16 letters, digits, '.', '_' or '-')"}},
        {"end of document in quotes",
         "node:\n"
         R"(  motto: "a)" "\n"
         "---\n",
         {"f.yaml:3:1: yaml: a quote that is not closed, close it"}},
        {"trailing word",
         "node: {name: a} b\n",
         {"f.yaml:1:17: yaml: the map does not go on here, indent its keys alike, write 'key: value' with a space, and quote text with ': '"}},
        {"not UTF-8",
         "node: {name: \377}\n",
         {"f.yaml:1:14: yaml: not UTF-8, save the file as UTF-8"}},
        {"Latin-1",
         "node: {motto: gr\374\337e}\n",
         {"f.yaml:1:17: yaml: not UTF-8, save the file as UTF-8"}},
        {"overlong UTF-8",
         "# \300\257\n",
         {"f.yaml:1:3: yaml: not UTF-8, save the file as UTF-8"}},
        {"encoded surrogate",
         "# \355\240\200\n",
         {"f.yaml:1:3: yaml: not UTF-8, save the file as UTF-8"}},
        {"cut UTF-8",
         "# \342\202",
         {"f.yaml:1:3: yaml: not UTF-8, save the file as UTF-8"}},
        {"byte order mark",
         "\357\273\277node: {}\n",
         {"f.yaml:1:1: yaml: a byte order mark, save the file as UTF-8 without one"}},
        {"UTF-16",
         "\377\376n\000o\000d\000e\000"sv,
         {"f.yaml:1:1: yaml: not UTF-8, save the file as UTF-8"}},
        {"UTF-16 without mark",
         "n\000o\000d\000e\000"sv,
         {"f.yaml:1:2: yaml: a NUL byte, write plain text"}},
    };
}
// clang-format on

std::vector<std::string> lines(const Problems& problems) {
    std::vector<std::string> text;
    for (const Problem& problem : problems) text.push_back(to_string(problem));
    return text;
}

}  // namespace

TEST_CASE("config bad file: every problem is reported with position and remedy", "[config]") {
    const Schema schema = example::schema();
    for (const BadFile& file : bad_files()) {
        CAPTURE(file.name);

        const auto loaded = schema.load_text(file.text, "f.yaml");

        REQUIRE_FALSE(loaded.has_value());
        REQUIRE(lines(loaded.error()) == file.expected);
    }
}

TEST_CASE("config bad file: an empty file reports missing top-level keys", "[config]") {
    const Schema schema = example::required_schema();
    const std::vector<std::string> expected{
        "f.yaml:1:1: identity.name: missing, write text of 1 to 1024 characters"};

    for (const char* text : {"", "# nothing\n", "---\n", "{}", "identity:\n", "identity: {}"}) {
        CAPTURE(text);
        const auto loaded = schema.load_text(text, "f.yaml");

        REQUIRE_FALSE(loaded.has_value());
        REQUIRE(loaded.error().front().key == "identity.name");
        REQUIRE(loaded.error().front().right == "write text of 1 to 1024 characters");
    }
    REQUIRE(lines(schema.load_text("", "f.yaml").error()) == expected);
}

TEST_CASE("config bad file: size, depth and number of values are bounded, at once and in one line",
          "[config]") {
    const auto repeated = [](std::string_view unit, std::size_t count) {
        std::string text;
        while (count-- > 0) text += unit;
        return text;
    };
    struct Large {
        const char* name;
        std::string text;
        std::string expected;
    };
    const std::string deep =
        ": lists and maps nested more than 32 deep, no key needs more than a "
        "few levels";
    const std::string many =
        " more than 20000 keys and values before here, a configuration has a "
        "few hundred";
    std::string laughs = "a: &a [x, x, x, x, x, x, x, x, x]\n";
    for (char c = 'b'; c <= 'z'; ++c) {
        const std::string last(1, static_cast<char>(c - 1));
        laughs += std::string(1, c) + ": &" + c + " [*" + last + repeated(", *" + last, 8) + "]\n";
    }
    const std::vector<Large> files{
        {"spaces", repeated(" ", (1U << 20) + 1),
         "file: larger than 1MiB, a configuration is a few KiB"},
        {"brackets", repeated("[", 1U << 20), deep},
        {"braces", repeated("{", 1U << 20), deep},
        {"keyed braces", repeated("{a: ", 1U << 18), deep},
        {"brackets in keys", repeated("[a: ", 1U << 18), deep},
        {"dashes", repeated("- ", 1U << 19), deep},
        {"question marks", repeated("? ", 1U << 19), deep},
        {"questions in braces", repeated("{? ", 1U << 18), deep},
        {"colons", repeated(": ", 1U << 19), deep},
        {"items", "a: [" + repeated("1,", 1U << 18) + "]", many},
        {"lines", repeated("- 1\n", 1U << 18), many},
        {"keys", repeated("a:\n", 1U << 18), many},
        {"commas", "[" + repeated(",", 1U << 19) + "]", many},
        {"a long word", repeated("a", 1U << 20), "file: a single value"},
        {"a long quote", "\"" + repeated("a", 1U << 19) + "\"", "file: a single value"},
        {"a long line", "[" + repeated(" ", 1000000) + repeated("&a 1,", 9000) + "]",
         "file: a list"},
        {"values under a long key",
         "? \"" + repeated("\\e", 200000) + "\"\n: [" + repeated("&a 1,", 9000) + "]",
         "an anchor, write the value out"},
        {"a long key", repeated("a", 1U << 19) + ": b", "yaml: "},
        {"exclamation marks", repeated("!", 1U << 20), "yaml: "},
        {"ampersands", repeated("&a ", 1U << 18), "yaml: "},
        {"documents", repeated("---\n", 1U << 18), "yaml: text after the end of the document"},
        {"aliases of aliases", laughs, "an anchor, write the value out"},
    };
    const Schema schema = example::schema();
    for (const Large& file : files) {
        CAPTURE(file.name);

        const auto loaded = schema.load_text(file.text, "f.yaml");

        REQUIRE_FALSE(loaded.has_value());
        std::string text;
        for (const Problem& problem : loaded.error()) text += to_string(problem) + "\n";
        REQUIRE_THAT(text, ContainsSubstring(file.expected));
    }
}
