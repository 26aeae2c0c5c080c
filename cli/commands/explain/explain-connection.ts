import { isIPv4 } from 'node:net';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import type { Explanation } from '../../../inspection/explain/explanation.ts';
import { parsePacketAddress } from '../../../inspection/explain/parse-packet-address.ts';
import { joinPods } from '../../../inspection/node/join-pods.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { openCloudReader } from '../../command/open-cloud-reader.ts';
import { openProgress } from '../../output/progress.ts';
import { openClusterReader } from '../cluster/open-cluster-reader.ts';
import { buildLbRows } from '../lb/build-lb-rows.ts';
import { findNodePorts, findServing } from '../lb/find-node-ports.ts';
import type { LbFacts } from '../lb/lb-facts.ts';
import { readLbFacts } from '../lb/read-lb-facts.ts';
import type { Connection } from '../lb/select-connection.ts';
import type { ExplainArgs } from './arguments.ts';
import { buildConnection, selectTargets } from './build-connection.ts';
import { connectionText } from './connection-hops.ts';
import { findListeners } from './find-listeners.ts';

/** Explains a packet from a client to an address of a Pod of this node. */
type ExplainPod = (question: {
  readonly subject: string;
  readonly to: undefined;
  readonly from: string;
}) => Promise<Explained>;

/** `warning`: of what the explanation is made, where something is missing. */
type Explained = { readonly explanation: Explanation; readonly warning?: string };

/**
 * Explains a connection of a client to a load balancer: reads Services and the cloud, then this node where it has a target.
 * @throws UserError USAGE; NOT_FOUND when no load balancer of a Service listens there; NO_CLUSTER, NO_CLOUD, FORBIDDEN, KERNEL
 */
export async function explainConnection(
  connection: Connection,
  args: ExplainArgs,
  context: CommandContext,
  explainPod: ExplainPod,
): Promise<Explained> {
  const client = clientOf(connection, args);
  const facts = findServing(await readFacts(connection, args, context), connection);
  const listeners = findListeners(buildLbRows(facts, client), connection);
  const node = await readNodeFacts(context, { insides: 'none', nft: false, sysctls: false });
  const nodeIps = node.host.addresses.map(({ local, address }) => local ?? address);
  const podIps = new Set(joinPods(node).flatMap(({ ips }) => ips));
  const walks = new Map<string, Explanation>();
  let warning: string | undefined;
  for (const listener of listeners) {
    for (const { ip } of selectTargets(listener, (each) => nodeIps.includes(each) || podIps.has(each))) {
      if (!podIps.has(ip) || walks.has(ip)) continue;
      const walked = await explainPod({ subject: ip, to: undefined, from: client });
      walks.set(ip, walked.explanation);
      warning ??= walked.warning;
    }
  }
  const services = new Set(listeners.map(({ row }) => row.service));
  const nodePorts = new Map([...services].flatMap((key) => findNodePorts(key, facts)));
  const explanation = buildConnection({ connection, client, listeners, nodeIps, walks, nodePorts });
  return warning === undefined ? { explanation } : { explanation, warning };
}

/** @throws UserError USAGE unless a client is named, and nothing else */
function clientOf(connection: Connection, { from, to }: ExplainArgs): string {
  const at = connectionText(connection);
  const example = `tke-eni explain ${at} --from 10.0.0.9`;
  if (to !== undefined)
    throw new UserError(
      'USAGE',
      `${at} is where a client connects to; --to is what a Pod sends to`,
      `${example}: without --to`,
    );
  if (from === undefined)
    throw new UserError('USAGE', `who connects to ${at}? --from is missing`, `name a client: ${example}`);
  const client = canonicalAddress(parsePacketAddress('--from', from));
  if (isIPv4(client)) return client;
  throw new UserError('USAGE', `--from ${from}: load balancers of Services have IPv4 clients`, `name one: ${example}`);
}

/** @throws UserError NO_CLUSTER, NO_CLOUD, FORBIDDEN */
async function readFacts(connection: Connection, args: ExplainArgs, context: CommandContext): Promise<LbFacts> {
  const progress = openProgress(context);
  const client = await openClusterReader(context);
  try {
    const { region, endpoint } = args;
    const openCloud = () => openCloudReader(context, { region, endpoint });
    const what = connectionText(connection);
    const terms = { what, 'cluster-id': args['cluster-id'], 'vpc-id': undefined, 'load-balancer-class': '' };
    const facts = await readLbFacts(terms, { client, openCloud, signal: context.signal, progress });
    for (const fact of [facts.pods, facts.nodes])
      if (fact.kind === 'unknown') throw new UserError('FORBIDDEN', fact.why, fact.next);
    if (facts.cloud.kind === 'known') return facts;
    const next =
      'set TENCENTCLOUD_SECRET_ID, TENCENTCLOUD_SECRET_KEY and TENCENTCLOUD_REGION; or for a Pod that you know: tke-eni explain POD --from CLIENT';
    throw new UserError('NO_CLOUD', facts.cloud.why, next);
  } finally {
    progress.clear();
    client.close();
  }
}
