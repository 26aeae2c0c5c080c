import { readPodFacts } from '../support/pod-facts.ts';
import { waitUntil } from '../support/wait-until.ts';
import type { Slot } from './slot.ts';
import type { Soak } from './soak.ts';
import type { SoakNode } from './soak-node.ts';

/** Rules that others deleted are there again long before; an agent that was killed as well needs its start. */
const MENDED_MS = 30_000;

/**
 * Compares what a cloud's ENIs have with where an address is in use: one that the cloud does not lead to the Pod's node is a
 * violation at any moment. Returns it in words.
 */
export function findUnknownToCloud(soak: Soak, ip: string, nodeName: string): string | undefined {
  const { cloud } = soak.system;
  const instance = cloud.instanceOf(nodeName);
  for (const eni of cloud.host.model.state.enis.values()) {
    const found = eni.ips.get(ip);
    if (found === undefined) continue;
    const where = eni.attachment?.instanceId;
    if (where === instance && found.state === 'AVAILABLE' && eni.state === 'AVAILABLE') return undefined;
    return `${ip} of ${nodeName} is ${found.state} on ${eni.eniId}, which is ${eni.state} on ${where ?? 'nothing'}`;
  }
  return `${ip} of ${nodeName} is on no ENI of the cloud`;
}

/** Looks at every address that a sandbox has. */
export function sweepCloud(soak: Soak): void {
  for (const [ip, { node }] of soak.addresses) {
    const found = findUnknownToCloud(soak, ip, node);
    if (found !== undefined) soak.tally.violation(found);
  }
  soak.tally.add('sweeps');
}

/** Looks into a Pod that lives: its address and routes are there, and packets to outside the VPC are answered. */
export async function checkPod(soak: Soak, node: SoakNode, slot: Slot): Promise<void> {
  const { state } = slot;
  if (state.kind !== 'live' || slot.isHeld) return;
  slot.isHeld = true;
  try {
    const facts = await readPodFacts(slot.netns.path);
    const lacks = [
      ...(facts.addresses.includes(`eth0 ${state.ip}/32`) ? [] : [`address ${state.ip}`]),
      ...(facts.routes.includes('default via 169.254.1.1 dev eth0') ? [] : ['its default route']),
    ];
    const who = `${state.containerId.slice(0, 12)} (${state.ip}) on ${node.name}`;
    if (lacks.length > 0) {
      soak.tally.violation(`${who} lacks ${lacks.join(', ')}; it has ${facts.addresses.join(' ')}`);
    } else {
      await pingOut(soak, slot, who);
    }
    soak.tally.add('looks into Pods');
  } finally {
    slot.isHeld = false;
  }
}

async function pingOut(soak: Soak, slot: Slot, who: string): Promise<void> {
  const { outside } = soak.system.cloud.vpc;
  let tries = 0;
  const isThere = async (): Promise<boolean> => {
    tries += 1;
    return slot.netns.ping(outside.ip, { waitMs: 700 });
  };
  try {
    await waitUntil(isThere, { what: 'an answer', timeoutMs: MENDED_MS, everyMs: 200 });
    soak.tally.add(tries === 1 ? 'pings at once' : 'pings after a repair');
  } catch {
    soak.tally.violation(`${who}: no answer from outside within ${MENDED_MS / 1_000} s`);
  }
}

/** Looks into some of a node's Pods: after a kill or a change by others. */
export async function checkSample(soak: Soak, node: SoakNode, count: number): Promise<void> {
  const live = node.slots.filter(({ state, isHeld }) => state.kind === 'live' && !isHeld);
  const step = Math.max(1, Math.floor(live.length / count));
  const sample = live.filter((_, index) => index % step === 0).slice(0, count);
  await Promise.all(sample.map((slot) => checkPod(soak, node, slot)));
}
