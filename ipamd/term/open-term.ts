import type { Leadership } from '../../kube/election/term.ts';
import { FreshStore } from '../../kube/fresh-store.ts';
import type { Informer } from '../../kube/informer.ts';
import { WorkQueue } from '../../kube/work-queue.ts';
import { findInstanceId, type MachineEntry, type MachineView } from '../cache/machine-entry.ts';
import type { NodeEntry } from '../cache/node-entry.ts';
import { RegisteredIps } from '../cache/registered-ips.ts';
import { subnetKey } from '../calls/call-keys.ts';
import { NodeMemories } from '../calls/node-memory.ts';
import type { Term } from '../calls/term.ts';
import type { IpamdConfig } from '../config/options.ts';
import { NECS_BY_CLAIM, NECS_BY_MARKED_IP } from '../decide/mark-indexes.ts';
import { StaticEniIndex } from '../exclusive/static-eni-index.ts';
import { AddressLookup } from '../nodes/address-lookup.ts';
import { ClaimRequests } from '../nodes/claim-requests.ts';
import { type Claimant, findRival } from '../nodes/decide-instance.ts';
import { findMoved, type MarkedHolders } from '../nodes/find-moved.ts';
import { openInstanceCache } from '../nodes/instance-cache.ts';
import { createNodeFacts } from '../nodes/node-facts.ts';
import { Renewals } from '../nodes/renewals.ts';
import { openSubnets } from '../subnets/open-subnets.ts';
import type { Guest, OpenGuest } from './guest.ts';
import type { LeaderTerm } from './leader-term.ts';
import { BY_INSTANCE, type InformerDeps, type Informers, openTermInformers } from './open-informers.ts';

/** What all terms of the process share. */
export type LeaderDeps = Omit<Term, keyof Informers | 'leader' | 'enqueueNode' | 'observer'> & {
  readonly informers: Informers;
  readonly informerDeps: InformerDeps;
  /** Undefined if the cluster has no Machines. */
  readonly machines: () => Informer<MachineEntry> | undefined;
  /** In the order in which they are opened; those that the settings do not want are left out. */
  readonly guests: readonly Guest[];
  /** Called with the state of a term, for metrics; with undefined when the term is over. */
  readonly onTerm: (view: TermView | undefined) => void;
};

/** The observable state of a term. */
export type TermView = {
  readonly epoch: number;
  readonly queues: Readonly<Record<string, WorkQueue>>;
  readonly informers: () => Readonly<Record<string, Informer<unknown> | undefined>>;
};

const SECOND_MS = 1_000;

