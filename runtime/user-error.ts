/**
 * Why a question was not answered, or a command failed. USAGE: the question or command line is wrong; NOT_FOUND: there is no such Pod, address or ENI; FORBIDDEN:
 * root or a capability is missing; NO_AGENT: no agent answers on its socket; NO_JOURNAL: this node has no journal;
 * NO_CLUSTER: no API server answers; NO_CLOUD: the cloud's API does not answer; KERNEL: the kernel refused a request;
 * TERMINAL: the command needs a terminal; REFUSED: the requested change must not be made now.
 */
export type UserErrorCode =
  | 'USAGE'
  | 'NOT_FOUND'
  | 'FORBIDDEN'
  | 'NO_AGENT'
  | 'NO_JOURNAL'
  | 'NO_CLUSTER'
  | 'NO_CLOUD'
  | 'KERNEL'
  | 'TERMINAL'
  | 'REFUSED';

/** Error for the person who asked: the message says what failed, `next` says what the user can do. Both are printed. */
export class UserError extends Error {
  readonly code: UserErrorCode;
  /** What the user can do next; one line. */
  readonly next: string;

  constructor(code: UserErrorCode, message: string, next: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'UserError';
    this.code = code;
    this.next = next;
  }
}
