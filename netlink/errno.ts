import { constants } from 'node:os';

const NAME_BY_ERRNO: ReadonlyMap<number, string> = new Map(
  // Reversed, so that of two names for one number the first one stays: EAGAIN before EWOULDBLOCK.
  Object.entries(constants.errno)
    .reverse()
    .map(([name, number]) => [number, name]),
);

/**
 * Returns the name of an errno: 17 is 'EEXIST'; numbers that Node does not know become 'E<number>'. 95 is 'EOPNOTSUPP'.
 */
export function errnoName(errno: number): string {
  return errno === constants.errno.EOPNOTSUPP ? 'EOPNOTSUPP' : (NAME_BY_ERRNO.get(errno) ?? `E${errno}`);
}

/** Returns the text of strerror(3) for the errors of network programs; else the bare name. */
export function errnoText(errno: number): string {
  return ERRNO_TEXT[errnoName(errno)] ?? errnoName(errno);
}

const ERRNO_TEXT: Readonly<Record<string, string>> = {
  EPERM: 'operation not permitted',
  ENOENT: 'no such file or directory',
  ESRCH: 'no such route, address or rule',
  EINTR: 'interrupted',
  EBADF: 'bad file descriptor',
  EAGAIN: 'no answer in time',
  ENOMEM: 'out of memory',
  EBUSY: 'device or resource busy',
  EEXIST: 'exists already',
  ENODEV: 'no such device',
  EINVAL: 'invalid argument',
  EMSGSIZE: 'message too long',
  EOPNOTSUPP: 'operation not supported',
  EADDRNOTAVAIL: 'address not there',
  ENETDOWN: 'network is down',
  ENETUNREACH: 'network is unreachable',
  ENOBUFS: 'receive buffer overrun',
  EHOSTUNREACH: 'no route to host',
  ENXIO: 'no such device or address',
};

/** A failed system call. */
export class LibcError extends Error {
  override readonly name = 'LibcError';
  /** Name of the errno: 'EPERM'. */
  readonly code: string;
  readonly errno: number;
  readonly syscall: string;

  constructor(syscall: string, errno: number, detail?: string) {
    super(`${errnoName(errno)}: ${syscall}${detail === undefined ? '' : ` ${detail}`}: ${errnoText(errno)}`);
    this.code = errnoName(errno);
    this.errno = errno;
    this.syscall = syscall;
  }
}
