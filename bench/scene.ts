import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { run } from '../sim/support/run.ts';
import { createTestVpc } from '../sim/vpc/vpc.ts';
import { type AgentProcess, startAgent } from '../test/support/agent-process.ts';
import { CNI_DIR, DIST_BIN_DIR, hasLauncher } from '../test/support/executables.ts';
import { createTempDir } from '../test/support/temp-dir.ts';
import { openBenchCluster } from './bench-cluster.ts';
import { type CniRuntime, openCniRuntime } from './cni/cni-runtime.ts';

/** A sandbox to measure with. */
type BenchPod = {
  readonly containerId: string;
  readonly netnsPath: string;
  /** Removes its namespace. */
  remove(): Promise<void>;
};

/** One node of a small VPC with a running, packaged agent. */
export type BenchScene = AsyncDisposable & {
  readonly agent: AgentProcess;
  /** Folder of the agent's files. */
  readonly dir: string;
  readonly binDir: string;
  /** The packaged `tke-route-eni`. */
  readonly plugin: string;
  readonly nodeNetnsPath: string;
  /** Starts CNI executables in the node's namespace. */
  readonly runtime: CniRuntime;
  /** Starts them in a node of its own, without an agent that would follow what a peer does. */
  readonly peerRuntime: CniRuntime;
  conf(): object;
  newPod(): Promise<BenchPod>;
  /** Makes the Pod's object in the cluster, if there is one. */
  addPod(name: string): Promise<void>;
  /** Resident memory of the agent, MiB. */
  rssMib(): number;
  /** The agent's `/metrics`, as text. */
  metrics(): Promise<string>;
};

const METRICS_PORT = 61_680;
/** One /24 subnet has room for this many beside gateway, primaries and broadcast. */
const MOST_IPS_PER_ENI = 60;

/** What a scene is to be. */
type BenchSceneOptions = {
  /** Addresses in all. */
  readonly ips: number;
  /** Where the agent has its supply from; default a file. */
  readonly source?: 'file' | 'cluster';
  readonly agentFlags?: Readonly<Record<string, string>>;
};

/** Opens a node whose ENIs have `ips` addresses in all, agent ready. Disposing of it removes everything. */
export async function openBenchScene(options: BenchSceneOptions): Promise<BenchScene> {
  await using undo = new AsyncDisposableStack();
  const vpc = undo.adopt(
    await createTestVpc({
      prefix: 'tke-bench-',
      vpcCidrs: ['10.0.0.0/16'],
      subnets: [
        { id: 'subnet-a', cidr: '10.0.1.0/24' },
        { id: 'subnet-b', cidr: '10.0.4.0/22' },
      ],
      nodes: ['n1', 'n2'].map((name) => ({ name, primarySubnet: 'subnet-a' })),
    }),
    (one) => one.close(),
  );
  const dir = undo.adopt(createTempDir('bench'), (one) => one.close());
  for (let left = options.ips, index = 1; left > 0; left -= MOST_IPS_PER_ENI, index++) {
    await vpc.attachEni('n1', { eniId: `eni-${index}`, subnetId: 'subnet-b' });
    await vpc.assignIps(`eni-${index}`, Math.min(left, MOST_IPS_PER_ENI));
  }
  vpc.writeSupply('n1', join(dir.path, 'node.yaml'));
  const { netns } = vpc.node('n1');
  const flags = {
    'ip-cooldown': '0s',
    'gc-interval': '1h',
    'log-level': 'info',
    'metrics-address': `127.0.0.1:${METRICS_PORT}`,
  };
  await run(['ip', '-n', netns.name, 'link', 'set', 'lo', 'up']);
  const cluster =
    options.source === 'cluster'
      ? undo.adopt(await openBenchCluster(netns, dir.path), (one) => one.close())
      : undefined;
  const agent = undo.adopt(
    await startAgent({ netns, dir: dir.path, flags: { ...flags, ...cluster?.flags, ...options.agentFlags } }),
    async (one) => {
      await one.stop();
    },
  );
  const runtime = undo.use(openCniRuntime(netns.path));
  const peerRuntime = undo.use(openCniRuntime(vpc.node('n2').netns.path));
  const kept = undo.move();
  return {
    agent,
    dir: dir.path,
    binDir: DIST_BIN_DIR,
    plugin: join(hasLauncher ? CNI_DIR : DIST_BIN_DIR, 'tke-route-eni'),
    nodeNetnsPath: netns.path,
    runtime,
    peerRuntime,
    conf: () => ({
      cniVersion: '1.0.0',
      name: 'bench',
      type: 'tke-route-eni',
      backend: `unix:${agent.socketPath}`,
    }),
    newPod: () => newPod(vpc.prefix),
    rssMib: () => residentMib(agent.pid),
    addPod: async (name) => cluster?.addPod(name),
    metrics: () => run(['nsenter', `--net=${netns.path}`, '--', process.execPath, '-e', FETCH_METRICS]),
    [Symbol.asyncDispose]: () => kept.disposeAsync(),
  };
}

const FETCH_METRICS = `fetch('http://127.0.0.1:${METRICS_PORT}/metrics').then(async (r) => console.log(await r.text()))`;

async function newPod(prefix: string): Promise<BenchPod> {
  const name = `${prefix}pod-${randomBytes(4).toString('hex')}`;
  await run(['ip', 'netns', 'add', name]);
  return {
    containerId: randomBytes(32).toString('hex'),
    netnsPath: `/run/netns/${name}`,
    remove: async () => {
      await run(['ip', 'netns', 'delete', name]);
    },
  };
}

function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
  if (kib === undefined) throw new Error(`process ${pid} has no VmRSS: it ended`);
  return Number(kib) / 1024;
}
