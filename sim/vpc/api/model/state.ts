import { MinHeap } from '../../../support/min-heap.ts';
import { AddressPool } from './address-pool.ts';
import { ApiError } from './api-error.ts';
import { CertificateBook } from './certificate-book.ts';
import { type ClbSpec, ClbState } from './clb/clb-state.ts';
import { GlobalRouteBook } from './global-route-book.ts';
import { InstanceBook } from './instance-book.ts';
import { Ipv6Pool } from './ipv6-pool.ts';
import { ReservedIpBook } from './reserved-ip-book.ts';
import { RouteTableBook } from './route-table-book.ts';
import { SecurityGroupBook, type SecurityRule } from './security-group-book.ts';
import type {
  FabricEvent,
  ModelEip,
  ModelEni,
  ModelGlobalRoute,
  ModelInstance,
  ModelIp,
  ModelReservedIp,
  ModelSubnet,
  ModelTask,
} from './types.ts';
import { VersionLog } from './version-log.ts';

/** What the cloud consists of and how large its quotas are. */
export type CloudSpec = {
  readonly vpcId: string;
  readonly subnets: readonly {
    readonly subnetId: string;
    readonly zone: string;
    readonly cidr: string;
    /** A /64; none by default. */
    readonly cidrV6?: string;
  }[];
  /** ENIs in the VPC, primary ones not counted; default 1000. */
  readonly vpcEnis?: number;
  /** Routes of the whole VPC; default 1000. */
  readonly globalRoutes?: number;
  /** Whether several of them may lead to one network, and share its packets; default false. */
  readonly globalRouteEcmp?: boolean;
  /** Routes of each route table; default 50. */
  readonly tableRoutes?: number;
  /** Routes of each route table of the cluster service; default 1000. */
  readonly clusterRoutes?: number;
  /** Reserved addresses of the VPC; default 100. */
  readonly reservedIps?: number;
  /** EIPs in the region; default 20. */
  readonly eips?: number;
  /** EIPs that may be applied for in a day; default twice as many. */
  readonly eipsPerDay?: number;
  readonly securityGroupIds?: readonly string[];
  /** Whether describes may answer from the past; default true. False saves memory where thousands of ENIs are made. */
  readonly keepsPast?: boolean;
  readonly clb?: ClbSpec;
};

/** A new instance. */
export type InstanceSpec = {
  readonly instanceId: string;
  readonly instanceType?: string;
  readonly cores: number;
  readonly subnetId: string;
  readonly securityGroupIds?: readonly string[];
  /** Name of the CAM role that its metadata service hands out keys for. */
  readonly role?: string;
  /** Places of the extension type; absent: the API does not mention them. */
  readonly extendEnis?: number;
  /** MAC and address of its primary ENI, where the packets' side has chosen them; else the next free ones. */
  readonly primary?: { readonly mac: string; readonly ip: string };
  /** GiB; default twice as many as cores. */
  readonly memoryGib?: number;
  readonly publicIps?: readonly string[];
  readonly ipv6s?: readonly string[];
};

/** Above the serials of the packets' side, which numbers the primary NICs that it plugs in itself. */
const FIRST_MAC_SERIAL = 0x10_0000;

/** Everything that the cloud knows. Handlers change it; time and chance come in from outside. */
export class CloudState {
  readonly spec: CloudSpec;
  readonly subnets: ReadonlyMap<string, ModelSubnet>;
  readonly #instances = new InstanceBook();
  readonly enis = new Map<string, ModelEni>();
  readonly eips = new Map<string, ModelEip>();
  /** EIPs that were applied for on a day, those released again included. */
  allocations = { day: 0, count: 0 };
  readonly securityGroups: SecurityGroupBook;
  /** What the packets' side knows of the admission of ENIs, as JSON; absent: everyone. */
  readonly #admissions = new Map<string, string>();
  readonly certificates = new CertificateBook();
  readonly clb: ClbState;
  readonly tasks = new Map<string, ModelTask>();
  readonly due = new MinHeap<ModelTask>();
  /** What happened to the packets' side, in order; whoever drives that side takes it. */
  readonly events: FabricEvent[] = [];
  nowMs = 0;
  /** ENIs that the VPC may have, primary ones not counted. May be changed, as a quota is raised. */
  vpcEniQuota: number;
  /** Routes that the VPC may have. May be changed, as a quota is raised. */
  globalRouteQuota: number;
  #globalRoutes: GlobalRouteBook;
  /** Route tables of the VPC. */
  readonly routeTables: RouteTableBook;
  /** Route tables of the cluster service, by name. */
  readonly clusterRouteTables: RouteTableBook;
  readonly reservedIps = new ReservedIpBook();
  /** Reserved addresses that the VPC may have. May be changed, as a quota is raised. */
  reservedIpQuota: number;
  /** Security groups that may be made, and policies of one for what comes in. May be changed, as quotas are raised. */
  securityGroupQuota = 50;
  securityPolicyQuota = 100;
  /** ENIs by the instance that they are bound to, or on their way to or from. */
  #bound = new Map<string, Set<ModelEni>>();
  #secondaryEnis = 0;
  #past = new VersionLog<ModelEni>();
  readonly #eipPast = new VersionLog<ModelEip>();
  /** Whether describes may answer from the past; costs a copy of an ENI for each of its changes. */
  readonly keepsPast: boolean;
  #serials = new Map<string, number>();
  #macSerial = FIRST_MAC_SERIAL;

