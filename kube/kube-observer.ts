import type { KubeErrorCode } from './kube-error.ts';

/** Hears of every request, for metrics. */
export type KubeObserver = {
  /** After each request that was sent; of a watch, when it ends. `ms` without the wait for its turn. */
  readonly onRequest?: (request: KubeRequestSign) => void;
  /** How long a request waited for its turn, in milliseconds. */
  readonly onTurn?: (waitedMs: number) => void;
};

/** A request as metrics see it. */
export type KubeRequestSign = {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'update' | 'patch' | 'delete';
  readonly resource: string;
  readonly outcome: 'ok' | 'aborted' | KubeErrorCode;
  readonly ms: number;
};
