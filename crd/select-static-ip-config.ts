import type { StaticIpConfig } from './static-ip-config.ts';

/** What of a StaticIPConfig says for which Pods it is. */
export type StaticIpRule = Pick<StaticIpConfig, 'metadata' | 'spec'>;

/** What of a Pod a StaticIPConfig looks at. */
export type SelectedPod = { readonly namespace: string; readonly labels: Readonly<Record<string, string>> };

/**
 * Finds the StaticIPConfig that holds for a Pod: one of the Pod's own namespace goes before one of the whole cluster, and
 * of several the first by name. `clusterNamespace` is ipamd's: only there do `namespaces` count. Pure.
 */
export function selectStaticIpConfig<T extends StaticIpRule>(
  rules: Iterable<T>,
  pod: SelectedPod,
  clusterNamespace: string,
): T | undefined {
  let first: T | undefined;
  for (const rule of rules) {
    if (!isFor(rule, pod, clusterNamespace)) continue;
    if (first === undefined || goesBefore(rule, first, pod.namespace)) first = rule;
  }
  return first;
}

function isFor({ metadata, spec }: StaticIpRule, pod: SelectedPod, clusterNamespace: string): boolean {
  const asked = metadata.namespace === clusterNamespace ? spec?.namespaces : undefined;
  const isThere =
    asked === undefined
      ? metadata.namespace === pod.namespace
      : asked.some((one) => one === '*' || one === pod.namespace);
  const labels = Object.entries(spec?.podLabels ?? {});
  // A rule without labels is for no Pod: one left out by mistake would keep every address of the namespace.
  return isThere && labels.length > 0 && labels.every(([name, value]) => labelOf(pod, name) === value);
}

/** A label may have any name, such as `constructor`. */
function labelOf({ labels }: SelectedPod, name: string): string | undefined {
  return Object.hasOwn(labels, name) ? labels[name] : undefined;
}

function goesBefore(one: StaticIpRule, other: StaticIpRule, namespace: string): boolean {
  const isOwn = one.metadata.namespace === namespace;
  if (isOwn !== (other.metadata.namespace === namespace)) return isOwn;
  return one.metadata.name < other.metadata.name;
}
