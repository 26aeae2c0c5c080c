import { UserError } from '../../runtime/user-error.ts';

/** The error of an agent that does not answer. */
export function noAgent(why: string, cause?: unknown): UserError {
  const next = `${AGENT_LOG_HINT}, or name its socket with --socket`;
  return new UserError('NO_AGENT', `the agent does not answer: ${why}`, next, { cause });
}

/**
 * The error of an agent that was asked, and was silent for so long.
 * @param longer Names the flag that sets the wait; '' where none does.
 */
export function silentAgent(
  socket: string,
  timeoutMs: number,
  { cause, longer = '' }: { readonly cause?: unknown; readonly longer?: string } = {},
): UserError {
  const waited = `the agent on ${socket} did not answer within ${timeoutMs / 1000} s`;
  return noAgent(`${waited}${longer === '' ? '' : `; ${longer}`}`, new SilenceError({ cause }));
}

/** The flag that sets how long the calls that only read wait. */
export const LONGER_WAIT = '--agent-timeout=SECONDS waits longer';

/** The cause of the error of an agent that listens and is silent: it may be stopped, or slow. */
export class SilenceError extends Error {
  constructor(options?: ErrorOptions) {
    super('no answer came in time', options);
    this.name = 'SilenceError';
  }
}

/** The error of a connection that was refused: without a listener, for lack of a right, or otherwise. */
export function unreachable(socket: string, details: string, cause: unknown): UserError {
  if (/EACCES|EPERM/.test(details)) return forbidden(socket, cause);
  const why = /ECONNREFUSED/.test(details) ? `no program listens on ${socket}` : `${socket}: ${details}`;
  return noAgent(why, cause);
}

/** The error of a socket that this user may not open. */
export function forbidden(socket: string, cause: unknown): UserError {
  return new UserError('FORBIDDEN', `${socket} is for root only`, 'run as root', { cause });
}

/** What to do about an agent that refuses or is silent. */
export const AGENT_LOG_HINT = 'look at the agent: kubectl -n kube-system logs ds/tke-eni-agent';
