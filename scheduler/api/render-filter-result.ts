import type { FilterOutcome, RefusedNode } from '../decide/decide-filter.ts';

/**
 * Writes the answer of filter as JSON. In a large cluster most of it is a few reasons, each thousands of times: they are
 * escaped once. `nodes` are the Nodes that fit, where the scheduler sent Nodes and not names. Pure.
 * @see k8s.io/kube-scheduler extender/v1 ExtenderFilterResult
 */
export function renderFilterResult(
  findings: Omit<FilterOutcome, 'isWorthWaiting'>,
  nodes: readonly unknown[] | undefined,
): string {
  const answer =
    nodes === undefined
      ? `"Nodes":null,"NodeNames":${JSON.stringify(findings.fitting)}`
      : `"Nodes":${JSON.stringify({ items: nodes })},"NodeNames":null`;
  const failed = renderReasons(findings.failed);
  const unresolvable = renderReasons(findings.unresolvable);
  return `{${answer},"FailedNodes":${failed},"FailedAndUnresolvableNodes":${unresolvable},"Error":""}`;
}

/** What a name of Kubernetes is made of; it needs no escaping. */
const PLAIN = /^[a-zA-Z0-9.-]*$/;

function renderReasons(reasons: readonly RefusedNode[]): string {
  const escaped = new Map<string, string>();
  const members: string[] = [];
  for (const { name, reason } of reasons) {
    let text = escaped.get(reason);
    if (text === undefined) {
      text = JSON.stringify(reason);
      escaped.set(reason, text);
    }
    members.push(`${PLAIN.test(name) ? `"${name}"` : JSON.stringify(name)}:${text}`);
  }
  return `{${members.join(',')}}`;
}
