import { isInCidr } from '../../crd/ip-text.ts';
import { Contests, contestText } from '../../kube/contest.ts';
import { FreshStore } from '../../kube/fresh-store.ts';
import { type Informer, openInformer } from '../../kube/informer.ts';
import { involvedObject } from '../../kube/involved-object.ts';
import type { KubeObject } from '../../kube/kube-client.ts';
import { isKubeError } from '../../kube/kube-error.ts';
import { listPages } from '../../kube/list-pages.ts';
import { NODE_ENI_CONFIGS, NODES } from '../../kube/resource-types.ts';
import { ChangeSignal } from '../../runtime/change-signal.ts';
import { KeyedMutex } from '../../runtime/keyed-mutex.ts';
import {
  decodeRegisteredNode,
  hasAddress,
  listAddresses,
  mayRegister,
  type RegisteredNode,
} from '../backends/registered-node.ts';
import type { ControllerDeps } from '../controller/controller-deps.ts';
import { type OwnerKind, type OwnerRef, ownerIdOf } from './balancer-owner.ts';
import type { LoadBalancerStep, StepTarget } from './load-balancer-step.ts';
import { StepError } from './run-step.ts';
import { APPEARS_MS } from './unresolved-calls.ts';
import { planList, type SeenTarget, WantedAddresses } from './wanted-addresses.ts';

