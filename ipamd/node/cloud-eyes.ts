import type { CallContext, Cloud, Eni, EniQuery, EniSweep, Tags } from '../../cloud/cloud.ts';
import type { Clock } from '../../runtime/clock.ts';
import type { CloudSight, SeenEni } from '../nec/decision.ts';
import { type EniOwner, seeEni } from './see-eni.ts';

/** What is to be looked at. */
export type LookRequest = {
  readonly uid: string;
  readonly instanceId: string | undefined;
  /** ENIs that the object knows: described by id, so that their absence is certain. */
  readonly eniIds: readonly string[];
  /**
   * `known` describes these alone. `own` looks for those with the object's tag as well, and `all` for what is on the
   * instance too.
   */
  readonly breadth: 'known' | 'own' | 'all';
  /** Tells of an ENI and its tags whether another object that there is goes by them. Default: none does. */
  readonly isOthers?: (tags: Tags, eniId: string) => boolean;
};

/** From this many nodes that look at once on, one sweep of the whole cluster is cheaper; learnt from its size. */
const MANY_AT_FIRST = 10;
const ENIS_PER_PAGE = 100;
const FEWEST_FOR_ALL = 4;
/** A change of leader has many nodes look within a moment of each other. */
const GATHER_MS = 100;

type Gathering = { count: number; readonly decided: Promise<'each' | 'all'> };

/**
 * Looks at what the cloud holds for nodes. Few nodes are looked at one by one; when many want to look at once they share
 * one sweep of the cluster. Make one per process.
 */
export class CloudEyes {
  readonly #cloud: Pick<Cloud, 'enis' | 'subnets'>;
  readonly #clock: Clock;
  readonly #clusterId: string;
  readonly #cidrs = new Map<string, string>();
  #gathering: Gathering | undefined;
  #many = MANY_AT_FIRST;

  constructor(cloud: Pick<Cloud, 'enis' | 'subnets'>, clock: Clock, clusterId: string) {
    this.#cloud = cloud;
    this.#clock = clock;
    this.#clusterId = clusterId;
  }

  /** Describes a node's ENIs; everything it tells was read after this call. @throws CloudError */
  async look(request: LookRequest, context: CallContext): Promise<CloudSight> {
    const { uid, instanceId, isOthers } = request;
    const owner = { clusterId: this.#clusterId, uid, instanceId, ...(isOthers === undefined ? {} : { isOthers }) };
    const swept = request.breadth === 'known' ? NOTHING : await this.#sweep(request, context);
    const found = new Map(swept.enis.filter((eni) => isOf(eni, owner)).map((eni) => [eni.eniId, eni]));
    // Those that the sweep has are not asked for again, unless it may have missed some.
    const unseen = request.eniIds.filter((eniId) => !found.has(eniId));
    for (const eni of await this.#cloud.enis.describe(unseen, context)) found.set(eni.eniId, eni);
    const enis = [...found.values()].filter((eni) => !eni.isPrimary);
    await this.#learnSubnets(enis, context);
    return {
      enis: new Map(enis.map((eni) => [eni.eniId, this.#see(eni, owner)])),
      isComplete: swept.isConsistent,
    };
  }

  /** Puts an ENI into the words of the NodeENIConfig; its subnet must have been learnt. @throws CloudError */
  async see(eni: Eni, owner: Omit<EniOwner, 'clusterId'>, context: CallContext): Promise<SeenEni> {
    await this.#learnSubnets([eni], context);
    return this.#see(eni, { ...owner, clusterId: this.#clusterId });
  }

  /** Learns the networks of ENIs, so that they can be seen at once. @throws CloudError */
  async learn(enis: readonly Eni[], context: CallContext): Promise<void> {
    await this.#learnSubnets(enis, context);
  }

  /** The same at once, with what is known; an ENI of a subnet that nobody described yet has no network. */
  seeNow(eni: Eni, owner: Omit<EniOwner, 'clusterId'>): SeenEni {
    return this.#see(eni, { ...owner, clusterId: this.#clusterId });
  }

  #see(eni: Eni, owner: EniOwner): SeenEni {
    return seeEni(eni, this.#cidrs.get(eni.subnetId) ?? '', owner);
  }

  /** A subnet's network never changes. */
  async #learnSubnets(enis: readonly Eni[], context: CallContext): Promise<void> {
    const unknown = [...new Set(enis.map((eni) => eni.subnetId))].filter((id) => !this.#cidrs.has(id));
    if (unknown.length === 0) return;
    for (const { subnetId, cidr } of await this.#cloud.subnets.describe(unknown, context))
      this.#cidrs.set(subnetId, cidr);
  }

  async #sweep({ uid, instanceId, breadth }: LookRequest, context: CallContext): Promise<EniSweep> {
    const isAll = (await this.#gather(context)) === 'all';
    const shared = isAll ? await this.#sweepCluster(context) : undefined;
    // A large sweep rarely stands still in a storm of changes; that of one node does.
    if (shared?.isConsistent === true) return shared;
    const queries: readonly EniQuery[] = [
      { tag: { key: 'tke-nec-uid', value: uid } },
      ...(breadth === 'all' && instanceId !== undefined ? [{ instanceId }] : []),
    ];
    const sweeps = await Promise.all(queries.map((query) => this.#cloud.enis.sweep(query, context)));
    return { enis: sweeps.flatMap((sweep) => sweep.enis), isConsistent: sweeps.every((sweep) => sweep.isConsistent) };
  }

  /** ENIs without our tag are none of ours, so what else is on the instances is not looked for. */
  async #sweepCluster(context: CallContext): Promise<EniSweep> {
    const query = { tag: { key: 'tke-clusterId', value: this.#clusterId } };
    const sweep = await this.#cloud.enis.sweep(query, context);
    this.#many = Math.max(FEWEST_FOR_ALL, Math.ceil(sweep.enis.length / ENIS_PER_PAGE));
    return sweep;
  }

  /** Waits a moment for others who want to look, and decides with them. */
  async #gather(context: CallContext): Promise<'each' | 'all'> {
    this.#gathering ??= this.#newGathering();
    const gathering = this.#gathering;
    gathering.count += 1;
    const decision = await gathering.decided;
    context.signal.throwIfAborted();
    return decision;
  }

  #newGathering(): Gathering {
    const gathering: Gathering = {
      count: 0,
      decided: this.#clock.sleep(GATHER_MS).then(() => {
        this.#gathering = undefined;
        return gathering.count >= this.#many ? 'all' : 'each';
      }),
    };
    return gathering;
  }
}

const NOTHING: EniSweep = { enis: [], isConsistent: true };

function isOf(eni: Eni, { uid, instanceId }: EniOwner): boolean {
  return eni.tags['tke-nec-uid'] === uid || (instanceId !== undefined && eni.attachment?.instanceId === instanceId);
}
