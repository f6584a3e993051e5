/* SPDX-License-Identifier: BSD-2-Clause */
#pragma once

/* libfopd: use a fopd from a C program. C++ programs find the same in <fopd/fopd.hpp>.
 *
 * A client is a session with one server, run by a thread of the library. It connects in the
 * background, and reconnects when the connection is lost. Calls in flight are then sent again if
 * that is safe. Other calls end as FOPD_OUTCOME_UNKNOWN if the server cannot tell whether they were
 * executed.
 *
 * Every call may be made from any thread, and any number of calls may be in flight. A call takes a
 * completion function, which the library calls once, on its own thread, when the call has ended.
 * The completion function must not block; it may make further calls. The caller keeps all memory
 * named in a call, except the call's options, valid and unchanged until then. Each call has a
 * blocking variant, whose name ends in _wait. On the library's thread a blocking variant fails at
 * once as FOPD_INVALID.
 *
 * The library ends no process, touches no signal and writes nothing to the terminal. After fork(2)
 * the child may not use the clients of its parent. */

#include <stddef.h>
#include <stdint.h>

/* NOLINTBEGIN(readability-identifier-naming, modernize-use-using): C. */

#define FOPD_API __attribute__((visibility("default")))

#ifdef __cplusplus
extern "C" {
#endif

/* How a call ended. Later versions may add numbers, and never change existing ones. */
enum fopd_status {
    FOPD_OK = 0,
    FOPD_INVALID = 1,          /* The request is not valid. */
    FOPD_UNREACHABLE = 2,      /* No fopd answers at the address. */
    FOPD_DENIED = 3,           /* The key is not accepted, or a right is missing. */
    FOPD_TRY_AGAIN = 4,        /* The server is still busy or draining after retries for 10 s. It
                                  has not begun the call. */
    FOPD_TIMED_OUT = 5,        /* The timeout passed before the call ended. */
    FOPD_CLOSED = 6,           /* The client was closed before the call ended. */
    FOPD_CANCELLED = 7,        /* The call was cancelled. */
    FOPD_CORRUPT = 8,          /* Data were damaged on the network or on the disk. */
    FOPD_NO_SPACE = 9,         /* A bounded resource is used up: memory, disk, a queue. */
    FOPD_NOT_FOUND = 10,       /* There is no such object, pool, slot or upload. */
    FOPD_OUTCOME_UNKNOWN = 11, /* The call may or may not have been executed. */
    FOPD_UNSUPPORTED = 12,     /* The server, or this host, cannot do it. */
    FOPD_FAILED = 13,          /* The server, a device or the network has failed. */
    FOPD_EXISTS = 14,          /* An object of that name exists already. */
    FOPD_QUOTA = 15,           /* The quota of the pool or the owner does not allow it. */
    FOPD_READ_ONLY = 16,       /* The disk takes no changes any more. */
    FOPD_MEDIUM_MISSING = 17,  /* The object is or may be on a missing disk, or the change may
                                  have been made there. */
    FOPD_LOST = 18,            /* An acknowledged buffered write is lost; the words name the object
                                  and the bytes. */
};

/* The name of a status, such as "denied"; "unknown" if this library does not know the number. */
FOPD_API const char* fopd_status_name(int status);

#define FOPD_WORDS_MAX 256

typedef struct fopd_result {
    int status;                 /* enum fopd_status */
    size_t bytes;               /* The number of bytes returned. */
    char words[FOPD_WORDS_MAX]; /* The reason of a failure, for people: one line, safe for a
                                   terminal. */
} fopd_result;

/* `result` is valid until the function returns. */
typedef void (*fopd_done)(const fopd_result* result, void* context);

/* -- the client -- */

typedef struct fopd_client fopd_client;

#define FOPD_TIMEOUT_DEFAULT 0        /* As the client's options say. */
#define FOPD_TIMEOUT_NEVER UINT64_MAX /* As long as it takes. */

typedef struct fopd_options {
    size_t size;          /* Set by fopd_options_init(). It says which fields the program knows. */
    const char* server;   /* "tcp://host:port", or "tcp://host:port/locality". A host name is
                             resolved until a first session is open, and all its addresses are
                             tried; reconnects use the address of that session. Schemes are tcp,
                             verbs and ofi+tcp; the latter two need the plug-in for libfabric
                             (package fopd-ofi). */
    const char* key_file; /* The file with a principal's key, 64 hexadecimal digits. It is refused
                             if others can read it. Without a key file the server must accept
                             clients without a key. */
    const char* user;     /* The user for whom this client acts, if its principal may; null for
                             itself. */
    const char* job;      /* The name of the job, which the server's rules can match; null for
                             none. */
    uint64_t timeout_us;  /* Of calls without a timeout of their own; 30 s by default. */
    const char* token;    /* A capability token or its file, which is sent with each call; null for
                             none. To use several, open a client for each. */
    const char* protect;  /* "seal", also if null: messages are authenticated, but not encrypted.
                             "encrypt", for tcp only: everything after the handshake is encrypted.
                             A server with another fabric.protect refuses the session. */
    int explain;          /* Not 0: the server reports where the time of each fop went; see
                             fopd_get_times(). */
} fopd_options;

/* Sets the defaults. `size` is sizeof(fopd_options); it says which fields the program knows. */
FOPD_API void fopd_options_init_sized(fopd_options* options, size_t size);
/* The same. The function of this name is for programs that were built with version 0.1.0, whose
 * options end before `explain`. */
FOPD_API void fopd_options_init(fopd_options* options);
#define fopd_options_init(options) fopd_options_init_sized((options), sizeof(fopd_options))

/* Makes a client, which begins to connect. On failure `why`, which may be null, has the reason.
 * The options are not used after the call. Returns the status. */
FOPD_API int fopd_open(const fopd_options* options, fopd_client** client, fopd_result* why);

/* Ends the calls in flight as FOPD_CLOSED, waits until all of them have ended, and frees the
 * client, which may be null. It also waits while the server's host name is being resolved. No
 * other call may be running in another thread. On the library's thread it does not wait: calls in
 * flight end after it has returned. */
FOPD_API void fopd_close(fopd_client* client);

/* How the time of the fops was spent: sums, in nanoseconds, over all fops that were answered since
 * the client was opened. A call may need several fops, which may overlap. */
typedef struct fopd_times {
    uint64_t fops;
    uint64_t total_ns;      /* From the call to the answer. */
    uint64_t unsent_ns;     /* Until the client could send the request. */
    uint64_t network_ns;    /* On the network, and in the network code of both sides. */
    uint64_t policy_ns;     /* Waited for a turn in the server's policy. */
    uint64_t buffer_ns;     /* Waited for a buffer of the server. */
    uint64_t lock_ns;       /* Waited for another fop: a lock, a name, the same request. */
    uint64_t client_ns;     /* The server moved bytes from or to this program. */
    uint64_t room_ns;       /* Waited for space in the log or on the disk. */
    uint64_t disk_queue_ns; /* Waited for a turn at the disk. */
    uint64_t disk_ns;       /* The disk read or wrote. */
    uint64_t log_ns;        /* Waited for the log of the disk to be durable. */
    uint64_t locality_ns;   /* Travelled to another locality of the server and back. */
    uint64_t server_ns;     /* The server computed: the rest of its time. */
} fopd_times;
/* Needs fopd_options.explain; otherwise, or from a server of version 0.1.0, all are 0. `size` is
 * sizeof(fopd_times); it says which fields the program knows. */
FOPD_API void fopd_get_times(fopd_client* client, fopd_times* times, size_t size);

/* -- calls -- */

typedef struct fopd_call {
    size_t size; /* As in fopd_options; set by fopd_call_init(). */
    uint64_t timeout_us;
    const char* job; /* Null: as the client's options say. */
} fopd_call;
FOPD_API void fopd_call_init(fopd_call* call);

/* `call` may be null for the defaults. A call that cannot begin also calls `done`, before it
 * returns. */

/* Ends when there is a session. Fails if the server refuses it or the first connect fails. */
FOPD_API void fopd_connected(fopd_client* client, const fopd_call* call, fopd_done done,
                             void* context);
FOPD_API int fopd_connected_wait(fopd_client* client, const fopd_call* call, fopd_result* result);

/* Ends when the server has answered. */
FOPD_API void fopd_ping(fopd_client* client, const fopd_call* call, fopd_done done, void* context);
FOPD_API int fopd_ping_wait(fopd_client* client, const fopd_call* call, fopd_result* result);

/* `bytes` bytes go to the server in its request and come back with its reply. More bytes than
 * the server takes in a message are FOPD_INVALID. This and fopd_bulk_echo() need the right to
 * administer; fopd_ping() needs no right. */
FOPD_API void fopd_echo(fopd_client* client, const fopd_call* call, const void* data, void* into,
                        size_t bytes, fopd_done done, void* context);
FOPD_API int fopd_echo_wait(fopd_client* client, const fopd_call* call, const void* data,
                            void* into, size_t bytes, fopd_result* result);

/* The same for up to 16 MiB: the server fetches the bytes from `data` and writes them back to
 * `into`. */
FOPD_API void fopd_bulk_echo(fopd_client* client, const fopd_call* call, const void* data,
                             void* into, size_t bytes, fopd_done done, void* context);
FOPD_API int fopd_bulk_echo_wait(fopd_client* client, const fopd_call* call, const void* data,
                                 void* into, size_t bytes, fopd_result* result);

/* -- objects --
 *
 * An object is a sparse array of bytes with a name that is unique in its pool. Calls that work on
 * its bytes identify it by its fid, which stays the same when its name changes; fopd_lookup()
 * returns the fid. A null pool means the server's default pool.
 *
 * A buffered write is acknowledged as soon as it is visible. The client keeps its data until they
 * are durable, and writes them again if the server has restarted and lost them; fopd_sync() waits
 * until all of them are durable. All other calls are durable when they have ended. A long read or
 * write is divided into several fops, so only fopd_put() is atomic.
 *
 * A lost buffered write is not written again if another client has changed the bytes or removed
 * the object since, or if the server refuses it for a lasting reason, such as a full disk.
 * FOPD_LOST reports it once, with words that name the object by its fid, the bytes and the reason.
 * The next call about the object or the next sync, whichever comes first, fails with FOPD_LOST; the
 * call about the object has done nothing, and may be repeated. If a lost write cannot be written
 * again for a temporary reason, the next calls retry it. Until one succeeds, fopd_sync() and calls
 * that look at the object or append to it fail with that reason. Other calls are not affected. */

#define FOPD_NAME_MAX 480
#define FOPD_PRINCIPAL_MAX 64

typedef struct fopd_fid {
    uint64_t high;
    uint64_t low;
} fopd_fid;

typedef struct fopd_object {
    size_t size; /* As in fopd_options; set by fopd_object_init(). */
    fopd_fid fid;
    uint64_t size_bytes;
    uint64_t allocated_bytes;
    uint64_t version;
    uint64_t created_ns; /* Since 1970. */
    uint64_t changed_ns;
    uint32_t mode; /* Nine permission bits. */
    char owner[FOPD_PRINCIPAL_MAX + 1];
    char group[FOPD_PRINCIPAL_MAX + 1];
    char name[FOPD_NAME_MAX + 1];
    char collection[FOPD_PRINCIPAL_MAX + 1]; /* Empty: the objects of its group form one. */
} fopd_object;
FOPD_API void fopd_object_init(fopd_object* object);

/* The parameters of a new object. */
typedef struct fopd_new_object {
    size_t size; /* As in fopd_options; set by fopd_new_object_init(). */
    const char* name;
    const char* pool;
    const char* group;      /* Null: the first group of the principal. */
    uint32_t mode;          /* 0640 by default. */
    int no_replace;         /* FOPD_EXISTS instead of replacing an object of that name. */
    const char* collection; /* Objects of a collection are kept together on tape. Null: those of
                               `group` are. */
} fopd_new_object;
FOPD_API void fopd_new_object_init(fopd_new_object* object);

/* Creates an object with these bytes. Readers of its name see the whole object, or the object that
 * had the name before. `fid` may be null. */
FOPD_API void fopd_put(fopd_client* client, const fopd_call* call, const fopd_new_object* object,
                       const void* data, size_t bytes, fopd_fid* fid, fopd_done done,
                       void* context);
FOPD_API int fopd_put_wait(fopd_client* client, const fopd_call* call,
                           const fopd_new_object* object, const void* data, size_t bytes,
                           fopd_fid* fid, fopd_result* result);

/* Reads the first `bytes` bytes of an object, or the whole object if it is smaller; `object`, which
 * may be null, gets its attributes. */
FOPD_API void fopd_get(fopd_client* client, const fopd_call* call, const char* pool,
                       const char* name, void* into, size_t bytes, fopd_object* object,
                       fopd_done done, void* context);
FOPD_API int fopd_get_wait(fopd_client* client, const fopd_call* call, const char* pool,
                           const char* name, void* into, size_t bytes, fopd_object* object,
                           fopd_result* result);

/* The attributes of an object. */
FOPD_API void fopd_lookup(fopd_client* client, const fopd_call* call, const char* pool,
                          const char* name, fopd_object* object, fopd_done done, void* context);
FOPD_API int fopd_lookup_wait(fopd_client* client, const fopd_call* call, const char* pool,
                              const char* name, fopd_object* object, fopd_result* result);
FOPD_API void fopd_stat(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                        fopd_object* object, fopd_done done, void* context);
FOPD_API int fopd_stat_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                            fopd_object* object, fopd_result* result);

