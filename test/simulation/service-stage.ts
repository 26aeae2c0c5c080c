import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { INGRESSES, NODES, PODS, SECRETS, SERVICES } from '../../kube/resource-types.ts';
import { recordOf, recordsOf, textOf, textsOf } from '../../runtime/json.ts';
import { createInProcessApi } from '../../sim/vpc/api/in-process.ts';
import type { ModelLoadBalancer } from '../../sim/vpc/api/model/clb/types.ts';
import { OWNER_TAG, usedBalancers } from './auditors/balancer-owners.ts';
import type { Machine } from './machine.ts';
import type { Stage } from './stage.ts';
import { type TAMPERING, tamper } from './standins/balancer-vandals.ts';
import { UNWELL } from './standins/endpoint-slices.ts';

const NAMESPACE = 'default';

/** What an object of a story is made with, or what is changed of it. */
export type Change = {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly spec?: object;
};

/** Services and Ingresses of a story, and their load balancers. */
export class ServiceStage {
  readonly #stage: Stage;

  constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** Makes a Service of type LoadBalancer for the Pods with the label `app` of its name, with port 80. */
  async create(name: string, { annotations = {}, spec = {} }: Change = {}): Promise<void> {
    const given = { type: 'LoadBalancer', selector: { app: name }, ports: [{ port: 80, targetPort: 8_080 }], ...spec };
    await this.#put('Service', name, annotations, given);
  }

  /** Makes an Ingress of class qcloud with direct access, whose rule leads to a Service. */
  async createIngress(name: string, { annotations = {}, spec = ruleOf('/') }: Change = {}): Promise<void> {
    const own = { 'kubernetes.io/ingress.class': 'qcloud', 'ingress.cloud.tencent.com/direct-access': 'true' };
    await this.#put('Ingress', name, { ...own, ...annotations }, spec);
  }

  /** Makes a Service as `kubectl apply` does with what was read of another one, annotations and all; one of its own where there is none. */
  async copy(from: string, name: string): Promise<void> {
    const object = this.find('Service', from);
    if (object === undefined) return await this.create(name);
    const { selector, ports, loadBalancerSourceRanges } = recordOf(object['spec']);
    const kept = recordsOf(ports).map(({ port, targetPort }) => ({ port, targetPort }));
    const { annotations = {} } = object.metadata;
    await this.create(name, { annotations, spec: { selector, ports: kept, loadBalancerSourceRanges } });
  }

  async change(kind: keyof typeof KINDS, name: string, { annotations, spec }: Change): Promise<void> {
    const body = { ...(annotations && { metadata: { annotations } }), ...(spec && { spec }) };
    const { admin } = this.#stage.world;
    await this.#stage.people(admin.patch(KINDS[kind].type, { namespace: NAMESPACE, name }, { kind: 'merge', body }));
  }

  async remove(kind: keyof typeof KINDS, name: string): Promise<void> {
    await this.#stage.people(this.#stage.world.admin.delete(KINDS[kind].type, { namespace: NAMESPACE, name }));
  }

  /** Removes a Service or Ingress, and waits until nothing is left of it. */
  async end(kind: keyof typeof KINDS, name: string): Promise<void> {
    await this.remove(kind, name);
    await this.#stage.until(`${name} is gone`, () => this.find(kind, name) === undefined, 3_600_000);
  }

  async makeTlsSecret(name: string, { cert, key }: { readonly cert: string; readonly key: string }): Promise<void> {
    const data = { 'tls.crt': cert, 'tls.key': key };
    const encoded = Object.entries(data).map(([field, text]) => [field, Buffer.from(text).toString('base64')]);
    const metadata = { name, namespace: NAMESPACE };
    const secret = { apiVersion: 'v1', kind: 'Secret', metadata, type: 'kubernetes.io/tls' };
    await this.#stage.people(this.#stage.world.admin.create(SECRETS, { ...secret, data: Object.fromEntries(encoded) }));
  }

  /** Probes of a Pod fail from now on, or succeed. */
  async setWell(pod: string, isWell: boolean): Promise<void> {
    const body = { metadata: { annotations: { [UNWELL]: isWell ? null : 'true' } } };
    const about = { namespace: NAMESPACE, name: pod };
    await this.#stage.people(this.#stage.world.admin.patch(PODS, about, { kind: 'merge', body }));
  }

