import {
  EVENT_KIND,
  EVENT_OUTCOME,
  type RecordedOperation,
  type RecorderReply,
} from '../../../agent/api/ops-messages.ts';
import { recordOf, textOf } from '../../../runtime/json.ts';
import { eventKindText } from '../watch/describe-agent-event.ts';

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

/** Builds rows from the content of the flight recorder. */
export function buildRecordedRows({ pods }: RecorderReply): readonly EventRow[] {
  return pods.flatMap(({ pod, operations }) => operations.map((operation) => rowOf(pod, operation)));
}

function rowOf(pod: string, operation: RecordedOperation): EventRow {
  const { atUnixMs, kind, outcome, code, text, details, durationUs, ips, eniId, link, steps, operations, cause } =
    operation;
  const allocated = [ips.join(','), eniId, link].filter((part) => part !== '').join(' ');
  const failure = [text, details].filter((part) => part !== '').join(': ');
  const changes = kind === EVENT_KIND.EVENT_KIND_REPAIR ? changesText(operations) : '';
  const causes = cause === '' ? '' : `cause: ${cause}`;
  const texts = [allocated, failure, code === 0 ? '' : `(code ${code})`, changes].filter((part) => part !== '');
  return {
    atMs: atUnixMs,
    source: 'agent',
    kind: eventKindText(kind).toUpperCase(),
    subject: pod,
    isFailure: outcome === EVENT_OUTCOME.EVENT_OUTCOME_FAILED,
    text: [texts.join(' '), causes].filter((part) => part !== '').join(', '),
    durationUs,
    ...(operation.repeats === 0 ? {} : { count: operation.repeats + 1 }),
    ...(steps.length === 0 ? {} : { steps }),
    ...(operations.length === 0 ? {} : { operations }),
  };
}

/** The first change of a repair, and how many there were. */
function changesText(operations: readonly string[]): string {
  const [first, ...others] = operations;
  if (first === undefined) return '';
  return others.length === 0 ? `"${first}"` : `"${first}" and ${others.length} more`;
}

/** Something that happened, as the agent or Kubernetes reports it. */
export type EventRow = {
  /** Wall clock, milliseconds since 1970. */
  readonly atMs: number;
  /** Reporter: 'agent' for its flight recorder, else the component. */
  readonly source: string;
  /** ADD, DEL, …, or the reason of a Kubernetes event. */
  readonly kind: string;
  /** 'namespace/name' of a Pod, 'node/NAME'. */
  readonly subject: string;
  readonly isFailure: boolean;
  readonly text: string;
  readonly durationUs?: number;
  /** How often it happened. */
  readonly count?: number;
  readonly steps?: readonly { readonly name: string; readonly durationUs: number }[];
  /** Changes of the kernel's state. */
  readonly operations?: readonly string[];
};
