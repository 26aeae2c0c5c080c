/* System calls and the start of a program without a C library, for x86-64 and arm64. */
#define CALL(name, ...) CALL6(__NR_##name, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0)
#define CALL6(number, a, b, c, d, e, f, ...) \
  system_call(number, (i64)(a), (i64)(b), (i64)(c), (i64)(d), (i64)(e), (i64)(f))

/* HOSTED: with a C library, so that the compiler's sanitizers work. */
#ifdef HOSTED
#define START(code)
#else
#define START(code) asm(code)
#endif

#if defined(__x86_64__)
static inline i64 system_call(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
  register i64 r10 asm("r10") = d, r8 asm("r8") = e, r9 asm("r9") = f;
  i64 result;
  asm volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
               : "rcx", "r11", "memory");
  return result;
}
START(".globl _start\n_start: xor %ebp, %ebp\n mov %rsp, %rdi\n and $-16, %rsp\n call launch\n hlt\n");
#elif defined(__aarch64__)
static inline i64 system_call(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
  register i64 x8 asm("x8") = number, x0 asm("x0") = a, x1 asm("x1") = b, x2 asm("x2") = c, x3 asm("x3") = d,
                    x4 asm("x4") = e, x5 asm("x5") = f;
  asm volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
  return x0;
}
START(".globl _start\n_start: mov x29, #0\n mov x0, sp\n and x1, x0, #-16\n mov sp, x1\n bl launch\n brk #0\n");
#else
#error "the launcher is for x86-64 and arm64"
#endif

/* linux/socket.h has the constants of the kernel only under __KERNEL__; the values are part of the ABI. */
enum { AF_UNIX = 1, SOCK_STREAM = 1, SOCK_CLOEXEC = 02000000, MSG_DONTWAIT = 0x40, MSG_NOSIGNAL = 0x4000 };

/* SIGPIPE 13, SIG_IGN 1; the kernel's own sigaction, whose mask has eight bytes. */
static inline void ignore_sigpipe(void) {
  struct { u64 handler, flags, restorer, mask; } ignored = {1, 0, 0, 0};
  CALL(rt_sigaction, 13, &ignored, 0, 8);
}
