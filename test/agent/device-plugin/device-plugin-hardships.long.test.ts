// Each case has a kubelet of its own, and waits for it to die, to come back, or to say nothing.
import { readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import test from 'ava';
import type { KubeClient, KubeObject } from '../../../kube/kube-client.ts';
import { NODES } from '../../../kube/resource-types.ts';
import { systemClock } from '../../../runtime/clock.ts';
import { serviceAccountUser } from '../../../sim/kube-api/auth/tokens.ts';
import { startInProcessApi } from '../../../sim/kube-api/in-process.ts';
import { seedClusterRole } from '../../../sim/kube-api/seed-roles.ts';
import { Child } from '../../../sim/support/child.ts';
import { VirtualClock } from '../../support/virtual-clock.ts';
import { waitUntil } from '../../support/wait-until.ts';
import { ENI_IP, openScene, told } from './plugin-scene.ts';

const RESTARTS = 200;
/** The machine may have much else to do. */
const PATIENCE_MS = 60_000;
const RBAC = { group: 'rbac.authorization.k8s.io', version: 'v1', isNamespaced: false } as const;

test('startDevicePlugin: is there again after each of 200 restarts of kubelet, and leaks nothing', async (t) => {
  t.timeout(300_000);
  const scene = openScene(t);
  scene.plugin();
  let settled = 0;
  for (let round = 0; round < RESTARTS; round++) {
    const kubelet = await scene.kubelet();
    await told(kubelet, 9);
    if (round === 20) settled = openFiles();
    if (round < RESTARTS - 1) await kubelet.kill();
    else t.is(kubelet.openWatches, 1);
  }
  t.deepEqual(scene.sockets().toSorted(), ['kubelet.sock', 'tke-eni-ip.sock']);
  t.true(openFiles() <= settled + 10, `${openFiles()} open files, ${settled} after 20 restarts`);
});

test('startDevicePlugin: follows kubelet.sock while the kubelet before lives on', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  const before = await scene.kubelet();
  await told(before, 9);
  const after = await scene.kubelet();
  await told(after, 9);
  await waitUntil(() => before.openWatches === 0, { what: 'end of the old watch', timeoutMs: PATIENCE_MS });
  t.is(after.openWatches, 1);
});

test('startDevicePlugin: leaves a kubelet that hangs in Register as soon as another is there', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  const hanging = await scene.kubelet('hang');
  await waitUntil(() => hanging.registrations.length === 1, { what: 'registration', timeoutMs: PATIENCE_MS });
  await told(await scene.kubelet(), 9);
  t.is(hanging.registrations.length, 1);
});

test('startDevicePlugin: tries on, more and more seldom, while kubelet refuses', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  const kubelet = await scene.kubelet('refuse');
  await waitUntil(() => kubelet.registrations.length >= 6, { what: 'six attempts', timeoutMs: PATIENCE_MS });
  const [first, sixth] = [kubelet.registrations[0], kubelet.registrations[5]].map((one) => one?.atMs ?? 0);
  // 50, 100, 200, 400 and 800 ms less what chance takes off; no less, however slow the machine is.
  t.true((sixth ?? 0) - (first ?? 0) >= 1_000);
  kubelet.setMode('accept');
  await told(kubelet, 9);
  t.regex(await scene.metrics(), /registrations_total\{outcome="refused"\} [6-9]/);
});

test('startDevicePlugin: registers again when kubelet ends the watch, and not without a pause', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  const kubelet = await scene.kubelet('drop');
  await waitUntil(() => kubelet.registrations.length >= 4, { what: 'four registrations', timeoutMs: PATIENCE_MS });
  await sleep(1_000);
  t.true(kubelet.registrations.length < 12, `${kubelet.registrations.length} registrations`);
  kubelet.setMode('accept');
  await told(kubelet, 9);
});

test('startDevicePlugin: serves again when its own socket and the folder were taken away', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  const first = await scene.kubelet();
  await told(first, 9);
  await first.kill();
  scene.remove('device-plugins');
  await sleep(50);
  await told(await scene.kubelet(), 9);
  t.deepEqual(scene.sockets().toSorted(), ['kubelet.sock', 'tke-eni-ip.sock']);
});

