import type { CallContext, Cloud, Eni, EniQuery, EniSweep } from '../../cloud/cloud.ts';
import { CLUSTER_TAG, ENI_TAG, isOwnEni, MODE_TAG } from '../../crd/cloud-tags.ts';
import { parseCidr } from '../../crd/ip-text.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { CloudSnapshot, ObservedEni } from '../decide/decision.ts';

/** What is to be described. */
export type ObserveRequest = {
  readonly uid: string;
  readonly instanceId: string | undefined;
  /** ENIs in the object: described by id, so that their absence is certain. */
  readonly eniIds: readonly string[];
  /** `known` describes only these. `own` adds the ENIs with the object's tag, and `all` those on the instance. */
  readonly scope: 'known' | 'own' | 'all';
  /** Reports whether another existing object owns an ENI. Default: none does. */
  readonly isOthers?: (eni: Eni) => boolean;
};

/**
 * If at least this many nodes are described at the same time, one sweep of the whole cluster is cheaper. Updated from
 * the size of the cluster.
 */
const INITIAL_SWEEP_THRESHOLD = 10;
const ENIS_PER_PAGE = 100;
const MIN_SWEEP_THRESHOLD = 4;
/** After a change of leader many nodes are described within a moment. */
const BATCH_MS = 100;

type Batch = { count: number; readonly decided: Promise<'each' | 'all'> };

/**
 * Reads what the cloud holds for nodes. Few nodes are described one by one; many concurrent requests share one sweep of
 * the cluster. Make one per process.
 */
export class CloudObserver {
  readonly #cloud: Pick<Cloud, 'enis' | 'subnets'>;
  readonly #clock: Clock;
  readonly #clusterId: string;
  readonly #cidrs = new Map<string, string>();
  #batch: Batch | undefined;
  #sweepThreshold = INITIAL_SWEEP_THRESHOLD;

  constructor(cloud: Pick<Cloud, 'enis' | 'subnets'>, clock: Clock, clusterId: string) {
    this.#cloud = cloud;
    this.#clock = clock;
    this.#clusterId = clusterId;
  }

