import { bySeverity, uniqueFindings } from '../../../inspection/catalogue/finding.ts';
import type { Explanation, Path } from '../../../inspection/explain/explanation.ts';
import { admissionText } from '../lb/admission-text.ts';
import type { TargetRow } from '../lb/build-lb-rows.ts';
import type { NodePortFacts } from '../lb/find-node-ports.ts';
import type { Connection } from '../lb/select-connection.ts';
import { connectionText, listenerHop, nodePortHop, otherNodeHop, targetHop } from './connection-hops.ts';
import type { ServiceListener } from './find-listeners.ts';

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
