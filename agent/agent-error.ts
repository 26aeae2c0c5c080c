/** Codes that name why the agent itself could not start or go on. */
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

/** The agent's own failure at start: says what it wanted, what was in the way and what to do. */
export class AgentError extends Error {
  readonly code: AgentErrorCode;

  constructor(code: AgentErrorCode, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'AgentError';
    this.code = code;
  }
}
