import type { CallContext } from '../../cloud/cloud.ts';
import type { LoadBalancer, LoadBalancerSpec } from '../../cloud/load-balancers.ts';
import { OWNER_TAG } from '../../crd/cloud-tags.ts';
import { SERVICE_ANNOTATION } from '../../crd/names.ts';
import type { Informer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { KeyedMutex } from '../../runtime/keyed-mutex.ts';
import { listenerNameOf } from '../balancers/balancer-owner.ts';
import { compareIdentity } from '../balancers/compare-identity.ts';
import { BalancerCreator } from '../balancers/create-balancer.ts';
import { listenerDeletions } from '../balancers/diff-listeners.ts';
import type { ListenerMemory } from '../balancers/listener-memory.ts';
import { type OwnerMark, readOwnerMark } from '../balancers/owner-mark.ts';
import type { OwnerEvents } from '../balancers/owner-reports.ts';
import {
  allottedOf,
  listenerPortOf,
  type PoolMember,
  type PoolPorts,
  placeOnPool,
} from '../balancers/place-on-pool.ts';
import type { ListenerKey } from '../balancers/target-place.ts';
import { listenerKeyOf } from '../balancers/target-place.ts';
import type { TargetQuota } from '../balancers/target-quota.ts';
import type { OwnerObjects } from '../balancers/write-owner.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { decideService } from './decide-service.ts';
import { readServiceHead, type ServiceHead } from './read-service.ts';

/** A Service that shares load balancers of a pool. */
type PoolUser = {
  readonly object: KubeObject;
  /** What a new load balancer of the pool is like. */
  readonly spec: Omit<LoadBalancerSpec, 'clientToken'>;
  readonly listeners: readonly { readonly protocol: 'TCP' | 'UDP'; readonly port: number }[];
  readonly allots: boolean;
};

/**
 * `again`: something was written, or is being made. `full`: no listener is left where the Service is. `elsewhere`: it has a load
 * balancer that is not of the pool.
 */
type PoolPlace =
  | { readonly kind: 'placed'; readonly loadBalancerId: string; readonly ports: PoolPorts }
  | { readonly kind: 'full' | 'elsewhere'; readonly loadBalancerId: string }
  | { readonly kind: 'again' };

type PoolDeps = Pick<ControllerDeps, 'cloud' | 'clock' | 'log' | 'config'>;

/** What places are given with. */
type PoolParts = {
  readonly services: Pick<Informer<KubeObject>, 'values'>;
  readonly memory: Pick<ListenerMemory, 'claimOf'>;
  readonly quota: TargetQuota;
  readonly writer: OwnerObjects<ServiceHead>;
  readonly reports: OwnerEvents;
};

/** What was listed serves Services that come together. */
const AGE_MS = 30_000;
/** Between the two listings that contradict a mark: one alone may be behind, or a listener renamed for a moment. */
const CONTRADICTION_MS = 60_000;
const NONE: OwnerMark = { serial: 0 };
/** The cloud's quota, where it does not say. */
const MAX_LISTENERS = 50;

/**
 * Gives Services a load balancer of a pool, and ports on it. What is given is on record before a listener is made, one Service
 * after the other, so that no two get the same.
 */
export class PoolPlacer {
  readonly #deps: PoolDeps;
  readonly #services: PoolParts['services'];
  readonly #memory: PoolParts['memory'];
  readonly #writer: PoolParts['writer'];
  readonly #creator: BalancerCreator;
  readonly #quota: TargetQuota;
  readonly #mutex = new KeyedMutex();
  /** By pool: its load balancers with the listeners that they have, and when they were listed. */
  readonly #listed = new Map<string, { readonly atMs: number; readonly members: readonly Listed[] }>();
  /** By uid of a Service: what it was given. The cache learns of it later. */
  readonly #given = new Map<string, OwnerMark>();
  /** By uid of a Service: when the listing was made that first contradicted its mark; monotonic milliseconds. */
  readonly #contradictedMs = new Map<string, number>();
  /** Uids of Services whose listeners were looked for on all load balancers of their pool. */
  readonly #looked = new Set<string>();

  constructor(deps: PoolDeps, { services, memory, quota, writer, reports }: PoolParts) {
    this.#deps = deps;
    this.#services = services;
    this.#memory = memory;
    this.#writer = writer;
    this.#creator = new BalancerCreator(deps, writer, reports);
    this.#quota = quota;
  }

  /**
   * Finds the place of a Service, or gives it one. Its record is an annotation: it stays where its listeners are, or where it was
   * placed, whatever that says. @throws CloudError, KubeError, StepError
   */
  async place(user: PoolUser, context: CallContext): Promise<PoolPlace> {
    const head = readServiceHead(user.object);
    const owner = user.spec.tags?.[OWNER_TAG] ?? '';
    const found = readOwnerMark(head);
    if (!(await this.#look(head, found, owner, context))) return { kind: 'again' };
    const given = this.#given.get(head.uid);
    const placeId = this.#memory.claimOf(this.#nameOf(head)).knownAt ?? given?.loadBalancerId;
    if (placeId !== undefined && found.loadBalancerId !== placeId) {
      const { serial } = found;
      const mark = given?.loadBalancerId === placeId ? given : { serial, loadBalancerId: placeId };
      const restore = async (): Promise<PoolPlace> =>
        placeOfMark(mark, user) === undefined
          ? await this.#give(user, mark, { owner, stays: true }, context)
          : await this.#write(user.object, mark, context);
      return await this.#mutex.run(owner, restore, head.namespace);
    }
    const isShown =
      placeId !== undefined || found.uid !== undefined || (await this.#isShown(head, found, owner, context));
    if (isShown === undefined) return { kind: 'again' };
    const mark = isShown ? found : NONE;
    const placed = placeOfMark(mark, user);
    if (placed !== undefined) return placed;
    const stays = placeId !== undefined || mark.ports !== undefined;
    return await this.#mutex.run(owner, () => this.#give(user, mark, { owner, stays }, context), head.namespace);
  }

  /** Runs work while no Service is placed on the pool of this owner. */
  async runAlone<T>(owner: string, work: () => Promise<T>): Promise<T> {
    return await this.#mutex.run(owner, async () => {
      this.#listed.delete(owner);
      return await work();
    });
  }

  /** Reports whether a Service has, or was given, a load balancer. */
  isUsed(loadBalancerId: string): boolean {
    for (const service of this.#services.values()) {
      const head = readServiceHead(service);
      if (this.#placeOf(head)?.loadBalancerId === loadBalancerId) return true;
    }
    return [...this.#given.values()].some((mark) => mark.loadBalancerId === loadBalancerId);
  }

  /** Forgets a Service. */
  forget(uid: string): void {
    this.#given.delete(uid);
    this.#contradictedMs.delete(uid);
    this.#looked.delete(uid);
  }

  #nameOf({ uid }: Pick<ServiceHead, 'uid'>): string {
    return listenerNameOf(this.#deps.config.clusterId, uid, 'service');
  }

  /**
   * Looks once for the listeners of a Service on all load balancers of its pool: the one whose address it has, or that it has on
   * record, keeps them, and those of the others are deleted. @returns false: that is not known yet
   */
  async #look(head: ServiceHead, found: OwnerMark, owner: string, context: CallContext): Promise<boolean> {
    if (this.#looked.has(head.uid)) return true;
    const members = await this.#members(owner, context);
    if (members === undefined) return false;
    const name = this.#nameOf(head);
    const holders = members.filter(({ names }) => names.has(name)).map(({ balancer }) => balancer);
    const isMarked = (one: Pick<LoadBalancer, 'loadBalancerId'>) => one.loadBalancerId === found.loadBalancerId;
    const holder = holders.find((one) => isPublishedAt(head, one)) ?? holders.find(isMarked) ?? holders[0];
    for (const { loadBalancerId } of holders.filter((one) => one !== holder))
      await this.#clear(loadBalancerId, name, context);
    if (holders.length > 1) this.#listed.delete(owner);
    this.#looked.add(head.uid);
    if (holder === undefined || this.#given.has(head.uid)) return true;
    const { serial } = found;
    this.#given.set(head.uid, isMarked(holder) ? found : { serial, loadBalancerId: holder.loadBalancerId });
    return true;
  }

  /** Deletes the listeners of a name. @throws CloudError */
  async #clear(loadBalancerId: string, name: string, context: CallContext): Promise<void> {
    const { listeners, loadBalancers } = this.#deps.cloud;
    const its = (await listeners.list(loadBalancerId, context)).filter((listener) => listener.name === name);
    for (const { listenerIds } of listenerDeletions(its.map(({ listenerId }) => listenerId)))
      await loadBalancers.settle(await listeners.delete(loadBalancerId, listenerIds, context), context);
  }

  /**
   * Reports whether a mark without uid, of a former release, is of the Service: its status has an address of the load balancer,
   * which no copy has and a tenant cannot write, or a listener has its name. False: two listings contradict that. Undefined: not
   * known.
   */
  async #isShown(
    { uid, ingress }: ServiceHead,
    { loadBalancerId }: OwnerMark,
    owner: string,
    context: CallContext,
  ): Promise<boolean | undefined> {
    if (loadBalancerId === undefined) return true;
    const members = await this.#members(owner, context);
    const member = members?.find(({ balancer }) => balancer.loadBalancerId === loadBalancerId);
    // Of no pool: that is refused.
    if (member === undefined) return members === undefined ? undefined : true;
    const { balancer, names, atMs } = member;
    if (isPublishedAt({ ingress }, balancer) || names.has(this.#nameOf({ uid }))) {
      this.#contradictedMs.delete(uid);
      return true;
    }
    const sinceMs = this.#contradictedMs.get(uid) ?? atMs;
    this.#contradictedMs.set(uid, sinceMs);
    return atMs - sinceMs >= CONTRADICTION_MS ? false : undefined;
  }

  /** @param stays whether it is placed on the load balancer of the mark, and nowhere else */
  async #give(
    user: PoolUser,
    mark: OwnerMark,
    { owner, stays }: { readonly owner: string; readonly stays: boolean },
    context: CallContext,
  ): Promise<PoolPlace> {
    const { uid, namespace, name } = readServiceHead(user.object);
    const members = await this.#members(owner, context);
    if (members === undefined) return { kind: 'again' };
    const max = (await this.#quota.listeners(context)) ?? MAX_LISTENERS;
    const request = { ...user, ...(mark.ports === undefined ? {} : { given: allottedOf(mark.ports) }) };
    const place = (candidates: readonly Listed[]) =>
      placeOnPool(
        request,
        candidates.map((one) => this.#countTaken(one, uid, mark)),
        max,
      );
    const { loadBalancerId } = mark;
    if (loadBalancerId !== undefined) {
      const its = members.filter(({ balancer }) => balancer.loadBalancerId === loadBalancerId);
      if (its.length === 0) return { kind: 'elsewhere', loadBalancerId };
      const found = stays ? place(its) : undefined;
      if (stays && found === undefined) return { kind: 'full', loadBalancerId };
      if (found !== undefined) return await this.#write(user.object, { ...mark, ...found }, context);
    }
    // An empty one has too few listeners as well: none is made.
    if (placeOnPool(request, [{ loadBalancerId: '', taken: new Set() }], max) === undefined)
      return { kind: 'full', loadBalancerId: loadBalancerId ?? 'even an empty load balancer' };
    const source = { kind: 'own', spec: user.spec } as const;
    const fitting = members.filter(({ balancer }) => compareIdentity(source, { balancer, isOwn: true }).length === 0);
    // One that was begun and is on record is among them, or its ClientToken finds it.
    const found = place(fitting);
    if (found !== undefined) return await this.#write(user.object, { serial: mark.serial, ...found }, context);
    const token = `${owner} ${namespace}/${name} ${uid}`;
    const made = await this.#creator.create(user.object, { kind: 'create', spec: user.spec }, token, context);
    this.#listed.delete(owner);
    if (made === undefined) return { kind: 'again' };
    const { serial, loadBalancerId: madeId = '' } = readOwnerMark(readServiceHead(made));
    const first = placeOnPool(request, [{ loadBalancerId: madeId, taken: new Set() }], max);
    return first === undefined
      ? { kind: 'full', loadBalancerId: madeId }
      : await this.#write(made, { serial, ...first }, context);
  }

  async #write(object: KubeObject, mark: OwnerMark, { signal }: CallContext): Promise<PoolPlace> {
    const { uid } = readServiceHead(object);
    const before = this.#given.get(uid);
    this.#given.set(uid, mark);
    try {
      const next = { ...mark, serial: Math.max(1, mark.serial) };
      const written = await this.#writer.writeMark(object, next, signal);
      // Another client keeps taking the mark away: the Service is served all the same.
      const { loadBalancerId, ports } = mark;
      if (written.metadata.resourceVersion === object.metadata.resourceVersion && loadBalancerId !== undefined)
        return { kind: 'placed', loadBalancerId, ports: ports ?? new Map() };
    } catch (error) {
      if (before === undefined) this.#given.delete(uid);
      else this.#given.set(uid, before);
      throw error;
    }
    return { kind: 'again' };
  }

  /** Reads the load balancers of a pool; undefined while the list is not complete, or one is being made. */
  async #members(owner: string, context: CallContext): Promise<readonly Listed[] | undefined> {
    const { cloud, clock } = this.#deps;
    const listed = this.#listed.get(owner);
    if (listed !== undefined && clock.monotonicMs() - listed.atMs < AGE_MS) return listed.members;
    const sweep = await cloud.loadBalancers.find({ tag: { key: OWNER_TAG, value: owner } }, context);
    if (!sweep.isConsistent || sweep.loadBalancers.some(({ isNormal }) => !isNormal)) return undefined;
    const members: Listed[] = [];
    const atMs = clock.monotonicMs();
    for (const balancer of sweep.loadBalancers) {
      const listeners = await cloud.listeners.list(balancer.loadBalancerId, context);
      const keys = listeners.flatMap((one) => listenerKeyOf(one) ?? []);
      members.push({ balancer, keys, names: new Set(listeners.map(({ name }) => name)), atMs });
    }
    this.#listed.set(owner, { atMs: clock.monotonicMs(), members });
    return members;
  }

  /**
   * What a Service was given, or has in its mark. That is an annotation, which everybody writes who may write the Service:
   * it counts for a Service that is served in a pool, which gets as many listeners as it asks for anyway.
   */
  #placeOf(head: ServiceHead): OwnerMark | undefined {
    const given = this.#given.get(head.uid);
    if (given !== undefined) return given;
    const isOfPool = head.annotations[SERVICE_ANNOTATION.pool] !== undefined;
    return isOfPool && decideService(head, this.#deps.config.loadBalancerClass) === 'serve'
      ? readOwnerMark(head)
      : undefined;
  }

  /** Adds what Services were given, but for one Service: the cache and this process know it before the cloud does. */
  #countTaken({ balancer: { loadBalancerId }, keys }: Listed, except: string, its: OwnerMark): PoolMember {
    const taken = new Set(keys);
    const own = new Set<ListenerKey>();
    for (const service of this.#services.values()) {
      const head = readServiceHead(service);
      const mark = this.#given.get(head.uid) ?? (head.uid === except ? its : this.#placeOf(head));
      if (mark?.loadBalancerId !== loadBalancerId) continue;
      for (const { protocol, port } of portsOf(service)) {
        const key: ListenerKey = `${protocol}/${listenerPortOf(mark.ports, protocol, port)}`;
        (head.uid === except ? own : taken).add(key);
      }
    }
    for (const key of own) taken.delete(key);
    return { loadBalancerId, taken };
  }
}

type Listed = {
  readonly balancer: LoadBalancer;
  readonly keys: readonly ListenerKey[];
  /** Of its listeners. */
  readonly names: ReadonlySet<string>;
  /** When they were listed; monotonic milliseconds. */
  readonly atMs: number;
};

/** Reports whether a Service has an address of a load balancer in its status, which a tenant cannot write. */
function isPublishedAt({ ingress }: Pick<ServiceHead, 'ingress'>, { vips, domain }: LoadBalancer): boolean {
  const addresses = [...vips, domain];
  return ingress.some(({ ip = '', hostname = '' }) =>
    [ip, hostname].some((one) => one !== '' && addresses.includes(one)),
  );
}

function placeOfMark(
  { loadBalancerId, ports }: OwnerMark,
  { listeners, allots }: PoolUser,
): Extract<PoolPlace, { readonly kind: 'placed' }> | undefined {
  if (loadBalancerId === undefined || ports === undefined) return undefined;
  const allotted = allottedOf(ports);
  const isComplete = !allots || listeners.every(({ protocol, port }) => allotted.has(`${protocol}/${port}`));
  return isComplete ? { kind: 'placed', loadBalancerId, ports: allots ? allotted : new Map() } : undefined;
}

function portsOf(service: KubeObject): readonly { readonly protocol: 'TCP' | 'UDP'; readonly port: number }[] {
  const { ports } = (service['spec'] ?? {}) as { readonly ports?: unknown };
  if (!Array.isArray(ports)) return [];
  return ports.flatMap(({ protocol = 'TCP', port }) =>
    (protocol === 'TCP' || protocol === 'UDP') && typeof port === 'number' ? [{ protocol, port }] : [],
  );
}
