import { execFileSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ifKnown } from '../../inspection/node/known.ts';
import { readNftFacts } from '../../inspection/node/read-nft-facts.ts';
import { NetnsView } from '../../sim/support/netns.ts';
import { tcpBeLiberal } from '../../sysctl/sysctl-key.ts';
import { type TestNode, withTestNode } from '../kernel/dataplane/test-node.ts';
import { TestNetns } from '../kernel/netlink/support/test-netns.ts';
import { type AgentProcess, startAgent } from '../support/agent-process.ts';
import { execCni, kubernetesArgs } from '../support/exec-cni.ts';
import { TcpPair } from '../support/tcp-socket.ts';
import { waitUntil } from '../support/wait-until.ts';
import { GUEST_PROGRAMS } from './guest-programs.ts';
import { ADDRESS, ASSURED_MS, isOffloaded, UdpFlow, WAIT_MS } from './guest-world.ts';
import { report } from './report.ts';

// Runs in a guest whose kernel has flowtables: the real agent, called by its launcher, with --fast-path=flowtable.

const DIR = '/tmp/node';
const PORTS = { udp: 7_000, tcp: 7_001 } as const;
const TCP_BYTES = 20_000;
/** An emulated machine is slow: the agent alone takes ten seconds to start. */
const SLOW = { timeoutMs: 90_000, everyMs: 200 } as const;

await withTestNode(async (node) => {
  mkdirSync(DIR);
  writeSupply(node);
  openFar(node);
  const first = await start(node, 'flowtable');
  let last = first;
  try {
    report('started', await linksOf(node));
    const pod = await addPod(node);
    const flows = await followedFlows(node, pod);
    report('explained', explained(node));
    report('followed', await linksOf(node));
    report('dumped', await dumped(node));
    await endByOthers(node, flows);
    first.kill('SIGKILL');
    await first.child.exited;
    // Its last run of nft may go on without it, and end flows once more.
    await waitUntil(flows.isFollowed, { ...SLOW, what: 'followed flows without an agent' });
    report('killed', await linksOf(node));
    last = await start(node, 'off');
    const beLiberal = node.kernel.sysctl.find(tcpBeLiberal());
    report('off', { ...flows.state(), links: (await linksOf(node)) ?? 'no flowtable', beLiberal });
    const deleted = await execCni({ ...cniCall(node, pod.name), command: 'DEL' });
    report('deleted', deleted.exitCode);
  } catch (error) {
    process.stdout.write(first.logs() + last.logs());
    throw error;
  } finally {
    await last.stop();
  }
  await new NetnsView(node.name).run([GUEST_PROGRAMS.agent, 'uninstall', ...uninstallFlags(last)], SLOW);
  report('uninstalled', node.run('nft', 'list', 'tables'));
});

function start(node: TestNode, fastPath: 'flowtable' | 'off'): Promise<AgentProcess> {
  return startAgent({
    netns: new NetnsView(node.name),
    dir: DIR,
    program: { path: GUEST_PROGRAMS.agent },
    flags: { 'fast-path': fastPath, 'gc-interval': '1h', 'repair-interval': '1h', 'ip-cooldown': '1s' },
    timeoutMs: SLOW.timeoutMs,
  });
}

type Pod = ReturnType<TestNode['createPodNetns']>;

/** Adds a Pod, and waits until its link is in the flowtable. */
async function addPod(node: TestNode): Promise<Pod> {
  const pod = node.createPodNetns();
  pod.ip('link', 'set', 'lo', 'up');
  const added = await execCni({ ...cniCall(node, pod.name), command: 'ADD' });
  if (added.exitCode !== 0) throw new Error(`ADD failed: ${added.stdout} ${added.stderr}`);
  report('added', await linksOf(node));
  const [host] = node.ip.json('link', 'show', 'type', 'veth').filter(({ ifname }) => String(ifname).startsWith('eni'));
  const link = String(host?.['ifname']);
  await waitUntil(async () => (await linksOf(node))?.includes(link), { ...SLOW, what: 'the link in the flowtable' });
  return pod;
}

/** Opens a UDP flow and a TCP connection of the Pod, and waits until both are followed. */
async function followedFlows(node: TestNode, pod: Pod) {
  const place = { node, pod };
  const ends = { from: pod.netns, to: node.far.netns };
  const at = (ip: string, port: number) => ({ ip, port });
  const udp = new UdpFlow(place, { client: at(ADDRESS.pod, 4_000), server: at(ADDRESS.far, PORTS.udp) });
  const tcp = new TcpPair({ ...ends, client: at(ADDRESS.pod, 4_001), server: at(ADDRESS.far, PORTS.tcp) }, WAIT_MS);
  const state = () => ({
    exchange: [...udp.exchange(), ...tcp.exchange(TCP_BYTES)],
    isOffloaded: Object.values(PORTS).map((port) => isOffloaded(place, port)),
  });
  const isFollowed = () => Object.values(state()).flat().every(Boolean);
  await waitUntil(isFollowed, { ...SLOW, what: 'followed flows', everyMs: ASSURED_MS });
  return { udp, state, isFollowed };
}

/** What `explain` says of the fast path, to the Pod and from it. */
function explained({ name }: TestNode): readonly string[] {
  const places = ['--netns', name, '--socket', join(DIR, 'agent.sock'), '--state-dir', join(DIR, 'state')];
  const asked = ['explain', ADDRESS.pod, '--to', ADDRESS.far];
  const text = execFileSync(GUEST_PROGRAMS.cli, [...asked, ...places], { encoding: 'utf8' });
  return text.split('\n').filter((line) => /fast path|flowtable/.test(line));
}

/** The links of the flowtable in a namespace that the script of `dump` made. */
async function dumped({ name }: TestNode): Promise<readonly string[] | undefined> {
  const places = ['--netns', name, '--socket', join(DIR, 'agent.sock'), '--state-dir', join(DIR, 'state')];
  const script = execFileSync(GUEST_PROGRAMS.cli, ['dump', '--stand-ins', ...places], { encoding: 'utf8' });
  using copy = new TestNetns();
  // The guest's shell has an ip of its own, which knows no -batch.
  const input = script.replaceAll(/^ip /gm, '/bin/ip ');
  execFileSync('ip', ['netns', 'exec', copy.name, 'sh'], { input, stdio: ['pipe', 'inherit', 'inherit'] });
  return ifKnown(await readNftFacts({ netnsPath: `/run/netns/${copy.name}` }))?.flowLinks;
}

/** Others forbid the flow, which the agent ends, and allow it again. */
async function endByOthers(node: TestNode, { udp, isFollowed }: Awaited<ReturnType<typeof followedFlows>>) {
  node.run('nft', 'add table inet others; add chain inet others f { type filter hook forward priority 0; }');
  node.run('nft', `add rule inet others f ip saddr ${ADDRESS.pod} udp dport ${PORTS.udp} drop`);
  await waitUntil(() => udp.exchange()[0] === false, { ...SLOW, what: 'the end of a flow that others forbid' });
  node.run('nft', 'delete table inet others');
  await waitUntil(isFollowed, { ...SLOW, what: 'flows that are followed again' });
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
