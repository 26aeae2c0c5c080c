import test from 'ava';
import { SEED } from '../../sim/support/seed.ts';
import { withSeed } from '../support/with-seed.ts';
import { churn } from './churn.ts';
import { QUICK_RESTARTS } from './quick-restarts.ts';
import { type RealCluster, startRealCluster } from './real-cluster.ts';
import { SETTINGS_OF_ALL_KINDS } from './workloads/kinds.ts';

/** How long it lasts. */
const MINUTES = Number(process.env['CHURN_MINUTES'] ?? 10);

let started: RealCluster | undefined;

test.after.always(() => started?.close());

test.serial(
  'a cluster whose parts die at random while Pods come and go: no address is given twice, nothing is left',
  async (t) => {
    t.timeout((MINUTES + 15) * 60_000);
    const cluster = await startRealCluster({
      nodes: ['node1', 'node2'].map((name) => ({ name, cores: 8, kubelet: QUICK_RESTARTS })),
    });
    started = cluster;
    await cluster.deploy({ ipamdSettings: SETTINGS_OF_ALL_KINDS });
    const startMs = performance.now();
    const lines: string[] = [];
    const say = (line: string): void => {
      const text = `${((performance.now() - startMs) / 1_000).toFixed(1)} s: ${line}`;
      lines.push(text);
      // Whoever waits for ten minutes sees that something happens.
      process.stderr.write(`churn: ${text}\n`);
    };
    say(`CHURN_MINUTES=${MINUTES} SEED=${SEED}`);
    await withSeed(t, async (seed) => {
      const tally = await churn(cluster, { minutes: MINUTES, seed, say }).catch((error: unknown) => {
        throw new Error(`${String(error)}\n${lines.join('\n')}`, { cause: error });
      });
      t.log(JSON.stringify(tally, null, 2));
      t.deepEqual(tally.violations, [], lines.join('\n'));
      // It has looked at something, and disturbed something.
      t.true(tally.addressesSeen > 0);
      t.not(Object.keys(tally.disturbances).length, 0);
    });
  },
);
