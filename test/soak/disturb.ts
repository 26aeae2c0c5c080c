import { existsSync, rmSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { readJournalFacts } from '../support/journal-facts.ts';
import { createPodNetns } from '../support/pod-netns.ts';
import type { Cut, Door } from '../system/door.ts';
import type { IpamdProcess } from '../system/ipamd-process.ts';
import { checkSample } from './checks.ts';
import { cloudRules, kubeRules } from './fault-rules.ts';
import { judgeNode } from './judge-node.ts';
import { endSandbox } from './load.ts';
import { type Disturbance, type ForeignChange, nameOf, type Planned } from './schedule.ts';
import type { Soak } from './soak.ts';
import { METRICS_PORT, type SoakNode } from './soak-node.ts';

const SAMPLE = 3;
/** A lease whose sandbox is gone is collected when it is a minute old, at the next look. */
const COLLECTED_MS = 100_000;
/** Kubernetes starts a Pod again about so soon. */
const LEADER_BACK_MS = 1_000;
/** Longest wait for a leader; a disturbance of none is left out. */
const LEADERLESS_MS = 20_000;

/** Does something to three of the links of Pods. */
const toVeths = (words: string): readonly string[] => [
  'sh',
  '-c',
  `ip -o link | sed -n 's/^[0-9]*: \\(eni[0-9a-f]*\\)@.*/\\1/p' | head -n 3 | while read -r veth; do ${words}; done`,
];

const FOREIGN_COMMANDS: Readonly<Record<ForeignChange, readonly string[]>> = {
  'pod-rule': ['ip', 'rule', 'del', 'priority', '512'],
  'eni-rules': ['sh', '-c', 'while ip rule del priority 1536 2>/dev/null; do :; done'],
  'nft-table': ['nft', 'delete', 'table', 'inet', 'tke_eni'],
  'nft-ruleset': ['nft', 'flush', 'ruleset'],
  'pod-routes': ['ip', 'route', 'flush', 'table', '3999'],
  forwarding: ['sh', '-c', 'echo 0 > /proc/sys/net/ipv4/ip_forward'],
  'veth-arp': toVeths('ip link set "$veth" arp off'),
  'veth-mac': toVeths('ip link set "$veth" address 02:de:ad:be:ef:05'),
  'veth-master': toVeths(
    'ip link add "br-$$" type bridge 2>/dev/null; ip link set "$veth" master "br-$$"; sleep 1; ip link del "br-$$"',
  ),
};

/** Does what is planned, each thing at its time, until the load is over. Resolves when everything begun has ended. */
export async function disturbAll(soak: Soak, plan: readonly Planned[]): Promise<void> {
  const running = new Set<Promise<void>>();
  for (const { atMs, what } of plan) {
    while (!soak.isOver && soak.tally.elapsedMs < atMs) await sleep(50);
    if (soak.isOver) break;
    const one = tryOne(soak, what);
    running.add(one);
    void one.finally(() => running.delete(one));
  }
  await Promise.all(running);
}

/** Lets everybody reach everybody again, with no faults. Idempotent. */
export async function calm(soak: Soak): Promise<void> {
  const { system } = soak;
  system.cloud.host.faults.clear();
  system.cluster.server.faults.clear();
  for (const node of system.nodes) node.cri.setBroken(false);
  const doors = [
    ...system.nodes.map((node) => node.kube),
    ...system.ipamds.flatMap(({ kube, cloud }) => [kube, cloud]),
  ];
  await Promise.all(doors.map((door) => door.heal()));
}

/** Survived is what ended, with the look into Pods that belongs to it, without a new violation since it began. */
async function tryOne(soak: Soak, what: Disturbance): Promise<void> {
  const { tally } = soak;
  const before = tally.violations.length;
  tally.add(`done ${nameOf(what)}`);
  try {
    await disturb(soak, what);
    if (tally.violations.length === before) tally.add(`survived ${nameOf(what)}`);
  } catch (error) {
    tally.violation(`${what.kind}: ${error instanceof Error ? error.message : String(error)}`);
  }
}

async function disturb(soak: Soak, what: Disturbance): Promise<void> {
  const { system } = soak;
  switch (what.kind) {
    case 'kill-agent':
      return killAgent(soak, what);
    case 'kill-leader':
      return killLeader(soak);
    case 'cut-node':
      return cutFor(soak, [system.node(what.node).kube], what.how, what.lastsMs);
    case 'cut-leader': {
      const leader = await findLeader(soak);
      return leader === undefined ? undefined : cutFor(soak, [leader[what.from]], what.how, what.lastsMs);
    }
    case 'cut-everybody': {
      const doors = [...system.nodes.map((node) => node.kube), ...system.ipamds.map((ipamd) => ipamd.kube)];
      return cutFor(soak, doors, 'refused', what.lastsMs);
    }
    case 'cut-watches':
      return system.cluster.server.disconnectWatches();
    case 'kube-storm': {
      const { faults } = system.cluster.server;
      return during(
        soak,
        what.lastsMs,
        kubeRules(what.storm, what.chance).map((rule) => faults.add(rule)),
      );
    }
    case 'cloud-storm': {
      const { faults } = system.cloud.host;
      return during(
        soak,
        what.lastsMs,
        cloudRules(what.storm, what.chance).map((rule) => faults.add(rule)),
      );
    }
    case 'foreign-change':
      return changeKernel(soak, system.node(what.node), what.change);
    case 'runtime-down': {
      const { cri } = system.node(what.node);
      cri.setBroken(true);
      return during(soak, what.lastsMs, [() => cri.setBroken(false)]);
    }
    case 'insist':
      return insist(soak, system.node(what.node), what.lastsMs);
    case 'half-requests':
      return sendHalfRequests(soak, system.node(what.node), what.count, what.lastsMs);
    case 'odd-link':
      return addOddLink(soak, system.node(what.node), what.lastsMs);
    case 'fifo-netns':
      return addIntoFifo(soak, system.node(what.node));
    case 'lose-sandbox':
      return loseSandbox(soak, system.node(what.node));
    case 'crowd':
      system.node(what.node).wanted = what.pods;
      return;
    case 'judge':
      return judgeNode(soak, system.node(what.node));
  }
}

async function killAgent(soak: Soak, what: Extract<Disturbance, { readonly kind: 'kill-agent' }>): Promise<void> {
  const node = soak.system.node(what.node);
  await node.killAgent(what);
  soak.tally.add('kills of agents', what.twice ? 2 : 1);
  await checkSample(soak, node, SAMPLE);
}

async function killLeader(soak: Soak): Promise<void> {
  const leader = await findLeader(soak);
  if (leader === undefined) return;
  soak.expectedEnds.add(leader.pid);
  await leader.kill();
  soak.tally.add('kills of the leader');
  await sleep(LEADER_BACK_MS);
  leader.start();
  for (const node of soak.system.nodes) await checkSample(soak, node, 1);
}

/** While the API server is in trouble there may be none for longer than one cares to wait. */
async function findLeader({ system, tally }: Soak): Promise<IpamdProcess | undefined> {
  try {
    return await system.leader({}, LEADERLESS_MS);
  } catch {
    tally.add('times without a leader for 20 s');
    return undefined;
  }
}

async function cutFor(soak: Soak, doors: readonly Door[], how: Cut, lastsMs: number): Promise<void> {
  await Promise.all(doors.map((door) => door.cut(how)));
  await pass(soak, lastsMs);
  await Promise.all(doors.map((door) => door.heal()));
}

async function during(soak: Soak, lastsMs: number, ends: readonly (() => void)[]): Promise<void> {
  await pass(soak, lastsMs);
  for (const end of ends) end();
}

/** Waits, but not beyond the load. */
async function pass(soak: Soak, ms: number): Promise<void> {
  const untilMs = performance.now() + ms;
  while (!soak.isOver && performance.now() < untilMs) await sleep(50);
}

async function changeKernel(soak: Soak, node: SoakNode, change: ForeignChange): Promise<void> {
  // What is not there at this moment cannot be deleted: then this one changes nothing.
  node.noteChange();
  await node.netns.tryRun(FOREIGN_COMMANDS[change]);
  node.noteChange();
  await checkSample(soak, node, SAMPLE);
}

async function insist(soak: Soak, node: SoakNode, lastsMs: number): Promise<void> {
  const untilMs = performance.now() + lastsMs;
  while (!soak.isOver && performance.now() < untilMs) {
    node.noteChange();
    await node.netns.tryRun(FOREIGN_COMMANDS['nft-ruleset']);
    node.noteChange();
    await pass(soak, 1_000);
  }
  await checkSample(soak, node, SAMPLE);
}

async function sendHalfRequests(soak: Soak, node: SoakNode, count: number, lastsMs: number): Promise<void> {
  // The kernel refuses or the agent closes some of them: the script goes on.
  const script = `ulimit -n 4096
    for ((i = 0; i < ${count}; i++)); do { exec {fd}<>/dev/tcp/127.0.0.1/${METRICS_PORT} && printf 'GET /metrics HT' >&"$fd"; } 2>/dev/null; done
    sleep ${lastsMs / 1_000}`;
  await node.netns.tryRun(['bash', '-c', script]);
  await checkSample(soak, node, SAMPLE);
}

async function addOddLink(soak: Soak, node: SoakNode, lastsMs: number): Promise<void> {
  // Two at a time have different names.
  const name = `"$(printf '\\377\\376%s' ${soak.nextNumber()})"`;
  const made = await node.netns.tryRun(['sh', '-c', `ip link add ${name} type bridge`]);
  if (made.code !== 0) throw new Error(`the link was not made: ${made.stderr}`);
  await pass(soak, lastsMs);
  await checkSample(soak, node, SAMPLE);
  await node.netns.tryRun(['sh', '-c', `ip link del ${name}`]);
}

async function addIntoFifo(soak: Soak, node: SoakNode): Promise<void> {
  const { tally } = soak;
  const number = soak.nextNumber();
  const netns = join(dirname(node.agent.socketPath), `fifo-${number}`);
  await node.netns.run(['mkfifo', netns]);
  const sandbox = { containerId: soak.containerId(number), netns, podName: `p${number}`, podUid: `uid-${number}` };
  const fromMs = performance.now();
  const outcome = await node.runtime.add(sandbox);
  const wasAway = node.wasAway(fromMs, performance.now());
  if (outcome.kind === 'added') tally.violation(`${node.name}: ADD into a FIFO gave ${outcome.ip}`);
  else if (outcome.isUnanswered && !wasAway) tally.violation(`${node.name}: ADD into a FIFO was not answered`);
  await endSandbox(soak, node, sandbox);
  rmSync(netns);
  await checkSample(soak, node, SAMPLE);
}

async function loseSandbox(soak: Soak, node: SoakNode): Promise<void> {
  const slot = node.slots.find(({ state, isHeld }) => state.kind === 'live' && !isHeld && !state.isKnown);
  if (slot === undefined || slot.state.kind !== 'live') return;
  const { containerId, ip } = slot.state;
  slot.state = { kind: 'lost', containerId };
  soak.ended(ip, node.name, containerId);
  node.cri.removeSandbox(containerId);
  await slot.netns.close();
  soak.lost += 1;
  slot.netns = await createPodNetns(`${soak.system.cloud.vpc.prefix}pod-${node.name}-lost${soak.lost}`);
  const untilMs = performance.now() + COLLECTED_MS;
  while (existsSync(node.journalPath) && hasLease(node, containerId)) {
    if (soak.isAborted) return;
    if (performance.now() > untilMs) {
      soak.tally.violation(`${node.name}: the lease of a lost sandbox, ${ip}, is not collected`);
      break;
    }
    await sleep(2_000);
  }
  soak.tally.add('lost sandboxes collected');
  slot.state = { kind: 'free' };
}

function hasLease(node: SoakNode, containerId: string): boolean {
  try {
    return readJournalFacts(node.journalPath).leases.some((lease) => lease.containerId === containerId);
  } catch {
    // Read while it is being written: the next look tells.
    return true;
  }
}
