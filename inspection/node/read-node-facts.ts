import { setImmediate } from 'node:timers/promises';
import { type Sync, warmThreadPool, withNetns } from '../../netlink/netns.ts';
import { findEnis } from './find-enis.ts';
import { findPodLinks } from './find-pod-links.ts';
import { hideTaken, type ReadHandlers } from './hide-taken.ts';
import { unknown } from './known.ts';
import { mergeTableNames } from './merge-table-names.ts';
import type { HostFacts, NodeFacts, PodReading } from './node-facts.ts';
import { readAgentFacts } from './read-agent-facts.ts';
import { insideReader } from './read-insides.ts';
import { readIpNames } from './read-ip-names.ts';
import { readLegacyRules } from './read-iptables.ts';
import { readLegacyTables, readQueueListeners } from './read-kernel.ts';
import { readNetnsFacts } from './read-netns-facts.ts';
import { readNftFacts } from './read-nft-facts.ts';
import { type NodePlace, netnsPathOf, withNodeNetns } from './with-node-netns.ts';

/** What to read; the rest is returned as unknown and takes no time. */
type NodeReading = {
  /** Pods whose namespaces are read, by key; default all. */
  readonly insides?: 'all' | 'none' | ((key: string) => boolean);
  /** Whether to run nft; default true. */
  readonly nft?: boolean;
  /** Largest ruleset of nftables, bytes; a larger one is returned as unknown. */
  readonly maxNftBytes?: number;
  /**
   * Whether to read settings, of the host and of Pods; default true. 'when-asked': settings of the
   * host are read when they are first asked for, where `--netns` names no namespace.
   */
  readonly sysctls?: boolean | 'when-asked';
  /** Whether to read traffic control; default: as `sysctls`. */
  readonly traffic?: boolean;
  /** Asks for the handlers of runtimes, where a Pod's addresses are gone; default: none is known. */
  readonly handlers?: ReadHandlers;
  /** Shows what is left in the namespace of a Pod whose sandbox took addresses and routes out; else it is unknown. */
  readonly showsTaken?: boolean;
};

/** The options and environment that select the node to read. */
export type NodeContext = { readonly global: NodePlace };

const NOT_REQUESTED = unknown('it was not requested', 'request it');

/**
 * Reads everything that kernel and files of this node contain, in one pass; changes nothing.
 * @throws UserError when the node's own namespace cannot be read: KERNEL, FORBIDDEN, NOT_FOUND. Anything else is
 * returned as unknown
 */
export async function readNodeFacts({ global }: NodeContext, reading: NodeReading = {}): Promise<NodeFacts> {
  // A thread stays in the namespace in which it starts: all threads of the pool start before another namespace is
  // entered.
  await warmThreadPool();
  const agent = readAgentFacts(global.stateDir);
  const dumps = withNodeNetns(global, (netns) => readNetnsFacts(netns, reading));
  const limit = reading.maxNftBytes === undefined ? {} : { maxBytes: reading.maxNftBytes };
  const host: HostFacts = {
    ...dumps,
    nft: reading.nft === false ? NOT_REQUESTED : await readNftFacts({ ...nftOptions(global), ...limit }),
    legacyIptables: reading.nft === false ? NOT_REQUESTED : await readLegacyIptables(global),
    queueListeners: reading.nft === false ? NOT_REQUESTED : inNode(global, readQueueListeners),
    tableNames: mergeTableNames(readIpNames(global.hostRoot, 'rt_tables'), findEnis(dumps, agent)),
  };
  const { insides = 'all' } = reading;
  const isSelected = typeof insides === 'function' ? insides : () => insides === 'all';
  const readInside = insideReader(host, { ...reading, hostRoot: global.hostRoot });
  const pods: PodReading[] = [];
  for (const pod of findPodLinks(agent, host.links)) {
    const isRead = isSelected(pod.key);
    pods.push({ ...pod, inside: isRead ? readInside(pod) : NOT_REQUESTED });
    // Reading a namespace takes a millisecond: an agent that explains serves others in between.
    if (isRead) await setImmediate();
  }
  return { host, agent, pods: reading.showsTaken === true ? pods : await hideTaken(pods, reading.handlers) };
}

function readLegacyIptables(global: NodeContext['global']): Promise<HostFacts['legacyIptables']> {
  const tables = inNode(global, readLegacyTables);
  const { netnsPath } = nftOptions(global);
  return tables.kind === 'unknown'
    ? Promise.resolve(tables)
    : readLegacyRules({ netnsPath, legacyTables: tables.value });
}

/** Calls `read` in the node's network namespace. */
function inNode<T>(global: NodeContext['global'], read: () => Sync<T>): Sync<T> {
  return withNodeNetns(global, (netns) => (netns === undefined ? read() : withNetns(netns, read)));
}

function nftOptions(global: NodeContext['global']): { readonly netnsPath?: string } {
  return global.netns === undefined ? {} : { netnsPath: netnsPathOf(global) };
}
