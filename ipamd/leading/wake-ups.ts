import type { Informer } from '../../kube/informer.ts';
import type { NecEntry } from '../nec-cache.ts';
import type { InstanceBook } from '../nodes/instance-book.ts';
import type { MachineEntry } from '../nodes/machine-entry.ts';
import { isSameNode } from '../nodes/node-entry.ts';
import { BY_INSTANCE, type Informers } from '../open-informers.ts';
import type { PodFacts } from '../records/pod-facts.ts';
import { findMarkedIps } from '../static/find-places.ts';
import { NECS_BY_MARKED_IP } from '../static/see-claim.ts';
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
      // Who handed a kept address over takes it out of its own object once it is here.
      const marked = findMarkedIps(after?.decoded?.status);
      for (const { name } of marked.flatMap((ip) => sources.necs.byIndex(NECS_BY_MARKED_IP, ip)))
        if (name !== key) supply.add(name);
    }),
    sources.nodes.subscribe(({ key, before, after }) => {
      if (before !== undefined && after !== undefined && isSameNode(before, after)) return;
      both(key);
    }),
    sources.pods.subscribe(({ before, after }) => {
      // The last Pod of a node that is gone holds its ENIs, and a Pod an address that is offered; of all others the agent
      // knows better.
      if (after !== undefined || before === undefined || before.nodeName === '') return;
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
      if (isScarcityOther) wakeInTurn(sources, supply);
    }),
  ];
  return () => {
    for (const stop of stops) stop?.();
  };
}

/**
 * Each node that looks at a scarce subnet may write: 50 a second are half of the calls to the API server that there are by
 * default, and the other half is for Pods.
 */
const SCARCITY_STEP_MS = 20;

/** Puts nodes in line one after the other, those first that were told of a limit: Pods may wait for them. Pure. */
export function spreadWakes(
  names: readonly string[],
  isLimited: (name: string) => boolean,
): readonly { readonly name: string; readonly afterMs: number }[] {
  const inTurn = [...names.filter(isLimited), ...names.filter((name) => !isLimited(name))];
  return inTurn.map((name, index) => ({ name, afterMs: index * SCARCITY_STEP_MS }));
}

function wakeInTurn({ necs }: WakeSources, supply: Queues['supply']): void {
  const isLimited = (name: string): boolean => necs.get(name)?.decoded?.status?.allocatableRouteENIIPs !== undefined;
  for (const { name, afterMs } of spreadWakes([...necs.keys()], isLimited)) supply.addAfter(name, afterMs);
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
