import { textValue } from '../../runtime/settings/option-value.ts';

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

/** Prefixes under which node pools may have startup taints of their own, although the domain is that of Kubernetes. */
const STARTUP_PREFIXES = [
  'startup-taint.cluster-autoscaler.kubernetes.io/',
  'ignore-taint.cluster-autoscaler.kubernetes.io/',
];
/** Taints of cluster-autoscaler on nodes that it removes. */
const OF_SCALE_DOWN = ['ToBeDeletedByClusterAutoscaler', 'DeletionCandidateOfClusterAutoscaler'];

/**
 * Returns who puts taints of this key on Nodes and removes them; undefined when a node pool may use it. To remove such a
 * taint would place Pods where its owner keeps them off.
 */
export function findTaintOwner(key: string): string | undefined {
  if (STARTUP_PREFIXES.some((prefix) => key.startsWith(prefix))) return undefined;
  if (OF_SCALE_DOWN.includes(key)) return 'cluster-autoscaler';
  if (/^([-a-z0-9.]+\.)?cluster-autoscaler\.kubernetes\.io\//.test(key)) return 'cluster-autoscaler';
  if (/^([-a-z0-9.]+\.)?(kubernetes|k8s)\.io\//.test(key)) return 'Kubernetes';
  return /^([-a-z0-9.]+\.)?karpenter\.sh\//.test(key) ? 'Karpenter' : undefined;
}
