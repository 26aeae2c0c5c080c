import type { RouteNode } from './decide-routes.ts';

/** A Node, as far as its routes and what is said of them depend on it. */
export type RoutedNode = RouteNode & {
  readonly uid: string;
  /** Absent: not known. */
  readonly resourceVersion?: string;
  readonly isReady: boolean;
  /** The condition NetworkUnavailable, if it exists. */
  readonly networkCondition?: { readonly status: string };
  /** Its Pods get addresses of the VPC: without a podCIDR it needs no route. */
  readonly hasEniPods?: boolean;
};

/** The Nodes of the cluster, followed. An informer of them is one. */
export type RoutedNodes = {
  readonly isSynced: boolean;
  readonly size: number;
  values(): Iterable<RoutedNode>;
  /** Calls `listener` with each change. Returns what ends that. */
  subscribe(listener: (change: { readonly key: string; readonly after?: RoutedNode }) => void): () => void;
};
