import test from 'ava';
import { keyMadePossibleBy, keysFreedBy } from '../../../ipamd/calls/call-keys.ts';
import type { Intent } from '../../../ipamd/decide/decision.ts';

const STATUS = {
  instanceID: 'ins-a',
  eniInfos: [{ eniID: 'eni-a', mac: '52:54:00:00:00:01', state: 'Attached', subnetID: 'subnet-a' }],
} as const;

function intentOf(action: Intent['action']): Intent {
  return {
    id: 'i1',
    action,
    eniID: 'eni-a',
    phase: 'Recorded',
    leaderEpoch: 1,
    requestTimeoutSeconds: 60,
    recordedAt: '2026-01-01T00:00:00Z',
  };
}

test('keysFreedBy: names what a call makes room in', (t) => {
  t.deepEqual(keysFreedBy(intentOf('DeleteNetworkInterface'), STATUS), ['vpc-enis', 'subnet/subnet-a']);
  t.deepEqual(keysFreedBy(intentOf('DetachNetworkInterface'), STATUS), ['instance-enis/ins-a']);
  const eniInfos = (STATUS.eniInfos ?? []).map((eni) => ({ ...eni, attachType: 'extension' as const }));
  const extended = { ...STATUS, eniInfos };
  t.deepEqual(keysFreedBy(intentOf('DetachNetworkInterface'), extended), ['instance-enis/ins-a/extension']);
  t.deepEqual(keysFreedBy(intentOf('UnassignPrivateIpAddresses'), STATUS), ['eni-ips/eni-a', 'subnet/subnet-a']);
  t.deepEqual(keysFreedBy(intentOf('AssignPrivateIpAddresses'), STATUS), []);
});

test('keyMadePossibleBy: an ENI that is detached can be deleted', (t) => {
  const detached = keyMadePossibleBy('node-a', intentOf('DetachNetworkInterface'));
  t.is(detached, 'node/node-a/call/DeleteNetworkInterface/eni-a');
  t.is(keyMadePossibleBy('node-a', intentOf('DeleteNetworkInterface')), undefined);
});
