import type { Informer } from '../../kube/informer.ts';
import type { NecEntry } from '../nec-cache.ts';
import type { InstanceBook } from '../nodes/instance-book.ts';
import type { MachineEntry } from '../nodes/machine-entry.ts';
import { isSameNode } from '../nodes/node-entry.ts';
import { BY_INSTANCE, type Informers } from '../open-informers.ts';
import type { PodFacts } from '../records/pod-facts.ts';
import type { Subnets } from '../subnets/open-subnets.ts';
import type { Queues } from './queues.ts';

/** What may change. */
export type WakeSources = Informers & {
  readonly machines: Informer<MachineEntry> | undefined;
  readonly instances: InstanceBook;
  readonly subnets: Subnets;
};

/** How long a new node's ENIs wait for its agent's first word. */
const FIRST_DEMAND_MS = 2_000;

/**
 * Puts nodes in line when something that their decisions depend on has changed; all of them once at the start.
 * @returns what ends it.
 */
export function wakeNodes(sources: WakeSources, { supply, nodes }: Queues): () => void {
  const both = (name: string): void => {
    supply.add(name);
    nodes.add(name);
  };
  const everybody = (): void => {
    for (const name of sources.necs.keys()) both(name);
    for (const name of sources.nodes.keys()) nodes.add(name);
  };
  everybody();
  const stops = [
    sources.necs.subscribe(({ key, before, after }) => {
      nodes.add(key);
      // Its agent, if it runs, says in a moment how many addresses its Pods need: one creation then brings them at once.
      if (before === undefined && after?.decoded?.spec?.desiredRouteENIIP === undefined)
        supply.addAfter(key, FIRST_DEMAND_MS);
      else supply.add(key);
    }),
    sources.nodes.subscribe(({ key, before, after }) => {
      if (before !== undefined && after !== undefined && isSameNode(before, after)) return;
      both(key);
    }),
    sources.pods.subscribe(({ before, after }) => {
      // The last Pod of a node that is gone holds its ENIs, and a Pod an address that is offered; of all others the agent
      // knows better.
      if (after !== undefined || before === undefined) return;
      if (!hasNode(sources, before.nodeName) || isOffered(sources, before)) supply.add(before.nodeName);
    }),
    sources.machines?.subscribe(({ before, after }) => {
      for (const name of (after ?? before)?.nodeNames ?? []) nodes.add(name);
    }),
    sources.instances.subscribe((instanceId) => {
      for (const { name } of sources.necs.byIndex(BY_INSTANCE, instanceId)) both(name);
      for (const { name } of sources.nodes.byIndex(BY_INSTANCE, instanceId)) nodes.add(name);
    }),
    sources.subnets.subscribe(({ mayGoOn, isForAll, isScarcityOther }) => {
      const wait = mayGoOn ? [...sources.necs.values()].filter((entry) => !isReady(entry)) : [];
      for (const { name } of isForAll ? sources.necs.values() : wait) supply.add(name);
      if (isScarcityOther) wakeInTurn([...sources.necs.values()], supply);
    }),
  ];
  return () => {
    for (const stop of stops) stop?.();
  };
}

/** All nodes may look at a scarce subnet within this: each may write, and calls for Pods are not to wait behind them. */
const SCARCITY_SPREAD_MS = 10_000;
const SCARCITY_STEP_MS = 20;

/** Those that were told of a limit come first: Pods may wait for them. */
function wakeInTurn(entries: readonly NecEntry[], supply: Queues['supply']): void {
  const isLimited = ({ decoded }: NecEntry): boolean => decoded?.status?.allocatableRouteENIIPs !== undefined;
  const inTurn = [...entries.filter(isLimited), ...entries.filter((entry) => !isLimited(entry))];
  const stepMs = Math.min(SCARCITY_STEP_MS, SCARCITY_SPREAD_MS / inTurn.length);
  for (const [index, { name }] of inTurn.entries()) supply.addAfter(name, index * stepMs);
}

function hasNode({ nodes }: Informers, name: string): boolean {
  return nodes.get(name) !== undefined;
}

function isOffered({ necs }: Informers, { nodeName, ips }: PodFacts): boolean {
  const offers = necs.get(nodeName)?.decoded?.spec?.releasableIPs ?? [];
  return offers.some(({ ip }) => ips.includes(ip));
}

function isReady({ decoded }: NecEntry): boolean {
  return decoded?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
}
