import { EXIT, type ExitCode } from './exit-code.ts';

/**
 * What keeps a command from answering. USAGE: the command line; NOT_FOUND: no such Pod, address, ENI; FORBIDDEN: needs
 * root or a capability; NO_AGENT: nobody answers on the agent's socket; NO_JOURNAL: nothing recorded on this node;
 * NO_CLUSTER: no API server to ask; NO_CLOUD: no cloud to ask; KERNEL: the kernel refused to tell; TERMINAL: this
 * needs a terminal; REFUSED: asked for a change that must not be made now.
 */
export type CliErrorCode =
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

/** Says what could not be done and what to do next, for a person at a terminal. */
export class CliError extends Error {
  readonly code: CliErrorCode;
  /** What the person can do; one line. */
  readonly next: string;

  constructor(code: CliErrorCode, message: string, next: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CliError';
    this.code = code;
    this.next = next;
  }

  /** The exit code that this error ends the process with. */
  get exitCode(): ExitCode {
    return this.code === 'USAGE' ? EXIT.usage : EXIT.failed;
  }
}
