import type { LeaseKey } from '../../agent/journal/lease.ts';
import type { Operation } from '../../dataplane/operation.ts';

/** One change that repair would make, and where. */
export type Change =
  | { readonly kind: 'host'; readonly operation: Operation }
  /** In the network namespace of a Pod. */
  | { readonly kind: 'pod'; readonly key: LeaseKey; readonly netns: string; readonly operation: Operation }
  /** The host interface of an attachment that is no more. */
  | { readonly kind: 'delete-veth'; readonly key: LeaseKey; readonly ifindex: number; readonly ifname: string }
  /** The MAC address that a Pod sends to, back on its host interface. */
  | {
      readonly kind: 'set-veth-mac';
      readonly key: LeaseKey;
      readonly ifindex: number;
      readonly ifname: string;
      readonly mac: string;
    };
