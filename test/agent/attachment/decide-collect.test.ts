import test from 'ava';
import {
  COLLECT_GRACE_MS,
  decideCollect,
  decideVeto,
  UNLISTED_GRACE_MS,
} from '../../../agent/attachment/decide-collect.ts';
import type { CriSandbox } from '../../../agent/cri/sandbox-view.ts';
import type { KubePod } from '../../../agent/pods/kube-pod.ts';
import { sampleLease } from '../pool/supply-sample.ts';

const NOW = 10_000_000;
const OLD = { createdAtMs: NOW - COLLECT_GRACE_MS };
const VERY_OLD = { createdAtMs: NOW - UNLISTED_GRACE_MS };
const sandbox = (id: string, state: CriSandbox['state']): CriSandbox => ({
  id,
  state,
  podName: 'p',
  podNamespace: 'default',
  podUid: '',
});

const decide = test.macro(
  (t, sandboxes: readonly CriSandbox[], lease: object, isNetnsGone: boolean, isReleased: boolean) => {
    const leases = [sampleLease('c', 'eni-1', ['10.0.0.5'], { ...OLD, ...lease })];
    const { orphans } = decideCollect(leases, sandboxes, NOW, () => !isNetnsGone);
    t.deepEqual(orphans, isReleased ? ['c/eth0'] : []);
  },
);

test('decideCollect: releases when the sandbox is not listed and has no netns', decide, [], {}, true, true);
test('decideCollect: keeps what may be in the making: not listed, with a netns', decide, [], {}, false, false);
test('decideCollect: keeps what is not listed for long and lives', decide, [], VERY_OLD, false, false);
test('decideCollect: keeps it by a list of another runtime', decide, [sandbox('x', 'ready')], VERY_OLD, false, false);

test('decideCollect: names what lives and is not listed for long: a Pod of Kubernetes that is no longer in the making', (t) => {
  const lease = (containerId: string, fields: object) => sampleLease(containerId, 'eni-1', [], fields);
  const leases = [
    lease('old', VERY_OLD),
    lease('young', OLD),
    lease('listed', VERY_OLD),
    lease('nerdctl', { ...VERY_OLD, podName: '' }),
  ];
  const { orphans, unlisted } = decideCollect(leases, [sandbox('listed', 'not-ready')], NOW, () => true);
  t.deepEqual([orphans, unlisted], [[], ['old/eth0']]);
});

test('decideCollect: waits out the grace of a young lease', decide, [], { createdAtMs: NOW - 59_999 }, true, false);
test('decideCollect: keeps a ready sandbox', decide, [sandbox('c', 'ready')], {}, true, false);
test('decideCollect: keeps a dead sandbox whose netns lives', decide, [sandbox('c', 'not-ready')], {}, false, false);
test('decideCollect: releases a dead sandbox without netns', decide, [sandbox('c', 'not-ready')], {}, true, true);
test('decideCollect: keeps what the CRI never listed while its netns lives', decide, [], { podName: '' }, false, false);
test('decideCollect: releases what the CRI never listed without netns', decide, [], { podName: '' }, true, true);

const running = (uid: string, ips: readonly string[], isRunning = true): KubePod => ({
  ...{ namespace: 'default', name: 'p', uid, isAlive: true, isRunning, ips },
});
const ofPod = (containerId: string, ip: string, podUid = 'u') =>
  sampleLease(containerId, 'eni-a', [ip], { podUid, podName: 'p', state: 'active' });

test('decideVeto: keeps a lease whose Pod runs with its address by the API server', (t) => {
  t.deepEqual(decideVeto(['a/eth0'], [ofPod('a', '10.0.0.1')], [running('u', ['10.0.0.1'])]), ['a/eth0']);
});

test('decideVeto: keeps a lease when the other sandboxes of its Pod are gone too', (t) => {
  const leases = [ofPod('a', '10.0.0.1'), ofPod('b', '10.0.0.2')];
  t.deepEqual(decideVeto(['a/eth0', 'b/eth0'], leases, [running('u', ['10.0.0.1'])]), ['a/eth0']);
});

for (const [what, leases, pods] of [
  ['of another uid', [ofPod('a', '10.0.0.1')], [running('other', ['10.0.0.1'])]],
  ['of a Pod with another address', [ofPod('a', '10.0.0.1')], [running('u', ['10.0.0.2'])]],
  ['of a Pod that does not run', [ofPod('a', '10.0.0.1')], [running('u', ['10.0.0.1'], false)]],
  [
    'of a Pod that is going, whatever holds it',
    [ofPod('a', '10.0.0.1')],
    [{ ...running('u', ['10.0.0.1']), isAlive: false }],
  ],
  ['of a Pod that nobody knows', [ofPod('a', '10.0.0.1')], []],
  ['without a uid', [ofPod('a', '10.0.0.1', '')], [running('', ['10.0.0.1'])]],
  ['whose Pod has a newer sandbox', [ofPod('a', '10.0.0.1'), ofPod('b', '10.0.0.2')], [running('u', ['10.0.0.1'])]],
] as const) {
  test(`decideVeto: lets a lease go ${what}`, (t) => t.deepEqual(decideVeto(['a/eth0'], leases, pods), []));
}
