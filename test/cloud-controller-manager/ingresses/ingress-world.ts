import type { KubeObject, ResourceType } from '../../../kube/kube-client.ts';
import { INGRESS_CLASSES, INGRESSES, SECRETS } from '../../../kube/resource-types.ts';
import { makeCertificate } from '../../../runtime/make-certificate.ts';
import { rulesOfIngresses } from '../../../sim/kube-api/seed-roles.ts';
import type { ModelListener, ModelLoadBalancer, ModelRule } from '../../../sim/vpc/api/model/clb/types.ts';
import { ServicePods } from '../services/service-pods.ts';
import { MORE_RIGHTS, ServiceWorld } from '../services/service-world.ts';

const NAMESPACE = 'default';
const DAY_MS = 86_400_000;
/** Annotation of Ingresses whose Pods are bound. */
export const DIRECT = 'ingress.cloud.tencent.com/direct-access';
/** Makes an Ingress one of class `qcloud`. */
const CLASS = { 'kubernetes.io/ingress.class': 'qcloud' };
/** The rights of the component ingresses, beside those of load balancers. */
const INGRESS_RIGHTS = rulesOfIngresses();
const SECRET_RIGHTS = [{ apiGroups: [''], resources: ['secrets'], verbs: ['get'] }];

type IngressChange = {
  readonly annotations?: Readonly<Record<string, string | null>>;
  readonly spec?: object;
};

/** Ingresses beside the Services, Nodes and Pods of a `ServiceWorld`, and their load balancers. */
export class IngressWorld {
  readonly services: ServiceWorld;
  readonly pods: ServicePods;

  private constructor(services: ServiceWorld) {
    this.services = services;
    this.pods = new ServicePods(services);
  }

  /** Starts the controller with --ingress=clb, one Node, and by default the rights of the component ingresses. */
  static async start(options: Parameters<typeof ServiceWorld.start>[0] & { hasRights?: boolean } = {}) {
    const { hasRights = true, flags = [], ...rest } = options;
    const services = await ServiceWorld.start({ ...rest, flags: ['--ingress=clb', ...flags] });
    const world = new IngressWorld(services);
    if (hasRights) await world.grant();
    await services.join('n1');
    return world;
  }

  /** Grants the rights to Ingresses, and to all Secrets. */
  async grant(): Promise<void> {
    const { scene } = this.services.world;
    await scene.setRules((rules) => [...rules, ...MORE_RIGHTS, ...INGRESS_RIGHTS, ...SECRET_RIGHTS]);
    await this.advance(31_000);
  }

  /** Makes a Service with a Pod; returns the address of the Pod. */
  async serve(name: string, spec: object = {}): Promise<string> {
    const type = { type: 'ClusterIP', ports: [{ name: 'http', port: 80 }] };
    await this.services.create(name, { spec: { ...type, ...spec } });
    return await this.pods.run(name, `${name}-0`, { node: 'n1' });
  }

  /** Creates an Ingress of class qcloud with direct access, whose only rule leads to the Service `web`. */
  async create(name: string, { annotations = {}, spec = ruleOf('/') }: IngressChange = {}): Promise<void> {
    const given = { ...CLASS, [DIRECT]: 'true', ...annotations };
    const kept = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
    await this.put(INGRESSES, {
      apiVersion: 'networking.k8s.io/v1',
      kind: 'Ingress',
      metadata: { name, namespace: NAMESPACE, annotations: kept as Record<string, string> },
      spec,
    });
  }

  async patch(name: string, { annotations, spec }: IngressChange): Promise<void> {
    const { clock, admin } = this.services.world.scene;
    const body = {
      ...(annotations === undefined ? {} : { metadata: { annotations } }),
      ...(spec === undefined ? {} : { spec }),
    };
    await clock.run(admin.patch(INGRESSES, { namespace: NAMESPACE, name }, { kind: 'merge', body }));
  }

  async delete(name: string): Promise<void> {
    const { clock, admin } = this.services.world.scene;
    await clock.run(admin.delete(INGRESSES, { namespace: NAMESPACE, name }));
  }

  /** Makes an IngressClass. */
  async makeClass(name: string, controller: string): Promise<void> {
    const apiVersion = 'networking.k8s.io/v1';
    await this.put(INGRESS_CLASSES, { apiVersion, kind: 'IngressClass', metadata: { name }, spec: { controller } });
  }

