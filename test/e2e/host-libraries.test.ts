import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { CONFLIST_FILE } from '../../agent/install/conflist.ts';
import { UNUSABLE_MARKER } from '../../cni-plugins/launcher/names.ts';
import { createTestVpc } from '../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../tools/build.ts';
import { awaitRefusal } from '../support/agent-process.ts';
import { type CniCall, execCni } from '../support/exec-cni.ts';
import { DIST_BIN_DIR, hasLauncher } from '../support/executables.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';
import { createHostRoot } from './support/host-root.ts';
import { OUR_PLUGINS, SceneNode, type ScenePod } from './support/scene-node.ts';

test.before(async () => {
  await buildExecutables(['tke-route-eni', 'tke-eni-agent']);
});

/** A node whose host lacks libraries. The agent has its own, as in its container. */
async function openNode(t: ExecutionContext, without: readonly string[], flags: Readonly<Record<string, string>> = {}) {
  t.timeout(120_000);
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [{ id: 'subnet-a', cidr: '10.0.1.0/24' }],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const dir = createTempDir('host-libraries');
  const host = createHostRoot(join(DIST_BIN_DIR, 'tke-route-eni'), without, dir.path);
  const eni = await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-a' });
  await vpc.assignIps('eni-1', 2);
  const node = new SceneNode({
    ...{ vpc, name: 'n1', dir: dir.path, ruleMode: 'compact', enis: [eni], wrap: host.wrapAgent },
    flags: { 'plugin-dir': DIST_BIN_DIR, 'reference-plugin-dir': '', 'host-root': host.path, ...flags },
  });
  node.writeSupply();
  t.teardown(async () => {
    await node.killAgent().catch(() => {});
    await vpc.close();
    host.close();
    dir.close();
  });
  const binDir = dir.join('cni-bin');
  const call = (plugin: string, command: CniCall['command'], pod?: ScenePod) =>
    execCni({
      binary: host.execOnHost(join(binDir, plugin)),
      command,
      conf: node.conf(),
      netns: node.netns.path,
      env: {
        CNI_PATH: binDir,
        ...(pod && { CNI_CONTAINERID: pod.containerId, CNI_NETNS: pod.netns.path, CNI_IFNAME: 'eth0' }),
      },
    });
  return { vpc, dir, host, node, binDir, call, conflist: dir.join('cni-conf', CONFLIST_FILE) };
}

const awaitConflist = (path: string, logs: () => string) =>
  waitUntil(() => existsSync(path), { what: path, timeoutMs: 30_000, everyMs: 50, explain: logs });

test('executables: run on a host without libatomic, which comes with them', async (t) => {
  const { vpc, node, host, binDir, call, conflist } = await openNode(t, ['libatomic.so.1']);
  const agent = await node.startAgent();
  await awaitConflist(conflist, agent.logs);
  t.notRegex(agent.logs(), /executables (do not run|could not be tried)/);
  t.deepEqual(readdirSync(join(binDir, 'tke-eni-lib')), ['libatomic.so.1']);
  t.false(readdirSync(host.path, { recursive: true }).some((path) => /lib\/.*libatomic/.test(String(path))));

  for (const plugin of OUR_PLUGINS) {
    const version = await call(plugin, 'VERSION');
    t.is(version.exitCode, 0, `${plugin}: ${version.stderr}`);
    t.true(Array.isArray(version.result?.['supportedVersions']), plugin);
  }
  const pod = await node.newPod();
  const added = await call('tke-route-eni', 'ADD', pod);
  t.is(added.exitCode, 0, `${added.stdout}${added.stderr}`);
  t.true(await pod.netns.ping(vpc.outside.ip), 'the Pod has its network');
  const deleted = await call('tke-route-eni', 'DEL', pod);
  t.is(deleted.exitCode, 0, `${deleted.stdout}${deleted.stderr}`);
});

test('agent: turns no Pods to itself while the host lacks a library, names it, and goes on when it is there', async (t) => {
  const { node, host, call, conflist } = await openNode(t, ['libstdc++.so.6'], { 'cni-launcher': 'off' });
  const agent = await node.startAgent({ until: 'listening' });
  const refused = /libstdc\+\+\.so\.6: cannot open shared object file[^\n]*"msg":"executables do not run on the host/;
  await waitUntil(() => refused.test(agent.logs()), {
    ...{ what: 'the trial', timeoutMs: 30_000, everyMs: 50 },
    explain: agent.logs,
  });
  await t.notThrowsAsync(awaitRefusal(agent, /do not run on this node: libstdc\+\+\.so\.6/));
  t.false(existsSync(conflist));
  t.regex(
    (await call('tke-route-eni', 'VERSION')).stderr,
    /libstdc\+\+\.so\.6: cannot open/,
    'as the runtime would see',
  );

  host.addLibrary('libstdc++.so.6');
  await agent.awaitUntil('ready');
  await awaitConflist(conflist, agent.logs);
  t.true(readFileSync(conflist, 'utf8').includes('tke-route-eni'));
  t.is((await call('tke-route-eni', 'VERSION')).exitCode, 0);
});

(hasLauncher ? test : test.skip)(
  'launcher: serves Pods on a host whose C library does not suffice, and answers by itself while the agent is away',
  async (t) => {
    const { vpc, node, call, conflist, binDir } = await openNode(t, ['libstdc++.so.6']);
    const agent = await node.startAgent();
    await awaitConflist(conflist, agent.logs);
    const said = /libstdc\+\+\.so\.6[^\n]*the complete CNI program does not run on the host/;
    await waitUntil(() => said.test(agent.logs()), { what: 'the log about the library', explain: agent.logs });
    t.regex(readFileSync(join(binDir, UNUSABLE_MARKER), 'utf8'), /libstdc/);
    const pod = await node.newPod();
    const added = await call('tke-route-eni', 'ADD', pod);
    t.is(added.exitCode, 0, `${added.stdout}${added.stderr}`);
    t.true(await pod.netns.ping(vpc.outside.ip), 'the Pod has its network');
    await node.killAgent();
    const refused = await call('tke-route-eni', 'DEL', pod);
    t.is(refused.exitCode, 1);
    t.like(JSON.parse(refused.stdout), { code: 11 });
    t.deepEqual(node.spooled(), []);
    await node.startAgent();
    const deleted = await call('tke-route-eni', 'DEL', pod);
    t.is(deleted.exitCode, 0, `${deleted.stdout}${deleted.stderr}`);
  },
);
