#if FOPD_CATCH_VERSION == 2
#define CATCH_CONFIG_RUNNER
#endif
#include "tests/catch.h"

int main(int argc, char* argv[]) {
    return Catch::Session().run(argc, argv);
}
