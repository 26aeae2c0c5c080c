import type { PodRoutes } from '../../../pod-routes/route-cache.ts';
import { compareTexts } from '../../../runtime/compare-texts.ts';
import type { CidrBlocks } from '../../config/cidr-blocks.ts';
import type { BlockState, CidrNode } from './block-state.ts';

/** What the choice of blocks depends on. */
type PodCidrFacts = {
  readonly blocks: CidrBlocks;
  readonly nodes: readonly CidrNode[];
  readonly monotonicMs: number;
  /** How long a freed block waits where routes cannot be read. */
  readonly holdMs: number;
  /** 'none': routes cannot be read here; 'unread': they can, and were not yet. */
  readonly routes: PodRoutes | 'none' | 'unread';
  /** Blocks that others use: subnets of the VPC. */
  readonly reserved: ReadonlySet<number>;
  /** Nodes that get nothing now: a write for them is under way, or has just failed; by uid. */
  readonly paused: ReadonlySet<string>;
  /** Most blocks at once. */
  readonly limit: number;
};

/** What is to be written now. */
type PodCidrDecision = {
  readonly state: BlockState;
  readonly gifts: readonly { readonly node: CidrNode; readonly block: number }[];
  /** Nodes for which no block is left. */
  readonly unserved: readonly CidrNode[];
};

/** A node of a known name gets its old block once its machine is known; it is waited for this long. */
const MACHINE_WAIT_MS = 30_000;

/** A write of a leader that has ended may still arrive: a freed block waits at least this long, also without a route. */
const SETTLE_MS = 60_000;

/**
 * Chooses a block for each node that waits: the block that the same node had, as long as it is held; else the next free
 * one after the cursor. The cursor goes round, so a freed block comes last.
 */
export function decidePodCidrs(before: BlockState, facts: PodCidrFacts): PodCidrDecision {
  const { blocks, paused, limit } = facts;
  if (facts.routes === 'unread') return { state: before, gifts: [], unserved: [] };
  const held = new Map([...before.held].filter(([block, { freedMs }]) => isHeld(block, freedMs, facts)));
  const given = new Map(before.given);
  const used = usedBlocks({ owners: before.owners, given });
  const formerBlocks = indexHeld(held);
  const isFree = (block: number): boolean => !used.has(block) && !held.has(block) && isUsable(block, facts);
  let { next } = before;
  const gifts: { readonly node: CidrNode; readonly block: number }[] = [];
  const unserved: CidrNode[] = [];
  for (const node of waitingOf(facts.nodes)) {
    if (paused.has(node.uid)) continue;
    const former = formerBlocks.get(node.name) ?? [];
    const repeated = given.get(node.uid)?.block;
    if (repeated === undefined && isMachineAwaited(before, node, former, facts.monotonicMs)) continue;
    const same = former.find(
      ({ machineId, block }) => machineId === node.machineId && !isReserved(block, facts),
    )?.block;
    const block = repeated ?? same ?? findFree(blocks.count, next, isFree);
    if (block === undefined) {
      unserved.push(node);
      continue;
    }
    if (gifts.length >= limit) break;
    if (repeated === undefined && same === undefined) next = (block + 1) % blocks.count;
    const { freedMs } = held.get(block) ?? given.get(node.uid) ?? {};
    held.delete(block);
    used.add(block);
    const owner = { node: node.name, machineId: node.machineId };
    given.set(node.uid, { block, ...owner, ...(freedMs === undefined ? {} : { freedMs }) });
    gifts.push({ node, block });
  }
  return { state: { ...before, next, held, given }, gifts, unserved };
}

/** Counts blocks. `reserved` are those of Services and of subnets; a block counts once. */
export function countBlocks(state: BlockState, { blocks, reserved }: Pick<PodCidrFacts, 'blocks' | 'reserved'>) {
  const { held } = state;
  const used = usedBlocks(state);
  const heldOnly = [...held.keys()].filter((block) => !used.has(block));
  const others = new Set([...blocks.ofServices, ...reserved].filter((block) => !used.has(block) && !held.has(block)));
  const counted = used.size + heldOnly.length + others.size;
  return {
    total: blocks.count,
    reserved: others.size,
    used: used.size,
    held: heldOnly.length,
    free: blocks.count - counted,
  };
}

function usedBlocks({ owners, given }: Pick<BlockState, 'owners' | 'given'>): Set<number> {
  return new Set([...owners.keys(), ...[...given.values()].map(({ block }) => block)]);
}

function waitingOf(nodes: readonly CidrNode[]): readonly CidrNode[] {
  const waiting = nodes.filter(({ isServed, podCidrs }) => isServed && podCidrs.length === 0);
  return waiting.sort(
    (one, other) => compareTexts(one.createdAt, other.createdAt) || compareTexts(one.name, other.name),
  );
}

function isHeld(block: number, freedMs: number, { blocks, routes, monotonicMs, holdMs }: PodCidrFacts): boolean {
  if (typeof routes === 'string') return monotonicMs - freedMs < holdMs;
  if (monotonicMs - freedMs < SETTLE_MS || routes.readMs <= freedMs) return true;
  return routes.hasRoute(blocks.cidrOf(block));
}

function isUsable(block: number, facts: PodCidrFacts): boolean {
  const { blocks, routes } = facts;
  return !isReserved(block, facts) && (typeof routes === 'string' || !routes.hasRoute(blocks.cidrOf(block)));
}

function isReserved(block: number, { blocks, reserved }: PodCidrFacts): boolean {
  return blocks.ofServices.has(block) || reserved.has(block);
}

type FormerBlock = { readonly node: string; readonly machineId: string; readonly block: number };

/** Returns the blocks of each name that are held, the one that was freed last first. */
function indexHeld(held: BlockState['held']): ReadonlyMap<string, readonly FormerBlock[]> {
  const lastFirst = [...held].sort(([, one], [, other]) => other.freedMs - one.freedMs);
  const former = lastFirst.flatMap(([block, { node, machineId }]) =>
    node === undefined || machineId === undefined ? [] : [{ node, machineId, block }],
  );
  return Map.groupBy(former, ({ node }) => node);
}

function isMachineAwaited(
  { waitingSince }: BlockState,
  { uid, machineId }: CidrNode,
  former: readonly FormerBlock[],
  nowMs: number,
): boolean {
  if (former.length === 0 || machineId !== undefined) return false;
  return nowMs - (waitingSince.get(uid) ?? nowMs) < MACHINE_WAIT_MS;
}

function findFree(count: number, next: number, isFree: (block: number) => boolean): number | undefined {
  for (let step = 0; step < count; step++) {
    const block = (next + step) % count;
    if (isFree(block)) return block;
  }
  return undefined;
}
