import test, { type ExecutionContext } from 'ava';
import { longTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { eventsOf, podObjects, StatefulSet, setNodeReady } from '../system/stateful-set.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';
import { ZONE } from '../system/vpc-cloud.ts';

const FAR_ZONE = 'ap-guangzhou-4';
const SUBNETS = [
  { subnetId: 'subnet-pods000a', cidr: '10.0.1.0/24' },
  { subnetId: 'subnet-pods000b', cidr: '10.0.2.0/24', zone: FAR_ZONE },
];

let system: System;
let web: StatefulSet;
let api: StatefulSet;

test.before(async () => {
  system = await createSystem({
    nodes: [{ name: 'n1' }, { name: 'n2' }, { name: 'n3' }, { name: 'far', zone: FAR_ZONE }],
    subnets: SUBNETS,
    ipamds: 1,
    ipamdFlags: { 'enable-static-ip': 'true', 'static-takeover-after': '10s', 'sync-interval': '10s' },
  });
  for (const { name } of system.nodes) {
    await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5, 60_000);
    await system.node(name).awaitReady(60_000);
  }
  web = new StatefulSet(system, { name: 'web' });
  api = new StatefulSet(system, { name: 'api' });
});
test.after.always(() => system?.close());

/** Packets of each Pod find each other one, and nobody has an address twice. */
async function assertPodsLive(t: ExecutionContext): Promise<void> {
  const pods = system.nodes.flatMap((node) => node.pods);
  t.is(new Set(pods.map(({ ip }) => ip)).size, pods.length);
  for (const [index, pod] of pods.entries()) {
    const next = pods[(index + 1) % pods.length] ?? pod;
    t.true(await pod.sandbox.netns.ping(next.ip), `${pod.name} ${pod.ip} reaches ${next.name} ${next.ip}`);
  }
}

test.serial('a rolling update: each Pod has its address back, on its node and on another one', async (t) => {
  const first = await Promise.all([0, 1, 2].map((ordinal) => web.start(ordinal, `n${ordinal + 1}`)));
  const before = first.map(({ ip }) => ip);
  t.is(new Set(before).size, 3);
  const after: string[] = [];
  // The second goes to the third's node: both ENIs are attached, so the address migrates.
  for (const [ordinal, nodeName] of [
    [2, 'n3'],
    [1, 'n3'],
    [0, 'n1'],
  ] as const) {
    after[ordinal] = (await web.restart(ordinal, nodeName)).ip;
  }
  t.deepEqual(after, before);
  const actions = system.cloud.host.model.state;
  t.truthy(actions);
  await assertPodsLive(t);
  const claim = await web.awaitClaim(1, 'bound on n3', ({ phase, nodeName }) => phase === 'Bound' && nodeName === 'n3');
  t.deepEqual(claim.ips, [before[1]]);
});

test.serial('scale down and up: the address is kept while nobody has it', async (t) => {
  const [ip] = (await web.claim(2))?.ips ?? [];
  await web.stop(2);
  await web.awaitClaim(2, 'retained', ({ phase }) => phase === 'Retained');
  // Whoever comes meanwhile gets another address.
  const others = await Promise.all([1, 2, 3, 4, 5, 6].map((n) => system.node('n3').runPod(`other-${n}`)));
  t.false(others.some((pod) => pod.ip === ip));
  t.is((await web.start(2, 'n2')).ip, ip ?? '');
  await Promise.all(others.map((pod) => system.node('n3').removePod(pod.name)));
  await assertPodsLive(t);
});

longTest.serial('a force-deleted Pod: its namesake waits for the sandbox that still has the address', async (t) => {
  const [ip] = (await web.claim(0))?.ips ?? [];
  const end = await web.forceStop(0);
  const started = web.start(0, 'n2', 90_000);
  await waitUntil(() => podObjects(system).some(({ metadata }) => metadata.name === 'web-0'), { what: 'web-0 again' });
  // Whatever is tried for two seconds, the address stays with the sandbox that has it.
  for (let look = 0; look < 20; look++) {
    t.is(system.cloud.vpc.eniOf(ip ?? '') !== undefined, true);
    t.false(system.node('n2').pods.some((pod) => pod.ip === ip));
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  await end();
  t.is((await started).ip, ip ?? '');
  await assertPodsLive(t);
});

test.serial('a node is lost: its Pod runs elsewhere with the same address', async (t) => {
  const lost = web.nodeOf(2) ?? '';
  const [ip] = (await web.claim(2))?.ips ?? [];
  await system.node(lost).killAgent();
  await setNodeReady(system, lost, false);
  const end = await web.forceStop(2);
  const pod = await web.start(2, lost === 'n1' ? 'n3' : 'n1', 90_000);
  t.is(pod.ip, ip ?? '');
  t.true(await pod.sandbox.netns.ping(system.node('n3').pods[0]?.ip ?? ''));
  // It comes back: what it has of the address leads nobody astray.
  await system.node(lost).startAgent();
  await setNodeReady(system, lost, true);
  await system.node(lost).awaitReady(60_000);
  await end();
  await assertPodsLive(t);
});

longTest.serial('a node of another zone: the Pod waits, and says why; back in its zone it runs', async (t) => {
  const [ip] = (await api.start(0, 'n1').then((pod) => [pod.ip])) ?? [];
  await api.stop(0);
  const waiting = api.start(0, 'far', 8_000).then(
    () => 'it runs',
    (error: unknown) => String(error),
  );
  await api.awaitClaim(0, 'says why', ({ message }) => message.includes(ZONE) && message.includes(FAR_ZONE), 20_000);
  t.not(await waiting, 'it runs');
  t.true(eventsOf(system, 'Pod').some((line) => line.includes('api-0') && line.includes(FAR_ZONE)));
  await system.cluster.removePod('api-0');
  t.is((await api.start(0, 'n2')).ip, ip ?? '');
});

longTest.serial('two sets swap their nodes', async (t) => {
  const [one, other] = [await web.claim(0), await api.claim(0)];
  const [nodeOne, nodeOther] = [web.nodeOf(0) ?? '', 'n1'];
  await Promise.all([web.stop(0), api.stop(0)]);
  const [webPod, apiPod] = await Promise.all([web.start(0, nodeOther, 90_000), api.start(0, nodeOne, 90_000)]);
  t.deepEqual([webPod.ip], one?.ips ?? []);
  t.deepEqual([apiPod.ip], other?.ips ?? []);
  await assertPodsLive(t);
});

longTest.serial('kubectl delete vipc: nothing while the Pod lives, the address goes with it', async (t) => {
  t.timeout(240_000);
  const [ip = ''] = (await api.claim(0))?.ips ?? [];
  await api.giveUp(0);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  t.not(system.cloud.vpc.eniOf(ip), undefined);
  await api.stop(0);
  await waitUntil(async () => (await api.claim(0)) === undefined, { what: 'no claim api-0', timeoutMs: 180_000 });
  await waitUntil(() => system.cloud.vpc.eniOf(ip) === undefined, { what: `${ip} is given back`, timeoutMs: 30_000 });
  t.is(
    system.cluster.server.objects('vpcips', 'networking.tke.cloud.tencent.com').find((vip) => vip.metadata.name === ip),
    undefined,
  );
});

test.serial('at the end cloud, objects and kernels agree', async (t) => {
  t.deepEqual(await auditThreeWays(system), []);
});
