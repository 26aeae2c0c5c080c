/**
 * `make demo`: two nodes of a small VPC, each with two ENIs, containerd and the packaged agent; four Pods that containerd
 * starts through the conflist which the agent installed. Shows addresses, reachability, ways and tables, and removes all.
 * Progress goes to standard error, results to standard output. Exit code 1 when anything is not as it should be.
 */
import { mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Child } from '../support/child.ts';
import { type ContainerdNode, removeStaleNode } from '../support/containerd-node.ts';
import { findViolations } from '../support/invariants.ts';
import { cleanupStale } from '../support/run-names.ts';
import type { TestVpc } from '../vpc/vpc.ts';
import { heading } from './demo/format.ts';
import { chainedPlugins, type DemoPod, egressTable, pingMatrix, podTable, routingOf } from './demo/look.ts';
import {
  attachEnis,
  createDemoVpc,
  GREETING,
  HOST_PORT,
  lastLines,
  PODS,
  PREFIX,
  startDemoAgent,
  startNode,
  writeImage,
} from './demo/scene.ts';

/** What has to be ended, in the order of its making. */
type Cleanup = { readonly what: string; readonly run: () => Promise<unknown> };

const startedMs = performance.now();
const cleanups: Cleanup[] = [];
const agents = new Map<string, Child>();
let isEnding = false;

/** Where a run keeps its files: told by the start of its namespaces' names, so that a later run finds them. */
function filesOf(netnsName: string): string {
  return join(tmpdir(), netnsName.split('-').slice(0, 3).join('-'));
}

function progress(text: string): void {
  const seconds = ((performance.now() - startedMs) / 1_000).toFixed(1).padStart(5);
  console.error(`[${seconds} s] ${text}`);
}

function show(title: string, text: string): void {
  console.log(heading(title));
  console.log(text);
}

async function bringUp(): Promise<{ readonly vpc: TestVpc; readonly nodes: readonly ContainerdNode[] }> {
  const leftDirs = new Set<string>();
  const stale = await cleanupStale(PREFIX, async (netns) => {
    leftDirs.add(filesOf(netns));
    await removeStaleNode(netns, join(filesOf(netns), netns.split('-').slice(3).join('-')));
  });
  for (const left of leftDirs) rmSync(left, { recursive: true, force: true });
  if (stale.length > 0) progress(`removed what an earlier run left behind: ${stale.length} namespaces`);
  const vpc = await createDemoVpc();
  cleanups.push({ what: 'VPC', run: () => vpc.close() });
  const dir = filesOf(vpc.router.name);
  mkdirSync(dir);
  cleanups.push({ what: 'files', run: async () => rmSync(dir, { recursive: true, force: true }) });
  for (const name of vpc.nodeNames) await attachEnis(vpc, name);
  progress(`VPC up: a router, an outside host, nodes ${vpc.nodeNames.join(' and ')} with two ENIs each`);
  const image = writeImage(dir);
  // One after the other: the folders that they mount over are made, and later removed, by the first.
  const nodes: ContainerdNode[] = [];
  for (const name of vpc.nodeNames) {
    const node = await startNode(vpc, name, dir, image);
    cleanups.push({ what: `containerd on ${name}`, run: () => node.close() });
    nodes.push(node);
    progress(`${name}: containerd is up, image imported`);
  }
  await Promise.all(
    nodes.map(async (node) => {
      await startDemoAgent(vpc, node, (child) => {
        agents.set(node.name, child);
        cleanups.push({ what: `agent on ${node.name}`, run: () => child.stop() });
      });
      progress(`${node.name}: the agent installed plugins and conflist; the node is ready`);
    }),
  );
  return { vpc, nodes };
}

async function runPods(vpc: TestVpc, nodes: readonly ContainerdNode[]): Promise<readonly DemoPod[]> {
  const running = nodes.flatMap((node) =>
    (PODS[node.name] ?? []).map(async (spec): Promise<DemoPod> => {
      const beforeMs = performance.now();
      const pod = await node.runPod(spec);
      const eniId = vpc.eniOf(pod.ip) ?? 'no ENI';
      const tookMs = Math.round(performance.now() - beforeMs);
      progress(`${node.name}: Pod ${spec.name} runs with ${pod.ip} of ${eniId} after ${tookMs} ms`);
      return { ...pod, node, eniId };
    }),
  );
  return Promise.all(running);
}

