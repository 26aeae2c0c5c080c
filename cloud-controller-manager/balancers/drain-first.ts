import { batchesOf } from '../../cloud/batches.ts';
import type { CallContext } from '../../cloud/cloud.ts';
import { isCloudError } from '../../cloud/cloud-error.ts';
import { TARGETS_PER_CHANGE } from '../../cloud/targets.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';

/** Where Pods end behind an owner of a load balancer, as Pods and slices say. */
export type EndingOwner = {
  readonly namespace: string;
  readonly loadBalancerId: string;
  /** Names of the listeners that lead to it. */
  readonly listenerNames: readonly string[];
  /** `ip:port` of endpoints that end, and of those that serve. */
  readonly ending: ReadonlySet<string>;
  readonly serving: ReadonlySet<string>;
};

type DrainDeps = Pick<ControllerDeps, 'cloud' | 'config' | 'clock' | 'log'>;
type Places = { readonly ending: Set<string>; readonly serving: Set<string> };

/** Load balancers at once. */
const MAX_AT_ONCE = 20;
/** After this time the comparisons begin, which do the rest. */
const MAX_MS = 20_000;
const LATE = 'the comparisons begin';

/**
 * Sets weight 0 of the targets at which Pods end, and changes nothing else: what a comparison would do, with the two reads of a
 * load balancer that it needs. A place where another endpoint serves stays. Namespaces take turns. A fault of the cloud, and
 * what is not done in 20 s, is left to the comparison. Rejects with the reason of `signal`.
 * @returns the number of targets
 */
export async function drainFirst(
  deps: DrainDeps,
  owners: readonly EndingOwner[],
  signal: AbortSignal,
): Promise<number> {
  const { clock, config, log } = deps;
  const over = new AbortController();
  const ending = AbortSignal.any([signal, over.signal]);
  let count = 0;
  const waiting = inTurns(owners).values();
  const work = async (): Promise<void> => {
    for (const { loadBalancerId, namespace: owner, byName } of waiting) {
      const context: CallContext = { priority: 'pod', owner, signal: ending, timeoutMs: config.cloudTimeoutMs };
      try {
        count += await drainOne(deps, loadBalancerId, byName, context);
      } catch (error) {
        signal.throwIfAborted();
        if (!isCloudError(error) && !ending.aborted) throw error;
        log.warn('targets of Pods that end keep their weight until they are compared', { loadBalancerId, error });
        if (ending.aborted) return;
      }
    }
  };
  const late = clock.sleep(MAX_MS, ending).then(
    () => over.abort(new Error(LATE)),
    () => {},
  );
  try {
    await Promise.all(Array.from({ length: MAX_AT_ONCE }, work));
  } finally {
    over.abort(new Error(LATE));
    await late;
  }
  return count;
}

async function drainOne(
  { cloud }: DrainDeps,
  loadBalancerId: string,
  byName: ReadonlyMap<string, Places>,
  context: CallContext,
): Promise<number> {
  const listeners = await cloud.listeners.list(loadBalancerId, context);
  const own = new Map(
    listeners.flatMap(({ listenerId, name }) => {
      const places = byName.get(name);
      return places === undefined ? [] : [[listenerId, places] as const];
    }),
  );
  if (own.size === 0) return 0;
  const targets = await cloud.targets.list(loadBalancerId, [...own.keys()], context);
  const due = targets.filter(({ listenerId, ip, port, weight }) => {
    const places = own.get(listenerId);
    const place = `${ip}:${port}`;
    return weight > 0 && places?.ending.has(place) === true && !places.serving.has(place);
  });
  for (const some of batchesOf(due, TARGETS_PER_CHANGE)) {
    const task = await cloud.targets.setWeights(
      loadBalancerId,
      some.map((one) => ({ ...one, weight: 0 })),
      context,
    );
    await cloud.loadBalancers.settle(task, context);
  }
  return due.length;
}

type EndingBalancer = {
  readonly loadBalancerId: string;
  readonly namespace: string;
  readonly byName: ReadonlyMap<string, Places>;
};

/** The load balancers behind which Pods end: the first of each namespace, then the second. */
function inTurns(owners: readonly EndingOwner[]): readonly EndingBalancer[] {
  const all = [...Map.groupBy(owners, ({ loadBalancerId }) => loadBalancerId)].flatMap(([loadBalancerId, its]) => {
    const isEnding = its.some(({ ending }) => ending.size > 0);
    return isEnding ? [{ loadBalancerId, namespace: its[0]?.namespace ?? '', byName: placesByName(its) }] : [];
  });
  const turns = [...Map.groupBy(all, ({ namespace }) => namespace).values()];
  return turns
    .flatMap((its) => its.map((one, turn) => ({ one, turn })))
    .toSorted((one, other) => one.turn - other.turn)
    .map(({ one }) => one);
}

/** Owners that share a listener have its targets together. */
function placesByName(owners: readonly EndingOwner[]): ReadonlyMap<string, Places> {
  const byName = new Map<string, Places>();
  for (const { listenerNames, ending, serving } of owners)
    for (const name of listenerNames) {
      const known = byName.get(name) ?? { ending: new Set(), serving: new Set() };
      byName.set(name, known);
      for (const place of ending) known.ending.add(place);
      for (const place of serving) known.serving.add(place);
    }
  return byName;
}
