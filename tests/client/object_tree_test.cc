// Goal: trees are stored, fetched and removed object by object: several at a time, each whole, none
// stopped by another one, and none outside of the directory. Method: real directories, the fake
// store in the simulated world, and names that only a hostile server lists.
// The file is long because all transfers of trees are tried on the same stage, which is made here.
#include "client/object_tree.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <time.h>

#include "tests/catch.h"
#include "tests/client/object_stage.h"
#include "tests/temp_dir.h"

namespace fopd::client::testing {

namespace {

namespace fs = std::filesystem;
using Cause = TreeFailure::Cause;
using Files = std::map<std::string, std::string>;

class Watcher final : public TreeWatcher {
public:
    void on_failure(const TreeFailure& failure) override { failures[failure.name] = failure; }
    void on_skipped(std::string_view shown, std::string_view /*what*/) override {
        skipped.emplace_back(shown);
    }
    void on_empty_directory(std::string_view shown) override { empty.emplace_back(shown); }
    void on_planned(const Planned& each) override { planned[each.name] = each.size_bytes; }

    std::map<std::string, TreeFailure> failures;
    std::vector<std::string> skipped;
    std::vector<std::string> empty;
    std::map<std::string, std::optional<std::uint64_t>> planned;
};

// Counts the calls that do not block the reactor.
class CountingOffload final : public core::Offload {
public:
    explicit CountingOffload(std::unique_ptr<core::Offload> offload)
        : offload_(std::move(offload)) {}
    Result<void> grow(unsigned thread_count) override { return offload_->grow(thread_count); }
    bool submit(Job& job) override {
        ++count;
        return offload_->submit(job);
    }

    int count = 0;

private:
    std::unique_ptr<core::Offload> offload_;
};

// A server, and a directory beside which is what must stay as it is.
class Trees {
public:
    Trees() {
        fs::create_directory(temp_ / "top");
        std::ofstream(temp_ / "mine") << "mine";
    }

    std::string top() const { return temp_ / "top"; }
    void write(const Files& files) const {
        for (const auto& [path, text] : files) {
            const fs::path file = fs::path(top()) / path;
            fs::create_directories(file.parent_path());
            std::ofstream(file, std::ios::binary) << text;
        }
    }
    // All files below the directory above; those of the tree begin with "top/".
    Files written() const {
        Files files;
        for (const auto& each : fs::recursive_directory_iterator(temp_.path())) {
            if (!each.is_regular_file()) continue;
            std::ifstream file(each.path(), std::ios::binary);
            files[fs::relative(each.path(), temp_.path())] = {std::istreambuf_iterator<char>(file),
                                                              {}};
        }
        return files;
    }
    // An object as only the server can make it, with any name.
    void add(const std::string& name, std::string_view text, std::uint16_t slot = 1) {
        const fop::Fid fid{.high = std::uint64_t{slot} << 48, .low = next_++};
        const auto content = std::as_bytes(std::span(text));
        stage.store.now.objects[fid] = {.name = name, .bytes = {content.begin(), content.end()}};
        stage.store.now.names[name] = fid;
    }
    std::vector<std::string> names() const {
        std::vector<std::string> all;
        for (const auto& each : stage.store.now.names) all.push_back(each.first);
        return all;
    }
    std::string text_of(const std::string& name) const {
        const auto* const object = stage.store.find(name);
        if (object == nullptr) return "(none)";
        return {reinterpret_cast<const char*>(object->bytes.data()), object->bytes.size()};
    }

    LocalWorld world() { return {.reactor = *stage.reactor, .offload = offload, .cancel = cancel}; }
    TreeTransfer::Options options() {
        return {.objects_in_flight = in_flight,
                .patience = patience,
                .only_plans = only_plans,
                .skip = skip,
                .stops_at_quota = stops_at_quota,
                .waits_for_quota = waits_for_quota,
                .cancel = cancel};
    }
    std::unique_ptr<LocalTree> open() {
        auto tree = LocalTree::open(top(), LocalTree::Missing::kProblem);
        REQUIRE(tree.has_value());
        return std::move(*tree);
    }
    void run(TreeTransfer& transfer) { REQUIRE(stage.world.run(*stage.reactor, transfer.run())); }

