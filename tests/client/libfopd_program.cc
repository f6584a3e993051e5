// Uses libfopd as a foreign C++ program would: ADDRESS KEY-FILE.
#include <cstdio>
#include <future>
#include <string>

#include <fopd/fopd.hpp>

int main(int argc, char** argv) {
    if (argc != 3) return 1;
    libfopd::Options options;
    options.server = argv[1];
    options.key_file = argv[2];
    libfopd::Client client;
    if (const auto opened = libfopd::Client::open(options, client); !opened) {
        std::fprintf(stderr, "%s: %s\n", to_string(opened.status), opened.words.c_str());
        return 2;
    }
    if (!client.ping()) return 3;
    const std::string data = "hello";
    std::string into(data.size(), '?');
    std::promise<libfopd::Outcome> ended;
    client.echo(data.data(), into.data(), data.size(), {},
                [&ended](const libfopd::Outcome& outcome) { ended.set_value(outcome); });
    return ended.get_future().get() && into == data ? 0 : 4;
}
