import type { StaticIpConfig } from './static-ip-config.ts';

/** The part of a StaticIPConfig that selects Pods. */
export type StaticIpRule = Pick<StaticIpConfig, 'metadata' | 'spec'>;

/** The part of a Pod that a StaticIPConfig matches. */
type SelectedPod = { readonly namespace: string; readonly labels: Readonly<Record<string, string>> };

/**
 * Selects the StaticIPConfig that applies to a Pod. One in the Pod's own namespace takes precedence over one for the
 * whole cluster; of several the first by name applies. `clusterNamespace` is ipamd's: only there `namespaces` has an
 * effect.
 */
export function selectStaticIpConfig<T extends StaticIpRule>(
  rules: Iterable<T>,
  pod: SelectedPod,
  clusterNamespace: string,
): T | undefined {
  let first: T | undefined;
  for (const rule of rules) {
    if (!appliesTo(rule, pod, clusterNamespace)) continue;
    if (first === undefined || precedes(rule, first, pod.namespace)) first = rule;
  }
  return first;
}

function appliesTo({ metadata, spec }: StaticIpRule, pod: SelectedPod, clusterNamespace: string): boolean {
  const namespaces = metadata.namespace === clusterNamespace ? spec?.namespaces : undefined;
  const isInNamespace =
    namespaces === undefined
      ? metadata.namespace === pod.namespace
      : namespaces.some((one) => one === '*' || one === pod.namespace);
  if (!isInNamespace) return false;
  const labels = spec?.podLabels ?? {};
  let count = 0;
  // Without a list of them: there may be thousands of rules.
  for (const name in labels) {
    if (labelOf(pod, name) !== labels[name]) return false;
    count += 1;
  }
  // A rule without labels matches no Pod: labels that were left out by mistake would make every address of the
  // namespace static.
  return count > 0;
}

/** Looks up an own property only: a label may have any name, such as `constructor`. */
function labelOf({ labels }: SelectedPod, name: string): string | undefined {
  return Object.hasOwn(labels, name) ? labels[name] : undefined;
}

function precedes(one: StaticIpRule, other: StaticIpRule, namespace: string): boolean {
  const isSameNamespace = one.metadata.namespace === namespace;
  if (isSameNamespace !== (other.metadata.namespace === namespace)) return isSameNamespace;
  return one.metadata.name < other.metadata.name;
}
