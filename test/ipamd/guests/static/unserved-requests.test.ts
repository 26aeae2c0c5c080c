import test from 'ava';
import { POD_ANNOTATION } from '../../../../crd/names.ts';
import { createPodDecoder } from '../../../../ipamd/cache/pod-facts.ts';
import { findUnservedRequests } from '../../../../ipamd/guests/static/unserved-requests.ts';

const { networks, deletePolicy, nominatedVpcIp } = POD_ANNOTATION;

const unserved = test.macro(
  (t, annotations: Readonly<Record<string, string>>, isSuper: boolean, want: readonly string[]) =>
    t.deepEqual(
      findUnservedRequests({ annotations, nodeName: 'n1' }, isSuper).map(({ reason }) => reason),
      want,
    ),
);
test('findUnservedRequests: none of a Pod that asks for nothing', unserved, {}, true, []);
test('findUnservedRequests: an address by name that is not kept', unserved, { [nominatedVpcIp]: '10.0.0.9' }, false, [
  'AnnotationInvalid',
]);
test(
  'findUnservedRequests: none when it is kept',
  unserved,
  { [nominatedVpcIp]: '10.0.0.9', [deletePolicy]: 'Never' },
  false,
  [],
);
test(
  'findUnservedRequests: none when the address cannot be read: that is a fault',
  unserved,
  { [nominatedVpcIp]: 'x' },
  false,
  [],
);
test('findUnservedRequests: a network of ENIs on a super node', unserved, { [networks]: 'tke-route-eni' }, true, [
  'NoAddressOnSuperNode',
]);
test('findUnservedRequests: another network on a super node', unserved, { [networks]: 'tke-bridge' }, true, []);
test(
  'findUnservedRequests: a network of ENIs on a node with ENIs',
  unserved,
  { [networks]: 'tke-route-eni' },
  false,
  [],
);

const podWith = (resources: object, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { namespace: 'shop', name: 'p', uid: 'u' },
  spec: { containers: [{ name: 'c', resources }], ...more },
});
const SUB_ENI = 'tke.cloud.tencent.com/sub-eni';

test('findUnservedRequests: an interface on a trunk ENI, of a Pod that no node takes', (t) => {
  const decode = createPodDecoder();
  for (const resources of [{ limits: { [SUB_ENI]: '1' } }, { requests: { [SUB_ENI]: '1' } }]) {
    const pod = decode(podWith(resources));
    if (pod === undefined) return t.fail('it is not cached');
    t.deepEqual(
      findUnservedRequests(pod, false).map(({ reason }) => reason),
      ['ResourceNotServed'],
    );
    t.deepEqual(
      findUnservedRequests({ ...pod, annotations: { [deletePolicy]: 'Never' } }, false).map(({ reason }) => reason),
      ['ResourceNotServed'],
      'kept or not',
    );
  }
  t.is(decode(podWith({ limits: { cpu: '1' } })), undefined, 'another Pod without a node is not cached');
  t.is(decode(podWith({ limits: { [SUB_ENI]: '1' } }, { hostNetwork: true })), undefined);
});
