import type { PodNetwork } from '../dataplane/network.ts';
import type { Netns } from '../netlink/netns.ts';
import type { Clock } from '../runtime/clock.ts';
import type { KeyedMutex } from '../runtime/keyed-mutex.ts';
import type { Logger } from '../runtime/log.ts';
import type { Journal } from './journal/journal-content.ts';
import type { NodeState } from './node-state.ts';
import type { Metrics } from './observability/metrics.ts';
import type { Diary } from './ops/diary.ts';

/** Puts one Pod's links, addresses, routes and rules into the kernel and takes them out again. */
export type PodWiring = {
  /**
   * All or nothing. `netns` is absent for kind `ipam`. The host link gets another name than the wanted one when a live
   * sandbox has that. @throws WireError, after undoing.
   */
  wire(pod: PodNetwork, netns: Netns | undefined): WiredLink | undefined;
  /**
   * Resolves when rules, routes and links are gone. Idempotent; acts on ifindex and alias, never on names.
   * @param netnsPath the Pod's namespace as the runtime named it; only an ENI that the Pod has as a whole is looked for in it.
   */
  unwire(pod: PodNetwork, netnsPath: string): Promise<void>;
  /**
   * Asks the kernel for what was just wired: its link, and where a packet to each address would go. Cheap whatever the
   * number of Pods. One text for each thing that is not as written.
   */
  verify(pod: PodNetwork): readonly string[];
  /**
   * Every difference between the plan and the kernel, one text each.
   * @param depth `own` looks at what is this Pod's alone, `all` also at the node's nftables table.
   */
  check(pod: PodNetwork, netns: Netns | undefined, depth: 'own' | 'all'): Promise<readonly string[]>;
};

/** The host end as it was made. */
export type WiredLink = { readonly ifindex: number; readonly name: string };

/** Finds the network namespaces that the runtime names. */
export type Sandboxes = {
  /** The caller closes it. @throws CniFailureError when the path names no netns, or the host's own. */
  open(path: string): Netns;
  /** As `open`, but undefined when the path is empty or names none, or the host's own. @throws CniFailureError when it cannot be opened */
  find(path: string): Netns | undefined;
  /** Tells whether the path names no netns any more. */
  isGone(path: string): boolean;
};

/** Drops connection tracking entries. */
export type Conntrack = {
  /** Resolves when no entry with any of these addresses is left. A tool that is missing or says no is logged. */
  flush(ips: readonly string[]): Promise<void>;
  /** As `flush`. @throws Error with what the tool said when entries may be left. */
  flushSurely(ips: readonly string[]): Promise<void>;
};

/** Yields bytes that nobody can guess. */
export type RandomBytes = (byteCount: number) => Uint8Array;

/** What use cases obey; times in milliseconds. */
export type UseCaseSettings = {
  /** How long a freed address rests. */
  readonly ipCooldownMs: number;
  /** How long an ADD waits for an address. */
  readonly addWaitMs: number;
  /** Of that, how long for supply before a cooling address is taken early. */
  readonly forceAfterMs: number;
  /** MTU of Pod links in bytes, when the request names none; 0 takes the ENI's own. */
  readonly podMtu: number;
};

/** What the use cases share. */
export type UseCaseDeps = {
  readonly clock: Clock;
  readonly randomBytes: RandomBytes;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly state: NodeState;
  readonly journal: Journal;
  /** Serializes the work of one attachment; other attachments go on. */
  readonly mutex: KeyedMutex;
  readonly wiring: PodWiring;
  readonly sandboxes: Sandboxes;
  readonly conntrack: Conntrack;
  /** Told of each operation of an attachment and its steps. */
  readonly diary: Diary;
  readonly settings: UseCaseSettings;
  /** Resolves in the next turn of the event loop, after pending input was read. */
  readonly nextTurn: () => Promise<void>;
  /** Called when demand may have changed. */
  readonly demandChanged: () => void;
};
