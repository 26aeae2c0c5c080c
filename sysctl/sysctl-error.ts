/** The kind of failure, for callers to branch on. Kernel errors keep their errno name. */
type SysctlErrorCode = 'INVALID_NAME' | 'NO_SUCH_KEY' | 'READ_ONLY' | 'REFUSED' | 'NOT_TAKEN' | 'IO';

/** A kernel setting that could not be read or written. `path` is the file under /proc/sys. */
export class SysctlError extends Error {
  readonly code: SysctlErrorCode;
  readonly path: string;

  constructor(code: SysctlErrorCode, path: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? undefined : { cause });
    this.name = 'SysctlError';
    this.code = code;
    this.path = path;
  }
}

/** Reports whether `error` is a SysctlError, and, when codes are given, one of these. */
export function isSysctlError(error: unknown, ...codes: readonly SysctlErrorCode[]): error is SysctlError {
  return error instanceof SysctlError && (codes.length === 0 || codes.includes(error.code));
}
