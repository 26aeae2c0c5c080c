import { DIRECT_ACCESS_ANNOTATION } from '../../../crd/names.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { ENDPOINT_SLICES, PODS, SERVICES } from '../../../kube/resource-types.ts';
import { ServiceWorld, SUBNET } from './service-world.ts';

/** What load balancers of many Services cost, whose backends are Pods. */
export type ServicesReport = {
  /** Virtual seconds until each had its load balancer with all targets. */
  readonly coldSeconds: number;
  /** The least that the limits of the account allow; seconds. */
  readonly boundSeconds: number;
  /** How that is derived. */
  readonly boundForm: string;
  /** Calls by API until then. */
  readonly coldCalls: Readonly<Record<string, number>>;
  /** Calls that change something, after a restart and two comparisons of all. */
  readonly restartWrites: number;
  /** All calls of that time. */
  readonly restartCalls: number;
  /** Changing calls when one Pod more became ready. */
  readonly changeWrites: number;
  /** Milliseconds from the endpoint that is ready to its registration, of each change. */
  readonly toTrafficMs: readonly number[];
  /** Milliseconds from the deletion of a Pod to its weight 0. */
  readonly toDrainMs: readonly number[];
};

/**
 * The fewest calls for a Service with one listener: found by its tag to be missing, made, described twice by twenties, with its
 * listeners and, at the end, its targets; one poll for each of the two tasks. @see cloud/tencent/load-balancers.ts
 */
const FEWEST_CALLS: Readonly<Record<string, number>> = {
  ...{ DescribeLoadBalancers: 1 + 2 / 20, CreateLoadBalancer: 1, DescribeTaskStatus: 2, DescribeListeners: 2 },
  ...{ CreateListener: 1, BatchRegisterTargets: 1, DescribeTargets: 1 },
};
/** Calls a second of one API, and of all together as this program paces them. */
const [API_PER_SECOND, ALL_PER_SECOND] = [20, 50];

/** The limit that takes longest. */
function boundOf(services: number): Pick<ServicesReport, 'boundSeconds' | 'boundForm'> {
  const each = Object.values(FEWEST_CALLS);
  const [most, all] = [Math.max(...each), each.reduce((sum, one) => sum + one, 0)];
  const boundSeconds = Math.max((services * most) / API_PER_SECOND, (services * all) / ALL_PER_SECOND);
  const boundForm = `max(${services} x ${most} / ${API_PER_SECOND} of an API, ${services} x ${all.toFixed(1)} / ${ALL_PER_SECOND} of all) s`;
  return { boundSeconds, boundForm };
}

const NAMESPACE = 'default';
const SECOND_MS = 1_000;
const MAX_MS = 3_600 * SECOND_MS;
const TICK_MS = 20;
const NODES = 50;
/** As the API answers all the same when nothing changes. */
const READS = /^Describe/;

/** Measures on the virtual clock. `changes` Pods come and as many go, one after the other. */
export async function measureServices(services: number, endpoints: number, changes: number): Promise<ServicesReport> {
  const world = await ServiceWorld.start();
  const { host, clock, admin, server } = world.world.scene;
  const { limits } = host.model.state.clb;
  Object.assign(limits, { openBalancers: services, internalBalancers: services });
  for (let index = 0; index < NODES; index++) await world.join(`n${index}`);
  await world.world.stop();
  const many = new ManyPods(world);
  for (let index = 0; index < services; index++) {
    const name = `web-${index}`;
    for (let pod = 0; pod < endpoints; pod++) many.create(name, pod);
    many.writeSlice(name);
    void admin.create(SERVICES, {
      ...{ apiVersion: 'v1', kind: 'Service' },
      metadata: { name, namespace: NAMESPACE, annotations: { [DIRECT_ACCESS_ANNOTATION]: 'true' } },
      spec: {
        type: 'LoadBalancer',
        selector: { app: name },
        ports: [{ port: 80 }],
        allocateLoadBalancerNodePorts: false,
      },
    });
    await clock.advance(SECOND_MS);
  }
  if (server.objects('services').length !== services) throw new Error('not all Services were created');
  host.forget();
  const startMs = clock.nowMs();
  await world.replace();
  const bound = (): number => world.balancers().reduce((sum, one) => sum + targetsOf(one).length, 0);
  const isPublished = (): boolean =>
    server.objects('services').every(({ metadata }) => metadata.annotations?.[ADDRESS] !== undefined);
  while (bound() < services * endpoints || !isPublished()) {
    if (clock.nowMs() - startMs > MAX_MS) throw new Error(`${bound()} targets in time`);
    await world.advance(SECOND_MS);
  }
  const [coldSeconds, coldCalls] = [(clock.nowMs() - startMs) / SECOND_MS, host.counts()];
  // Over the next comparison: what is on record then is what a restart finds.
  await world.advance(SETTLED_MS);
  host.forget();
  await world.replace();
  await world.advance(SETTLED_MS);
  const writes = (): number => host.seen.filter(({ action }) => !READS.test(action)).length;
  const [restartWrites, restartCalls] = [writes(), host.seen.length];
  const until = async (isDone: () => boolean): Promise<number> => {
    const fromMs = clock.nowMs();
    while (!isDone()) {
      if (clock.nowMs() - fromMs > MAX_MS) throw new Error('a change was not made in time');
      await world.advance(TICK_MS);
    }
    return clock.nowMs() - fromMs;
  };
  const [toTrafficMs, toDrainMs, changeWrites]: [number[], number[], number[]] = [[], [], []];
  for (let index = 0; index < changes; index++) {
    const name = `web-${index % services}`;
    const of = (ip: string) =>
      world
        .balancers()
        .flatMap(targetsOf)
        .find((one) => one.ip === ip);
    host.forget();
    const ip = many.create(name, endpoints + index);
    many.writeSlice(name);
    toTrafficMs.push(await until(() => (of(ip)?.weight ?? 0) > 0));
    await world.advance(MINUTE_MS);
    changeWrites.push(writes());
    many.delete(name);
    toDrainMs.push(await until(() => of(ip)?.weight === 0));
    await world.advance(MINUTE_MS);
  }
  await world.stop();
  return {
    coldSeconds,
    ...boundOf(services),
    coldCalls,
    restartWrites,
    restartCalls,
    changeWrites: Math.max(...changeWrites),
    toTrafficMs,
    toDrainMs,
  };
}

