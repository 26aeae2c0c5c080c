import test from 'ava';
import fc from 'fast-check';
import { exclusiveDemand } from '../../../agent/exclusive/decide-exclusive-publication.ts';
import {
  adoptExclusive,
  applyExclusiveSupply,
  type ExclusivePoolState,
  type ExclusiveRequest,
  leaseExclusive,
  markRegistered,
  noteShownExclusive,
  proveFailedExclusive,
  releaseExclusive,
  setOffered,
  tickExclusive,
} from '../../../agent/exclusive/exclusive-pool.ts';
import type { ExclusiveSupplyEni } from '../../../agent/journal/supply.ts';
import { assertLaw } from '../../support/law.ts';

const IDS = ['eni-1', 'eni-2', 'eni-3'] as const;

function eniOf(eniId: string, more: Partial<ExclusiveSupplyEni> = {}): ExclusiveSupplyEni {
  const ip = `10.0.0.${eniId.slice(4)}`;
  return {
    ...{ eniId, mac: `02:00:00:00:00:0${eniId.slice(4)}`, assignmentId: `att-${eniId}` },
    primary: [{ ip, family: 4, gateway: '10.0.0.254', subnetCidr: '10.0.0.0/24' }],
    state: 'attached',
    draining: false,
    ...more,
  };
}

const poolOf = (...enis: readonly ExclusiveSupplyEni[]): ExclusivePoolState => applyExclusiveSupply(new Map(), enis);

function requestOf(name: string, more: Partial<ExclusiveRequest> = {}): ExclusiveRequest {
  return {
    ...{ key: `${name}/eth0`, podNamespace: 'default', podName: name, podUid: `uid-${name}` },
    ...{ needsClaim: false, present: new Set(IDS), nowMs: 1_000, mayForce: false },
    ...more,
  };
}

function leasedBy(state: ExclusivePoolState, request: ExclusiveRequest): string | undefined {
  const { result } = leaseExclusive(state, request);
  return result.kind === 'leased' ? result.eni.eniId : undefined;
}

const web = { namespace: 'default', name: 'web', uid: 'uid-web' };

for (const [what, more] of Object.entries({
  'is being attached': { state: 'attaching' },
  'is being detached': { state: 'detaching' },
  drains: { draining: true },
  'is marked for another Pod': { claim: { ...web, name: 'db' } },
  'is marked for another life of the Pod': { claim: { ...web, uid: 'old' } },
  'is marked and no Pod may have it': { claim: { namespace: 'default', name: 'web' } },
} as const)) {
  test(`leaseExclusive: gives none that ${what}`, (t) =>
    t.is(leasedBy(poolOf(eniOf('eni-1', more)), requestOf('web')), undefined));
}

test('leaseExclusive: where a controller publishes, no cooldown is cut short within 15 s', (t) => {
  const leased = leaseExclusive(poolOf(eniOf('eni-1')), requestOf('old')).state;
  const { state } = releaseExclusive(leased, { key: 'old/eth0', nowMs: 2_000, cooldownMs: 120_000 });
  const by = (nowMs: number, more: Partial<ExclusiveRequest> = {}) =>
    leasedBy(state, requestOf('web', { nowMs, mayForce: true, ...more }));
  const registered: ReadonlySet<string> = new Set();
  t.is(by(3_000), 'eni-1', 'no controller publishes');
  t.is(by(3_000, { registered }), undefined);
  t.is(by(16_999, { registered }), undefined);
  t.is(by(17_000, { registered }), 'eni-1');
});

test('markRegistered: one that a load balancer has goes to the Pod of its claim only, and counts as in use', (t) => {
  const all = poolOf(eniOf('eni-1'), eniOf('eni-2'));
  const marked = markRegistered(all, new Set(['10.0.0.1']));
  t.is(leasedBy(marked, requestOf('web')), 'eni-2');
  t.like(exclusiveDemand(marked, { min: 1, max: 1 }, { waiting: 0, nowMs: 0 }), { desired: 2, bound: 2, surplus: [] });
  t.is(leasedBy(markRegistered(marked, new Set()), requestOf('web')), 'eni-1');
  const own = markRegistered(poolOf(eniOf('eni-1', { claim: { ...web } })), new Set(['10.0.0.1']));
  t.is(leasedBy(own, requestOf('web')), 'eni-1');
});

test('leaseExclusive: gives a Pod the ENI that is marked for it, and no other while any mark names it', (t) => {
  const claim = { ...web };
  t.is(leasedBy(poolOf(eniOf('eni-1'), eniOf('eni-2', { claim })), requestOf('web')), 'eni-2');
  const stale = { ...web, uid: 'old' };
  t.is(leasedBy(poolOf(eniOf('eni-1'), eniOf('eni-2', { claim: stale })), requestOf('web')), undefined);
  t.is(leasedBy(poolOf(eniOf('eni-1')), requestOf('web', { needsClaim: true })), undefined);
});

