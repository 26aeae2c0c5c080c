/** Codes of the errors with which the agent cannot start or go on. */
export type AgentErrorCode =
  | 'ANOTHER_AGENT'
  | 'SOCKET'
  | 'NO_PRIMARY'
  | 'CONFLIST'
  | 'INSTALL'
  | 'NFT'
  | 'ADOPTION'
  | 'PODS_LIVE'
  | 'UNINSTALL';

/** An error with which the agent cannot go on: its message says what was tried, what prevented it and what to do. */
export class AgentError extends Error {
  readonly code: AgentErrorCode;

  constructor(code: AgentErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentError';
    this.code = code;
  }
}
