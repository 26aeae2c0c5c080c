import type { EniQuota } from '../../../cloud/eni-quotas.ts';
import { countNodeAddresses, countNodesLeft, isOpenToNewNodes } from '../../../crd/new-node.ts';
import type { PodCidrRecord } from '../../../crd/pod-cidr-record.ts';
import { renderScaleError, SCALE_ERROR_CODE } from '../../../crd/scale-error.ts';
import type { SubnetSupply } from '../../../crd/subnet-supply.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { ClusterFacts, ClusterNec } from './cluster-facts.ts';
import { findNodeType, findUsualNodeType, type NodeType, typesOf } from './find-node-type.ts';
import { countFree, countMissing, type FreeBySubnet, growNode } from './grow-nodes.ts';
import type { SubnetSupplies } from './read-published.ts';

/** What is to be decided: nodes of a type in a zone; each zone and the usual type of its nodes where none is named. */
export type CapacityQuestion = {
  readonly nodes: number;
  readonly zone: string | undefined;
  readonly type: string | undefined;
};

/** What decides. */
type CapacityFacts = Pick<ClusterFacts, 'necs' | 'pods'> & {
  /** Undefined where ipamd publishes no subnets. */
  readonly supplies: SubnetSupplies | undefined;
  /** Undefined where ipamd gives no podCIDRs. */
  readonly podCidrs: PodCidrRecord | undefined;
  /** Of the VPC; undefined unless the cloud was asked. */
  readonly eniQuota?: EniQuota | undefined;
};

/** One subnet of a zone. */
export type SubnetCapacity = {
  readonly subnetId: string;
  readonly cidr: string;
  readonly total: number;
  /** Minus what nodes still lack. */
  readonly free: number;
  /** Whether new nodes get ENIs in it; nominated and named: only nodes that name it. */
  readonly state: 'open' | 'blocked' | 'nominated' | 'named';
  readonly nodesLeft: number;
};

/** How many more nodes and Pods a zone has addresses for. */
export type ZoneCapacity = {
  readonly zone: string;
  /** Present nodes with a NodeENIConfig. */
  readonly nodes: number;
  /** Free addresses of the subnets that are open to new nodes, minus what nodes still lack. */
  readonly free: number;
  /** Addresses that nodes of the zone still lack; `free` is without them as far as they can be had. */
  readonly missing: number;
  /** Addresses on the present nodes that no Pod has; undefined when Pods cannot be listed. */
  readonly warm: number | undefined;
  /** More Pods that the present nodes get addresses for, the warm ones included; undefined when Pods cannot be listed. */
  readonly podsLeft: number | undefined;
  readonly newNode: NodeType & { readonly addresses: number; readonly addressesWhenFull: number };
  /** New nodes that get their first ENI with warm addresses. */
  readonly nodesLeft: number;
  /** New nodes that get as many addresses as their type may have. */
  readonly fullNodesLeft: number;
  readonly isEnough: boolean;
  /** The product's code when it is not enough, else 0. */
  readonly code: number;
  /** What is not enough, in the product's words, and why; '' when it is enough. */
  readonly problem: string;
  readonly subnets: readonly SubnetCapacity[];
};

/** How many more nodes get a podCIDR. */
type BlockCapacity = {
  readonly nodesLeft: number;
  readonly isEnough: boolean;
  /** As in {@link ZoneCapacity}. */
  readonly problem: string;
};

/** The answer. */
export type Capacity = {
  readonly nodes: number;
  readonly isEnough: boolean;
  readonly zones: readonly ZoneCapacity[];
  readonly eniQuota: EniCapacity;
  readonly podCidrs?: BlockCapacity;
};

/**
 * Decides whether the cluster has addresses for so many more nodes: of each zone's subnets, and blocks of podCIDRs where
 * ipamd gives them. What nodes still lack goes first. The VPC's quota of ENIs counts as far as it is known.
 * @throws UserError NOT_FOUND: unknown zone or type, nothing published
 */
export function decideCapacity(facts: CapacityFacts, question: CapacityQuestion): Capacity {
  const { supplies = NO_SUPPLIES, podCidrs } = facts;
  const { nodes } = question;
  if (facts.supplies === undefined && podCidrs === undefined) {
    const next = 'is a leader of tke-eni-ipamd running? kubectl -n kube-system get configmap tke-eni-subnets';
    throw new UserError('NOT_FOUND', 'no ConfigMap tke-eni-subnets: ipamd has published no free addresses', next);
  }
  checkType(facts.necs, question.type);
  const { free, missing } = takeMissing(facts.necs, supplies);
  const zones = zonesOf(facts, supplies, question.zone).map((zone) =>
    zoneCapacity({ ...facts, supplies, free, missing }, zone, question),
  );
  const blocks = podCidrs === undefined ? undefined : blockCapacity(podCidrs, nodes);
  const eniQuota = decideEniQuota(facts.necs, nodes, facts.eniQuota);
  const isEnough = zones.every((zone) => zone.isEnough) && eniQuota.isEnough && blocks?.isEnough !== false;
  return { nodes, isEnough, zones, eniQuota, ...(blocks === undefined ? {} : { podCidrs: blocks }) };
}

