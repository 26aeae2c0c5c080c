import type { Eni } from '../../../cloud/cloud.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { Stay } from '../pool/stays.ts';
import { necAddresses } from './build-address-index.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { findEniStays } from './find-eni-stays.ts';
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
