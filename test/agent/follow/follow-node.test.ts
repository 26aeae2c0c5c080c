import test from 'ava';
import { ownNodeOf } from '../../../agent/follow/follow-node.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

test('ownNodeOf: reads blocks and InternalIPs once each, and leaves out what is none', (t) => {
  const node = {
    spec: { podCIDR: '172.31.0.0/26', podCIDRs: ['172.31.0.0/26', 'fd00::/64', 'no'] },
    status: {
      addresses: [
        { type: 'Hostname', address: '10.9.9.9' },
        { type: 'InternalIP', address: '10.0.1.2' },
        { type: 'InternalIP', address: '10.0.1.2' },
        { type: 'InternalIP', address: 'fd00::2' },
        { type: 'InternalIP', address: 'n1.example' },
        { type: 'InternalIP' },
        'no',
      ],
    },
  } as unknown as KubeObject;
  t.deepEqual(ownNodeOf(node), { podCidrs: ['172.31.0.0/26', 'fd00::/64'], internalIps: ['10.0.1.2', 'fd00::2'] });
  t.deepEqual(ownNodeOf({} as KubeObject), { podCidrs: [], internalIps: [] });
});
