import type { Leadership } from '../../kube/election/term.ts';
import { FreshStore } from '../../kube/fresh-store.ts';
import type { Informer } from '../../kube/informer.ts';
import { RouteCache } from '../../pod-routes/route-cache.ts';
import { findInstanceId, type MachineEntry, type MachineView } from '../cache/machine-entry.ts';
import { RegisteredIps } from '../cache/registered-ips.ts';
import { subnetKey } from '../calls/call-keys.ts';
import { NodeMemories } from '../calls/node-memory.ts';
import type { Term } from '../calls/term.ts';
import type { IpamdConfig } from '../config/options.ts';
import { NECS_BY_CLAIM, NECS_BY_MARKED_IP } from '../decide/mark-indexes.ts';
import { StaticEniIndex } from '../exclusive/static-eni-index.ts';
import type { SecondAllocator } from '../guests/pod-cidrs/second-allocator.ts';
import { AddressConflicts, createLookUpHolder } from '../guests/static/address-conflicts.ts';
import { ClaimWaits } from '../guests/static/claim-waits.ts';
import { AddressLookup } from '../nodes/address-lookup.ts';
import { ClaimRequests } from '../nodes/claim-requests.ts';
import { findMoved, type MarkedHolders } from '../nodes/find-moved.ts';
import { openInstanceCache } from '../nodes/instance-cache.ts';
import { createNodeFacts } from '../nodes/node-facts.ts';
import { Renewals } from '../nodes/renewals.ts';
import { openSubnets } from '../subnets/open-subnets.ts';
import { CiliumFollower } from './follow-cilium-nodes.ts';
import { type InformerDeps, type Informers, openTermInformers, type TermInformers } from './open-informers.ts';
import { makeQueues, type Queues } from './queues.ts';

/** What all terms of the process share. */
export type LeaderDeps = Omit<Term, keyof Informers | 'leader' | 'enqueueNode' | 'observer'> & {
  readonly informers: Informers;
  readonly informerDeps: InformerDeps;
  /** Undefined if the cluster has no Machines. */
  readonly machines: () => Informer<MachineEntry> | undefined;
  /** Undefined without --allocate-node-cidrs. */
  readonly secondAllocator: SecondAllocator | undefined;
  /** Called with the state of a term, for metrics; with undefined when the term is over. */
  readonly onTerm: (view: TermView | undefined) => void;
};

/** The observable state of a term. */
export type TermView = {
  readonly epoch: number;
  readonly queues: Queues;
  readonly records: Pick<TermInformers, 'vips' | 'claims'>;
  readonly ciliumNodes: Pick<CiliumFollower, 'informer'>;
};

/** A term with all that its controllers share. */
export type LeaderTerm = ReturnType<typeof openTerm>;

const SECOND_MS = 1_000;

/** Makes what belongs to one term; nothing of it is reused by a later one. Nothing runs yet. */
export function openTerm(deps: LeaderDeps, leadership: Leadership, signal: AbortSignal) {
  const { config, informers, informerDeps, metrics, cloud, clock, log, random } = deps;
  const { nodes, necs, vpcEnis } = informers;
  const queues = makeQueues(clock, random);
  const { clusterId, cloudTimeoutMs } = config;
  const requestTimeoutSeconds = Math.ceil(cloudTimeoutMs / SECOND_MS);
  const leader = { epoch: leadership.epoch, clusterId, requestTimeoutSeconds, term: { ...leadership, signal } };
  const enqueueNode = (name: string): void => queues.supply.add(name);
  const ownInformers = openTermInformers(informerDeps, config);
  const own = { observer: metrics.controller, leader, enqueueNode, queues, ownInformers };
  const term = { ...deps, ...informers, ...ownInformers, ...own };

  const machines: MachineView = { byIndex: (name, value) => deps.machines()?.byIndex(name, value) ?? [] };
  const lookup = new AddressLookup(cloud.instances, log);
  const instances = openInstanceCache(term);
  const instanceIds = (): ReadonlySet<string> => {
    const ofNecs = [...necs.values()].map(({ decoded }) => decoded?.status?.instanceID);
    const ofNodes = [...nodes.values()].map((node) => findInstanceId(node, machines) ?? lookup.find(node));
    return new Set([...ofNecs, ...ofNodes].filter((id) => id !== undefined));
  };
  const vpcIds = (): ReadonlySet<string> =>
    new Set([...instanceIds()].flatMap((id) => instances.find(id)?.instance?.vpcId ?? []));
  const onFreeIps = (subnetId: string): void => deps.breakers.allowProbe(subnetKey(subnetId));
  const subnets = openSubnets({ ...term, vpcIds, onFreeIps });
  /** The VPC of the cluster: that of the ConfigMap, else the one of all instances, else the one of the subnets. */
  const vpcId = (): string | undefined => {
    const configured = subnets.config()?.vpcId;
    if (configured !== undefined) return configured;
    const ofInstances = vpcIds();
    const ids = ofInstances.size > 0 ? ofInstances : new Set(subnets.all().map((subnet) => subnet.vpcId));
    return ids.size === 1 ? [...ids][0] : undefined;
  };

  const registered = createRegisteredIps(term, config);
  const staticEnis = new StaticEniIndex({ necs, vpcEnis, byClaim: NECS_BY_CLAIM });
  const requests = new ClaimRequests();
  const markedOn: MarkedHolders = (ip) =>
    necs.byIndex(NECS_BY_MARKED_IP, ip).map(({ name, decoded }) => {
      return { name, ...(decoded?.status === undefined ? {} : { status: decoded.status }) };
    });
  const movedTo = (name: string) => findMoved(name, necs.get(name)?.decoded?.status, markedOn);
  const ciliumNodes = new CiliumFollower(informerDeps, nodes, config.ciliumNodes !== 'off');
  const known = { ...term, machines, instances, lookup, subnets };
  const facts = createNodeFacts({ ...known, requests, registered, ciliumNodes, movedTo, staticEnis });
  return {
    ...term,
    ...{ instances, lookup, instanceIds, subnets, vpcId, registered, staticEnis, requests, ciliumNodes, facts },
    memory: new NodeMemories(),
    /** With what was written in this term. */
    freshNecs: new FreshStore(necs, ({ object }) => object.metadata.resourceVersion),
    renewals: new Renewals(),
    conflicts: new AddressConflicts(clock, random, createLookUpHolder({ cloud, necs })),
    waits: new ClaimWaits(clock),
    /** Routes of the VPC to networks of Pods. */
    podRoutes: config.grRoutes === 'ipamd' ? new RouteCache(clock) : undefined,
  };
}

/** Undefined with --load-balancer-wait=0. */
function createRegisteredIps(
  { necs, clock, queues }: Pick<Term, 'necs' | 'clock'> & { readonly queues: Queues },
  { registeredWaitMs: limitMs }: IpamdConfig,
): RegisteredIps | undefined {
  if (limitMs === 0) return undefined;
  return new RegisteredIps({ necs, clock, limitMs, onWait: (name, afterMs) => queues.supply.addAfter(name, afterMs) });
}
