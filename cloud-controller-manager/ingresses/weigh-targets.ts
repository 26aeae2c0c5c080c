import type { DesiredTarget } from '../balancers/desired-targets.ts';
import type { PlacedRule } from './place-rules.ts';
import type { WeightTable } from './rule-annotations.ts';

type Group = WeightTable['groups'][number];
type Targets = readonly DesiredTarget[];

/** Gives targets of rules the weights that a table asks for: each group, and the targets of each backend by it, are read once. */
export class TargetWeigher {
  readonly #table: WeightTable;
  readonly #podOf: (ip: string) => string | undefined;
  readonly #byPod = new Map<Group | undefined, ReadonlyMap<string, number>>();
  readonly #weighed = new Map<Group | undefined, Map<Targets, Targets>>();

  /** @param podOf the name of the Pod that has an address; undefined: it is no Pod, or not known */
  constructor(table: WeightTable, podOf: (ip: string) => string | undefined) {
    this.#table = table;
    this.#podOf = podOf;
  }

  /** Weighs the targets of a rule. One that is drained, or stays as it is, keeps its weight. */
  weigh(targets: Targets, rule: PlacedRule): Targets {
    const group = this.#table.groups.find(({ key }) => fits(key, rule));
    const known = this.#weighed.get(group) ?? new Map<Targets, Targets>();
    this.#weighed.set(group, known);
    const weighed = known.get(targets) ?? this.#weighAll(targets, group);
    known.set(targets, weighed);
    return weighed;
  }

  #weighAll(targets: Targets, group: Group | undefined): Targets {
    const byPod = this.#byPod.get(group) ?? weightsOf(group);
    this.#byPod.set(group, byPod);
    return targets.map((target) => {
      if (target.weight === 'asIs' || target.weight === 0) return target;
      const pod = this.#podOf(target.ip);
      const weight = (pod === undefined ? undefined : byPod.get(pod)) ?? this.#table.defaultWeight ?? target.weight;
      return { ...target, weight };
    });
  }
}

function weightsOf(group: Group | undefined): ReadonlyMap<string, number> {
  const byPod = new Map<string, number>();
  for (const { name, weights } of group?.statefulSets ?? []) {
    for (const { weight, podIndexes } of weights) for (const index of podIndexes) byPod.set(`${name}-${index}`, weight);
  }
  return byPod;
}

function fits(key: Group['key'], { protocol, port, host, path }: PlacedRule): boolean {
  return (
    (key.proto ?? protocol) === protocol &&
    (key.port ?? port) === port &&
    (key.host ?? host) === host &&
    (key.path ?? path) === path
  );
}
