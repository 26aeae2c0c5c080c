import type { LeaseKey } from '../../../agent/journal/lease.ts';
import type { Operation } from '../../../dataplane/operation.ts';

/** One change that repair would make, with its place. */
export type Change =
  | { readonly kind: 'host'; readonly operation: Operation }
  /** A change in the network namespace of a Pod. */
  | { readonly kind: 'pod'; readonly key: LeaseKey; readonly netns: string; readonly operation: Operation }
  /** Deletes the host interface of an attachment that no longer exists. */
  | { readonly kind: 'delete-veth'; readonly key: LeaseKey; readonly ifindex: number; readonly ifname: string };
