import test from 'ava';
import { partOf } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import type { Cut } from '../system/door.ts';
import { countAssigned, createSystem, type System } from '../system/system.ts';
import type { SystemNode } from '../system/system-node.ts';
import { runCli } from './support/run-cli.ts';

const AGENT_USER = 'system:serviceaccount:kube-system:tke-eni-agent';

let system: System;

test.before(async () => {
  system = await createSystem({ nodes: [{ name: 'n1' }, { name: 'n2' }] });
  for (const { name } of system.nodes) await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= 5);
  await Promise.all(system.nodes.map((node) => node.awaitReady()));
});
test.after.always(() => system?.close());

/** What a probe of the kubelet sees: status and text. */
async function readyz({ scene }: SystemNode): Promise<string> {
  const line = ['curl', '-s', '-m', '5', '-w', ' %{http_code}', 'http://127.0.0.1:61680/readyz'];
  const [, text = '', code = ''] = /^([\s\S]*) (\d+)$/.exec((await scene.netns.tryRun(line)).stdout) ?? [];
  return `${code} ${text}`;
}

const CUTS: readonly Cut[] = ['silent', 'refused'];

for (const cut of partOf(CUTS, (one) => one === 'silent')) {
  test.serial(`an agent without the API server (${cut}) serves ADD and DEL, after its own restart too`, async (t) => {
    const node = system.node('n1');
    const before = await node.runPod(`before-${cut}`);
    // Made while the API server could be reached: their sandboxes come later.
    for (const name of ['one', 'two', 'three']) await system.cluster.addPod(`${name}-${cut}`, 'n1');
    await node.kube.cut(cut);
    const one = await node.runPod(`one-${cut}`, { isOffline: true });
    await node.removePod(before.name, { isOffline: true });
    const two = await node.runPod(`two-${cut}`, { isOffline: true });
    await node.killAgent();
    await node.startAgent('ready');
    t.regex(await readyz(node), /^503 the API server did not answer since this agent started/, 'it stops a rollout');
    const three = await node.runPod(`three-${cut}`, { isOffline: true });
    await node.removePod(two.name, { isOffline: true });
    t.is(new Set([one.ip, three.ip]).size, 2);
    t.true(await one.sandbox.netns.ping(three.ip));
    t.deepEqual(await node.violations(), []);
    await node.kube.heal();
    await waitUntil(async () => /^200 /.test(await readyz(node)), {
      what: 'an agent that is ready',
      timeoutMs: 60_000,
    });
    for (const name of [before.name, two.name]) await system.cluster.removePod(name);
    for (const pod of [one, three]) await system.cluster.setPodRunning(pod.name, pod.ip);
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
    for (const pod of [one, three]) await node.removePod(pod.name);
    t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
  });
}

test.serial('an agent that may not write its object says so on its node, until it may', async (t) => {
  const node = system.node('n1');
  const place = { netns: node.scene.netns, ...node.scene.agent };
  // Addresses of the Pods that went cool down, and are asked for until then.
  const isAtRest = async (): Promise<boolean> => !/cooling|wanted:/.test((await runCli(place, 'status')).stdout);
  await waitUntil(isAtRest, { what: 'a pool at rest', timeoutMs: 60_000 });
  t.is((await runCli(place, 'status')).code, 0);
  const ofAgent = { verbs: ['update'], resources: ['nodeeniconfigs'], user: AGENT_USER, name: 'n1' };
  const action = { kind: 'status', code: 403, reason: 'Forbidden' } as const;
  const permit = system.cluster.server.api.faults.add({ ...ofAgent, action });
  const pod = await node.runPod('unasked');
  const says = /the API server refuses to update nodeeniconfigs \(403 FORBIDDEN, since /;
  await waitUntil(async () => says.test((await runCli(place, 'status')).stdout), { what: 'status', timeoutMs: 30_000 });
  const status = await runCli(place, 'status');
  t.is(status.code, 1, status.stdout);
  t.regex(status.stdout, /wanted: 6, asked for: 5;/);
  t.regex((await runCli(place, 'doctor', '--only', 'agent')).stdout, /api-refused/);
  t.regex((await runCli(place, 'explain', 'nobody')).stderr, says);
  t.regex(await readyz(node), /^503 the API server refuses to update nodeeniconfigs/);
  permit();
  await waitUntil(async () => (await runCli(place, 'status')).code === 0, { what: 'status', timeoutMs: 60_000 });
  t.regex(await readyz(node), /^200 /);
  await node.removePod(pod.name);
  t.deepEqual(await auditThreeWays(system, { withinMs: 60_000 }), []);
});
