import type { AddressPool } from './address-pool.ts';
import type { ProxyTable } from './clb/proxy-table.ts';
import type { ClbEffect, ListenerPath } from './clb/types.ts';
import type { Ipv6Pool } from './ipv6-pool.ts';
import type { SecurityRule } from './security-group-book.ts';

/** An instance, as the CVM service knows it. */
export type ModelInstance = {
  readonly instanceId: string;
  readonly instanceType: string;
  readonly cores: number;
  readonly zone: string;
  readonly vpcId: string;
  readonly subnetId: string;
  state: string;
  readonly securityGroupIds: readonly string[];
  readonly role?: string;
  /** Places of the extension type; absent: the API does not mention them, as an older one. */
  readonly extendEnis?: number;
  readonly memoryGib: number;
  restrictState: 'NORMAL' | 'EXPIRED' | 'PROTECTIVELY_ISOLATED';
  publicIps: readonly string[];
  ipv6s: readonly string[];
  readonly createdAtMs: number;
};

/** A subnet and its free addresses. */
export type ModelSubnet = {
  readonly subnetId: string;
  readonly vpcId: string;
  readonly zone: string;
  readonly cidr: string;
  readonly pool: AddressPool;
  /** Of a subnet with an IPv6 block. */
  readonly cidrV6?: string;
  readonly poolV6?: Ipv6Pool;
};

/** An address of an ENI, of either family. */
export type ModelIp = {
  readonly ip: string;
  readonly isPrimary: boolean;
  state: 'PENDING' | 'AVAILABLE' | 'MIGRATING' | 'DELETING';
  eipId?: string;
};

/** An ENI. */
export type ModelEni = {
  readonly eniId: string;
  name: string;
  description: string;
  readonly subnetId: string;
  readonly vpcId: string;
  readonly zone: string;
  mac: string;
  readonly isPrimary: boolean;
  state: 'PENDING' | 'AVAILABLE' | 'ATTACHING' | 'DETACHING' | 'DELETING';
  attachment?: {
    readonly instanceId: string;
    readonly deviceIndex: number;
    readonly atMs: number;
    /** Whether it is on a place of the extension type. */
    readonly isExtension: boolean;
  };
  readonly ips: Map<string, ModelIp>;
  securityGroupIds: readonly string[];
  readonly tags: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
};

/** An EIP. */
export type ModelEip = {
  readonly eipId: string;
  readonly name: string;
  readonly publicIp: string;
  status: 'CREATING' | 'BINDING' | 'BIND' | 'UNBINDING' | 'UNBIND' | 'OFFLINING' | 'BIND_ENI';
  readonly bandwidthMbps: number;
  readonly isp: string;
  readonly tags: Readonly<Record<string, string>>;
  binding?: {
    readonly eniId: string;
    readonly ip: string;
    readonly instanceId?: string;
    readonly isOfInstance: boolean;
  };
};

/** A route of the whole VPC to a network outside of it, by an instance. */
export type ModelGlobalRoute = {
  readonly routeId: string;
  readonly vpcId: string;
  readonly cidr: string;
  readonly gatewayIp: string;
  description: string;
  readonly createdAtMs: number;
};

/** A reserved address of the VPC. */
export type ModelReservedIp = {
  readonly reservationId: string;
  readonly vpcId: string;
  readonly subnetId: string;
  readonly ip: string;
  name: string;
  description: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
};

/** What a task does to one ENI. */
export type EniEffect =
  | { readonly kind: 'create' | 'attach' | 'detach' | 'delete'; readonly eniId: string }
  | { readonly kind: 'assign' | 'unassign'; readonly eniId: string; readonly ips: readonly string[] };

/** A move of an address from one ENI to another. */
export type MigrateEffect = {
  readonly kind: 'migrate';
  readonly fromEniId: string;
  readonly toEniId: string;
  readonly ip: string;
};

/** What a task does to EIPs. */
export type EipEffect = {
  readonly kind: 'eip-allocate' | 'eip-bind' | 'eip-unbind' | 'eip-release';
  readonly eipIds: readonly string[];
};

/** What a task does when it is due. */
export type TaskEffect = EniEffect | MigrateEffect | EipEffect | ClbEffect;

/** How a task will end; decided when it begins. */
export type TaskFate = 'succeed' | 'fail' | 'vanish';

/** Work that was accepted. */
export type ModelTask = {
  readonly taskId: string;
  readonly effect: TaskEffect;
  readonly fate: TaskFate;
  readonly dueMs: number;
  status: 'RUNNING' | 'SUCCESS' | 'FAILED';
};

/** Something that the packets' side must follow. */
export type FabricEvent =
  | {
      readonly kind: 'attach';
      readonly eniId: string;
      readonly instanceId: string;
      readonly subnetId: string;
      readonly mac: string;
      readonly primaryIp: string;
    }
  | { readonly kind: 'detach'; readonly eniId: string }
  | { readonly kind: 'assign' | 'unassign'; readonly eniId: string; readonly ip: string }
  | { readonly kind: 'eip-bind' | 'eip-unbind'; readonly publicIp: string; readonly ip: string }
  /** All next hops of a network from now on; none: its last route is gone. */
  | { readonly kind: 'global-routes'; readonly cidr: string; readonly gatewayIps: readonly string[] }
  /** What the security groups of an attached ENI admit from now on; without rules: everyone. */
  | {
      readonly kind: 'eni-admission';
      readonly eniId: string;
      readonly instanceId: string;
      readonly isPrimary: boolean;
      readonly rules?: readonly SecurityRule[];
    }
  /** How packets of a listener go from now on. */
  | { readonly kind: 'clb-listener'; readonly listener: ListenerPath }
  | { readonly kind: 'clb-listener-gone'; readonly listenerId: string }
  /** What a load balancer does at layer 7 from now on. */
  | { readonly kind: 'clb-proxy'; readonly table: ProxyTable };
