import type { LeasePlugin } from '../journal/lease.ts';

/** What an ADD requests. */
export type AttachCommand = {
  readonly plugin: LeasePlugin;
  readonly containerId: string;
  readonly ifName: string;
  readonly netns: string;
  readonly network: string;
  readonly podNamespace: string;
  readonly podName: string;
  readonly podUid: string;
  /** Bytes; 0 means the ENI's own. */
  readonly mtu: number;
  readonly disableIpv6: boolean;
  /** For plugin `ipam`: the main plugin keeps the rules and routes of the address, with the ENI as its uplink. */
  readonly uplink: boolean;
  /** The place of the link's traffic filters may be made with it: no plugin after ours needs it. Absent: no. */
  readonly filterPlace?: boolean;
  /** When the caller stops waiting, wall clock; 0 when it gave no deadline. */
  readonly deadlineAtMs: number;
};

/** An ADD whose deadline was read once, when it was received: later steps of the wall clock do not move it. */
export type TimedAttachCommand = AttachCommand & {
  /** When the caller stops waiting, milliseconds of the boot clock; infinite when it gave no deadline. */
  readonly deadlineAtBootMs: number;
};
