import type { NodeKernel } from '../../dataplane/kernel.ts';
import type { NetnsRef } from '../../netlink/link-message.ts';
import type { Monitor, MonitorGroup } from '../../netlink/monitor.ts';
import type { Rtnetlink } from '../../netlink/rtnetlink.ts';
import type { Sysctl } from '../../sysctl/sysctl.ts';

/** A network namespace of a machine, with what a program of the product uses of it. */
export type ContractNetns = NetnsRef & {
  readonly path: string;
  readonly rtnetlink: Rtnetlink;
  readonly sysctl: Sysctl;
  readonly nft: NodeKernel['nft'];
  monitor(options: {
    readonly groups: readonly MonitorGroup[];
    readonly gatherMs?: number;
    readonly queueCapacity?: number;
  }): Monitor;
  /** Opens a second connection, as another program has one. */
  openRtnetlink(): Rtnetlink;
  /** Closes all that is open of it and removes its name: it ends. */
  end(): void;
};

/** A machine of the contract: the real kernel, or the model of it. */
export type ContractMachine = {
  readonly host: ContractNetns;
  createNetns(): ContractNetns;
  readonly enter: NodeKernel['enter'];
  /** Lets time go by until it holds: at most some seconds. */
  until(holds: () => boolean): Promise<boolean>;
  /** Waits for what takes time in the kernel. */
  finish<T>(work: Promise<T>): Promise<T>;
};