test('leaseExclusive: gives none whose interface is not here, and says so', (t) => {
  const { result } = leaseExclusive(poolOf(eniOf('eni-1')), requestOf('web', { present: new Set() }));
  t.deepEqual(result, { kind: 'exhausted', awaitsClaim: false, missingNics: 1 });
});

test('releaseExclusive: lets an ENI of the pool cool, and one that is marked not', (t) => {
  const leased = leaseExclusive(poolOf(eniOf('eni-1')), requestOf('web')).state;
  const { state, cooldowns } = releaseExclusive(leased, { key: 'web/eth0', nowMs: 9_000, cooldownMs: 5_000 });
  t.like(cooldowns?.[0], { ip: '10.0.0.1', eniId: 'eni-1', coolUntilMs: 14_000, isWholeEni: true });
  t.is(leasedBy(state, requestOf('db', { nowMs: 13_999 })), undefined);
  t.is(leasedBy(state, requestOf('db', { nowMs: 13_999, mayForce: true })), 'eni-1');
  t.is(leasedBy(tickExclusive(state, 14_000).state, requestOf('db', { nowMs: 14_000 })), 'eni-1');

  const marked = leaseExclusive(poolOf(eniOf('eni-1', { claim: web })), requestOf('web')).state;
  const kept = releaseExclusive(marked, { key: 'web/eth0', nowMs: 1_000, cooldownMs: 5_000 });
  t.deepEqual(kept.cooldowns, []);
  t.is(leasedBy(kept.state, requestOf('web')), 'eni-1');
});

test('exclusiveDemand: an ENI whose sandbox failed at once rests, is no demand, and serves the next Pod', (t) => {
  let pool = poolOf(eniOf('eni-1'));
  for (let nowMs = 0; nowMs < 60_000; nowMs += 3_000) {
    const key = `web${nowMs}`;
    const { state, result } = leaseExclusive(pool, requestOf(key, { nowMs }));
    t.like(result, { kind: 'leased', isForced: nowMs > 0, isUnderPressure: false });
    const end = { nowMs: nowMs + 1_000, cooldownMs: 120_000, podUid: 'uid-web', finding: 'another' } as const;
    pool = releaseExclusive(state, { key: `${key}/eth0`, ...end }).state;
    t.like(exclusiveDemand(pool, { min: 1, max: 1 }, { waiting: 1, nowMs: nowMs + 1_000 }), { desired: 2, bound: 1 });
  }
  t.is(pool.get('eni-1')?.use, 'cooling');
  const registered = new Set(['10.0.0.1']);
  const warm = { min: 0, max: 1 };
  t.is(
    leasedBy(pool, requestOf('db', { nowMs: 60_000, registered })),
    undefined,
    'a controller may be about to publish',
  );
  t.like(exclusiveDemand(pool, warm, { waiting: 1, nowMs: 60_000, registered }), { desired: 2, bound: 1 });
  t.is(leasedBy(pool, requestOf('db', { nowMs: 75_000, registered })), 'eni-1');
  t.like(exclusiveDemand(pool, warm, { waiting: 1, nowMs: 75_000, registered }), { desired: 1, bound: 1 });
  const published = markRegistered(pool, registered);
  t.like(exclusiveDemand(published, warm, { waiting: 1, nowMs: 75_000, registered }), { desired: 2, bound: 1 });
  const offered = setOffered(pool, [{ eniId: 'eni-1', assignmentId: 'att-eni-1' }], true);
  t.like(exclusiveDemand(offered, warm, { waiting: 1, nowMs: 75_000 }), { desired: 2, bound: 1 });
});

for (const [what, shown, uid, desired] of [
  ['is no demand once the API server answered', { ips: new Set<string>(), uids: new Set(['uid-web']) }, 'uid-web', 1],
  ['is demand when it answered for another Pod', { ips: new Set<string>(), uids: new Set(['uid-web']) }, 'uid-db', 2],
  ['is demand when the Pod is gone', { ips: new Set<string>(), uids: new Set<string>() }, 'uid-web', 2],
  ['is demand when a Pod has the address', { ips: new Set(['10.0.0.1']), uids: new Set(['uid-web']) }, 'uid-web', 2],
] as const)
  test(`exclusiveDemand: the rest after a sandbox that ended late ${what}`, (t) => {
    const { state } = leaseExclusive(poolOf(eniOf('eni-1')), requestOf('web'));
    const end = { nowMs: 31_000, cooldownMs: 120_000, podUid: 'uid-web', finding: 'none-yet' } as const;
    const rests = releaseExclusive(state, { key: 'web/eth0', ...end }).state;
    const desiredOf = (pool: ExclusivePoolState) =>
      exclusiveDemand(pool, { min: 0, max: 0 }, { waiting: 1, nowMs: 31_000 }).desired;
    t.is(desiredOf(rests), 2);
    t.is(desiredOf(proveFailedExclusive(noteShownExclusive(rests, shown), uid)), desired);
    const early = releaseExclusive(noteShownExclusive(state, shown), { key: 'web/eth0', ...end, nowMs: 2_000 }).state;
    t.is(desiredOf(early), shown.ips.size > 0 ? 2 : 1, 'where it was over at once');
  });

