import type { KubeObject } from '../../../kube/kube-client.ts';
import { ENDPOINT_SLICES, PODS } from '../../../kube/resource-types.ts';
import { type ServiceWorld, SUBNET } from './service-world.ts';

const NAMESPACE = 'default';
const SERVICE_LABEL = 'kubernetes.io/service-name';

/** How a Pod is. */
type PodSpec = {
  /** Its Node; that of `join` with the same name. */
  readonly node: string;
  /** Default: one of an ENI of its node. */
  readonly ip?: string;
  readonly isReady?: boolean;
  readonly gates?: readonly string[];
  readonly hostNetwork?: boolean;
  readonly annotations?: Readonly<Record<string, string>>;
};

/** Ports and endpoints of a slice, as they are written. */
type SliceContent = {
  readonly addressType?: string;
  readonly ports: readonly object[];
  readonly endpoints: readonly object[];
};

/**
 * The Pods of Services, with what kubelets and kube-controller-manager write of them: the condition Ready from containers
 * and gates, and one EndpointSlice for each Service. A Pod belongs to the Service that its label `app` names.
 */
export class ServicePods {
  readonly #world: ServiceWorld;
  /** By Service: the value of the label of its Pods, where that is not its name. */
  readonly #apps = new Map<string, string>();

  /** By Service: the target port of its Pods, where that is not 8080. */
  readonly #targetPorts = new Map<string, number>();
  #areSlicesHeld = false;

  constructor(world: ServiceWorld) {
    this.#world = world;
  }

  /** Lets the slices stay as they are from now on. */
  holdSlices(): void {
    this.#areSlicesHeld = true;
  }

  /** Writes slices again, and what they have missed. */
  async releaseSlices(): Promise<void> {
    this.#areSlicesHeld = false;
    await this.sync();
  }

  /** Changes the port of the Pods of a Service. */
  async setTargetPort(service: string, port: number): Promise<void> {
    this.#targetPorts.set(service, port);
    await this.sync();
  }

  /** Writes a slice of a Service as a person does, in the place of one of its name. */
  async putSlice(service: string, name: string, content: SliceContent): Promise<void> {
    const { server, admin, clock } = this.#world.world.scene;
    const metadata = { name, namespace: NAMESPACE, labels: { [SERVICE_LABEL]: service } };
    const slice = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', ...content };
    const isThere = server.objects('endpointslices', ENDPOINT_SLICES.group).some((one) => one.metadata.name === name);
    if (isThere) await clock.run(admin.patch(ENDPOINT_SLICES, metadata, { kind: 'merge', body: { ...content } }));
    else await clock.run(admin.create(ENDPOINT_SLICES, { ...slice, metadata }));
  }

  /** Lets a Service select the Pods of another one. */
  alsoSelects(service: string, app: string): void {
    this.#apps.set(service, app);
  }

