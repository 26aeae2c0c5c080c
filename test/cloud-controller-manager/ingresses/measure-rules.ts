import { IngressWorld } from './ingress-world.ts';

/** What the rules of many Ingresses on one load balancer cost. */
type RulesReport = {
  /** Virtual seconds until each rule was there with its target. */
  readonly seconds: number;
  /** Calls by API until then. */
  readonly calls: Readonly<Record<string, number>>;
  /** Those that change something, and the fewest that the limits of the API allow. */
  readonly writes: number;
  readonly fewestWrites: number;
  /** Calls that change something, after a restart and two comparisons. */
  readonly restartWrites: number;
  /** Calls that change something when one path becomes another. */
  readonly changeWrites: number;
  /** Most rules of a listener, and listeners of the load balancer, at any time. */
  readonly mostRules: number;
  readonly mostListeners: number;
};

const SECOND_MS = 1_000;
const MAX_MS = 1_800 * SECOND_MS;
/** Two comparisons. */
const SETTLED_MS = 1_260 * SECOND_MS;
const FIRST_PORT = 8_000;
/** Limits of one call. */
const [PORTS_PER_CALL, RULES_PER_CALL, TARGETS_PER_CALL] = [49, 50, 500];
/** As the API answers all the same when nothing changes. */
const READS = /^Describe/;

/** Measures on the virtual clock: Ingresses of one group, each with a port of its own and so many rules for one Pod. */
export async function measureRules(ingresses: number, rulesEach: number): Promise<RulesReport> {
  const world = await IngressWorld.start();
  const { services } = world;
  const { host, clock } = services.world.scene;
  await world.serve('web');
  const id = await services.buy();
  await services.world.stop();
  for (let index = 0; index < ingresses; index++) await world.create(`site-${index}`, inputOf(index, id, rulesEach));
  host.forget();
  const startMs = clock.nowMs();
  await services.replace();
  let [mostRules, mostListeners] = [0, 0];
  const count = (): number => {
    const all = services.balancers().flatMap(({ listeners }) => [...listeners.values()]);
    const rules = all.map(({ layer7 }) => [...(layer7?.rules.values() ?? [])]);
    mostRules = Math.max(mostRules, ...rules.map(({ length }) => length));
    mostListeners = Math.max(mostListeners, all.length);
    return rules.flat().filter(({ targets }) => targets.size === 1).length;
  };
  while (count() < ingresses * rulesEach) {
    if (clock.nowMs() - startMs > MAX_MS) throw new Error(`${count()} rules with a target in time`);
    await world.advance(SECOND_MS);
  }
  const writes = (): number => host.seen.filter(({ action }) => !READS.test(action)).length;
  const made = { seconds: (clock.nowMs() - startMs) / SECOND_MS, calls: host.counts(), writes: writes() };
  await world.advance(SETTLED_MS);
  host.forget();
  await services.replace();
  await world.advance(SETTLED_MS);
  const restartWrites = writes();
  host.forget();
  await world.patch('site-0', { spec: specOf(rulesEach, '/other') });
  for (let ms = 0; ms < SETTLED_MS; ms += SECOND_MS) {
    await world.advance(SECOND_MS);
    count();
  }
  const changeWrites = writes();
  await world.stop();
  const total = ingresses * rulesEach;
  const fewestWrites =
    Math.ceil(ingresses / PORTS_PER_CALL) +
    ingresses * Math.ceil(rulesEach / RULES_PER_CALL) +
    Math.ceil(total / TARGETS_PER_CALL);
  return { ...made, fewestWrites, restartWrites, changeWrites, mostRules, mostListeners };
}

function inputOf(index: number, id: string, rules: number) {
  const annotations = {
    'kubernetes.io/ingress.existLbId': id,
    'ingress.cloud.tencent.com/enable-group': 'true',
    'ingress.cloud.tencent.com/listen-ports': JSON.stringify([{ HTTP: FIRST_PORT + index }]),
  };
  return { annotations, spec: specOf(rules) };
}

/** @param first path of the first rule */
function specOf(rules: number, first = '/path-0') {
  const backend = { service: { name: 'web', port: { number: 80 } } };
  const pathOf = (at: number): string => (at === 0 ? first : `/path-${at}`);
  const paths = Array.from({ length: rules }, (_, at) => ({
    ...{ path: pathOf(at), pathType: 'ImplementationSpecific', backend },
  }));
  return { rules: [{ host: 'www.example.com', http: { paths } }] };
}
