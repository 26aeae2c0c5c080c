import test from 'ava';
import { withSeed } from '../support/with-seed.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { leadStaticLives } from '../system/static-lives.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';

const NODES = ['n1', 'n2', 'n3'];
const STEPS = Number(process.env['TKE_STATIC_STEPS'] ?? 460);

let system: System;

test.before(async () => {
  system = await createSystem({
    nodes: NODES.map((name) => ({ name })),
    ipamds: 1,
    ipamdFlags: {
      'enable-static-ip': 'true',
      'sync-interval': '10s',
      // A busy machine must not end terms.
      'leader-elect-lease': '12s',
      'leader-elect-renew': '2s',
    },
  });
  for (const { name } of system.nodes) {
    await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5, 60_000);
    await system.node(name).awaitReady(60_000);
  }
});
test.after.always(() => system?.close());

test.serial(
  'StatefulSets come, go, move and are forced while ipamd and agents are killed: no address is lost or double',
  async (t) => {
    t.timeout(STEPS * 4_000 + 120_000);
    await withSeed(t, async (seed) => {
      const spec = { seed, steps: STEPS, sets: ['web', 'api'], replicas: 4, nodes: NODES };
      const { counts, violations, longestCalmMs } = await leadStaticLives(system, spec);
      const done = [...counts].map(([what, count]) => `${what} ${count}`).join(', ');
      t.log(`${done}; longest start under a leader of old ${longestCalmMs} ms`);
      t.deepEqual(violations, [], violations.length === 0 ? '' : system.logs().slice(-8_000));
      t.deepEqual(await auditThreeWays(system), []);
    });
  },
);