/* Reads bytes of an object. The result has fewer bytes than asked for only at the object's end. */
FOPD_API void fopd_read(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                        uint64_t offset, void* into, size_t bytes, fopd_done done, void* context);
FOPD_API int fopd_read_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                            uint64_t offset, void* into, size_t bytes, fopd_result* result);

enum fopd_durability {
    FOPD_DURABLE = 0,
    FOPD_BUFFERED = 1,
};

FOPD_API void fopd_write(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                         uint64_t offset, const void* data, size_t bytes, int durability,
                         fopd_done done, void* context);
FOPD_API int fopd_write_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                             uint64_t offset, const void* data, size_t bytes, int durability,
                             fopd_result* result);

/* Appends at most FOPD_APPEND_MAX bytes, atomically. `offset`, which may be null, is set to the
 * offset of the first one. */
#define FOPD_APPEND_MAX (4U << 20)
FOPD_API void fopd_append(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                          const void* data, size_t bytes, uint64_t* offset, fopd_done done,
                          void* context);
FOPD_API int fopd_append_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                              const void* data, size_t bytes, uint64_t* offset,
                              fopd_result* result);

/* Sets the object's size: cuts its end off, or extends it with a hole. */
FOPD_API void fopd_truncate(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                            uint64_t size_bytes, fopd_done done, void* context);
FOPD_API int fopd_truncate_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                                uint64_t size_bytes, fopd_result* result);

