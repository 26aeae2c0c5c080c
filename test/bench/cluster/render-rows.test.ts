import test from 'ava';
import type { Round } from '../../../bench/cluster/fifty.ts';
import { renderRows } from '../../../bench/cluster/render-rows.ts';

function round(upS: number, downS: number, pluginsS: number): Round {
  const cpu = { plugins: pluginsS, containerd: 2, kubelet: 2, agent: 0, ipamd: 0, 'control plane': 4 };
  const latencies = { runMs: 100 * upS, stopMs: 100 * downS, setupMs: 40, teardownMs: 20 };
  return { upS, downS, latencies, upCpu: cpu, downCpu: cpu };
}

test('renderRows: compares medians, says where the time goes, and whether the target is reached', (t) => {
  const ours = [round(10, 9, 3), round(11, 9, 3), round(50, 9, 3)];
  const peer = [round(11, 6, 1), round(11, 6, 1), round(11, 6, 1)];
  const [up, down] = renderRows({ ours, peer }, 'starts alone: 30 ms');
  t.like(up, { suite: 'cluster', case: 'fifty-up', ours: 11, peer: 11, unit: 's' });
  t.is(up?.ratio, 1);
  t.regex(
    up?.extra ?? '',
    /3 rounds.*RunPodSandbox by the kubelet 1100 against 1100 ms.*CPU of plugins 3\.0 against 1\.0 s/,
  );
  t.regex(
    up?.extra ?? '',
    /with them 11\.0 against 9\.0 s; more than the peer: plugins \+2\.0, .* s; starts alone: 30 ms; reaches 0\.95$/,
  );
  t.is(down?.case, 'fifty-down');
  t.regex(down?.extra ?? '', /misses 0\.95$/);
});
