import { textValue } from '../../runtime/settings/option-value.ts';
import { type Rule, refused } from '../../runtime/settings/rule.ts';

/** The taints that one item of `--startup-taints` names: those with its key and, where it has them, value and effect. */
export type TaintSelector = { readonly key: string; readonly value?: string; readonly effect?: string };

const NAME = '[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?';
/** Without named groups: a list of them, as the chart's schema has it, would have each name twice. */
const TAINT = new RegExp(
  `^([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?${NAME}(=(${NAME})?)?(:(NoSchedule|PreferNoSchedule|NoExecute))?$`,
);

/** Reads KEY, KEY:EFFECT, KEY=VALUE or KEY=VALUE:EFFECT; undefined for another form. */
export function readTaintSelector(text: string): TaintSelector | undefined {
  if (!TAINT.test(text)) return undefined;
  const [taint = '', effect] = text.split(':');
  const [key = '', value] = taint.split('=');
  return { key, ...(value === undefined ? {} : { value }), ...(effect === undefined ? {} : { effect }) };
}

/** One item of `--startup-taints`. */
export const taintSelectorValue = textValue(
  TAINT,
  'TAINT',
  'a taint KEY, KEY:EFFECT or KEY=VALUE:EFFECT, such as startup-taint.cluster-autoscaler.kubernetes.io/eni-ip-unavailable',
);

const MAX_STARTUP_TAINTS = 32;
/** Under these node pools may have startup taints of their own, although the domain is that of Kubernetes. */
const STARTUP_PREFIX = '^(startup|ignore)-taint\\.cluster-autoscaler\\.kubernetes\\.io/';
/** Those on nodes that it removes, and those of its domain. */
const OF_AUTOSCALER = `^(ToBeDeletedByClusterAutoscaler|DeletionCandidateOfClusterAutoscaler)([=:]|$)|${domain('cluster-autoscaler\\.kubernetes\\.io')}`;

/**
 * Taints that `--startup-taints` may not name: those that another puts on Nodes and takes off. To remove such a taint would place
 * Pods where its owner keeps them off.
 */
export const STARTUP_TAINT_RULES: readonly Rule[] = [
  refused('startup-taints', `at most ${MAX_STARTUP_TAINTS} taints`, {
    flag: 'startup-taints',
    itemsAbove: MAX_STARTUP_TAINTS,
  }),
  ownerRule('cluster-autoscaler', OF_AUTOSCALER, STARTUP_PREFIX),
  ownerRule('Kubernetes', domain('(kubernetes|k8s)\\.io'), domain('cluster-autoscaler\\.kubernetes\\.io')),
  ownerRule('Karpenter', domain('karpenter\\.sh')),
];

/** Returns an expression for keys of a domain and those below it. */
function domain(name: string): string {
  return `^([-a-z0-9.]+\\.)?${name}/`;
}

function ownerRule(owner: string, hasItem: string, but?: string): Rule {
  return refused('startup-taints', `taints of node pools; ${owner} puts this one on and takes it off`, {
    flag: 'startup-taints',
    hasItem,
    ...(but === undefined ? {} : { but }),
  });
}
