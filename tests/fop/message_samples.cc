// Writes the sample messages, or with a second argument the sample listings, into a directory, for
// the fuzzers to start from; without one, shows the worked examples of docs/formats/message.md and
// docs/formats/listing.md.
#include <cstdio>
#include <fstream>

#include "tests/fop/samples.h"

int main(int argc, char* argv[]) {
    using namespace fopd::fop;
    if (argc == 1) {
        std::fputs(hex_dump(example_message()).c_str(), stdout);
        std::fputs(hex_dump(example_listing()).c_str(), stdout);
        return 0;
    }
    for (const SampleMessage& sample : argc > 2 ? sample_listings() : sample_messages()) {
        const std::string path = std::string(argv[1]) + "/" + sample.name;
        std::ofstream file(path, std::ios::binary);
        file.write(reinterpret_cast<const char*>(sample.bytes.data()),
                   static_cast<std::streamsize>(sample.bytes.size()));
        if (!file.flush()) {
            std::fprintf(stderr, "message_samples: cannot write %s\n", path.c_str());
            return 1;
        }
    }
    return 0;
}