/** Makes what belongs to one term, and opens the guests in it; nothing of it is reused by a later one. Nothing runs yet. */
export function openTerm(
  deps: LeaderDeps,
  leadership: Leadership,
  signal: AbortSignal,
): { readonly term: LeaderTerm; readonly guests: readonly OpenGuest[]; readonly queues: TermView['queues'] } {
  const { config, informers, informerDeps, metrics, cloud, clock, log, random } = deps;
  const { nodes, necs, vpcEnis } = informers;
  const queues = { supply: new WorkQueue({ clock, random }), nodes: new WorkQueue({ clock, random }) };
  const { clusterId, cloudTimeoutMs } = config;
  const requestTimeoutSeconds = Math.ceil(cloudTimeoutMs / SECOND_MS);
  const leader = { epoch: leadership.epoch, clusterId, requestTimeoutSeconds, term: { ...leadership, signal } };
  const enqueueNode = (name: string): void => queues.supply.add(name);
  const own = { observer: metrics.controller, leader, enqueueNode, queues };
  const base = { ...deps, ...informers, ...openTermInformers(informerDeps, config), ...own };

  const machines: MachineView = { byIndex: (name, value) => deps.machines()?.byIndex(name, value) ?? [] };
  const lookup = new AddressLookup(cloud.instances, log);
  const instances = openInstanceCache(base);
  const instanceIds = (): ReadonlySet<string> => {
    const ofNecs = [...necs.values()].map(({ decoded }) => decoded?.status?.instanceID);
    const ofNodes = [...nodes.values()].map((node) => findInstanceId(node, machines) ?? lookup.find(node));
    return new Set([...ofNecs, ...ofNodes].filter((id) => id !== undefined));
  };
  const vpcIds = (): ReadonlySet<string> =>
    new Set([...instanceIds()].flatMap((id) => instances.find(id)?.instance?.vpcId ?? []));
  const onFreeIps = (subnetId: string): void => deps.breakers.allowProbe(subnetKey(subnetId));
  const subnets = openSubnets({ ...base, vpcIds, onFreeIps });
  const vpcId = (): string | undefined => {
    const configured = subnets.config()?.vpcId;
    if (configured !== undefined) return configured;
    const ofInstances = vpcIds();
    const ids = ofInstances.size > 0 ? ofInstances : new Set(subnets.all().map((subnet) => subnet.vpcId));
    return ids.size === 1 ? [...ids][0] : undefined;
  };

  const registered = createRegisteredIps(base, config);
  const staticEnis = new StaticEniIndex({ necs, vpcEnis, byClaim: NECS_BY_CLAIM });
  const requests = new ClaimRequests();
  const markedOn: MarkedHolders = (ip) =>
    necs.byIndex(NECS_BY_MARKED_IP, ip).map(({ name, decoded }) => {
      return { name, ...(decoded?.status === undefined ? {} : { status: decoded.status }) };
    });
  const movedTo = (name: string) => findMoved(name, necs.get(name)?.decoded?.status, markedOn);
  // Nothing is read of a node before the guests are open.
  const guests: OpenGuest[] = [];
  const keptIps = (node: NodeEntry) => keptIpsOf(guests, node);
  const known = { ...base, machines, instances, lookup, subnets };
  const rivalOf = (name: string, instanceId: string) =>
    findRival(name, claimantsOf({ nodes, necs, lookup }, instanceId));
  const facts = createNodeFacts({ ...known, requests, registered, keptIps, movedTo, rivalOf, staticEnis });
  const term: LeaderTerm = {
    ...base,
    ...{ instances, lookup, instanceIds, subnets, vpcId, registered, staticEnis, requests, facts, rivalOf },
    memory: new NodeMemories(clock),
    freshNecs: new FreshStore(
      necs,
      ({ object }) => object.metadata.resourceVersion,
      ({ object }) => object.metadata.generation,
    ),
    renewals: new Renewals(),
    noteRequests: (node) => {
      enqueueNode(node);
      for (const { notes } of guests) notes?.requested?.(node);
    },
  };
  const ofGuests: Record<string, WorkQueue> = {};
  for (const guest of deps.guests) {
    const queue = new WorkQueue({ clock, random });
    if (guest.queue !== undefined) ofGuests[guest.queue] = queue;
    if (guest.isWanted?.(config) !== false) guests.push(guest.open(term, queue));
  }
  return { term, guests, queues: { ...queues, ...ofGuests } };
}

/** Returns what any guest keeps on a node; unknown while one does not know it. */
function keptIpsOf(guests: readonly OpenGuest[], node: NodeEntry): ReadonlySet<string> | 'unknown' | undefined {
  const kept = guests.flatMap(({ wants }) => wants?.keptIps?.(node) ?? []);
  const [first] = kept;
  if (kept.length < 2 || first === undefined) return first;
  const sets = kept.filter((one) => one !== 'unknown');
  return sets.length < kept.length ? 'unknown' : new Set(sets.flatMap((one) => [...one]));
}

/** Undefined with --load-balancer-wait=0. */
function createRegisteredIps(
  { necs, clock, queues }: Pick<LeaderTerm, 'necs' | 'clock' | 'queues'>,
  { registeredWaitMs: limitMs }: IpamdConfig,
): RegisteredIps | undefined {
  if (limitMs === 0) return undefined;
  return new RegisteredIps({ necs, clock, limitMs, onWait: (name, afterMs) => queues.supply.addAfter(name, afterMs) });
}

/** Lists the Nodes that name an instance. */
function claimantsOf(
  { nodes, necs, lookup }: Pick<LeaderTerm, 'nodes' | 'necs' | 'lookup'>,
  instanceId: string,
): readonly Claimant[] {
  const lookedUp = lookup.namesOf(instanceId).map((name) => nodes.get(name));
  const found = lookedUp.filter((node) => node !== undefined && lookup.find(node) === instanceId);
  const all = new Set([...nodes.byIndex(BY_INSTANCE, instanceId), ...found].filter((node) => node !== undefined));
  return [...all].map((node) => {
    const { object, decoded } = necs.get(node.name) ?? {};
    const isHeld = decoded?.status?.instanceID === instanceId;
    return { node, ownsSince: isHeld ? object?.metadata.creationTimestamp : undefined };
  });
}
