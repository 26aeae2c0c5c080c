/** A Pod sandbox as the container runtime lists it. */
export type CriSandbox = {
  readonly id: string;
  readonly state: 'ready' | 'not-ready';
  readonly podName: string;
  readonly podNamespace: string;
  readonly podUid: string;
};

/** What the runtime knows of one sandbox's network. */
export type CriSandboxNetwork = {
  /** Empty for a sandbox in the host network. */
  readonly ips: readonly string[];
  /** As the runtime names it; undefined when it does not say. */
  readonly netns?: string;
};

/** The agent's view of the node's container runtime. */
export type SandboxView = {
  /** Lists every sandbox, dead ones included. @throws CriError when no runtime answers. */
  list(signal: AbortSignal): Promise<readonly CriSandbox[]>;
  /** Asks for one sandbox; undefined when it is gone. @throws CriError when no runtime answers. */
  network(id: string, signal: AbortSignal): Promise<CriSandboxNetwork | undefined>;
  close(): void;
};

/** The runtime did not answer, or not in a way that we understand. Nothing may be released on the strength of it. */
export class CriError extends Error {
  readonly code: 'CRI_UNREACHABLE' | 'CRI_ANSWER';

  constructor(code: CriError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CriError';
    this.code = code;
  }
}
