/* Uses libfopd as a foreign C program would: ADDRESS KEY-FILE. Exits with the number of the first
   step that failed. */
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

int main(int argc, char** argv) {
    if (argc != 3) return 1;
    fopd_options options;
    fopd_options_init(&options);
    options.server = argv[1];
    options.key_file = argv[2];
    options.job = "test";
    fopd_client* client = NULL;
    fopd_result result;
    if (fopd_open(&options, &client, &result) != FOPD_OK) return failed(2, &result);
    if (fopd_connected_wait(client, NULL, &result) != FOPD_OK) return failed(3, &result);

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
