import { setTimeout as sleep } from 'node:timers/promises';
import { NODE_ENI_CONFIGS } from '../../kube/resource-types.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import { auditThreeWays } from '../system/audit-three-ways.ts';
import { countAssigned, createSystemOf, type SeenNec, type System } from '../system/system.ts';
import { sweepCloud } from './checks.ts';
import { calm, disturbAll } from './disturb.ts';
import { collectWithoutOwner } from './garbage.ts';
import { keepEvidence } from './keep-evidence.ts';
import { endPod, work } from './load.ts';
import { ProcessWatch } from './process-watch.ts';
import { judgeLives, progressLine, summary } from './report.ts';
import { type Planned, planDisturbances } from './schedule.ts';
import { Soak, type SoakSpec } from './soak.ts';
import { makeSoakNode, type SoakNode } from './soak-node.ts';
import { Strain } from './strain.ts';
import { clockText } from './tally.ts';

const NODES = ['n1', 'n2', 'n3'] as const;
/** Seven more ENIs of 29 addresses each. */
const CORES = 16;
const SLOTS = 60;
/** A kubelet sets up several Pods at a time. */
const WORKERS = 10;
const PODS = [6, 40] as const;
const FIRST_PODS = 20;
const WARM = 5;
const PROGRESS_MS = 30_000;
const LOOK_MS = 2_000;
const SUBNETS = [
  { subnetId: 'subnet-pods000a', cidr: '10.0.1.0/24' },
  { subnetId: 'subnet-pods000b', cidr: '10.0.2.0/24' },
];
const IPAMD_FLAGS = {
  'log-level': 'info',
  // What a stale description hid is found by the look at the whole.
  'sync-interval': '20s',
  // The API server is this process: on a machine that is starved it may answer late.
  'leader-elect-lease': '9s',
  'leader-elect-renew': '2s',
  'leader-elect-retry': '500ms',
} as const;
/**
 * Longest that cloud, objects and kernels may take to agree once nothing is done to them any more. A call that
 * contradicts the object waits 30 s, and ipamd repairs a difference that two descriptions 60 s apart show: its own
 * calls come after that.
 */
const AUDIT_MS = 150_000;
/** How often it is told what they do not agree on yet. */
const AUDIT_STEP_MS = 10_000;

/** How much of ipamd's log is printed where an audit fails. */
const LAST_LINES = 12;
const LINE_LENGTH = 300;

/** Prints a line. */
type Print = (line: string) => void;

/** What a run owns and whoever interrupts it must be able to close. */
export type RunningSoak = { soak: Soak | undefined; system: System<SoakNode> | undefined };

/** Runs a soak from its system's start to its end. Returns whether all was well. */
export async function runSoak(spec: SoakSpec, running: RunningSoak, print: Print): Promise<boolean> {
  const system = await createSystemOf<SoakNode>(
    {
      nodes: NODES.map((name) => ({ name, cores: CORES })),
      subnets: SUBNETS,
      ipamdProgram: 'packaged',
      ipamdFlags: IPAMD_FLAGS,
      agentFlags: { 'enable-quick-release': true, 'release-interval': '3s', 'fast-path': spec.fastPath },
    },
    {
      makeNode: makeSoakNode,
      onMade: (made) => {
        running.system = made;
      },
    },
  );
  await makeSlots(system);
  for (const { name } of system.nodes) await system.awaitNec(name, 'warm', (nec) => countAssigned(nec) >= WARM);
  const soak = new Soak(spec, system);
  running.soak = soak;
  const plan = planDisturbances({ seed: spec.seed, lastsMs: spec.lastsMs, nodes: NODES, pods: PODS });
  print(`the system is up; ${spec.adds} ADDs within ${clockText(spec.lastsMs)}, ${plan.length} disturbances planned`);
  const watch = new ProcessWatch();
  const looking = new AbortController();
  const look = lookOn(soak, watch, looking.signal);
  await load(soak, plan, print);
  await judgeEnd(soak, print);
  looking.abort();
  await look;
  for (const line of judgeLives(watch.lives)) soak.tally.violation(line);
  print(summary(soak, watch.lives));
  const { violations } = soak.tally;
  const isWell = violations.length === 0;
  for (const line of violations.slice(0, 60)) print(`VIOLATION ${line}`);
  if (!isWell || spec.keepsEvidence) {
    const folder = keepEvidence(soak, plan, watch.lives);
    print(`${violations.length} violations; logs, journals, objects, memory and the plan are in ${folder}`);
  }
  return isWell;
}

async function makeSlots(system: System<SoakNode>): Promise<void> {
  for (const node of system.nodes) {
    for (let index = 0; index < SLOTS; index++) {
      const netns = await createPodNetns(`${system.cloud.vpc.prefix}pod-${node.name}-${index}`);
      node.slots.push({ netns, state: { kind: 'free' }, isHeld: false });
    }
    node.wanted = FIRST_PODS;
  }
}

