import { recordOf, textOf } from '../../../runtime/json.ts';
import type { EventRow } from './event-row.ts';

/** The node and the Pods whose events are selected. */
type ClusterScope = {
  readonly nodeName: string;
  /** 'namespace/name' of the Pods of this node. */
  readonly pods: ReadonlySet<string>;
};

/** Prefix of the names of all tke-eni components. */
const OURS = 'tke-eni-';
/** Reasons that kubelet uses for the network of a Pod only. */
const KUBELET_REASONS: readonly string[] = ['FailedCreatePodSandBox', 'FailedKillPod', 'NetworkNotReady'];

/**
 * Selects Kubernetes events of this node and its Pods: those of tke-eni components, and those of kubelet about
 * networks. A field of an unexpected type counts as missing.
 */
export function selectClusterRows(items: readonly unknown[], scope: ClusterScope): readonly EventRow[] {
  return items.flatMap((item) => {
    const event = recordOf(item);
    const involved = recordOf(event['involvedObject']);
    const source = recordOf(event['source']);
    const component = textOf(source['component']) || textOf(event['reportingComponent']);
    const reason = textOf(event['reason']);
    const isKubelets =
      component === 'kubelet' && textOf(source['host']) === scope.nodeName && KUBELET_REASONS.includes(reason);
    const subject = subjectOf(involved);
    const isHere = subject === `node/${scope.nodeName}` || scope.pods.has(subject) || isKubelets;
    if (!isHere || !(component.startsWith(OURS) || isKubelets)) return [];
    const count = event['count'];
    const row: EventRow = {
      atMs: timeOf(event),
      source: component,
      kind: reason,
      subject,
      isFailure: textOf(event['type']) === 'Warning',
      text: textOf(event['message']),
      ...(typeof count === 'number' && count > 1 ? { count } : {}),
    };
    return [row];
  });
}

function subjectOf(involved: Readonly<Record<string, unknown>>): string {
  const kind = textOf(involved['kind']);
  const name = textOf(involved['name']);
  // The NodeENIConfig of a node has the node's name.
  if (kind === 'Node' || kind === 'NodeENIConfig') return `node/${name}`;
  return kind === 'Pod' ? `${textOf(involved['namespace'])}/${name}` : `${kind}/${name}`;
}

function timeOf(event: Readonly<Record<string, unknown>>): number {
  const metadata = recordOf(event['metadata']);
  for (const written of [event['lastTimestamp'], event['eventTime'], metadata['creationTimestamp']]) {
    const atMs = Date.parse(textOf(written));
    if (Number.isFinite(atMs)) return atMs;
  }
  return 0;
}
