import test, { type ExecutionContext } from 'ava';
import { buildExecutables } from '../../tools/build.ts';
import { IS_LONG, partOf } from '../support/suite-part.ts';
import { placeOf } from './support/fault-trial.ts';
import { askCli, type CliPlace } from './support/run-cli.ts';
import { openTrial, type Trial, type TrialSpec } from './support/trial.ts';

// No difference where there is none: in every layout that the agent plans, with an agent and without, and while Pods come
// and go. What diff tells is only worth something if it is silent otherwise.

test.before(async (t) => {
  t.timeout(240_000);
  await buildExecutables(['tke-eni']);
});

const LAYOUTS: Readonly<Record<string, TrialSpec>> = {
  'compact mode, both families': { ruleMode: 'compact', isDual: true },
  'per-pod mode, both families': { ruleMode: 'per-pod', isDual: true },
  'egress by the node': { ruleMode: 'compact', flags: { egress: 'node' } },
  "the product's rp_filter": { ruleMode: 'compact', flags: { 'rp-filter-mode': 'product' } },
  'bridge Pods beside ours': { ruleMode: 'per-pod', flags: { 'pod-cidr': '172.31.0.0/24' } },
  'Pods with whole ENIs': { ruleMode: 'compact', plugin: 'tke-direct-eni', directEnis: 3 },
  'Pods with whole ENIs, per-pod mode': { ruleMode: 'per-pod', plugin: 'tke-direct-eni', directEnis: 3 },
  'addresses only, under another plugin': { ruleMode: 'compact', plugin: 'tke-eni-ipamc' },
};

async function isSilent(t: ExecutionContext, place: CliPlace, when: string): Promise<void> {
  const diff = await askCli(place, 'diff');
  t.is(diff.code, 0, `${when}: ${JSON.stringify(diff.document)}`);
  t.deepEqual(diff.document['differences'], [], when);
  t.deepEqual(diff.document['unjudged'], [], when);
  const check = await askCli(place, 'check');
  t.is(check.code, 0, `${when}: ${JSON.stringify(check.document)}`);
}

const isShort = ([, { ruleMode, isDual, plugin }]: readonly [string, TrialSpec]): boolean =>
  ruleMode === 'compact' && (isDual === true || plugin === 'tke-direct-eni');

for (const [layout, spec] of partOf(Object.entries(LAYOUTS), isShort)) {
  test.serial(`tke-eni diff: finds nothing on a healthy node, ${layout}`, async (t) => {
    t.timeout(120_000);
    const trial = await openTrial(spec);
    try {
      await isSilent(t, placeOf(trial), 'without Pods');
      const pod = await trial.addPod();
      await trial.addPod();
      await isSilent(t, placeOf(trial), 'with Pods');
      await trial.delete(pod);
      await trial.killAgent();
      await isSilent(t, placeOf(trial), 'without an agent');
    } finally {
      await trial.close();
    }
  });
}

/** Keeps Pods coming and going until told to stop. Returns how many came. */
async function churn(trial: Trial, signal: AbortSignal): Promise<number> {
  let count = 0;
  while (!signal.aborted) {
    const pods = await Promise.all([trial.addPod(), trial.addPod()]);
    await Promise.all(pods.map((pod) => trial.delete(pod)));
    count += pods.length;
  }
  return count;
}

test.serial('tke-eni diff: finds nothing while Pods come and go', async (t) => {
  t.timeout(180_000);
  // Without a cooldown nothing is left of a Pod that came and went between two looks at the journal, as on a busy machine.
  const flags = { 'ip-cooldown': '60s', 'force-reuse-after': '10ms' };
  const trial = await openTrial({ ruleMode: 'compact', ipsPerEni: 24, flags });
  try {
    await trial.addPod();
    const end = new AbortController();
    const churning = churn(trial, end.signal);
    const answers: string[] = [];
    try {
      for (let look = 0; look < (IS_LONG ? 12 : 6); look++) {
        const { code, document } = await askCli(placeOf(trial), 'diff');
        if (code !== 0) answers.push(JSON.stringify(document));
      }
    } finally {
      end.abort();
    }
    t.true((await churning) > 0);
    t.deepEqual(answers, []);
  } finally {
    await trial.close();
  }
});