type PublisherDeps = Pick<ControllerDeps, 'kube' | 'clock' | 'log' | 'random' | 'metrics' | 'events'>;

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
  /** The Pods behind Services that are bound by their addresses: the nodes of each address, by what kubelets say. */
  readonly nodesByIp: () => ReadonlyMap<string, ReadonlySet<string>>;
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
  readonly byIp: ReadonlyMap<string, ReadonlySet<string>>;
  readonly byNode: ReadonlyMap<string, readonly string[]>;
};

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
  readonly #lists: FreshStore<RegisteredNode>;
  /** By node: published addresses that were seen as assigned after they were published. */
  readonly #assigned = new Map<string, { readonly uid: string; readonly ips: Set<string> }>();
  /** What a former process registered shows by then; monotonic milliseconds. */
  readonly #formerUntilMs: number;
  /** What former processes published: they did so before they registered it. */
  #former: ReadonlySet<string> = new Set();
  /** By uid of a NodeENIConfig. */
  readonly #contests = new Contests();
  readonly #needed: ChangeSignal;
  readonly #changed: ChangeSignal;
  #state: 'idle' | 'starting' | 'following' | 'absent' = 'idle';
  #hints: NodeHints | undefined;

  constructor(deps: PublisherDeps, facts: AddressFacts) {
    const { kube: client, clock, log, random, metrics } = deps;
    this.#deps = deps;
    this.#facts = facts;
    this.#formerUntilMs = clock.monotonicMs() + APPEARS_MS;
    this.#needed = new ChangeSignal(clock);
    this.#changed = new ChangeSignal(clock);
    this.#necs = openInformer({
      ...{ client, clock, log, random, observer: metrics.informer },
      type: NODE_ENI_CONFIGS,
      decode: decodeRegisteredNode,
    });
    this.#lists = new FreshStore(this.#necs, ({ resourceVersion }) => resourceVersion);
  }

  /** Notes that an owner has Pods as targets, or had: lists are read from now on. */
  need(): void {
    if (this.#state !== 'idle') return;
    this.#state = 'starting';
    this.#needed.notify();
  }

  /** Whether lists are still to be read: nothing is registered before. */
  get isReading(): boolean {
    return this.#state === 'idle' || this.#state === 'starting';
  }

  /** Whether the targets of an owner have to be read for the lists: nothing is taken out before, and others may have changed them since. */
  isOld(owner: OwnerRef): boolean {
    return (
      this.#state === 'following' && this.#wanted.ageMs(ownerIdOf(owner), this.#deps.clock.monotonicMs()) >= OLD_MS
    );
  }

  /** Notes which targets the listeners of an owner have now. `unreadIds`: listeners of which that is not known. */
  note(owner: OwnerRef, targets: readonly SeenTarget[], unreadIds?: readonly string[]): void {
    this.#wanted.note(ownerIdOf(owner), targets, this.#deps.clock.monotonicMs(), unreadIds);
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
    if (ips.some((ip) => !this.#nodesByIp().byIp.has(ip))) this.#hints = undefined;
    const { byIp } = this.#nodesByIp();
    const byNode = nodesOf(ips.map((ip) => [ip, byIp.get(ip) ?? []]));
    const results = await Promise.all([...byNode].map(([node, its]) => this.#publish(node, its, signal)));
    const allowed = new Set(results.flat());
    // A Pod whose node is not known any more has ended since its owner was looked at, or its owner asks for Nodes by now.
    const nodeIps = this.#facts.nodeIps();
    const refused = ips.filter((ip) => !allowed.has(ip) && (byIp.has(ip) || !nodeIps.has(ip)));
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
    this.#former = new Set([...this.#necs.values()].flatMap(({ published = [] }) => published));
    const stop = this.#necs.subscribe(({ key, after }) => {
      if (after === undefined) this.#assigned.delete(key);
      this.#changed.notify();
    });
    this.#state = 'following';
    this.#changed.notify();
    while (!signal.aborted) {
      // Begin to wait before comparing, so that a change meanwhile leads to another comparison.
      const changed = this.#changed.wait(this.#compareAfterMs(), signal);
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
      for await (const { items } of listPages(this.#deps.kube, NODE_ENI_CONFIGS, {}, signal)) {
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
      await this.#deps.kube.listPage(NODE_ENI_CONFIGS, { limit: 1 }, signal);
      return true;
    } catch (error) {
      if (isKubeError(error, 'NOT_FOUND')) this.#state = 'absent';
      else if (!signal.aborted) this.#deps.log.warn('NodeENIConfigs were not read, will be tried again', { error });
      this.#changed.notify();
      return false;
    }
  }

  /** Returns how long the lists need not be compared if nothing changes. */
  #compareAfterMs(): number {
    const nowMs = this.#deps.clock.monotonicMs();
    const hasFormer = this.#former.size > 0 && nowMs < this.#formerUntilMs;
    const nextMs = Math.min(hasFormer ? this.#formerUntilMs : Number.POSITIVE_INFINITY, this.#wanted.nextEndMs(nowMs));
    return Math.min(COMPARE_MS, nextMs - nowMs);
  }

  async #compareAll(signal: AbortSignal): Promise<void> {
    const isComplete = !this.#facts.hasUnknown((owner) => this.#wanted.isKnown(ownerIdOf(owner)));
    const targets = this.#wanted.all(this.#deps.clock.monotonicMs());
    const { byIp } = this.#nodesByIp();
    const ofPods = nodesOf([...targets].map((ip) => [ip, byIp.get(ip) ?? []]));
    const wanted = isComplete ? this.#wantedNow() : undefined;
    for (const { name } of [...this.#necs.values()]) {
      const list = this.#lists.get(name);
      if (list === undefined) continue;
      const published = list.published ?? [];
      // A target that came to another node, as a kept address does, is in its list before a Pod says so.
      const ofEnis = listAddresses(list).filter((ip) => targets.has(ip));
      const its = [...ofEnis, ...this.#ownOf(list, ofPods.get(name) ?? [])];
      const next = planList(published, its, wanted);
      if (signal.aborted || next.join() === [...published].sort().join()) continue;
      // What is about to be registered is written all the same.
      if (this.#isHeld(list)) continue;
      await this.#mutex
        .run(name, async () => await this.#write(name, its, isComplete, signal))
        .catch((error: unknown) => {
          if (!signal.aborted)
            this.#deps.log.warn('targets were not published, will be tried again', { node: name, error });
        });
    }
  }

  /** Asks whether a list is not to be written now, as another client keeps changing it back. */
  #isHeld({ name, uid, resourceVersion, published = [] }: RegisteredNode): boolean {
    const isUndone = this.#contests.valueOf(uid) !== [...published].sort().join();
    const seen = { uid, resourceVersion };
    const { waitMs, isNew } = this.#contests.ask(uid, isUndone, seen, this.#deps.clock.monotonicMs());
    if (isNew) {
      const involved = involvedObject(NODES, { name });
      const message = contestText('loadBalancers.registeredIPs of the NodeENIConfig');
      this.#deps.events.record({ involved, type: 'Warning', reason: 'FieldContested', message });
    }
    return waitMs > 0;
  }

  /** Publishes addresses of a node; returns those that may be registered. */
  async #publish(node: string, asked: readonly string[], signal: AbortSignal): Promise<readonly string[]> {
    return await this.#mutex.run(node, async () => {
      const cached = this.#lists.get(node);
      // A node without a NodeENIConfig: neither agent nor ipamd reads a list of it.
      if (cached === undefined) return asked;
      const hasAll = this.#ownOf(cached, asked).length === asked.length;
      const list = hasAll ? cached : await this.#readList(node, signal);
      if (list === undefined) return [];
      const ips = this.#ownOf(list, asked);
      if (ips.length === 0) return [];
      const assigned = this.#assigned.get(node);
      const isPublished = ips.every((ip) => list.published?.includes(ip));
      if (isPublished && assigned?.uid === list.uid && ips.every((ip) => assigned.ips.has(ip))) return ips;
      const object = isPublished
        ? await this.#deps.kube.get(NODE_ENI_CONFIGS, { name: node }, signal)
        : await this.#write(node, ips, false, signal);
      if (object === undefined) return [];
      const now = decodeRegisteredNode(object);
      const good = ips.filter((ip) => now.published?.includes(ip) === true && mayRegister(object, ip));
      const known = assigned?.uid === now.uid ? assigned.ips : new Set<string>();
      this.#assigned.set(node, {
        uid: now.uid,
        ips: new Set([...known, ...good].filter((ip) => now.published?.includes(ip) === true)),
      });
      return good;
    });
  }

  /** Reads the list of a node whose cached one may be older than an address. */
  async #readList(node: string, signal: AbortSignal): Promise<RegisteredNode | undefined> {
    const object = await this.#deps.kube.get(NODE_ENI_CONFIGS, { name: node }, signal);
    if (object === undefined) return undefined;
    const list = decodeRegisteredNode(object);
    this.#lists.note(node, list);
    return list;
  }

  /**
   * Returns those of the addresses that may be in the list of a node: they are of its ENIs, or of none. A kubelet can say of
   * its Pods what it likes, and the address of another node is not kept by this list.
   */
  #ownOf(list: RegisteredNode, ips: readonly string[]): readonly string[] {
    const others = ips.filter((ip) => !hasAddress(list, ip));
    if (others.length === 0) return ips;
    const subnets = [...new Set([...this.#necs.values()].flatMap((one) => one.subnets))];
    const foreign = new Set(others.filter((ip) => subnets.some((cidr) => isInCidr(ip, cidr))));
    return ips.filter((ip) => !foreign.has(ip));
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
    let current = this.#lists.get(node);
    for (let conflicts = 0; current !== undefined; conflicts++) {
      const published = current.published ?? [];
      const next = planList(
        published,
        this.#ownOf(current, [...added, ...(this.#nodesByIp().byNode.get(node) ?? [])]),
        mayRemove ? this.#wantedNow() : undefined,
      );
      const { uid, resourceVersion } = current;
      const body = { metadata: { uid, resourceVersion }, loadBalancers: { registeredIPs: next } };
      try {
        const object = await kube.patch(NODE_ENI_CONFIGS, { name: node }, { kind: 'merge', body }, signal);
        const written = decodeRegisteredNode(object);
        if (written.published === undefined) throw notKept();
        this.#lists.note(node, written);
        const text = [...written.published].sort().join();
        this.#contests.note(written.uid, text, written, this.#deps.clock.monotonicMs());
        return object;
      } catch (error) {
        if (isKubeError(error, 'NOT_FOUND')) return undefined;
        if (!isKubeError(error, 'CONFLICT') || conflicts >= MAX_CONFLICTS) throw error;
      }
      const fresh = await kube.get(NODE_ENI_CONFIGS, { name: node }, signal);
      current = fresh === undefined ? undefined : decodeRegisteredNode(fresh);
    }
    return undefined;
  }

  /** What may stay in a list: targets, what is behind a Service and may be one soon, and what may not show yet. */
  #wantedNow(): ReadonlySet<string> {
    const nowMs = this.#deps.clock.monotonicMs();
    const former = nowMs < this.#formerUntilMs ? this.#former : [];
    return new Set([...this.#wanted.all(nowMs), ...this.#nodesByIp().byIp.keys(), ...former]);
  }

  /** The addresses behind Services. All of a node are published at once, as all are about to be registered. */
  #nodesByIp(): NodeHints {
    const nowMs = this.#deps.clock.monotonicMs();
    if (this.#hints === undefined || nowMs >= this.#hints.untilMs) {
      const byIp = this.#facts.nodesByIp();
      const byNode = nodesOf(byIp);
      this.#hints = { untilMs: nowMs + FACTS_MS, byIp, byNode };
    }
    return this.#hints;
  }
}

/** Turns the nodes of each address into the addresses of each node. */
function nodesOf(byIp: Iterable<readonly [string, Iterable<string>]>): ReadonlyMap<string, readonly string[]> {
  const byNode = new Map<string, string[]>();
  for (const [ip, nodes] of byIp)
    for (const node of nodes) {
      const ips = byNode.get(node);
      if (ips === undefined) byNode.set(node, [ip]);
      else ips.push(ip);
    }
  return byNode;
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