async function load(soak: Soak, plan: readonly Planned[], print: Print): Promise<void> {
  const { system, tally } = soak;
  for (const node of system.nodes) node.onCrash = (text) => tally.violation(text);
  const strain = new Strain();
  const tell = setInterval(() => print(`${progressLine(soak)}; ${strain.tell()}`), PROGRESS_MS);
  const workers = system.nodes.flatMap((node) => Array.from({ length: WORKERS }, () => work(soak, node)));
  const all = [...workers, disturbAll(soak, plan)].map((one) =>
    one.catch((error: unknown) => {
      tally.violation(`the harness failed: ${error instanceof Error ? error.stack : String(error)}`);
      soak.isAborted = true;
    }),
  );
  await Promise.all(all);
  clearInterval(tell);
  print(`${progressLine(soak)}; ${strain.tell()}`);
  strain.close();
  judgeCount(soak, print);
  await calm(soak);
}

/**
 * The load ends at the number of ADDs or at the time, whichever is first. A slow machine may not reach the number: too
 * little is made when ADDs and DELs together are fewer than half of it.
 */
function judgeCount({ tally, spec }: Soak, print: Print): void {
  const [adds, dels] = [tally.of('ADDs'), tally.of('DELs')];
  const why = adds >= spec.adds ? 'the number is reached' : 'the time is over';
  print(`the load ended because ${why}: ${adds} of ${spec.adds} ADDs, ${adds + dels} ADDs and DELs`);
  const least = spec.adds / 2;
  if (adds + dels < least) tally.violation(`only ${adds} ADDs and ${dels} DELs in the time, not ${least}`);
}

/** Looks, again and again, at the processes and at the addresses in use. */
async function lookOn(soak: Soak, watch: ProcessWatch, signal: AbortSignal): Promise<void> {
  const { system, tally } = soak;
  while (!signal.aborted) {
    for (const ipamd of system.ipamds) {
      if (ipamd.isRunning || soak.expectedEnds.has(ipamd.pid)) continue;
      tally.violation(`${ipamd.name} ended by itself: ${ipamd.logs().slice(-3_000)}`);
      ipamd.start();
    }
    const agents = system.nodes.map((node) => ({ name: `agent ${node.name}`, pid: node.agent.pid }));
    watch.look([...agents, ...system.ipamds], tally.elapsedMs);
    sweepCloud(soak);
    await collectWithoutOwner(soak);
    await sleep(LOOK_MS, undefined, { signal }).catch(() => undefined);
  }
}

/** With nothing being done to it any more: the audit with the Pods that are left, and once more without any. */
async function judgeEnd(soak: Soak, print: Print): Promise<void> {
  const { system, tally } = soak;
  const left = system.nodes.flatMap((node) => node.pods).length;
  const first = await audit(soak, `with ${left} Pods`, print);
  await Promise.all(system.nodes.flatMap((node) => node.slots.map((slot) => endPod(soak, node, slot))));
  // One that disagrees for good would only be waited for twice.
  if (first) await audit(soak, 'without Pods', print);
  for (const node of system.nodes) {
    const spooled = node.spooled();
    if (spooled.length > 0) tally.violation(`${node.name}: DELs left in the spool: ${spooled.join(' ')}`);
  }
  const kept = soak.addresses.length;
  if (kept > 0) tally.violation(`${kept} addresses are in use still`);
}

async function audit(soak: Soak, what: string, print: Print): Promise<boolean> {
  const startMs = performance.now();
  const told = (): string => `${((performance.now() - startMs) / 1_000).toFixed(1)} s`;
  for (;;) {
    const found = await auditStep(soak);
    if (found.length === 0) {
      print(`audit ${what}: cloud, objects and kernels agree after ${told()}`);
      return true;
    }
    print(`audit ${what}: ${found.length} differences after ${told()}, the first: ${found[0]}`);
    if (performance.now() - startMs < AUDIT_MS) continue;
    for (const line of found) soak.tally.violation(`audit ${what}: ${line}`);
    for (const line of whatIpamdSays(soak)) print(line);
    return false;
  }
}

/** Lists what tells why ipamd waits: the conditions of each NodeENIConfig and the last lines of its logs. */
function whatIpamdSays({ system }: Soak): readonly string[] {
  const necs = system.cluster.server.objects(NODE_ENI_CONFIGS.plural, NODE_ENI_CONFIGS.group) as readonly SeenNec[];
  const conditions = necs.flatMap(({ metadata, status }) =>
    (status?.conditions ?? []).map(
      ({ type, status: value, reason, message = '', lastTransitionTime }) =>
        `nec ${metadata.name}: ${type}=${value} since ${lastTransitionTime}, ${reason} ${message}`,
    ),
  );
  const lastLines = system.ipamds.flatMap((ipamd) => [
    `${ipamd.name}, its last lines:`,
    ...ipamd
      .logs()
      .trimEnd()
      .split('\n')
      .slice(-LAST_LINES)
      .map((line) => `  ${line.slice(0, LINE_LENGTH)}`),
  ]);
  return [...conditions, ...lastLines];
}

/**
 * Looks at cloud and objects first, and into every kernel and Pod, which takes hundreds of processes, once those agree:
 * else the looking would hold up the servers, which are this process, and so what is looked for.
 */
async function auditStep({ system }: Soak): Promise<readonly string[]> {
  const withinMs = AUDIT_STEP_MS;
  const outside = await auditThreeWays(system, { withinMs, withoutAgent: system.nodes.map(({ name }) => name) });
  return outside.length > 0 ? outside : auditThreeWays(system, { withinMs });
}
