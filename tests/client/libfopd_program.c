/* Uses libfopd as a foreign C program would: ADDRESS KEY-FILE, and with "objects" behind them what
   it does with those. Exits with the number of the first step that failed. */
#include <fopd/fopd.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct Waiting {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int ended;
    int status;
};

static void on_done(const fopd_result* result, void* context) {
    struct Waiting* const waiting = context;
    pthread_mutex_lock(&waiting->mutex);
    waiting->ended = 1;
    waiting->status = result->status;
    pthread_cond_signal(&waiting->changed);
    pthread_mutex_unlock(&waiting->mutex);
}

static int failed(int step, const fopd_result* result) {
    fprintf(stderr, "step %d: %s: %s\n", step, fopd_status_name(result->status), result->words);
    return step;
}

static void count_entry(const fopd_entry* entry, void* context) {
    if (strncmp(entry->name, "c-", 2) == 0) ++*(int*)context;
}

struct Quotas {
    int count;
    uint64_t pool_objects;
};

static void add_quota(const fopd_quota_use* use, void* context) {
    struct Quotas* const quotas = context;
    ++quotas->count;
    if (use->owner == NULL && use->limit_bytes == FOPD_NO_LIMIT && strcmp(use->pool, "fast") == 0) {
        quotas->pool_objects = use->used_objects;
    }
}

