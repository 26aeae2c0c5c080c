import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '../../sim/support/seeded-random.ts';
import { waitUntil } from '../support/wait-until.ts';
import { POD_NAMESPACE } from './cluster.ts';
import { explainClaim } from './explain-claim.ts';
import { StatefulSet } from './stateful-set.ts';
import type { System } from './system.ts';

/** How lives are led. */
type StaticLivesSpec = {
  readonly seed: number;
  /** How many things happen. */
  readonly steps: number;
  readonly sets: readonly string[];
  /** Pods of each set. */
  readonly replicas: number;
  /** Nodes that Pods run on; all of one zone. */
  readonly nodes: readonly string[];
  /** Told of each step, in a line. */
  readonly tell?: (line: string) => void;
};

/** What came of it: how often each thing happened, and what was wrong. */
type StaticLivesResult = {
  readonly counts: ReadonlyMap<string, number>;
  readonly violations: readonly string[];
  /** Milliseconds of the longest start under a leader that has led for a while. */
  readonly longestCalmMs: number;
};

/** A Pod of a set: where it stands. */
type Life = {
  readonly set: StatefulSet;
  readonly ordinal: number;
  /** The address that it must get; undefined until it had one, or after its claim was given up. */
  ip: string | undefined;
  state: 'absent' | 'busy' | 'running';
  /** A sandbox that outlives its object, and what ends it. */
  zombie: { readonly ip: string; readonly end: () => Promise<void>; isEnding: boolean } | undefined;
};

const POD_WAIT_MS = 240_000;
const IPAMD_REST_MS = 30_000;
/** A Pod that waits for so long under one leader that leads for as long waits for nothing that there is. */
const STALL_MS = 120_000;
/** At once: more would only queue at the agents. */
const MOST_BUSY = 6;

/**
 * Lets Pods of StatefulSets come, go, move, be deleted by force and be given up, at random, while ipamd and the agents are
 * killed. After each start the address is judged: the same name has the same address, and no two live sandboxes share one.
 * Every Pod runs at the end.
 */
export async function leadStaticLives(system: System, spec: StaticLivesSpec): Promise<StaticLivesResult> {
  const lives = new StaticLives(system, spec);
  await lives.run();
  return { counts: lives.counts, violations: lives.violations, longestCalmMs: lives.longestCalmMs };
}

class StaticLives {
  readonly counts = new Map<string, number>();
  readonly violations: string[] = [];
  /** Of a start during which nobody waited for what a leader before had asked. */
  longestCalmMs = 0;
  readonly #system: System;
  readonly #spec: StaticLivesSpec;
  readonly #random: () => number;
  readonly #lives: readonly Life[];
  readonly #busy = new Set<Promise<void>>();
  #killing = false;
  #ipamdRestsUntilMs = 0;

