import test from 'ava';
import { POD_ANNOTATION } from '../../../crd/names.ts';
import { findUnservedWishes } from '../../../ipamd/static/unserved-wishes.ts';

const { networks, deletePolicy, nominatedVpcIp } = POD_ANNOTATION;

const wishes = test.macro(
  (t, annotations: Readonly<Record<string, string>>, isSuper: boolean, want: readonly string[]) =>
    t.deepEqual(
      findUnservedWishes({ annotations, nodeName: 'n1' }, isSuper).map(({ reason }) => reason),
      want,
    ),
);
test('findUnservedWishes: none of a Pod that asks for nothing', wishes, {}, true, []);
test('findUnservedWishes: an address by name that is not kept', wishes, { [nominatedVpcIp]: '10.0.0.9' }, false, [
  'AnnotationInvalid',
]);
test(
  'findUnservedWishes: none when it is kept',
  wishes,
  { [nominatedVpcIp]: '10.0.0.9', [deletePolicy]: 'Never' },
  false,
  [],
);
test(
  'findUnservedWishes: none when the address cannot be read: that is a fault',
  wishes,
  { [nominatedVpcIp]: 'x' },
  false,
  [],
);
test('findUnservedWishes: a network of ENIs on a super node', wishes, { [networks]: 'tke-route-eni' }, true, [
  'NoAddressOnSuperNode',
]);
test('findUnservedWishes: another network on a super node', wishes, { [networks]: 'tke-bridge' }, true, []);
test('findUnservedWishes: a network of ENIs on a node with ENIs', wishes, { [networks]: 'tke-route-eni' }, false, []);
test('findUnservedWishes: both', wishes, { [networks]: 'tke-route-eni', [nominatedVpcIp]: '10.0.0.9' }, true, [
  'AnnotationInvalid',
  'NoAddressOnSuperNode',
]);
