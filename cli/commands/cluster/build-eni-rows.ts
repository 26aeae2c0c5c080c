import type { Eni } from '../../../cloud/cloud.ts';
import type { NodeEniAddress, NodeEniInfo } from '../../../crd/node-eni-config-fields.ts';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { ageText } from '../../agent/duration-text.ts';
import { plural } from '../../output/plural.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { type Stay, type StayAddress, UNKNOWN_STAY, usesOf } from '../pool/stays.ts';
import { necAddresses } from './build-address-index.ts';
import type { ClusterFacts, ClusterNec } from './cluster-facts.ts';
import { workIntentOf } from './decode-objects.ts';
import { type ClusterLayout, countText } from './render-nodes.ts';

/** One ENI, from the NodeENIConfig or the cloud. */
type EniRow = {
  readonly eniId: string;
  /** Name of the node; '' for an ENI that no NodeENIConfig lists. */
  readonly node: string;
  readonly kind: 'shared' | 'exclusive' | 'unknown';
  /** State in the NodeENIConfig; 'unlisted' when none lists it. */
  readonly state: string;
  /** State in the cloud; undefined when the cloud was not requested, 'missing' when the cloud does not have the ENI. */
  readonly cloudState: string | undefined;
  readonly isDraining: boolean;
  readonly subnetId: string;
  readonly mac: string;
  readonly primaryIp: string;
  readonly assigned: number;
  readonly used: number | undefined;
  /** Why it is not returned to the cloud. */
  readonly stays: readonly Stay[];
};

/** Returns a row for every ENI of a NodeENIConfig, after rows for ENIs of this cluster that only the cloud has. */
export function buildEniRows(facts: ClusterFacts): readonly EniRow[] {
  const pods = ifKnown(facts.pods);
  const podOf = new Map((pods ?? []).flatMap(({ key, ips }) => ips.map((ip) => [ip, key] as const)));
  const cloud = facts.cloud === undefined ? undefined : ifKnown(facts.cloud);
  const inCloud = cloud === undefined ? undefined : new Map(cloud.enis.map((eni) => [eni.eniId, eni]));
  const rows = facts.necs.flatMap((nec): readonly EniRow[] => {
    const byEni = Map.groupBy(
      necAddresses(nec).filter(({ role }) => role !== 'own'),
      ({ eniId }) => eniId,
    );
    const stays = findEniStays(nec, podOf, facts.takenAtMs);
    return (nec.status.eniInfos ?? []).map((eni): EniRow => {
      const addresses = byEni.get(eni.eniID) ?? [];
      return {
        eniId: eni.eniID,
        node: nec.key,
        kind: eni.mode === 'direct-eni' ? 'exclusive' : 'shared',
        state: eni.state,
        cloudState: inCloud === undefined ? undefined : cloudStateOf(inCloud.get(eni.eniID)),
        isDraining: eni.draining === true,
        subnetId: eni.subnetID ?? '',
        mac: eni.mac,
        primaryIp: eni.primaryIP ?? eni.primaryIPv6 ?? '',
        assigned: addresses.length,
        used: pods === undefined ? undefined : addresses.filter(({ ip }) => podOf.has(ip)).length,
        stays: stays.get(eni.eniID) ?? [],
      };
    });
  });
  const listed = new Set(rows.map(({ eniId }) => eniId));
  const unlisted = (cloud?.enis ?? []).filter((eni) => !eni.isPrimary && !listed.has(eni.eniId)).map(unlistedRow);
  return [...unlisted, ...rows.toSorted((a, b) => compareTexts(a.node, b.node) || compareTexts(a.eniId, b.eniId))];
}

const UNLISTED: readonly Stay[] = [
  { reason: 'unlisted', text: 'no NodeENIConfig lists it: only the audit of ipamd can delete it, as an orphan' },
];

function unlistedRow(eni: Eni): EniRow {
  return {
    eniId: eni.eniId,
    node: '',
    kind: 'unknown',
    state: 'unlisted',
    cloudState: cloudStateOf(eni),
    isDraining: false,
    subnetId: eni.subnetId,
    mac: eni.mac,
    primaryIp: eni.ips.find(({ isPrimary }) => isPrimary)?.ip ?? '',
    assigned: eni.ips.filter(({ isPrimary }) => !isPrimary).length,
    used: undefined,
    stays: UNLISTED,
  };
}

