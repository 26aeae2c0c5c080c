import type { PodCidrRecord } from '../../../crd/pod-cidr-record.ts';
import { ifKnown } from '../../../inspection/node/known.ts';
import type { Known } from '../../../inspection/node/node-facts.ts';
import { plainText } from '../../../runtime/plain-text.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { openClusterReader } from '../../command/open-cluster.ts';
import { paint } from '../../output/color.ts';
import { plural } from '../../output/plural.ts';
import { openProgress, type Progress } from '../../output/progress.ts';
import { renderWarning } from '../../output/render-error.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { wrapText } from '../../output/render-text.ts';
import { printView } from '../pool/print-view.ts';
import type { ClusterArgs } from './arguments.ts';
import { buildEniRows, renderEnis } from './build-eni-rows.ts';
import { buildNodeRows, totalsOf } from './build-node-rows.ts';
import { buildStaticView, hasStaticProblem, renderStaticView } from './build-static-view.ts';
import { buildSubnetRows, renderSubnets } from './build-subnet-rows.ts';
import type { ClusterFacts } from './cluster-facts.ts';
import { type Capacity, decideCapacity, type SubnetCapacity, type ZoneCapacity } from './decide-capacity.ts';
import { findLeaks, intersectLeaks, renderLeaks } from './find-leaks.ts';
import { buildRouteView, findSharedSubnets, hasPodCidrs } from './find-network-problems.ts';
import type { ClusterResource } from './read-cluster.ts';
import { readClusterFacts, readEniQuota } from './read-cluster-facts.ts';
import { readMissingProtection } from './read-protection.ts';
import { followSubnetSupplies, readPodCidrs, readSubnetSupplies, type SubnetSupplies } from './read-published.ts';
import {
  type ClusterLayout,
  countText,
  isPodCidrProblem,
  renderNodes,
  renderPodCidrs,
  renderRoutes,
  viewOfPodCidrs,
} from './render-nodes.ts';

/**
 * Runs `cluster`: prints a view of the cluster; changes nothing. @throws UserError NO_CLUSTER, FORBIDDEN, NO_CLOUD,
 * NOT_FOUND, USAGE
 */
export async function run(args: ClusterArgs, context: CommandContext): Promise<ExitCode> {
  checkOptions(args);
  const progress = openProgress(context);
  const client = await openClusterReader(context);
  const readFacts: ViewContext['readFacts'] = (resources) =>
    readClusterFacts({ ...args, cloud: args.cloud && args.view !== 'capacity' }, context, client, progress, resources);
  const findPodCidrs = () => readPodCidrs(client, context.signal);
  const findSupplies = () => readSubnetSupplies(client, context.signal);
  const followSupplies = () => followSubnetSupplies(client, { ...context, progress });
  const findUnprotected = () => readMissingProtection(client, context.signal);
  try {
    const view = VIEWS[args.view ?? 'nodes'] ?? showNodes;
    return await view(args, {
      ...context,
      readFacts,
      findPodCidrs,
      findSupplies,
      followSupplies,
      findUnprotected,
      progress,
    });
  } finally {
    progress.clear();
    client.close();
  }
}

/** Checks that the options fit the view, rather than ignore some silently. @throws UserError USAGE naming all faults */
function checkOptions(args: ClusterArgs): void {
  const { view = 'nodes', sample, grace, cloud, nodes = 1 } = args;
  const ofCapacity = (['zone', 'nodes', 'type'] as const).filter((name) => args[name] !== undefined);
  const numbers = [['--sample', sample ?? 0] as const, ['--grace', grace] as const];
  const faults = [
    ...numbers
      .filter(([, value]) => !(value >= 0))
      .map(([name, value]) => `${name}: expected seconds, 0 or more, got ${value}`),
    ...(cloud && VIEWS_WITHOUT_CLOUD.includes(view) ? [`--cloud: the view ${view} does not use the cloud`] : []),
    ...(sample !== undefined && !SAMPLED_VIEWS.includes(view) ? [`--sample: the view ${view} reads once`] : []),
    ...(view === 'capacity' ? [] : ofCapacity.map((name) => `--${name}: only the view capacity uses it`)),
    ...(Number.isSafeInteger(nodes) && nodes >= 1 ? [] : [`--nodes: expected a whole number, 1 or more, got ${nodes}`]),
  ];
  if (faults.length > 0) throw new UserError('USAGE', faults.join('; '), 'see tke-eni cluster --help');
}

