import test from 'ava';
import { WARM_TARGET_ANNOTATION } from '../../../crd/node-eni-config-fields.ts';
import { decodeNec } from '../../../ipamd/cache/decode-nec.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

const ENI = {
  eniID: 'eni-1',
  mac: '52:54:00:00:00:01',
  state: 'Attached',
  primaryIP: '10.0.8.2',
  gateway: '10.0.8.1',
  subnetCIDR: '10.0.8.0/24',
  addresses: [{ ip: '10.0.8.17', assignmentID: 'a1', state: 'Assigned' }],
};

function nec(parts: Readonly<Record<string, unknown>>, metadata: Readonly<Record<string, unknown>> = {}): KubeObject {
  return {
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'NodeENIConfig',
    metadata: { name: 'n1', resourceVersion: '7', ...metadata },
    ...parts,
  };
}

test('decodeNec: keeps one copy of what it knows', (t) => {
  const entry = decodeNec(nec({ spec: { desiredRouteENIIP: 5 }, status: { supplyEpoch: 3, eniInfos: [ENI] } }));
  t.deepEqual(entry.faults, []);
  t.is(entry.object['status'], entry.decoded?.status);
  t.is(entry.decoded?.object, entry.object);
  t.like(entry.decoded?.status, { supplyEpoch: 3, eniInfos: [{ eniID: 'eni-1' }] });
});

test('decodeNec: keeps fields that it does not know, to be written back', (t) => {
  const entry = decodeNec(nec({ spec: { futureField: [1] }, status: { eniInfos: [{ ...ENI, futureState: 'x' }] } }));
  t.like(entry.object, { spec: { futureField: [1] }, status: { eniInfos: [{ futureState: 'x' }] } });
  t.deepEqual(entry.faults, []);
});

test('decodeNec: leaves out fields that people got wrong, names them, and reads the rest', (t) => {
  const spec = { subnetIDs: 'subnet-1', routeENIIPMinWarmTarget: -1, desiredRouteENIIP: 7 };
  const entry = decodeNec(nec({ spec, status: { eniInfos: [ENI] } }));
  t.deepEqual(entry.faults.map((fault) => fault.path).toSorted(), ['spec.routeENIIPMinWarmTarget', 'spec.subnetIDs']);
  t.deepEqual(entry.decoded?.spec, { desiredRouteENIIP: 7 });
  t.like(entry.decoded?.status, { eniInfos: [{ eniID: 'eni-1' }] });
  // What is written back is what the person wrote, not what we made of it.
  t.deepEqual(entry.object['spec'], spec);
});

test('decodeNec: leaves out a warm maximum below its minimum', (t) => {
  const spec = { routeENIIPMinWarmTarget: 9, routeENIIPMaxWarmTarget: 5, maxRouteENI: 2 };
  const entry = decodeNec(nec({ spec }));
  t.is(entry.decoded?.spec?.maxRouteENI, 2);
  t.true(entry.faults.length > 0);
});

test('decodeNec: does not let a wrong annotation take anything away', (t) => {
  const annotations = { [WARM_TARGET_ANNOTATION.min]: 'many', 'other/one': 'x' };
  const entry = decodeNec(nec({ spec: { desiredRouteENIIP: 7 } }, { annotations }));
  t.deepEqual(entry.decoded?.spec, { desiredRouteENIIP: 7 });
  t.deepEqual(entry.object.metadata.annotations, annotations);
});

test('decodeNec: reads a spec that is no object as an empty one', (t) => {
  const entry = decodeNec(nec({ spec: 'nonsense', status: { supplyEpoch: 2 } }));
  t.deepEqual([entry.decoded?.spec, entry.decoded?.status], [{}, { supplyEpoch: 2 }]);
});

for (const [what, status] of [
  ['a status of another shape', { eniInfos: 'none' }],
  ['an address twice', { eniInfos: [{ ...ENI, addresses: [ENI.addresses[0], ENI.addresses[0]] }] }],
] as const) {
  test(`decodeNec: trusts nothing of an object with ${what}`, (t) => {
    const entry = decodeNec(nec({ status }));
    t.is(entry.decoded, undefined);
    t.true(entry.faults.length > 0);
    t.deepEqual(entry.object['status'], status);
  });
}
