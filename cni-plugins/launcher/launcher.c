/*
 * The launcher of tke-route-eni, tke-eni-ipamc and tke-direct-eni.
 *
 * The container runtime starts it for each CNI call. It sends the call to the node agent (`Agent.Run`, agent.proto) and
 * prints the answer. In any other case it becomes the complete program, the file COMPLETE beside it, which runs the
 * same call by itself: a call with arguments, an agent that does not answer, an answer that it does not understand.
 *
 * It has no C library: it starts in 0.1 ms, and on hosts whose C library is too old for the complete program.
 * Constants of the build: DEFAULT_SOCKET, COMPLETE, UNUSABLE, and the first bytes of the connection in OPENING.
 */
#include <asm/errno.h>
#include <asm/poll.h>
#include <asm/socket.h>
#include <asm/unistd.h>
#include <linux/auxvec.h>
#include <linux/fcntl.h>
#include <linux/time.h>
#include <linux/time_types.h>
#include <linux/un.h>

typedef unsigned char u8;
typedef unsigned long u64;
typedef long i64;

#include "system-call.h"

enum {
  MAX_STDIN = 48 * 1024,   /* with the variables it fits into the first flow-control window of HTTP/2 */
  MAX_REQUEST = 60 * 1024,
  MAX_REPLY = 1 << 20,
  MAX_FRAME = 16384,
  MAX_COPY = 17 << 20,     /* more than the complete program reads */
  MAX_VARIABLES = 4096,
  FIRST_WAIT_MS = 2000,    /* the server's SETTINGS prove that its event loop runs */
  SHORT_CALL_MS = 10000,   /* DEL, CHECK, STATUS, VERSION of an agent that is stuck */
  LONG_CALL_MS = 65000,    /* ADD, GC */
  PIPE_WAIT_MS = 10000,    /* a runtime that neither writes nor reads */
  STDIN_MS = 30000,        /* all of standard input, as in the complete program */
};

/* HTTP/2, RFC 9113 section 6. */
enum { DATA = 0, HEADERS = 1, RST_STREAM = 3, SETTINGS = 4, PING = 6, GOAWAY = 7 };
enum { ACK = 1, END_STREAM = 1, PADDED = 8, FRAME_HEADER = 9, GRPC_PREFIX = 5, STREAM = 1 };

static const u8 opening[] = {OPENING};
static u8 stdin_bytes[MAX_STDIN + 1], request[MAX_REQUEST], sent[MAX_REQUEST + 512], received[MAX_REPLY], message[MAX_REPLY];
static u64 stdin_length;
static int is_stdin_complete;
static char **arguments, **variables, *started_as;
static i64 started_ms;

#ifdef HOSTED
#include <string.h>
#else
void *memcpy(void *to, const void *from, u64 length) {
  for (u64 at = 0; at < length; at++) ((u8 *)to)[at] = ((const u8 *)from)[at];
  return to;
}

void *memset(void *to, int value, u64 length) {
  for (u64 at = 0; at < length; at++) ((u8 *)to)[at] = (u8)value;
  return to;
}
#endif

/* Moves bytes to a lower address; the places may overlap. */
static void move_down(u8 *to, const u8 *from, u64 length) {
  for (u64 at = 0; at < length; at++) to[at] = from[at];
}

static u64 length_of(const char *text) {
  u64 length = 0;
  while (text[length]) length++;
  return length;
}

static int begins_with(const char *text, const char *start) {
  while (*start) if (*text++ != *start++) return 0;
  return 1;
}