  /** Starts a Pod of a Service; returns its address. */
  async run(service: string, name: string, { node, gates = [], annotations = {}, ...how }: PodSpec): Promise<string> {
    const { admin, clock } = this.#world.world.scene;
    const ip = how.ip ?? this.#assign(node);
    const readinessGates = gates.map((conditionType) => ({ conditionType }));
    const pod: KubeObject = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name, namespace: NAMESPACE, labels: { app: service }, annotations },
      spec: {
        nodeName: node,
        containers: [{ name: 'web', image: 'web' }],
        ...(gates.length > 0 ? { readinessGates } : {}),
        ...(how.hostNetwork === true ? { hostNetwork: true } : {}),
      },
    };
    await clock.run(admin.create(PODS, pod));
    const status = { phase: 'Running', podIP: ip, podIPs: [{ ip }] };
    await this.#patchStatus(name, status);
    await this.setContainersReady(name, how.isReady ?? true);
    return ip;
  }

  /** Changes whether the containers of a Pod are ready. */
  async setContainersReady(name: string, isReady: boolean): Promise<void> {
    await this.setCondition(name, 'ContainersReady', isReady);
  }

  /** Changes a condition of a Pod. */
  async setCondition(name: string, type: string, isTrue: boolean): Promise<void> {
    await this.#patchStatus(name, { conditions: [conditionOf(type, isTrue)] });
    await this.sync();
  }

  /** Requests the deletion of a Pod: its containers go on until `end`. */
  async delete(name: string): Promise<void> {
    const { admin, clock } = this.#world.world.scene;
    await clock.run(admin.delete(PODS, { namespace: NAMESPACE, name }));
    await this.sync();
  }

  /** Ends a Pod: its object goes, and so does its endpoint. */
  async end(name: string): Promise<void> {
    const { admin, clock } = this.#world.world.scene;
    await this.#patchStatus(name, { phase: 'Succeeded' });
    await clock.run(admin.delete(PODS, { namespace: NAMESPACE, name }));
    await this.sync();
  }

  pod(name: string): KubeObject | undefined {
    return this.#world.world.scene.server.objects('pods').find(({ metadata }) => metadata.name === name);
  }

  /** A condition of a Pod, as `status reason`. */
  condition(name: string, type: string): string | undefined {
    const one = conditionsOf(this.pod(name)).find((condition) => condition.type === type);
    return one === undefined ? undefined : `${one.status} ${one.reason ?? ''}`.trim();
  }

  /** Writes what follows from the Pods as they are: their condition Ready, and the slices. */
  async sync(): Promise<void> {
    const { server } = this.#world.world.scene;
    for (const pod of server.objects('pods')) {
      const gates = (pod['spec'] as { readonly readinessGates?: readonly { readonly conditionType: string }[] })
        .readinessGates;
      const types = ['ContainersReady', ...(gates ?? []).map(({ conditionType }) => conditionType)];
      const conditions = conditionsOf(pod);
      const isReady = types.every((type) => conditions.find((one) => one.type === type)?.status === 'True');
      if (conditions.find(({ type }) => type === 'Ready')?.status === (isReady ? 'True' : 'False')) continue;
      await this.#patchStatus(pod.metadata.name, { conditions: [conditionOf('Ready', isReady)] });
    }
    if (this.#areSlicesHeld) return;
    for (const service of server.objects('services')) await this.#writeSlice(service);
  }

  async #writeSlice(service: KubeObject): Promise<void> {
    const { server, admin, clock } = this.#world.world.scene;
    const { name } = service.metadata;
    const app = this.#apps.get(name) ?? name;
    const pods = server.objects('pods').filter(({ metadata }) => metadata.labels?.['app'] === app);
    const endpoints = pods.flatMap((pod) => {
      const { podIP } = pod['status'] as { readonly podIP?: string };
      if (podIP === undefined) return [];
      const isTerminating = pod.metadata.deletionTimestamp !== undefined;
      const isReady = conditionsOf(pod).some(({ type, status }) => type === 'Ready' && status === 'True');
      return {
        addresses: [podIP],
        conditions: { ready: isReady && !isTerminating, serving: isReady, terminating: isTerminating },
        targetRef: { kind: 'Pod', name: pod.metadata.name, namespace: NAMESPACE, uid: pod.metadata.uid },
      };
    });
    const spec = service['spec'] as {
      readonly ports: readonly { readonly name?: string; readonly protocol?: string }[];
    };
    const target = this.#targetPorts.get(name) ?? 8_080;
    const ports = spec.ports.map(({ name: port = '', protocol = 'TCP' }) => ({ name: port, protocol, port: target }));
    const metadata = { name: `${name}-1`, namespace: NAMESPACE, labels: { [SERVICE_LABEL]: name } };
    const slice = { apiVersion: 'discovery.k8s.io/v1', kind: 'EndpointSlice', addressType: 'IPv4', ports, endpoints };
    const known = server
      .objects('endpointslices', ENDPOINT_SLICES.group)
      .find((one) => one.metadata.name === metadata.name);
    if (known === undefined) await clock.run(admin.create(ENDPOINT_SLICES, { ...slice, metadata }));
    else if (JSON.stringify([known['ports'], known['endpoints']]) !== JSON.stringify([ports, endpoints])) {
      const body = { endpoints, ports };
      await clock.run(admin.patch(ENDPOINT_SLICES, metadata, { kind: 'merge', body }));
    }
  }

  /** Assigns a secondary address to the primary ENI of a node, as a Pod of a shared ENI has one. */
  #assign(node: string): string {
    const { host, clock } = this.#world.world.scene;
    host.model.advance(clock.nowMs());
    const { state } = host.model;
    const [eni] = state.enisOf(`ins-serv${node}`);
    if (eni === undefined) throw new Error(`${node} has no ENI`);
    const ip = state.subnet(SUBNET).pool.take();
    eni.ips.set(ip, { ip, isPrimary: false, state: 'AVAILABLE' });
    state.touch(eni);
    return ip;
  }

  async #patchStatus(name: string, status: object): Promise<void> {
    const { admin, clock } = this.#world.world.scene;
    const patch = { kind: 'strategic' as const, body: { status }, subresource: 'status' as const };
    await clock.run(admin.patch(PODS, { namespace: NAMESPACE, name }, patch));
  }
}

type Condition = { readonly type: string; readonly status: string; readonly reason?: string };

function conditionOf(type: string, isTrue: boolean): Condition {
  return { type, status: isTrue ? 'True' : 'False' };
}

function conditionsOf(pod: KubeObject | undefined): readonly Condition[] {
  const status = pod?.['status'] as { readonly conditions?: readonly Condition[] } | undefined;
  return status?.conditions ?? [];
}
