import type { FilterOutcome, RefusedNode, RefusedNodes } from '../decide/decide-filter.ts';

/**
 * Renders the answer of filter as JSON. In a large cluster most of it is a few reasons that repeat thousands of times;
 * each reason is escaped once. `nodes` are the Nodes that fit, when the scheduler sent whole Nodes instead of names.
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
  const unresolvable = renderReasons(findings.unresolvable, findings.otherZone);
  return `{${answer},"FailedNodes":${failed},"FailedAndUnresolvableNodes":${unresolvable},"Error":""}`;
}

/**
 * Renders the answer of filter where all nodes fit, as most often; once for each array of names.
 * @param names must not change afterwards
 */
export function renderAllFit(names: readonly string[]): Buffer {
  const known = allFit.get(names);
  if (known !== undefined) return known;
  const made = Buffer.from(renderFilterResult({ fitting: names, failed: [], unresolvable: [] }, undefined));
  allFit.set(names, made);
  return made;
}

const allFit = new WeakMap<readonly string[], Buffer>();

/** The characters of a Kubernetes name. Such a name needs no escaping in JSON. */
const PLAIN = /^[a-zA-Z0-9.-]*$/;

function renderReasons(reasons: readonly RefusedNode[], together?: RefusedNodes): string {
  const escaped = new Map<string, string>();
  const members = together === undefined ? [] : [renderTogether(together)];
  for (const { name, reason } of reasons) {
    let text = escaped.get(reason);
    if (text === undefined) {
      text = JSON.stringify(reason);
      escaped.set(reason, text);
    }
    members.push(`${quote(name)}:${text}`);
  }
  return `{${members.join(',')}}`;
}

/** Renders nodes with one reason. Their names are quoted once for each array, which must not change afterwards. */
function renderTogether({ names, reason }: RefusedNodes): string {
  const members = quoted.get(names) ?? names.map(quote);
  quoted.set(names, members);
  const text = JSON.stringify(reason);
  return `${members.join(`:${text},`)}:${text}`;
}

const quoted = new WeakMap<readonly string[], readonly string[]>();

function quote(name: string): string {
  return PLAIN.test(name) ? `"${name}"` : JSON.stringify(name);
}