test('startDevicePlugin: makes its socket again when somebody removes it, and stays registered', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  const kubelet = await scene.kubelet();
  await told(kubelet, 9);
  scene.remove('device-plugins/tke-eni-ip.sock');
  await waitUntil(() => scene.sockets().includes('tke-eni-ip.sock'), { what: 'its socket', timeoutMs: PATIENCE_MS });
  t.deepEqual([kubelet.registrations.length, kubelet.openWatches], [1, 1]);
});

test('startDevicePlugin: takes the place of a plugin that was killed', async (t) => {
  t.timeout(60_000);
  const scene = openScene(t);
  const kubelet = await scene.kubelet();
  const argv = (quota: number) => [
    process.execPath,
    new URL('plugin-process.ts', import.meta.url).pathname,
    scene.dir.join('kubelet'),
    String(quota),
  ];
  const first = new Child(argv(5));
  const second: Child[] = [];
  t.teardown(async () => {
    await Promise.all([first, ...second].map((child) => child.stop()));
  });
  await told(kubelet, 5);
  process.kill(first.pid, 'SIGKILL');
  await waitUntil(() => kubelet.devices(ENI_IP) === undefined, { what: 'end of the watch', timeoutMs: PATIENCE_MS });
  t.deepEqual(scene.sockets().toSorted(), ['kubelet.sock', 'tke-eni-ip.sock'], 'what a killed process leaves');
  second.push(new Child(argv(7)));
  await told(kubelet, 7);
});

test('startDevicePlugin: tells of every change, and only of changes', async (t) => {
  const scene = openScene(t);
  scene.plugin();
  const kubelet = await scene.kubelet();
  await told(kubelet, 9);
  const { tellings } = kubelet;
  for (let i = 0; i < 20; i++) scene.supply({});
  await sleep(500);
  t.is(kubelet.tellings, tellings);
  scene.supply({ stranded: 4 });
  await waitUntil(() => healthy(kubelet.devices(ENI_IP)) === 5, {
    what: 'five healthy devices',
    timeoutMs: PATIENCE_MS,
  });
  t.is(kubelet.devices(ENI_IP)?.length, 9);
  t.regex(await scene.metrics(), /devices\{resource="tke.cloud.tencent.com\/eni-ip",health="unhealthy"\} 4/);
  scene.supply({});
  await waitUntil(() => healthy(kubelet.devices(ENI_IP)) === 9, {
    what: 'nine healthy devices',
    timeoutMs: PATIENCE_MS,
  });
  scene.supply({ allocatable: 12, quota: 20 });
  await told(kubelet, 12);
});

test('startDevicePlugin: keeps what Pods hold when devices get fewer, and writes it to the Node', async (t) => {
  const { admin, agent } = await apiWithAgentRole();
  const scene = openScene(t);
  const kubelet = await scene.kubelet();
  scene.plugin({ node: { kube: agent, name: 'n1' } });
  await told(kubelet, 9);
  t.is(await nodeStatus(admin), undefined, 'more devices are for kubelet to tell');
  kubelet.hold(ENI_IP, ['eni-ip-8', 'eni-ip-4']);
  scene.supply({ allocatable: 3 });
  const devices = await told(kubelet, 3);
  t.deepEqual(
    devices.map(({ ID }) => ID),
    ['eni-ip-0', 'eni-ip-4', 'eni-ip-8'],
  );
  const status = await waitUntil(() => nodeStatus(admin), { what: 'node status', timeoutMs: PATIENCE_MS });
  t.like(status, { capacity: { [ENI_IP]: '3' }, allocatable: { [ENI_IP]: '3' } });
});

test('DevicePlugin.close: keeps schedulers from the node before kubelet is left without devices', async (t) => {
  const { admin, agent } = await apiWithAgentRole();
  const scene = openScene(t);
  const kubelet = await scene.kubelet();
  const whenWritten: unknown[] = [];
  const clock = {
    ...systemClock,
    sleep: async (ms: number, signal?: AbortSignal) => {
      const status = await nodeStatus(admin);
      if (signal === undefined) whenWritten.push({ status, devices: kubelet.devices(ENI_IP)?.length });
      // The first number is written over by kubelet, which knows nothing of it.
      const body = { status: { allocatable: { [ENI_IP]: '9' } } };
      if (signal === undefined && whenWritten.length === 1)
        await admin.patch(NODES, { name: 'n1' }, { kind: 'merge', body, subresource: 'status' });
      return systemClock.sleep(ms, signal);
    },
  };
  const plugin = scene.plugin({ node: { kube: agent, name: 'n1' }, clock });
  await told(kubelet, 9);
  await plugin.close();
  const written = { status: { capacity: { [ENI_IP]: '9' }, allocatable: { [ENI_IP]: '0' } }, devices: 9 };
  t.deepEqual(whenWritten, [written, written]);
  t.deepEqual(await nodeStatus(admin), written.status);
  await waitUntil(() => kubelet.devices(ENI_IP) === undefined, { what: 'end of the watch', timeoutMs: PATIENCE_MS });
});