static int use_objects(fopd_client* client) {
    fopd_result result;
    fopd_new_object made;
    fopd_new_object_init(&made);
    made.name = "c-one";
    fopd_fid fid;
    if (fopd_put_wait(client, NULL, &made, "hello", 5, &fid, &result) != FOPD_OK) {
        return failed(20, &result);
    }
    made.no_replace = 1;
    if (fopd_put_wait(client, NULL, &made, "", 0, NULL, &result) != FOPD_EXISTS) return 21;

    char into[32] = {0};
    fopd_object object;
    fopd_object_init(&object);
    if (fopd_get_wait(client, NULL, NULL, "c-one", into, sizeof into, &object, &result) !=
        FOPD_OK) {
        return failed(22, &result);
    }
    if (result.bytes != 5 || memcmp(into, "hello", 5) != 0 || object.size_bytes != 5) return 23;
    if (object.fid.high != fid.high || strcmp(object.name, "c-one") != 0) return 24;

    struct Waiting waiting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    fopd_write(client, NULL, &fid, 3, "p me", 4, FOPD_BUFFERED, &on_done, &waiting);
    pthread_mutex_lock(&waiting.mutex);
    while (!waiting.ended) pthread_cond_wait(&waiting.changed, &waiting.mutex);
    pthread_mutex_unlock(&waiting.mutex);
    if (waiting.status != FOPD_OK) return 25;
    if (fopd_sync_wait(client, NULL, &result) != FOPD_OK) return failed(26, &result);
    uint64_t offset = 0;
    if (fopd_append_wait(client, NULL, &fid, "!", 1, &offset, &result) != FOPD_OK || offset != 7) {
        return failed(27, &result);
    }
    if (fopd_read_wait(client, NULL, &fid, 0, into, sizeof into, &result) != FOPD_OK) {
        return failed(28, &result);
    }
    if (result.bytes != 8 || memcmp(into, "help me!", 8) != 0) return 29;
    if (fopd_punch_wait(client, NULL, &fid, 0, 4, NULL) != FOPD_OK) return 30;
    if (fopd_truncate_wait(client, NULL, &fid, 5, NULL) != FOPD_OK) return 31;
    if (fopd_read_wait(client, NULL, &fid, 0, into, sizeof into, &result) != FOPD_OK) return 32;
    if (result.bytes != 5 || memcmp(into, "\0\0\0\0 ", 5) != 0) return 33;

    if (fopd_rename_wait(client, NULL, NULL, "c-one", "c-two", 0, &result) != FOPD_OK) {
        return failed(34, &result);
    }
    if (fopd_stat_wait(client, NULL, &fid, &object, &result) != FOPD_OK) return failed(35, &result);
    if (strcmp(object.name, "c-two") != 0) return 36;
    int count = 0;
    fopd_listing listing;
    fopd_listing_init(&listing);
    listing.prefix = "c-";
    listing.each = &count_entry;
    listing.context = &count;
    if (fopd_list_wait(client, NULL, &listing, &result) != FOPD_OK) return failed(37, &result);
    if (count != 1 || !listing.end) return 38;
    fopd_space space;
    fopd_space_init(&space);
    if (fopd_statfs_wait(client, NULL, NULL, &space, &result) != FOPD_OK || space.objects == 0) {
        return failed(39, &result);
    }
    if (fopd_statfs_wait(client, NULL, "nowhere", &space, &result) != FOPD_NOT_FOUND) return 40;
    struct Quotas quotas = {0, 0};
    if (fopd_quota_wait(client, NULL, NULL, &add_quota, &quotas, &result) != FOPD_OK) {
        return failed(50, &result);
    }
    if (quotas.count < 2 || quotas.pool_objects != space.objects) return 51;
    if (fopd_quota_wait(client, NULL, "nowhere", &add_quota, &quotas, &result) == FOPD_OK) {
        return 52;
    }
    if (fopd_quota_wait(client, NULL, NULL, NULL, NULL, &result) != FOPD_INVALID) return 53;
    fopd_attributes attributes;
    fopd_attributes_init(&attributes);
    attributes.group = "crew";
    if (fopd_set_attributes_wait(client, NULL, &fid, &attributes, &result) != FOPD_OK) {
        return failed(54, &result);
    }
    attributes.group = NULL;
    attributes.mode = 0604;
    if (fopd_set_attributes_wait(client, NULL, &fid, &attributes, &result) != FOPD_OK) {
        return failed(55, &result);
    }
    if (fopd_stat_wait(client, NULL, &fid, &object, &result) != FOPD_OK) return failed(56, &result);
    if (object.mode != 0604 || strcmp(object.group, "crew") != 0) return 57;
    attributes.mode = 01000;
    if (fopd_set_attributes_wait(client, NULL, &fid, &attributes, NULL) != FOPD_INVALID) return 58;

    if (fopd_remove_wait(client, NULL, NULL, "c-two", &result) != FOPD_OK)
        return failed(41, &result);
    if (fopd_lookup_wait(client, NULL, NULL, "c-two", &object, &result) != FOPD_NOT_FOUND)
        return 42;
    if (result.words[0] == '\0') return 43;

    if (fopd_lookup_wait(client, NULL, NULL, "", &object, &result) != FOPD_INVALID) return 44;
    char long_name[FOPD_NAME_MAX + 2];
    memset(long_name, 'n', sizeof long_name);
    long_name[FOPD_NAME_MAX + 1] = '\0';
    if (fopd_lookup_wait(client, NULL, NULL, long_name, &object, &result) != FOPD_INVALID)
        return 60;
    long_name[FOPD_NAME_MAX] = '\0';
    if (fopd_lookup_wait(client, NULL, NULL, long_name, &object, &result) != FOPD_NOT_FOUND)
        return 61;
    made.name = "\xc3(";
    if (fopd_put_wait(client, NULL, &made, "", 0, NULL, &result) != FOPD_INVALID) return 62;
    made.name = NULL;
    if (fopd_put_wait(client, NULL, &made, "", 0, NULL, &result) != FOPD_INVALID) return 63;
    const uint64_t limit = UINT64_C(1) << 60;
    made.name = "c-far";
    if (fopd_put_wait(client, NULL, &made, "", 0, &fid, &result) != FOPD_OK) {
        return failed(64, &result);
    }
    if (fopd_write_wait(client, NULL, &fid, limit - 1, "x", 1, FOPD_DURABLE, &result) != FOPD_OK) {
        return failed(65, &result);
    }
    if (fopd_write_wait(client, NULL, &fid, limit - 1, "xy", 2, FOPD_DURABLE, NULL) != FOPD_INVALID)
        return 66;
    if (fopd_write_wait(client, NULL, &fid, limit, "x", 1, FOPD_DURABLE, NULL) != FOPD_INVALID)
        return 67;
    if (fopd_read_wait(client, NULL, &fid, limit - 1, into, 2, &result) != FOPD_OK) {
        return failed(68, &result);
    }
    if (result.bytes != 1 || into[0] != 'x') return 69;
    if (fopd_read_wait(client, NULL, &fid, limit, into, 1, &result) != FOPD_OK) {
        return failed(70, &result);
    }
    if (result.bytes != 0) return 71;
    if (fopd_read_wait(client, NULL, &fid, limit + 1, into, 1, NULL) != FOPD_INVALID) return 72;
    if (fopd_append_wait(client, NULL, &fid, "x", 1, NULL, NULL) == FOPD_OK) return 73;
    if (fopd_truncate_wait(client, NULL, &fid, limit + 1, NULL) != FOPD_INVALID) return 74;
    if (fopd_truncate_wait(client, NULL, &fid, limit - 1, NULL) != FOPD_OK) return 75;
    if (fopd_read_wait(client, NULL, &fid, 0, NULL, 0, NULL) != FOPD_OK) return 76;
    if (fopd_write_wait(client, NULL, &fid, 0, NULL, 0, FOPD_DURABLE, NULL) != FOPD_OK) return 77;
    if (fopd_append_wait(client, NULL, &fid, NULL, 0, NULL, NULL) != FOPD_OK) return 78;
    if (fopd_punch_wait(client, NULL, &fid, 0, 0, NULL) != FOPD_OK) return 79;
    if (fopd_remove_wait(client, NULL, NULL, "c-far", &result) != FOPD_OK)
        return failed(80, &result);
    if (fopd_read_wait(client, NULL, NULL, 0, into, 1, &result) != FOPD_INVALID) return 45;
    if (fopd_read_wait(client, NULL, &fid, 0, NULL, 1, &result) != FOPD_INVALID) return 46;
    if (fopd_write_wait(client, NULL, &fid, UINT64_MAX, "x", 1, 0, &result) != FOPD_INVALID)
        return 47;
    return 0;
}

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) return 1;
    fopd_options options;
    fopd_options_init(&options);
    options.server = argv[1];
    options.key_file = argv[2];
    options.job = "test";
    fopd_client* client = NULL;
    fopd_result result;
    if (fopd_open(&options, &client, &result) != FOPD_OK) return failed(2, &result);
    if (fopd_connected_wait(client, NULL, &result) != FOPD_OK) return failed(3, &result);
    if (argc == 4) {
        const int step = use_objects(client);
        fopd_close(client);
        return step;
    }

    fopd_call call;
    fopd_call_init(&call);
    call.timeout_us = 10000000;
    if (fopd_ping_wait(client, &call, &result) != FOPD_OK) return failed(4, &result);

    const char data[] = "hello";
    char into[sizeof data];
    memset(into, 0, sizeof into);
    if (fopd_bulk_echo_wait(client, NULL, data, into, sizeof data, NULL) != FOPD_OK) return 5;
    if (memcmp(data, into, sizeof data) != 0) return 6;

    struct Waiting waiting = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0, 0};
    memset(into, 0, sizeof into);
    fopd_echo(client, NULL, data, into, sizeof data, &on_done, &waiting);
    pthread_mutex_lock(&waiting.mutex);
    while (!waiting.ended) pthread_cond_wait(&waiting.changed, &waiting.mutex);
    pthread_mutex_unlock(&waiting.mutex);
    if (waiting.status != FOPD_OK || memcmp(data, into, sizeof data) != 0) return 7;

    if (fopd_echo_wait(client, NULL, NULL, NULL, 1, &result) != FOPD_INVALID) return 8;
    if (fopd_ping_wait(NULL, NULL, &result) != FOPD_INVALID) return 9;
    if (strcmp(fopd_status_name(FOPD_DENIED), "denied") != 0) return 10;
    fopd_close(client);
    fopd_close(NULL);
    return 0;
}