  /** Whether a Pod says that it is ready, its gates among the reasons. */
  isReady(pod: string): boolean {
    const object = this.#stage.world.objects('pods').find(({ metadata }) => metadata.name === pod);
    const all = recordsOf(recordOf(object?.['status'])['conditions']);
    return all.some(({ type, status }) => type === 'Ready' && status === 'True');
  }

  async changeNode({ name }: Pick<Machine, 'name'>, body: object): Promise<void> {
    await this.#stage.people(this.#stage.world.admin.patch(NODES, { name }, { kind: 'merge', body }));
  }

  find(kind: keyof typeof KINDS, name: string): KubeObject | undefined {
    const object = this.#stage.world.objects(KINDS[kind].type.plural).find(({ metadata }) => metadata.name === name);
    // The store's objects are those of the API.
    return object as KubeObject | undefined;
  }

  /** Makes a load balancer as a person does; returns its id. */
  async buy(name = 'bought'): Promise<string> {
    const { host } = this.#stage.world;
    const request = {
      LoadBalancerType: 'OPEN',
      LoadBalancerName: name,
      VpcId: 'vpc-0000test',
      ClientToken: name,
    };
    await this.#stage.people(
      createInProcessApi(host).call('CreateLoadBalancer', request, new AbortController().signal),
    );
    await this.#stage.until('it is made', () => this.balancers.every(({ state }) => state === 'NORMAL'));
    return this.idOf(name);
  }

  /** The id of the load balancer with this name. */
  idOf(name: string): string {
    return this.balancers.find((one) => one.name === name)?.loadBalancerId ?? '';
  }

  /** A person does something to the load balancer of a Service. */
  tamper(name: string, what: (typeof TAMPERING)[number]): void {
    const balancer = this.#balancerOf(name);
    if (balancer !== undefined) tamper(this.#stage.world.host, balancer, what);
  }

  /** A person takes the tags off the load balancer of a Service. Returns what puts them back, where it is still that of the Service. */
  untag(name: string): () => void {
    const { state } = this.#stage.world.host.model;
    const before = this.#balancerOf(name);
    if (before === undefined) return () => {};
    const { loadBalancerId: id, tags } = before;
    const isOf = (): boolean =>
      this.find('Service', name)?.metadata.annotations?.[SERVICE_ANNOTATION.record]?.includes(id) === true;
    if (!isOf()) return () => {};
    state.clb.put({ ...before, tags: {} }, state.nowMs);
    return () => {
      const now = state.clb.balancers().get(id);
      if (now !== undefined && isOf()) state.clb.put({ ...now, tags }, state.nowMs);
    };
  }

  /** A person deletes in the console what was made for Services and Ingresses that are lost. */
  clearLost(): void {
    const { world } = this.#stage;
    const { clb, securityGroups, nowMs } = world.host.model.state;
    const uids = [...world.objects('services'), ...world.objects('ingresses')].map(
      ({ metadata }) => metadata.uid ?? '',
    );
    const isLost = ({ [OWNER_TAG]: tag }: Readonly<Record<string, string>>): boolean =>
      tag !== undefined && !uids.some((uid) => tag.endsWith(uid));
    for (const { balancer, owners, listeners } of usedBalancers(world)) {
      if (owners.length > 0 || isLost(balancer.tags)) continue;
      const left = [...balancer.listeners].filter(([, one]) => !listeners.includes(one));
      clb.put({ ...balancer, listeners: new Map(left) }, nowMs);
    }
    for (const { loadBalancerId, tags } of this.balancers) if (isLost(tags)) clb.remove(loadBalancerId, nowMs);
    for (const { groupId, tags } of [...securityGroups.made.values()])
      if (isLost(tags)) securityGroups.remove(groupId, nowMs);
  }

  #balancerOf(service: string): ModelLoadBalancer | undefined {
    const uid = this.find('Service', service)?.metadata.uid ?? ' ';
    return this.balancers.find(({ tags }) => tags[OWNER_TAG]?.endsWith(uid));
  }

  /** Load balancers of the account. */
  get balancers(): readonly ModelLoadBalancer[] {
    return [...this.#stage.world.host.model.state.clb.balancers().values()];
  }

  /** How many listeners load balancers have, also those that lead nowhere. */
  get listeners(): number {
    return this.balancers.reduce((sum, { listeners }) => sum + listeners.size, 0);
  }

  /** Where clients reach a Service or Ingress, as it says. */
  address(kind: keyof typeof KINDS, name: string): string {
    const { ingress } = recordOf(recordOf(this.find(kind, name)?.['status'])['loadBalancer']);
    return recordsOf(ingress)
      .map(({ ip }) => textOf(ip))
      .join();
  }

  /** What load balancers bring where, each with its weight: `TCP/80 10.0.0.1:30080 10`, of layer 7 `HTTPS/443 www.example.com/ 10.0.0.1:8080 10`. */
  get ways(): string {
    return this.#ways(this.balancers);
  }

  /** The same of one load balancer. */
  waysOf(id: string): string {
    return this.#ways(this.balancers.filter(({ loadBalancerId }) => loadBalancerId === id));
  }

  #ways(balancers: readonly ModelLoadBalancer[]): string {
    const lines = balancers.flatMap(({ listeners }) =>
      [...listeners.values()].flatMap((listener) => {
        const { protocol, port, layer7, targets } = listener;
        const places =
          layer7 === undefined
            ? [{ name: '', targets, to: undefined }]
            : [...layer7.rules.values()].map((rule) => ({
                name: ` ${rule.domain}${rule.url}`,
                targets: rule.targets,
                to: rule.rewriteTo,
              }));
        return places.map(({ name, targets: its, to }) => {
          const all = [...its.values()].map(({ ip, port: at, weight }) => `${ip}:${at} ${weight}`).sort();
          return `${protocol}/${port}${name} ${to === undefined ? all.join(' ') : '->'}`;
        });
      }),
    );
    return lines.sort().join('; ');
  }

  /** Targets that serve, which are well by their checks and have a weight: `TCP/80 10.0.0.1:30080`, one after the other. */
  get serving(): string {
    const { clb, nowMs } = this.#stage.world.host.model.state;
    const lines = this.balancers.flatMap(({ listeners }) =>
      [...listeners.values()].flatMap(({ listenerId, protocol, port, targets, healthCheck }) =>
        [...targets.values()].flatMap((one) => {
          const health = healthCheck && clb.health.detailOf(listenerId, healthCheck, one, nowMs);
          const isWell = health === undefined || health === 'Alive' || health === 'Close';
          return isWell && one.weight > 0 ? [`${protocol}/${port} ${one.ip}:${one.port}`] : [];
        }),
      ),
    );
    return lines.sort().join();
  }

  /** Listeners, and whom the security groups of their load balancer admit to which port. */
  get admitted(): string {
    const { securityGroups } = this.#stage.world.host.model.state;
    const lines = this.balancers.map(({ listeners, securityGroupIds }) => {
      const ports = [...listeners.values()].map(({ protocol, port }) => `${protocol}/${port}`);
      const rules = securityGroups.rulesOf(securityGroupIds).map(({ cidr, port }) => `${cidr} to ${port}`);
      return `${ports.join()} for ${securityGroupIds.length === 0 ? 'everyone' : rules.join()}`;
    });
    return lines.join();
  }

  /** Addresses that are published as targets. */
  get published(): readonly string[] {
    const necs = this.#stage.world.objects('nodeeniconfigs');
    return necs.flatMap((one) => textsOf(recordOf(one['loadBalancers'])['registeredIPs']));
  }

  get certificates(): number {
    return this.#stage.world.host.model.state.certificates.all().length;
  }

  /** Whether what a Service asks for is on record as in force. */
  isSettled(name: string): boolean {
    return this.find('Service', name)?.metadata.annotations?.[SERVICE_ANNOTATION.record]?.includes('settled') === true;
  }

  async #put(
    kind: keyof typeof KINDS,
    name: string,
    given: Change['annotations'] & object,
    spec: object,
  ): Promise<void> {
    const annotations = Object.fromEntries(
      Object.entries(given).flatMap(([key, value]) => (value === null ? [] : [[key, value]])),
    );
    const { type, apiVersion } = KINDS[kind];
    const object = { apiVersion, kind, metadata: { name, namespace: NAMESPACE, annotations }, spec };
    await this.#stage.people(this.#stage.world.admin.create(type, object));
  }
}

const KINDS = {
  Service: { type: SERVICES, apiVersion: 'v1' },
  Ingress: { type: INGRESSES, apiVersion: 'networking.k8s.io/v1' },
} as const;

/** The spec of an Ingress whose rule leads to port 80 of a Service. */
export function ruleOf(path: string, host?: string, name = 'web') {
  const backend = { service: { name, port: { number: 80 } } };
  const http = { paths: [{ path, pathType: 'ImplementationSpecific', backend }] };
  return { rules: [{ ...(host === undefined ? {} : { host }), http }] };
}
