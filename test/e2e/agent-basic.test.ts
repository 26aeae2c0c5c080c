import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { CONFLIST_FILE } from '../../agent/install/conflist.ts';
import { run, tryRun } from '../../sim/support/run.ts';
import { createTestVpc } from '../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../tools/build.ts';
import { openAgentCaller } from '../support/agent-call.ts';
import { type AgentOptions, type AgentProcess, startAgent } from '../support/agent-process.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';

const MAIN = join(import.meta.dirname, '..', '..', 'agent', 'main.ts');

/** A node with one ENI and two addresses, and the means to run agents on it. */
async function openNode(t: ExecutionContext) {
  await buildExecutables(['tke-eni-agent']);
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [{ id: 'subnet-a', cidr: '10.0.1.0/24' }],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const dir = createTempDir('agent');
  const agents: AgentProcess[] = [];
  t.teardown(async () => {
    for (const agent of agents) await agent.child.stop('SIGKILL');
    await vpc.close();
    dir.close();
  });
  const { netns } = vpc.node('n1');
  await netns.ip('link', 'set', 'lo', 'up');
  const start = async (options: Partial<AgentOptions> = {}): Promise<AgentProcess> => {
    const agent = await startAgent({ netns, dir: dir.path, ...options });
    agents.push(agent);
    return agent;
  };
  const addEni = async (): Promise<void> => {
    await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-a' });
    await vpc.assignIps('eni-1', 2);
    vpc.writeSupply('n1', dir.join('node.yaml'));
  };
  vpc.writeSupply('n1', dir.join('node.yaml'));
  const httpGet = (path: string): Promise<string> =>
    netns.run([
      process.execPath,
      '-e',
      `fetch('http://127.0.0.1:61680${path}').then(async (r) => console.log(r.status, await r.text()))`,
    ]);
  return { vpc, dir, netns, start, addEni, httpGet };
}

test('agent: serves once an ENI is there, tells so on every door, and installs itself only then', async (t) => {
  const { vpc, dir, netns, start, addEni, httpGet } = await openNode(t);
  mkdirSync(dir.join('plugins'));
  writeFileSync(dir.join('plugins', 'tke-route-eni'), '#!/bin/sh\n', { mode: 0o755 });
  const agent = await start({
    until: 'listening',
    flags: { 'plugin-dir': dir.join('plugins'), 'reference-plugin-dir': '', bandwidth: true },
  });
  const conflist = join(agent.cniConfDir, CONFLIST_FILE);
  t.regex(await httpGet('/healthz'), /^200 ok/);
  t.regex(await httpGet('/readyz'), /^503 /);
  t.false(existsSync(conflist));

  await addEni();
  await agent.awaitUntil('ready');
  await waitUntil(() => existsSync(conflist), { what: 'the conflist', explain: agent.logs });
  const conf = JSON.parse(readFileSync(conflist, 'utf8'));
  t.deepEqual(
    conf.plugins.map(({ type }: { type: string }) => type),
    ['tke-route-eni', 'bandwidth'],
  );
  t.is(conf.plugins[0].backend, `unix:${agent.socketPath}`);
  t.true(existsSync(join(agent.cniBinDir, 'tke-eni-ipamc')));
  t.regex(await httpGet('/readyz'), /^200 ok/);

  const caller = openAgentCaller(agent.socketPath);
  const pod = await createPodNetns(`${vpc.prefix}pod`);
  const sandbox = { containerId: 'c1', ifName: 'eth0', netns: pod.path, podNamespace: 'default', podName: 'p1' };
  const { attachment, error } = await caller.call('add', { plugin: 1, sandbox, network: 'net' });
  t.is(error, undefined);
  t.true(await pod.ping(vpc.outside.ip));
  await waitUntil(async () => (await httpGet('/metrics')).includes('tke_eni_leases 1'), { what: 'the lease counted' });
  const metrics = await httpGet('/metrics');
  for (const phase of ['queue', 'allocate', 'record', 'netlink', 'verify']) {
    t.regex(metrics, new RegExp(`tke_eni_add_phase_seconds_count\\{phase="${phase}"\\} 1`));
  }
  t.regex(metrics, /tke_eni_pool_addresses\{eni="eni-1",state="leased"\} 1/);
  t.regex(metrics, /tke_eni_enis\{state="ready"\} 1/);

  const link = attachment?.interfaces[0]?.name ?? '';
  t.true(agent.logs().includes(`ip link add ${link} `), 'the wiring as ip lines');
  t.is((await caller.call('del', { plugin: 1, sandbox, network: 'net' })).error, undefined);
  t.true(agent.logs().includes(`ip link del dev ${link}`));
  t.deepEqual(
    (await netns.ipJson('link')).filter((found) => found['ifname'] === link),
    [],
  );
  caller.close();

  t.deepEqual(await agent.stop(), { code: 0, signal: null });
  t.true(existsSync(conflist), 'the configuration stays for the next agent');
  t.false(existsSync(agent.socketPath));
});

