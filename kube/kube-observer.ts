import type { KubeErrorCode } from './kube-error.ts';

/** Receives every request, for metrics. */
export type KubeObserver = {
  /** Called after each request that was sent; for a watch, when it ends. `ms` excludes the wait for the rate limit. */
  readonly onRequest?: (request: KubeRequestReport) => void;
  /** How long a request waited for the rate limit, in milliseconds. */
  readonly onRateLimitWait?: (waitedMs: number) => void;
};

/** A request, with the labels and the duration that metrics need. */
export type KubeRequestReport = {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';
  readonly resource: string;
  readonly outcome: 'ok' | 'aborted' | KubeErrorCode;
  readonly ms: number;
};
