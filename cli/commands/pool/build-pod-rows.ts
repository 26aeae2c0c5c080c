import type { Lease, LeasePlugin } from '../../../agent/journal/lease.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import { ageText } from '../../agent/duration-text.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import type { RenderOptions } from './render-pool.ts';

/** One Pod interface of the node. */
export type PodRow = {
  /** Namespace and name are empty where the runtime gave none. */
  readonly namespace: string;
  readonly pod: string;
  readonly containerId: string;
  readonly ifName: string;
  /** IPv4 first. */
  readonly ips: readonly string[];
  readonly eniId: string;
  /** Host veth; empty for Pods that another plugin wired. */
  readonly veth: string;
  readonly netns: string;
  readonly plugin: string;
  /** The name by which Pods choose their network, as in the annotation `tke.cloud.tencent.com/networks`. */
  readonly network: string;
  readonly state: string;
  /** Time since its ADD; undefined for a row from the kernel's state alone. */
  readonly ageMs?: number;
};

/** Builds rows from leases, ordered by namespace and name. */
export function buildPodRows(leases: readonly Lease[], bootMs: number): readonly PodRow[] {
  return leases
    .map(
      (lease): PodRow => ({
        namespace: lease.podNamespace,
        pod: lease.podName,
        containerId: lease.containerId,
        ifName: lease.ifName,
        ips: lease.addresses.map(({ ip }) => ip),
        eniId: lease.eniId,
        veth: lease.hostVeth?.name ?? '',
        netns: lease.netns,
        plugin: lease.plugin,
        network: networkNameOf(lease.plugin),
        state: lease.state,
        ageMs: Math.max(0, bootMs - lease.createdAtMs),
      }),
    )
    .toSorted(
      (a, b) =>
        compareTexts(a.namespace, b.namespace) || compareTexts(a.pod, b.pod) || compareTexts(keyOf(a), keyOf(b)),
    );
}

/** Returns the name of the network that Pods of a plugin have. */
export function networkNameOf(plugin: LeasePlugin): string {
  return plugin === 'ipam' ? 'tke-eni-ipamc' : `tke-${plugin}`;
}

/**
 * Reports whether a word matches a row: part of 'namespace/name', one of its addresses, its veth, or the beginning of its
 * container id.
 */
export function matchesPod(row: PodRow, query: string): boolean {
  const isId = query.length >= 4 && row.containerId.startsWith(query);
  return `${row.namespace}/${row.pod}`.includes(query) || row.ips.includes(query) || row.veth === query || isId;
}

function keyOf({ containerId, ifName }: PodRow): string {
  return `${containerId}/${ifName}`;
}

/** Renders Pod interfaces, one line each. */
export function renderPods(rows: readonly PodRow[], options: RenderOptions): string {
  const isUsual = rows.every(({ network }) => network === networkNameOf('route-eni'));
  return renderTable(rows, isUsual ? COLUMNS.filter(({ title }) => title !== 'NETWORK') : COLUMNS, options);
}

/** As many digits of a container id as `crictl pods` shows. */
const ID_DIGITS = 13;

const COLUMNS: readonly Column<PodRow>[] = [
  { title: 'NAMESPACE', text: ({ namespace }) => namespace || '-' },
  { title: 'POD', text: ({ pod }) => pod || '-' },
  { title: 'IP', text: ({ ips }) => ips.join(',') || '-' },
  { title: 'NETWORK', text: ({ network }) => network || '-', priority: 6 },
  { title: 'ENI', text: ({ eniId }) => eniId, priority: 5 },
  { title: 'VETH', text: ({ veth }) => veth || '-', priority: 4 },
  {
    title: 'STATE',
    text: ({ state }) => state,
    priority: 8,
    color: ({ state }) => (state === 'active' ? 'green' : 'yellow'),
  },
  { title: 'AGE', text: ({ ageMs }) => (ageMs === undefined ? '-' : ageText(ageMs)), align: 'right', priority: 7 },
  { title: 'SANDBOX', text: ({ containerId }) => containerId.slice(0, ID_DIGITS), priority: 3 },
  { title: 'IFNAME', text: ({ ifName }) => ifName, priority: 2 },
  { title: 'NETNS', text: ({ netns }) => netns, priority: 1 },
];
