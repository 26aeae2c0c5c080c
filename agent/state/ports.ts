import type { BridgeNetwork, PodNetwork } from '../../dataplane/network.ts';
import type { OpenNetns } from '../../netlink/netns.ts';
import type { Background } from '../../runtime/background.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { KeyedMutex } from '../../runtime/keyed-mutex.ts';
import type { Logger } from '../../runtime/log.ts';
import type { NodeEvents } from '../events/node-events.ts';
import type { Journal } from '../journal/journal-content.ts';
import type { LeaseKey } from '../journal/lease.ts';
import type { Metrics } from '../observability/metrics.ts';
import type { Reservations } from '../pod-cidr/host-local-files.ts';
import type { OperationLog } from '../recorder/operation-log.ts';
import type { NodeState } from './node-state.ts';

/** Writes one Pod's links, addresses, routes and rules to the kernel, and removes them again. */
export type PodWiring = {
  /**
   * Writes everything or nothing. `netns` is absent for kind `ipam`. The host link gets another name than the requested
   * one when a live sandbox has that. @throws WireError, after undoing.
   */
  wire(pod: PodNetwork, netns: OpenNetns | undefined): WiredLink | undefined;
  /**
   * Resolves when rules, routes and links are removed. Idempotent; uses ifindex and alias, never names.
   * @param netnsPath The Pod's namespace as the runtime named it; only the interface of a whole ENI is looked for in
   * it.
   */
  unwire(pod: PodNetwork, netnsPath: string): Promise<void>;
  /**
   * Reports whether the host end of the Pod's link is in the kernel. Then the namespace of its other end lives, whatever name
   * that has. False for a Pod without a link of ours.
   */
  isLinked(pod: PodNetwork): boolean;
  /**
   * Makes the routes inside a Pod with an exclusive ENI equal to its plan, which changes with the ranges of Services.
   * Idempotent. Returns the changes as command lines; none for a Pod of another kind, or without a namespace.
   */
  updateRoutes(pod: PodNetwork, netnsPath: string): Promise<readonly string[]>;
  /**
   * Checks in the kernel what was just wired: its link, and where a packet to each address would go. The cost does not
   * depend on the number of Pods. Returns one text for each difference.
   */
  verify(pod: PodNetwork): readonly string[];
  /**
   * Returns every difference between the plan and the kernel, one text each.
   * @param depth `own` checks what is this Pod's alone, `all` also what it shares: the node's rules and nftables table,
   * its ENI.
   */
  check(pod: PodNetwork, netns: OpenNetns | undefined, depth: 'own' | 'all'): Promise<readonly string[]>;
};

/** The host end as it was created. */
export type WiredLink = { readonly ifindex: number; readonly name: string };

/** Opens the network namespaces that the runtime names, and the host's. */
export type Sandboxes = {
  /**
   * Opens a namespace; the caller closes it. @throws CniFailureError when the path names no netns, or the host's own.
   */
  open(path: string): OpenNetns;
  /**
   * As `open`, but undefined when the path is empty or names none, or the host's own.
   * @throws CniFailureError when it cannot be opened
   */
  find(path: string): OpenNetns | undefined;
  /** Opens the host's own; the caller closes it. */
  own(): OpenNetns;
  /** Reports whether the path names no netns any more. */
  isAbsent(path: string): boolean;
};

/** Looks for addresses of ours that another program uses on this node. */
export type Strangers = {
  /**
   * Reports whether the kernel leads an address to a link of this node, or has it as one of its own: whoever did that, a Pod
   * with this address would have no packets, or take those of a Pod that lives. One request to the kernel.
   */
  readonly isWired: (ip: string) => boolean;
  /** Returns those of `ips` that are wired, or that a rule of another program names. */
  readonly find: (ips: Iterable<string>) => ReadonlySet<string>;
};

/** Deletes connection tracking entries. */
export type Conntrack = {
  /** Resolves when no entry with any of these addresses is left. A tool that is missing or fails is logged. */
  flush(ips: readonly string[]): Promise<void>;
  /** As `flush`. @throws Error with the tool's output when entries may be left. */
  flushOrThrow(ips: readonly string[]): Promise<void>;
};

/** Returns bytes that cannot be guessed. */
export type RandomBytes = (byteCount: number) => Uint8Array;

/** Settings of the use cases; times in milliseconds. */
type UseCaseSettings = {
  /** How long a released address cools. */
  readonly ipCooldownMs: number;
  /** How long an ADD waits for an address. */
  readonly addWaitMs: number;
  /** After how much of that wait a cooling address is taken early. */
  readonly forceAfterMs: number;
  /** How long an address that load balancers have as a target waits without a Pod; 0: not at all. */
  readonly registeredWaitMs: number;
  /** MTU of Pod links in bytes, when the request names none; 0 takes the ENI's own. */
  readonly podMtu: number;
  /** Folder of the host with networks that other plugins make; '' for none. */
  readonly delegateConfDir: string;
  /** Pods get addresses of the pool of a CiliumNode, and of no podCIDR. */
  readonly isCiliumPool: boolean;
};

/** What the parts of an agent share; each names the members that it uses. */
export type AgentParts = {
  /** Owns work that is not awaited; its error ends the agent. */
  readonly background: Background;
  readonly clock: Clock;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly state: NodeState;
  readonly journal: Journal;
  /** Log of each operation on an attachment and its steps. */
  readonly operationLog: OperationLog;
  /** Records events for people. */
  readonly events: NodeEvents;
};

/** Dependencies of the use cases. */
export type UseCaseDeps = AgentParts & {
  readonly randomBytes: RandomBytes;
  /** Serializes the work on one attachment; other attachments do not wait. */
  readonly mutex: KeyedMutex;
  readonly wiring: PodWiring;
  readonly sandboxes: Sandboxes;
  readonly conntrack: Conntrack;
  /** Addresses that other programs have on this node. */
  readonly strangers: Strangers;
  readonly settings: UseCaseSettings;
  /** Resolves after input was read that the kernel has by now. */
  readonly readPendingInput: () => Promise<void>;
  /**
   * Sets the node up for GlobalRoute Pods of a block, unless it is; `again`: also when it seems so. Resolves to their
   * bridge. @throws CniFailureError 11
   */
  readonly prepareBridge: (cidr: string, again?: 'again') => Promise<BridgeNetwork>;
  /** Addresses that host-local, which another program may use for the same block, must not give. */
  readonly reservations: Reservations;
  /** Called when the link of a Pod on a shared ENI is made, before the ADD is answered. */
  readonly linkMade: (key: LeaseKey) => void;
  /** Names what chains cilium-cni after our plugin, a flag or a file; undefined when nothing does. */
  readonly ciliumChain: () => string | undefined;
  /** Called when demand may have changed. */
  readonly demandChanged: () => void;
};
