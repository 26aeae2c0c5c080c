import test from 'ava';
import { DIRECT_ENI_RESOURCE, ENI_IP_RESOURCE } from '../../crd/names.ts';
import { hasPodEnded, networkOfPod, readPodIps, requestsResource } from '../../crd/pod-fields.ts';
import { type NetworkName, readPodNetworks } from '../../crd/pod-networks.ts';

test('readPodIps: the list wins, in its order', (t) => {
  t.deepEqual(readPodIps({ podIP: '10.0.0.5', podIPs: [{ ip: '10.0.0.5' }, { ip: 'fd00::5' }] }), [
    '10.0.0.5',
    'fd00::5',
  ]);
});
test('readPodIps: a kubelet of one family writes one field', (t) => {
  t.deepEqual(readPodIps({ podIP: '10.0.0.5' }), ['10.0.0.5']);
});
test('readPodIps: what is malformed counts as absent', (t) => {
  for (const status of [{}, { podIP: 5 }, { podIPs: 'x' }, { podIPs: [null, { ip: '' }, { ip: 4 }] }]) {
    t.deepEqual(readPodIps(status), []);
  }
});

test('hasPodEnded: by the two phases that are final', (t) => {
  const ended = ['Pending', 'Running', 'Succeeded', 'Failed', 'Unknown', undefined].filter((phase) =>
    hasPodEnded({ phase }),
  );
  t.deepEqual(ended, ['Succeeded', 'Failed']);
});

const specOf = (resource: string, kind: 'limits' | 'requests') => ({
  containers: [{}, { resources: { [kind]: { [resource]: '1' } } }],
});

test('requestsResource: by limits or by requests of any container', (t) => {
  t.true(requestsResource(specOf(ENI_IP_RESOURCE, 'limits'), ENI_IP_RESOURCE));
  t.true(requestsResource(specOf(ENI_IP_RESOURCE, 'requests'), ENI_IP_RESOURCE));
  t.false(requestsResource(specOf(ENI_IP_RESOURCE, 'requests'), DIRECT_ENI_RESOURCE));
  t.false(requestsResource({ containers: 'none' }, ENI_IP_RESOURCE));
});

const decides = test.macro((t, annotation: string | undefined, resource: string, network: NetworkName | undefined) => {
  t.is(networkOfPod(readPodNetworks(annotation), specOf(resource, 'requests')), network);
});

test('networkOfPod: the annotation before the resource', decides, 'tke-bridge', DIRECT_ENI_RESOURCE, 'tke-bridge');
test('networkOfPod: without it an exclusive ENI', decides, undefined, DIRECT_ENI_RESOURCE, 'tke-direct-eni');
test('networkOfPod: without it an address', decides, undefined, ENI_IP_RESOURCE, 'tke-route-eni');
test('networkOfPod: another network, and the resource', decides, 'other', ENI_IP_RESOURCE, 'tke-route-eni');
test('networkOfPod: neither', decides, '', 'cpu', undefined);
