import test from 'ava';
import { partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { openTrial, type Trial, type TrialSpec } from './support/trial.ts';

// Repair is for what others do: the agent's own ADDs and DELs must not make it look at the whole node.

const METRICS = [
  'bash',
  '-c',
  'exec 3<>/dev/tcp/127.0.0.1/61680; printf "GET /metrics HTTP/1.0\\r\\n\\r\\n" >&3; cat <&3',
];

async function passes(trial: Trial): Promise<string> {
  const text = await trial.node.netns.run(METRICS);
  return text
    .split('\n')
    .filter((line) => line.startsWith('tke_eni_repair_passes_total{') && !line.includes('"timer"'))
    .join('\n');
}

const bridge: TrialSpec['gr'] = { cidr: '172.20.0.0/26', wiring: 'bridge' };
const CASES: readonly (TrialSpec & { readonly name: string })[] = [
  { name: 'compact', ruleMode: 'compact' },
  { name: 'per-pod', ruleMode: 'per-pod' },
  { name: 'compact, GlobalRoute, bridge', ruleMode: 'compact', gr: bridge },
  { name: 'per-pod, GlobalRoute, bridge', ruleMode: 'per-pod', gr: bridge },
  { name: 'compact, GlobalRoute, routed', ruleMode: 'compact', gr: { ...bridge, wiring: 'routed' } },
];

for (const { name, ...spec } of partOf(CASES, ({ gr }) => gr === undefined)) {
  test(`agent: looks at the node for a foreign change and for none of its own ADDs and DELs, ${name}`, async (t) => {
    t.timeout(120_000);
    const trial = await openTrial(spec);
    t.teardown(() => trial.close());
    // The last pass of the start is that for its own writes. The kernel reports an ENI that came up as much as a second
    // later (linkwatch).
    let before = '';
    await waitUntil(
      async () => {
        const last = before;
        before = await passes(trial);
        return before !== '' && before === last;
      },
      { what: 'the end of the start', everyMs: 1_200 },
    );
    for (let round = 0; round < 3; round++) {
      const pods = await Promise.all([trial.addPod(), trial.addPod()]);
      await Promise.all(pods.map((pod) => trial.delete(pod)));
    }
    const pod = await trial.addPod();
    t.is(await passes(trial), before);

    const table = spec.ruleMode === 'compact' && spec.gr?.wiring !== 'bridge' ? '3999' : 'main';
    await trial.node.netns.ip('route', 'flush', 'table', table, 'proto', '84');
    await waitUntil(async () => /trigger="route"/.test(await passes(trial)), { what: 'a pass for the flush' });
    await waitUntil(async () => await pod.netns.ping(trial.vpc.outside.ip), { what: 'packets of the Pod' });
  });
}
