import type { Clock } from '../../runtime/clock.ts';
import { IDS_PER_CALL } from '../batches.ts';
import type { CertificatePort } from '../certificates.ts';
import type { CallContext, Cloud, Eip, Eni, EniSweep, Instance, Subnet } from '../cloud.ts';
import type { EniQuotaPort } from '../eni-quotas.ts';
import type { ListenerPort } from '../listeners.ts';
import type { LoadBalancerPort, PodLimits } from '../load-balancers.ts';
import type { PacedRate } from '../pacing/call-limiter.ts';
import { CallScheduler } from '../pacing/call-scheduler.ts';
import type { ReservedIpPort } from '../reserved-ips.ts';
import type { RewritePort } from '../rewrites.ts';
import type { RulePort } from '../rules.ts';
import type { GroupPort } from '../security-groups.ts';
import type { TargetPort } from '../targets.ts';
import { type CallObserver, createCaller, type Random } from './caller.ts';
import { createCertificatePort } from './certificates.ts';
import { decodeEniPage } from './decode/eni.ts';
import { decodeInstances } from './decode/instance.ts';
import { decodePodLimits } from './decode/load-balancer.ts';
import { decodeEipPage, decodeSubnetPage } from './decode/others.ts';
import { createEipPort } from './eips.ts';
import { createEniPort, createEniQuotaPort } from './enis.ts';
import { IdBatcher } from './id-batcher.ts';
import { createInstancePort } from './instances.ts';
import { createIpPort, createReservedIpPort } from './ips.ts';
import { createListenerPort, createRewritePort, createRulePort } from './listeners.ts';
import { createLoadBalancerPort } from './load-balancers.ts';
import { documentedPerSecond, type TencentApi } from './requests.ts';
import { createClusterRoutePort, createGlobalRoutePort, createTableRoutePort } from './routes.ts';
import { createGroupPort, createSecurityGroupPort } from './security-groups.ts';
import { SharedSweep } from './shared-sweep.ts';
import { createSubnetPort } from './subnets.ts';
import { createTargetPort } from './targets.ts';
import { createTaskPort } from './tasks.ts';

/** Dependencies of the adapter. */
export type TencentCloudDeps = {
  readonly api: TencentApi;
  readonly clock: Clock;
  readonly random: Random;
  readonly observer?: CallObserver;
};

/** Rate limits of the adapter. */
export type TencentCloudSettings = {
  /** Calls a second of one product; default 50, as Tencent's own components. */
  readonly productPerSecond?: number;
  /** Most calls of one product in flight; default 100. */
  readonly productInFlight?: number;
  /** Every so many-th call is that of the owner that was served longest ago, whatever its priority; default 16. */
  readonly blindEvery?: number;
};

/** The port to the cloud, with the state of its pacing. */
export type TencentCloud = Cloud & {
  readonly loadBalancers: LoadBalancerPort;
  readonly listeners: ListenerPort;
  readonly rules: RulePort;
  readonly rewrites: RewritePort;
  readonly certificates: CertificatePort;
  readonly targets: TargetPort;
  readonly groups: GroupPort;
  readonly eniQuotas: EniQuotaPort;
  readonly reservedIps: ReservedIpPort;
  /** Returns how many Pods instance types support, by the cluster service; empty for an unknown type. */
  podLimits(instanceType: string, context: CallContext): Promise<readonly PodLimits[]>;
  readonly pacing: {
    /** Number of queued calls. */
    readonly waiting: number;
    /** Returns the present rate of an API, calls a second; undefined when it was never called. */
    perSecond(product: string, action: string): number | undefined;
    /** Yields the present rate of each product and API that was ever called, and how many of its calls wait. */
    rates(): Iterable<PacedRate>;
  };
};

const PRODUCT_PER_SECOND = 50;
const PRODUCT_IN_FLIGHT = 100;
const BLIND_EVERY = 16;

/**
 * Creates the cloud port on Tencent Cloud's API. Every call goes through one pacing, one retry policy and one set of
 * shared describes, so create one per process.
 */
export function createTencentCloud(deps: TencentCloudDeps, settings: TencentCloudSettings = {}): TencentCloud {
  const { clock } = deps;
  const scheduler = new CallScheduler(clock, {
    productPerSecond: settings.productPerSecond ?? PRODUCT_PER_SECOND,
    productInFlight: settings.productInFlight ?? PRODUCT_IN_FLIGHT,
    blindEvery: settings.blindEvery ?? BLIND_EVERY,
    apiStartPerSecond: (_product, action) => documentedPerSecond(action),
  });
  const call = createCaller({ ...deps, scheduler });
  const isBusy = (): boolean => scheduler.waiting > 0;
  const Limit = IDS_PER_CALL;
  const eniBatcher = new IdBatcher<Eni>(
    clock,
    (eni) => [eni.eniId],
    async (ids, context) =>
      decodeEniPage(await call('DescribeNetworkInterfaces', { NetworkInterfaceIds: [...ids], Limit }, context)).objects,
  );
  const eipBatcher = new IdBatcher<Eip>(
    clock,
    (eip) => [eip.eipId],
    async (ids, context) =>
      decodeEipPage(await call('DescribeAddresses', { AddressIds: [...ids], Limit }, context)).objects,
  );
  const instanceBatcher = new IdBatcher<Instance>(
    clock,
    (instance) => [instance.instanceId],
    async (ids, context) => decodeInstances(await call('DescribeInstances', { InstanceIds: [...ids], Limit }, context)),
  );
  const subnetBatcher = new IdBatcher<Subnet>(
    clock,
    (subnet) => [subnet.subnetId],
    async (ids, context) => {
      const request = { SubnetIds: [...ids], Limit: String(Limit) };
      return decodeSubnetPage(await call('DescribeSubnets', request, context)).objects;
    },
  );
  return {
    instances: createInstancePort(clock, call, instanceBatcher),
    enis: createEniPort({ call, eniBatcher, eniSweeps: new SharedSweep<EniSweep>(clock) }),
    eniQuotas: createEniQuotaPort(call),
    ips: createIpPort(call),
    subnets: createSubnetPort(call, subnetBatcher, new SharedSweep<readonly Subnet[]>(clock)),
    securityGroups: createSecurityGroupPort(call),
    groups: createGroupPort(call),
    eips: createEipPort(call, eipBatcher),
    tasks: createTaskPort({ clock, call, eniBatcher, eipBatcher, isBusy }),
    routes: {
      global: createGlobalRoutePort(call),
      table: createTableRoutePort(call),
      cluster: createClusterRoutePort(call),
    },
    reservedIps: createReservedIpPort(call),
    loadBalancers: createLoadBalancerPort(clock, call, (owner) => scheduler.isBusyFor(owner)),
    listeners: createListenerPort(call),
    rules: createRulePort(call),
    rewrites: createRewritePort(call),
    certificates: createCertificatePort(call),
    targets: createTargetPort(call),
    podLimits: async (InstanceType, context) =>
      decodePodLimits(await call('DescribeVpcCniPodLimits', { InstanceType }, context)),
    pacing: {
      get waiting() {
        return scheduler.waiting;
      },
      perSecond: (product, action) => scheduler.perSecond(product, action),
      rates: () => scheduler.rates(),
    },
  };
}