function cloudStateOf(eni: Eni | undefined): string {
  if (eni === undefined) return 'missing';
  return eni.state === 'AVAILABLE' && eni.attachment !== undefined ? `on ${eni.attachment.instanceId}` : eni.state;
}

const COLUMNS: readonly Column<EniRow>[] = [
  { title: 'ENI', text: ({ eniId }) => eniId },
  { title: 'NODE', text: ({ node }) => (node === '' ? '-' : node) },
  { title: 'KIND', text: ({ kind }) => kind, priority: 3 },
  {
    title: 'STATE',
    text: ({ state, isDraining }) => (isDraining ? `${state}, draining` : state),
    color: ({ state, isDraining }) =>
      state === 'unlisted' ? 'red' : isDraining || state !== 'Attached' ? 'yellow' : undefined,
  },
  {
    title: 'CLOUD',
    text: ({ cloudState }) => cloudState ?? '?',
    priority: 6,
    color: ({ cloudState }) => (cloudState === 'missing' ? 'red' : undefined),
  },
  { title: 'IPS', text: ({ assigned }) => `${assigned}`, align: 'right' },
  { title: 'USED', text: ({ used }) => countText(used), align: 'right' },
  { title: 'STAYS', text: ({ stays }) => stays.map(({ reason }) => reason).join(', '), priority: 7 },
  { title: 'SUBNET', text: ({ subnetId }) => subnetId, priority: 5 },
  { title: 'PRIMARY', text: ({ primaryIp }) => primaryIp, priority: 4 },
  { title: 'MAC', text: ({ mac }) => mac, priority: 2 },
  { title: 'WHY', text: ({ stays }) => stays.map(({ text }) => text).join('; '), priority: 1 },
];

/** Renders a table row for each ENI. */
export function renderEnis(rows: readonly EniRow[], layout: ClusterLayout): string {
  return rows.length === 0 ? 'the cluster has no ENI\n' : renderTable(rows, COLUMNS, layout);
}

/**
 * Lists for each ENI of a NodeENIConfig why it is not returned, as the object has it: what its addresses and calls show, and
 * what ipamd wrote into the conditions. Why an address without a Pod is not offered, its agent alone says.
 * @param podOf `namespace/name` of the Pod with an address in canonical form; no Pod has any where Pods may not be read
 */
export function findEniStays(
  nec: ClusterNec,
  podOf: ReadonlyMap<string, string>,
  nowMs: number,
): ReadonlyMap<string, readonly Stay[]> {
  return new Map(
    (nec.status.eniInfos ?? []).map((eni) => {
      const isWhole = eni.mode === 'direct-eni';
      const addresses = isWhole ? wholeOf(nec, eni, podOf) : addressesOf(nec, eni, podOf);
      const found = [
        ...usesOf(addresses, isWhole),
        ...(eni.state === 'Attached' ? offersOf(nec, addresses) : [STATES[eni.state]]),
        ...callsOf(nec, eni.eniID, nowMs),
        ...refusalOf(nec, eni.eniID),
        ...drainingOf(nec, eni),
      ];
      return [eni.eniID, found.length === 0 ? [UNKNOWN_STAY] : found];
    }),
  );
}

const STATES = {
  Attaching: { reason: 'attaching', text: 'ipamd attaches it' },
  Detaching: { reason: 'detaching', text: 'ipamd detaches and deletes it' },
} as const;

function addressesOf(nec: ClusterNec, eni: NodeEniInfo, podOf: ReadonlyMap<string, string>): readonly StayAddress[] {
  const offers = new Map((nec.spec.releasableIPs ?? []).map(({ ip, assignmentID }) => [ip, assignmentID]));
  return (eni.addresses ?? []).flatMap((address) => {
    const owner = podOf.get(canonicalAddress(address.ip));
    // An IPv6 address comes and goes with its IPv4 address; it counts only where a Pod has it.
    if (owner === undefined && address.ip.includes(':')) return [];
    const isOffered = address.state === 'Assigned' && offers.get(address.ip) === address.assignmentID;
    return [registeredOr(nec, [canonicalAddress(address.ip)], stayOf(address, owner, isOffered))];
  });
}

