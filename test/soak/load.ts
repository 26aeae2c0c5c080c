import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { CNI_CODE } from '../../agent/api/cni-code.ts';
import { readPodFacts } from '../support/pod-facts.ts';
import { POD_NAMESPACE } from '../system/cluster.ts';
import { checkPod, findUnknownToCloud } from './checks.ts';
import type { AddOutcome, Sandbox } from './runtime.ts';
import type { LiveState, Slot } from './slot.ts';
import type { Soak } from './soak.ts';
import type { SoakNode } from './soak-node.ts';

/**
 * Refusals that a cluster in trouble may give: the runtime tries again. One more is fair amid a change by others: that
 * the kernel does not hold what was written. Everything else is a fault of ours.
 */
const FAIR_REFUSALS: readonly number[] = [CNI_CODE.tryAgainLater, CNI_CODE.poolExhausted, CNI_CODE.eniGone];
/** While somebody else changes the kernel: the wiring was broken at once, or what it needs does not stay set up. */
const FOREIGN_REFUSALS: readonly number[] = [CNI_CODE.kernel, CNI_CODE.conflict];
/** An ADD that was refused is tried again by kubelets at about this pace, and slower. */
const AFTER_REFUSAL_MS = 200;
const DEL_TRIES_MS = 60_000;
const DRAIN_MS = 60_000;
/** Share of the Pods that are objects in the API server too. */
const KNOWN_SHARE = 0.08;
const REPEATED_ADD_SHARE = 0.02;
const REPEATED_DEL_SHARE = 0.03;
/** Of DELs: those that come without a namespace, as a runtime sends them when it is gone. */
const BLIND_DEL_SHARE = 0.05;
const CHECKED_SHARE = 0.03;

/** Is one of those who make Pods come and go on a node: a kubelet's workers. Returns when the load is to end. */
export async function work(soak: Soak, node: SoakNode): Promise<void> {
  while (!soak.isOver) {
    const isWanted = node.pods.length + node.slots.filter(({ state }) => state.kind === 'adding').length < node.wanted;
    const slot = node.isPaused ? undefined : isWanted ? findSlot(node, 'free') : pickLive(soak, node);
    if (slot === undefined) await sleep(20);
    else if (isWanted) await addPod(soak, node, slot);
    else await endPod(soak, node, slot);
  }
}

/** Takes a Pod away: DEL until it succeeds, its object, its place. */
export async function endPod(soak: Soak, node: SoakNode, slot: Slot): Promise<void> {
  const { state } = slot;
  if (state.kind !== 'live') return;
  slot.state = { kind: 'ending' };
  const sandbox = sandboxOf(slot, state);
  soak.ended(state.ip, node.name, state.containerId);
  const isBlind = soak.random() < BLIND_DEL_SHARE;
  await endSandbox(soak, node, isBlind ? { ...sandbox, netns: '' } : sandbox, { slot, ip: state.ip });
  if (state.isKnown) await removeObject(soak, state.podName);
  slot.state = { kind: 'free' };
}

async function addPod(soak: Soak, node: SoakNode, slot: Slot): Promise<void> {
  slot.state = { kind: 'adding' };
  await soak.pace.turn();
  if (soak.isOver) {
    slot.state = { kind: 'free' };
    return;
  }
  const number = soak.nextNumber();
  const podName = `p${number}`;
  const isKnown = soak.random() < KNOWN_SHARE;
  const object = isKnown ? await soak.system.cluster.addPod(podName, node.name) : undefined;
  const podUid = object?.metadata.uid ?? `uid-${number}`;
  const sandbox: Sandbox = { containerId: soak.containerId(number), netns: slot.netns.path, podName, podUid };
  list(node, sandbox);
  const outcome = await tryAdd(soak, node, sandbox);
  if (outcome.kind === 'failed') {
    await endSandbox(soak, node, sandbox);
    if (isKnown) await removeObject(soak, podName);
    await sleep(AFTER_REFUSAL_MS);
    slot.state = { kind: 'free' };
    return;
  }
  const { ip } = outcome;
  slot.isHeld = true;
  slot.state = { kind: 'live', containerId: sandbox.containerId, podName, podUid, ip, isKnown };
  list(node, sandbox, ip);
  judgeAnswer(soak, node, sandbox, ip);
  await judgeEnding(soak, slot, sandbox, ip);
  if (soak.random() < REPEATED_ADD_SHARE) await repeatAdd(soak, node, slot, sandbox);
  // Ended meanwhile, if that failed.
  const address = slot.state.kind === 'live' ? slot.state.ip : undefined;
  if (isKnown && address !== undefined) await soak.system.cluster.setPodRunning(podName, address);
  slot.isHeld = false;
  if (soak.random() < CHECKED_SHARE) await checkPod(soak, node, slot);
}