  constructor(spec: CloudSpec) {
    this.spec = spec;
    this.vpcEniQuota = spec.vpcEnis ?? 1000;
    this.keepsPast = spec.keepsPast ?? true;
    this.globalRouteQuota = spec.globalRoutes ?? 1000;
    this.reservedIpQuota = spec.reservedIps ?? 100;
    this.#globalRoutes = new GlobalRouteBook(spec.vpcId, this.events);
    const now = (): number => this.nowMs;
    this.routeTables = new RouteTableBook(now, spec.tableRoutes ?? 50, 'ResourceNotFound');
    this.clusterRouteTables = new RouteTableBook(now, spec.clusterRoutes ?? 1000, 'InternalError.RouteTableNotFound');
    this.securityGroups = new SecurityGroupBook(spec.securityGroupIds);
    this.clb = new ClbState(spec.clb ?? {}, this.events, this.securityGroups, this.certificates, this.keepsPast);
    this.subnets = new Map(
      spec.subnets.map((subnet) => [
        subnet.subnetId,
        {
          ...subnet,
          vpcId: spec.vpcId,
          pool: new AddressPool(subnet.cidr),
          ...(subnet.cidrV6 === undefined ? {} : { poolV6: new Ipv6Pool(subnet.cidrV6) }),
        },
      ]),
    );
  }

  /** Instances by id. */
  get instances(): Map<string, ModelInstance> {
    return this.#instances.instances;
  }

  /** Every instance that existed at some moment of the last minute. */
  instancesAsOf(atMs: number): ReadonlyMap<string, ModelInstance> {
    return this.#instances.asOf(atMs);
  }

  /** Starts an instance with its primary ENI. */
  addInstance(spec: InstanceSpec): ModelInstance {
    const subnet = this.subnet(spec.subnetId);
    const groups = spec.securityGroupIds ?? ['sg-default0'];
    const instance: ModelInstance = {
      instanceId: spec.instanceId,
      instanceType: spec.instanceType ?? `S5.${spec.cores}CORE`,
      cores: spec.cores,
      zone: subnet.zone,
      vpcId: subnet.vpcId,
      subnetId: spec.subnetId,
      state: 'RUNNING',
      securityGroupIds: groups,
      ...(spec.role === undefined ? {} : { role: spec.role }),
      ...(spec.extendEnis === undefined ? {} : { extendEnis: spec.extendEnis }),
      memoryGib: spec.memoryGib ?? spec.cores * 2,
      restrictState: 'NORMAL',
      publicIps: spec.publicIps ?? [],
      ipv6s: spec.ipv6s ?? [],
      createdAtMs: this.nowMs,
    };
    this.#instances.add(instance);
    const ip = spec.primary === undefined ? subnet.pool.take() : subnet.pool.takeExact(spec.primary.ip);
    const eni = this.makeEni({ subnet, name: 'Primary ENI', description: '', ip, groups, tags: {}, isPrimary: true });
    if (spec.primary !== undefined) eni.mac = spec.primary.mac;
    eni.state = 'AVAILABLE';
    this.bind(eni, instance.instanceId, 0);
    for (const one of eni.ips.values()) one.state = 'AVAILABLE';
    this.touch(eni);
    return instance;
  }

  /** Terminates an instance: its primary ENI goes with it, others are set free. */
  removeInstance(instanceId: string): void {
    this.#instances.remove(instanceId, this.nowMs);
    this.clb.removeInstance(instanceId, this.nowMs);
    for (const eni of this.enisOf(instanceId)) {
      this.unbind(eni);
      if (eni.isPrimary) this.removeEni(eni);
      else {
        eni.state = 'AVAILABLE';
        this.touch(eni);
        this.events.push({ kind: 'detach', eniId: eni.eniId });
      }
    }
  }