/** Returns the one address that stands for an exclusive ENI, none once it is detached as a whole. */
function wholeOf(nec: ClusterNec, eni: NodeEniInfo, podOf: ReadonlyMap<string, string>): readonly StayAddress[] {
  const ips = [eni.primaryIP, eni.primaryIPv6].flatMap((ip) => (ip === undefined ? [] : canonicalAddress(ip)));
  const owner = ips.map((ip) => podOf.get(ip)).find((pod) => pod !== undefined);
  const isOffered = (nec.spec.releasableENIs ?? []).some(
    ({ eniID, assignmentID }) => eniID === eni.eniID && assignmentID === eni.assignmentID,
  );
  if (owner === undefined && eni.state === 'Detaching') return [];
  const { claim } = eni;
  const stay = stayOf({ state: 'Assigned', ...(claim === undefined ? {} : { claim }) }, owner, isOffered);
  return [registeredOr(nec, ips, stay)];
}

function stayOf(
  { state, claim }: Pick<NodeEniAddress, 'state' | 'claim'>,
  owner: string | undefined,
  isOffered: boolean,
): StayAddress {
  if (owner !== undefined) return { use: 'in-use', owner };
  if (state === 'Releasing') return { use: 'releasing' };
  if (claim !== undefined) return { use: 'static', owner: `${claim.namespace}/${claim.name}` };
  return { use: isOffered ? 'offered' : 'idle' };
}

/** An address without a Pod that a load balancer may still have stays for that reason, offered or not. */
function registeredOr({ registeredIps = [] }: ClusterNec, ips: readonly string[], stay: StayAddress): StayAddress {
  const isOpen = stay.use === 'idle' || stay.use === 'offered';
  return isOpen && registeredIps.some((ip) => ips.includes(canonicalAddress(ip))) ? { use: 'registered' } : stay;
}

function callsOf({ status }: ClusterNec, eniId: string, nowMs: number): readonly Stay[] {
  return (status.intents ?? [])
    .filter(({ eniID }) => eniID === eniId)
    .map((intent) => {
      const { action, phase, recordedMs, tries, lastError } = workIntentOf(intent);
      const error = lastError === '' ? '' : `, ${lastError}`;
      const age = ageText(nowMs - recordedMs);
      const text = `on record: ${action} ${phase} for ${age}, ${tries === 1 ? '1 try' : `${tries} tries`}${error}`;
      return { reason: 'call', text };
    });
}

/** Returns what the cloud refuses, where the condition names the ENI: it has one refusal of the node. */
function refusalOf({ status }: ClusterNec, eniId: string): readonly Stay[] {
  const refusal = status.conditions?.find(({ type, status: is }) => type === 'CloudAccepts' && is === 'False');
  if (refusal?.message?.includes(eniId) !== true) return [];
  return [{ reason: 'refused', text: `the cloud refuses: ${refusal.message}` }];
}

function drainingOf({ status, deletionRequestedMs }: ClusterNec, { draining }: NodeEniInfo): readonly Stay[] {
  const ready = status.conditions?.find(({ type, reason }) => type === 'Ready' && reason === 'Draining');
  if (ready !== undefined || deletionRequestedMs !== undefined) {
    const text = ready?.message ?? 'all ENIs of this node are being released';
    return [{ reason: 'node-draining', text }];
  }
  return draining === true ? [{ reason: 'draining', text: 'it drains: it is returned once no Pod uses it' }] : [];
}

/** Says what the agent has to do before ipamd takes anything. */
function offersOf({ spec, status }: ClusterNec, addresses: readonly StayAddress[]): readonly Stay[] {
  const countOf = (use: StayAddress['use']) => addresses.filter((one) => one.use === use).length;
  const [idle, offered] = [countOf('idle'), countOf('offered')];
  const { supplyEpoch = 0 } = status;
  const { observedSupplyEpoch: seen } = spec;
  const epochs = `supply epoch ${supplyEpoch}, seen by the agent: ${seen ?? 'none'}`;
  if ((seen ?? 0) < supplyEpoch && offered > 0) {
    return [{ reason: 'offer-unconfirmed', text: `the agent has to confirm its offers by its next write: ${epochs}` }];
  }
  if ((seen ?? 0) < supplyEpoch && idle > 0) {
    return [{ reason: 'agent-behind', text: `the agent has not acted on the supply yet: ${epochs}` }];
  }
  if (idle === 0) return [];
  const what = `${plural(idle, 'address')} without a Pod ${idle === 1 ? 'is' : 'are'} not offered`;
  return [{ reason: 'not-offered', text: `${what}: the agent says why, \`tke-eni enis\` on the node` }];
}