/* Makes a hole, which reads as zeros; the size stays. */
FOPD_API void fopd_punch(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                         uint64_t offset, uint64_t bytes, fopd_done done, void* context);
FOPD_API int fopd_punch_wait(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                             uint64_t offset, uint64_t bytes, fopd_result* result);

/* Owner, group and mode of an object. */
#define FOPD_MODE_KEPT UINT32_MAX
typedef struct fopd_attributes {
    size_t size;       /* As in fopd_options; set by fopd_attributes_init(). */
    const char* owner; /* Null: unchanged. For administrators only. */
    const char* group; /* Null: unchanged; "": none. */
    uint32_t mode;     /* Nine permission bits, or FOPD_MODE_KEPT. */
} fopd_attributes;
/* Sets values that change no attribute. */
FOPD_API void fopd_attributes_init(fopd_attributes* attributes);
FOPD_API void fopd_set_attributes(fopd_client* client, const fopd_call* call, const fopd_fid* fid,
                                  const fopd_attributes* attributes, fopd_done done, void* context);
FOPD_API int fopd_set_attributes_wait(fopd_client* client, const fopd_call* call,
                                      const fopd_fid* fid, const fopd_attributes* attributes,
                                      fopd_result* result);

/* Replaces an object of the new name unless `no_replace` is set. */
FOPD_API void fopd_rename(fopd_client* client, const fopd_call* call, const char* pool,
                          const char* name, const char* new_name, int no_replace, fopd_done done,
                          void* context);
