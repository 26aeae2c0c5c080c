import { NODE_ENI_CONFIG_KIND } from '../../crd/node-eni-config-fields.ts';
import { type Informer, openInformer } from '../../kube/informer.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { listPages } from '../../kube/list-pages.ts';
import { resourceTypeOf } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import { KeyedMutex } from '../../runtime/keyed-mutex.ts';
import { decodeRegisteredNode, isNewer, mayRegister, type RegisteredNode } from '../backends/registered-node.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type OwnerKind, type OwnerRef, ownerIdOf } from './balancer-owner.ts';
import type { LoadBalancerStep, StepTarget } from './load-balancer-step.ts';
import { StepError } from './run-step.ts';
import { planList, WantedAddresses } from './wanted-addresses.ts';

type PublisherDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'log' | 'random' | 'metrics'>;

/** What has targets among the owners of one kind. */
export type AddressSource = {
  readonly kind: OwnerKind;
  /** The Services whose Pods are bound by their addresses. */
  readonly boundServices: () => readonly string[];
  /** Whether an owner may have targets of which nothing is known. */
  readonly hasUnknown: (isKnown: (key: string) => boolean) => boolean;
};

/** What the publisher asks. */
type AddressFacts = {
  /** The Pods behind Services that are bound by their addresses: the node of each address. */
  readonly nodesByIp: () => ReadonlyMap<string, string>;
  /** The addresses of Nodes that are bound by them, as they have no instance. */
  readonly nodeIps: () => ReadonlySet<string>;
  /** Whether an owner may have targets of which nothing is known: then nothing is taken out. */
  readonly hasUnknown: (isKnown: (owner: OwnerRef) => boolean) => boolean;
  /** Whether NodeENIConfigs may be read, as far as it is known. */
  readonly mayRead: () => boolean;
};

/** Where the Pods behind Services are, as of a moment ago. */
type NodeHints = {
  readonly untilMs: number;
  readonly byIp: ReadonlyMap<string, string>;
  readonly byNode: ReadonlyMap<string, readonly string[]>;
};

const NECS = resourceTypeOf(NODE_ENI_CONFIG_KIND);
/** After a change; so many nodes of many Services are one write each. */
const GATHER_MS = 2_000;
/** Lists are compared at least this often. */
const COMPARE_MS = 60_000;
const WAIT_MS = 2_000;
/** The cluster has no NodeENIConfigs, or the API server did not say; asked again. */
const ASK_AGAIN_MS = 600_000;
const RETRY_MS = 5_000;
const MAX_CONFLICTS = 5;
/** Targets of an owner of which nothing is changed are read so often. */
const OLD_MS = 540_000;
/** What is said of Pods counts for this long. */
const FACTS_MS = 1_000;

/**
 * Publishes in the NodeENIConfig of each node which of its addresses are targets: before they are registered, until they are
 * deregistered. So what is registered is published, whenever this process ends. Agent and ipamd give none of them to another Pod.
 */
export class AddressPublisher {
  readonly #deps: PublisherDeps;
  readonly #facts: AddressFacts;
  readonly #necs: Informer<RegisteredNode>;
  readonly #wanted = new WantedAddresses();
  readonly #mutex = new KeyedMutex();
  /** Answers to own writes, which may be newer than the cache. */
  readonly #written = new Map<string, RegisteredNode>();
  /** By node: published addresses that were seen as assigned after they were published. */
  readonly #assigned = new Map<string, { readonly uid: string; readonly ips: Set<string> }>();
  readonly #needed: ChangeSignal;
  readonly #changed: ChangeSignal;
  #state: 'idle' | 'starting' | 'following' | 'absent' = 'idle';
  #hints: NodeHints | undefined;

