import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifKnown } from '../../inspection/node/known.ts';
import { readNftFacts } from '../../inspection/node/read-nft-facts.ts';
import { NetnsView } from '../../sim/support/netns.ts';
import { type TestNode, withTestNode } from '../kernel/dataplane/test-node.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { execCni, kubernetesArgs } from '../support/exec-cni.ts';
import { waitUntil } from '../support/wait-until.ts';
import { GUEST_PROGRAMS } from './guest-programs.ts';
import { ADDRESS, ASSURED_MS, isOffloaded, UdpFlow } from './guest-world.ts';
import { report } from './report.ts';

// Runs in a guest whose kernel has flowtables: the real agent, called by its launcher, with --fast-path=flowtable.

const DIR = '/tmp/node';
const PORT = 7_000;
/** An emulated machine is slow: the agent alone takes ten seconds to start. */
const SLOW = { timeoutMs: 90_000, everyMs: 200 } as const;

await withTestNode(async (node) => {
  mkdirSync(DIR);
  writeSupply(node);
  openFar(node);
  const at = new NetnsView(node.name);
  const agent = await startAgent({
    netns: at,
    dir: DIR,
    program: { path: GUEST_PROGRAMS.agent },
    flags: { 'fast-path': 'flowtable', 'gc-interval': '1h', 'repair-interval': '1h', 'ip-cooldown': '1s' },
    timeoutMs: SLOW.timeoutMs,
  });
  try {
    report('started', await linksOf(node));
    await lifeOfPod(node);
  } catch (error) {
    process.stdout.write(agent.logs());
    throw error;
  } finally {
    await agent.stop();
  }
  report('stopped', await linksOf(node));
  await at.run([GUEST_PROGRAMS.agent, 'uninstall', ...uninstallFlags(agent)], SLOW);
  report('uninstalled', node.run('nft', 'list', 'tables'));
});

/** A Pod comes, its flow is learned, others forbid it and allow it again, the Pod goes. */
async function lifeOfPod(node: TestNode): Promise<void> {
  const pod = node.createPodNetns();
  pod.ip('link', 'set', 'lo', 'up');
  const call = cniCall(node, pod.name);
  const added = await execCni({ ...call, command: 'ADD' });
  if (added.exitCode !== 0) throw new Error(`ADD failed: ${added.stdout} ${added.stderr}`);
  const before = await linksOf(node);
  const [host] = node.ip.json('link', 'show', 'type', 'veth').filter(({ ifname }) => String(ifname).startsWith('eni'));
  const link = String(host?.['ifname']);
  await waitUntil(async () => (await linksOf(node))?.includes(link), { ...SLOW, what: 'the link in the flowtable' });
  report('added', { before });

  const place = { node, pod };
  const flow = new UdpFlow(place, {
    client: { ip: ADDRESS.pod, port: 4_000 },
    server: { ip: ADDRESS.far, port: PORT },
  });
  const isFollowed = () => flow.exchange().every(Boolean) && isOffloaded(place, PORT);
  await waitUntil(isFollowed, { ...SLOW, what: 'a followed flow', everyMs: ASSURED_MS });
  node.run('nft', 'add table inet others; add chain inet others f { type filter hook forward priority 0; }');
  node.run('nft', `add rule inet others f ip saddr ${ADDRESS.pod} udp dport ${PORT} drop`);
  await waitUntil(() => flow.exchange()[0] === false, { ...SLOW, what: 'the end of a flow that others forbid' });
  node.run('nft', 'delete table inet others');
  await waitUntil(isFollowed, { ...SLOW, what: 'a flow that is followed again' });

  const deleted = await execCni({ ...call, command: 'DEL' });
  report('deleted', { exitCode: deleted.exitCode, links: await linksOf(node), isOffloaded: isOffloaded(place, PORT) });
}

/** Names of links in the flowtable. */
async function linksOf({ netns }: TestNode): Promise<readonly string[] | undefined> {
  return ifKnown(await readNftFacts({ netnsPath: netns.path }))?.flowLinks;
}

function cniCall({ netns }: TestNode, podNetns: string) {
  const conf = { cniVersion: '1.0.0', name: 'tke-route-eni', type: 'tke-route-eni' };
  return {
    binary: GUEST_PROGRAMS.plugin,
    netns: netns.path,
    conf: { ...conf, backend: `unix:${join(DIR, 'agent.sock')}` },
    env: {
      CNI_CONTAINERID: 'a1b2c3d4e5f60718',
      CNI_NETNS: `/run/netns/${podNetns}`,
      CNI_IFNAME: 'eth0',
      CNI_PATH: '/bin',
      CNI_ARGS: kubernetesArgs({ namespace: 'default', name: 'web-0' }),
    },
  };
}

/** The NodeENIConfig of one ENI with one address, as ipamd would have written it. */
function writeSupply({ enis: [eni] }: TestNode): void {
  const addresses = [{ ip: ADDRESS.pod, assignmentID: 'a1', state: 'Assigned' }];
  const info = {
    ...{ eniID: eni?.eniId, mac: eni?.mac, primaryIP: '10.0.5.5', gateway: ADDRESS.far, subnetCIDR: '10.0.5.0/24' },
    ...{ deviceIndex: 1, state: 'Attached', addresses },
  };
  const config = {
    apiVersion: 'networking.tke.cloud.tencent.com/v1',
    kind: 'NodeENIConfig',
    metadata: { name: 'n1' },
    spec: {},
    status: { supplyEpoch: 1, eniInfos: [info] },
  };
  writeFileSync(join(DIR, 'node.yaml'), JSON.stringify(config));
}

function openFar({ enis: [eni], far }: TestNode): void {
  far.ip('address', 'add', `${ADDRESS.far}/24`, 'dev', 'far5');
  far.ip('neigh', 'add', ADDRESS.pod, 'lladdr', eni?.mac ?? '', 'dev', 'far5', 'nud', 'permanent');
}

function uninstallFlags({ socketPath, stateDir, cniBinDir, cniConfDir }: AgentProcess): readonly string[] {
  return [
    ...[`--socket=${socketPath}`, `--state-dir=${stateDir}`, `--cni-bin-dir=${cniBinDir}`],
    ...[
      `--cni-conf-dir=${cniConfDir}`,
      '--plugin-dir=',
      `--kubelet-dir=${DIR}/kubelet`,
      '--host-root=/',
      '--cri-socket=',
    ],
  ];
}
