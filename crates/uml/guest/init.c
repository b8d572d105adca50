// The first process of a guest: it takes a job from ackclock, configures the interface, and runs the
// job's application. The whole conversation is in Ethernet frames of a type of their own on the
// guest's interface, which ackclock takes out: it costs no link of the scenario anything, and it
// happens in virtual time like everything else.
//
//   guest                      ackclock
//     hello            --->
//                      <---    job lines, the last of which is `end`
//     ready            --->                                            time 0 of the run begins
//                      <---    go
//     info, got, ...   --->
//
// The file is complete: `gcc -O2 -static init.c -o init`, or any other C library.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_link.h>
#include <linux/pkt_sched.h>
#include <linux/random.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

// IEEE Std 802 - Local Experimental Ethertype 1.
#define FRAMES 0x88B5
#define DEVICE "eth0"
#define LINE 1400

// As <linux/ipv6.h>, which does not go together with <netinet/in.h>.
struct in6_ifreq6 { struct in6_addr address; uint32_t prefix; int index; };
struct in6_rtmsg6 {
    struct in6_addr dst, src, gateway;
    uint32_t type;
    uint16_t dst_len, src_len;
    uint32_t metric;
    unsigned long info;
    uint32_t flags;
    int index;
};

static int wire = -1, device_index;
static char data[1 << 17];

static void tell(const char *format, ...) {
    char text[LINE];
    va_list args;
    va_start(args, format);
    int len = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (len >= (int)sizeof text) len = sizeof text - 1;
    struct sockaddr_ll to = {.sll_family = AF_PACKET, .sll_protocol = htons(FRAMES), .sll_ifindex = device_index, .sll_halen = 6};
    while (sendto(wire, text, len, 0, (void *)&to, sizeof to) < 0 && (errno == ENOBUFS || errno == EINTR)) usleep(1000);
}

// What may help where something does not exist (ENOENT), for the end of the message.
static char hint[300];

static void fail(const char *what, const char *of) {
    int error = errno;
    if (error != ENOENT) *hint = 0;
    printf("ackclock: %s %s: %s%s\n", what, of, strerror(error), hint);
    if (wire >= 0) tell("failed %s %s: %s%s", what, of, strerror(error), hint);
    for (;;) pause();
}

static void check(int result, const char *what, const char *of) {
    if (result < 0) fail(what, of);
}

// Insertions, deletions and substitutions that turn one name into the other.
static int distance(const char *a, const char *b) {
    int row[64], len = strlen(b);
    if (len > 63) return 64;
    for (int j = 0; j <= len; j++) row[j] = j;
    for (int i = 1; *a; a++, i++) {
        int diagonal = row[0];
        row[0] = i;
        for (int j = 1; j <= len; j++) {
            int least = diagonal + (*a != b[j - 1]);
            diagonal = row[j];
            if (diagonal + 1 < least) least = diagonal + 1;
            if (row[j - 1] + 1 < least) least = row[j - 1] + 1;
            row[j] = least;
        }
    }
    return row[len];
}

// Keeps the name that is nearest to another, if it is near: as for keys of scenarios, one letter in three may differ, and three at most.
static int keep_nearest(const char *found, const char *name, const char *before, int *least) {
    int most = strlen(found) / 3, d = distance(found, name);
    most = most < 1 ? 1 : most > 3 ? 3 : most;
    if (d > most || d >= *least || d >= (int)strlen(name)) return 0;
    *least = d;
    snprintf(hint, sizeof hint, "; did you mean %s%s?", before, name);
    return 1;
}

static uint64_t now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// The settings of a job. A key that may stand several times is carried out when it is read.
static struct {
    char app[16], peer[64], cc[16], root[512], command[LINE];
    int port, source_port, mtu, buffer, sample_ms, connections;
    uint64_t bytes, start_ns, stop_ns, duration_ns, request, response, think_ns, requests;
} job;

// Finds the setting that was meant, among those beside it.
static void suggest_sysctl(const char *name, char *path) {
    char *slash = strrchr(path, '/'), *dot = strrchr(name, '.'), before[128];
    if (!dot) return;
    snprintf(before, sizeof before, "%.*s", (int)(dot + 1 - name), name);
    *slash = 0;
    DIR *directory = opendir(path);
    int least = INT_MAX;
    for (struct dirent *entry; directory && (entry = readdir(directory));) keep_nearest(dot + 1, entry->d_name, before, &least);
    if (directory) closedir(directory);
    errno = ENOENT;
}