/** Every node judged by kernel, journal and runtime. */
async function judge(vpc: TestVpc, nodes: readonly ContainerdNode[], pods: readonly DemoPod[]): Promise<string[]> {
  const found = await Promise.all(
    nodes.map(async (node) => {
      const violations = await findViolations({
        netns: vpc.node(node.name).netns,
        stateDir: node.hostPath('/run/tke-eni'),
        ruleMode: 'compact',
        enis: await Promise.all(vpc.enisOf(node.name).map((eniId) => vpc.eni(eniId))),
        sandboxes: pods.filter((pod) => pod.node === node).map((pod) => ({ id: pod.sandboxId, ips: [pod.ip] })),
        resolveNetns: (path) => node.insidePath(path),
      });
      return violations.map((violation) => `${node.name}: ${violation}`);
    }),
  );
  return found.flat();
}

/** Looks at everything, prints it, and returns what is not as it should be. */
async function look(vpc: TestVpc, nodes: readonly ContainerdNode[], pods: readonly DemoPod[]): Promise<string[]> {
  const faults: string[] = [];
  show('Pods: VPC addresses of elastic network interfaces', await podTable(vpc, pods));
  await vpc.resetPacketLog();
  const matrix = await pingMatrix(vpc, pods);
  faults.push(...matrix.unanswered.map((way) => `no answer: ${way}`));
  show('Ping, round trip in ms', matrix.text);
  const egress = await egressTable(vpc, pods);
  faults.push(...egress.faults);
  show('To the outside: by which ENI did the packets go? (router counters)', egress.text);
  const web = pods.find((pod) => pod.spec.name === 'web-0');
  if (web !== undefined) {
    const { answer, rate } = await chainedPlugins(vpc, web);
    if (answer !== GREETING) faults.push(`host port ${HOST_PORT}: got '${answer}'`);
    if (rate === 'none') faults.push('bandwidth: web-0 has no rate limit');
    show(
      'Chained after us: portmap and bandwidth, on web-0',
      `  outside -> ${web.node.name}:${HOST_PORT} answers "${answer}"\n  kernel limits its link to ${rate}`,
    );
  }
  show('Routing on n1', await routingOf(vpc, 'n1'));
  const dropped = await vpc.droppedPackets();
  faults.push(...dropped.map((drop) => `the VPC refused ${drop.packets} packets from ${drop.src} at ${drop.via}`));
  const violations = await judge(vpc, nodes, pods);
  faults.push(...violations);
  show(
    'Verdict',
    `  packets that the VPC refused as spoofed: ${dropped.length}\n` +
      `  differences between kernel, journal and runtime: ${violations.length}`,
  );
  return faults;
}

/** Ends everything that was begun, last first; what fails does not stop the rest. */
async function cleanUp(): Promise<void> {
  for (const { what, run } of cleanups.splice(0).toReversed()) {
    try {
      await run();
    } catch (error) {
      console.error(`cleaning up ${what}: ${error instanceof Error ? error.message : String(error)}`);
      process.exitCode = 1;
    }
  }
}

async function main(): Promise<void> {
  const { vpc, nodes } = await bringUp();
  const pods = await runPods(vpc, nodes);
  const faults = await look(vpc, nodes, pods);
  await Promise.all(pods.map((pod) => pod.node.removePod(pod.sandboxId)));
  const left = await judge(vpc, nodes, []);
  progress(`Pods removed; left over on the nodes: ${left.length} links, rules, routes or leases`);
  faults.push(...left);
  if (faults.length > 0) throw new Error(`not as it should be:\n  ${faults.join('\n  ')}`);
}

function report(error: unknown): void {
  console.error(`\ndemo failed: ${error instanceof Error ? error.message : String(error)}`);
  for (const [node, agent] of agents) console.error(`\nlast lines of the agent on ${node}:\n${lastLines(agent)}`);
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    isEnding = true;
    console.error(`\n${signal}: cleaning up`);
    void cleanUp().then(() => process.exit(130));
  });
}

try {
  await main();
} catch (error) {
  if (!isEnding) {
    report(error);
    process.exitCode = 1;
  }
}
if (!isEnding) {
  await cleanUp();
  progress(process.exitCode === 1 ? 'cleaned up' : 'all as it should be; everything is removed');
}