  /** Enters a new ENI, PENDING, with its primary address. */
  makeEni(order: {
    readonly subnet: ModelSubnet;
    readonly name: string;
    readonly description: string;
    readonly ip: string;
    readonly groups: readonly string[];
    readonly tags: Readonly<Record<string, string>>;
    readonly isPrimary: boolean;
  }): ModelEni {
    this.#macSerial += 1;
    const eni: ModelEni = {
      eniId: this.nextId('eni'),
      name: order.name,
      description: order.description,
      subnetId: order.subnet.subnetId,
      vpcId: order.subnet.vpcId,
      zone: order.subnet.zone,
      mac: macOf(this.#macSerial),
      isPrimary: order.isPrimary,
      state: 'PENDING',
      ips: new Map([[order.ip, { ip: order.ip, isPrimary: true, state: 'PENDING' }]]),
      securityGroupIds: order.groups,
      tags: order.tags,
      createdAtMs: this.nowMs,
    };
    this.enis.set(eni.eniId, eni);
    if (!eni.isPrimary) this.#secondaryEnis += 1;
    return eni;
  }

  /** ENIs that count against the VPC's quota. */
  get secondaryEnis(): number {
    return this.#secondaryEnis;
  }

  /** Notes which instance an ENI belongs to from now on. */
  bind(eni: ModelEni, instanceId: string, deviceIndex: number, isExtension = false): void {
    eni.attachment = { instanceId, deviceIndex, atMs: this.nowMs, isExtension };
    const bound = this.#bound.get(instanceId) ?? new Set();
    this.#bound.set(instanceId, bound.add(eni));
  }

  /** Notes that an ENI belongs to no instance any more. */
  unbind(eni: ModelEni): void {
    this.#bound.get(eni.attachment?.instanceId ?? '')?.delete(eni);
    delete eni.attachment;
  }

  /** Strikes an ENI out; its addresses are free again. */
  removeEni(eni: ModelEni): void {
    this.unbind(eni);
    if (this.enis.delete(eni.eniId) && !eni.isPrimary) this.#secondaryEnis -= 1;
    for (const ip of eni.ips.values()) {
      this.#give(eni, ip.ip);
      this.unbindEip(ip);
    }
    this.touch(eni);
  }

  /** Takes an address off an ENI; it is free again, and its EIP unbound. */
  removeIp(eni: ModelEni, ip: ModelIp): void {
    if (!eni.ips.delete(ip.ip)) return;
    this.#give(eni, ip.ip);
    this.unbindEip(ip);
  }

  /** Sets the EIP of an address free, if it has one. */
  unbindEip(ip: ModelIp): void {
    const eip = ip.eipId === undefined ? undefined : this.eips.get(ip.eipId);
    delete ip.eipId;
    if (eip === undefined) return;
    this.events.push({ kind: 'eip-unbind', publicIp: eip.publicIp, ip: ip.ip });
    eip.status = 'UNBIND';
    delete eip.binding;
    this.touchEip(eip);
  }

  /** Notes what an EIP is now, for describes that answer from the past. */
  touchEip(eip: ModelEip): void {
    if (this.keepsPast) this.#eipPast.note(eip.eipId, this.nowMs, this.eips.has(eip.eipId) ? { ...eip } : undefined);
  }

  /** Every EIP as it was at some moment of the last minute. */
  eipsAsOf(atMs: number): ReadonlyMap<string, ModelEip> {
    return this.#eipPast.asOf(atMs);
  }

  /** A reserved address stays taken. */
  #give(eni: ModelEni, ip: string): void {
    const { pool, poolV6 } = this.subnet(eni.subnetId);
    if (ip.includes(':')) poolV6?.give(ip);
    else if (this.reservedIps.of(ip) === undefined) pool.give(ip);
  }

  /** Returns the ENI that has an address of the VPC. */
  holderOf(ip: string): string | undefined {
    return [...this.enis.values()].find(({ ips }) => ips.has(ip))?.eniId;
  }

  /** Takes an address for an ENI: a free one, or a reserved one that no other ENI has. @throws ApiError */
  takeExact(subnet: ModelSubnet, ip: string): string {
    const isReserved = this.reservedIps.of(ip)?.subnetId === subnet.subnetId;
    return isReserved && this.holderOf(ip) === undefined ? ip : subnet.pool.takeExact(ip);
  }

  /** Ends a reservation; its address is free again. */
  releaseReserved(one: ModelReservedIp): void {
    this.reservedIps.remove(one, this.nowMs);
    this.subnet(one.subnetId).pool.give(one.ip);
  }