FOPD_API int fopd_rename_wait(fopd_client* client, const fopd_call* call, const char* pool,
                              const char* name, const char* new_name, int no_replace,
                              fopd_result* result);

FOPD_API void fopd_remove(fopd_client* client, const fopd_call* call, const char* pool,
                          const char* name, fopd_done done, void* context);
FOPD_API int fopd_remove_wait(fopd_client* client, const fopd_call* call, const char* pool,
                              const char* name, fopd_result* result);

/* Waits until all buffered writes of this client are durable. FOPD_LOST: some are lost, and all
 * others are durable. Each FOPD_LOST names at most one object: repeat the call until it returns
 * FOPD_OK to learn of every loss. */
FOPD_API void fopd_sync(fopd_client* client, const fopd_call* call, fopd_done done, void* context);
FOPD_API int fopd_sync_wait(fopd_client* client, const fopd_call* call, fopd_result* result);

/* fopd_list() lists some of the names that begin with a prefix, in byte order. When it has listed
 * the last name that is known, it ends as FOPD_MEDIUM_MISSING if a disk of the pool is missing or
 * incomplete, and may have others. */
typedef struct fopd_entry {
    fopd_fid fid;
    uint64_t size_bytes; /* UINT64_MAX: unknown, because the object's disk is missing. */
    uint64_t changed_ns; /* 0 if the size is unknown. */
    const char* name;    /* Valid until each() returns. */
} fopd_entry;
typedef struct fopd_listing {
    size_t size; /* As in fopd_options; set by fopd_listing_init(). */
    const char* pool;
    const char* prefix; /* Null: every name. */
    /* Called for each name on the library's thread, before `done` is, under the same rules. */
    void (*each)(const fopd_entry* entry, void* context);
    void* context;
    int end;                        /* Not 0: there are no more names. */
    char cursor[FOPD_NAME_MAX + 1]; /* If `end` is 0: where the next call continues. */
} fopd_listing;
FOPD_API void fopd_listing_init(fopd_listing* listing);
FOPD_API void fopd_list(fopd_client* client, const fopd_call* call, fopd_listing* listing,
                        fopd_done done, void* context);
