import type { Eni } from '../../../cloud/cloud.ts';
import { OrphanSweep } from '../../../cloud/orphan-sweep.ts';
import { createTencentCloud, type TencentCloud } from '../../../cloud/tencent/tencent-cloud.ts';
import { nodeEniConfig } from '../../../crd/node-eni-config.ts';
import type { NodeEniConfigStatus } from '../../../crd/node-eni-config-fields.ts';
import type { AuditedNec } from '../../../ipamd/audit/compare-nodes.ts';
import { type SweepDeps, sweepContext } from '../../../ipamd/audit/run-sweep.ts';
import { type EniSweepDeps, sweptEnis } from '../../../ipamd/audit/sweep-enis.ts';
import type { ObservedEni } from '../../../ipamd/decide/decision.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { Faults } from '../../../runtime/decode.ts';
import { silentLogger } from '../../../runtime/log.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { CloudHost } from '../../../sim/vpc/api/host.ts';
import { createInProcessApi } from '../../../sim/vpc/api/in-process.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';

/** The cluster of these tests. */
export const CLUSTER = 'cls-test';
/** The tags of TKE, and those of ipamd. */
export const TKE_TAGS = { 'tke-clusterId': CLUSTER, 'tke-created-eni': 'true' };
export const OWN_TAGS = { ...TKE_TAGS, 'tke-nec-uid': 'uid-of-a-lost-object' };
const SUBNET = 'subnet-a0000000';
const MINUTE_MS = 60_000;

/** How an ENI of the world is made. */
type EniOrder = {
  readonly name?: string;
  readonly tags?: Readonly<Record<string, string>>;
  /** The instance that it is on. */
  readonly on?: string;
};

/** A simulated cloud, NodeENIConfigs beside it, and an audit of both on a virtual clock. */
export class AuditWorld {
  readonly clock = new VirtualClock();
  readonly host: CloudHost;
  readonly cloud: TencentCloud;
  readonly necs = new Map<string, AuditedNec>();
  readonly instanceIds = new Set<string>();
  readonly suspected: string[] = [];
  readonly events: { readonly reason: string; readonly message: string }[] = [];
  /** What the API server has beyond the cache. */
  readonly live = new Map<string, KubeObject>();
  /** How much is wrong with each NodeENIConfig. */
  readonly faults = new Map<string, number>();
  isSynced = true;
  #signal = new AbortController().signal;

  constructor(seed = 1) {
    const subnets = [{ subnetId: SUBNET, zone: 'z', cidr: '10.0.0.0/16' }];
    this.host = new CloudHost({ vpcId: 'vpc-test', subnets }, this.clock, { seed, taskMs: [10, 50] });
    this.cloud = createTencentCloud({
      api: createInProcessApi(this.host),
      clock: this.clock,
      random: seededRandom(seed),
    });
  }

  deps(settings: Partial<SweepDeps['config']> = {}, change: Partial<EniSweepDeps> = {}): EniSweepDeps {
    return {
      cloud: this.cloud,
      kube: { get: async (_type, { name }) => this.live.get(name) ?? this.necs.get(name)?.object },
      necs: this.necs,
      others: () => [],
      instanceIds: () => this.instanceIds,
      isSynced: () => this.isSynced,
      definitions: { wereLostLately: false },
      loadSubnets: async () => {},
      findStatic: () => undefined,
      convertEni: see,
      requestRepair: (name) => this.suspected.push(name),
      clock: this.clock,
      log: silentLogger,
      events: { record: (event) => this.events.push(event) },
      config: {
        clusterId: CLUSTER,
        syncIntervalMs: 5 * MINUTE_MS,
        orphanGraceMs: 5 * MINUTE_MS,
        orphanLimit: 10,
        orphanDryRun: false,
        namespace: 'kube-system',
        ...settings,
      },
      ...change,
    };
  }

  audit(settings: Partial<SweepDeps['config']> = {}, change: Partial<EniSweepDeps> = {}): OrphanSweep<Eni> {
    const deps = this.deps(settings, change);
    return new OrphanSweep(sweptEnis(deps), deps, deps.config.orphanGraceMs);
  }

  /** Looks once, and lets an interval pass. */
  async look(audit: OrphanSweep<Eni>) {
    const swept = await this.clock.run(audit.sweep(sweepContext(this.#signal)));
    await this.clock.advance(5 * MINUTE_MS);
    return swept;
  }

  /** Adds a node with its instance. */
  addNode(name: string, status: NodeEniConfigStatus = {}): string {
    const instanceId = `ins-${name}000`;
    this.host.model.state.addInstance({ instanceId, cores: 8, subnetId: SUBNET });
    this.instanceIds.add(instanceId);
    this.setNec(name, { status: { instanceID: instanceId, ...status } });
    return instanceId;
  }

  /** Puts a NodeENIConfig in the cache, as a watch does; whatever it is. */
  setNec(name: string, parts: Readonly<Record<string, unknown>>, resourceVersion = '1'): void {
    const object: KubeObject = {
      apiVersion: 'networking.tke.cloud.tencent.com/v1',
      kind: 'NodeENIConfig',
      metadata: { name, resourceVersion },
      ...parts,
    };
    const faults = new Faults();
    const decoded = nodeEniConfig(object, '', faults);
    this.necs.set(name, { object, decoded: faults.list.length > 0 ? undefined : decoded });
    this.faults.set(name, faults.list.length);
  }

  /** Makes an ENI in the cloud and returns its id. */
  addEni(order: EniOrder = {}): string {
    const { state } = this.host.model;
    const subnet = state.subnet(SUBNET);
    const eni = state.makeEni({
      subnet,
      name: order.name ?? 'tke-cls-test-0000000000000000',
      description: '',
      ip: subnet.pool.take(),
      groups: ['sg-a'],
      tags: order.tags ?? OWN_TAGS,
      isPrimary: false,
    });
    eni.state = 'AVAILABLE';
    for (const ip of eni.ips.values()) ip.state = 'AVAILABLE';
    if (order.on !== undefined) state.bind(eni, order.on, state.enisOf(order.on).length);
    state.touch(eni);
    return eni.eniId;
  }

  /** Whether the cloud still has an ENI. */
  has(eniId: string): boolean {
    return this.host.model.state.enis.has(eniId);
  }
}

/** Converts an ENI without its addresses. */
export function see(eni: Eni): ObservedEni {
  return {
    eniID: eni.eniId,
    mac: eni.mac,
    name: eni.name,
    primaryIP: eni.ips.find((ip) => ip.isPrimary)?.ip ?? '',
    subnetID: eni.subnetId,
    subnetCIDR: '10.0.0.0/16',
    gateway: '10.0.0.1',
    state: eni.state,
    securityGroups: eni.securityGroupIds,
    ips: [],
    pendingIps: [],
  };
}

/** A status that names these ENIs. */
export function statusOf(eniIds: readonly string[]): NodeEniConfigStatus {
  return {
    eniInfos: eniIds.map((eniID, index) => ({
      eniID,
      mac: `20:90:6f:00:00:${(index + 16).toString(16)}`,
      state: 'Attached',
      primaryIP: `10.9.0.${index + 2}`,
      gateway: '10.9.0.1',
      subnetID: 'subnet-a0000000',
      subnetCIDR: '10.9.0.0/24',
    })),
  };
}

/** An intent in the words of the object. */
export function intentOf(parts: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return {
    id: 'i1',
    phase: 'Recorded',
    leaderEpoch: 1,
    requestTimeoutSeconds: 60,
    recordedAt: '2026-01-01T00:00:00Z',
    ...parts,
  };
}