  /** Sets the rules of a security group for what comes in; the packets follow. One whose rules were never set admits everyone. */
  setSecurityRules(groupId: string, rules: readonly SecurityRule[]): void {
    this.securityGroups.set(groupId, rules);
    this.clb.groupChanged(groupId);
    for (const eni of this.enis.values()) if (eni.securityGroupIds.includes(groupId)) this.#noteAdmission(eni);
  }

  #noteAdmission({ eniId, attachment, state, isPrimary, securityGroupIds }: ModelEni): void {
    if (this.securityGroups.isOpen) return;
    if (attachment === undefined) this.#admissions.delete(eniId);
    if (attachment === undefined || state !== 'AVAILABLE') return;
    const rules = this.securityGroups.admissionOf(securityGroupIds);
    const text = rules === undefined ? undefined : JSON.stringify(rules);
    if (text === this.#admissions.get(eniId)) return;
    if (text === undefined) this.#admissions.delete(eniId);
    else this.#admissions.set(eniId, text);
    const { instanceId } = attachment;
    const known = rules === undefined ? {} : { rules };
    this.events.push({ kind: 'eni-admission', eniId, instanceId, isPrimary, ...known });
  }

  /** Notes what an ENI is now: for its packets, and for describes that answer from the past. */
  touch(eni: ModelEni): void {
    this.#noteAdmission(eni);
    if (!this.keepsPast) return;
    const copy: ModelEni = { ...eni, ips: new Map([...eni.ips].map(([ip, one]) => [ip, { ...one }])) };
    this.#past.note(eni.eniId, this.nowMs, this.enis.has(eni.eniId) ? copy : undefined);
  }

  /** Every ENI as it was at some moment of the last minute. */
  enisAsOf(atMs: number): ReadonlyMap<string, ModelEni> {
    return this.#past.asOf(atMs);
  }

  /** Routes of the whole VPC by id. */
  get globalRoutes(): ReadonlyMap<string, ModelGlobalRoute> {
    return this.#globalRoutes.routes;
  }

  /** Every such route as it was at some moment of the last minute. */
  globalRoutesAsOf(atMs: number): ReadonlyMap<string, ModelGlobalRoute> {
    return this.#globalRoutes.asOf(atMs);
  }

  /** Enters such a route; the packets follow. */
  addGlobalRoute(order: Omit<ModelGlobalRoute, 'routeId' | 'createdAtMs'>): ModelGlobalRoute {
    return this.#globalRoutes.add({ ...order, routeId: this.nextId('gr'), createdAtMs: this.nowMs });
  }

  /** Strikes such a route out; the packets follow. */
  removeGlobalRoute(route: ModelGlobalRoute): void {
    this.#globalRoutes.remove(route, this.nowMs);
  }

  /** @throws ApiError ResourceNotFound */
  globalRoute(vpcId: string, routeId: string): ModelGlobalRoute {
    return this.#globalRoutes.get(vpcId, routeId);
  }

  enisOf(instanceId: string): readonly ModelEni[] {
    return [...(this.#bound.get(instanceId) ?? [])];
  }

  /** @throws ApiError ResourceNotFound */
  eni(eniId: string): ModelEni {
    if (!/^eni-[a-z0-9]{8}$/.test(eniId)) throw malformed('NetworkInterfaceId', eniId);
    const eni = this.enis.get(eniId);
    if (eni === undefined) throw notFound(eniId);
    return eni;
  }

  /** @throws ApiError ResourceNotFound */
  instance(instanceId: string): ModelInstance {
    const instance = this.instances.get(instanceId);
    if (instance === undefined) throw notFound(instanceId);
    return instance;
  }

  /** @throws ApiError ResourceNotFound */
  subnet(subnetId: string): ModelSubnet {
    const subnet = this.subnets.get(subnetId);
    if (subnet === undefined) throw notFound(subnetId);
    return subnet;
  }

  /** A fresh id of the cloud's form: `eni-` and eight characters. */
  nextId(prefix: string): string {
    return `${prefix}-${this.serial(prefix).toString(36).padStart(8, '0')}`;
  }

  /** The next number of a series. */
  serial(series: string): number {
    const next = (this.#serials.get(series) ?? 0) + 1;
    this.#serials.set(series, next);
    return next;
  }
}

function notFound(id: string): ApiError {
  return new ApiError('ResourceNotFound', `The resource ${id} does not exist.`);
}

function malformed(field: string, value: string): ApiError {
  return new ApiError('InvalidParameterValue.Malformed', `${field} ${value} is malformed.`);
}

function macOf(serial: number): string {
  const hex = serial.toString(16).padStart(6, '0');
  return `20:90:6f:${hex.slice(0, 2)}:${hex.slice(2, 4)}:${hex.slice(4, 6)}`;
}