// Queue disciplines of Linux without classes, and those with defaults, for suggestions alone.
static const char *const QDISCS[] = {"bfifo", "cake", "choke", "codel", "dualpi2", "fq", "fq_codel", "fq_pie", "gred", "hhf", "hfsc", "htb",
                                     "mq", "netem", "noqueue", "pfifo", "pfifo_fast", "pie", "prio", "qfq", "red", "sfb", "sfq", "tbf"};

static void suggest_qdisc(const char *kind) {
    int least = INT_MAX;
    for (size_t i = 0; i < sizeof QDISCS / sizeof *QDISCS; i++) keep_nearest(kind, QDISCS[i], "", &least);
    if (!least) snprintf(hint, sizeof hint, "; this kernel is built without it");
}

// Names the controllers of the kernel.
static void list_controllers(void) {
    char names[200];
    int f = open("/proc/sys/net/ipv4/tcp_available_congestion_control", O_RDONLY), len = f < 0 ? 0 : read(f, names, sizeof names - 1);
    if (f >= 0) close(f);
    if (len <= 0) return;
    names[len] = 0;
    names[strcspn(names, "\n")] = 0;
    snprintf(hint, sizeof hint, "; this kernel has %s", names);
    errno = ENOENT;
}

static void set_controller(int f, const char *name) {
    if (!setsockopt(f, IPPROTO_TCP, TCP_CONGESTION, name, strlen(name))) return;
    if (errno == ENOENT) list_controllers();
    fail("congestion control", name);
}

static void set_sysctl(const char *name, const char *value) {
    char path[256];
    int at = snprintf(path, sizeof path, "/proc/sys/");
    snprintf(path + at, sizeof path - at, "%s", name);
    for (char *c = path + at; *c; c++) if (*c == '.') *c = '/';
    int f = open(path, O_WRONLY);
    if (f < 0 && errno == ENOENT) suggest_sysctl(name, path);
    check(f, "sysctl", name);
    check(write(f, value, strlen(value)), "sysctl", name);
    close(f);
}

static void add_address(const char *text) {
    int four = strchr(text, ':') == 0, s = socket(four ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
    check(s, "socket", text);
    if (four) {
        static int count;
        struct ifreq r = {0};
        struct sockaddr_in *a = (void *)&r.ifr_addr;
        a->sin_family = AF_INET;
        if (inet_pton(AF_INET, text, &a->sin_addr) != 1) fail("address", text);
        count ? snprintf(r.ifr_name, sizeof r.ifr_name, DEVICE ":%d", count) : snprintf(r.ifr_name, sizeof r.ifr_name, DEVICE);
        check(ioctl(s, SIOCSIFADDR, &r), "address", text);
        a->sin_addr.s_addr = INADDR_NONE;
        check(ioctl(s, SIOCSIFNETMASK, &r), "netmask", text);
        if (!count++) {
            struct rtentry route = {.rt_flags = RTF_UP, .rt_dev = DEVICE};
            route.rt_dst.sa_family = route.rt_genmask.sa_family = AF_INET;
            check(ioctl(s, SIOCADDRT, &route), "route", text);
        }
    } else {
        static int count;
        if (!count) set_sysctl("net.ipv6.conf." DEVICE ".disable_ipv6", "0");
        struct in6_ifreq6 r = {.prefix = 128, .index = device_index};
        if (inet_pton(AF_INET6, text, &r.address) != 1) fail("address", text);
        check(ioctl(s, SIOCSIFADDR, &r), "address", text);
        if (!count++) {
            struct in6_rtmsg6 route = {.flags = RTF_UP, .metric = 1, .index = device_index};
            check(ioctl(s, SIOCADDRT, &route), "route", text);
        }
    }
    close(s);
}

static void seed(const char *text) {
    struct { int bits, size; unsigned char bytes[32]; } pool = {256, 32};
    for (int i = 0; i < 32; i++) {
        unsigned byte = 0;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1) break;
        pool.bytes[i] = byte;
    }
    int f = open("/dev/urandom", O_RDWR);
    check(f, "open", "/dev/urandom");
    check(ioctl(f, RNDADDENTROPY, &pool), "seed", "random numbers");
    check(ioctl(f, RNDRESEEDCRNG), "seed", "random numbers");
    close(f);
}