    // Returns how many were moved.
    std::uint64_t put(NewObject example) {
        const auto tree = open();
        TreePut transfer(world(), *stage.client, *tree, std::move(example), watcher, options());
        if (journal != nullptr) transfer.use(*journal);
        run(transfer);
        early_end = transfer.early_end();
        unchanged = transfer.unchanged();
        bytes = transfer.bytes();
        return transfer.objects();
    }
    std::uint64_t get(std::string prefix) {
        const auto tree = open();
        ObjectWalk walk(*stage.reactor, *stage.client, {.prefix = std::move(prefix)});
        TreeGet transfer(world(), *stage.client, walk, *tree, watcher, options());
        run(transfer);
        bytes = transfer.bytes();
        unchanged = transfer.unchanged();
        return transfer.objects();
    }
    std::uint64_t remove(std::string prefix) {
        ObjectWalk walk(*stage.reactor, *stage.client, {.prefix = std::move(prefix)});
        TreeRemove transfer(*stage.reactor, *stage.client, walk, watcher, options());
        run(transfer);
        bytes = transfer.bytes();
        return transfer.objects();
    }

    Stage stage;
    Watcher watcher;
    CountingOffload offload{core::make_virtual_offload(stage.world, {})};
    core::CancelSource cancel;
    std::uint32_t in_flight = 4;
    Duration patience{60s};
    bool only_plans = false;
    bool stops_at_quota = false;
    bool waits_for_quota = false;
    TreeTransfer::Options::Skip skip = TreeTransfer::Options::Skip::kNothing;
    PutJournal* journal = nullptr;
    std::uint64_t unchanged = 0;
    std::uint64_t bytes = 0;
    TreeTransfer::End early_end{};

private:
    TempDir temp_;
    std::uint64_t next_ = 1'000'000;
};

Files numbered(int count) {
    Files files;
    for (int i = 0; i < count; ++i) {
        files["d" + std::to_string(i % 7) + "/e/" + std::to_string(i)] =
            std::string(static_cast<std::size_t>(i) * 97, static_cast<char>('a' + i % 26));
    }
    return files;
}

}  // namespace

TEST_CASE("client object tree: what is stored is fetched again, byte for byte", "[client]") {
    Trees trees;
    trees.stage.store.names_of_page = 7;
    Files files = numbered(60);
    files["large"] = std::string((5U << 20) + 3, 'x');
    trees.write(files);
    std::uint64_t all_bytes = 0;
    for (const auto& each : files) all_bytes += each.second.size();

    REQUIRE(trees.put({.name = "p/"}) == 61);
    REQUIRE(trees.bytes == all_bytes);
    for (const auto& [path, text] : files) REQUIRE(trees.text_of("p/" + path) == text);
    fs::remove_all(trees.top());
    fs::create_directory(trees.top());
    REQUIRE(trees.get("p/") == 61);
    REQUIRE(trees.bytes == all_bytes);

    Files expected{{"mine", "mine"}};
    for (const auto& [path, text] : files) expected["top/" + path] = text;
    REQUIRE(trees.written() == expected);
    REQUIRE(trees.watcher.failures.empty());
}

TEST_CASE("client object tree: so many are in flight, and no more", "[client]") {
    Trees trees;
    trees.in_flight = 3;
    trees.write(numbered(10));
    trees.stage.store.ignored = "upload_begin";
    const auto tree = trees.open();
    TreePut transfer(trees.world(), *trees.stage.client, *tree, {.name = "p/"}, trees.watcher,
                     trees.options());
    trees.stage.reactor->spawn(trees.stage.gate, transfer.run());
    trees.stage.world.run_for(10s);
    REQUIRE(trees.stage.store.count("upload_begin") == 3);
    trees.cancel.cancel();
    trees.stage.world.run_for(10s);
    REQUIRE(trees.stage.gate.count() == 0);
}

TEST_CASE("client object tree: more are in flight while the server is quick", "[client]") {
    Trees trees;
    trees.in_flight = 2;
    constexpr std::uint64_t kObjects = 2000;
    constexpr std::uint32_t kMore = 3;
    for (std::uint64_t i = 0; i < kObjects; ++i) trees.add("p/" + std::to_string(i), "x");
    FakeStore& store = trees.stage.store;
    ObjectWalk walk(*trees.stage.reactor, *trees.stage.client, {.prefix = "p/"});
    TreeTransfer::Options options = trees.options();
    options.more_in_flight = kMore;
    TreeRemove transfer(*trees.stage.reactor, *trees.stage.client, walk, trees.watcher, options);

    SECTION("not before it has answered") {
        store.ignored = "delete";
        trees.stage.reactor->spawn(trees.stage.gate, transfer.run());
        trees.stage.world.run_for(10s);
        REQUIRE(store.count("delete") == trees.in_flight);
    }
    SECTION("and then all of them") {
        trees.stage.reactor->spawn(trees.stage.gate, transfer.run());
        for (int i = 0; i < 100'000 && transfer.objects() < 100; ++i) {
            trees.stage.world.run_for(10us);
        }
        REQUIRE(transfer.objects() >= 100);
        REQUIRE(transfer.objects() < kObjects / 2);
        store.ignored = "delete";
        trees.stage.world.run_for(1s);
        REQUIRE(store.count("delete") == transfer.objects() + trees.in_flight + kMore);
    }

    SECTION("but not if all it says is no") {
        store.missing = {1};
        trees.stage.reactor->spawn(trees.stage.gate, transfer.run());
        const auto& failures = trees.watcher.failures;
        for (int i = 0; i < 100'000 && failures.size() < 100; ++i) {
            trees.stage.world.run_for(10us);
        }
        REQUIRE(failures.size() >= 100);
        REQUIRE(failures.size() < kObjects / 2);
        store.ignored = "delete";
        trees.stage.world.run_for(1s);
        REQUIRE(store.count("delete") == failures.size() + trees.in_flight);
    }

    trees.cancel.cancel();
    trees.stage.world.run_for(10s);
    REQUIRE(trees.stage.gate.count() == 0);
}

TEST_CASE("client object tree: it ends early if the server does not answer any more", "[client]") {
    Trees trees;
    trees.in_flight = 3;
    trees.patience = 1s;
    trees.write(numbered(30));
    trees.stage.store.ignored = "upload_begin";
    REQUIRE(trees.put({.name = "p/"}) == 0);
    REQUIRE(trees.early_end == TreeTransfer::End::kNoAnswer);
    REQUIRE(trees.watcher.failures.size() < 6);
    REQUIRE(trees.watcher.failures.size() >= 3);
}

TEST_CASE("client object tree: files that fail do not hide that the server does not answer",
          "[client]") {
    Trees trees;
    trees.in_flight = 2;
    trees.patience = 1s;
    Files files;
    for (int i = 100; i < 160; ++i) {
        files[std::to_string(i)] = "x";
        files[std::to_string(i) + "\n"] = "its name cannot be an object's";
    }
    trees.write(files);
    trees.stage.store.ignored = "upload_begin";
    REQUIRE(trees.put({.name = "p/"}) == 0);
    REQUIRE(trees.early_end == TreeTransfer::End::kNoAnswer);
    REQUIRE(trees.watcher.failures.size() < 12);
}

TEST_CASE("client object tree: it ends at once if the server refuses the client", "[client]") {
    Trees trees;
    trees.in_flight = 3;
    trees.write(numbered(30));
    trees.stage.create("there");
    trees.stage.store.refuses_clients = true;
    trees.stage.crash();
    trees.stage.world.run_for(30s);
    REQUIRE(trees.put({.name = "p/"}) == 0);
    REQUIRE(trees.early_end == TreeTransfer::End::kRefused);
    REQUIRE(trees.watcher.failures.size() <= 3);
    REQUIRE(trees.watcher.failures.begin()->second.problem.status == fop::Status::kDenied);
}

TEST_CASE("client object tree: it ends where the quota ends, or waits until space is free",
          "[client]") {
    Trees trees;
    trees.stops_at_quota = true;
    trees.write(numbered(30));
    trees.stage.store.full = {1, 2};
    trees.stage.store.when_full = fop::Status::kQuota;

    SECTION("nothing becomes free for who does not wait") {
        trees.stage.store.full_for = 10;
        REQUIRE(trees.put({.name = "p/"}) == 0);
        REQUIRE(trees.early_end == TreeTransfer::End::kQuota);
        REQUIRE(trees.watcher.failures.size() <= trees.in_flight);
    }
    SECTION("it becomes free") {
        trees.waits_for_quota = true;
        trees.stage.store.full_for = 10;
        REQUIRE(trees.put({.name = "p/"}) == 30);
        REQUIRE(trees.early_end == TreeTransfer::End::kNotEarly);
        REQUIRE(trees.watcher.failures.empty());
    }
    SECTION("it does not, and is waited for once") {
        trees.waits_for_quota = true;
        const Instant begun = trees.stage.reactor->now();
        REQUIRE(trees.put({.name = "p/"}) == 0);
        REQUIRE(trees.early_end == TreeTransfer::End::kQuota);
        REQUIRE(trees.watcher.failures.size() == trees.in_flight);
        REQUIRE(trees.stage.reactor->now() - begun < 12s);
    }
}

TEST_CASE("client object tree: each object has the group, and is not replaced", "[client]") {
    Trees trees;
    trees.add("p/b", "old");
    trees.write({{"a", "1"}, {"b", "2"}, {"c", "3"}});
    REQUIRE(trees.put(
                {.name = "p/", .group = "staff", .no_replace = true, .collection = "run-7"}) == 2);
    REQUIRE(trees.text_of("p/b") == "old");
    for (const std::string name : {"p/a", "p/c"}) {
        REQUIRE(trees.stage.store.find(name)->group == "staff");
        REQUIRE(trees.stage.store.find(name)->collection == "run-7");
    }
    REQUIRE(trees.watcher.failures.size() == 1);
    REQUIRE(trees.watcher.failures.at("p/b").problem.status == fop::Status::kExists);
    REQUIRE(trees.watcher.failures.at("p/b").cause == Cause::kServer);
}

TEST_CASE("client object tree: a file that changes while it is read is reported", "[client]") {
    const auto size = GENERATE(std::size_t{1000}, std::size_t{5} << 20);
    Trees trees;
    trees.in_flight = 1;
    trees.write({{"a", std::string(size, 'x')}, {"b", "2"}});
    const std::string file = trees.top() + "/a";
    const auto changed_at = fs::last_write_time(file);
    const auto tree = trees.open();
    TreePut transfer(trees.world(), *trees.stage.client, *tree, {.name = "p/"}, trees.watcher,
                     trees.options());
    trees.stage.reactor->spawn(trees.stage.gate, transfer.run());
    for (int i = 0; i < 100'000 && trees.stage.store.count("upload_begin") == 0; ++i) {
        trees.stage.world.run_for(10us);
    }
    REQUIRE(trees.stage.store.count("upload_begin") > 0);
    REQUIRE(trees.stage.store.find("p/a") == nullptr);

    bool is_changed = true;
    SECTION("it grows") {
        std::ofstream(file, std::ios::app) << "more";
        fs::last_write_time(file, changed_at);
    }
    SECTION("it becomes shorter") {
        fs::resize_file(file, 10);
        fs::last_write_time(file, changed_at);
    }
    SECTION("it is rewritten in the same second") {
        std::ofstream(file, std::ios::in | std::ios::out) << "y";
        fs::last_write_time(file, changed_at + std::chrono::nanoseconds(1));
    }
    SECTION("it does not") {
        is_changed = false;
    }

    trees.stage.world.run_for(30s);
    REQUIRE(trees.stage.gate.count() == 0);
    REQUIRE(trees.text_of("p/b") == "2");
    REQUIRE(transfer.objects() == (is_changed ? 1 : 2));
    REQUIRE(trees.watcher.failures.size() == (is_changed ? 1 : 0));
    if (!is_changed) return;
    const TreeFailure& failure = trees.watcher.failures.at("p/a");
    REQUIRE(failure.cause == Cause::kFile);
    REQUIRE(failure.problem.words.find("/a: it changed while it was read") != std::string::npos);
    REQUIRE(transfer.bytes() == 1);
}

TEST_CASE("client object tree: files whose names no object can have are refused", "[client]") {
    Trees trees;
    trees.write({{"a\nb", "1"}, {"\xff", "2"}, {"good", "3"}, {"\xfe/below", "4"}});
    REQUIRE(trees.put({.name = "p/"}) == 1);
    REQUIRE(trees.names() == std::vector<std::string>{"p/good"});
    REQUIRE(trees.watcher.failures.size() == 3);
    for (const std::string name : {"p/a\nb", "p/\xff", "p/\xfe/below"}) {
        REQUIRE(trees.watcher.failures.at(name).cause == Cause::kName);
    }
}

TEST_CASE("client object tree: names that are as long as possible are stored", "[client]") {
    Trees trees;
    const std::string part(239, 'x');
    trees.write({{part + "/" + part, "1"}, {part + "/" + part + "y", "2"}});
    REQUIRE(trees.put({.name = "p"}) == 1);
    REQUIRE(trees.text_of("p" + part + "/" + part) == "1");
    REQUIRE(trees.watcher.failures.at("p" + part + "/" + part + "y").cause == Cause::kName);
}

TEST_CASE("client object tree: what is no file is skipped, and empty directories are told of",
          "[client]") {
    Trees trees;
    trees.write({{"a", "1"}});
    fs::create_symlink("a", trees.top() + "/link");
    fs::create_directory(trees.top() + "/empty");
    REQUIRE(trees.put({.name = "p/"}) == 1);
    REQUIRE(trees.watcher.failures.empty());
    REQUIRE(trees.watcher.skipped == std::vector<std::string>{trees.top() + "/link"});
    REQUIRE(trees.watcher.empty == std::vector<std::string>{trees.top() + "/empty"});
}

TEST_CASE("client object tree: names of a hostile server write nothing outside", "[client]") {
    Trees trees;
    const std::vector<std::string> bad{"p/../mine",   "p/../../mine", "p/..",  "p/.",
                                       "p//tmp/mine", "p/a//b",       "p/a/",  "p/",
                                       "p/a/../../b", "p/link/new",   "p/link"};
    for (const std::string& name : bad) trees.add(name, "theirs");
    trees.add("p/good", "good");
    fs::create_directory_symlink("..", trees.top() + "/link");

    REQUIRE(trees.get("p/") == 1);

    REQUIRE(trees.written() == Files{{"mine", "mine"}, {"top/good", "good"}});
    REQUIRE(fs::is_symlink(trees.top() + "/link"));
    REQUIRE(trees.watcher.failures.size() == bad.size());
    for (const std::string& name : bad) REQUIRE(trees.watcher.failures.contains(name));
}

TEST_CASE("client object tree: an object in the place of a directory is reported", "[client]") {
    Trees trees;
    trees.in_flight = GENERATE(1U, 8U);
    trees.stage.store.names_of_page = 2;
    for (const std::string name : {"p/a", "p/a!", "p/a-b", "p/a/b", "p/a/b/c", "p/ab/c", "p/ab"}) {
        trees.add(name, name);
    }
    REQUIRE(trees.get("p/") == 4);
    REQUIRE(trees.written() == Files{{"mine", "mine"},
                                     {"top/a", "p/a"},
                                     {"top/a!", "p/a!"},
                                     {"top/a-b", "p/a-b"},
                                     {"top/ab", "p/ab"}});
    REQUIRE(trees.watcher.failures.size() == 3);
    for (const std::string name : {"p/a/b", "p/a/b/c", "p/ab/c"}) {
        REQUIRE(trees.watcher.failures.at(name).cause == Cause::kName);
    }
    REQUIRE(trees.watcher.failures.at("p/a/b").problem.words.find("p/a is a file") !=
            std::string::npos);
}

TEST_CASE("client object tree: an object that fails does not stop the others", "[client]") {
    Trees trees;
    for (int i = 0; i < 20; ++i) {
        trees.add("p/" + std::to_string(i), "x", i % 2 == 0 ? 1 : 2);
    }
    trees.stage.store.missing.insert(2);
    const auto count = GENERATE(1U, 5U);
    trees.in_flight = count;

    SECTION("fetching") {
        REQUIRE(trees.get("p/") == 10);
    }
    SECTION("removing") {
        REQUIRE(trees.remove("p/") == 10);
    }

    REQUIRE(trees.watcher.failures.size() == 10);
    REQUIRE(trees.watcher.failures.at("p/1").problem.status == fop::Status::kMediumMissing);
}

TEST_CASE("client object tree: when it is cancelled, nothing is left by halves", "[client]") {
    const auto span = GENERATE(Duration{1ms}, Duration{5ms}, Duration{20ms}, Duration{50ms});
    Trees trees;
    Files files = numbered(200);
    for (int i = 0; i < 3; ++i) files["large" + std::to_string(i)] = std::string(5U << 20, 'x');

    SECTION("storing") {
        trees.write(files);
        const auto tree = trees.open();
        TreePut transfer(trees.world(), *trees.stage.client, *tree, {.name = "p/"}, trees.watcher,
                         trees.options());
        trees.stage.reactor->spawn(trees.stage.gate, transfer.run());
        trees.stage.world.run_for(span);
        trees.cancel.cancel();
        trees.stage.world.run_for(30s);
        REQUIRE(trees.stage.gate.count() == 0);
        const std::vector<std::string> names = trees.names();
        REQUIRE(names.size() < files.size());
        REQUIRE(names.size() >= transfer.objects());
        for (const std::string& name : names) {
            REQUIRE(trees.text_of(name) == files.at(name.substr(2)));
        }
        // No upload is left.
        REQUIRE(trees.stage.store.now.objects.size() == names.size());
    }
    SECTION("fetching") {
        for (const auto& [path, text] : files) trees.add("p/" + path, text);
        const auto tree = trees.open();
        ObjectWalk walk(*trees.stage.reactor, *trees.stage.client, {.prefix = "p/"});
        TreeGet transfer(trees.world(), *trees.stage.client, walk, *tree, trees.watcher,
                         trees.options());
        trees.stage.reactor->spawn(trees.stage.gate, transfer.run());
        trees.stage.world.run_for(span);
        trees.cancel.cancel();
        trees.stage.world.run_for(30s);
        REQUIRE(trees.stage.gate.count() == 0);
        Files written = trees.written();
        written.erase("mine");
        REQUIRE(written.size() == transfer.objects());
        REQUIRE(written.size() < files.size());
        for (const auto& [path, text] : written) REQUIRE(text == files.at(path.substr(4)));
    }
    REQUIRE(trees.watcher.failures.empty());
}

TEST_CASE("client object tree: only what is below the prefix is removed", "[client]") {
    Trees trees;
    trees.stage.store.names_of_page = 3;
    for (const std::string name : {"a", "a/", "a/b", "a/b/c", "a/d", "ab", "b/a/c"}) {
        trees.add(name, "12");
    }
    REQUIRE(trees.remove("a/") == 4);
    REQUIRE(trees.bytes == 8);
    REQUIRE(trees.names() == std::vector<std::string>{"a", "ab", "b/a/c"});
    REQUIRE(trees.watcher.failures.empty());
}

TEST_CASE("client object tree: files are opened and finished without blocking the sessions",
          "[client]") {
    Trees trees;
    for (const std::string name : {"p/a", "p/b", "p/c"}) trees.add(name, "");
    REQUIRE(trees.get("p/") == 3);
    REQUIRE(trees.offload.count == 6);
}

TEST_CASE("client object tree: a plan changes nothing", "[client]") {
    Trees trees;
    trees.only_plans = true;
    trees.write({{"a", "1"}, {"d/b", "22"}});
    REQUIRE(trees.put({.name = "p/"}) == 2);
    REQUIRE(trees.bytes == 3);
    REQUIRE(trees.watcher.planned["p/d/b"] == 2);
    REQUIRE(trees.names().empty());
    trees.watcher.planned.clear();
    trees.add("q/x", "333");
    REQUIRE(trees.get("q/") == 1);
    REQUIRE(trees.written() == Files{{"mine", "mine"}, {"top/a", "1"}, {"top/d/b", "22"}});
    REQUIRE(trees.remove("q/") == 1);
    REQUIRE(trees.watcher.planned["q/x"] == 3);
    REQUIRE(trees.names() == std::vector<std::string>{"q/x"});
}

// The clock of the file system must not show the time any more at which the files were written.
void wait_until_settled(const std::string& path) {
    struct stat info{};
    REQUIRE(::stat(path.c_str(), &info) == 0);
    timespec now{};
    do {
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (now.tv_sec < info.st_ctim.tv_sec ||
             (now.tv_sec == info.st_ctim.tv_sec && now.tv_nsec <= info.st_ctim.tv_nsec));
}

TEST_CASE("client object tree: what was stored is not stored again, unless either has changed",
          "[client]") {
    using Skip = TreeTransfer::Options::Skip;
    TempDir directory;
    const auto opened = PutJournal::open(directory / "journal", PutJournal::Access::kWrite);
    REQUIRE(opened.has_value());
    Trees trees;
    trees.skip = Skip::kEqual;
    trees.journal = opened->get();
    trees.write({{"a", "one"}, {"b", "two"}, {"c", "six"}});
    wait_until_settled(trees.top() + "/c");
    REQUIRE(trees.put({.name = "p/"}) == 3);
    REQUIRE(trees.put({.name = "p/"}) == 0);
    REQUIRE(trees.unchanged == 3);

    SECTION("a file has changed") {
        trees.write({{"b", "TWO"}});
        REQUIRE(trees.put({.name = "p/"}) == 1);
    }
    SECTION("a file with the same size and time has its name") {
        const fs::path file = fs::path(trees.top()) / "b";
        const auto time = fs::last_write_time(file);
        fs::remove(file);
        trees.write({{"b", "TWO"}});
        fs::last_write_time(file, time);
        REQUIRE(trees.put({.name = "p/"}) == 1);
        REQUIRE(trees.text_of("p/b") == "TWO");
    }
    SECTION("an object has changed") {
        auto& object = trees.stage.store.now.objects[trees.stage.store.now.names["p/b"]];
        object.bytes[0] = std::byte{'x'};
        ++object.version;
        REQUIRE(trees.put({.name = "p/"}) == 1);
    }
    SECTION("another object has its name") {
        trees.add("p/b", "xxx");
        REQUIRE(trees.put({.name = "p/"}) == 1);
    }
    SECTION("an object is gone") {
        trees.stage.store.now.names.erase("p/b");
        REQUIRE(trees.put({.name = "p/"}) == 1);
    }
    SECTION("the objects get a collection") {
        REQUIRE(trees.put({.name = "p/", .collection = "run-7"}) == 3);
        REQUIRE(trees.put({.name = "p/", .collection = "run-7"}) == 0);
    }
    SECTION("the objects get another group") {
        REQUIRE(trees.put({.name = "p/", .group = "others"}) == 3);
        REQUIRE(trees.put({.name = "p/", .group = "others"}) == 0);
    }
    SECTION("nothing is to be replaced") {
        REQUIRE(trees.put({.name = "p/", .no_replace = true}) == 0);
        REQUIRE(trees.unchanged == 0);
        REQUIRE(trees.watcher.failures.size() == 3);
        return;
    }
    SECTION("nothing is skipped") {
        trees.skip = Skip::kNothing;
        REQUIRE(trees.put({.name = "p/"}) == 3);
        trees.skip = Skip::kEqual;
    }
    REQUIRE(trees.watcher.failures.empty());
    wait_until_settled(trees.top() + "/b");
    trees.put({.name = "p/"});
    REQUIRE(trees.put({.name = "p/"}) == 0);
}

TEST_CASE("client object tree: a file is fetched again if it or its object has changed",
          "[client]") {
    using Skip = TreeTransfer::Options::Skip;
    Trees trees;
    trees.skip = GENERATE(Skip::kEqual, Skip::kSameSize);
    trees.add("p/a", "one");
    trees.add("p/b", "two");
    REQUIRE(trees.get("p/") == 2);
    REQUIRE(trees.get("p/") == 0);
    REQUIRE(trees.unchanged == 2);

    SECTION("the file has another size") {
        trees.write({{"b", "longer"}});
        REQUIRE(trees.get("p/") == 1);
    }
    SECTION("the file was written") {
        trees.write({{"b", "TWO"}});
        REQUIRE(trees.get("p/") == (trees.skip == Skip::kEqual ? 1 : 0));
    }
    SECTION("the object was written") {
        auto& object = trees.stage.store.now.objects[trees.stage.store.now.names["p/b"]];
        ++object.changed_ns;
        REQUIRE(trees.get("p/") == (trees.skip == Skip::kEqual ? 1 : 0));
    }
    SECTION("the file is gone") {
        fs::remove(fs::path(trees.top()) / "b");
        REQUIRE(trees.get("p/") == 1);
    }
}

TEST_CASE("client object tree: objects and files that are kept are not removed", "[client]") {
    Trees trees;
    for (const std::string name : {"p/a", "p/b", "p/c/d", "q"}) trees.add(name, "1");
    ObjectWalk walk(*trees.stage.reactor, *trees.stage.client, {.prefix = "p/"});
    TreeRemove remove(*trees.stage.reactor, *trees.stage.client, walk, trees.watcher,
                      trees.options());
    const std::vector<std::string> kept{"p/b", "p/e"};
    remove.keep(kept);
    trees.run(remove);
    REQUIRE(trees.names() == std::vector<std::string>{"p/b", "q"});

    trees.write(
        {{"a", "1"}, {"b/c", "2"}, {"b/d", "3"}, {"e/f/g", "4"}, {"e/h", "5"}, {"i\nj", "6"}});
    fs::create_directories(fs::path(trees.top()) / "empty/deep");
    fs::create_directory_symlink("..", fs::path(trees.top()) / "link");
    const auto tree = trees.open();
    const std::vector<std::string> files{"b/d", "e"};
    TreePrune prune(trees.world(), *tree, files, trees.watcher, trees.options());
    trees.run(prune);
    REQUIRE(trees.written() == Files{{"mine", "mine"}, {"top/b/d", "3"}});
    REQUIRE(fs::is_empty(trees.top()) == false);
    std::vector<std::string> left;
    for (const auto& each : fs::directory_iterator(trees.top()))
        left.push_back(each.path().filename());
    REQUIRE(left == std::vector<std::string>{"b"});
    REQUIRE(trees.watcher.failures.empty());
}

TEST_CASE("client object walk: the next object stays until it is taken", "[client]") {
    Trees trees;
    trees.add("a/1", "");
    trees.add("a/2", "");
    ObjectWalk walk(*trees.stage.reactor, *trees.stage.client, {.prefix = "a/"});
    REQUIRE(trees.stage.done(walk.peek())->name == "a/1");
    REQUIRE(trees.stage.done(walk.peek())->name == "a/1");
    REQUIRE(walk.take().name == "a/1");
    REQUIRE(trees.stage.done(walk.peek())->name == "a/2");
    REQUIRE(walk.take().name == "a/2");
    REQUIRE(trees.stage.done(walk.peek()) == nullptr);
    REQUIRE(trees.stage.done(walk.peek()) == nullptr);
}

TEST_CASE("client object walk: a list that is not in order ends it", "[client]") {
    using Pages = std::vector<std::vector<std::string>>;
    const auto pages = GENERATE(Pages{{"p/b", "p/a"}, {"p/c"}}, Pages{{"p/b", "p/b"}, {"p/c"}},
                                Pages{{"p/b"}, {"p/a"}, {"p/c"}}, Pages{{"p/b"}, {"p/b"}, {"p/c"}},
                                Pages{{"p/b"}, {}, {"p/b"}});
    Trees trees;
    trees.add("p/b", "2");
    trees.stage.store.forged_pages = pages;

    SECTION("each object is visited once") {
        ObjectWalk walk(*trees.stage.reactor, *trees.stage.client, {.prefix = "p/"});
        REQUIRE(trees.stage.done(walk.peek())->name == "p/b");
        walk.take();
        const auto next = trees.stage.run(walk.peek());
        REQUIRE_FALSE(next.has_value());
        REQUIRE(next.error().words == "the server's list is not in order");
        REQUIRE(trees.stage.done(walk.peek()) == nullptr);
    }
    SECTION("a tree is fetched up to there") {
        REQUIRE(trees.get("p/") == 1);
        REQUIRE(trees.watcher.failures.size() == 1);
        REQUIRE(trees.watcher.failures.at("p/").problem.words ==
                "the server's list is not in order");
    }
}

}  // namespace fopd::client::testing
