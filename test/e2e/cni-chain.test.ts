import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import test, { type ExecutionContext } from 'ava';
import { COMPLETE_PROGRAM } from '../../cni-plugins/launcher/names.ts';
import type { JsonObject, NetnsView } from '../../sim/support/netns.ts';
import type { CniAnswer } from '../support/exec-cni.ts';
import { hasLauncher, pluginDir } from '../support/executables.ts';
import { partOf, shortTest } from '../support/suite-part.ts';
import { waitUntil } from '../support/wait-until.ts';
import { type Conflist, callChain } from './support/chain.ts';
import { openScenes, RULE_MODES } from './support/scene.ts';
import type { SceneNode } from './support/scene-node.ts';

const GR = { 'default-network': 'tke-bridge', 'pod-cidr': '172.20.0.0/26' } as const;

/** The other layout, and GlobalRoute Pods, are tried in the suite `long`. */
const LAYOUTS = partOf(
  RULE_MODES.flatMap((ruleMode) => [
    { key: ruleMode, ruleMode, flags: {} },
    { key: `${ruleMode}, bridge`, ruleMode, flags: GR },
    { key: `${ruleMode}, routed`, ruleMode, flags: { ...GR, 'gr-wiring': 'routed' } },
  ]),
  ({ key }) => key === 'compact',
);

const scenes = openScenes(
  test,
  LAYOUTS.map(({ key, ruleMode, flags }) => ({
    ...{ key, ruleMode },
    nodes: [
      {
        ...{ name: 'n1', enis: [{ eniId: 'eni-1', ips: 8 }] },
        agentFlags: { 'plugin-dir': pluginDir(), bandwidth: true, ...flags },
      },
    ],
  })),
);

const HOST_PORT = 8080;
const CONTAINER_PORT = 80;
const RUNTIME_CONFIG = {
  // As containerd spells it.
  portMappings: [{ HostPort: HOST_PORT, ContainerPort: CONTAINER_PORT, Protocol: 'tcp', HostIP: '' }],
  bandwidth: { ingressRate: 8_000_000, ingressBurst: 800_000, egressRate: 8_000_000, egressBurst: 800_000 },
};

/** Waits for the list that the agent installs, and returns it, in a version that the reference plugins speak too when asked. */
async function conflist(node: SceneNode, cniVersion?: string): Promise<Conflist> {
  const path = join(node.agent.cniConfDir, '10-tke-eni.conflist');
  await waitUntil(() => existsSync(path), { what: path, explain: () => node.agent.logs().slice(-2_000) });
  const installed = JSON.parse(readFileSync(path, 'utf8')) as Conflist;
  return cniVersion === undefined ? installed : { ...installed, cniVersion };
}

function allSucceed(t: ExecutionContext, answers: readonly CniAnswer[]): JsonObject {
  for (const answer of answers) t.is(answer.exitCode, 0, answer.stdout + answer.stderr);
  return answers.at(-1)?.result ?? {};
}

/** Asks a web server; resolves to its answer's text, '' when there was none. */
async function fetchFrom(client: NetnsView, address: string, port: number): Promise<string> {
  const shell = `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 10 ${address} ${port}`;
  return (await client.tryRun(['sh', '-c', shell])).stdout;
}

/** nat rules and queueing disciplines that the chained plugins left. */
async function leftovers(node: SceneNode): Promise<readonly string[]> {
  const nat = await node.netns.run(['iptables', '-t', 'nat', '-S']);
  const qdiscs = await node.netns.run(['tc', 'qdisc', 'show']);
  const links = (await node.netns.ipJson('link')).map((link) => String(link['ifname']));
  return [
    ...nat.split('\n').filter((line) => line.includes('CNI-DN-')),
    ...qdiscs.split('\n').filter((line) => /tbf|ingress/.test(line)),
    ...links.filter((name) => name.startsWith('bwp') || name.startsWith('ifb')),
  ];
}

