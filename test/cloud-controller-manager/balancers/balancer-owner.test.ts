import test from 'ava';
import {
  groupListenerNameOf,
  listenerNameOf,
  ownerOf,
  uidOf,
} from '../../../cloud-controller-manager/balancers/balancer-owner.ts';
import { OWNER_TAG } from '../../../crd/cloud-tags.ts';

test('a Service and an Ingress with the same uid own other load balancers and other listeners', (t) => {
  t.is(ownerOf('cls-1', 'u-1', 'service'), 'cls-1/service/u-1');
  t.is(ownerOf('cls-1', 'u-1', 'ingress'), 'cls-1/ingress/u-1');
  t.not(listenerNameOf('cls-1', 'u-1', 'service'), listenerNameOf('cls-1', 'u-1', 'ingress'));
});

test('the sweep of orphans tells what was made for a Service from what was made for an Ingress', (t) => {
  t.is(uidOf('cls-1', { [OWNER_TAG]: ownerOf('cls-1', 'u-1', 'service') }, 'service'), 'u-1');
  t.is(uidOf('cls-1', { [OWNER_TAG]: ownerOf('cls-1', 'u-1', 'ingress') }, 'service'), undefined);
  t.is(uidOf('cls-1', { [OWNER_TAG]: ownerOf('cls-1', 'u-1', 'ingress') }, 'ingress'), 'u-1');
  for (const owner of ['cls-12/service/u-1', 'cls-1/service/', undefined])
    t.is(uidOf('cls-1', owner === undefined ? {} : { [OWNER_TAG]: owner }, 'service'), undefined);
});

test('the name of a group is of one load balancer of one cluster', (t) => {
  const names = [
    groupListenerNameOf('cls-1', 'lb-1'),
    groupListenerNameOf('cls-1', 'lb-2'),
    groupListenerNameOf('cls-2', 'lb-1'),
    listenerNameOf('cls-1', 'lb-1', 'ingress'),
  ];
  t.is(new Set(names).size, names.length);
});
