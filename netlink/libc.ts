/**
 * The only use of ffi-rs. A value of the wrong type in a buffer slot aborts the whole process, and a fraction or a
 * large number is silently changed in an integer slot; so every argument is checked here before the call. Data does not
 * pass here: reads and writes on the descriptor through node:fs are ten times cheaper.
 */
import { constants } from 'node:os';
import { DataType, define, open } from 'ffi-rs';
import { LibcError } from './errno.ts';

const LIBRARY = 'libc';
const { I32, I64, U64, String: Text, U8Array } = DataType;
type Native = { value: number; errnoCode: number };

// An empty path is the running program, which contains the whole C library: glibc and musl alike.
open({ library: LIBRARY, path: '' });

const call = (paramsType: DataType[]) => ({ library: LIBRARY, retType: I32, paramsType, errno: true }) as const;
const native = define({
  socket: call([I32, I32, I32]),
  bind: call([I32, U8Array, I32]),
  getsockname: call([I32, U8Array, U8Array]),
  setsockopt: call([I32, I32, I32, U8Array, I32]),
  setns: call([I32, I32]),
  unshare: call([I32]),
  mount: call([Text, Text, Text, U64, U64]),
  umount2: call([Text, I32]),
  fcntl: call([I32, I32, I32]),
  ioctl: call([I32, U64, U64]),
  madvise: call([U64, U64, I32]),
}) as unknown as Readonly<Record<string, (args: unknown[]) => Native>>;

function int(value: number): number {
  if (!Number.isInteger(value) || value < -0x80000000 || value > 0x7fffffff) {
    throw new TypeError(`libc: expected a 32-bit integer, got ${String(value)}`);
  }
  return value;
}

function buffer(value: Uint8Array): Uint8Array {
  if (!(value instanceof Uint8Array) || value.byteLength === 0) {
    throw new TypeError('libc: expected a non-empty Uint8Array');
  }
  return value;
}

function path(value: string): string {
  if (typeof value !== 'string' || value.includes('\0')) {
    throw new TypeError('libc: expected a string without NUL');
  }
  return value;
}

function invoke(name: string, args: unknown[], detail?: string): number {
  const result = native[name]?.(args);
  if (result === undefined) {
    throw new TypeError(`libc: no such function: ${name}`);
  }
  // On success the errno is that of some earlier call.
  if (result.value === -1) {
    throw new LibcError(name, result.errnoCode, detail);
  }
  return result.value;
}

/** Opens a socket. @returns the descriptor, owned by the caller. @throws LibcError. @see socket(2) */
export function socket(domain: number, type: number, protocol: number): number {
  return invoke('socket', [int(domain), int(type), int(protocol)]);
}

/** Binds a socket to an address structure. @throws LibcError. @see bind(2) */
export function bind(fd: number, address: Uint8Array): void {
  invoke('bind', [int(fd), buffer(address), int(address.byteLength)]);
}

/** Fills `address` with the socket's own address. @throws LibcError. @see getsockname(2) */
export function getsockname(fd: number, address: Uint8Array): void {
  const length = new Uint8Array(Uint32Array.of(buffer(address).byteLength).buffer);
  invoke('getsockname', [int(fd), address, length]);
}

/** Sets a socket option from raw bytes. @throws LibcError. @see setsockopt(2) */
export function setsockopt(fd: number, level: number, option: number, value: Uint8Array): void {
  invoke('setsockopt', [int(fd), int(level), int(option), buffer(value), int(value.byteLength)]);
}

/** Moves the calling thread into a namespace; `netns.ts` alone may call it. @throws LibcError. @see setns(2) */
export function setns(fd: number, type: number): void {
  invoke('setns', [int(fd), int(type)]);
}

/** Gives the calling thread new namespaces; `netns.ts` alone may call it. @throws LibcError. @see unshare(2) */
export function unshare(flags: number): void {
  invoke('unshare', [int(flags)]);
}

/** Mounts without options. @param flags MS_* below 2^53. @throws LibcError. @see mount(2) */
export function mount(source: string, target: string, type: string, flags: number): void {
  if (!Number.isSafeInteger(flags) || flags < 0) {
    throw new TypeError(`libc: expected mount flags, got ${String(flags)}`);
  }
  invoke('mount', [path(source), path(target), path(type), flags, 0], target);
}

/** Unmounts. @throws LibcError. @see umount2(2) */
export function umount2(target: string, flags: number): void {
  invoke('umount2', [path(target), int(flags)], target);
}

/** Manipulates a descriptor with an integer argument. @throws LibcError. @see fcntl(2) */
export function fcntl(fd: number, command: number, argument: number): number {
  return invoke('fcntl', [int(fd), int(command), int(argument)]);
}

/** Runs an ioctl without argument. @param request its number. @throws LibcError. @see ioctl(2) */
export function ioctl(fd: number, request: number): number {
  if (!Number.isInteger(request) || request < 0 || request > 0xffffffff) {
    throw new TypeError(`libc: expected an ioctl request, got ${String(request)}`);
  }
  return invoke('ioctl', [int(fd), request, 0]);
}