test('applyExclusiveSupply: keeps what a Pod has, named or not, and forgets it with the lease', (t) => {
  const leased = leaseExclusive(poolOf(eniOf('eni-1')), requestOf('web')).state;
  const gone = applyExclusiveSupply(leased, []);
  t.like(gone.get('eni-1'), { supplyState: 'missing', use: 'leased' });
  t.is(releaseExclusive(gone, { key: 'web/eth0', nowMs: 0, cooldownMs: 0 }).state.size, 0);
});

test('applyExclusiveSupply: an ENI that was detached and came back is no longer offered', (t) => {
  const offered = setOffered(poolOf(eniOf('eni-1')), [{ eniId: 'eni-1', assignmentId: 'att-eni-1' }], true);
  t.is(leasedBy(offered, requestOf('web')), undefined);
  t.is(leasedBy(applyExclusiveSupply(offered, [eniOf('eni-1')]), requestOf('web')), undefined);
  t.is(
    leasedBy(applyExclusiveSupply(offered, [eniOf('eni-1', { assignmentId: 'att-new' })]), requestOf('web')),
    'eni-1',
  );
});

test('law: whatever happens, no ENI has two owners, and none that is offered has one', async (t) => {
  const step = fc.oneof(
    fc.record({ kind: fc.constant('lease' as const), pod: fc.constantFrom('a', 'b', 'c', 'd'), force: fc.boolean() }),
    fc.record({ kind: fc.constant('release' as const), pod: fc.constantFrom('a', 'b', 'c', 'd') }),
    fc.record({ kind: fc.constant('supply' as const), ids: fc.subarray([...IDS]), life: fc.nat(2) }),
    fc.record({ kind: fc.constant('offer' as const), id: fc.constantFrom(...IDS), life: fc.nat(2), on: fc.boolean() }),
    fc.record({ kind: fc.constant('tick' as const) }),
  );
  await assertLaw(t, () =>
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      let state: ExclusivePoolState = poolOf(...IDS.map((id) => eniOf(id, { assignmentId: `att-${id}-0` })));
      const owners = new Map<string, string>();
      for (const [index, one] of steps.entries()) {
        const nowMs = index * 1_000;
        if (one.kind === 'lease') {
          const next = leaseExclusive(state, requestOf(one.pod, { nowMs, mayForce: one.force }));
          state = next.state;
          if (next.result.kind !== 'leased') continue;
          const { eniId } = next.result.eni;
          const owner = owners.get(eniId);
          if (owner !== undefined && owner !== one.pod) return false;
          owners.set(eniId, one.pod);
        } else if (one.kind === 'release') {
          state = releaseExclusive(state, { key: `${one.pod}/eth0`, nowMs, cooldownMs: 3_000 }).state;
          for (const [eniId, owner] of owners) if (owner === one.pod) owners.delete(eniId);
        } else if (one.kind === 'supply') {
          state = applyExclusiveSupply(
            state,
            one.ids.map((id) => eniOf(id, { assignmentId: `att-${id}-${one.life}` })),
          );
        } else if (one.kind === 'offer') {
          state = setOffered(state, [{ eniId: one.id, assignmentId: `att-${one.id}-${one.life}` }], one.on);
        } else state = tickExclusive(state, nowMs).state;
        const all = [...state.values()];
        if (all.some(({ use, offered }) => use === 'leased' && offered)) return false;
        const held = all.flatMap(({ leaseKey }) => leaseKey ?? []);
        if (new Set(held).size !== held.length || held.length !== owners.size) return false;
      }
      return true;
    }),
  );
});

test('adoptExclusive: takes over leases of whole ENIs alone, known to the supply or not', (t) => {
  const base = {
    ...{ containerId: 'c', ifName: 'eth0', network: '', netns: '', podNamespace: '', podName: '', podUid: '' },
    ...{ state: 'active' as const, mtu: 1500, createdAtMs: 0, addresses: [] },
  };
  const state = adoptExclusive(poolOf(eniOf('eni-1')), [
    { ...base, plugin: 'direct-eni', eniId: 'eni-9' },
    { ...base, plugin: 'route-eni', eniId: 'eni-1' },
  ]);
  t.is(state.get('eni-9')?.use, 'leased');
  t.is(state.get('eni-1')?.use, 'free');
});
