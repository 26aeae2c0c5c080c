import test from 'ava';
import type { CriSandbox } from '../../agent/cri/sandbox-view.ts';
import { COLLECT_GRACE_MS, decideCollect, UNLISTED_GRACE_MS } from '../../agent/decide-collect.ts';
import { sampleLease } from './pool/supply-sample.ts';

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
    const released = decideCollect(leases, sandboxes, NOW, () => isNetnsGone);
    t.deepEqual(released, isReleased ? ['c/eth0'] : []);
  },
);

test('decideCollect: releases when the sandbox is not listed and has no netns', decide, [], {}, true, true);
test('decideCollect: keeps what may be in the making: not listed, with a netns', decide, [], {}, false, false);
test('decideCollect: releases what is not listed for long, netns or not', decide, [], VERY_OLD, false, true);
test('decideCollect: waits out the grace of a young lease', decide, [], { createdAtMs: NOW - 59_999 }, true, false);
test('decideCollect: keeps a ready sandbox', decide, [sandbox('c', 'ready')], {}, true, false);
test('decideCollect: keeps a dead sandbox whose netns lives', decide, [sandbox('c', 'not-ready')], {}, false, false);
test('decideCollect: releases a dead sandbox without netns', decide, [sandbox('c', 'not-ready')], {}, true, true);
test('decideCollect: keeps what the CRI never listed while its netns lives', decide, [], { podName: '' }, false, false);
test('decideCollect: releases what the CRI never listed without netns', decide, [], { podName: '' }, true, true);
