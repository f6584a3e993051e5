#!/usr/bin/env python3
"""Every rule of scripts/check_source.py: what it must find, and what it must leave alone."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import check_calls
import check_layers
import check_source
from cpp_source import Source


def rules_of(text, path="reqh/sample.cc"):
    return [finding.rule for finding in check_source.check_cpp(path, text)]


class SnippetTest(unittest.TestCase):
    def assert_finds(self, rule, text, path="reqh/sample.cc"):
        self.assertEqual(rules_of(text, path), [rule], f"in {path}:\n{text}")

    def assert_clean(self, text, path="reqh/sample.cc"):
        found = [str(finding) for finding in check_source.check_cpp(path, text)]
        self.assertEqual(found, [], f"in {path}:\n{text}")


class LayerTest(SnippetTest):
    def test_folders_of_the_table_may_be_used(self):
        for path, header in [
            ("core/gate.cc", "core/task.h"), ("lrs/fifo.cc", "fop/fop.h"), ("reqh/fom.cc", "lrs/policy.h"),
            ("daemon/main.cc", "eh/peers.h"), ("sim/cluster.cc", "daemon/node.h"), ("tests/lrs/a.cc", "sim/plan.h"),
            ("client/ctl/main.cc", "fabric/rpc/call.h"),
        ]:
            self.assert_clean(f'#include "{header}"\n', path)

    def test_other_folders_may_not(self):
        for path, header in [
            ("core/gate.cc", "config/loader.h"), ("lrs/fifo.cc", "reqh/fom.h"), ("store/log.cc", "fabric/rpc.h"),
            ("client/session.cc", "store/loader.h"), ("daemon/node.cc", "sim/plan.h"), ("reqh/a.cc", "tests/catch.h"),
            ("daemon/node.cc", "client/fopd.hpp"),
        ]:
            self.assert_finds("layer", f'#include "{header}"\n', path)

    def test_lrs_sees_one_header_of_eh(self):
        self.assert_clean('#include "eh/handler.h"\n', "lrs/shell.cc")
        self.assert_finds("layer", '#include "eh/peers.h"\n', "lrs/shell.cc")

    def test_includes_name_their_folder(self):
        self.assert_finds("include-path", '#include "gate.h"\n')
        self.assert_finds("include-path", '#include "../core/gate.h"\n')
        self.assert_finds("include-path", '#include "yaml-cpp/yaml.h"\n')

    def test_a_new_folder_needs_a_row(self):
        self.assert_finds("layer", "int x;\n", "cache/cache.cc")

    def test_third_party_headers_stay_with_their_owner(self):
        for header, owner in [
            ("liburing.h", "core"), ("yaml-cpp/yaml.h", "config"), ("sodium.h", "fop"), ("rdma/fabric.h", "fabric"),
            ("lmdb.h", "store"),
            ("spdlog/spdlog.h", "daemon"), ("CLI/CLI.hpp", "client"), ("systemd/sd-daemon.h", "daemon"),
            ("microhttpd.h", "daemon"), ("nlohmann/json.hpp", "client"), ("flatbuffers/flatbuffers.h", "fop"),
        ]:
            self.assert_clean(f"#include <{header}>\n", f"{owner}/sample.cc")
            self.assert_finds("third-party", f"#include <{header}>\n", "io_sched/sample.cc")

    def test_a_library_nobody_owns_is_found(self):
        self.assert_finds("third-party", "#include <boost/asio.hpp>\n")
        self.assert_clean("#include <vector>\n#include <sys/socket.h>\n#include <unistd.h>\n")

    def test_catch_comes_through_one_header(self):
        self.assert_finds("third-party", "#include <catch2/catch.hpp>\n", "tests/core/a_test.cc")
        self.assert_clean("#pragma once\n#include <catch2/catch.hpp>\n", "tests/catch.h")

    def test_includes_in_comments_do_not_count(self):
        self.assert_clean('// #include "daemon/node.h"\n/*\n#include "daemon/node.h"\n*/\n')


class CmakeTest(unittest.TestCase):
    def rules_of(self, text, path="lrs/CMakeLists.txt"):
        return [finding.rule for finding in check_layers.check_cmake(path, text)]

    def test_depends_follow_the_table(self):
        self.assertEqual(self.rules_of("fopd_add_library(lrs HEADERS a.h SOURCES a.cc DEPENDS fopd::core fopd::fop)"), [])
        self.assertEqual(self.rules_of("fopd_add_library(lrs SOURCES a.cc DEPENDS fopd::core fopd::store)"), ["layer"])
        self.assertEqual(self.rules_of("# fopd_add_library(lrs DEPENDS fopd::store)\n"), [])

    def test_third_party_targets_stay_with_their_owner(self):
        text = "fopd_add_library(core SOURCES a.cc\n    THIRD_PARTY PkgConfig::liburing Threads::Threads)"
        self.assertEqual(self.rules_of(text, "core/CMakeLists.txt"), [])
        self.assertEqual(self.rules_of(text, "lrs/CMakeLists.txt"), ["third-party"])
        self.assertEqual(self.rules_of("target_link_libraries(fopd_lrs PRIVATE Boost::asio)"), ["third-party"])

    def test_the_line_is_that_of_the_target(self):
        findings = list(check_layers.check_cmake("lrs/CMakeLists.txt", "# x\nfopd_add_library(lrs\n DEPENDS fopd::sim)"))
        self.assertEqual([finding.line for finding in findings], [3])


class CallTest(SnippetTest):
    def test_clocks(self):
        for call in ["std::chrono::steady_clock::now()", "std::chrono::system_clock::now()", "::time(nullptr)",
                     "time(&t)", "std::time(0)", "clock_gettime(CLOCK_MONOTONIC, &t)"]:
            self.assert_finds("clock", f"auto f() {{ return {call}; }}\n")
        self.assert_clean("auto f() { return clock.now() + reactor.now() + run_time(0) + plan.time(0); }\n")

    def test_randomness(self):
        for call in ["rand()", "std::rand()", "std::random_device{}()", "std::mt19937(1)", "getrandom(p, 8, 0)"]:
            self.assert_finds("random", f"auto f() {{ return {call}; }}\n")
        self.assert_clean("auto f() { return random.below(7) + operand(2) + random() + core::Random(seed).next(); }\n")

    def test_threads(self):
        for text in ["std::thread t;", "std::jthread t;", "std::mutex m;", "std::shared_mutex m;",
                     "std::condition_variable c;", "std::lock_guard l(m);", "auto f = std::async(g);"]:
            self.assert_finds("thread", text + "\n")
        self.assert_clean("std::atomic<int> a; std::thread::id b; Thread thread; auto id = mailbox.thread();\n")

    def test_sleeps(self):
        for text in ["std::this_thread::sleep_for(5ms);", "usleep(5);", "::nanosleep(&a, nullptr);", "sleep(1);",
                     "::sleep(seconds);", "poll(nullptr, 0, 10);", "::ppoll(NULL, 0, &a, &b);"]:
            self.assert_finds("sleep", f"void f() {{ {text} }}\n")
        self.assert_clean("Task<void> f() {\n    co_await reactor_.sleep_for(5ms);\n    co_await sleep(5ms);\n}\n")
        self.assert_clean("#pragma once\nTask<void> sleep(Duration span);\nTask<void> Reactor::sleep(Duration s);\n",
                          "core/reactor.h")

    def test_environment(self):
        self.assert_finds("environment", 'auto f() { return std::getenv("HOME"); }\n')

    def test_the_replacement_is_named(self):
        text = str(check_source.check_cpp("lrs/a.cc", "auto f() { return std::rand(); }\n")[0])
        self.assertEqual(text, "lrs/a.cc:1: std::rand draws from a generator nobody can replay, "
                               "draw from the core::Random that was handed in [random]")

    def test_the_files_of_the_real_world_are_free(self):
        self.assert_clean("auto f() { return clock_gettime(0, 0); }\n", "core/posix_clock.cc")
        self.assert_clean("std::thread t;\n", "core/offload.cc")
        self.assert_clean('auto f() { return getenv("A"); }\n', "daemon/main.cc")
        self.assert_clean("std::thread t;\n", "tests/core/mailbox_test.cc")
        self.assert_finds("clock", "auto f() { return clock_gettime(0, 0); }\n", "core/offload.cc")
        self.assert_finds("sleep", "void f() { usleep(5); }\n", "tests/core/mailbox_test.cc")

    def test_words_in_comments_and_strings_do_not_count(self):
        self.assert_clean('// std::mutex, rand()\n/* usleep(5) */\nconst char* a = "std::thread";\n')
        self.assert_clean('const char* a = R"x(std::mutex m; ")x";\nint b = 1\'000;  // \'std::thread\'\n')


class FileTest(SnippetTest):
    def test_pragma_once(self):
        self.assert_finds("pragma-once", "int x;\n", "core/gate.h")
        self.assert_finds("pragma-once", "// #pragma once\nint x;\n", "core/gate.h")
        self.assert_clean("// Licence.\n#pragma once\nint x;\n", "core/gate.h")

    def test_own_header_first(self):
        self.assert_finds("own-header", '#include <vector>\n#include "core/gate.h"\n', "core/gate.cc")
        self.assert_clean('#include "core/gate.h"\n\n#include <vector>\n', "core/gate.cc")
        self.assert_clean('#include <time.h>\n#include "core/clock.h"\n', "core/posix_clock.cc")

    def test_todo(self):
        for comment in ["// TODO: later", "// FIXME", "// TODO(kim): x.", "/* XXX */", "// TODO(correctness): Races."]:
            self.assert_finds("todo", comment + "\nint x;\n")
        self.assert_clean("// TODO(speed): One lookup would do.\nint todo;\n")

    def test_file_names(self):
        for path in ["core/utils.h", "core/string_helpers.cc", "common/a.h", "lrs/tape_manager.h", "core/Gate.h",
                     "core/gate.cpp", "scripts/utils.sh"]:
            self.assertEqual([f.rule for f in check_calls.check_file_name(path)], ["file-name"], path)
        for path in ["core/gate.h", "docs/common-errors.md", "client/fopd.hpp", "scripts/check_calls.py"]:
            self.assertEqual(list(check_calls.check_file_name(path)), [], path)

    def rules_of_length(self, path, head, lines=601):
        text = head + "x\n" * (lines - head.count("\n"))
        return [finding.rule for finding in check_calls.check_length(path, text)]

    def test_a_long_file_says_why_it_is_long(self):
        reason = "The file is long because its rows are."
        for path, head in [
            ("core/gate.cc", f"// {reason}\n"), ("core/gate.h", f"#pragma once\n\n// A gate. {reason}\n"),
            ("client/fopd.hpp", "// Licence.\n#pragma once\n\n// A library. The file is\n// long because its rows are.\n"),
            ("docs/report.c", "/* A report.\n * The file is\n * long because its rows are. */\n"),
            ("tests/a_test.py", f'#!/usr/bin/env python3\n"""A test.\n\n{reason}"""\n'),
            ("scripts/steps.sh", f"# Steps. {reason}\n"), ("scripts/test", f"#!/bin/sh\n# Tests. {reason}\n"),
        ]:
            self.assertEqual(self.rules_of_length(path, head), [], path)
            self.assertEqual(self.rules_of_length(path, head.replace("because", "as")), ["long-file"], path)
            self.assertEqual(self.rules_of_length(path, "".join(head.splitlines(True)[:1]), lines=600), [], path)

    def test_a_reason_for_the_length_further_down_does_not_count(self):
        reason = "The file is long because its rows are.\n"
        self.assertEqual(self.rules_of_length("core/gate.cc", f'#include "core/gate.h"\n\n// {reason}'), ["long-file"])
        self.assertEqual(self.rules_of_length("scripts/a.py", f'"""A."""\n\nimport re\n\n# {reason}'), ["long-file"])

    def test_documents_and_data_may_have_any_length(self):
        for path in ["docs/glossary.md", "CMakeLists.txt", "docs/man/fopd.yaml.5", "tests/fuzz/corpus/log/1"]:
            self.assertEqual(self.rules_of_length(path, "# A page.\n"), [], path)


class TwinTest(unittest.TestCase):
    def rules(self, **files):
        sources = [Source(path.replace("__", "/") + ".cc", text) for path, text in files.items()]
        return [(finding.path, finding.line, finding.rule) for finding in check_calls.check_twins(sources)]

    def test_two_hidden_names_of_a_folder_differ(self):
        text = "namespace {\n\nstd::uint32_t sum_of(int a) {\n    return a;\n}\nconstexpr int kMax = 1;\n\n}  // namespace\n"
        twin = [("store/b.cc", 3, "twin-name"), ("store/b.cc", 6, "twin-name")]
        self.assertEqual(self.rules(store__a=text, store__b=text), twin)
        self.assertEqual(self.rules(store__a=text, objects__b=text, tests__c=text), [])
        self.assertEqual(self.rules(store__a=text, store__b=text.replace("sum_of", "x_of").replace("kMax", "kMost")), [])

    def test_overloads_in_a_file_and_aliases_may_repeat(self):
        text = "namespace {\n\nusing Kind = A::Kind;\nint of(A a) {\n}\nint of(B b) {\n}\n\n}  // namespace\n"
        self.assertEqual(self.rules(store__a=text, store__b=text.replace("of(", "by(")), [])


def coroutine(body):
    return f"Task<Result<int>> Fom::run() {{\n    int n = 0;\n    {body}\n    co_return n;\n}}\n"


class AwaitTest(SnippetTest):
    def assert_body(self, rule, body):
        with self.subTest(body=body):
            self.assert_finds(rule, coroutine(body))

    def assert_good(self, *bodies):
        for body in bodies:
            with self.subTest(body=body):
                self.assert_clean(coroutine(body))

    def test_the_house_forms(self):
        self.assert_good(
            "const auto read = co_await device_.read(request);\n    if (!read) co_return std::unexpected(read.error());",
            "co_await gate_.close();",
            "co_return co_await device_.read(std::move(request));",
            "(void)co_await f();",
            "static_cast<void>(co_await f());",
            "std::ignore = co_await f();",
            "n += co_await f();",
            "auto&& x = co_await f();",
            "for (;;) {\n co_await reactor_.maybe_yield();\n }",
            "for (const auto& x : list) {\n co_await g(x.name);\n }",
            "if (a && b) co_return co_await f();",
            "if (a) co_await f();\n else co_await g();",
            "if (a ? b : c) { co_await f(); }",
            "while (a || b) co_await f();",
            "do {\n co_await f();\n } while (a);",
            "switch (n) {\n case 1: co_await f();\n break;\n default: co_await g();\n }",
            "const auto x = a ? b : c;\n co_await f(x);",
            "co_await f(a ? b : c);",
            "co_await f(a && b);",
            "co_await f(Options{.size_bytes = 5, .deadline = deadline_});",
            "co_await f({.size_bytes = 5});",
            "Options o{.a = 1, .b = g(2)};\n co_await f(o);",
            "const int x[2]{1, 2};\n co_await f(x[0], list[n]);",
            "auto [a, b] = split(text);\n co_await f(a);",
            "{\n    const auto x = co_await f();\n }\n {\n    const auto x = co_await g();\n }",
            "auto done = [&n] { ++n; };\n co_await f(std::move(done));",
            "co_await f([] { return 1; });",
            "try {\n co_await f();\n } catch (const E& e) {\n n = 1;\n }",
            "label: co_await f();",
            "const bool x = a && b;\n const auto y = co_await f();",
            "if (a) {}\n co_await f();\n Foo x{};\n co_await g();",
        )

    def test_conditions(self):
        for body in [
            "if (co_await f()) ++n;", "if (!co_await f()) ++n;", "if (co_await f() == 2) { ++n; }",
            "while (co_await f()) ++n;", "while (!(co_await f())) ++n;", "switch (co_await f()) { default: ++n; }",
            "for (auto x : co_await f()) ++n;", "for (int i = 0; i < co_await f(); ++i) ++n;",
            "for (int i = 0; i < 5; co_await f()) ++n;", "if (const auto x = g(); co_await f(x)) ++n;",
            "if (x = co_await f()) ++n;", "if constexpr (a) if (co_await f()) ++n;", "do ++n;\n while (co_await f());",
            "if (a) ++n;\n else if (co_await f()) --n;",
        ]:
            self.assert_body("await-condition", body)

    def test_initialisers_in_conditions_are_fine(self):
        self.assert_good(
            "if (const auto x = co_await f(); x) ++n;", "if (const auto x = co_await f(); !x || x->empty()) ++n;",
            "if (const int x = co_await f()) ++n;", "while (const auto x = co_await f()) ++n;",
            "if (const std::optional<int> x = co_await f()) ++n;",
            "switch (const auto x = co_await f(); x.kind) {\n default: ++n;\n }",
            "for (auto x = co_await f(); x > 0; --x) ++n;",
            "if (const auto x = co_await f(); !x) co_return co_await g();",
        )

    def test_ternary(self):
        for body in ["auto x = a ? co_await f() : co_await g();", "auto x = co_await f() ? 1 : 2;",
                     "co_return a ? co_await f() : 0;"]:
            with self.subTest(body=body):
                self.assertIn("await-ternary", rules_of(coroutine(body)))

    def test_logical(self):
        self.assert_body("await-logical", "const bool x = co_await f() && g();")
        self.assert_body("await-logical", "co_return a || co_await f();")

    def test_nested(self):
        for body in ["g(co_await f());", "const auto x = (co_await f()).value();", "list.push_back(co_await f());",
                     "const auto x = static_cast<int>(co_await f());", "n = list[co_await f()];"]:
            self.assert_body("await-nested", body)

    def test_braces(self):
        for body in ["Pair p{co_await f(), 2};", "Pair p = {.a = co_await f()};", "const int x{co_await f()};",
                     'co_await f(Names{"a", "b"});', 'co_await f({"a", 2});']:
            self.assert_body("await-braces", body)

    def test_macros(self):
        self.assert_body("await-macro", "ENSURE(co_await f());")
        self.assert_body("await-macro", "REQUIRE(co_await f() == 3);")
        self.assert_finds("await-macro", "#define TRY(x) \\\n    co_await x\n")

    def test_two_in_one_statement(self):
        self.assert_body("await-twice", "const int x = co_await f() + co_await g();")
        self.assert_body("await-twice", "co_await f(), co_await g();")

    def test_structured_bindings(self):
        self.assert_body("await-binding", "const auto [a, b] = co_await f();")
        self.assert_body("await-binding", "auto& [a, b] = co_await f();")

    def test_capturing_lambdas_in_the_expression(self):
        self.assert_body("await-lambda", "co_await f([&n] { ++n; });")
        self.assert_body("await-lambda", "co_await f(1, [n](int a) { return a + n; });")
        self.assert_body("await-lambda", "const auto x = co_await g(f([=]() mutable { ++n; }));")

    def test_coroutine_lambdas(self):
        self.assert_finds("coroutine-lambda", "void f() {\n auto t = [&]() -> Task<void> {\n co_await g();\n };\n}\n")
        self.assert_finds("coroutine-lambda", "void f() {\n spawn([this] -> Task<void> { co_return; });\n}\n")
        self.assert_clean("void f() {\n auto t = [](int a) -> Task<void> {\n co_await g(a);\n };\n}\n")
        self.assert_clean("void f() {\n auto t = [&](int a) {\n return run(a);\n };\n}\n")

    def test_a_lambda_inside_a_coroutine_is_judged_alone(self):
        self.assert_good("auto t = [](int a) -> Task<void> {\n co_await g(a);\n };\n co_await t(1);")

    def test_reference_parameters(self):
        for parameters in ["const Request& request", "Request&& request", "int a, std::string& b",
                           "std::string_view name", "std::map<int, int>& m", "const std::vector<int> &v = {}"]:
            self.assert_finds("coroutine-reference", f"Task<void> f({parameters}) {{\n co_await g();\n}}\n")
        for parameters in ["", "Request request", "Request* request, int n = a & b", "std::function<void(int&)> f",
                           "std::span<const std::byte> bytes", "std::unique_ptr<Foo> foo"]:
            self.assert_clean(f"Task<void> f({parameters}) {{\n co_await g();\n}}\n")

    def test_only_coroutines_must_not_take_references(self):
        self.assert_clean("#pragma once\nAwaiter operator co_await() && {\n return g(a && b);\n}\n", "core/task.h")
        self.assert_clean("Task<void> f(const Request& r) {\n return g(r.size);\n}\n")
        self.assert_clean("#pragma once\nTask<void> f(const Request& request);\n", "reqh/a.h")

    def test_heads_of_all_kinds_are_read(self):
        for head in ["Task<void> A::f(int& a) const", "auto f(int& a) -> Task<void>", "Task<R<int>> f(int& a) noexcept",
                     "template <typename T>\nTask<T> f(T& a)", "Task<void> f(int& a) final"]:
            self.assert_finds("coroutine-reference", f"{head} {{\n if (x) {{\n co_return;\n }}\n}}\n")

    def test_the_line_is_that_of_the_await(self):
        findings = check_source.check_cpp("reqh/a.cc", "Task<void> f() {\n    int n;\n    g(n,\n      co_await h());\n}\n")
        self.assertEqual([finding.line for finding in findings], [4])


class AllowTest(SnippetTest):
    def test_a_line_may_allow_itself(self):
        self.assert_clean("std::mutex m;  // check: allow(thread) Guards the only queue foreign threads write.\n")
        self.assert_clean("// check: allow(thread) Guards the only queue foreign threads write.\nstd::mutex m;\n")

    def test_only_the_rule_named_is_allowed(self):
        self.assertEqual(rules_of("std::mutex m;  // check: allow(clock) It ticks.\n"), ["allow", "thread"])

    def test_the_comment_on_a_line_of_code_covers_that_line_only(self):
        self.assertEqual(rules_of("std::mutex a;  // check: allow(thread) Why.\nstd::mutex b;\n"), ["thread"])

    def test_an_allowance_gives_its_reason_names_a_rule_and_is_needed(self):
        self.assert_finds("allow", "std::mutex m;  // check: allow(thread)\n")
        self.assertEqual(rules_of("std::mutex m;  // check: allow(threads) Why.\n"), ["allow", "thread"])
        self.assert_finds("allow", "int m;  // check: allow(thread) Why.\n")


if __name__ == "__main__":
    unittest.main()