FOPD_API int fopd_list_wait(fopd_client* client, const fopd_call* call, fopd_listing* listing,
                            fopd_result* result);

/* The space in a pool, or in all pools together if `pool` is null. */
typedef struct fopd_space {
    size_t size; /* As in fopd_options; set by fopd_space_init(). */
    uint64_t total_bytes;
    uint64_t used_bytes;
    uint64_t free_bytes;
    uint64_t objects;
} fopd_space;
FOPD_API void fopd_space_init(fopd_space* space);
FOPD_API void fopd_statfs(fopd_client* client, const fopd_call* call, const char* pool,
                          fopd_space* space, fopd_done done, void* context);
FOPD_API int fopd_statfs_wait(fopd_client* client, const fopd_call* call, const char* pool,
                              fopd_space* space, fopd_result* result);

/* The use and the limits of an owner, or of all owners together, in a pool. */
#define FOPD_NO_LIMIT UINT64_MAX
typedef struct fopd_quota_use {
    const char* pool;  /* Both are valid until each() returns. */
    const char* owner; /* Null: all that is in the pool. */
    uint64_t used_bytes;
    uint64_t limit_bytes; /* FOPD_NO_LIMIT: none; so is limit_objects. */
    uint64_t used_objects;
    uint64_t limit_objects;
} fopd_quota_use;
/* Called on the library's thread, before `done` is, under the same rules. */
typedef void (*fopd_each_quota)(const fopd_quota_use* use, void* context);
/* Reports the caller's quota use in a pool, or in each pool if `pool` is null. An administrator
 * gets the use of every owner. `context` is passed to both functions. */
FOPD_API void fopd_quota(fopd_client* client, const fopd_call* call, const char* pool,
                         fopd_each_quota each, fopd_done done, void* context);
FOPD_API int fopd_quota_wait(fopd_client* client, const fopd_call* call, const char* pool,
                             fopd_each_quota each, void* context, fopd_result* result);

#ifdef __cplusplus
} /* extern "C" */
#endif

/* NOLINTEND(readability-identifier-naming, modernize-use-using) */