test('agent: refuses to start beside another, which goes on', async (t) => {
  const { start, addEni, dir } = await openNode(t);
  await addEni();
  const first = await start({ program: 'sources' });
  const second = await start({ flags: { 'metrics-address': '' }, until: 'started' });
  t.regex(await lastWords(second), /another agent serves on .*agent\.sock/);
  // Another socket, the same state: the journal knows.
  const elsewhere = { socket: dir.join('other.sock'), 'metrics-address': '' };
  const third = await start({ flags: elsewhere, until: 'started' });
  t.regex(await lastWords(third), /journal .*(another|open|locked)/i);
  await first.awaitUntil('ready');
});

/** What an agent wrote until it ended by itself. */
async function lastWords(agent: AgentProcess): Promise<string> {
  await waitUntil(() => !agent.child.isRunning, { what: 'the end', explain: agent.logs });
  return agent.logs();
}

test('agent: exits 78 and names every wrong setting', async (t) => {
  const { code, stderr } = await tryRun([process.execPath, MAIN, '--rule-mode=fancy', '--ip-cooldown=long', '--nope']);
  t.is(code, 78);
  for (const part of ['--rule-mode', '--ip-cooldown', '--nope']) t.true(stderr.includes(part), part);
});

test('agent: remove-conf takes the configuration away, and --remove-conf-on-exit does so at its end', async (t) => {
  const { start, addEni, dir } = await openNode(t);
  await addEni();
  mkdirSync(dir.join('plugins'));
  writeFileSync(dir.join('plugins', 'tke-route-eni'), '#!/bin/sh\n', { mode: 0o755 });
  const flags = { 'plugin-dir': dir.join('plugins'), 'reference-plugin-dir': '' };
  const agent = await start({ flags: { ...flags, 'remove-conf-on-exit': true } });
  const conflist = join(agent.cniConfDir, CONFLIST_FILE);
  await waitUntil(() => existsSync(conflist), { what: 'the conflist', explain: agent.logs });
  await agent.stop();
  t.false(existsSync(conflist));

  writeFileSync(conflist, '{}');
  await run([process.execPath, MAIN, 'remove-conf', `--cni-conf-dir=${agent.cniConfDir}`]);
  t.false(existsSync(conflist));
});

test('agent: does a DEL that was spooled while it was dead, before it serves, and later ones as they come', async (t) => {
  const { vpc, start, addEni, dir, netns } = await openNode(t);
  await addEni();
  const agent = await start();
  const caller = openAgentCaller(agent.socketPath);
  const links: string[] = [];
  for (const number of [1, 2]) {
    const pod = await createPodNetns(`${vpc.prefix}pod${number}`);
    const sandbox = { containerId: `c${number}`, ifName: 'eth0', netns: pod.path };
    const { attachment } = await caller.call('add', { plugin: 1, sandbox, network: 'net' });
    links.push(attachment?.interfaces[0]?.name ?? '');
  }
  caller.close();
  // Whole at once, as an executable does it: the agent reads it as soon as it is there.
  const spool = (containerId: string): void => {
    const spooled = dir.join(`${containerId}.json`);
    writeFileSync(spooled, JSON.stringify({ containerId, ifName: 'eth0', netns: '', writtenAtMs: Date.now() }));
    renameSync(spooled, dir.join('deletions', `${containerId}.json`));
  };
  const isThere = async (name: string | undefined): Promise<boolean> =>
    (await netns.ipJson('link')).some((link) => link['ifname'] === name);

  await agent.child.stop('SIGKILL');
  spool('c1');
  const next = await start();
  t.false(await isThere(links[0]));
  t.true(await isThere(links[1]));
  spool('c2');
  await waitUntil(async () => !(await isThere(links[1])), { what: 'the second DEL', explain: next.logs });
});