  /** Describes a node's ENIs. Everything in the result was read after this call. @throws CloudError */
  async observe(request: ObserveRequest, context: CallContext): Promise<CloudSnapshot> {
    const { uid, instanceId, isOthers } = request;
    const owner = { clusterId: this.#clusterId, uid, instanceId, ...(isOthers === undefined ? {} : { isOthers }) };
    const swept = request.scope === 'known' ? EMPTY_SWEEP : await this.#sweep(request, context);
    const found = new Map(swept.enis.filter((eni) => mayBelongTo(eni, owner)).map((eni) => [eni.eniId, eni]));
    // ENIs of the sweep are not described again, unless the sweep may have missed some.
    const missing = request.eniIds.filter((eniId) => !found.has(eniId));
    for (const eni of await this.#cloud.enis.describe(missing, context)) found.set(eni.eniId, eni);
    const enis = [...found.values()].filter((eni) => !eni.isPrimary);
    await this.#loadCidrs(enis, context);
    return {
      enis: new Map(enis.map((eni) => [eni.eniId, this.#convert(eni, owner)])),
      isComplete: swept.isConsistent,
    };
  }

  /**
   * Converts an ENI to the terms of the NodeENIConfig; reads its subnet if that is not known yet. @throws CloudError
   */
  async convertEni(eni: Eni, owner: Omit<EniOwner, 'clusterId'>, context: CallContext): Promise<ObservedEni> {
    await this.#loadCidrs([eni], context);
    return this.#convert(eni, { ...owner, clusterId: this.#clusterId });
  }

  /** Reads the CIDRs of the ENIs' subnets, so that {@link convertKnownEni} can convert them. @throws CloudError */
  async loadSubnets(enis: readonly Eni[], context: CallContext): Promise<void> {
    await this.#loadCidrs(enis, context);
  }

  /** Converts an ENI without a call; an ENI of a subnet that was never described has no CIDR. */
  convertKnownEni(eni: Eni, owner: Omit<EniOwner, 'clusterId'>): ObservedEni {
    return this.#convert(eni, { ...owner, clusterId: this.#clusterId });
  }

  #convert(eni: Eni, owner: EniOwner): ObservedEni {
    return toObservedEni(eni, this.#cidrs.get(eni.subnetId) ?? '', owner);
  }

  /** Reads the CIDRs of unknown subnets. The CIDR of a subnet never changes. */
  async #loadCidrs(enis: readonly Eni[], context: CallContext): Promise<void> {
    const unknown = [...new Set(enis.map((eni) => eni.subnetId))].filter((id) => !this.#cidrs.has(id));
    if (unknown.length === 0) return;
    for (const { subnetId, cidr } of await this.#cloud.subnets.describe(unknown, context))
      this.#cidrs.set(subnetId, cidr);
  }

  async #sweep({ uid, instanceId, scope }: ObserveRequest, context: CallContext): Promise<EniSweep> {
    const isAll = (await this.#joinBatch(context)) === 'all';
    const shared = isAll ? await this.#sweepCluster(context) : undefined;
    // A sweep of the cluster is rarely consistent while much changes; a sweep of one node is.
    if (shared?.isConsistent === true) return shared;
    const queries: readonly EniQuery[] = [
      { tag: { key: ENI_TAG.uid, value: uid } },
      ...(scope === 'all' && instanceId !== undefined ? [{ instanceId }] : []),
    ];
    const sweeps = await Promise.all(queries.map((query) => this.#cloud.enis.sweep(query, context)));
    return { enis: sweeps.flatMap((sweep) => sweep.enis), isConsistent: sweeps.every((sweep) => sweep.isConsistent) };
  }

  /**
   * Sweeps the cluster. ENIs without the cluster's tag are not owned by ipamd, so other ENIs on the instances are not
   * read.
   */
  async #sweepCluster(context: CallContext): Promise<EniSweep> {
    const query = { tag: { key: CLUSTER_TAG, value: this.#clusterId } };
    const sweep = await this.#cloud.enis.sweep(query, context);
    this.#sweepThreshold = Math.max(MIN_SWEEP_THRESHOLD, Math.ceil(sweep.enis.length / ENIS_PER_PAGE));
    return sweep;
  }

  /** Waits a moment for other requests, and decides together with them. */
  async #joinBatch(context: CallContext): Promise<'each' | 'all'> {
    this.#batch ??= this.#newBatch();
    const batch = this.#batch;
    batch.count += 1;
    const decision = await batch.decided;
    context.signal.throwIfAborted();
    return decision;
  }

  #newBatch(): Batch {
    const batch: Batch = {
      count: 0,
      decided: this.#clock.sleep(BATCH_MS).then(() => {
        this.#batch = undefined;
        return batch.count >= this.#sweepThreshold ? 'all' : 'each';
      }),
    };
    return batch;
  }
}

const EMPTY_SWEEP: EniSweep = { enis: [], isConsistent: true };

function mayBelongTo(eni: Eni, { uid, instanceId }: EniOwner): boolean {
  return eni.tags[ENI_TAG.uid] === uid || (instanceId !== undefined && eni.attachment?.instanceId === instanceId);
}

/** The node that an ENI may belong to. */
type EniOwner = {
  readonly clusterId: string;
  readonly uid: string;
  readonly instanceId: string | undefined;
  /** Reports whether another existing object owns an ENI. Default: none does. */
  readonly isOthers?: (eni: Eni) => boolean;
};

/**
 * Converts a described ENI to the terms of the NodeENIConfig. An ENI belongs to the owner when ipamd created it for
 * this cluster, and it has the object's uid or is on the node's instance; other ENIs there are foreign. So is an ENI that another
 * object owns by its tag: for a while an instance whose node was renamed has two objects.
 */
function toObservedEni(eni: Eni, subnetCidr: string, owner: EniOwner): ObservedEni {
  const secondary = eni.ips.filter((ip) => !ip.isPrimary);
  const available = secondary.filter((ip) => ip.state === 'AVAILABLE');
  const { attachment } = eni;
  return {
    eniID: eni.eniId,
    mac: eni.mac,
    name: eni.name,
    primaryIP: eni.ips.find((ip) => ip.isPrimary)?.ip ?? '',
    subnetID: eni.subnetId,
    subnetCIDR: subnetCidr,
    gateway: gatewayOf(subnetCidr),
    state: eni.state,
    ...(attachment === undefined
      ? {}
      : {
          instanceID: attachment.instanceId,
          deviceIndex: attachment.deviceIndex,
          ...(attachment.isExtension === undefined ? {} : { isExtension: attachment.isExtension }),
        }),
    securityGroups: eni.securityGroupIds,
    ips: available.map((ip) => ip.ip),
    pendingIps: secondary.filter((ip) => ip.state !== 'AVAILABLE').map((ip) => ip.ip),
    ...(eni.tags[MODE_TAG.name] === MODE_TAG.direct ? { mode: MODE_TAG.direct } : {}),
    ...(isOwn(eni, owner) ? {} : { isForeign: true }),
    ...(owner.isOthers?.(eni) === true ? { isForeign: true, isOthers: true } : {}),
  };
}

function isOwn({ tags, attachment }: Eni, { clusterId, uid, instanceId }: EniOwner): boolean {
  if (!isOwnEni(tags, clusterId)) return false;
  return tags[ENI_TAG.uid] === uid || (attachment !== undefined && attachment.instanceId === instanceId);
}

/** Returns the gateway of a subnet: in this cloud its first address. '' for anything but an IPv4 network. */
function gatewayOf(cidr: string): string {
  const parsed = parseCidr(cidr);
  if (parsed === undefined || parsed.family !== 4) return '';
  const bytes = parsed.address.split('.').map(Number);
  // The last bit of a network address is zero, so that there is no carry.
  return [...bytes.slice(0, 3), (bytes[3] ?? 0) + 1].join('.');
}