test('DevicePlugin.close: writes nothing when kubelet was never told of devices', async (t) => {
  const { admin, agent } = await apiWithAgentRole();
  const scene = openScene(t);
  await scene.plugin({ node: { kube: agent, name: 'n1' } }).close();
  t.is(await nodeStatus(admin), undefined);
});

test('startDevicePlugin: registers nothing while nobody has said what the node may have', async (t) => {
  const scene = openScene(t);
  scene.supply(undefined);
  scene.plugin();
  const kubelet = await scene.kubelet();
  await sleep(500);
  t.is(kubelet.registrations.length, 0);
  scene.supply({});
  await told(kubelet, 9);
});

test('startDevicePlugin: tells people when there is no kubelet for a minute, once', async (t) => {
  const clock = new VirtualClock();
  const events: string[] = [];
  const scene = openScene(t);
  const plugin = scene.plugin({
    clock,
    events: { report: (type, reason, text) => events.push(`${type} ${reason} ${text}`) },
  });
  await waitUntil(
    async () => {
      await clock.advance(1_000);
      return events.length > 0;
    },
    { what: 'event', timeoutMs: PATIENCE_MS },
  );
  t.true(clock.monotonicMs() >= 60_000);
  await clock.advance(600_000);
  t.is(events.length, 1);
  t.regex(events[0] ?? '', /^Warning DevicePlugin tke.cloud.tencent.com\/eni-ip is not registered.*kubelet.sock/);
  await plugin.close();
});

test('startDevicePlugin: serves a kubelet of before 1.26, which sends a path for a host', async (t) => {
  const scene = openScene(t);
  const kubelet = await scene.kubelet('accept', true);
  scene.plugin();
  const devices = await told(kubelet, 9);
  const allocated = await kubelet.ask(ENI_IP, 'Allocate', { container_requests: [{ devices_ids: [devices[0]?.ID] }] });
  t.is((allocated['container_responses'] as readonly unknown[]).length, 1);
  await kubelet.kill();
  for (let round = 0; round < 20; round++) {
    const next = await scene.kubelet('accept', true);
    await told(next, 9);
    await next.kill();
  }
  await told(await scene.kubelet('accept', false), 9);
  t.pass();
});

function healthy(devices: readonly { readonly health: string }[] | undefined): number {
  return (devices ?? []).filter(({ health }) => health === 'Healthy').length;
}

/** An API server with the Node `n1`, and a client that may do what the agent's published role lets it. */
async function apiWithAgentRole(): Promise<{ readonly admin: KubeClient; readonly agent: KubeClient }> {
  const api = startInProcessApi({ clock: systemClock, authorization: 'rbac' });
  const admin = api.client({ userAgent: 'test' });
  await admin.create(NODES, { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } });
  // A role of the seeds, read from YAML: an object of the API.
  await admin.create(
    { ...RBAC, plural: 'clusterroles', kind: 'ClusterRole' },
    seedClusterRole('tke-eni-agent') as KubeObject,
  );
  await admin.create(
    { ...RBAC, plural: 'clusterrolebindings', kind: 'ClusterRoleBinding' },
    {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRoleBinding',
      metadata: { name: 'agent' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'tke-eni-agent' },
      subjects: [{ kind: 'ServiceAccount', namespace: 'kube-system', name: 'tke-eni-agent' }],
    },
  );
  return { admin, agent: api.client({ user: serviceAccountUser('kube-system', 'tke-eni-agent'), userAgent: 'agent' }) };
}

/** Undefined while nobody has written any. */
async function nodeStatus(kube: KubeClient): Promise<unknown> {
  const node = await kube.get(NODES, { name: 'n1' });
  const status = node?.['status'] ?? {};
  return Object.keys(status).length === 0 ? undefined : status;
}

function openFiles(): number {
  return readdirSync('/proc/self/fd').length;
}