const ADDRESS = 'tke.cloud.tencent.com/load-balancer-address';
const MINUTE_MS = 60 * SECOND_MS;
/** Longer than the time between two comparisons of a load balancer. */
const SETTLED_MS = 15 * MINUTE_MS;

type Balancer = ReturnType<ServiceWorld['balancers']>[number];

function targetsOf({ listeners }: Balancer) {
  return [...listeners.values()].flatMap(({ targets }) => [...targets.values()]);
}

/** Pods and slices, made without a look at what is there. */
class ManyPods {
  readonly #world: ServiceWorld;
  readonly #byService = new Map<string, KubeObject[]>();
  readonly #written = new Set<string>();
  #serial = 0;

  constructor(world: ServiceWorld) {
    this.#world = world;
  }

  /** Creates a Pod that runs and is ready, with an address of an ENI. */
  create(service: string, serial: number): string {
    const { admin, host } = this.#world.world.scene;
    const { state } = host.model;
    const [eni] = state.enisOf(`ins-servn${this.#serial++ % NODES}`);
    if (eni === undefined) throw new Error('a node has no ENI');
    const ip = state.subnet(SUBNET).pool.take();
    eni.ips.set(ip, { ip, isPrimary: false, state: 'AVAILABLE' });
    const ready = ['ContainersReady', 'Ready'].map((type) => ({ type, status: 'True' }));
    const pod: KubeObject = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: `${service}-${serial}`, namespace: NAMESPACE, labels: { app: service } },
      spec: { nodeName: `n${this.#serial % NODES}`, containers: [{ name: 'web', image: 'web' }] },
      status: { phase: 'Running', podIP: ip, podIPs: [{ ip }], conditions: ready },
    };
    const patch = { kind: 'strategic' as const, body: { status: pod['status'] }, subresource: 'status' as const };
    const name = { namespace: NAMESPACE, name: pod.metadata.name };
    void admin.create(PODS, pod).then(() => admin.patch(PODS, name, patch));
    const all = this.#byService.get(service) ?? [];
    this.#byService.set(service, all);
    all.push(pod);
    return ip;
  }

  /** Requests the deletion of the youngest Pod of a Service. */
  delete(service: string): void {
    const pod = this.#byService.get(service)?.at(-1);
    if (pod === undefined) throw new Error(`${service} has no Pod`);
    void this.#world.world.scene.admin.delete(PODS, { namespace: NAMESPACE, name: pod.metadata.name });
  }

  /** Writes the slice of a Service with all of its Pods as ready. */
  writeSlice(service: string): void {
    const endpoints = (this.#byService.get(service) ?? []).map(({ metadata, status }) => ({
      addresses: [(status as { readonly podIP: string }).podIP],
      conditions: { ready: true, serving: true, terminating: false },
      targetRef: { kind: 'Pod', name: metadata.name, namespace: NAMESPACE },
    }));
    const { admin } = this.#world.world.scene;
    const metadata = { name: `${service}-1`, namespace: NAMESPACE, labels: { 'kubernetes.io/service-name': service } };
    const ports = [{ name: '', protocol: 'TCP', port: 8_080 }];
    if (this.#written.has(service)) {
      void admin.patch(ENDPOINT_SLICES, metadata, { kind: 'merge', body: { endpoints } });
      return;
    }
    this.#written.add(service);
    const kind = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' };
    void admin.create(ENDPOINT_SLICES, { ...kind, metadata, ports, endpoints });
  }
}
