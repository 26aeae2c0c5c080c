import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { ENDPOINT_SLICES, PODS } from '../../../kube/resource-types.ts';
import { recordOf, recordsOf, textOf } from '../../../runtime/json.ts';
import type { InProcessApi } from '../../../sim/kube-api/in-process.ts';
import type { Timeline } from '../clock.ts';
import { between, type Draw, type Streams } from '../streams.ts';

/** Where the controllers are. */
type Surroundings = {
  readonly api: InProcessApi;
  readonly time: Timeline;
  readonly streams: Streams;
  objects(plural: string): readonly KubeObject[];
};

/** How long a change of Pods or Services takes to be seen, milliseconds. */
const SEEN_MS = [20, 300] as const;
const RETRY_MS = 1_000;
const SERVICE_LABEL = 'kubernetes.io/service-name';
/** Annotation of a Pod whose probes fail, here. */
export const UNWELL = 'test/unwell';

/**
 * What kube-controller-manager and kubelets write of Pods that serve: the conditions `ContainersReady` and `Ready`, from probes and
 * readiness gates, and one EndpointSlice for each Service.
 */
export class EndpointSlices {
  readonly #around: Surroundings;
  readonly #kube: KubeClient;
  readonly #draw: Draw;
  #isAwaited = false;

  constructor(around: Surroundings) {
    this.#around = around;
    this.#kube = around.api.client({ userAgent: 'controllers' });
    this.#draw = around.streams.of('controllers');
  }

  /** Follows Pods and Services from now on. */
  run(): void {
    for (const key of ['/pods', '/services']) this.#around.api.api.store.subscribe(key, () => this.#await());
  }

  #await(ms: number = between(this.#draw, SEEN_MS)): void {
    if (this.#isAwaited) return;
    this.#isAwaited = true;
    void this.#around.time.sleep(ms).then(async () => {
      this.#isAwaited = false;
      await this.#sync().catch(() => this.#await(RETRY_MS));
    });
  }

  async #sync(): Promise<void> {
    for (const pod of this.#around.objects('pods')) await this.#judge(pod);
    for (const service of this.#around.objects('services')) await this.#slice(service);
  }

  /** Writes the conditions of a Pod that has an address. */
  async #judge({ metadata, spec, status }: KubeObject): Promise<void> {
    const { name, namespace = '', annotations = {} } = metadata;
    if (recordOf(status)['podIP'] === undefined) return;
    const before = recordsOf(recordOf(status)['conditions']);
    const statusOf = (type: unknown) => before.find((one) => one['type'] === type)?.['status'];
    const isWell = annotations[UNWELL] === undefined;
    const gates = recordsOf(recordOf(spec)['readinessGates']).map(({ conditionType }) => conditionType);
    const isReady = isWell && gates.every((type) => statusOf(type) === 'True');
    const conditions = [conditionOf('ContainersReady', isWell), conditionOf('Ready', isReady)];
    if (conditions.every((one) => statusOf(one.type) === one.status)) return;
    const patch = { kind: 'strategic', body: { status: { conditions } }, subresource: 'status' } as const;
    await this.#kube.patch(PODS, { namespace, name }, patch);
  }

  async #slice({ metadata: { name, uid, namespace = '' }, spec }: KubeObject): Promise<void> {
    const selector = Object.entries(recordOf(recordOf(spec)['selector']));
    if (selector.length === 0) return;
    const pods = this.#around
      .objects('pods')
      .filter((pod) => selector.every(([key, value]) => pod.metadata.labels?.[key] === value));
    const endpoints = pods.flatMap(endpointOf);
    const ports = recordsOf(recordOf(spec)['ports']).map((one) => ({
      ...{ name: textOf(one['name']), protocol: textOf(one['protocol']) || 'TCP' },
      port: one['targetPort'] ?? one['port'],
    }));
    const ownerReferences = [{ apiVersion: 'v1', kind: 'Service', name, uid: uid ?? '' }];
    const own = { name: `${name}-1`, namespace, labels: { [SERVICE_LABEL]: name }, ownerReferences };
    const slice = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', ports, endpoints };
    const known = this.#around.objects('endpointslices').find(({ metadata }) => metadata.name === own.name);
    if (known === undefined) await this.#kube.create(ENDPOINT_SLICES, { ...slice, metadata: own });
    else if (JSON.stringify([known['ports'], known['endpoints']]) !== JSON.stringify([ports, endpoints]))
      await this.#kube.patch(ENDPOINT_SLICES, own, { kind: 'merge', body: { endpoints, ports } });
  }
}

function endpointOf({ metadata, status }: KubeObject): readonly object[] {
  const { podIP, conditions } = recordOf(status);
  if (podIP === undefined) return [];
  const isReady = recordsOf(conditions).some((one) => one['type'] === 'Ready' && one['status'] === 'True');
  const terminating = metadata.deletionTimestamp !== undefined;
  const { name, namespace, uid } = metadata;
  return [
    {
      addresses: [podIP],
      conditions: { ready: isReady && !terminating, serving: isReady, terminating },
      targetRef: { kind: 'Pod', name, namespace, uid },
    },
  ];
}

function conditionOf(type: string, isTrue: boolean) {
  return { type, status: isTrue ? 'True' : 'False' } as const;
}
