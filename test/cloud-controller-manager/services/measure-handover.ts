import { DIRECT_ACCESS_ANNOTATION } from '../../../crd/names.ts';
import { ServicePods } from './service-pods.ts';
import { ServiceWorld } from './service-world.ts';

/** How long Pods that end keep getting connections while the leader changes. */
type HandoverReport = {
  /** Virtual seconds from the start of the new leader to the first weight 0. */
  readonly firstSeconds: number;
  /** To the weight 0 of the last Pod that ended meanwhile. */
  readonly lastSeconds: number;
  /** Calls of the cloud, by API, until the first weight 0. */
  readonly callsBefore: Readonly<Record<string, number>>;
};

/** Sizes of the cluster. */
export type HandoverSize = {
  readonly services: number;
  readonly podsEach: number;
  /** Services one of whose Pods ends while nobody leads. */
  readonly ending: number;
  readonly nodes: number;
  /** What the new leader meets; default: nothing. */
  readonly disturb?: (world: ServiceWorld) => void;
};

const SECOND_MS = 1_000;
const TICK_MS = 20;
const MAX_MS = 600 * SECOND_MS;
/** Longer than two comparisons of a load balancer: what is on record then is what the next leader finds. */
const SETTLED_MS = 25 * 60 * SECOND_MS;

/** Measures on the virtual clock: Pods of some Services are deleted while no replica leads, then another one does. */
export async function measureHandover(size: HandoverSize): Promise<HandoverReport> {
  const world = await ServiceWorld.start();
  const { host, clock } = world.world.scene;
  Object.assign(host.model.state.clb.limits, { openBalancers: size.services, internalBalancers: size.services });
  for (let index = 0; index < size.nodes; index++) await world.join(`n${index}`);
  const pods = new ServicePods(world);
  const names = Array.from({ length: size.services }, (_, index) => `web-${index}`);
  const ips = new Map<string, string>();
  for (const name of names) {
    await world.create(name, { metadata: { annotations: { [DIRECT_ACCESS_ANNOTATION]: 'true' } } });
    for (let pod = 0; pod < size.podsEach; pod++)
      ips.set(`${name}-${pod}`, await pods.run(name, `${name}-${pod}`, { node: `n${pod % size.nodes}` }));
  }
  await world.advance(SETTLED_MS);
  await world.world.stop();
  const ended = names.slice(-size.ending).map((name) => `${name}-0`);
  for (const pod of ended) await pods.delete(pod);
  const endedIps = new Set(ended.map((pod) => ips.get(pod) ?? ''));
  host.forget();
  const startMs = clock.nowMs();
  const weights = () =>
    world
      .balancers()
      .flatMap(({ listeners }) => [...listeners.values()].flatMap(({ targets }) => [...targets.values()]))
      .filter(({ ip }) => endedIps.has(ip))
      .map(({ weight }) => weight);
  if (weights().length !== size.ending || weights().includes(0)) throw new Error('not all Pods were targets');
  size.disturb?.(world);
  const leading = world.replace();
  let first: { readonly seconds: number; readonly calls: Readonly<Record<string, number>> } | undefined;
  while (weights().some((weight) => weight > 0)) {
    if (clock.nowMs() - startMs > MAX_MS) throw new Error('not drained in time');
    await clock.advance(TICK_MS);
    if (first === undefined && weights().includes(0))
      first = { seconds: (clock.nowMs() - startMs) / SECOND_MS, calls: host.counts() };
  }
  const lastSeconds = (clock.nowMs() - startMs) / SECOND_MS;
  await leading;
  await world.stop();
  return { firstSeconds: first?.seconds ?? lastSeconds, lastSeconds, callsBefore: first?.calls ?? {} };
}
