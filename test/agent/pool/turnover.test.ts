import test from 'ava';
import { exclusiveDemand } from '../../../agent/exclusive/decide-exclusive-publication.ts';
import {
  applyExclusiveSupply,
  type ExclusivePoolState,
  leaseExclusive,
  releaseExclusive,
} from '../../../agent/exclusive/exclusive-pool.ts';
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

test('exclusiveDemand: the same holds for whole ENIs', (t) => {
  const ids = Array.from({ length: 8 }, (_, index) => `eni-${index}`);
  let pool: ExclusivePoolState = applyExclusiveSupply(
    new Map(),
    ids.map((eniId, index) => ({
      ...{ eniId, mac: `02:00:00:00:00:0${index}`, assignmentId: `att-${eniId}`, state: 'attached', draining: false },
      primary: [{ ip: ipAt(index), family: 4, gateway: '10.0.0.254', subnetCidr: '10.0.0.0/24' }],
    })),
  );
  for (let n = 0; n < 6; n++)
    pool = leaseExclusive(pool, {
      ...{ key: `p${n}/eth0`, podNamespace: 'default', podName: `p${n}`, podUid: `u${n}`, needsClaim: false },
      ...{ present: new Set(ids), nowMs: 1_000, mayForce: false },
    }).state;
  for (let n = 0; n < 5; n++)
    pool = releaseExclusive(pool, { key: `p${n}/eth0`, nowMs: 61_000, cooldownMs: COOLDOWN_MS }).state;
  const of = (maxPods: number, waiting = 0) =>
    exclusiveDemand(pool, { min: 2, max: 2 }, { waiting, maxPods, nowMs: 61_000 });
  t.like(of(6), { desired: 8, bound: 8, surplus: [] });
  t.like(of(6, 5), { desired: 13 }, 'who waits comes besides those that cool');
  t.like(of(3), { desired: 1 + 3 + 2, bound: 8, surplus: [] });
});
