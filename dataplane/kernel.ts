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