const VIEWS_WITHOUT_CLOUD: readonly string[] = ['nodes', 'kept'];
const SAMPLED_VIEWS: readonly string[] = ['subnets', 'leaks'];

type ViewContext = CommandContext & {
  readonly readFacts: (resources: readonly ClusterResource[]) => Promise<ClusterFacts>;
  /** Returns what is missing of the protection of the cluster against a compromised agent, a text each. */
  readonly findUnprotected: () => Promise<readonly string[]>;
  /** Returns the blocks of podCIDRs; undefined where ipamd gives none. */
  readonly findPodCidrs: () => Promise<Known<PodCidrRecord | undefined>>;
  /** Returns the free addresses of subnets; undefined where ipamd publishes none. */
  readonly findSupplies: () => Promise<Known<SubnetSupplies | undefined>>;
  /** The same, of the ConfigMap as it is now. */
  readonly followSupplies: () => ReturnType<typeof followSubnetSupplies>;
  readonly progress: Progress;
};
type View = (args: ClusterArgs, context: ViewContext) => Promise<ExitCode>;

const showNodes: View = async ({ output, grace }, context) => {
  const facts = await context.readFacts(['nodes', 'pods']);
  const missing = await context.findUnprotected();
  const record = await context.findPodCidrs();
  const podCidrs = record.kind === 'known' && record.value !== undefined ? viewOfPodCidrs(record.value) : undefined;
  const supplies = hasPodCidrs(facts) ? await context.findSupplies() : undefined;
  const shared = supplies?.kind === 'known' ? findSharedSubnets(facts, supplies.value) : [];
  const rows = buildNodeRows(facts, grace * 1_000);
  warn(context, [facts.nodes, facts.pods, record, supplies]);
  for (const text of [...missing, ...shared]) context.stderr.write(renderWarning(text, context.stderr.isColored));
  const routes = buildRouteView(facts);
  const view = {
    ...{ totals: totalsOf(rows), nodes: rows },
    ...(podCidrs === undefined ? {} : { podCidrs }),
    ...(routes === undefined ? {} : { routes }),
  };
  await printView(output, context, view, (layout) => {
    const blocks = podCidrs === undefined ? '' : renderPodCidrs(podCidrs, layout);
    return `${renderNodes(rows, layout)}${blocks}${routes === undefined ? '' : renderRoutes(routes, layout)}`;
  });
  const hasError = rows.some(({ problems }) => problems[0]?.severity === 'error');
  return hasError || (podCidrs !== undefined && isPodCidrProblem(podCidrs)) ? EXIT.wrong : EXIT.ok;
};

const showSubnets: View = async ({ output, sample }, context) => {
  const before = sample === undefined ? undefined : await readAndWait(context, sample, []);
  const facts = await context.readFacts(before === undefined ? ['vips', 'pods'] : []);
  const { supplies, isCurrent } = await context.followSupplies();
  const rows = buildSubnetRows(facts, before, ifKnown(supplies));
  warn(context, [facts.cloud, supplies, isCurrent, ...(before === undefined ? [facts.vips] : [])]);
  await printView(output, context, { subnets: rows }, (layout) => renderSubnets(rows, layout));
  return rows.some(({ free }) => free === 0) ? EXIT.wrong : EXIT.ok;
};

