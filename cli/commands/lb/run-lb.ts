import { isIPv4 } from 'node:net';
import { plainText } from '../../../runtime/plain-text.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { openCloudReader } from '../../command/open-cloud-reader.ts';
import { openClusterReader } from '../../command/open-cluster.ts';
import { type Color, paint } from '../../output/color.ts';
import { openProgress } from '../../output/progress.ts';
import { renderWarning } from '../../output/render-error.ts';
import { type Column, renderTable } from '../../output/render-table.ts';
import { printView } from '../pool/print-view.ts';
import type { LbArgs } from './arguments.ts';
import { buildIngressPlans, type IngressLbPlan } from './build-ingress-plan.ts';
import { buildLbPlans, type LbPlan } from './build-lb-plan.ts';
import { addPlans, admissionText, buildLbRows, type LbRow, type TargetRow } from './build-lb-rows.ts';
import type { LbFacts } from './lb-facts.ts';
import { readLbFacts } from './read-lb-facts.ts';
import { parseConnection, selectConnection } from './select-connection.ts';

/** Stands for the address of a client in the command that goes on. */
const ANY_CLIENT = 'CLIENT';

/**
 * Runs `lb`: prints the load balancers of Services, or with --plan what the controller would change; changes nothing.
 * @throws UserError NO_CLUSTER, FORBIDDEN, NO_CLOUD, NOT_FOUND, USAGE
 */
export async function run(args: LbArgs, context: CommandContext): Promise<ExitCode> {
  const { what, plan } = args;
  const connection = what === undefined || what.includes('/') ? undefined : parseConnection(what);
  if (what !== undefined && !what.includes('/') && connection === undefined)
    throw new UserError(
      'USAGE',
      `"${what}" is no Service and no address`,
      'write NAMESPACE/NAME, ADDRESS or ADDRESS:PORT',
    );
  if (plan && connection !== undefined)
    throw new UserError(
      'USAGE',
      '--plan is of Services and Ingresses, and not of an address',
      'write NAMESPACE/NAME, or leave it out',
    );
  const { from } = args;
  if (from !== undefined && !isIPv4(from))
    throw new UserError('USAGE', `--from: "${from}" is no IPv4 address`, 'write the address that clients come from');
  const progress = openProgress(context);
  const client = await openClusterReader(context);
  try {
    const openCloud = () => openCloudReader(context, { region: args.region, endpoint: args.endpoint });
    const facts = await readLbFacts(args, { client, openCloud, signal: context.signal, progress });
    progress.clear();
    warn(facts, context);
    if (plan) return await showPlans(args, facts, context);
    const all = addPlans(buildLbRows(facts, from), plansIfKnown(facts));
    const rows = connection === undefined ? all : selectConnection(all, connection);
    if (connection !== undefined && rows.length === 0)
      throw new UserError('NOT_FOUND', `no load balancer of a Service listens at ${what}`, 'tke-eni lb lists all');
    await printView(args.output, context, { services: rows }, (layout) => {
      const wayOn = connection === undefined ? '' : renderWayOn(rows, from ?? ANY_CLIENT);
      return `${renderLbRows(rows, layout)}${wayOn}`;
    });
    if (rows.some(({ problems }) => problems.length > 0)) return EXIT.wrong;
    return facts.cloud.kind === 'unknown' ? EXIT.failed : EXIT.ok;
  } finally {
    progress.clear();
    client.close();
  }
}

/** What is not known is no fault of a view that asks for no plan. */
function plansIfKnown(facts: LbFacts): readonly LbPlan[] {
  const { cloud, clusterId, vpcId, nodes, pods, slices } = facts;
  if (cloud.kind === 'unknown' || clusterId === undefined || vpcId === undefined) return [];
  if ([nodes, pods, slices].some(({ kind }) => kind === 'unknown')) return [];
  return buildLbPlans(facts, { cloud: cloud.value, clusterId, vpcId });
}

async function showPlans(args: LbArgs, facts: LbFacts, context: CommandContext): Promise<ExitCode> {
  const { cloud, clusterId, vpcId } = facts;
  if (cloud.kind === 'unknown') throw new UserError('NO_CLOUD', cloud.why, cloud.next);
  for (const fact of [facts.nodes, facts.pods, facts.slices])
    if (fact.kind === 'unknown') throw new UserError('FORBIDDEN', fact.why, fact.next);
  if (clusterId === undefined)
    throw new UserError(
      'USAGE',
      'the cluster id is in no tag of a load balancer',
      'give --cluster-id, as --clusterid of the controller',
    );
  if (vpcId === undefined)
    throw new UserError('USAGE', 'the VPC of the cluster is not known', 'give --vpc-id, as --vpc-id of the controller');
  const terms = { cloud: cloud.value, clusterId, vpcId };
  const plans = buildLbPlans(facts, terms);
  const ingresses = facts.ingresses?.kind === 'known' ? { ingressPlans: buildIngressPlans(facts, terms) } : {};
  const view = { plans, ...ingresses };
  await printView(args.output, context, view, (layout) => renderLbPlans(view, layout));
  return EXIT.ok;
}

/** Prints a warning for each source that could not be read, with the next step. */
function warn({ nodes, pods, cloud, groups, ingresses }: LbFacts, { stderr }: CommandContext): void {
  const asked = ingresses === undefined ? [nodes, pods, cloud] : [nodes, pods, cloud, ingresses];
  for (const fact of cloud.kind === 'known' ? [...asked, groups] : asked)
    if (fact.kind === 'unknown') stderr.write(renderWarning(`${fact.why}; next: ${fact.next}`, stderr.isColored));
}

type Layout = { readonly width: number; readonly isColored: boolean };

