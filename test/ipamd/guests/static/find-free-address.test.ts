import test from 'ava';
import fc from 'fast-check';
import type { IpHolder } from '../../../../ipamd/guests/static/claim-view.ts';
import { FreeAddresses, findFreeAddress } from '../../../../ipamd/guests/static/find-free-address.ts';
import { assertLaw } from '../../../support/law.ts';

const RECHECK_MS = 5_000;

/** Addresses, their holders, and how often somebody asks for one. */
class World {
  readonly holders = new Map<string, string>();
  nowMs = 0;
  asked = 0;
  readonly search = new FreeAddresses({ monotonicMs: () => this.nowMs });

  viewOf(key: string) {
    return {
      key,
      subnetOf: (ip: string) => (ip.startsWith('10.') ? `subnet-${ip.split('.')[1]}` : undefined),
      zoneOf: (subnetId: string) => `zone-${subnetId.slice('subnet-'.length)}`,
      holderOf: (ip: string): IpHolder | undefined => {
        this.asked += 1;
        const holder = this.holders.get(ip);
        return holder === undefined || holder === key ? undefined : { kind: 'claim', key: holder };
      },
    };
  }

  free(ip: string): void {
    this.holders.delete(ip);
    this.search.noteFreed([ip]);
  }
}

test('FreeAddresses: hundreds of claims that wait for an exhausted pool look at its addresses once', (t) => {
  const world = new World();
  const pool = Array.from({ length: 4_096 }, (_, at) => `10.0.${at >> 8}.${at & 255}`);
  for (const ip of pool) world.holders.set(ip, 'other/claim');
  for (let claim = 0; claim < 400; claim++) {
    t.is(world.search.find(world.viewOf(`t/web-${claim}`), pool, 'zone-0'), undefined);
  }
  t.is(world.asked, pool.length);
  world.free('10.0.3.7');
  t.deepEqual(world.search.find(world.viewOf('t/web-9'), pool, 'zone-0'), { ip: '10.0.3.7', subnetId: 'subnet-0' });
});

test('FreeAddresses: finds an address of which nothing was said after five seconds, and that of another zone at once', (t) => {
  const world = new World();
  const pool = ['10.0.0.1', '10.1.0.1'];
  world.holders.set('10.0.0.1', 'other/claim');
  t.is(world.search.find(world.viewOf('t/a'), pool, 'zone-0'), undefined);
  t.deepEqual(world.search.find(world.viewOf('t/a'), pool, 'zone-1'), { ip: '10.1.0.1', subnetId: 'subnet-1' });
  t.is(world.search.find(world.viewOf('t/a'), pool, 'zone-0'), undefined);
  world.holders.clear();
  world.nowMs += RECHECK_MS;
  t.deepEqual(world.search.find(world.viewOf('t/a'), pool, 'zone-0'), { ip: '10.0.0.1', subnetId: 'subnet-0' });
});

test('FreeAddresses: what a claim has itself is free to it, though the pool is exhausted to others', (t) => {
  const world = new World();
  const pool = ['10.0.0.1', '10.0.0.2'];
  world.holders.set('10.0.0.1', 'other/claim').set('10.0.0.2', 't/a');
  t.is(world.search.find(world.viewOf('t/b'), pool, 'zone-0'), undefined);
  t.deepEqual(world.search.find(world.viewOf('t/a'), pool, 'zone-0'), { ip: '10.0.0.2', subnetId: 'subnet-0' });
});

test('FreeAddresses: finds what findFreeAddress finds, whoever asks, as long as it is told what is free', async (t) => {
  const ips = ['10.0.0.1', '10.0.0.2', '10.1.0.1', '192.168.0.1'];
  const keys = ['t/a', 't/b', 't/c'];
  const pools = [ips.slice(0, 2), ips.slice(1), ips];
  const one = fc.record({
    ip: fc.option(fc.constantFrom(...ips.slice(0, 2)), { freq: 1 }),
    holder: fc.option(fc.constantFrom(...keys), { freq: 9 }),
    key: fc.constantFrom(...keys),
    pool: fc.constantFrom(...pools),
    zone: fc.constantFrom('zone-0', undefined),
    passMs: fc.nat({ max: 2 * RECHECK_MS }).map((ms) => Math.max(0, ms - RECHECK_MS)),
  });
  await assertLaw(t, (t) =>
    fc.property(fc.array(one, { maxLength: 40 }), (steps) => {
      const world = new World();
      for (const { ip, holder, key, pool, zone, passMs } of steps) {
        world.nowMs += passMs;
        // Who loses an address is told of it.
        if (ip !== null) world.free(ip);
        if (ip !== null && holder !== null) world.holders.set(ip, holder);
        const view = world.viewOf(key);
        t.deepEqual(world.search.find(view, pool, zone), findFreeAddress(view, pool, zone));
      }
    }),
  );
});
