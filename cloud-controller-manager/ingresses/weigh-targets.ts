import type { DesiredTarget } from '../balancers/desired-targets.ts';
import type { PlacedRule } from './place-rules.ts';
import type { WeightTable } from './rule-annotations.ts';

/**
 * Gives targets of a rule the weights that a table asks for. A target that is drained, or stays as it is, keeps its weight.
 * @param podOf the name of the Pod that has an address; undefined: it is no Pod, or not known
 */
export function weighTargets(
  targets: readonly DesiredTarget[],
  { defaultWeight, groups }: WeightTable,
  rule: PlacedRule,
  podOf: (ip: string) => string | undefined,
): readonly DesiredTarget[] {
  const group = groups.find(({ key }) => fits(key, rule));
  const byPod = new Map<string, number>();
  for (const { name, weights } of group?.statefulSets ?? []) {
    for (const { weight, podIndexes } of weights) for (const index of podIndexes) byPod.set(`${name}-${index}`, weight);
  }
  return targets.map((target) => {
    if (target.weight === 'asIs' || target.weight === 0) return target;
    const pod = podOf(target.ip);
    const weight = (pod === undefined ? undefined : byPod.get(pod)) ?? defaultWeight ?? target.weight;
    return { ...target, weight };
  });
}

function fits(key: WeightTable['groups'][number]['key'], { protocol, port, host, path }: PlacedRule): boolean {
  return (
    (key.proto ?? protocol) === protocol &&
    (key.port ?? port) === port &&
    (key.host ?? host) === host &&
    (key.path ?? path) === path
  );
}