const STATE_COLORS: Readonly<Record<LbRow['state'], Color | undefined>> = {
  ready: 'green',
  creating: 'yellow',
  missing: 'red',
  none: 'yellow',
  unknown: undefined,
  ignored: undefined,
};

const TARGETS: readonly Column<TargetRow>[] = [
  { title: '  TARGET', text: ({ ip, port }) => `  ${ip}:${port}` },
  { title: 'OF', text: ({ of }) => of || '-', color: ({ of }) => (of === '' ? 'red' : undefined) },
  { title: 'NODE', text: ({ node }) => node || '-', priority: 2 },
  { title: 'WEIGHT', text: ({ weight }) => `${weight}`, align: 'right' },
  {
    title: 'HEALTH',
    text: ({ health }) => health,
    color: ({ health }) => (health === 'unhealthy' ? 'red' : health === 'unknown' ? 'yellow' : undefined),
  },
  { title: 'REASON', text: ({ reason }) => reason, priority: 1 },
];

/** Renders Services with their load balancers, listeners and targets. */
export function renderLbRows(rows: readonly LbRow[], layout: Layout): string {
  if (rows.length === 0) return 'no Service has a load balancer\n';
  return rows.map((row) => renderRow(row, layout)).join('\n');
}

/** Renders how a connection goes on from its targets into Pods: who must admit it, and a command for each node. */
export function renderWayOn(rows: readonly LbRow[], client: string): string {
  const admitting = rows.map((row) => `${row.loadBalancerId ?? ''} ${admissionText(row)}`);
  const targets = rows.flatMap(({ listeners }) => listeners.flatMap((listener) => listener.targets));
  const lines = targets
    .filter(({ getsConnections, of }) => getsConnections && of !== '')
    .map(({ of, node, ip, port }) =>
      of.startsWith('Pod ')
        ? `on ${node}: tke-eni explain ${of.slice('Pod '.length)} --from ${client}`
        : `on ${node}: port ${port} of ${ip} is a node port; kube-proxy leads it to a Pod, which tke-eni explain POD follows`,
    );
  const groups = `\n${admitting.map((line) => `${plainText(line)}\n`).join('')}`;
  if (lines.length === 0) return `${groups}no target gets connections: the client gets no answer\n`;
  return `${groups}A connection goes to one of these, with the address of the client:\n${lines.map((line) => `  ${plainText(line)}\n`).join('')}`;
}

/** Renders what the controller would do. Without `ingressPlans` Ingresses were not read. */
export function renderLbPlans(
  { plans, ingressPlans }: { readonly plans: readonly LbPlan[]; readonly ingressPlans?: readonly IngressLbPlan[] },
  { isColored }: Layout,
): string {
  const named = [
    ...plans.map((plan) => ({ ...plan, name: plan.service, secrets: [] })),
    ...(ingressPlans ?? []).map((plan) => ({ ...plan, name: `Ingress ${plan.ingresses.join(', ')}` })),
  ];
  const count = named.reduce((sum, { steps }) => sum + steps.length, 0);
  const parts = named
    .filter(({ steps, notices }) => steps.length > 0 || notices.length > 0)
    .map(({ name, steps, notices, secrets }) => {
      const lines = [
        paint(plainText(name), 'bold', isColored),
        ...steps.flatMap(({ kind, objects, reason }, index) => [
          `  ${index + 1}. ${kind}: ${plainText(reason)}`,
          ...objects.map((object) => `       ${plainText(object)}`),
        ]),
        ...notices.map(({ reason, message, blocks }) =>
          paint(`  ${blocks ? 'nothing is changed' : 'note'}: ${reason}: ${plainText(message)}`, 'yellow', isColored),
        ),
        ...(secrets.length === 0 ? [] : [plainText(`  Secrets are not read, nor compared: ${secrets.join(', ')}`)]),
      ];
      return `${lines.join('\n')}\n\n`;
    });
  const owners =
    ingressPlans === undefined ? '' : ` and ${ingressPlans.flatMap((plan) => plan.ingresses).length} Ingresses`;
  return `${parts.join('')}${count} calls for ${plans.length} Services${owners}\n`;
}

function renderRow(row: LbRow, layout: Layout): string {
  const { service, state, loadBalancerId = '-', type = '', isOwn, addresses, listeners, problems } = row;
  const sharing = isOwn === false ? ', exists for others too' : '';
  const protection = row.isDeleteProtected ? ', protected against deletion' : '';
  const colored = paint(state, STATE_COLORS[state] ?? 'dim', layout.isColored);
  const what = plainText(
    `${loadBalancerId} ${type} ${addresses.join(', ') || 'without address'}${sharing}${protection}`,
  );
  const head = `${paint(plainText(service), 'bold', layout.isColored)}  ${colored}  ${what}\n`;
  const body = listeners.map(({ listenerId, protocol, port, check, targets }) => {
    const title = `  ${protocol}/${port}  ${listenerId}  check ${check}\n`;
    return `${plainText(title.trimEnd())}\n${targets.length === 0 ? '  no targets\n' : renderTable(targets, TARGETS, layout)}`;
  });
  const faults = problems.map((problem) => `  ${paint(plainText(problem), 'red', layout.isColored)}\n`);
  const notes = (row.notices ?? []).map(({ reason, message }) => {
    return `  ${paint(`${reason}: ${plainText(message)}`, 'yellow', layout.isColored)}\n`;
  });
  const calls = row.plannedCalls ?? 0;
  const plan = calls === 0 ? '' : `  ${calls} calls to come: tke-eni lb ${plainText(service)} --plan\n`;
  return `${head}${body.join('')}${faults.join('')}${notes.join('')}${plan}`;
}