  /** Makes a Secret. */
  async makeSecret(name: string, values: Readonly<Record<string, string>>, type = 'Opaque'): Promise<void> {
    const data = Object.fromEntries(
      Object.entries(values).map(([key, value]) => [key, Buffer.from(value).toString('base64')]),
    );
    const metadata = { name, namespace: NAMESPACE };
    await this.put(SECRETS, { apiVersion: 'v1', kind: 'Secret', metadata, type, data });
  }

  /** Makes a Secret of TLS with a certificate for a host, of three months. */
  async makeTlsSecret(name: string, host: string): Promise<void> {
    const nowMs = this.services.world.scene.clock.nowMs();
    const validity = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 90 * DAY_MS };
    const { cert, key } = makeCertificate({ commonName: host, use: 'server', names: [host], ...validity });
    await this.makeSecret(name, { 'tls.crt': cert, 'tls.key': key }, 'kubernetes.io/tls');
  }

  /** The certificates of the account. */
  certificateIds(): readonly string[] {
    return this.services.world.scene.host.model.state.certificates.all().map(({ certId }) => certId);
  }

  async put(type: ResourceType, object: KubeObject): Promise<void> {
    const { clock, admin } = this.services.world.scene;
    await clock.run(admin.create(type, object));
  }

  ingress(name: string): KubeObject | undefined {
    const { server } = this.services.world.scene;
    return server.objects('ingresses', INGRESSES.group).find(({ metadata }) => metadata.name === name);
  }

  /** The addresses of the status of an Ingress. */
  addresses(name: string): readonly string[] {
    const status = this.ingress(name)?.['status'] as
      | { readonly loadBalancer?: { readonly ingress?: readonly { readonly ip?: string }[] } }
      | undefined;
    return status?.loadBalancer?.ingress?.map(({ ip = '' }) => ip) ?? [];
  }

  annotation(name: string, key: string): string | undefined {
    return this.ingress(name)?.metadata.annotations?.[key];
  }

  /** The only load balancer. @throws Error when there is none, or another one */
  balancer(): ModelLoadBalancer {
    return this.services.balancer();
  }

  listener(protocol: 'HTTP' | 'HTTPS', port: number): ModelListener | undefined {
    return this.services.listener(protocol, port);
  }

  /** The rules of the only load balancer: `HTTP:80 www.example.com/`, with their targets `10.0.0.1:8080 10`, or `-> ` a redirect. */
  rules(): Readonly<Record<string, readonly string[] | string>> {
    return this.rulesOf(this.balancer().loadBalancerId);
  }

  /** The same of one of several load balancers. */
  rulesOf(id: string): Readonly<Record<string, readonly string[] | string>> {
    const found = this.services.balancers().find(({ loadBalancerId }) => loadBalancerId === id);
    if (found === undefined) throw new Error(`there is no load balancer ${id}`);
    const { listeners, vip } = found;
    const all = [...listeners.values()].flatMap(({ protocol, port, layer7 }) =>
      [...(layer7?.rules.values() ?? [])].map((rule) => ({ name: `${protocol}:${port} ${nameOf(rule, vip)}`, rule })),
    );
    return Object.fromEntries(
      all.map(({ name, rule }) => [name, rule.rewriteTo === undefined ? targetsOf(rule) : `-> ${rule.rewriteTo.code}`]),
    );
  }

  /** The names of the rules of all load balancers. */
  allRules(): readonly string[] {
    return this.services
      .balancers()
      .flatMap(({ listeners, vip }) =>
        [...listeners.values()].flatMap(({ protocol, port, layer7 }) =>
          [...(layer7?.rules.values() ?? [])].map((rule) => `${protocol}:${port} ${nameOf(rule, vip)}`),
        ),
      );
  }

  /** Messages of events with a reason. */
  events(reason: string): readonly string[] {
    return this.services.events(reason);
  }

  async advance(ms: number): Promise<void> {
    await this.services.advance(ms);
  }

  async stop(): Promise<void> {
    await this.services.stop();
  }
}

/** The spec of an Ingress with one rule that leads to a Service; without a host by default. */
export function ruleOf(path: string, host?: string, service = 'web', pathType = 'ImplementationSpecific') {
  const backend = { service: { name: service, port: { number: 80 } } };
  return { rules: [{ ...(host === undefined ? {} : { host }), http: { paths: [{ path, pathType, backend }] } }] };
}

function nameOf({ domain, url }: ModelRule, vip: string): string {
  return `${domain === vip ? '' : domain}${url}`;
}

function targetsOf({ targets }: ModelRule): readonly string[] {
  return [...targets.values()].map(({ ip, port, weight }) => `${ip}:${port} ${weight}`).sort();
}
