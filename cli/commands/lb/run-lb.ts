import { isIPv4 } from 'node:net';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { EXIT, type ExitCode } from '../../command/exit-code.ts';
import { openCloudReader } from '../../command/open-cloud-reader.ts';
import { openClusterReader } from '../../command/open-cluster.ts';
import { openProgress } from '../../output/progress.ts';
import { renderWarning } from '../../output/render-error.ts';
import { printView } from '../pool/print-view.ts';
import type { LbArgs } from './arguments.ts';
import { buildIngressPlans } from './build-ingress-plan.ts';
import { buildLbPlans, type LbPlan } from './build-lb-plan.ts';
import { addPlans, buildLbRows } from './build-lb-rows.ts';
import type { LbFacts } from './lb-facts.ts';
import { readLbFacts } from './read-lb-facts.ts';
import { renderLbPlans, renderLbRows, renderWayOn } from './render-lb.ts';
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