static i64 now_ms(void) {
  struct __kernel_timespec time;
  CALL(clock_gettime, CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

/* Waits until a descriptor is ready. Returns 0 at the end of the time. */
static int wait_for(int fd, short events, i64 ms) {
  struct pollfd one = {fd, events, 0};
  i64 end = now_ms() + ms, left, result;
  do {
    left = end - now_ms();
    if (left <= 0) return 0;
    struct __kernel_timespec time = {left / 1000, left % 1000 * 1000000};
    result = CALL(ppoll, &one, 1, &time, 0, 8);
  } while (result == -EINTR);
  return result > 0;
}

/* Reads like read(2), and waits for a pipe that the runtime left non-blocking. */
static i64 read_some(int fd, void *into, u64 length) {
  for (;;) {
    i64 count = CALL(read, fd, into, length);
    if (count == -EAGAIN && wait_for(fd, POLLIN, PIPE_WAIT_MS)) continue;
    if (count != -EINTR) return count;
  }
}

static int write_all(int fd, const void *bytes, u64 length) {
  for (u64 at = 0; at < length;) {
    i64 count = CALL(write, fd, (const u8 *)bytes + at, length - at);
    if (count == -EINTR || (count == -EAGAIN && wait_for(fd, POLLOUT, PIPE_WAIT_MS))) continue;
    if (count <= 0) return 0;
    at += (u64)count;
  }
  return 1;
}

/* Prints the answer of the call and ends. Like the complete program it exits with 1 when nobody reads. */
static void __attribute__((noreturn)) finish(const void *text, u64 length, int code) {
  ignore_sigpipe();
  if (!write_all(1, text, length)) code = 1;
  CALL(exit_group, code);
  __builtin_unreachable();
}

#define FAIL(why) finish(FAILURE(why), sizeof FAILURE(why) - 1, 1)
/* CNI SPEC, "Error"; 11: try again later. */
#define FAILURE(why) "{\"cniVersion\":\"1.0.0\",\"code\":11,\"msg\":\"" why "\",\"details\":\"" NEXT_STEP "\"}"
#define NEXT_STEP "see whether the tke-eni-agent Pod of this node runs: kubectl -n kube-system get pods -o wide | grep tke-eni-agent"

/* Reads standard input, which may come slowly, but not forever. */
static i64 read_stdin(void *into, u64 length) {
  if (!wait_for(0, POLLIN, started_ms + STDIN_MS - now_ms())) FAIL("standard input does not end");
  return read_some(0, into, length);
}

/* Puts what was read of standard input back, and the rest of it behind. */
static int give_stdin_back(void) {
  int ends[2];
  if (is_stdin_complete) {
    /* It fits into a pipe, which each kernel has. */
    if (CALL(pipe2, ends, 0) < 0 || !write_all(ends[1], stdin_bytes, stdin_length)) return 0;
    CALL(close, ends[1]);
  } else {
    ends[0] = (int)CALL(memfd_create, "stdin", 0);
    if (ends[0] < 0 || !write_all(ends[0], stdin_bytes, stdin_length)) return 0;
    for (u64 copied = 0; copied < MAX_COPY;) {
      i64 count = read_stdin(received, sizeof received);
      if (count < 0 || !write_all(ends[0], received, (u64)count)) return 0;
      if (count == 0) break;
      copied += (u64)count;
    }
    CALL(lseek, ends[0], 0, 0);
  }
  return CALL(dup3, ends[0], 0, 0) >= 0 && CALL(close, ends[0]) >= 0;
}

/* Writes the path of a file beside this one. Without /proc the path by which the kernel started it serves. */
static int path_beside(char *path, u64 size, const char *name) {
  i64 length = CALL(readlinkat, AT_FDCWD, "/proc/self/exe", path, size);
  if (length <= 0) {
    length = started_as ? (i64)length_of(started_as) : 0;
    if ((u64)length >= size) return 0;
    memcpy(path, started_as, (u64)length);
  }
  while (length > 0 && path[length - 1] != '/') length--;
  u64 name_length = length_of(name) + 1;
  if ((u64)length + name_length > size) return 0;
  memcpy(path + length, name, name_length);
  return 1;
}

/* Returns the environment with the time that this call has taken so far, which the complete program subtracts. */
static char **variables_with_time(void) {
  static char spent[] = "TKE_ENI_SPENT_MS=000000";
  static char *all[MAX_VARIABLES + 2];
  u64 count = 0;
  for (; variables[count]; count++) {
    if (count == MAX_VARIABLES) return variables;
    all[count] = variables[count];
  }
  i64 ms = now_ms() - started_ms;
  for (u64 at = sizeof spent - 2; spent[at] != '='; at--, ms /= 10) spent[at] = (char)('0' + ms % 10);
  all[count] = spent;
  return all;
}

/* Becomes the complete program. The connection is closed first: an ADD under way ends before the second begins. */
static void __attribute__((noreturn)) become_complete(int connection) {
  static char path[4200];
  if (connection >= 0) CALL(close, connection);
  if (path_beside(path, sizeof path, UNUSABLE) && CALL(faccessat, AT_FDCWD, path, 0) == 0)
    FAIL("the node agent does not answer, and the C library of this host is too old for a call without it");
  if ((stdin_length || is_stdin_complete) && !give_stdin_back()) FAIL("standard input cannot be read");
  if (path_beside(path, sizeof path, COMPLETE)) CALL(execve, path, arguments, variables_with_time());
  FAIL("the file " COMPLETE " beside this executable cannot be run");
}

/*
 * Finds the agent's socket in the configuration. It reads no JSON: the agent compares its own address with what it
 * reads there, and answers that the complete program is to run when they differ.
 */
static void find_socket(struct sockaddr_un *address) {
  static const char name[] = "\"backend\"", scheme[] = "unix:";
  const char *text = (const char *)stdin_bytes;
  memset(address, 0, sizeof *address);
  address->sun_family = AF_UNIX;
  memcpy(address->sun_path, DEFAULT_SOCKET, sizeof DEFAULT_SOCKET);
  for (; *text; text++) {
    if (!begins_with(text, name)) continue;
    text += sizeof name - 1;
    while (*text == ' ' || *text == ':' || *text == '\t' || *text == '\n' || *text == '\r') text++;
    if (*text++ != '"' || !begins_with(text, scheme)) become_complete(-1);
    text += sizeof scheme - 1;
    if (begins_with(text, "///")) text += 2;
    u64 length = 0;
    while (text[length] && text[length] != '"' && text[length] != '\\') length++;
    if (text[length] != '"' || length >= sizeof address->sun_path) become_complete(-1);
    memset(address->sun_path, 0, sizeof address->sun_path);
    memcpy(address->sun_path, text, length);
    return;
  }
}

static int connect_to_agent(void) {
  struct sockaddr_un address;
  struct __kernel_old_timeval limit = {FIRST_WAIT_MS / 1000, 0};
  find_socket(&address);
  int connection = (int)CALL(socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  /* Before connect(2): a full backlog blocks for this time. */
  if (connection < 0 || CALL(setsockopt, connection, SOL_SOCKET, SO_SNDTIMEO_OLD, &limit, sizeof limit) < 0 ||
      CALL(connect, connection, &address, sizeof address) < 0)
    become_complete(connection);
  return connection;
}

/* Writes a field of protobuf with a length of three bytes. */
static u8 *put_field(u8 *at, u8 number, const void *bytes, u64 length) {
  *at++ = (u8)(number << 3 | 2);
  *at++ = (u8)(length | 0x80);
  *at++ = (u8)(length >> 7 | 0x80);
  *at++ = (u8)(length >> 14 & 0x7f);
  memcpy(at, bytes, length);
  return at + length;
}

/* Encodes RunRequest {string name = 1; repeated string env = 2; bytes stdin = 3}. Returns its length. */
static u64 encode_request(int connection, char *command) {
  const char *name = arguments[0];
  for (const char *at = name; *at; at++) if (*at == '/') name = at + 1;
  u8 *at = request;
  if (length_of(name) > 255) become_complete(connection);
  at = put_field(at, 1, name, length_of(name));
  for (char **one = variables; *one; one++) {
    if (!begins_with(*one, "CNI_")) continue;
    u64 length = length_of(*one);
    if (length + stdin_length + 16 > (u64)(request + MAX_REQUEST - at)) become_complete(connection);
    if (begins_with(*one, "CNI_COMMAND=")) *command = (*one)[12];
    at = put_field(at, 2, *one, length);
  }
  if (stdin_length + 16 > (u64)(request + MAX_REQUEST - at)) become_complete(connection);
  at = put_field(at, 3, stdin_bytes, stdin_length);
  return (u64)(at - request);
}

static u8 *put_frame_header(u8 *at, u64 length, u8 type, u8 flags, u8 stream) {
  u8 header[FRAME_HEADER] = {(u8)(length >> 16), (u8)(length >> 8), (u8)length, type, flags, 0, 0, 0, stream};
  memcpy(at, header, FRAME_HEADER);
  return at + FRAME_HEADER;
}

/* Sends the opening and the request in frames of DATA; the first five bytes are gRPC's prefix. */
static void send_request(int connection, u64 length) {
  u8 *at = sent;
  memcpy(at, opening, sizeof opening);
  at += sizeof opening;
  u8 prefix[GRPC_PREFIX] = {0, (u8)(length >> 24), (u8)(length >> 16), (u8)(length >> 8), (u8)length};
  at = put_frame_header(at, GRPC_PREFIX, DATA, 0, STREAM);
  memcpy(at, prefix, GRPC_PREFIX);
  at += GRPC_PREFIX;
  for (u64 done = 0; done < length;) {
    u64 part = length - done > MAX_FRAME ? MAX_FRAME : length - done;
    at = put_frame_header(at, part, DATA, done + part == length ? END_STREAM : 0, STREAM);
    memcpy(at, request + done, part);
    at += part;
    done += part;
  }
  for (u64 done = 0, all = (u64)(at - sent); done < all;) {
    i64 count = CALL(sendto, connection, sent + done, all - done, MSG_NOSIGNAL, 0, 0);
    if (count == -EINTR) continue;
    if (count <= 0) become_complete(connection);
    done += (u64)count;
  }
}

static u64 read_varint(int connection, const u8 *bytes, u64 length, u64 *at) {
  u64 value = 0;
  for (int shift = 0; shift < 35; shift += 7) {
    if (*at == length) break;
    u8 byte = bytes[(*at)++];
    value |= (u64)(byte & 0x7f) << shift;
    if (byte < 0x80) return value;
  }
  become_complete(connection);
}

/* Obeys RunReply {Outcome outcome = 1; uint32 exit_code = 2; bytes stdout = 3}; skips fields that it does not know. */
static void __attribute__((noreturn)) obey(int connection, const u8 *reply, u64 length) {
  enum { PRINT = 1 };
  u64 at = 0, outcome = 0, code = 0, text_length = 0;
  const u8 *text = reply;
  while (at < length) {
    u64 tag = read_varint(connection, reply, length, &at);
    u64 value = read_varint(connection, reply, length, &at);
    if (tag == (1 << 3 | 0)) outcome = value;
    else if (tag == (2 << 3 | 0)) code = value;
    else if ((tag & 7) == 2) {
      if (value > length - at) become_complete(connection);
      if (tag >> 3 == 3) text = reply + at, text_length = value;
      at += value;
    } else if ((tag & 7) != 0) become_complete(connection);
  }
  if (outcome != PRINT || code > 1) become_complete(connection);
  finish(text, text_length, (int)code);
}

/* Sends if that is possible now: an answer that has arrived counts, whatever becomes of an acknowledgement. */
static void acknowledge(int connection, u8 type, const u8 *payload, u64 length) {
  u8 frame[FRAME_HEADER + 8];
  memcpy(put_frame_header(frame, length, type, ACK, 0), payload, length);
  CALL(sendto, connection, frame, FRAME_HEADER + length, MSG_NOSIGNAL | MSG_DONTWAIT, 0, 0);
}

static u64 message_length;

/* Takes a frame. Ends the program when the reply is complete, and when there will be none. */
static void take_frame(int connection, const u8 *header, const u8 *payload, u64 length) {
  u8 type = header[3], flags = header[4];
  u64 stream = (u64)(header[5] & 0x7f) << 24 | (u64)header[6] << 16 | (u64)header[7] << 8 | header[8];
  if (type == SETTINGS && !(flags & ACK)) acknowledge(connection, SETTINGS, payload, 0);
  if (type == PING && !(flags & ACK) && length == 8) acknowledge(connection, PING, payload, 8);
  /* The last stream that the peer takes part in is none. */
  if (type == GOAWAY && length >= 4 && !(payload[0] & 0x7f) && !payload[1] && !payload[2] && !payload[3])
    become_complete(connection);
  if (stream != STREAM) return;
  if (type == RST_STREAM) become_complete(connection);
  if (type == DATA) {
    u64 padding = 0;
    if (flags & PADDED) {
      if (length == 0 || payload[0] >= length) become_complete(connection);
      padding = payload[0];
      payload++;
      length--;
    }
    length -= padding;
    if (length > sizeof message - message_length) become_complete(connection);
    memcpy(message + message_length, payload, length);
    message_length += length;
    if (message_length >= GRPC_PREFIX) {
      u64 wanted = (u64)message[1] << 24 | (u64)message[2] << 16 | (u64)message[3] << 8 | message[4];
      if (message[0] || wanted > sizeof message - GRPC_PREFIX) become_complete(connection);
      if (message_length >= GRPC_PREFIX + wanted) obey(connection, message + GRPC_PREFIX, wanted);
    }
  }
  /* Trailers without a reply: an older agent has no Run. */
  if ((type == DATA || type == HEADERS) && (flags & END_STREAM)) become_complete(connection);
}

static void __attribute__((noreturn)) receive(int connection, i64 end_ms) {
  u64 held = 0;
  for (i64 ms = FIRST_WAIT_MS;; ms = end_ms - now_ms()) {
    if (!wait_for(connection, POLLIN, ms)) become_complete(connection);
    i64 count = CALL(recvfrom, connection, received + held, sizeof received - held, MSG_DONTWAIT, 0, 0);
    if (count == -EINTR || count == -EAGAIN) continue;
    if (count <= 0) become_complete(connection);
    held += (u64)count;
    u64 at = 0;
    while (held - at >= FRAME_HEADER) {
      const u8 *header = received + at;
      u64 length = (u64)header[0] << 16 | (u64)header[1] << 8 | header[2];
      if (length > MAX_FRAME) become_complete(connection);
      if (held - at < FRAME_HEADER + length) break;
      take_frame(connection, header, header + FRAME_HEADER, length);
      at += FRAME_HEADER + length;
    }
    held -= at;
    if (at) move_down(received, received + at, held);
  }
}

void __attribute__((noreturn)) launch(i64 *stack) {
  i64 count = stack[0];
  arguments = (char **)(stack + 1);
  variables = arguments + count + 1;
  started_ms = now_ms();
  char **end = variables;
  while (*end) end++;
  for (u64 *auxiliary = (u64 *)(end + 1); auxiliary[0] != AT_NULL; auxiliary += 2)
    if (auxiliary[0] == AT_EXECFN) started_as = (char *)auxiliary[1];
  if (count != 1) become_complete(-1);
  while (!is_stdin_complete) {
    i64 read = read_stdin(stdin_bytes + stdin_length, MAX_STDIN + 1 - stdin_length);
    if (read < 0) become_complete(-1);
    stdin_length += (u64)read;
    is_stdin_complete = read == 0;
    if (stdin_length > MAX_STDIN) become_complete(-1);
  }
  char command = 0;
  int connection = connect_to_agent();
  send_request(connection, encode_request(connection, &command));
  receive(connection, started_ms + (command == 'A' || command == 'G' ? LONG_CALL_MS : SHORT_CALL_MS));
}

#ifdef HOSTED
int main(int count, char **all) {
  (void)count;
  launch((i64 *)all - 1);
}
#endif