  constructor(deps: PublisherDeps, facts: AddressFacts) {
    const { kube: client, clock, log, random, metrics } = deps;
    this.#deps = deps;
    this.#facts = facts;
    this.#needed = new ChangeSignal(clock);
    this.#changed = new ChangeSignal(clock);
    this.#necs = openInformer({
      ...{ client, clock, log, random, observer: metrics.informer },
      type: NECS,
      decode: decodeRegisteredNode,
    });
  }

  /** Notes that an owner has Pods as targets, or had: lists are read from now on. */
  need(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'starting';
    this.#needed.notify();
  }

  /** Whether the targets of an owner have to be read for the lists: nothing is taken out before, and others may have changed them since. */
  isOld(owner: OwnerRef): boolean {
    return (
      this.#state === 'following' && this.#wanted.ageMs(ownerIdOf(owner), this.#deps.clock.monotonicMs()) >= OLD_MS
    );
  }

  /** Notes which targets the listeners of an owner have now. */
  note(owner: OwnerRef, targets: readonly { readonly ip: string; readonly instanceId?: string }[]): void {
    this.#wanted.note(ownerIdOf(owner), targets, this.#deps.clock.monotonicMs());
    this.#changed.notify();
  }

  /** Notes that another owner has the same listeners, where they were read. */
  share(owner: OwnerRef, other: OwnerRef): void {
    this.#wanted.share(ownerIdOf(owner), ownerIdOf(other));
    this.#changed.notify();
  }

  /** Takes out what only an owner had that has no listener any more, while the owner still says so after a restart. */
  async release(owner: OwnerRef, signal: AbortSignal): Promise<void> {
    this.note(owner, []);
    if (this.#state === 'following') await this.#compareAll(signal);
  }

  /** Forgets an owner that has no listener any more. */
  forget(owner: OwnerRef): void {
    this.#wanted.forget(ownerIdOf(owner));
    this.#changed.notify();
  }

  /**
   * Publishes what steps are about to register.
   * @returns the addresses of Pods that must not be registered now; undefined while the lists are being read
   * @throws KubeError, StepError when nothing may be registered
   */
  async admit(
    owner: OwnerRef,
    steps: readonly LoadBalancerStep[],
    signal: AbortSignal,
  ): Promise<readonly string[] | undefined> {
    const ips = podIpsOf(steps);
    if (ips.length === 0) return [];
    this.need();
    if (this.#state === 'starting') await this.#changed.wait(WAIT_MS, signal);
    if (this.#state === 'starting') return undefined;
    this.#wanted.send(ownerIdOf(owner), ips, this.#deps.clock.monotonicMs());
    if (this.#state === 'absent') return [];
    const byNode = Map.groupBy(ips, (ip) => this.#nodeOf(ip) ?? '');
    // A Pod whose node is not known any more has ended since its owner was looked at, or its owner asks for Nodes by now.
    const ofUnknown = this.#withoutNodes(byNode.get('') ?? []);
    const ofNodes = [...byNode].map(([node, its]) => (node === '' ? ofUnknown : this.#publish(node, its, signal)));
    const refused = (await Promise.all(ofNodes)).flat();
    this.#wanted.withdraw(ownerIdOf(owner), refused);
    return refused;
  }

  /**
   * Follows the lists from the moment in which they are needed, and takes out what is a target no more. They are needed too
   * where a process before this one left something in them. Never rejects.
   */
  async run(signal: AbortSignal): Promise<void> {
    let hasLooked = false;
    while (!signal.aborted && this.#state === 'idle') {
      if (!hasLooked && this.#facts.mayRead()) hasLooked = await this.#lookForRest(signal);
      if (this.#state === 'idle') await this.#needed.wait(COMPARE_MS, signal);
    }
    while (!signal.aborted && !(await this.#exist(signal)))
      await this.#needed.wait(this.#state === 'absent' ? ASK_AGAIN_MS : RETRY_MS, signal);
    if (signal.aborted) return;
    const following = this.#necs.start(signal);
    await this.#necs.synced(signal).catch(() => {});
    const stop = this.#necs.subscribe(({ key, after }) => this.#onNec(key, after));
    this.#state = 'following';
    this.#changed.notify();
    while (!signal.aborted) {
      // Begin to wait before comparing, so that a change meanwhile leads to another comparison.
      const changed = this.#changed.wait(COMPARE_MS, signal);
      await this.#compareAll(signal);
      await changed;
      await this.#deps.clock.sleep(GATHER_MS, signal).catch(() => {});
    }
    stop();
    await following;
  }

  /** Looks once whether anything is published; returns whether that is known now. */
  async #lookForRest(signal: AbortSignal): Promise<boolean> {
    try {
      for await (const { items } of listPages(this.#deps.kube, NECS, {}, signal)) {
        if (items.some((object) => (decodeRegisteredNode(object).published ?? []).length > 0)) this.need();
        if (this.#state !== 'idle') break;
      }
      return true;
    } catch (error) {
      if (isKubeError(error, 'NOT_FOUND')) return true;
      if (!signal.aborted) this.#deps.log.warn('NodeENIConfigs were not read, will be tried again', { error });
      return false;
    }
  }

  /** Returns whether the cluster has NodeENIConfigs. */
  async #exist(signal: AbortSignal): Promise<boolean> {
    try {
      await this.#deps.kube.listPage(NECS, { limit: 1 }, signal);
      return true;
    } catch (error) {
      if (isKubeError(error, 'NOT_FOUND')) this.#state = 'absent';
      else if (!signal.aborted) this.#deps.log.warn('NodeENIConfigs were not read, will be tried again', { error });
      this.#changed.notify();
      return false;
    }
  }

  #onNec(name: string, after: RegisteredNode | undefined): void {
    const written = this.#written.get(name);
    if (after === undefined || (written !== undefined && !isNewer(written, after))) this.#written.delete(name);
    if (after === undefined) this.#assigned.delete(name);
    this.#changed.notify();
  }

  async #compareAll(signal: AbortSignal): Promise<void> {
    const isComplete = !this.#facts.hasUnknown((owner) => this.#wanted.isKnown(ownerIdOf(owner)));
    const { byIp } = this.#nodesByIp();
    const added = Map.groupBy(
      [...this.#wanted.all()].filter((ip) => byIp.has(ip)),
      (ip) => byIp.get(ip) ?? '',
    );
    const wanted = isComplete ? this.#wantedNow() : undefined;
    for (const { name } of [...this.#necs.values()]) {
      const published = this.#listOf(name)?.published ?? [];
      const next = planList(published, added.get(name) ?? [], wanted);
      if (signal.aborted || next.join() === [...published].sort().join()) continue;
      await this.#mutex
        .run(name, async () => await this.#write(name, added.get(name) ?? [], isComplete, signal))
        .catch((error: unknown) => {
          if (!signal.aborted)
            this.#deps.log.warn('targets were not published, will be tried again', { node: name, error });
        });
    }
  }

  /** Publishes addresses of a node; returns those that must not be registered. */
  async #publish(node: string, ips: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    return await this.#mutex.run(node, async () => {
      const list = this.#listOf(node);
      // A node without a NodeENIConfig: neither agent nor ipamd reads a list of it.
      if (list === undefined) return [];
      const assigned = this.#assigned.get(node);
      const isPublished = ips.every((ip) => list.published?.includes(ip));
      if (isPublished && assigned?.uid === list.uid && ips.every((ip) => assigned.ips.has(ip))) return [];
      const object = isPublished
        ? await this.#deps.kube.get(NECS, { name: node }, signal)
        : await this.#write(node, ips, false, signal);
      if (object === undefined) return ips;
      const now = decodeRegisteredNode(object);
      const missing = ips.filter((ip) => now.published?.includes(ip) !== true);
      const wrong = ips.filter((ip) => !mayRegister(object, ip));
      const known = assigned?.uid === now.uid ? assigned.ips : new Set<string>();
      const good = ips.filter((ip) => !missing.includes(ip) && !wrong.includes(ip));
      this.#assigned.set(node, {
        uid: now.uid,
        ips: new Set([...known, ...good].filter((ip) => now.published?.includes(ip) === true)),
      });
      return [...new Set([...missing, ...wrong])];
    });
  }

  /**
   * Writes the list of a node, guarded: agent and ipamd have not changed the object since it was read.
   * @returns the object as it is then; undefined when there is none
   */
  async #write(
    node: string,
    added: readonly string[],
    mayRemove: boolean,
    signal: AbortSignal,
  ): Promise<KubeObject | undefined> {
    const { kube } = this.#deps;
    let current = this.#listOf(node);
    for (let conflicts = 0; current !== undefined; conflicts++) {
      const published = current.published ?? [];
      const next = planList(
        published,
        [...added, ...(this.#nodesByIp().byNode.get(node) ?? [])],
        mayRemove ? this.#wantedNow() : undefined,
      );
      const { uid, resourceVersion } = current;
      const body = { metadata: { uid, resourceVersion }, loadBalancers: { registeredIPs: next } };
      try {
        const object = await kube.patch(NECS, { name: node }, { kind: 'merge', body }, signal);
        const written = decodeRegisteredNode(object);
        if (written.published === undefined) throw notKept();
        this.#written.set(node, written);
        return object;
      } catch (error) {
        if (isKubeError(error, 'NOT_FOUND')) return undefined;
        if (!isKubeError(error, 'CONFLICT') || conflicts >= MAX_CONFLICTS) throw error;
      }
      const fresh = await kube.get(NECS, { name: node }, signal);
      current = fresh === undefined ? undefined : decodeRegisteredNode(fresh);
    }
    return undefined;
  }

  #listOf(node: string): RegisteredNode | undefined {
    const cached = this.#necs.get(node);
    const written = this.#written.get(node);
    return cached !== undefined && written !== undefined && isNewer(written, cached) ? written : cached;
  }

  /** What may stay in a list: targets, and what is behind a Service and may be one soon. */
  #wantedNow(): ReadonlySet<string> {
    return new Set([...this.#wanted.all(), ...this.#nodesByIp().byIp.keys()]);
  }

  #withoutNodes(ips: readonly string[]): readonly string[] {
    if (ips.length === 0) return ips;
    const nodeIps = this.#facts.nodeIps();
    return ips.filter((ip) => !nodeIps.has(ip));
  }

  #nodeOf(ip: string): string | undefined {
    const node = this.#nodesByIp().byIp.get(ip);
    if (node !== undefined) return node;
    this.#hints = undefined;
    return this.#nodesByIp().byIp.get(ip);
  }

  /** The addresses behind Services. All of a node are published at once, as all are about to be registered. */
  #nodesByIp(): NodeHints {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#hints === undefined || nowMs >= this.#hints.untilMs) {
      const byIp = this.#facts.nodesByIp();
      const byNode = Map.groupBy(byIp.keys(), (ip) => byIp.get(ip) ?? '');
      this.#hints = { untilMs: nowMs + FACTS_MS, byIp, byNode };
    }
    return this.#hints;
  }
}

function notKept(): StepError {
  return new StepError(
    'the definition of NodeENIConfig lacks loadBalancers.registeredIPs, so that addresses of Pods cannot be protected; apply conf/crd of this release',
  );
}

function podIpsOf(steps: readonly LoadBalancerStep[]): readonly string[] {
  const registered = steps.flatMap((step): readonly StepTarget[] => (step.kind === 'register' ? step.targets : []));
  return [...new Set(registered.flatMap(({ ip, instanceId }) => (instanceId === undefined ? [ip] : [])))];
}