  constructor(system: System, spec: StaticLivesSpec) {
    this.#system = system;
    this.#spec = spec;
    this.#random = seededRandom(spec.seed);
    this.#lives = spec.sets.flatMap((name) => {
      const set = new StatefulSet(system, { name });
      return Array.from({ length: spec.replicas }, (_, ordinal): Life => {
        return { set, ordinal, ip: undefined, state: 'absent', zombie: undefined };
      });
    });
  }

  async run(): Promise<void> {
    for (let step = 0; step < this.#spec.steps && this.violations.length === 0; step++) {
      while (this.#busy.size >= MOST_BUSY) await Promise.race(this.#busy);
      await this.#step();
      await sleep(this.#random() * 150);
    }
    await Promise.all(this.#busy);
    await Promise.all(this.#lives.map((life) => this.#end(life)));
    for (const life of this.#lives) if (life.state === 'absent') this.#begin(life, () => this.#start(life));
    await Promise.all(this.#busy);
  }

  async #step(): Promise<void> {
    const life = this.#pick(this.#lives);
    const dice = this.#random();
    if (dice < 0.03 && performance.now() > this.#ipamdRestsUntilMs)
      return this.#disturb('ipamd killed', () => this.#killIpamd());
    if (dice < 0.06) return this.#disturb('agent killed', () => this.#killAgent());
    if (life.state === 'absent') return this.#begin(life, () => this.#start(life));
    if (life.state !== 'running') return;
    if (dice < 0.2 && life.zombie === undefined) return this.#begin(life, () => this.#force(life));
    if (dice < 0.27) return this.#begin(life, () => this.#giveUp(life));
    return this.#begin(life, () => this.#stop(life));
  }

  #begin(life: Life, work: () => Promise<void>): void {
    const before = life.state;
    life.state = 'busy';
    const done = work().catch((error: unknown) => {
      life.state = before;
      this.violations.push(`${life.set.podName(life.ordinal)}: ${String(error).slice(0, 12_000)}`);
    });
    this.#busy.add(done);
    void done.finally(() => this.#busy.delete(done));
  }

  async #disturb(what: string, work: () => Promise<void>): Promise<void> {
    if (this.#killing) return;
    this.#killing = true;
    this.#count(what);
    const done = work().finally(() => {
      this.#killing = false;
    });
    this.#busy.add(done);
    void done.finally(() => this.#busy.delete(done));
  }

  /** Its heir waits out what the dead one may have asked of the cloud: killed in that time each time, nobody gets on. */
  async #killIpamd(): Promise<void> {
    const leader = await this.#system.leader();
    await leader.kill();
    const killedMs = Date.now();
    await sleep(this.#random() * 500);
    leader.start();
    // The lock names the dead one until the heir has it.
    await waitUntil(() => leadingSince(this.#system) > killedMs, {
      what: 'a leader after the kill',
      timeoutMs: 90_000,
      everyMs: 200,
    });
    this.#ipamdRestsUntilMs = performance.now() + IPAMD_REST_MS;
  }

  async #killAgent(): Promise<void> {
    const node = this.#system.node(this.#pick(this.#spec.nodes));
    await node.killAgent();
    await node.startAgent();
  }

  async #start(life: Life): Promise<void> {
    const nodeName = this.#pick(this.#spec.nodes);
    // Its predecessor's sandbox has the address until it ends: as a kubelet ends it, some time later.
    const ending = life.zombie === undefined ? undefined : sleep(this.#random() * 2_000).then(() => this.#end(life));
    const endWatch = this.#watch(life.set.podName(life.ordinal), nodeName);
    const pod = await life.set.start(life.ordinal, nodeName, POD_WAIT_MS).finally(endWatch);
    const isDouble = life.zombie?.isEnding === false && life.zombie.ip === pod.ip;
    if (isDouble) this.violations.push(`${pod.name} on ${nodeName} has ${pod.ip} while its old sandbox has it`);
    await ending;
    life.zombie = undefined;
    life.state = 'running';
    this.#count(life.ip === undefined ? 'first starts' : 'starts');
    const owner = this.#ownerOf(pod.ip, life);
    if (owner !== undefined) this.violations.push(`${pod.name} on ${nodeName} has ${pod.ip}, and so has ${owner}`);
    if (life.ip !== undefined && pod.ip !== life.ip) {
      this.violations.push(`${pod.name} on ${nodeName} had ${life.ip} and got ${pod.ip}`);
    }
    life.ip = pod.ip;
  }

  /** Tells of a Pod that waits although nothing went wrong for long; to be ended with what it returns. */
  #watch(podName: string, nodeName: string): () => void {
    const sinceMs = Date.now();
    const timer = setInterval(() => {
      const calmSinceMs = Math.max(sinceMs, leadingSince(this.#system));
      if (this.#killing || Date.now() - calmSinceMs < STALL_MS) return;
      clearInterval(timer);
      this.violations.push(`${podName} stalls on ${nodeName}\n${explainClaim(this.#system, podName)}`);
    }, 1_000);
    return () => {
      const waitedMs = Date.now() - sinceMs;
      const isCalm = !this.#killing && sinceMs > leadingSince(this.#system) + IPAMD_REST_MS;
      if (isCalm) this.longestCalmMs = Math.max(this.longestCalmMs, waitedMs);
      this.#spec.tell?.(
        `${podName} on ${nodeName} waited ${waitedMs} ms${isCalm ? '' : ', not under a leader of old'}`,
      );
      clearInterval(timer);
    };
  }

  async #stop(life: Life): Promise<void> {
    await life.set.stop(life.ordinal);
    life.state = 'absent';
    this.#count('stops');
  }

  async #force(life: Life): Promise<void> {
    const { ip = '' } = life;
    life.zombie = { ip, end: await life.set.forceStop(life.ordinal), isEnding: false };
    life.state = 'absent';
    this.#count('forced deletions');
  }

  async #end({ zombie }: Life): Promise<void> {
    if (zombie === undefined || zombie.isEnding) return;
    zombie.isEnding = true;
    await zombie.end();
  }

  /** `kubectl delete vipc`, and the Pod goes: then the next one of its name starts again. */
  async #giveUp(life: Life): Promise<void> {
    await life.set.giveUp(life.ordinal);
    await life.set.stop(life.ordinal);
    const endWatch = this.#watch(life.set.podName(life.ordinal), 'no node, to end');
    const deadline = performance.now() + POD_WAIT_MS;
    while ((await life.set.claim(life.ordinal)) !== undefined && performance.now() < deadline) await sleep(100);
    endWatch();
    if (performance.now() > deadline) {
      const told = explainClaim(this.#system, life.set.podName(life.ordinal));
      throw new Error(`the claim in ${POD_NAMESPACE} is still there\n${told}`);
    }
    life.ip = undefined;
    life.state = 'absent';
    this.#count('claims given up');
  }

  #ownerOf(ip: string, not: Life): string | undefined {
    const live = this.#lives.find((life) => life !== not && life.ip === ip);
    const zombie = this.#lives.find((life) => life !== not && life.zombie?.isEnding === false && life.zombie.ip === ip);
    if (live !== undefined) return live.set.podName(live.ordinal);
    return zombie === undefined ? undefined : `the sandbox that ${zombie.set.podName(zombie.ordinal)} left`;
  }

  #pick<T>(list: readonly T[]): T {
    const found = list[Math.floor(this.#random() * list.length)];
    if (found === undefined) throw new Error('nothing to choose from');
    return found;
  }

  #count(what: string): void {
    this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
    this.#spec.tell?.(what);
  }
}

/** Since when the leader leads, wall clock milliseconds; 0 when nobody ever did. */
function leadingSince(system: System): number {
  const lines = system.ipamds.flatMap((ipamd) => ipamd.logs().split('\n'));
  const times = lines
    .filter((line) => line.includes('"msg":"leading"'))
    .map((line) => /"time":"([^"]+)"/.exec(line)?.[1]);
  return Math.max(0, ...times.map((time) => Date.parse(time ?? '') || 0));
}
