import { openInformer } from '../../../kube/informer.ts';
import type { KubeClient, KubeObject, ResourceType } from '../../../kube/kube-client.ts';
import { isKubeError } from '../../../kube/kube-error.ts';
import { PODS, SERVICES } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';

/** EndpointSlices, as the API server has them. */
export const SLICES: ResourceType = {
  ...{ group: 'discovery.k8s.io', version: 'v1', plural: 'endpointslices' },
  ...{ kind: 'EndpointSlice', isNamespaced: true },
};

/** An endpoint of a slice. */
export type SliceEndpoint = {
  readonly addresses: readonly string[];
  readonly conditions: { readonly ready: boolean; readonly serving: boolean; readonly terminating: boolean };
  readonly nodeName: string;
  readonly targetRef: { readonly kind: 'Pod'; readonly namespace: string; readonly name: string; readonly uid: string };
};

type Condition = { readonly type: string; readonly status: string };
/** What is read of a Pod here. */
type PodShape = KubeObject & {
  readonly spec?: { readonly nodeName?: string; readonly readinessGates?: readonly { conditionType: string }[] };
  readonly status?: { readonly podIP?: string; readonly phase?: string; readonly conditions?: readonly Condition[] };
};
/** What is read of a Service here. */
type ServiceShape = KubeObject & {
  readonly spec?: {
    readonly selector?: Readonly<Record<string, string>>;
    readonly publishNotReadyAddresses?: boolean;
    readonly ports?: readonly {
      readonly name?: string;
      readonly protocol?: string;
      readonly port: number;
      readonly targetPort?: number;
    }[];
  };
};

/** A part of kube-controller-manager and of the kubelets. */
export type ClusterControllers = {
  /** Says that the containers of a Pod are ready, or not. */
  setContainersReady(name: string, isReady: boolean): Promise<void>;
  /** @throws Error when they failed at their work */
  close(): Promise<void>;
};

/**
 * Plays two parts of a cluster: the controller that writes an EndpointSlice for each Service with a selector, and what the
 * kubelet does to make a Pod Ready: its containers are, and so are its readiness gates.
 * @see https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/#conditions
 */
export async function startClusterControllers(kube: KubeClient): Promise<ClusterControllers> {
  const ended = new AbortController();
  const base = { client: kube, clock: systemClock, log: silentLogger, random: seededRandom(1) };
  // As the API server has them; what is read is checked where it is read.
  const pods = openInformer({ ...base, type: PODS, decode: (object) => object as PodShape });
  const services = openInformer({ ...base, type: SERVICES, decode: (object) => object as ServiceShape });
  const written = new Map<string, string>();
  let work: Promise<void> = Promise.resolve();
  let failure: unknown;

  const sync = async (): Promise<void> => {
    for (const pod of pods.values()) await writeReady(kube, pod);
    for (const service of services.values()) {
      if (service.spec?.selector === undefined) continue;
      const slice = sliceOf(service, [...pods.values()]);
      const [key, text] = [`${service.metadata.namespace}/${service.metadata.name}`, JSON.stringify(slice)];
      if (written.get(key) === text) continue;
      await write(kube, slice);
      written.set(key, text);
    }
  };
  const inTurn = (): void => {
    work = work.then(sync).catch((error: unknown) => {
      if (!ended.signal.aborted && !isKubeError(error, 'NOT_FOUND', 'CONFLICT')) failure ??= error;
    });
  };
  pods.subscribe(inTurn);
  services.subscribe(inTurn);
  const following = [pods.start(ended.signal), services.start(ended.signal)];
  await Promise.all([pods.synced(), services.synced()]);
  return {
    setContainersReady: async (name, isReady) => {
      const condition = { type: 'ContainersReady', status: isReady ? 'True' : 'False' };
      await patchConditions(kube, { namespace: 'default', name }, [condition]);
    },
    close: async () => {
      ended.abort();
      await Promise.all(following);
      await work;
      if (failure !== undefined) throw failure;
    },
  };
}

async function writeReady(kube: KubeClient, { metadata, spec, status }: PodShape): Promise<void> {
  const conditions = status?.conditions ?? [];
  const isTrue = (type: string): boolean => conditions.some((one) => one.type === type && one.status === 'True');
  if (!conditions.some(({ type }) => type === 'ContainersReady')) return;
  const gates = (spec?.readinessGates ?? []).map(({ conditionType }) => conditionType);
  const isReady = ['ContainersReady', ...gates].every(isTrue);
  if (isTrue('Ready') === isReady && conditions.some(({ type }) => type === 'Ready')) return;
  const { namespace = '', name } = metadata;
  await patchConditions(kube, { namespace, name }, [{ type: 'Ready', status: isReady ? 'True' : 'False' }]);
}

async function patchConditions(
  kube: KubeClient,
  ref: { readonly namespace: string; readonly name: string },
  conditions: readonly Condition[],
): Promise<void> {
  try {
    const patch = { kind: 'strategic', body: { status: { conditions } }, subresource: 'status' } as const;
    await kube.patch(PODS, ref, patch);
  } catch (error) {
    // A Pod may go meanwhile.
    if (!isKubeError(error, 'NOT_FOUND')) throw error;
  }
}

function sliceOf({ metadata, spec = {} }: ServiceShape, pods: readonly PodShape[]): KubeObject {
  const { namespace = '', name, uid = '' } = metadata;
  const { selector = {}, ports = [] } = spec;
  const selected = pods.filter(
    ({ metadata: its }) =>
      its.namespace === namespace && Object.entries(selector).every(([key, value]) => its.labels?.[key] === value),
  );
  return {
    ...{ apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4' },
    metadata: {
      ...{ namespace, name, labels: { 'kubernetes.io/service-name': name } },
      ownerReferences: [{ apiVersion: 'v1', kind: 'Service', name, uid, controller: true }],
    },
    ports: ports.map(({ name: port = '', protocol = 'TCP', port: number, targetPort = number }) => ({
      ...{ name: port, protocol, port: targetPort },
    })),
    endpoints: selected.flatMap((pod) => endpointOf(pod)),
  };
}

function endpointOf({ metadata, spec, status }: PodShape): readonly SliceEndpoint[] {
  const { namespace = '', name, uid = '' } = metadata;
  if (status?.podIP === undefined || status.phase !== 'Running') return [];
  const serving = (status.conditions ?? []).some((one) => one.type === 'Ready' && one.status === 'True');
  const terminating = metadata.deletionTimestamp !== undefined;
  return [
    {
      addresses: [status.podIP],
      conditions: { ready: serving && !terminating, serving, terminating },
      nodeName: spec?.nodeName ?? '',
      targetRef: { kind: 'Pod', namespace, name, uid },
    },
  ];
}

async function write(kube: KubeClient, slice: KubeObject): Promise<void> {
  const { namespace = '', name } = slice.metadata;
  const isThere = (await kube.get(SLICES, { namespace, name })) !== undefined;
  if (!isThere) await kube.create(SLICES, slice);
  else await kube.patch(SLICES, { namespace, name }, { kind: 'merge', body: slice });
}