/** ADD; one that stayed without an answer is, now and then, asked again for the same sandbox. */
async function tryAdd(soak: Soak, node: SoakNode, sandbox: Sandbox): Promise<AddOutcome> {
  const first = await addOnce(soak, node, sandbox);
  if (first.kind === 'added' || !first.isUnanswered || soak.random() < 0.5) return first;
  await node.inTurn(async () => undefined);
  soak.tally.add('ADDs of the same sandbox after no answer');
  return addOnce(soak, node, sandbox);
}

async function addOnce(soak: Soak, node: SoakNode, sandbox: Sandbox): Promise<AddOutcome> {
  const { tally } = soak;
  const fromMs = performance.now();
  const outcome = await node.runtime.add(sandbox);
  if (outcome.kind === 'added') {
    tally.add('ADDs');
    tally.most('longest ADD, ms', performance.now() - fromMs);
    return outcome;
  }
  const { error, isUnanswered } = outcome;
  const said = `${error.code} ${error.message} (${error.details})`;
  tally.add(`refused ADD ${isUnanswered ? 'no answer' : error.code}`);
  if (isUnanswered && !node.wasAway(fromMs, performance.now())) {
    tally.violation(`${node.name}: ADD without an answer while the agent ran: ${said}`);
  }
  const toMs = performance.now();
  const isUnsettled = /does not stay set up/.test(error.message) && node.wasUnsettled(fromMs, toMs);
  const isForeign = FOREIGN_REFUSALS.includes(error.code) && (isUnsettled || node.wasChanged(fromMs, toMs));
  if (!isForeign && !FAIR_REFUSALS.includes(error.code)) tally.violation(`${node.name}: ADD refused: ${said}`);
  return outcome;
}

/** Judges an address on the spot: it is nobody else's, and the cloud leads it to this node. */
function judgeAnswer(soak: Soak, node: SoakNode, { containerId }: Sandbox, ip: string): void {
  soak.gave(ip, node.name, containerId);
  const unknown = findUnknownToCloud(soak, ip, node.name);
  if (unknown !== undefined) soak.tally.violation(`given to ${containerId.slice(0, 12)}: ${unknown}`);
}

/** An address stays on its old Pod until the DEL is done, were it left for the agent, and is nobody else's so long. */
async function judgeEnding(soak: Soak, slot: Slot, { containerId }: Sandbox, ip: string): Promise<void> {
  const old = soak.ending.get(ip);
  if (old === undefined || old === slot) return;
  // A DEL may be done and its answer be lost or on its way: the Pod's own network tells.
  const { addresses } = await readPodFacts(old.netns.path);
  if (!addresses.includes(`eth0 ${ip}/32`) || soak.ending.get(ip) !== old) return;
  soak.tally.violation(`${ip} was given to ${containerId.slice(0, 12)} while it is in ${old.netns.name} still`);
}

/**
 * ADD again of a sandbox that has its network gives the same address; unless somebody else has just broken its wiring:
 * then it may be made again.
 */
async function repeatAdd(soak: Soak, node: SoakNode, slot: Slot, sandbox: Sandbox): Promise<void> {
  const { tally } = soak;
  const { state } = slot;
  if (state.kind !== 'live') return;
  const fromMs = performance.now();
  const again = await node.runtime.add(sandbox);
  tally.add('ADDs of a sandbox that has its network');
  const [isChanged, isAway] = [node.wasChanged(fromMs, performance.now()), node.wasAway(fromMs, performance.now())];
  if (again.kind === 'failed') {
    const isFair = (again.isUnanswered && isAway) || (again.error.code === CNI_CODE.kernel && isChanged);
    const said = `${again.error.code} ${again.error.message} (${again.error.details})`;
    if (!isFair) tally.violation(`${node.name}: ADD again of ${state.ip}'s sandbox: ${said}`);
    // As a runtime does with a sandbox whose ADD failed.
    return endPod(soak, node, slot);
  }
  const { ip } = again;
  if (ip === state.ip) return;
  if (!isChanged) tally.violation(`${node.name}: ADD again of ${state.ip}'s sandbox answered ${ip}`);
  tally.add('of these made again, with another address');
  soak.ended(state.ip, node.name, sandbox.containerId);
  slot.state = { ...state, ip };
  list(node, sandbox, ip);
  judgeAnswer(soak, node, sandbox, ip);
}

