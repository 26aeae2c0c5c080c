import test from 'ava';
import {
  decideTakenName,
  hostVethAlias,
  hostVethFallbackName,
  hostVethName,
  parseHostVethAlias,
} from '../../dataplane/host-veth-name.ts';

const owner = { containerId: 'c0ffee', ifName: 'eth0' };

test("hostVethName: is the product's, as a log of a live cluster shows it", (t) => {
  const pod = { ...owner, podNamespace: 'kube-system', podName: 'csi-cbs-controller-7788964bc-lsfw5' };
  t.is(hostVethName(pod), 'eni07eaad73233');
});

test('hostVethName: is from the sandbox for another interface or a Pod without a name', (t) => {
  t.is(hostVethName(owner), hostVethFallbackName(owner));
  const second = { ...owner, ifName: 'net1', podNamespace: 'default', podName: 'web' };
  t.is(hostVethName(second), hostVethFallbackName(second));
  t.not(hostVethFallbackName(second), hostVethFallbackName(owner));
  t.true(hostVethFallbackName(owner).length < 16);
});

test('parseHostVethAlias: reads what hostVethAlias writes and nothing else', (t) => {
  t.deepEqual(parseHostVethAlias(hostVethAlias(owner)), owner);
  for (const foreign of ['', 'tke-eni', 'tke-eni/c0ffee', 'tke-eni//eth0', 'my tke-eni/c0ffee/eth0', 'tke-eni/a/b/c']) {
    t.is(parseHostVethAlias(foreign), undefined);
  }
});

const taken = test.macro((t, found: Parameters<typeof decideTakenName>[0], decision: 'replace' | 'fallback') => {
  t.is(decideTakenName(found, { alias: hostVethAlias(owner), mac: '02:00:00:00:00:01' }), decision);
});

test('decideTakenName: replaces our own leftover', taken, { kind: 'veth', ifalias: 'tke-eni/c0ffee/eth0' }, 'replace');
test(
  'decideTakenName: leaves the veth of another sandbox',
  taken,
  { kind: 'veth', ifalias: 'tke-eni/beef/eth0' },
  'fallback',
);
test(
  'decideTakenName: replaces a leftover without alias that has our MAC',
  taken,
  { kind: 'veth', mac: '02:00:00:00:00:01' },
  'replace',
);
test(
  'decideTakenName: leaves a veth that bears nothing of ours',
  taken,
  { kind: 'veth', mac: '02:00:00:00:00:09' },
  'fallback',
);
test(
  'decideTakenName: replaces a leftover with our MAC whose alias another program wrote',
  taken,
  { kind: 'veth', ifalias: 'web of team a', mac: '02:00:00:00:00:01' },
  'replace',
);
test(
  'decideTakenName: leaves the veth of another sandbox whose MAC is ours',
  taken,
  { kind: 'veth', ifalias: 'tke-eni/beef/eth0', mac: '02:00:00:00:00:01' },
  'fallback',
);
test('decideTakenName: leaves what is no veth', taken, { kind: 'bridge', ifalias: 'tke-eni/c0ffee/eth0' }, 'fallback');
