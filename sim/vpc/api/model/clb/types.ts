import type { SecurityRule } from '../security-group-book.ts';
/** Protocols of listeners. */
export type ListenerProtocol = 'TCP' | 'UDP' | 'HTTP' | 'HTTPS' | 'TCP_SSL' | 'QUIC';

/** The settings of a health check, with the API's own names; every field has a value. */
export type ModelHealthCheck = {
  readonly HealthSwitch: number;
  /** Seconds. */
  readonly TimeOut: number;
  /** Seconds. */
  readonly IntervalTime: number;
  readonly HealthNum: number;
  readonly UnHealthNum: number;
  /** Bit mask: 1 for 1xx, 2 for 2xx, 4 for 3xx, 8 for 4xx, 16 for 5xx. */
  readonly HttpCode: number;
  readonly HttpCheckPath: string;
  readonly HttpCheckDomain: string;
  readonly HttpCheckMethod: string;
  readonly HttpVersion: string;
  /** -1: the port of the target. */
  readonly CheckPort: number;
  readonly ContextType: string;
  readonly SendContext: string;
  readonly RecvContext: string;
  readonly CheckType: string;
  /** 0: probes come from the VIP; 1: from 100.64.0.0/10. */
  readonly SourceIpType: number;
};

/** A backend of a listener. */
export type ModelTarget = {
  readonly ip: string;
  readonly port: number;
  readonly type: 'CVM' | 'ENI' | 'CCN' | 'GLOBALROUTE';
  readonly instanceId?: string;
  readonly eniId?: string;
  readonly zone?: string;
  readonly weight: number;
  readonly tag: string;
  readonly registeredAtMs: number;
};

/** Server certificates of different algorithms, and the authority of clients' certificates. */
export type ModelCertificates = { readonly certIds: readonly string[]; readonly caCertId?: string };

/** Where requests of a rule are redirected. */
export type ModelRedirect = {
  readonly listenerId: string;
  readonly ruleId: string;
  readonly code: 301 | 302 | 307;
  /** Whether path and query of the request are kept. */
  readonly takesUrl: boolean;
};

/** A rule of a listener of HTTP or HTTPS. Its targets are by `ip:port`. */
export type ModelRule = {
  readonly ruleId: string;
  /** Lower case; the address of the load balancer when none was given. */
  readonly domain: string;
  readonly url: string;
  readonly scheduler: string;
  /** Seconds; 0: no session persistence. */
  readonly sessionExpireTime: number;
  readonly forwardType: string;
  readonly healthCheck: ModelHealthCheck;
  readonly rewriteTo?: ModelRedirect;
  readonly createdAtMs: number;
  readonly targets: ReadonlyMap<string, ModelTarget>;
};

/** What a listener of HTTP or HTTPS has besides. */
export type ModelLayer7 = {
  readonly rules: ReadonlyMap<string, ModelRule>;
  /** Certificates of the listener; undefined with SNI, and for HTTP. */
  readonly certificates?: ModelCertificates;
  readonly isSni: boolean;
  /** Certificates by domain, with SNI. */
  readonly domains: ReadonlyMap<string, ModelCertificates>;
  /** Undefined while there is no rule. */
  readonly defaultDomain?: string;
};

/** A listener. Its targets are by `ip:port`. */
export type ModelListener = {
  readonly listenerId: string;
  readonly name: string;
  readonly protocol: ListenerProtocol;
  readonly port: number;
  /** Undefined for a protocol whose rules have checks of their own. */
  readonly healthCheck?: ModelHealthCheck;
  readonly scheduler: string;
  /** Seconds; 0: no session persistence. */
  readonly sessionExpireTime: number;
  readonly deregisterTargetRst: boolean;
  /** Seconds. */
  readonly idleConnectTimeout?: number;
  readonly createdAtMs: number;
  readonly targets: ReadonlyMap<string, ModelTarget>;
  /** Of HTTP and HTTPS, and of no other protocol. */
  readonly layer7?: ModelLayer7;
};

/** A load balancer. It is never changed: each change makes a new one. */
export type ModelLoadBalancer = {
  readonly loadBalancerId: string;
  readonly name: string;
  readonly type: 'OPEN' | 'INTERNAL';
  readonly vpcId: string;
  readonly subnetId?: string;
  readonly vip: string;
  /** The domain of one whose address is not fixed; '' for others. */
  readonly domain: string;
  readonly tags: Readonly<Record<string, string>>;
  readonly securityGroupIds: readonly string[];
  readonly isDeleteProtected: boolean;
  readonly passToTarget: boolean;
  readonly snatPro: boolean;
  /** What was ordered besides, in wire form. */
  readonly extras: {
    readonly internetChargeType?: string;
    readonly internetMaxBandwidthOut?: number;
    readonly vipIsp?: string;
    readonly masterZoneId?: string;
    readonly slaveZoneId?: string;
    readonly zoneId?: string;
    readonly bandwidthPackageId?: string;
    readonly slaType?: string;
  };
  readonly state: 'CREATING' | 'NORMAL' | 'DELETING';
  /** Whether a task of it runs. */
  readonly isOperating: boolean;
  readonly createdAtMs: number;
  readonly listeners: ReadonlyMap<string, ModelListener>;
};

/** How packets of a listener of layer 4 go. */
export type ListenerPath = {
  readonly listenerId: string;
  readonly vip: string;
  readonly protocol: 'TCP' | 'UDP';
  readonly port: number;
  /** Whether a client keeps its target. */
  readonly isSticky: boolean;
  /** Whether a client gets a RST when its target was deregistered. */
  readonly resets: boolean;
  /** Who is admitted, by the security groups; undefined: everyone. */
  readonly admission?: readonly Pick<SecurityRule, 'cidr' | 'isAccepted'>[];
  /** Whether its security groups decide alone: those of targets are not asked. Absent: they are. */
  readonly passes?: true;
  /** How long a connection is remembered that nobody uses, seconds. */
  readonly idleSeconds: number;
  readonly healthCheck: ModelHealthCheck;
  readonly targets: readonly { readonly ip: string; readonly port: number; readonly weight: number }[];
};

/** What a task does to load balancers. */
export type ClbEffect = {
  readonly kind: 'clb';
  readonly action: 'create' | 'change' | 'delete';
  readonly loadBalancerIds: readonly string[];
  /** What the balancer is after a change. */
  readonly change?: (balancer: ModelLoadBalancer) => ModelLoadBalancer;
  readonly dealName?: string;
};
