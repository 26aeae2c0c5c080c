import type { NetnsRef } from '../netlink/link-message.ts';
import type { Rtnetlink } from '../netlink/rtnetlink.ts';
import type { Sysctl } from '../sysctl/sysctl.ts';
import type { FlowPrograms } from './fast-path/flow-programs.ts';
import type { ConnectionKeeper } from './keep-connections.ts';
import type { Nft } from './nft.ts';

/** Access to the kernel in one network namespace: everything that plans are applied to. */
export type Kernel = {
  readonly rtnetlink: Rtnetlink;
  readonly sysctl: Sysctl;
  readonly nft: Nft;
  /** The fast path's programs; absent where none are loaded. */
  readonly flows?: FlowPrograms;
  /** Absent where no setting of connection tracking is given back. */
  readonly connections?: ConnectionKeeper;
};

/** The kernel of a node, with the way into the network namespaces of its Pods. */
export type NodeKernel = Kernel & {
  /** Opens another namespace; the caller must close it. @throws NetnsError, LibcError */
  readonly enter: (netns: NetnsRef) => InNetns;
};

/** What is done and read in a Pod's network namespace. */
export type InNetns = Disposable & {
  readonly rtnetlink: Rtnetlink;
  readonly sysctl: Sysctl;
  /** Lists the links of which a socket of another program takes every packet; empty where the kernel does not say. */
  readonly packetLinks: () => readonly number[];
};
