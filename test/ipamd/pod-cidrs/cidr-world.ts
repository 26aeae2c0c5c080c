import { decodeNode, type NodeEntry } from '../../../ipamd/cache/node-entry.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';
import type { PodRoutes } from '../../../pod-routes/route-cache.ts';
import { seededRandom } from '../../../sim/support/seeded-random.ts';
import { type CidrLeader, CidrScene } from './cidr-scene.ts';

/** What happens in a world, and how long. */
type CidrWorldOptions = {
  readonly seed: number;
  readonly steps: number;
  /** Most Nodes at once. */
  readonly nodes: number;
  readonly clusterCidrs: readonly string[];
  readonly serviceCidr: string;
  /** Whether routes can be read: a controller makes and removes them late. */
  readonly hasRoutes: boolean;
  /** Leaders die, overlap and are replaced; answers are lost, watches lag. */
  readonly isRough: boolean;
};

/** What was broken, as texts; none when all laws held. */
type Violations = readonly string[];

const HOLD_MS = 120_000;
const STEP_MS = 1_000;
const MAX_STEP_MS = 20_000;
/** A write lands at most this long after its caller has given it up. */
const MAX_LATE_MS = 50_000;

type Former = { readonly machine: string; readonly freedMs: number };

/**
 * Lets Nodes come, go and come back at random while leaders change, and checks after each moment: no two Nodes share a
 * block; no Node has one of Services; a freed block comes back only when its route is gone, or its hold is over, or to
 * the same machine under the same name; that one gets the block that it had last, as long as it is held. In the end, in peace, each Node has a block as long as there are any.
 */
export async function liveThroughCidrs(options: CidrWorldOptions): Promise<Violations> {
  const world = new CidrWorld(options);
  for (let step = 0; step < options.steps && world.violations.length === 0; step++) await world.step();
  await world.settle();
  return world.violations;
}

class CidrWorld {
  readonly violations: string[] = [];
  readonly #options: CidrWorldOptions;
  readonly #random: () => number;
  readonly #scene: CidrScene;
  readonly #routes = new Map<string, { readonly owner: string; dueMs: number; isWanted: boolean }>();
  readonly #former = new Map<string, Former>();
  /** The block that each machine had last, and when it was freed. */
  readonly #last = new Map<string, { readonly cidr: string; readonly freedMs: number }>();
  #view: PodRoutes | undefined;
  #shown: readonly NodeEntry[] = [];
  #leaders: CidrLeader[] = [];
  #serial = 0;
  #isSettling = false;
  /** A Node whose writes are all late, and the end of a time in which all are. */
  #lateName = '';
  #lateUntilMs = 0;
  #gone: { readonly name: string; readonly machine: string }[] = [];

  constructor(options: CidrWorldOptions) {
    const { clusterCidrs, serviceCidr, hasRoutes, seed } = options;
    this.#options = options;
    this.#random = seededRandom(seed);
    const lateMs = (_leader: number, name: string): number | undefined => {
      const isLate = name === this.#lateName || this.#scene.clock.monotonicMs() < this.#lateUntilMs;
      return isLate && !this.#isSettling ? this.#random() * MAX_LATE_MS : undefined;
    };
    this.#scene = new CidrScene({
      clusterCidrs,
      serviceCidr,
      holdMs: HOLD_MS,
      isLight: true,
      lateMs,
      ...(hasRoutes ? { routes: () => this.#view } : {}),
    });
    this.#leaders.push(this.#scene.lead());
  }

  async step(): Promise<void> {
    const { isRough } = this.#options;
    const draw = this.#random();
    if (draw < 0.45) await this.#join();
    else if (draw < 0.6) await this.#leave();
    else if (draw < 0.7) await this.#comeBack();
    else if (isRough && draw < 0.78) await this.#changeLeader();
    else if (isRough && draw < 0.9) this.#addFault();
    await this.#advance(Math.floor(this.#random() ** 3 * MAX_STEP_MS));
  }

