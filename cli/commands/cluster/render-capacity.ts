import { plainText } from '../../../runtime/plain-text.ts';
import { paint } from '../../output/color.ts';
import { plural } from '../../output/plural.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { wrapText } from '../../output/render-text.ts';
import type { Capacity, SubnetCapacity, ZoneCapacity } from './decide-capacity.ts';
import { type ClusterLayout, countText } from './render-nodes.ts';

const ZONE_COLUMNS: readonly Column<ZoneCapacity>[] = [
  { title: 'ZONE', text: ({ zone }) => zone },
  { title: 'NODES', text: ({ nodes }) => `${nodes}`, align: 'right', priority: 3 },
  { title: 'WARM', text: ({ warm }) => countText(warm), align: 'right', priority: 4 },
  { title: 'LACKING', text: ({ missing }) => `${missing}`, align: 'right', priority: 2 },
  { title: 'FREE', text: ({ free }) => `${free}`, align: 'right' },
  { title: 'MORE PODS', text: ({ podsLeft }) => countText(podsLeft), align: 'right' },
  {
    title: 'MORE NODES',
    text: ({ nodesLeft }) => `${nodesLeft}`,
    align: 'right',
    color: ({ isEnough }) => (isEnough ? undefined : 'red'),
  },
  { title: 'FULL ONES', text: ({ fullNodesLeft }) => `${fullNodesLeft}`, align: 'right', priority: 6 },
  { title: 'TYPE', text: ({ newNode }) => typeText(newNode), priority: 5 },
  {
    title: 'TAKES',
    text: ({ newNode }) => `${newNode.addresses} to ${newNode.addressesWhenFull}`,
    align: 'right',
    priority: 1,
  },
];

const SUBNET_COLUMNS: readonly Column<SubnetCapacity & { readonly zone: string }>[] = [
  { title: 'SUBNET', text: ({ subnetId }) => subnetId },
  { title: 'ZONE', text: ({ zone }) => zone },
  { title: 'CIDR', text: ({ cidr }) => cidr, priority: 1 },
  { title: 'TOTAL', text: ({ total }) => `${total}`, align: 'right', priority: 2 },
  { title: 'FREE', text: ({ free }) => `${free}`, align: 'right' },
  { title: 'MORE NODES', text: ({ nodesLeft }) => `${nodesLeft}`, align: 'right' },
  { title: 'STATE', text: ({ state }) => state, color: ({ state }) => (state === 'open' ? undefined : 'yellow') },
];

const NEXT =
  'next: add a subnet of the zone to TKE_ENI_IPAMD_SUBNET_ID of ConfigMap tke-eni-ipamd, or lower the warm targets of its nodes';

/** Renders a table of zones, one of subnets, the blocks of podCIDRs, the ENIs, and what is not enough. */
export function renderCapacity({ zones, podCidrs, eniQuota, nodes }: Capacity, layout: ClusterLayout): string {
  const subnets = zones.flatMap(({ zone, subnets: list }) => list.map((subnet) => ({ ...subnet, zone })));
  const tables = [
    zones.length === 0 ? 'no zone has a subnet or a node\n' : renderTable(zones, ZONE_COLUMNS, layout),
    ...(subnets.length === 0 ? [] : ['\n', renderTable(subnets, SUBNET_COLUMNS, layout)]),
  ];
  const blocks = podCidrs === undefined ? [] : [`podCIDRs: blocks for ${podCidrs.nodesLeft} more nodes`];
  const enis =
    zones.length === 0 ? [] : [`ENIs: ${eniQuota.enis}, and one or more for each new node; ${quotaText(eniQuota)}`];
  const problems = [...zones, eniQuota, ...(podCidrs === undefined ? [] : [podCidrs])]
    .filter(({ isEnough }) => !isEnough)
    .map(({ problem }) => problem);
  const enough = problems.length === 0 ? [`enough for ${plural(nodes, 'more node')}`] : [];
  const isShort = zones.some((zone) => !zone.isEnough);
  const lines = (texts: readonly string[]) => texts.flatMap((text) => wrapText(plainText(text), layout.width));
  const end = [
    ...lines(blocks),
    ...lines(enis),
    ...lines(enough).map((text) => paint(text, 'green', layout.isColored)),
    ...lines(problems).map((text) => paint(text, 'red', layout.isColored)),
    ...(isShort ? lines([NEXT]) : []),
  ];
  return `${tables.join('')}\n${end.map((text) => `${text}\n`).join('')}`;
}

function quotaText({ ofVpc }: Capacity['eniQuota']): string {
  if (ofVpc === undefined) return "the VPC's quota is asked for with --cloud only";
  return `the VPC has ${ofVpc.used} of at most ${ofVpc.limit}, primary ones not counted`;
}

function typeText({ type, source }: ZoneCapacity['newNode']): string {
  if (source === 'smallest') return '? (smallest)';
  return source === 'name' ? `${type} (by its name)` : type;
}
