import test from 'ava';
import { canServePods, type ServedByAgent, withoutStartupTaints } from '../../../ipamd/nodes/startup-taints.ts';

const ENI_IP = 'tke.cloud.tencent.com/eni-ip';
const DIRECT = 'tke.cloud.tencent.com/direct-eni';
const NODE = { isReady: true, offeredResources: [ENI_IP], podCidrs: [] };
const SERVED: ServedByAgent = { readyResources: [ENI_IP], isExclusiveServed: false, isBridged: false };

const serves = test.macro((t, node: object, served: Partial<ServedByAgent>, expected: boolean) =>
  t.is(canServePods({ ...NODE, ...node }, { ...SERVED, ...served }), expected),
);
test('canServePods: the agent serves, and kubelet offers', serves, {}, {}, true);
test('canServePods: not while kubelet offers nothing', serves, { offeredResources: [] }, {}, false);
test(
  'canServePods: kubelet offers nothing where Cilium gives the addresses',
  serves,
  { offeredResources: [], isCiliumCrd: true },
  {},
  true,
);
test(
  'canServePods: nor there while the agent does not serve',
  serves,
  { isCiliumCrd: true },
  { readyResources: [] },
  false,
);
test('canServePods: not while the agent does not serve', serves, {}, { readyResources: [] }, false);
test('canServePods: not on a node that is not Ready', serves, { isReady: false }, {}, false);
test('canServePods: exclusive ENIs are waited for', serves, {}, { isExclusiveServed: true }, false);
test(
  'canServePods: both are there',
  serves,
  { offeredResources: [ENI_IP, DIRECT] },
  { isExclusiveServed: true, readyResources: [ENI_IP, DIRECT] },
  true,
);
const BRIDGED = { isBridged: true, readyResources: [] };
test('canServePods: the bridge needs no ENI', serves, { podCidrs: ['172.16.0.0/26'] }, BRIDGED, true);
test('canServePods: the bridge needs a podCIDR', serves, {}, BRIDGED, false);
test(
  'canServePods: the bridge needs its route',
  serves,
  { podCidrs: ['172.16.0.0/26'], networkCondition: { status: 'True', reason: 'NoRouteCreated' } },
  BRIDGED,
  false,
);

const KEY = 'startup-taint.cluster-autoscaler.kubernetes.io/eni-ip-unavailable';
const PLAIN = { key: KEY, effect: 'NoSchedule' };
const VALUED = { key: KEY, value: 'true', effect: 'NoExecute' };
const OTHER = { key: `${KEY}-2`, effect: 'NoSchedule' };
const ALL = [PLAIN, OTHER, VALUED];

test('withoutStartupTaints: an effect and a value narrow it', (t) => {
  t.deepEqual(withoutStartupTaints(ALL, [{ key: KEY, effect: 'NoSchedule' }]), [OTHER, VALUED]);
  t.deepEqual(withoutStartupTaints(ALL, [{ key: KEY, value: 'true' }]), [PLAIN, OTHER]);
  t.deepEqual(withoutStartupTaints(ALL, [{ key: KEY, value: '' }]), [OTHER, VALUED]);
});
test('withoutStartupTaints: the same list where nothing is to go', (t) => {
  t.is(withoutStartupTaints(ALL, []), ALL);
  t.is(withoutStartupTaints(ALL, [{ key: 'none' }]), ALL);
});