static void set_mtu(int mtu) {
    struct ifreq r = {.ifr_name = DEVICE, .ifr_mtu = mtu};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    check(ioctl(s, SIOCSIFMTU, &r), "mtu of", DEVICE);
    close(s);
}

// Sends a request to the kernel, as `ip` and `tc` do, and fails with what it did not do.
static void ask(const struct nlmsghdr *request, const char *what, const char *of) {
    struct { struct nlmsghdr head; struct nlmsgerr error; } answer;
    int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
    check(s, "socket", "");
    check(send(s, request, request->nlmsg_len, 0), what, of);
    check(recv(s, &answer, sizeof answer, 0), what, of);
    errno = -answer.error.error;
    if (errno) fail(what, of);
    close(s);
}

// `tc qdisc replace dev eth0 root KIND`.
static void set_qdisc(const char *kind) {
    struct {
        struct nlmsghdr head;
        struct tcmsg tc;
        struct rtattr attribute;
        char kind[16];
    } m = {
        .head = {.nlmsg_type = RTM_NEWQDISC, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE | NLM_F_REPLACE},
        .tc = {.tcm_family = AF_UNSPEC, .tcm_ifindex = device_index, .tcm_parent = TC_H_ROOT},
        .attribute = {.rta_type = TCA_KIND},
    };
    snprintf(m.kind, sizeof m.kind, "%s", kind);
    m.attribute.rta_len = RTA_LENGTH(strlen(m.kind) + 1);
    m.head.nlmsg_len = NLMSG_LENGTH(sizeof m.tc) + RTA_ALIGN(m.attribute.rta_len);
    suggest_qdisc(kind);
    ask(&m.head, "queue discipline", kind);
    *hint = 0;
}