/**
 * Advises the kernel about pages of this process. With MADV_DONTNEED everything that was written to them is lost
 * silently: only for mappings that are never written. @param address multiple of the page size. @throws LibcError. @see
 * madvise(2)
 */
export function madvise(address: number, bytes: number, advice: number): void {
  if (!Number.isSafeInteger(address) || address <= 0 || !Number.isSafeInteger(bytes) || bytes <= 0) {
    throw new TypeError(`libc: expected a range of memory, got ${String(address)} and ${String(bytes)} bytes`);
  }
  invoke('madvise', [address, bytes, int(advice)]);
}

/**
 * Returns free memory of malloc to the kernel. Threads of V8 compile and collect in arenas of their own, which glibc
 * otherwise never returns. Does nothing with a C library without this function. @see malloc_trim(3)
 */
export function trimMalloc(): void {
  trim ??= defineTrim();
  trim([0]);
}

/** Number of bpf(2) by `process.arch`. @see arch/x86/entry/syscalls/syscall_64.tbl, uapi/asm-generic/unistd.h */
const SYS_BPF: Readonly<Record<string, number>> = { x64: 321, arm64: 280 };
const PROT_READ_WRITE = 3;
const MAP_PRIVATE_ANONYMOUS = 0x22;

/**
 * Calls bpf(2). @param command BPF_*. @param attr union bpf_attr, which the kernel may fill. @returns a descriptor, owned by
 * the caller, or 0. @throws LibcError, with ENOSYS on an architecture without a known number. @see bpf(2)
 */
export function bpf(command: number, attr: Uint8Array): number {
  const number = SYS_BPF[process.arch];
  if (number === undefined) throw new LibcError('bpf', constants.errno.ENOSYS, process.arch);
  const result = memoryCalls().syscall([number, int(command), buffer(attr), attr.byteLength]);
  if (result.value === -1) throw new LibcError('bpf', result.errnoCode);
  return result.value;
}

/**
 * Maps zeroed memory outside of the heap of V8, whose address a structure for the kernel may hold. The owner must unmap it.
 * @returns its address. @throws LibcError. @see mmap(2)
 */
export function mapMemory(bytes: number): number {
  const result = memoryCalls().mmap([0, size(bytes), PROT_READ_WRITE, MAP_PRIVATE_ANONYMOUS, -1, 0]);
  if (result.value === -1) throw new LibcError('mmap', result.errnoCode);
  return result.value;
}

/** Returns mapped memory to the kernel. @throws LibcError. @see munmap(2) */
export function unmapMemory(address: number, bytes: number): void {
  const result = memoryCalls().munmap([size(address), size(bytes)]);
  if (result.value === -1) throw new LibcError('munmap', result.errnoCode);
}

/** Copies bytes to mapped memory. The range must be in a mapping of `mapMemory`: any other address ends the process. */
export function writeMemory(address: number, bytes: Uint8Array): void {
  memoryCalls().write([size(address), buffer(bytes), bytes.byteLength]);
}

/** Copies mapped memory into `into`. The range must be in a mapping of `mapMemory`: any other address ends the process. */
export function readMemory(address: number, into: Uint8Array): void {
  memoryCalls().read([buffer(into), size(address), into.byteLength]);
}

function size(value: number): number {
  if (!Number.isSafeInteger(value) || value <= 0) {
    throw new TypeError(`libc: expected an address or a size, got ${String(value)}`);
  }
  return value;
}

type MemoryCalls = Readonly<Record<'syscall' | 'mmap' | 'munmap' | 'write' | 'read', (args: unknown[]) => Native>>;

let memory: MemoryCalls | undefined;

/** Defined at the first use: the CLI starts often and seldom needs them. */
function memoryCalls(): MemoryCalls {
  memory ??= {
    ...(define({
      syscall: { library: LIBRARY, retType: I64, paramsType: [I64, I64, U8Array, I64], errno: true },
      mmap: { library: LIBRARY, retType: I64, paramsType: [U64, U64, I32, I32, I32, I64], errno: true },
      munmap: call([U64, U64]),
    }) as unknown as Pick<MemoryCalls, 'syscall' | 'mmap' | 'munmap'>),
    ...renamed('write', define({ memcpy: call([U64, U8Array, U64]) })),
    ...renamed('read', define({ memcpy: call([U8Array, U64, U64]) })),
  };
  return memory;
}

function renamed<N extends 'write' | 'read'>(name: N, { memcpy }: { memcpy: unknown }): Pick<MemoryCalls, N> {
  return { [name]: memcpy } as unknown as Pick<MemoryCalls, N>;
}

let trim: ((args: unknown[]) => unknown) | undefined;

function defineTrim(): (args: unknown[]) => unknown {
  try {
    const { malloc_trim } = define({ malloc_trim: { library: LIBRARY, retType: I32, paramsType: [U64] } });
    return malloc_trim as unknown as (args: unknown[]) => unknown;
  } catch {
    return () => 0;
  }
}