/**
 * DEL until it succeeds, as kubelets do; then the runtime has no such sandbox any more.
 * @param held the address that the sandbox has, and its place
 */
export async function endSandbox(
  soak: Soak,
  node: SoakNode,
  sandbox: Sandbox,
  held?: { readonly slot: Slot; readonly ip: string },
): Promise<void> {
  const { tally } = soak;
  const untilMs = performance.now() + DEL_TRIES_MS;
  if (held !== undefined) soak.ending.set(held.ip, held.slot);
  for (;;) {
    const outcome = await node.runtime.del(sandbox);
    if (outcome.kind === 'deleted') {
      tally.add('DELs');
      node.cri.removeSandbox(sandbox.containerId);
      if (outcome.spooled !== undefined) await awaitDrained(soak, node, outcome.spooled);
      break;
    }
    tally.add(`refused DEL ${outcome.error.code}`);
    if (performance.now() > untilMs || soak.isAborted) {
      tally.violation(`${node.name}: DEL never succeeded: ${outcome.error.code} ${outcome.error.message}`);
      break;
    }
    await sleep(300);
  }
  if (held !== undefined && soak.ending.get(held.ip) === held.slot) soak.ending.delete(held.ip);
  if (soak.random() < REPEATED_DEL_SHARE) await repeatDel(soak, node, sandbox);
}

async function repeatDel(soak: Soak, node: SoakNode, sandbox: Sandbox): Promise<void> {
  const again = await node.runtime.del(sandbox);
  soak.tally.add('DELs of a sandbox that is gone');
  if (again.kind === 'failed') {
    soak.tally.violation(`${node.name}: DEL again of a sandbox: ${again.error.code} ${again.error.message}`);
  } else if (again.spooled !== undefined) {
    await awaitDrained(soak, node, again.spooled);
  }
}

/** The sandbox's namespace is used again: only once its old link is gone, with the DEL that was left for the agent. */
async function awaitDrained(soak: Soak, node: SoakNode, file: string): Promise<void> {
  const { tally } = soak;
  tally.add('DELs left for the agent');
  const fromMs = performance.now();
  while (existsSync(file)) {
    if (performance.now() > fromMs + DRAIN_MS) {
      tally.violation(`${node.name}: ${file} was not done within ${DRAIN_MS / 1_000} s`);
      return;
    }
    await sleep(50);
  }
  tally.most('longest that a DEL was left, ms', performance.now() - fromMs);
}

function sandboxOf(slot: Slot, { containerId, podName, podUid }: LiveState): Sandbox {
  return { containerId, netns: slot.netns.path, podName, podUid };
}

function list(node: SoakNode, { containerId, podName, podUid, netns }: Sandbox, ip?: string): void {
  const about = { id: containerId, podName, podNamespace: POD_NAMESPACE, podUid, netns };
  node.cri.addSandbox(ip === undefined ? about : { ...about, ips: [ip] });
}

/** A kubelet repeats what the API server refuses. */
async function removeObject(soak: Soak, podName: string): Promise<void> {
  for (let tries = 0; tries < 50; tries++) {
    try {
      await soak.system.cluster.removePod(podName);
      return;
    } catch {
      soak.tally.add('removals of Pods tried again');
      await sleep(200);
    }
  }
  soak.tally.violation(`Pod ${podName} could not be removed from the API server`);
}

function findSlot(node: SoakNode, kind: 'free'): Slot | undefined {
  return node.slots.find(({ state }) => state.kind === kind);
}

function pickLive(soak: Soak, node: SoakNode): Slot | undefined {
  const live = node.slots.filter(({ state, isHeld }) => state.kind === 'live' && !isHeld);
  return live[Math.floor(soak.random() * live.length)];
}
