import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import test, { type ExecutionContext } from 'ava';
import { createTestVpc } from '../../sim/vpc/vpc.ts';
import { buildExecutables } from '../../tools/build.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { createTempDir } from '../support/temp-dir.ts';
import { waitUntil } from '../support/wait-until.ts';

/** A node with an ENI, and what of it an agent could change. */
async function openNode(t: ExecutionContext) {
  t.timeout(180_000);
  await buildExecutables(['tke-eni-agent']);
  const vpc = await createTestVpc({
    vpcCidrs: ['10.0.0.0/16'],
    subnets: [{ id: 'subnet-a', cidr: '10.0.1.0/24' }],
    nodes: [{ name: 'n1', primarySubnet: 'subnet-a' }],
  });
  const dir = createTempDir('first-supply');
  const agents: AgentProcess[] = [];
  t.teardown(async () => {
    for (const agent of agents) await agent.child.stop('SIGKILL');
    await vpc.close();
    dir.close();
  });
  const { netns } = vpc.node('n1');
  await netns.ip('link', 'set', 'lo', 'up');
  await vpc.attachEni('n1', { eniId: 'eni-1', subnetId: 'subnet-a' });
  await vpc.assignIps('eni-1', 2);
  const plugins = dir.join('plugins');
  mkdirSync(plugins);
  writeFileSync(`${plugins}/tke-route-eni`, '#!/bin/sh\n', { mode: 0o755 });
  const start = async (flags: Readonly<Record<string, string>> = {}) => {
    const all = { 'plugin-dir': plugins, 'reference-plugin-dir': '', 'repair-interval': '1s', ...flags };
    const agent = await startAgent({ netns, dir: dir.path, until: 'listening', flags: all });
    agents.push(agent);
    return agent;
  };
  const snapshot = async (): Promise<string> => {
    const show = 'ip -j -d link; ip -j addr; ip -j rule; ip -j -6 rule; ip -j route show table all; nft list ruleset';
    const settings =
      "find /proc/sys/net -type f ! -name '*flush*' -exec grep -H . {} + 2>/dev/null | grep -v 'random\\|nf_conntrack_count' | sort";
    const folders = [dir.join('cni-bin'), dir.join('cni-conf')].map((path) =>
      existsSync(path) ? readdirSync(path) : [],
    );
    return `${await netns.run(['sh', '-c', `${show}; ${settings}`])}\n${JSON.stringify(folders)}`;
  };
  return { vpc, dir, start, snapshot, supplyPath: dir.join('node.yaml') };
}

for (const [what, prepare, flags, says] of [
  [
    'there is no supply file',
    () => {},
    {},
    /supply file is invalid, there was none before it: this node is not changed yet/,
  ],
  ['the supply file is not YAML', (path: string) => writeFileSync(path, 'a: ['), {}, /there was none before it/],
  ['the supply file is for another node', undefined, { 'node-name': 'n2' }, /supply is for another node, refused/],
] as const) {
  test(`agent: changes nothing of a node when ${what} at its first start, and serves after a valid one`, async (t) => {
    const { vpc, start, snapshot, supplyPath } = await openNode(t);
    if (prepare === undefined) vpc.writeSupply('n1', supplyPath);
    else prepare(supplyPath);
    const before = await snapshot();
    const agent = await start(flags);
    await waitUntil(() => says.test(agent.logs()), { what: String(says), explain: agent.logs });
    await sleep(6_000);
    t.is(await snapshot(), before);
    if (prepare === undefined) return;
    t.notRegex(agent.logs(), /stays in force/);
    vpc.writeSupply('n1', supplyPath);
    await agent.awaitUntil('ready');
    // Whoever has served one serves on with a wrong file, after a restart too.
    writeFileSync(supplyPath, 'a: [');
    await waitUntil(() => /the last good one stays in force/.test(agent.logs()), { what: 'the refusal' });
    await agent.child.stop('SIGKILL');
    const next = await start(flags);
    await next.awaitUntil('ready');
    t.regex(next.logs(), /the last good one stays in force/);
  });
}