  /** Ends all faults and waits until nothing changes any more. */
  async settle(): Promise<void> {
    this.#isSettling = true;
    if (this.violations.length > 0) return;
    this.#scene.server.api.faults.clear();
    for (let minute = 0; minute < 12; minute++) await this.#advance(60_000);
    const without = this.#read().filter(({ podCidrs }) => podCidrs.length === 0);
    const { free = 0 } = this.#scene.counts ?? {};
    if (without.length > 0 && free > 0)
      this.violations.push(`${without.length} Nodes wait, and ${free} blocks are free`);
    for (const { allocator } of this.#leaders)
      if (allocator.found !== undefined) this.violations.push(`a second allocator: ${JSON.stringify(allocator.found)}`);
    for (const leader of this.#leaders) leader.stop();
  }

  /** One Node, or several in one moment. */
  async #join(): Promise<void> {
    const left = this.#options.nodes - this.#read().length;
    const count = Math.min(left, 1 + Math.floor(this.#random() ** 2 * 4));
    for (let node = 0; node < count; node++) {
      this.#serial += 1;
      await this.#scene.join(`n${this.#serial}`, { providerID: `qcloud:///1/ins-${1_000 + this.#serial}` });
    }
  }

  async #leave(): Promise<void> {
    const nodes = this.#read();
    const node = nodes[Math.floor(this.#random() * nodes.length)];
    if (node === undefined) return;
    this.#gone.push({ name: node.name, machine: node.instanceId ?? '' });
    await this.#scene.leave(node.name);
  }

  async #comeBack(): Promise<void> {
    const last = this.#gone.pop();
    if (last === undefined || this.#read().some(({ name }) => name === last.name)) return;
    // Now and then another machine gets the name.
    const machine = this.#random() < 0.7 ? last.machine : `ins-other${this.#serial}`;
    await this.#scene.join(last.name, { providerID: `qcloud:///1/${machine}` });
  }

  /** The next leader begins in the midst of the work of the former, which may go on for a while. */
  async #changeLeader(): Promise<void> {
    const [former] = this.#leaders;
    if (this.#random() < 0.7) await this.#join();
    await this.#scene.clock.advance(Math.floor(this.#random() * 250));
    if (this.#random() < 0.5) former?.stop();
    if (this.#leaders.length > 1) this.#leaders.shift()?.stop();
    else if (former !== undefined && this.#random() < 0.7)
      this.#leaders = this.#leaders.filter((one) => one !== former);
    this.#leaders.push(this.#scene.lead());
  }

  #addFault(): void {
    this.#lateName = this.#random() < 0.5 ? `n${this.#serial + 1}` : '';
    if (this.#random() < 0.3) this.#lateUntilMs = this.#scene.clock.monotonicMs() + this.#random() * 40_000;
    const ms = 30_000;
    const actions = [{ kind: 'drop-after' }, { kind: 'drop-before' }, { kind: 'hang' }, { kind: 'delay', ms }] as const;
    const action = actions[Math.floor(this.#random() * actions.length)] ?? { kind: 'hang' };
    const resources = this.#random() < 0.5 ? ['nodes'] : ['configmaps'];
    const verbs = ['patch', 'update', 'create', 'get'];
    const times = 1 + Math.floor(this.#random() * 4);
    const { faults } = this.#scene.server.api;
    if (this.#random() < 0.3) faults.add({ verbs: ['watch'], action: { kind: 'watch-delay', ms: 8_000 }, times: 3 });
    else
      for (let leader = 1; leader < 60; leader++)
        faults.add({ resources, verbs, action, times, userAgent: `ipamd-${leader}` });
  }

  async #advance(ms: number): Promise<void> {
    for (let left = ms; left >= 0 && this.violations.length === 0; left -= STEP_MS) {
      await this.#scene.clock.advance(Math.min(STEP_MS, Math.max(1, left)));
      this.#check();
      this.#keepRoutes();
    }
  }

  /** A route controller: makes a route some seconds after a podCIDR, and removes it up to three minutes after its Node. */
  #keepRoutes(): void {
    const nowMs = this.#scene.clock.monotonicMs();
    const owners = new Map(this.#read().flatMap(({ uid, podCidrs }) => podCidrs.map((cidr) => [cidr, uid] as const)));
    for (const [cidr, owner] of owners) {
      const route = this.#routes.get(cidr);
      if (route?.owner !== owner)
        this.#routes.set(cidr, { owner, dueMs: nowMs + this.#random() * 5_000, isWanted: true });
    }
    for (const [cidr, route] of this.#routes) {
      if (owners.has(cidr)) continue;
      if (route.isWanted) Object.assign(route, { isWanted: false, dueMs: nowMs + this.#random() * 180_000 });
      else if (route.dueMs <= nowMs) this.#routes.delete(cidr);
    }
    if (nowMs - (this.#view?.readMs ?? Number.NEGATIVE_INFINITY) < 10_000) return;
    const standing = new Set(
      [...this.#routes].flatMap(([cidr, { dueMs, isWanted }]) => (isWanted && dueMs > nowMs ? [] : [cidr])),
    );
    this.#view = { readMs: nowMs, hasRoute: (cidr) => standing.has(cidr) };
  }

  #check(): void {
    const nowMs = this.#scene.clock.monotonicMs();
    const { blocks } = this.#scene;
    const now = this.#read();
    const owners = new Map<string, string>();
    const shown = new Map(this.#shown.map((node) => [node.uid, node]));
    for (const node of now) {
      for (const cidr of node.podCidrs) {
        const other = owners.get(cidr);
        if (other !== undefined) this.violations.push(`${other} and ${node.name} have ${cidr}`);
        owners.set(cidr, node.name);
        if (blocks.overlapping(cidr).some((block) => blocks.ofServices.has(block)))
          this.violations.push(`${node.name} has ${cidr} of Services`);
        if ((shown.get(node.uid)?.podCidrs.length ?? 0) === 0) this.#checkReuse(node, cidr, nowMs);
      }
    }
    const live = new Set(now.map(({ uid }) => uid));
    for (const { uid, name, instanceId = '', podCidrs } of this.#shown)
      if (!live.has(uid))
        for (const cidr of podCidrs) {
          this.#former.set(cidr, { machine: `${name} ${instanceId}`, freedMs: nowMs });
          this.#last.set(`${name} ${instanceId}`, { cidr, freedMs: nowMs });
        }
    this.#shown = now;
  }

  #checkReuse({ name, instanceId = '' }: NodeEntry, cidr: string, nowMs: number): void {
    const last = this.#last.get(`${name} ${instanceId}`);
    if (!this.#options.hasRoutes && last !== undefined && last.cidr !== cidr && nowMs - last.freedMs < HOLD_MS)
      this.violations.push(`${name} had ${last.cidr} and got ${cidr} ${nowMs - last.freedMs} ms later`);
    const former = this.#former.get(cidr);
    if (former === undefined || former.machine === `${name} ${instanceId}`) return;
    const sinceMs = nowMs - former.freedMs;
    const route = this.#routes.get(cidr);
    if (this.#options.hasRoutes) {
      if (route !== undefined && !route.isWanted) this.violations.push(`${name} got ${cidr}, whose old route stands`);
    } else if (sinceMs < HOLD_MS - 2 * STEP_MS)
      this.violations.push(`${name} got ${cidr} ${sinceMs} ms after it was freed`);
  }

  #read(): readonly NodeEntry[] {
    return (this.#scene.server.objects('nodes') as readonly KubeObject[]).map(decodeNode);
  }
}
