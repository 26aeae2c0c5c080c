import { warmThreadPool } from '../../netlink/netns.ts';
import type { GlobalArgs } from '../command.ts';
import { findEnis } from './find-enis.ts';
import { findPodLinks } from './find-pod-links.ts';
import { findTableNames } from './find-table-names.ts';
import { unknown } from './known.ts';
import type { HostFacts, NodeFacts } from './node-facts.ts';
import { readAgentFacts } from './read-agent-facts.ts';
import { insideReader } from './read-insides.ts';
import { readIpNames } from './read-ip-names.ts';
import { readNetnsFacts } from './read-netns-facts.ts';
import { readNftFacts } from './read-nft-facts.ts';
import { netnsPathOf, withNodeNetns } from './with-node-netns.ts';

/** Which parts to read; what is left out is unknown, and costs nothing. */
export type NodeReading = {
  /** Pods to look into, by key; default all. */
  readonly insides?: 'all' | 'none' | ((key: string) => boolean);
  /** Whether to run nft; default true. */
  readonly nft?: boolean;
  /** Whether to read settings, of host and Pods; default true. */
  readonly sysctls?: boolean;
};

/** What of the command line and the process says where to look. */
export type NodeContext = { readonly global: Pick<GlobalArgs, 'netns' | 'stateDir' | 'hostRoot'> };

const NOT_ASKED = unknown('it was not asked for', 'ask for it');

/**
 * Reads all that kernel and files of this node tell, in one go; changes nothing.
 * @throws CliError when the node's own namespace cannot be read: KERNEL, FORBIDDEN, NOT_FOUND. All else is told as unknown.
 */
export async function readNodeFacts({ global }: NodeContext, reading: NodeReading = {}): Promise<NodeFacts> {
  // Threads keep the namespace they start in: all of them before the first visit to another one.
  await warmThreadPool();
  const agent = readAgentFacts(global.stateDir);
  const dumps = withNodeNetns(global, (netns) => readNetnsFacts(netns, reading));
  const host: HostFacts = {
    ...dumps,
    nft: reading.nft === false ? NOT_ASKED : await readNftFacts(nftOptions(global)),
    tableNames: findTableNames(readIpNames(global.hostRoot, 'rt_tables'), findEnis(dumps, agent)),
  };
  const { insides = 'all' } = reading;
  const isWanted = typeof insides === 'function' ? insides : () => insides === 'all';
  const lookInto = insideReader(host, { ...reading, hostRoot: global.hostRoot });
  const pods = findPodLinks(agent, host.links).map((pod) => {
    const inside = isWanted(pod.key) ? lookInto(pod) : NOT_ASKED;
    return { ...pod, inside };
  });
  return { host, agent, pods };
}

function nftOptions(global: NodeContext['global']): { readonly netnsPath?: string } {
  return global.netns === undefined ? {} : { netnsPath: netnsPathOf(global) };
}