const showCapacity: View = async (args, context) => {
  const { output, zone, type, nodes = 1, cloud, region, endpoint } = args;
  const { supplies, isCurrent } = await context.followSupplies();
  // No number is right without them.
  if (supplies.kind === 'unknown') throw new UserError('FORBIDDEN', supplies.why, supplies.next);
  const facts = await context.readFacts(['pods']);
  const record = await context.findPodCidrs();
  const podCidrs = record.kind === 'known' ? record.value : undefined;
  const quota = cloud ? await readEniQuota(context, { region, endpoint }, facts.necs) : undefined;
  const eniQuota = quota?.kind === 'known' ? quota.value : undefined;
  const known = { ...facts, supplies: supplies.value, podCidrs, eniQuota };
  const capacity = decideCapacity(known, { nodes, zone, type });
  warn(context, [isCurrent, facts.pods, record, quota]);
  for (const id of supplies.value?.malformed ?? [])
    context.stderr.write(renderWarning(`ConfigMap tke-eni-subnets: ${id} is malformed`, context.stderr.isColored));
  await printView(output, context, capacity, (layout) => renderCapacity(capacity, layout));
  return capacity.isEnough ? EXIT.ok : EXIT.wrong;
};

const showEnis: View = async ({ output }, context) => {
  const facts = await context.readFacts(['pods', 'venis']);
  const rows = buildEniRows(facts);
  warn(context, [facts.pods, facts.cloud]);
  await printView(output, context, { enis: rows }, (layout) => renderEnis(rows, layout));
  return EXIT.ok;
};

const showStatic: View = async ({ output, grace }, context) => {
  const facts = await context.readFacts(['pods', 'vips', 'claims', 'venis', 'eips']);
  const view = buildStaticView(facts);
  warn(context, [facts.pods, facts.vips, facts.claims, facts.venis, facts.eips]);
  await printView(output, context, view, (layout) => renderStaticView(view, layout));
  return hasStaticProblem(view, grace * 1_000) ? EXIT.wrong : EXIT.ok;
};

/**
 * Seconds between the two reads of leaks: longer than ipamd delays its records after a change (--record-delay, 10 s).
 */
const LEAKS_APART_S = 30;

const ALL: readonly ClusterResource[] = ['nodes', 'pods', 'vips', 'claims', 'venis', 'eips'];

const showLeaks: View = async ({ output, sample = LEAKS_APART_S, grace }, context) => {
  const graceMs = grace * 1_000;
  const before = sample === 0 ? undefined : findLeaks(await readAndWait(context, sample, ALL), graceMs);
  const facts = await context.readFacts(ALL);
  const latest = findLeaks(facts, graceMs);
  const leaks = before === undefined ? latest : intersectLeaks(before, latest);
  warn(context, [facts.nodes, facts.pods, facts.vips, facts.claims, facts.venis, facts.eips, facts.cloud]);
  const apartMs = before === undefined ? undefined : sample * 1_000;
  const terms = { apartMs, graceMs, wasCloudAsked: facts.cloud !== undefined };
  await printView(output, context, { ...terms, ...leaks }, (layout) => renderLeaks(leaks, terms, layout));
  if (leaks.findings.some(({ severity }) => severity !== 'info')) return EXIT.wrong;
  return leaks.unseen.length > 0 ? EXIT.failed : EXIT.ok;
};

const VIEWS: Readonly<Record<string, View>> = {
  nodes: showNodes,
  subnets: showSubnets,
  capacity: showCapacity,
  enis: showEnis,
  kept: showStatic,
  leaks: showLeaks,
};

/** Reads the cluster and waits. The caller compares the result with the next read. */
async function readAndWait(
  { readFacts, progress, clock, signal }: ViewContext,
  seconds: number,
  resources: readonly ClusterResource[],
): Promise<ClusterFacts> {
  const before = await readFacts(resources);
  progress.show(`reading again in ${seconds} s`);
  await clock.sleep(seconds * 1_000, signal);
  return before;
}

/** Prints a warning for each resource that could not be read, with the next step. */
function warn({ stderr, progress }: ViewContext, facts: readonly (Known<unknown> | undefined)[]): void {
  progress.clear();
  for (const fact of facts) {
    if (fact?.kind !== 'unknown') continue;
    stderr.write(renderWarning(`${fact.why}; next: ${fact.next}`, stderr.isColored));
  }
}

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
