import { LibcError } from '../netlink/errno.ts';

/**
 * A refused call of bpf(2). `code` is the name of the errno: EPERM without the capability, EINVAL and EACCES for a program
 * that the verifier refuses, ENOENT for an object that is gone.
 */
export class BpfError extends Error {
  override readonly name = 'BpfError';
  readonly code: string;
  /** What the verifier said and the instruction that it refused; empty where it was not asked. */
  readonly verifierLog: string;

  constructor(what: string, cause: unknown, verifierLog = '') {
    super(`cannot ${what}: ${explain(cause)}${verifierLog === '' ? '' : `\n${verifierLog}`}`, { cause });
    this.code = cause instanceof LibcError ? cause.code : 'UNKNOWN';
    this.verifierLog = verifierLog;
  }
}

function explain(cause: unknown): string {
  if (!(cause instanceof LibcError)) return String(cause);
  switch (cause.code) {
    case 'EPERM':
      return `${cause.message}; it needs CAP_BPF and CAP_NET_ADMIN, or CAP_SYS_ADMIN`;
    case 'ENOSYS':
      return `${cause.message}; the kernel was built without CONFIG_BPF_SYSCALL, or a seccomp profile refuses it`;
    default:
      return cause.message;
  }
}

/** Reports whether it is a BpfError with one of the codes; with any code where none is given. */
export function isBpfError(error: unknown, ...codes: readonly string[]): error is BpfError {
  return error instanceof BpfError && (codes.length === 0 || codes.includes(error.code));
}
