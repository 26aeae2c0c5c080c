import test from 'ava';
import fc from 'fast-check';
import type { PodFinding } from '../../../agent/pool/brief.ts';
import { IpPool } from '../../../agent/pool/ip-pool.ts';
import { assertLaw } from '../../support/law.ts';
import { sampleEni, sampleSupply } from './supply-sample.ts';

const IPS = ['10.0.0.1', '10.0.0.2', '10.0.0.3', '10.0.0.4', '10.0.0.5', '10.0.0.6'];

const arbWorld = fc.record({
  /** How long each sandbox lives and what the API server shows then; undefined: it lives on. */
  ends: fc.array(
    fc.option(
      fc.record({
        livedMs: fc.constantFrom(500, 3_000, 9_000),
        finding: fc.constantFrom<PodFinding>('unknown', 'another', 'none-yet', 'none'),
      }),
      { nil: undefined },
    ),
    { maxLength: IPS.length },
  ),
  restMs: fc.constantFrom(0, 14_999, 15_000, 119_000, 121_000),
  isDraining: fc.boolean(),
  registered: fc.option(fc.subarray(IPS), { nil: undefined }),
  strangers: fc.subarray(IPS, { maxLength: 1 }),
  withdrawn: fc.subarray(IPS, { maxLength: 2 }),
  proven: fc.constantFrom('u0', 'u1', 'u2'),
});

test('law: what counts as free is what Pods get without pressure', (t) =>
  assertLaw(t, () =>
    fc.property(arbWorld, ({ ends, restMs, isDraining, registered, strangers, withdrawn, proven }) => {
      const pool = new IpPool();
      const second = { draining: isDraining };
      const supply = [sampleEni('eni-a', IPS.slice(0, 3)), sampleEni('eni-b', IPS.slice(3))];
      pool.applySupply(sampleSupply(supply));
      for (const [n] of ends.entries()) pool.lease({ key: `c${n}/eth0`, families: [4], nowMs: 0 });
      for (const [n, end] of ends.entries())
        if (end !== undefined)
          pool.release({
            ...{ key: `c${n}/eth0`, nowMs: end.livedMs, cooldownMs: 120_000 },
            ...{ podUid: `u${n}`, finding: end.finding },
          });
      pool.applySupply(
        sampleSupply([sampleEni('eni-a', IPS.slice(0, 3)), sampleEni('eni-b', IPS.slice(3), second)], 2),
      );
      pool.proveFailed(proven);
      pool.withdraw(withdrawn);
      pool.setRegistered(registered === undefined ? undefined : new Set(registered));
      pool.setStrangers(new Set(strangers));
      const nowMs = 9_000 + restMs;
      pool.tick(nowMs);
      const { bound, used } = pool.demand({ min: 0, max: 0 }, { waiting: 0, floor: 0, nowMs });
      let given = 0;
      while (pool.lease({ key: `next${given}/eth0`, families: [4], nowMs }).kind === 'leased') given++;
      return given === bound - used;
    }),
  ));
