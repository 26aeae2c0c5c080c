import type { NecEntry } from '../cache/decode-nec.ts';
import { isSameNode } from '../cache/node-entry.ts';
import type { PodFacts } from '../cache/pod-facts.ts';
import { NECS_BY_MARKED_IP, readMarkedIps } from '../decide/mark-indexes.ts';
import type { LeaderTerm } from './leader-term.ts';
import { BY_INSTANCE, type Informers } from './open-informers.ts';

/** How long a new node's ENIs wait for the first demand of its agent. */
const FIRST_DEMAND_MS = 2_000;

/**
 * Enqueues nodes when something that their decisions depend on has changed; all of them once at the start.
 * @returns a function that ends it.
 */
export function enqueueNodes(term: LeaderTerm): () => void {
  const { supply, nodes } = term.queues;
  const both = (name: string): void => {
    supply.add(name);
    nodes.add(name);
  };
  const all = (): void => {
    for (const name of term.necs.keys()) both(name);
    for (const name of term.nodes.keys()) nodes.add(name);
  };
  all();
  const stops = [
    term.necs.subscribe(({ key, before, after }) => {
      nodes.add(key);
      // If its agent runs, it soon writes how many addresses the Pods need: one creation can then bring all of them.
      if (before === undefined && after?.decoded?.spec?.desiredRouteENIIP === undefined)
        supply.addAfter(key, FIRST_DEMAND_MS);
      else supply.add(key);
      // The node that handed a static address over removes it from its own object once it is here.
      const marked = readMarkedIps(after?.decoded?.status);
      for (const { name } of marked.flatMap((ip) => term.necs.byIndex(NECS_BY_MARKED_IP, ip)))
        if (name !== key) supply.add(name);
    }),
    term.nodes.subscribe(({ key, before, after }) => {
      if (before !== undefined && after !== undefined && isSameNode(before, after)) return;
      both(key);
    }),
    term.pods.subscribe(({ before, after }) => {
      // Only three deletions of Pods matter: the last Pod of a deleted node keeps that node's ENIs, a Pod keeps an address
      // that is offered, and an object in deletion names its Pods. For other Pods the agent's demand is sufficient.
      if (after !== undefined || before === undefined || before.nodeName === '') return;
      const { nodeName, ips } = before;
      term.registered?.noteFreed(nodeName, ips);
      if (!hasNode(term, nodeName) || isOffered(term, before) || isDeleted(term, nodeName)) supply.add(nodeName);
    }),
    term.machines()?.subscribe(({ before, after }) => {
      for (const name of (after ?? before)?.nodeNames ?? []) nodes.add(name);
    }),
    term.instances.subscribe((instanceId) => {
      for (const { name } of term.necs.byIndex(BY_INSTANCE, instanceId)) both(name);
      for (const { name } of term.nodes.byIndex(BY_INSTANCE, instanceId)) nodes.add(name);
    }),
    term.subnets.subscribe(({ mayUnblock, areProblemsChanged, isScarcityChanged }) => {
      const wait = mayUnblock ? [...term.necs.values()].filter((entry) => !isReady(entry)) : [];
      for (const { name } of areProblemsChanged ? term.necs.values() : wait) supply.add(name);
      // Without any subnet a node of podCIDRs has no NodeENIConfig.
      const isNew = (name: string): boolean => term.necs.get(name) === undefined;
      for (const name of mayUnblock ? term.nodes.keys() : []) if (isNew(name)) nodes.add(name);
      if (isScarcityChanged) enqueueSpread(term);
    }),
  ];
  return () => {
    for (const stop of stops) stop?.();
  };
}

/**
 * Each node that is reconciled for a scarce subnet may write. 50 a second are half of the default rate of calls to the
 * API server; the other half is for Pods.
 */
const SCARCITY_STEP_MS = 20;

/** Spreads nodes over time, those with a published limit first: Pods may wait for them. */
export function spreadEnqueues(
  names: readonly string[],
  isLimited: (name: string) => boolean,
): readonly { readonly name: string; readonly afterMs: number }[] {
  const ordered = [...names.filter(isLimited), ...names.filter((name) => !isLimited(name))];
  return ordered.map((name, index) => ({ name, afterMs: index * SCARCITY_STEP_MS }));
}

function enqueueSpread({ necs, queues }: LeaderTerm): void {
  const isLimited = (name: string): boolean => necs.get(name)?.decoded?.status?.allocatableRouteENIIPs !== undefined;
  for (const { name, afterMs } of spreadEnqueues([...necs.keys()], isLimited)) queues.supply.addAfter(name, afterMs);
}

function hasNode({ nodes }: Informers, name: string): boolean {
  return nodes.get(name) !== undefined;
}

function isDeleted({ necs }: Informers, name: string): boolean {
  return necs.get(name)?.object.metadata.deletionTimestamp !== undefined;
}

function isOffered({ necs }: Informers, { nodeName, ips }: PodFacts): boolean {
  const offers = necs.get(nodeName)?.decoded?.spec?.releasableIPs ?? [];
  return offers.some(({ ip }) => ips.includes(ip));
}

function isReady({ decoded }: NecEntry): boolean {
  return decoded?.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') === true;
}
