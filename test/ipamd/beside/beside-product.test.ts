/** ipamd in a cluster in which the product's own runs, or appears. */
import test from 'ava';
import type { KubeObject } from '../../../kube/kube-client.ts';
import { PODS } from '../../../kube/resource-types.ts';
import { type ShellScene, shellScene } from '../shell/shell-scene.ts';

const REF = { namespace: 'kube-system', name: 'tke-eni-ipamd-7d5f-x' };
const OF_PRODUCT: KubeObject = {
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { ...REF, labels: { 'k8s-app': 'tke-eni-ipamd' } },
  spec: {
    terminationGracePeriodSeconds: 0,
    containers: [{ name: 'tke-eni-ipamd', image: 'ccr.example.com/tkeimages/tke-eni-ipamd:v3.8.2' }],
  },
  status: { phase: 'Running' },
};

async function runProduct({ clock, kube }: ShellScene): Promise<void> {
  await clock.run(kube.create(PODS, OF_PRODUCT));
}

async function endProduct({ clock, kube }: ShellScene): Promise<void> {
  await clock.run(kube.delete(PODS, REF));
}

test('ipamd: writes nothing and calls no cloud while the product runs, and begins when it is gone', async (t) => {
  const scene = await shellScene();
  await runProduct(scene);
  await scene.join('n1');
  const before = scene.server.api.store.snapshot();
  const ipamd = await scene.start();
  await scene.clock.advance(120_000);
  t.deepEqual(scene.server.api.store.snapshot(), before);
  t.deepEqual(scene.host.seen, []);
  t.regex(
    ipamd.readiness() ?? '',
    /the product's own ipamd runs \(kube-system\/tke-eni-ipamd-7d5f-x\).*scale its workload to 0/,
  );
  t.regex(await scene.clock.run(ipamd.metrics.registry.metrics()), /problem\{kind="BesideProduct",/);
  await endProduct(scene);
  await scene.until(() => scene.nec('n1') !== undefined && ipamd.isLeading);
  await scene.until(() => ipamd.readiness() === undefined);
  t.notRegex(await scene.clock.run(ipamd.metrics.registry.metrics()), /kind="BesideProduct"/);
  await scene.clock.run(ipamd.close());
});

test('ipamd: a leader ends its work within seconds when the product appears, with an event, and goes on after it', async (t) => {
  const scene = await shellScene();
  await scene.join('n1');
  const ipamd = await scene.start();
  await scene.until(() => scene.nec('n1') !== undefined && ipamd.isLeading);
  await runProduct(scene);
  await scene.clock.advance(20_000);
  t.false(ipamd.isLeading);
  const calls = scene.host.seen.length;
  await scene.join('n2');
  await scene.clock.advance(120_000);
  t.is(scene.nec('n2'), undefined);
  t.is(scene.host.seen.length, calls);
  const told = scene.server.objects('events').filter((event) => event['reason'] === 'BesideProduct');
  t.is(told.length, 1);
  await endProduct(scene);
  await scene.until(() => scene.nec('n2') !== undefined && ipamd.isLeading);
  await scene.clock.run(ipamd.close());
});

test('ipamd: starts beside what a person says is no product', async (t) => {
  const scene = await shellScene();
  await runProduct(scene);
  await scene.join('n1');
  const ipamd = await scene.start({ flags: ['--beside-product=ignore'] });
  await scene.until(() => scene.nec('n1') !== undefined && ipamd.isLeading);
  await scene.clock.run(ipamd.close());
  t.pass();
});

test('ipamd: waits for an API server that does not answer before it is sure to be alone', async (t) => {
  const scene = await shellScene();
  await scene.join('n1');
  const { heal } = scene.server.partition('ipamd');
  const ipamd = await scene.start();
  await scene.clock.advance(60_000);
  t.false(ipamd.isLeading);
  heal();
  await scene.until(() => scene.nec('n1') !== undefined && ipamd.isLeading);
  await scene.clock.run(ipamd.close());
});