shortTest.serial('install: the executables are one file, and are there before the list is', async (t) => {
  const { node } = scenes.get('compact');
  const { cniBinDir, cniConfDir, socketPath } = node.agent;
  // Which of them is newest depends on the reference plugins of this machine.
  const { cniVersions, ...list } = await conflist(node);
  const names = ['tke-route-eni', 'tke-eni-ipamc', 'tke-direct-eni'];
  const inodes = names.map((name) => statSync(join(cniBinDir, name)).ino);
  t.is(new Set(inodes).size, 1);
  t.deepEqual(
    // The agent's own list of what it brought is hidden from runtimes and people.
    readdirSync(cniBinDir)
      .filter((name) => !name.startsWith('.'))
      .sort(),
    [
      ...names,
      ...(hasLauncher ? [COMPLETE_PROGRAM] : []),
      'tke-eni-lib',
      'bandwidth',
      'bridge',
      'host-local',
      'loopback',
      'portmap',
    ].sort(),
  );
  t.deepEqual(readdirSync(cniConfDir), ['10-tke-eni.conflist']);
  t.deepEqual(cniVersions?.slice(0, 2), ['0.4.0', '1.0.0']);
  t.deepEqual(list, {
    cniVersion: '1.0.0',
    name: 'tke-route-eni',
    plugins: [
      { type: 'tke-route-eni', backend: `unix:${socketPath}`, capabilities: { portMappings: true } },
      { type: 'bandwidth', capabilities: { bandwidth: true } },
    ],
  });
});

for (const { key } of LAYOUTS) {
  for (const cniVersion of ['0.4.0', '1.0.0']) {
    test.serial(`hostPort and bandwidth: work, CNI ${cniVersion}, ${key}`, async (t) => {
      const { node, vpc } = scenes.get(key);
      const list = await conflist(node, cniVersion);
      const pod = await node.newPod();
      const result = allSucceed(t, await callChain('ADD', pod, list, { runtimeConfig: RUNTIME_CONFIG }));
      const server = pod.netns.start(['busybox', 'httpd', '-f', '-p', `${CONTAINER_PORT}`, '-h', '/proc/sys/kernel']);
      try {
        const { primary } = vpc.node('n1');
        await waitUntil(async () => (await fetchFrom(node.netns, ipOf(result), CONTAINER_PORT)) !== '', {
          what: 'the web server in the Pod',
          explain: () => server.stderr,
        });
        t.regex(
          await fetchFrom(vpc.outside.netns, primary.primaryIp, HOST_PORT),
          /^HTTP\/1\.[01] /,
          'outside -> hostPort',
        );
        t.regex(await fetchFrom(node.netns, primary.primaryIp, HOST_PORT), /^HTTP\/1\.[01] /, 'node -> hostPort');
        t.regex(
          await fetchFrom(pod.netns, primary.primaryIp, HOST_PORT),
          /^HTTP\/1\.[01] /,
          'the Pod itself -> hostPort',
        );
        const neighbour = await node.addPod();
        t.regex(
          await fetchFrom(neighbour.netns, primary.primaryIp, HOST_PORT),
          /^HTTP\/1\.[01] /,
          'another Pod of the node -> hostPort',
        );
        await node.delete(neighbour);
        t.true(await pod.netns.ping(vpc.outside.ip));
        t.deepEqual(await vpc.droppedPackets(), []);
        t.regex(await node.netns.run(['tc', 'qdisc', 'show']), /tbf .*rate 8Mbit/);
        await scenes.verify(t, key);

        const options = { runtimeConfig: RUNTIME_CONFIG, prevResult: result };
        allSucceed(t, await callChain('CHECK', pod, list, options));
        allSucceed(t, await callChain('DEL', pod, list, options));
        allSucceed(t, await callChain('DEL', pod, list, options));
      } finally {
        await server.stop('SIGKILL');
      }
      t.deepEqual(await leftovers(node), []);
      t.deepEqual(await pod.netns.linkNames(), ['lo']);
      await scenes.verify(t, key);
    });
  }
}

shortTest.serial('hostPort: a Pod that was wired by the list of 0.1.0 is unmapped by that of today', async (t) => {
  const { node, vpc } = scenes.get('compact');
  const list = await conflist(node, '1.0.0');
  const chained = list.plugins.map(({ capabilities: _, ...plugin }) => plugin).slice(0, 1);
  const old = { ...list, plugins: [...chained, { type: 'portmap', capabilities: { portMappings: true } }] };
  const pod = await node.newPod();
  const result = allSucceed(t, await callChain('ADD', pod, old, { runtimeConfig: RUNTIME_CONFIG }));
  t.true((await leftovers(node)).some((line) => line.includes('CNI-DN-')));
  allSucceed(t, await callChain('DEL', pod, list, { runtimeConfig: RUNTIME_CONFIG, prevResult: result }));
  t.deepEqual(await leftovers(node), []);
  t.deepEqual(await vpc.droppedPackets(), []);
  await scenes.verify(t, 'compact');
});

function ipOf(result: JsonObject): string {
  const [ip] = result['ips'] as readonly JsonObject[];
  return String(ip?.['address']).split('/')[0] ?? '';
}
