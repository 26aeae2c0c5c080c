import test from 'ava';
import { POD_ANNOTATION } from '../../../crd/names.ts';
import { findUnservedRequests } from '../../../ipamd/static/unserved-requests.ts';

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
test('findUnservedRequests: both', unserved, { [networks]: 'tke-route-eni', [nominatedVpcIp]: '10.0.0.9' }, true, [
  'AnnotationInvalid',
  'NoAddressOnSuperNode',
]);
