import { finding } from '../../../inspection/catalogue/catalogue.ts';
import type { Hop } from '../../../inspection/explain/explanation.ts';
import { hopOf, mostSevere, unknownHop } from '../../../inspection/explain/hop.ts';
import type { TargetRow } from '../lb/build-lb-rows.ts';
import type { NodePortFacts } from '../lb/find-node-ports.ts';
import type { Connection, ServiceListener } from '../lb/select-connection.ts';

/** Most targets and Pods that are printed. */
const MAX_NAMED = 10;

/** `10.0.0.9:80` */
export function connectionText({ address, port }: Connection): string {
  return port === undefined ? address : `${address}:${port}`;
}

/**
 * Builds the hop of the listener with its targets: weight, health, and the node of each.
 * @param admission who has to admit the client
 * @param again the command that follows the connection on another node
 */
export function listenerHop({ row, listener }: ServiceListener, admission: string, again: string): Hop {
  const { loadBalancerId = '', type = '', service } = row;
  const { listenerId, protocol, port, check, targets } = listener;
  const place = `${protocol}/${port} of Service ${service}`;
  const element = `listener:${listenerId}`;
  const stale = targets.filter(({ of }) => of === '');
  const getting = targets.filter(({ getsConnections }) => getsConnections).length;
  const named = targets.slice(0, MAX_NAMED).map((target) => `target ${targetText(target)}: ${target.reason}`);
  const more = targets.length - named.length;
  const none = finding('lb-no-target', {
    what: `${place}: none of ${targets.length} targets gets connections`,
    fix: [`tke-eni lb ${service}`, `kubectl describe service -n ${service.replace('/', ' ')}`],
    subjects: [element],
  });
  const lost = finding('lb-target-stale', {
    what: `${place}: no Pod and no Node has ${stale.map(({ ip, port: at }) => `${ip}:${at}`).join(', ')}`,
    fix: [`tke-eni lb ${service} --plan`],
    subjects: [element],
  });
  return hopOf(
    {
      kind: 'cloud',
      element,
      title: `${loadBalancerId} (${type}) takes ${place} by listener ${listenerId}`,
      details: [
        `${admission}; check ${check}`,
        `${getting} of ${targets.length} targets get connections`,
        ...row.problems.slice(0, MAX_NAMED),
        ...named,
        more > 0 ? `and ${more} more: tke-eni lb ${service}` : undefined,
        targets.length > 1 ? `for a target of another node, there: ${again}` : undefined,
      ],
    },
    mostSevere(getting === 0 ? none : undefined, stale.length > 0 ? lost : undefined),
  );
}

/** Builds the hop of the target that a connection is followed to. */
export function targetHop(target: TargetRow): Hop {
  const details = [target.reason, `the packet keeps the address of the client, and goes to ${target.ip}`];
  return hopOf({ kind: 'cloud', element: elementOf(target), title: `target ${targetText(target)}`, details });
}

/** Builds the hop after a target that is a node port of this node: kube-proxy chooses the Pod. */
export function nodePortHop({ ip, port }: TargetRow, facts: NodePortFacts | undefined, client: string): Hop {
  if (facts !== undefined && !facts.ports.includes(port)) {
    const title = `port ${port} of this node is of a Pod in the network of its node`;
    const details = [`the Pod sees the address of the client, ${client}`];
    return hopOf({ kind: 'pod', element: `address:${ip}`, title, details });
  }
  const source = facts?.policy === 'Local' ? client : ip;
  const pods = (facts?.pods ?? []).slice(0, MAX_NAMED);
  const seen =
    facts?.policy === 'Local'
      ? 'externalTrafficPolicy Local: to Pods of this node alone, and they see the address of the client'
      : `externalTrafficPolicy Cluster: kube-proxy masquerades, so that the Pod sees an address of this node, not ${client}`;
  const fields = {
    kind: 'nft' as const,
    element: `address:${ip}`,
    title: `node port ${port} of this node: kube-proxy leads it to a Pod of the Service`,
    details: [facts === undefined ? undefined : seen, ...pods.map(({ name, node }) => `${name} on ${node}`)],
  };
  const [first] = pods;
  if (first === undefined)
    return unknownHop(fields, 'no Pod of the Service is known to be ready', 'kubectl get endpointslices');
  const asked = `tke-eni explain ${first.name.replace(/^Pod /, '')} --from ${source}`;
  return unknownHop(fields, 'kube-proxy chooses one of them for each connection', `on ${first.node}: ${asked}`);
}

/** Builds the hop after a listener none of whose targets is of this node; none where there is nothing to follow. */
export function otherNodeHop(targets: readonly TargetRow[], again: string): readonly Hop[] {
  const known = targets.filter(({ of, node }) => of !== '' && node !== '');
  const target = known.find(({ getsConnections }) => getsConnections) ?? known[0];
  if (target === undefined) return [];
  const fields = { kind: 'cloud' as const, element: elementOf(target), title: `target ${targetText(target)}` };
  return [unknownHop(fields, `it is of node ${target.node}, and this is another one`, `on ${target.node}: ${again}`)];
}

function targetText({ ip, port, of, node, weight, health }: TargetRow): string {
  const whose = of === '' ? 'of nothing' : of.startsWith('Pod ') ? `${of} on ${node || 'no node'}` : of;
  return `${ip}:${port}, ${whose}, weight ${weight}, ${health}`;
}

function elementOf({ ip, port }: TargetRow): string {
  return `target:${ip}:${port}`;
}