// The segments that TCP hands down as one packet at most: `ip link set eth0 gso_max_segs N`.
static void set_gso_max_segs(int segments) {
    struct {
        struct nlmsghdr head;
        struct ifinfomsg link;
        struct rtattr attribute;
        uint32_t value;
    } m = {
        .head = {.nlmsg_len = NLMSG_LENGTH(sizeof m.link) + RTA_LENGTH(4), .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
        .link = {.ifi_index = device_index},
        .attribute = {.rta_len = RTA_LENGTH(4), .rta_type = IFLA_GSO_MAX_SEGS},
        .value = segments,
    };
    ask(&m.head, "gso_max_segs", DEVICE);
}

// Returns 1 at the last line.
static int carry_out(char *line) {
    char *value = strchr(line, ' ');
    if (value) *value++ = 0; else value = "";
    #define TEXT(key) if (!strcmp(line, #key)) { snprintf(job.key, sizeof job.key, "%s", value); return 0; }
    #define NUMBER(key) if (!strcmp(line, #key)) { job.key = strtoull(value, 0, 10); return 0; }
    TEXT(app) TEXT(peer) TEXT(cc) TEXT(root) TEXT(command)
    NUMBER(port) NUMBER(source_port) NUMBER(buffer) NUMBER(sample_ms) NUMBER(bytes) NUMBER(start_ns) NUMBER(stop_ns) NUMBER(duration_ns)
    NUMBER(request) NUMBER(response) NUMBER(think_ns) NUMBER(requests) NUMBER(connections)
    if (!strcmp(line, "mtu")) set_mtu(atoi(value));
    else if (!strcmp(line, "gso_max_segs")) set_gso_max_segs(atoi(value));
    else if (!strcmp(line, "qdisc")) set_qdisc(value);
    else if (!strcmp(line, "address")) add_address(value);
    else if (!strcmp(line, "seed")) seed(value);
    else if (!strcmp(line, "sysctl")) {
        char *to = strchr(value, ' ');
        if (!to) { errno = EINVAL; fail("sysctl", value); }
        *to++ = 0;
        set_sysctl(value, to);
    } else if (!strcmp(line, "end")) return 1;
    else { errno = EINVAL; fail("job", line); }
    return 0;
}

// Waits for lines, and carries them out until `end` or `go`.
static void listen_until(const char *last) {
    char text[LINE + 200];
    for (;;) {
        ssize_t len = recv(wire, text, sizeof text - 1, 0);
        if (len < 0 && errno == EINTR) continue;
        check(len, "recv", "");
        text[len] = 0;
        for (char *line = strtok(text, "\n"); line; line = strtok(0, "\n")) {
            if (!strcmp(line, last)) return;
            if (carry_out(line)) return;
        }
    }
}

static void device_up(void) {
    struct ifreq r = {.ifr_name = "lo"};
    int s = socket(AF_INET, SOCK_DGRAM, 0);
    check(s, "socket", "");
    r.ifr_flags = IFF_UP;
    check(ioctl(s, SIOCSIFFLAGS, &r), "up", "lo");
    strcpy(r.ifr_name, DEVICE);
    check(ioctl(s, SIOCGIFINDEX, &r), "interface (CONFIG_VIRTIO_UML, CONFIG_VIRTIO_NET)", DEVICE);
    device_index = r.ifr_ifindex;
    // The other end is a point, not an Ethernet: no ARP, no neighbour discovery.
    r.ifr_flags = IFF_UP | IFF_NOARP;
    check(ioctl(s, SIOCSIFFLAGS, &r), "up", DEVICE);
    // One packet is one packet.
    struct ethtool_value off = {.cmd = ETHTOOL_SGRO, .data = 0};
    r.ifr_data = (void *)&off;
    ioctl(s, SIOCETHTOOL, &r);
    close(s);
}

static int to_address(const char *text, int port, struct sockaddr_storage *to) {
    struct sockaddr_in *four = (void *)to;
    struct sockaddr_in6 *six = (void *)to;
    memset(to, 0, sizeof *to);
    if (strchr(text, ':')) {
        six->sin6_family = AF_INET6;
        six->sin6_port = htons(port);
        if (inet_pton(AF_INET6, text, &six->sin6_addr) != 1) fail("address", text);
        return sizeof *six;
    }
    four->sin_family = AF_INET;
    four->sin_port = htons(port);
    if (inet_pton(AF_INET, text, &four->sin_addr) != 1) fail("address", text);
    return sizeof *four;
}

static int ticker(int ms) {
    int f = timerfd_create(CLOCK_MONOTONIC, 0);
    check(f, "timerfd", "");
    struct itimerspec each = {{ms / 1000, ms % 1000 * 1000000L}, {ms / 1000, ms % 1000 * 1000000L}};
    check(timerfd_settime(f, 0, &each, 0), "timerfd", "");
    return f;
}

// A timer that expires once, at a time of the clock.
static int timer_at(uint64_t ns) {
    int f = timerfd_create(CLOCK_MONOTONIC, 0);
    check(f, "timerfd", "");
    struct itimerspec once = {.it_value = {ns / 1000000000, ns % 1000000000}};
    check(timerfd_settime(f, TFD_TIMER_ABSTIME, &once, 0), "timerfd", "");
    return f;
}

static void watch(int e, int fd, int events) {
    struct epoll_event ev = {.events = events, .data.fd = fd};
    check(epoll_ctl(e, EPOLL_CTL_ADD, fd, &ev), "epoll", "");
}

static void watch_for(int e, int fd, int events) {
    struct epoll_event ev = {.events = events, .data.fd = fd};
    check(epoll_ctl(e, EPOLL_CTL_MOD, fd, &ev), "epoll", "");
}

// Reports on a sender: `number` is its connection's, of several.
static void info(int f, uint64_t from, int number) {
    struct tcp_info i = {0};
    char last[16] = "";
    if (number) snprintf(last, sizeof last, " %d", number);
    socklen_t len = sizeof i;
    if (getsockopt(f, IPPROTO_TCP, TCP_INFO, &i, &len)) return;
    tell("info %llu %u %u %u %u %u %u %u %u %u %llu %u %u %llu %u %u %u %u %u%s", (unsigned long long)(now() - from), i.tcpi_state, i.tcpi_ca_state,
         i.tcpi_snd_cwnd, i.tcpi_snd_ssthresh, i.tcpi_rtt, i.tcpi_rttvar, i.tcpi_min_rtt, i.tcpi_unacked, i.tcpi_total_retrans,
         (unsigned long long)i.tcpi_bytes_acked, i.tcpi_delivered_ce, i.tcpi_rto, (unsigned long long)i.tcpi_pacing_rate,
         i.tcpi_snd_mss, i.tcpi_sacked, i.tcpi_lost, i.tcpi_retrans, i.tcpi_reordering, last);
}

// Begins to connect at the time of the job, from the port of a connection's number.
static int open_connection(uint64_t began, int number) {
    struct sockaddr_storage to, from;
    int len = to_address(job.peer, job.port, &to), on = 1;
    if (job.start_ns) {
        struct timespec at = {(began + job.start_ns) / 1000000000, (began + job.start_ns) % 1000000000};
        while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, 0)) {}
    }
    int f = socket(to.ss_family, SOCK_STREAM, 0);
    check(f, "socket", "");
    set_controller(f, job.cc);
    if (job.buffer) check(setsockopt(f, SOL_SOCKET, SO_SNDBUF, &job.buffer, sizeof on), "send buffer", "");
    if (job.source_port) {
        setsockopt(f, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        int from_len = to_address(to.ss_family == AF_INET ? "0.0.0.0" : "::", job.source_port + number, &from);
        check(bind(f, (void *)&from, from_len), "bind", "source port");
    }
    fcntl(f, F_SETFL, O_NONBLOCK);
    if (connect(f, (void *)&to, len) && errno != EINPROGRESS) fail("connect to", job.peer);
    return f;
}

