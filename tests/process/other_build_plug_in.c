/* A plug-in as another build of fopd has it, with the beginning that all builds share. Without libfabric. */
static void *make(void) { return 0; }

struct plug_in {
    const char *build;
    void *(*make)(void);
};
extern const struct plug_in fopd_ofi_plug_in_1;
const struct plug_in fopd_ofi_plug_in_1 = {"0.0.9 0123456789abcdef", make};
