import type { ListenerSettings } from '../../../cloud/listeners.ts';
import type { LoadBalancerSpec } from '../../../cloud/load-balancers.ts';
import { createTencentCloud, type TencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { NODES, SERVICES } from '../../../kube/resource-types.ts';
import { rulesOfLoadBalancers } from '../../../sim/kube-api/seed-roles.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import type { ModelListener, ModelLoadBalancer } from '../../../sim/vpc/api/model/clb/types.ts';
import { NodeWorld } from '../node-world.ts';

const NAMESPACE = 'default';
const PERSON = { priority: 'warm', owner: 'person', signal: new AbortController().signal } as const;
/** Id of the cluster here. */
export const CLUSTER = 'cls-service1';
/** VPC of the cluster here. */
const VPC = 'vpc-00000001';
/** Subnet of internal load balancers. */
export const SUBNET = 'subnet-node0001';

/** The rights that the service controller needs beside the published role. */
export const MORE_RIGHTS = rulesOfLoadBalancers();

type WorldOptions = {
  readonly isSeedRole?: boolean;
  readonly flags?: readonly string[];
  /** Default: `CLUSTER`. */
  readonly clusterId?: string;
  /** Another cluster of the same VPC. */
  readonly beside?: ServiceWorld;
  /** Default: random uids. */
  readonly newUid?: () => string;
};

/** Patches of a Service by its owner. */
type ServiceChange = { readonly metadata?: object; readonly spec?: object };

/** Nodes, the service controller, Services, and the load balancers that the cloud has. */
export class ServiceWorld {
  readonly world: NodeWorld;
  /** The cloud, as a person uses it. */
  readonly cloud: TencentCloud;
  readonly #flags: readonly string[];

  private constructor(world: NodeWorld, flags: readonly string[]) {
    this.world = world;
    this.#flags = flags;
    const { host, clock } = world.scene;
    this.cloud = createTencentCloud({ api: createInProcessApi(host), clock, random: () => 0.5 });
  }

  /** Starts the controller, with the rights of the component load-balancers unless `isSeedRole`. */
  static async start(options: WorldOptions = {}): Promise<ServiceWorld> {
    const { isSeedRole = false, flags: more = [], clusterId = CLUSTER, beside, newUid } = options;
    const given = ['--load-balancers=clb', `--clusterid=${clusterId}`, `--vpc-id=${VPC}`, ...more];
    const flags = [...new Map(given.map((flag) => [flag.split('=')[0], flag])).values()];
    const shared = beside === undefined ? {} : { beside: beside.world.scene };
    const world = await NodeWorld.startIn({ ...shared, ...(newUid === undefined ? {} : { newUid }) }, ...flags);
    const one = new ServiceWorld(world, flags);
    if (!isSeedRole) await one.world.scene.setRules((rules) => [...rules, ...MORE_RIGHTS]);
    return one;
  }

  /** Another process in the place of this one, which ends without a word; flags may take the place of those of the start. */
  async replace(...flags: readonly string[]): Promise<void> {
    const nameOf = (flag: string): string => flag.split('=')[0] ?? '';
    const others = this.#flags.filter((flag) => !flags.some((one) => nameOf(one) === nameOf(flag)));
    await this.world.lead(...others, ...flags);
  }

  /** Starts a machine and registers its Node; returns its address. */
  async join(name: string, metadata: { labels?: Record<string, string>; annotations?: Record<string, string> } = {}) {
    const instanceId = `ins-serv${name}`;
    const address = this.world.addInstance(instanceId);
    const addresses = [{ type: 'InternalIP', address }];
    await this.world.join(name, { providerID: `qcloud:///100003/${instanceId}`, addresses, ...metadata });
    return address;
  }

  /** The address of a Node. */
  nodeIp(name: string): string {
    const node = this.world.scene.server.objects('nodes').find(({ metadata }) => metadata.name === name);
    const status = node?.['status'] as { readonly addresses: readonly { readonly address: string }[] };
    return status.addresses[0]?.address ?? '';
  }

  async patchNode(name: string, body: object): Promise<void> {
    const { clock, admin } = this.world.scene;
    await clock.run(admin.patch(NODES, { name }, { kind: 'merge', body }));
  }

  /** Creates a Service of type LoadBalancer with port 80. */
  async create(name: string, { metadata = {}, spec = {} }: ServiceChange = {}): Promise<void> {
    const { clock, admin } = this.world.scene;
    const object: KubeObject = {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name, namespace: NAMESPACE, ...metadata },
      spec: { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80 }], ...spec },
    };
    await clock.run(admin.create(SERVICES, object));
  }

  async patch(name: string, change: ServiceChange): Promise<void> {
    const { clock, admin } = this.world.scene;
    await clock.run(admin.patch(SERVICES, { namespace: NAMESPACE, name }, { kind: 'merge', body: change }));
  }

  async delete(name: string): Promise<void> {
    const { clock, admin } = this.world.scene;
    await clock.run(admin.delete(SERVICES, { namespace: NAMESPACE, name }));
  }

  service(name: string): KubeObject | undefined {
    return this.world.scene.server.objects('services').find(({ metadata }) => metadata.name === name);
  }

  annotation(name: string, key: string): string | undefined {
    return this.service(name)?.metadata.annotations?.[key];
  }

  /** Deletes a Service so that its load balancer stays. */
  async loseService(name: string): Promise<void> {
    await this.patch(name, { metadata: { annotations: { 'service.cloud.tencent.com/mode': 'skip' } } });
    await this.advance(5_000);
    await this.delete(name);
    await this.advance(5_000);
    if (this.service(name) !== undefined) throw new Error(`the Service ${name} is still there`);
  }

  /** `status.loadBalancer.ingress` of a Service. */
  ingress(name: string): readonly Readonly<Record<string, string>>[] {
    const status = this.service(name)?.['status'] as
      | { readonly loadBalancer?: { readonly ingress?: readonly Readonly<Record<string, string>>[] } }
      | undefined;
    return status?.loadBalancer?.ingress ?? [];
  }

  /** Node ports of a Service, in the order of its ports. */
  nodePorts(name: string): readonly number[] {
    const spec = this.service(name)?.['spec'] as { readonly ports?: readonly { readonly nodePort?: number }[] };
    return spec.ports?.map(({ nodePort = 0 }) => nodePort) ?? [];
  }

  /** Makes a load balancer as a person does, with a listener of UDP on port 53 or none; returns its id. */
  async buy(spec: Partial<LoadBalancerSpec> = {}, hasListener = true): Promise<string> {
    const { clock } = this.world.scene;
    const { loadBalancers, listeners } = this.cloud;
    const task = await clock.run(loadBalancers.create({ type: 'OPEN', name: 'bought', vpcId: VPC, ...spec }, PERSON));
    const outcome = await clock.run(loadBalancers.settle(task, PERSON));
    const [id = ''] = outcome.kind === 'done' ? outcome.loadBalancerIds : [];
    if (!hasListener) return id;
    const ports = [{ port: 53, name: 'of-a-person' }];
    const made = await clock.run(listeners.create(id, { protocol: 'UDP', ports, settings: {} }, PERSON));
    await clock.run(loadBalancers.settle(made.task, PERSON));
    return id;
  }

  /** Deletes a load balancer as a person does. */
  async discard(loadBalancerId: string): Promise<void> {
    const { clock } = this.world.scene;
    const task = await clock.run(this.cloud.loadBalancers.delete(loadBalancerId, PERSON));
    await clock.run(this.cloud.loadBalancers.settle(task, PERSON));
  }

  /** Deregisters an address of the only load balancer as a person does. */
  async deregister(ip: string): Promise<void> {
    const { loadBalancerId } = this.balancer();
    await this.world.scene.clock.run(this.cloud.targets.deregister(loadBalancerId, this.#targetsAt(ip), PERSON));
  }

  /** Changes the weight of an address of the only load balancer as a person does. */
  async setWeight(ip: string, weight: number): Promise<void> {
    const { clock } = this.world.scene;
    const { loadBalancerId } = this.balancer();
    const targets = this.#targetsAt(ip).map((target) => ({ ...target, weight }));
    const task = await clock.run(this.cloud.targets.setWeights(loadBalancerId, targets, PERSON));
    await clock.run(this.cloud.loadBalancers.settle(task, PERSON));
  }

  /** Makes a listener of TCP as a person does. */
  async addListener(loadBalancerId: string, port: number, name = 'of-a-person'): Promise<void> {
    const { clock } = this.world.scene;
    const ports = [{ port, name }];
    const spec = { protocol: 'TCP', ports, settings: {} } as const;
    const made = await clock.run(this.cloud.listeners.create(loadBalancerId, spec, PERSON));
    await clock.run(this.cloud.loadBalancers.settle(made.task, PERSON));
  }

  /** Changes a listener as a person does. */
  async setListener(loadBalancerId: string, listenerId: string, changes: ListenerSettings): Promise<void> {
    const { clock } = this.world.scene;
    const task = await clock.run(this.cloud.listeners.modify(loadBalancerId, listenerId, changes, PERSON));
    await clock.run(this.cloud.loadBalancers.settle(task, PERSON));
  }

  async protect(loadBalancerId: string, isDeleteProtected: boolean): Promise<void> {
    const { clock } = this.world.scene;
    const task = await clock.run(this.cloud.loadBalancers.modify(loadBalancerId, { isDeleteProtected }, PERSON));
    await clock.run(this.cloud.loadBalancers.settle(task, PERSON));
  }

  /** The load balancers of the account, as the cloud has them. */
  balancers(): readonly ModelLoadBalancer[] {
    const { model } = this.world.scene.host;
    model.advance(this.world.scene.clock.nowMs());
    return [...model.state.clb.balancers().values()];
  }

  /** The only load balancer. @throws Error when there is none, or another one */
  balancer(): ModelLoadBalancer {
    const [one, ...others] = this.balancers();
    if (one === undefined || others.length > 0) throw new Error(`${1 + others.length} load balancers`);
    return one;
  }

  /** The listeners of the only load balancer: `TCP/80`, with their targets `10.0.0.1:30080 10`. */
  listeners(): Readonly<Record<string, readonly string[]>> {
    const { listeners } = this.balancer();
    return Object.fromEntries([...listeners.values()].map((one) => [`${one.protocol}/${one.port}`, targetsOf(one)]));
  }

  listener(protocol: string, port: number): ModelListener | undefined {
    return [...this.balancer().listeners.values()].find((one) => one.protocol === protocol && one.port === port);
  }

  /** The targets of a listener that serve now: healthy by its checks, and with a weight. */
  healthy(protocol: string, port: number): readonly string[] {
    const { clb } = this.world.scene.host.model.state;
    const listener = this.listener(protocol, port);
    const check = listener?.healthCheck;
    const nowMs = this.world.scene.clock.nowMs();
    return [...(listener?.targets.values() ?? [])]
      .filter(({ weight }) => weight > 0)
      .filter((target) => {
        if (check === undefined || listener === undefined) return true;
        return ['Alive', 'Close'].includes(clb.health.detailOf(listener.listenerId, check, target, nowMs));
      })
      .map(({ ip, port: of }) => `${ip}:${of}`);
  }

  /** Messages of the events of Services with a reason. */
  events(reason: string): readonly string[] {
    return this.world.scene.events(reason);
  }

  #targetsAt(ip: string) {
    return [...this.balancer().listeners.values()].flatMap(({ listenerId, targets }) =>
      [...targets.values()].filter((one) => one.ip === ip).map(({ port }) => ({ listenerId, ip, port })),
    );
  }

  async advance(ms: number): Promise<void> {
    await this.world.advance(ms);
  }

  async stop(): Promise<void> {
    await this.world.stop();
  }
}

function targetsOf({ targets }: ModelListener): readonly string[] {
  return [...targets.values()].map(({ ip, port, weight }) => `${ip}:${port} ${weight}`).sort();
}
