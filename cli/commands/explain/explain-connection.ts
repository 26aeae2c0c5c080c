import { isIPv4 } from 'node:net';
import { canonicalAddress } from '../../../dataplane/ip-prefix.ts';
import { bySeverity, uniqueFindings } from '../../../inspection/catalogue/finding.ts';
import type { Explanation, Path } from '../../../inspection/explain/explanation.ts';
import { parsePacketAddress } from '../../../inspection/explain/parse-packet-address.ts';
import { joinPods } from '../../../inspection/node/join-pods.ts';
import { readNodeFacts } from '../../../inspection/node/read-node-facts.ts';
import { ownAddress } from '../../../netlink/address-message.ts';
import { UserError } from '../../../runtime/user-error.ts';
import type { CommandContext } from '../../command/command.ts';
import { openCloudReader } from '../../command/open-cloud-reader.ts';
import { openClusterReader } from '../../command/open-cluster.ts';
import { openProgress } from '../../output/progress.ts';
import { admissionText, buildLbRows, type TargetRow } from '../lb/build-lb-rows.ts';
import { findNodePorts, findServing, type NodePortFacts } from '../lb/find-node-ports.ts';
import type { LbFacts } from '../lb/lb-facts.ts';
import { readLbFacts } from '../lb/read-lb-facts.ts';
import { type Connection, findListeners, type ServiceListener } from '../lb/select-connection.ts';
import type { ExplainArgs } from './arguments.ts';
import { connectionText, listenerHop, nodePortHop, otherNodeHop, targetHop } from './connection-hops.ts';

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
  const nodeIps = node.host.addresses.map(ownAddress);
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

/** What a connection to a load balancer is explained from. */
type ConnectionFacts = {
  readonly connection: Connection;
  /** Address of the client. */
  readonly client: string;
  readonly listeners: readonly ServiceListener[];
  /** Addresses of this node. */
  readonly nodeIps: readonly string[];
  /** Explanations of packets from the client to targets that are Pods of this node, by the address of the target. */
  readonly walks: ReadonlyMap<string, Explanation>;
  /** By Service. */
  readonly nodePorts: ReadonlyMap<string, NodePortFacts>;
};

/** Most targets of a listener that are walked: one shows the way, the second the difference. */
const MAX_WALKED = 2;

/**
 * Selects the targets of a listener that a connection is followed to on a node, the best first: those that get connections, then the
 * others, which are followed to find out why they get none.
 * @param isHere tells whether an address is one of this node or of its Pods
 */
export function selectTargets(
  { listener: { targets } }: ServiceListener,
  isHere: (ip: string) => boolean,
): readonly TargetRow[] {
  const here = targets.filter(({ ip, of }) => of !== '' && isHere(ip));
  return here
    .toSorted((one, other) => Number(other.getsConnections) - Number(one.getsConnections))
    .slice(0, MAX_WALKED);
}

/** Explains a connection of a client to a load balancer: listener, target, and the way on this node into the Pod and back. */
export function buildConnection(facts: ConnectionFacts): Explanation {
  const { connection, client, listeners } = facts;
  const paths = listeners.flatMap((one) => pathsOf(facts, one));
  const found = paths.flatMap(({ hops }) => hops.flatMap(({ finding }) => (finding === undefined ? [] : [finding])));
  const walked = [...facts.walks.values()].flatMap(({ findings }) => findings);
  const at = connectionText(connection);
  const services = [...new Set(listeners.map(({ row }) => row.service))].join(' and ');
  return {
    subject: `${at}, a load balancer of Service ${services}, asked by ${client}`,
    element: `address:${connection.address}`,
    paths,
    findings: [...uniqueFindings([...found, ...walked])].sort(bySeverity),
  };
}

function pathsOf(facts: ConnectionFacts, one: ServiceListener): readonly Path[] {
  const { connection, client, nodeIps, walks } = facts;
  const { row, listener } = one;
  const again = `tke-eni explain ${connectionText(connection)} --from ${client}`;
  const start = listenerHop(one, admissionText(row), again);
  const head = {
    direction: 'to-pod' as const,
    from: client,
    to: `${connectionText(connection)} (${listener.protocol}, Service ${row.service})`,
  };
  const here = selectTargets(one, (ip) => nodeIps.includes(ip) || walks.has(ip));
  if (here.length === 0) return [{ ...head, hops: [start, ...otherNodeHop(listener.targets, again)] }];
  return here.flatMap((target): readonly Path[] => {
    const hops = [start, targetHop(target)];
    const [arrival, ...answers] = walks.get(target.ip)?.paths ?? [];
    if (arrival !== undefined) return [{ ...head, hops: [...hops, ...arrival.hops] }, ...answers];
    return [{ ...head, hops: [...hops, nodePortHop(target, facts.nodePorts.get(row.service), client)] }];
  });
}