const NO_SUPPLIES: SubnetSupplies = { bySubnet: new Map(), malformed: [] };

/** Takes what nodes lack from the free addresses. */
function takeMissing(necs: readonly ClusterNec[], supplies: SubnetSupplies) {
  const free = countFree(supplies, necs);
  const missing = new Map<string, number>();
  for (const nec of necs) {
    const count = countMissing(nec);
    if (count === 0) continue;
    const zone = nec.status.zone ?? '';
    missing.set(zone, (missing.get(zone) ?? 0) + count);
    growNode(nec, count, free, supplies);
  }
  return { free, missing };
}

function checkType(necs: readonly ClusterNec[], type: string | undefined): void {
  if (type === undefined || findNodeType(necs, type) !== undefined) return;
  const types = typesOf(necs);
  const known = types.length === 0 ? 'no node has a type' : `nodes have ${listText(types)}`;
  const text = `the limits of instance type ${type} are not known: no node has it, and its name does not contain its size`;
  throw new UserError('NOT_FOUND', text, `give --type as the cloud writes it, such as S5.LARGE8; ${known}`);
}

/** Lists the zones of subnets and nodes, or the requested one. @throws UserError NOT_FOUND */
function zonesOf({ necs }: CapacityFacts, { bySubnet }: SubnetSupplies, zone: string | undefined): readonly string[] {
  const ofSubnets = [...bySubnet.values()].map((supply) => supply.zone);
  const ofNodes = necs.flatMap(({ status }) => status.zone ?? []);
  const zones = [...new Set([...ofSubnets, ...ofNodes])].filter((one) => one !== '').sort();
  if (zone === undefined) return zones;
  // Another zone of the region may get nodes too: none of its subnets is the cluster's yet.
  const regions = zones.map(regionOf);
  if (zones.includes(zone) || (regionOf(zone) !== zone && regions.includes(regionOf(zone)))) return [zone];
  const known = zones.length === 0 ? 'no zone is known' : `zones of the cluster: ${listText(zones)}`;
  throw new UserError('NOT_FOUND', `no zone ${zone} in the region of the cluster`, known);
}

/** Returns the region of a zone: ap-guangzhou of ap-guangzhou-6. A text of another form is returned unchanged. */
function regionOf(zone: string): string {
  return zone.replace(/-\d{1,2}$/, '');
}

type ZoneFacts = Pick<CapacityFacts, 'necs' | 'pods'> & {
  readonly supplies: SubnetSupplies;
  readonly free: FreeBySubnet;
  readonly missing: ReadonlyMap<string, number>;
};

function zoneCapacity(facts: ZoneFacts, zone: string, { nodes, type }: CapacityQuestion): ZoneCapacity {
  const { supplies, free } = facts;
  const ofType = type === undefined ? undefined : findNodeType(facts.necs, type);
  const nodeType = ofType ?? findUsualNodeType(facts.necs, zone);
  const { warm: addresses, full: addressesWhenFull } = countNodeAddresses(nodeType);
  const subnets = [...supplies.bySubnet]
    .filter(([, supply]) => supply.zone === zone)
    .map(([subnetId, supply]): SubnetCapacity => {
      const state = stateOf(supply);
      const left = free.get(subnetId) ?? 0;
      const nodesLeft = state === 'open' ? countNodesLeft([left], addresses) : 0;
      return { subnetId, cidr: supply.cidr, total: supply.total, free: left, state, nodesLeft };
    })
    .sort((a, b) => b.free - a.free || compareTexts(a.subnetId, b.subnetId));
  const open = subnets.filter(({ state }) => state === 'open').map((subnet) => subnet.free);
  const nodesLeft = countNodesLeft(open, addresses);
  const isEnough = nodesLeft >= nodes;
  const row = {
    zone,
    nodes: facts.necs.filter(({ status }) => status.zone === zone).length,
    free: open.reduce((sum, count) => sum + count, 0),
    missing: facts.missing.get(zone) ?? 0,
    ...podsOf(facts, zone),
    newNode: { ...nodeType, addresses, addressesWhenFull },
    nodesLeft,
    fullNodesLeft: countNodesLeft(open, addressesWhenFull),
    isEnough,
    code: isEnough ? 0 : SCALE_ERROR_CODE,
    subnets,
  };
  return { ...row, problem: isEnough ? '' : problemOf(row, nodes) };
}

function stateOf(supply: SubnetSupply): SubnetCapacity['state'] {
  if (isOpenToNewNodes(supply)) return 'open';
  if (supply.blocked === true) return 'blocked';
  return supply.onlyNominated === true ? 'nominated' : 'named';
}

/** Counts the addresses that Pods of the present nodes can still get. */
function podsOf({ necs, pods, supplies, free }: ZoneFacts, zone: string): Pick<ZoneCapacity, 'warm' | 'podsLeft'> {
  const listed = ifKnown(pods);
  if (listed === undefined) return { warm: undefined, podsLeft: undefined };
  const used = new Set(listed.flatMap(({ ips }) => ips));
  // Subnets of a zone are used by nodes of the zone alone, so each zone begins with the same numbers.
  const left = new Map(free);
  let [warm, more] = [0, 0];
  for (const nec of necs) {
    if (nec.status.zone !== zone || nec.deletionRequestedMs !== undefined) continue;
    warm += countWarm(nec, used);
    more += growNode(nec, Number.MAX_SAFE_INTEGER, left, supplies);
  }
  return { warm, podsLeft: warm + more };
}

