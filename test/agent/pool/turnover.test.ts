import test from 'ava';
import { IpPool } from '../../../agent/pool/ip-pool.ts';
import { sampleEni, sampleSupply } from './supply-sample.ts';

const WARM = { min: 5, max: 5 };
const COOLDOWN_MS = 120_000;
const FORCE_AFTER_MS = 5_000;

const ipAt = (index: number) => `10.0.${Math.floor(index / 250)}.${(index % 250) + 1}`;

/** A node whose ipamd gives at once what is asked for. */
class Node {
  readonly pool = new IpPool();
  readonly maxPods: number;
  nowMs = 1_000_000;
  size = 0;
  waiting = 0;
  #epoch = 0;

  constructor(maxPods: number) {
    this.maxPods = maxPods;
    this.answer();
  }

  demand() {
    return this.pool.demand(WARM, { waiting: this.waiting, floor: 0, maxPods: this.maxPods, nowMs: this.nowMs });
  }

  answer(): void {
    const { desired } = this.demand();
    if (desired <= this.size) return;
    this.size = desired;
    this.#epoch += 1;
    const ips = Array.from({ length: this.size }, (_, index) => ipAt(index));
    this.pool.applySupply(sampleSupply([sampleEni('eni-a', ips)], this.#epoch));
  }

  /** Runs an ADD; returns how long it waited, and whether it cut a cooldown short. */
  add(name: string): { readonly waitedMs: number; readonly isForced: boolean } {
    const request = { key: `${name}/eth0`, families: [4] as const };
    const lease = (isForced: boolean) =>
      this.pool[isForced ? 'forceCool' : 'lease']({ ...request, nowMs: this.nowMs }).kind === 'leased';
    this.waiting = 1;
    for (let waitedMs = 0; ; waitedMs += 1_000) {
      const isForced = waitedMs >= FORCE_AFTER_MS;
      if (lease(isForced)) {
        this.waiting = 0;
        this.answer();
        return { waitedMs, isForced };
      }
      this.answer();
      if (lease(false)) {
        this.waiting = 0;
        return { waitedMs, isForced: false };
      }
      this.pass(1_000);
    }
  }

  end(name: string): void {
    this.pool.release({ key: `${name}/eth0`, nowMs: this.nowMs, cooldownMs: COOLDOWN_MS });
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.pool.tick(this.nowMs);
  }
}

test('demand: where all Pods of a full node are replaced one after another, no successor waits', (t) => {
  const node = new Node(61);
  for (let n = 0; n < 61; n++) node.add(`old${n}`);
  node.pass(600_000);
  const adds = Array.from({ length: 61 }, (_, n) => {
    node.end(`old${n}`);
    const got = node.add(`new${n}`);
    node.pass(1_000);
    return got;
  });
  t.deepEqual(
    adds.filter(({ waitedMs, isForced }) => waitedMs > 0 || isForced),
    [],
  );
  t.is(node.size, 61 + 61 + 5);
});

test('demand: what cools beyond the Pods that the node can run is no demand', (t) => {
  const node = new Node(61);
  for (let round = 0; round < 3; round++)
    for (let n = 0; n < 50; n++) {
      node.add(`${round}-${n}`);
      node.pass(500);
      node.end(`${round}-${n}`);
    }
  t.is(node.pool.counts().cooling + node.pool.counts().free, node.size);
  t.is(node.size, 61 + 1 + 5, 'those that cool, the Pod, the warm ones');
});

test('demand: free addresses within the warm target are not given back because others cool', (t) => {
  const node = new Node(61);
  for (let n = 0; n < 70; n++) node.add(`p${n}`);
  node.pass(10_000);
  for (let n = 0; n < 60; n++) node.end(`p${n}`);
  t.like(node.demand(), { desired: 75, bound: 75, surplus: [] });
  const small = { waiting: 0, floor: 0, nowMs: node.nowMs, maxPods: 20 };
  t.like(node.pool.demand(WARM, small), { desired: 10 + 20 + 5, bound: 75, surplus: [] });
  t.is(node.pool.demand({ min: 2, max: 2 }, small).surplus.length, 3, 'what is beyond the warm target is');
});
