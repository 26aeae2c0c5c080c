import { setTimeout as sleep } from 'node:timers/promises';
import { waitUntil } from '../support/wait-until.ts';
import type { Soak } from './soak.ts';
import type { SoakNode } from './soak-node.ts';

const REST_MS = 30_000;
const AGREE_MS = 60_000;

/**
 * Lets a node come to rest, with everything else going on, and judges it by every invariant: journal, kernel, Pods and
 * runtime agree. Its ENIs may come and go meanwhile, so it is looked at until one look finds nothing. Faults of the
 * cloud may keep an ENI from ipamd for longer than this waits: the node is judged by the ENIs of its NodeENIConfig, and
 * the audit at the end compares that with the cloud.
 */
export function judgeNode(soak: Soak, node: SoakNode): Promise<void> {
  return node.inTurn(async () => {
    node.isPaused = true;
    try {
      if (!(await comesToRest(soak, node))) return;
      let last: readonly string[] = [];
      const agrees = async (): Promise<boolean> => {
        // Cut short, nothing is judged: the audit at the end will.
        if (soak.isAborted) return true;
        last = await look(soak, node);
        return last.length === 0;
      };
      try {
        await waitUntil(agrees, { what: 'agreement', timeoutMs: AGREE_MS, everyMs: 200 });
        soak.tally.add('nodes judged good');
      } catch {
        for (const line of last) soak.tally.violation(`at rest: ${line}`);
      }
    } finally {
      node.isPaused = false;
    }
  });
}

/** Nothing is under way. A sandbox that was lost keeps a node from it until its lease is collected. */
async function comesToRest(soak: Soak, node: SoakNode): Promise<boolean> {
  const untilMs = performance.now() + REST_MS;
  const isAtRest = (): boolean =>
    node.slots.every(({ state, isHeld }) => (state.kind === 'free' || state.kind === 'live') && !isHeld);
  while (!isAtRest()) {
    if (soak.isAborted || performance.now() > untilMs || node.slots.some(({ state }) => state.kind === 'lost')) {
      soak.tally.add('nodes that did not come to rest');
      return false;
    }
    await sleep(20);
  }
  return true;
}

async function look({ system }: Soak, node: SoakNode): Promise<readonly string[]> {
  try {
    const nec = await system.nec(node.name);
    // The agent sets up an ENI as soon as its link is there: ipamd may hear only later that the attachment is done.
    return await node.violations(new Set((nec?.status?.eniInfos ?? []).map(({ eniID }) => eniID)));
  } catch (error) {
    // An ENI went while it was looked at.
    return [`${node.name}: cannot be looked at: ${String(error)}`];
  }
}