function countWarm({ status }: ClusterNec, used: ReadonlySet<string>): number {
  return (status.eniInfos ?? [])
    .filter(({ mode, draining, state }) => mode !== 'direct-eni' && draining !== true && state === 'Attached')
    .flatMap(({ addresses = [] }) => addresses)
    .filter(({ ip, state }) => state === 'Assigned' && !ip.includes(':') && !used.has(ip)).length;
}

/** Says that a zone is not enough, first in the words of the product, then why. */
function problemOf(
  { zone, newNode, subnets, missing }: Pick<ZoneCapacity, 'zone' | 'newNode' | 'subnets' | 'missing'>,
  nodes: number,
): string {
  const words = renderScaleError(zone, nodes);
  if (subnets.length === 0) return `${words}: the cluster has no subnet in ${zone}`;
  const of = newNode.type === '' ? '' : ` of ${newNode.type}`;
  const lacking = missing === 0 ? '' : `; nodes of the zone lack ${missing} addresses, which go first`;
  const counts = subnets.map((subnet) => `${subnet.subnetId} ${subnetText(subnet)}`);
  return `${words}: a node${of} takes ${newNode.addresses} addresses of one subnet; ${listText(counts)}${lacking}`;
}

function subnetText({ free, total, state }: SubnetCapacity): string {
  if (state === 'blocked') return 'was reported as full by the cloud';
  if (state === 'nominated') return 'is only for nodes that name it (--only-nominated-eni-subnets)';
  if (state === 'named') return 'is no subnet of the cluster, and only for nodes that name it';
  return `has ${free} of ${total} free`;
}

function blockCapacity({ blocks, waiting, stopped, maskSize }: PodCidrRecord, nodes: number): BlockCapacity {
  const nodesLeft = stopped === '' ? Math.max(0, blocks.free - waiting.count) : 0;
  if (nodesLeft >= nodes) return { nodesLeft, isEnough: true, problem: '' };
  const words = `podCIDRs are not enough to scale out ${nodes} nodes`;
  const counts = `blocks of /${maskSize} that are free: ${blocks.free}, nodes that wait for one: ${waiting.count}`;
  return { nodesLeft, isEnough: false, problem: `${words}: ${stopped === '' ? counts : `none is given: ${stopped}`}` };
}

/** Names in one text; more would not be read. */
const SHOWN = 5;

function listText(names: readonly string[]): string {
  const more = names.length > SHOWN ? `, ${names.length - SHOWN} more` : '';
  return `${names.slice(0, SHOWN).join(', ')}${more}`;
}

/** ENIs of the cluster, and what is known of the VPC's quota of ENIs. */
type EniCapacity = {
  /** ENIs in NodeENIConfigs. */
  readonly enis: number;
  /** Nodes of which the cloud has refused an ENI for the quota, until it gives one again. */
  readonly reachedOn: readonly string[];
  /** ENIs that the VPC may have, and has; absent unless the cloud was asked. */
  readonly ofVpc?: EniQuota;
  /** False when the quota is known to be reached; without `ofVpc` true proves nothing. */
  readonly isEnough: boolean;
  /** Why it is not enough; '' when that is not known. */
  readonly problem: string;
};

/** Decides whether so many more nodes get an ENI each: by the quota, and by what ipamd reports of the cloud's refusals. */
export function decideEniQuota(necs: readonly ClusterNec[], nodes: number, ofVpc?: EniQuota): EniCapacity {
  const enis = necs.reduce((sum, { status }) => sum + (status.eniInfos?.length ?? 0), 0);
  const reachedOn = necs.filter(isAtQuota).map(({ key }) => key);
  const cause = causeOf(reachedOn, nodes, ofVpc);
  const problem = `ENIs are not enough to scale out ${nodes} nodes: ${cause}; the cluster has ${enis}`;
  const isEnough = cause === undefined;
  return { enis, reachedOn, ...(ofVpc === undefined ? {} : { ofVpc }), isEnough, problem: isEnough ? '' : problem };
}

function causeOf(reachedOn: readonly string[], nodes: number, ofVpc: EniQuota | undefined): string | undefined {
  if (ofVpc !== undefined && ofVpc.used + nodes > ofVpc.limit)
    return `the VPC has ${ofVpc.used} ENIs and may have ${ofVpc.limit}, and each node takes one at least`;
  if (reachedOn.length === 0) return undefined;
  return `the quota of the VPC is reached (ENILimit on ${listText(reachedOn)})`;
}

function isAtQuota({ status }: ClusterNec): boolean {
  return (status.conditions ?? []).some(
    ({ type, status: holds, reason }) => type === 'Ready' && holds === 'False' && reason === 'ENILimit',
  );
}
