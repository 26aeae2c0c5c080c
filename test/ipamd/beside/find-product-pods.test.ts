import test from 'ava';
import { findProductPods } from '../../../ipamd/beside/product-guard.ts';
import type { KubeObject } from '../../../kube/kube-client.ts';

const OURS = { 'k8s-app': 'tke-eni-ipamd', 'app.kubernetes.io/name': 'tke-eni' };

function pod(labels: Readonly<Record<string, string>>, images: Readonly<Record<string, string>>, phase = 'Running') {
  const containers = Object.entries(images).map(([name, image]) => ({ name, image }));
  const metadata = { namespace: 'kube-system', name: 'p', labels };
  return { apiVersion: 'v1', kind: 'Pod', metadata, spec: { containers }, status: { phase } } as KubeObject;
}

const found = test.macro((t, one: KubeObject, want: readonly string[]) => t.deepEqual(findProductPods([one]), want));
const OF_PRODUCT = pod(
  { 'k8s-app': 'tke-eni-ipamd' },
  { 'tke-eni-ipamd': 'ccr.example.com/tkeimages/tke-eni-ipamd:v3.8.2' },
);

test('findProductPods: one of the product', found, OF_PRODUCT, ['kube-system/p']);
test('findProductPods: one that has not begun, and one that nobody knows of', (t) => {
  for (const phase of ['Pending', 'Unknown'])
    t.deepEqual(findProductPods([pod({ app: 'tke-eni-ipamd' }, {}, phase)]), ['kube-system/p'], phase);
});
test('findProductPods: none that is ended', (t) => {
  for (const phase of ['Succeeded', 'Failed'])
    t.deepEqual(findProductPods([pod({ 'k8s-app': 'tke-eni-ipamd' }, {}, phase)]), [], phase);
});
test('findProductPods: not ours', found, pod(OURS, { ipamd: 'mirror.example.com/tke-eni-ipamd:0.2.0' }), []);
test(
  'findProductPods: not ours with a container that something put beside',
  found,
  pod(OURS, { ipamd: 'tke-eni-ipamd:0.2.0', 'istio-proxy': 'istio/proxyv2:1.2', log: 'ipamd.example.com/fluent-bit' }),
  [],
);
test(
  'findProductPods: ours with a container of the product, as manifests over its workload make it',
  found,
  pod(OURS, { ipamd: 'tke-eni-ipamd:0.2.0', 'tke-eni-ipamd': 'ccr.example.com:5000/tkeimages/tke-eni-ipamd@sha256:0' }),
  ['kube-system/p, container tke-eni-ipamd'],
);
test('findProductPods: whatever shape a Pod has', (t) => {
  const odd = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p', labels: OURS },
    spec: { containers: [1, { image: 7 }] },
  };
  t.deepEqual(findProductPods([odd as unknown as KubeObject]), []);
});
