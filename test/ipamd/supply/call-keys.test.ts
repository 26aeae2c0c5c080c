import test from 'ava';
import type { Intent } from '../../../ipamd/decide/decision.ts';
import { keysFreedBy } from '../../../ipamd/supply/call-keys.ts';

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

test('keysFreedBy: names the breakers whose reason a call removes', (t) => {
  t.deepEqual(keysFreedBy('node-a', intentOf('DeleteNetworkInterface'), STATUS), ['vpc-enis', 'subnet/subnet-a']);
  t.deepEqual(keysFreedBy('node-a', intentOf('DetachNetworkInterface'), STATUS), [
    'instance-enis/ins-a',
    'node/node-a/call/DeleteNetworkInterface/eni-a',
  ]);
  const eniInfos = (STATUS.eniInfos ?? []).map((eni) => ({ ...eni, attachType: 'extension' as const }));
  const extended = { ...STATUS, eniInfos };
  t.deepEqual(keysFreedBy('node-a', intentOf('DetachNetworkInterface'), extended), [
    'instance-enis/ins-a/extension',
    'node/node-a/call/DeleteNetworkInterface/eni-a',
  ]);
  t.deepEqual(keysFreedBy('node-a', intentOf('UnassignPrivateIpAddresses'), STATUS), [
    'eni-ips/eni-a',
    'subnet/subnet-a',
  ]);
  t.deepEqual(keysFreedBy('node-a', intentOf('AssignPrivateIpAddresses'), STATUS), []);
});