static void close_hard(int f) {
    struct linger hard = {1, 0};
    setsockopt(f, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(f);
}

#define CONNECTIONS 256

static void bulk(uint64_t began) {
    static struct { int f, done; uint64_t left; } all[CONNECTIONS];
    static int number_of[1024 + CONNECTIONS];
    int e = epoll_create1(0), count = job.connections < 1 ? 1 : job.connections < CONNECTIONS ? job.connections : CONNECTIONS, open = count;
    for (int c = 0; c < count; c++) {
        all[c].f = open_connection(began, c);
        all[c].left = job.bytes ? job.bytes : UINT64_MAX;
        number_of[all[c].f] = c;
    }
    uint64_t start = now();
    int tick = ticker(job.sample_ms), stop = -1, end = -1, over = 0;
    watch(e, tick, EPOLLIN);
    if (job.stop_ns) watch(e, stop = timer_at(began + job.stop_ns), EPOLLIN);
    if (job.duration_ns) watch(e, end = timer_at(start + job.duration_ns), EPOLLIN);
    for (int c = 0; c < count; c++) watch(e, all[c].f, EPOLLOUT);
    for (;;) {
        struct epoll_event q[64];
        int n = epoll_wait(e, q, 64, -1), ticks = 0, progress = 0;
        for (int i = 0; i < n; i++) {
            if (q[i].data.fd == tick) {
                uint64_t count;
                ticks = read(tick, &count, sizeof count) > 0;
                continue;
            }
            if (q[i].data.fd == stop) {
                epoll_ctl(e, EPOLL_CTL_DEL, stop, 0);
                for (int c = 0; c < count; c++) all[c].left = 0;
                continue;
            }
            if (q[i].data.fd == end) {
                over = 1;
                continue;
            }
            int f = q[i].data.fd;
            uint64_t *left = &all[number_of[f]].left;
            if (!*left) continue;
            ssize_t put = send(f, data, *left < sizeof data ? *left : sizeof data, MSG_NOSIGNAL);
            if (put > 0) {
                progress = 1;
                *left -= job.bytes ? put : 0;
            } else if (put < 0 && errno != EAGAIN) {
                fail("connection to", job.peer);
            }
        }
        if (over) break;
        for (int c = 0; c < count; c++) {
            if (all[c].left || all[c].done) continue;
            all[c].done = 1;
            open--;
            epoll_ctl(e, EPOLL_CTL_DEL, all[c].f, 0);
            shutdown(all[c].f, SHUT_WR);
        }
        if (ticks) {
            for (int c = 0; c < count; c++) info(all[c].f, began, c);
            int unsent = 0;
            for (int c = 0; c < count && !open && !unsent; c++) ioctl(all[c].f, SIOCOUTQ, &unsent);
            if (!open && !unsent) break;
        } else if (!progress && open) {
            // Writable, but without memory: to spin would stop the time.
            usleep(500);
        }
    }
    for (int c = 0; c < count; c++) info(all[c].f, began, c);
    tell("completed %llu", (unsigned long long)(now() - start));
    for (int c = 0; c < count; c++) {
        if (over || !all[c].done) close_hard(all[c].f);
        else close(all[c].f);
    }
}

// A client: sends a request, reads the response, thinks, and begins again.
static void ask_for_responses(uint64_t began) {
    int e = epoll_create1(0), f = open_connection(began, 0), tick = ticker(job.sample_ms), stop = -1, end = -1, over = 0;
    int think = timerfd_create(CLOCK_MONOTONIC, 0);
    uint64_t start = now(), asked = start, to_send = job.request, to_read = job.response, answered = 0, count;
    check(think, "timerfd", "");
    watch(e, tick, EPOLLIN);
    watch(e, think, EPOLLIN);
    if (job.stop_ns) watch(e, stop = timer_at(began + job.stop_ns), EPOLLIN);
    if (job.duration_ns) watch(e, end = timer_at(start + job.duration_ns), EPOLLIN);
    watch(e, f, EPOLLOUT);
    while (!over) {
        struct epoll_event q[5];
        int n = epoll_wait(e, q, 5, -1), begins = 0;
        for (int i = 0; i < n && !over; i++) {
            int fd = q[i].data.fd;
            if (fd == tick) {
                if (read(tick, &count, sizeof count) > 0) info(f, began, 0);
            } else if (fd == think) {
                begins = read(think, &count, sizeof count) > 0;
            } else if (fd == stop || fd == end) {
                over = fd == stop ? 1 : 2;
            } else if (to_send) {
                ssize_t put = send(f, data, to_send < sizeof data ? to_send : sizeof data, MSG_NOSIGNAL);
                if (put < 0 && errno != EAGAIN) fail("connection to", job.peer);
                if (put > 0) to_send -= put;
                if (!to_send) watch_for(e, f, EPOLLIN);
            } else {
                ssize_t got = recv(f, data, to_read < sizeof data ? to_read : sizeof data, 0);
                if (!got) errno = ECONNRESET;
                if (!got || (got < 0 && errno != EAGAIN)) fail("connection to", job.peer);
                if (got > 0) to_read -= got;
                if (to_read) continue;
                tell("answered %llu %llu", (unsigned long long)(now() - began), (unsigned long long)(now() - asked));
                if (++answered == job.requests) {
                    over = 1;
                } else if (job.think_ns) {
                    struct itimerspec once = {.it_value = {job.think_ns / 1000000000, job.think_ns % 1000000000}};
                    check(timerfd_settime(think, 0, &once, 0), "timerfd", "");
                    watch_for(e, f, 0);
                } else {
                    begins = 1;
                }
            }
        }
        if (begins && !over) {
            asked = now();
            to_send = job.request;
            to_read = job.response;
            watch_for(e, f, EPOLLOUT);
        }
    }
    info(f, began, 0);
    tell("completed %llu", (unsigned long long)(now() - start));
    if (over == 2) close_hard(f);
    else close(f);
}

static int listener(void) {
    struct sockaddr_storage any;
    int six = access("/proc/net/if_inet6", F_OK) == 0, len = to_address(six ? "::" : "0.0.0.0", job.port, &any), on = 1;
    int s = socket(any.ss_family, SOCK_STREAM, 0);
    check(s, "socket", "");
    setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (job.buffer) check(setsockopt(s, SOL_SOCKET, SO_RCVBUF, &job.buffer, sizeof on), "receive buffer", "");
    if (job.cc[0]) set_controller(s, job.cc);
    check(bind(s, (void *)&any, len), "bind", "port");
    check(listen(s, 256), "listen", "");
    return s;
}

static void sink(int s, uint64_t began) {
    int e = epoll_create1(0), tick = ticker(job.sample_ms);
    uint64_t received = 0, told = 0, first = 0, last = 0;
    watch(e, s, EPOLLIN);
    watch(e, tick, EPOLLIN);
    for (;;) {
        struct epoll_event q[64];
        int n = epoll_wait(e, q, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = q[i].data.fd;
            if (fd == s) {
                int f = accept4(s, 0, 0, SOCK_NONBLOCK);
                if (f >= 0) watch(e, f, EPOLLIN);
            } else if (fd == tick) {
                uint64_t count;
                if (read(tick, &count, sizeof count) > 0 && received != told) {
                    told = received;
                    tell("got %llu %llu %llu", (unsigned long long)received, (unsigned long long)(first - began),
                         (unsigned long long)(last - began));
                }
            } else {
                ssize_t len = read(fd, data, sizeof data);
                if (len > 0) {
                    last = now();
                    if (!received) first = last;
                    received += len;
                } else if (len == 0 || errno != EAGAIN) {
                    close(fd);
                }
            }
        }
    }
}

// A server: answers each request that it has read.
static void serve(int s) {
    static struct { uint64_t to_read, to_write; } peers[1024];
    int e = epoll_create1(0);
    watch(e, s, EPOLLIN);
    for (;;) {
        struct epoll_event q[64];
        int n = epoll_wait(e, q, 64, -1);
        for (int i = 0; i < n; i++) {
            int fd = q[i].data.fd;
            if (fd == s) {
                int f = accept4(s, 0, 0, SOCK_NONBLOCK);
                if (f >= 1024) close(f);
                if (f < 0 || f >= 1024) continue;
                peers[f].to_read = job.request;
                peers[f].to_write = 0;
                watch(e, f, EPOLLIN);
                continue;
            }
            uint64_t *left = peers[fd].to_write ? &peers[fd].to_write : &peers[fd].to_read;
            size_t len = *left < sizeof data ? *left : sizeof data;
            ssize_t moved = peers[fd].to_write ? send(fd, data, len, MSG_NOSIGNAL) : recv(fd, data, len, 0);
            if (!moved || (moved < 0 && errno != EAGAIN)) {
                close(fd);
                continue;
            }
            if (moved > 0) *left -= moved;
            if (*left) continue;
            int writes = left == &peers[fd].to_read;
            *(writes ? &peers[fd].to_write : &peers[fd].to_read) = writes ? job.response : job.request;
            watch_for(e, fd, writes ? EPOLLOUT : EPOLLIN);
        }
    }
}

static void run_command(void) {
    pid_t child = fork();
    check(child, "fork", "");
    if (!child) {
        if (job.root[0]) {
            if (chroot(job.root) || chdir("/")) fail("root", job.root);
        }
        setenv("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", 1);
        setenv("HOME", "/root", 1);
        setenv("PEER", job.peer, 1);
        execl("/bin/sh", "sh", "-c", job.command, (char *)0);
        fail("execute", "/bin/sh");
    }
    int status, got;
    while ((got = wait(&status)) != child && (got >= 0 || errno == EINTR)) {}
    tell("exited %d", WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int main(void) {
    mkdir("/proc", 0755);
    mkdir("/sys", 0755);
    mkdir("/root", 0755);
    mkdir("/dev", 0755);
    mount("proc", "/proc", "proc", 0, "");
    mount("sys", "/sys", "sysfs", 0, "");
    mount("dev", "/dev", "devtmpfs", 0, "");
    setvbuf(stdout, 0, _IONBF, 0);
    int f = open("/proc/sys/net/ipv6/conf/all/disable_ipv6", O_WRONLY);
    if (f >= 0) {
        set_sysctl("net.ipv6.conf.all.disable_ipv6", "1");
        set_sysctl("net.ipv6.conf.default.disable_ipv6", "1");
        set_sysctl("net.ipv6.conf.default.accept_dad", "0");
        set_sysctl("net.ipv6.conf.default.router_solicitations", "0");
        close(f);
    }
    device_up();
    wire = socket(AF_PACKET, SOCK_DGRAM, htons(FRAMES));
    check(wire, "socket (CONFIG_PACKET)", "");
    tell("hello");
    listen_until("end");
    if (job.root[0]) {
        // The user's root file system, with what a program expects to find in it.
        char path[600];
        mkdir("/guest", 0755);
        check(mount("none", "/guest", "hostfs", 0, job.root), "mount (CONFIG_HOSTFS)", job.root);
        snprintf(job.root, sizeof job.root, "/guest");
        const char *kinds[][2] = {{"proc", "proc"}, {"sysfs", "sys"}, {"devtmpfs", "dev"}, {"tmpfs", "tmp"}, {"tmpfs", "run"}};
        for (int i = 0; i < 5; i++) {
            snprintf(path, sizeof path, "/guest/%s", kinds[i][1]);
            if (mount(kinds[i][0], path, kinds[i][0], 0, "")) printf("ackclock: no %s in the root file system\n", kinds[i][1]);
        }
    }
    int serves = !strcmp(job.app, "serve"), s = serves || !strcmp(job.app, "sink") ? listener() : -1;
    tell("ready");
    listen_until("go");
    uint64_t began = now();
    tell("began");
    if (serves) serve(s);
    else if (s >= 0) sink(s, began);
    else if (!strcmp(job.app, "request")) ask_for_responses(began);
    else if (!strcmp(job.app, "send")) bulk(began);
    else run_command();
    for (;;) pause();
}
