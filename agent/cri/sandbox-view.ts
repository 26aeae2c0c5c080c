/** A Pod sandbox as the container runtime lists it. */
export type CriSandbox = {
  readonly id: string;
  readonly state: 'ready' | 'not-ready';
  readonly podName: string;
  readonly podNamespace: string;
  readonly podUid: string;
  /** Handler of the Pod's RuntimeClass, such as `runsc`; absent for the runtime's default. */
  readonly handler?: string;
};

/** The network of one sandbox, as far as the runtime reports it. */
export type CriSandboxNetwork = {
  /** Empty for a sandbox in the host network. */
  readonly ips: readonly string[];
  /** Path as the runtime names it; undefined when it reports none. */
  readonly netns?: string;
};

/** The agent's view of the node's container runtimes. */
export type SandboxView = {
  /**
   * Lists every sandbox of every runtime that answers, also those that are not ready. One that is not listed may be of a
   * runtime that does not answer. @throws CriError when none answers.
   */
  list(signal: AbortSignal): Promise<readonly CriSandbox[]>;
  /** Reads one sandbox; undefined when it does not exist. @throws CriError when no runtime answers. */
  network(id: string, signal: AbortSignal): Promise<CriSandboxNetwork | undefined>;
  close(): void;
};

/**
 * An error for a runtime that did not answer, or whose answer has an unknown form. It is no evidence that a sandbox is
 * missing: nothing may be released because of it.
 */
export class CriError extends Error {
  readonly code: 'CRI_UNREACHABLE' | 'CRI_ANSWER';

  constructor(code: CriError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CriError';
    this.code = code;
  }
}
