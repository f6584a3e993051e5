// Uses libfopd as a foreign C++ program would: ADDRESS KEY-FILE, and with "objects" behind them
// what it does with those.
#include <algorithm>
#include <cstdio>
#include <future>
#include <string>
#include <vector>

#include <fopd/fopd.hpp>

namespace {

int use_objects(const libfopd::Client& client) {
    libfopd::NewObject made;
    made.name = "cpp-one";
    const std::string data(100'000, 'x');
    libfopd::Fid fid{};
    if (const auto put = client.put(made, data.data(), data.size(), &fid); !put) {
        std::fprintf(stderr, "put: %s\n", put.words.c_str());
        return 20;
    }
    std::string into(data.size() + 1, '?');
    const auto got = client.get("", "cpp-one", into.data(), into.size());
    if (!got || got.bytes != data.size() || into.compare(0, data.size(), data) != 0) return 21;

    std::promise<libfopd::Outcome> written;
    client.write(fid, 1, "yy", 2, libfopd::Durability::kBuffered, {},
                 [&written](const libfopd::Outcome& outcome) { written.set_value(outcome); });
    if (!written.get_future().get() || !client.sync()) return 22;
    std::uint64_t offset = 0;
    if (!client.append(fid, "z", 1, &offset) || offset != data.size()) return 23;
    if (!client.punch(fid, 4, 1) || !client.truncate(fid, 6)) return 24;
    const auto read = client.read(fid, 0, into.data(), into.size());
    if (!read || into.substr(0, read.bytes) != std::string("xyyx\0x", 6)) return 25;

    if (!client.rename("", "cpp-one", "cpp-two", false)) return 26;
    std::promise<libfopd::Outcome> found;
    libfopd::Object object;
    client.lookup("", "cpp-two", &object, {},
                  [&found](const libfopd::Outcome& outcome) { found.set_value(outcome); });
    if (!found.get_future().get() || object.size_bytes != 6 || object.name != "cpp-two") return 27;
    if (!client.stat(fid, &object) || object.fid.low != fid.low) return 28;
    libfopd::Listing listing;
    listing.prefix = "cpp-";
    if (!client.list(&listing) || listing.entries.size() != 1 || !listing.end) return 29;
    if (listing.entries[0].name != "cpp-two") return 30;
    libfopd::Space space;
    if (!client.statfs("", &space) || space.objects == 0) return 31;
    std::vector<libfopd::QuotaUse> uses;
    if (!client.quota("", &uses) || uses.size() < 2) return 34;
    const auto is_used = [](const libfopd::QuotaUse& use) { return use.used_objects > 0; };
    if (std::none_of(uses.begin(), uses.end(), is_used)) return 34;
    std::promise<libfopd::Outcome> counted;
    client.quota("fast", &uses, {},
                 [&counted](const libfopd::Outcome& outcome) { counted.set_value(outcome); });
    if (!counted.get_future().get() || uses.empty()) return 35;
    libfopd::Attributes attributes;
    attributes.mode = 0600;
    if (!client.set_attributes(fid, attributes)) return 36;
    if (!client.stat(fid, &object) || object.mode != 0600) return 37;
    if (!client.remove("", "cpp-two")) return 32;
    return client.stat(fid, &object).status == libfopd::Status::kNotFound ? 0 : 33;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) return 1;
    libfopd::Options options;
    options.server = argv[1];
    options.key_file = argv[2];
    libfopd::Client client;
    if (const auto opened = libfopd::Client::open(options, client); !opened) {
        std::fprintf(stderr, "%s: %s\n", to_string(opened.status), opened.words.c_str());
        return 2;
    }
    if (!client.ping()) return 3;
    if (argc == 4) return use_objects(client);
    const std::string data = "hello";
    std::string into(data.size(), '?');
    std::promise<libfopd::Outcome> ended;
    client.echo(data.data(), into.data(), data.size(), {},
                [&ended](const libfopd::Outcome& outcome) { ended.set_value(outcome); });
    return ended.get_future().get() && into == data ? 0 : 4;
}
