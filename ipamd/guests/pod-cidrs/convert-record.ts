import type { PodCidrRecord } from '../../../crd/pod-cidr-record.ts';
import { type CidrBlocks, numberBlocks } from '../../config/cidr-blocks.ts';
import type { BlockState, CidrNode, HeldBlock } from './block-state.ts';
import { countBlocks } from './decide-pod-cidr.ts';

/** The present of both clocks: monotonic, and the wall clock, by which records have their times. */
export type Moment = { readonly monotonicMs: number; readonly wallMs: number };

/**
 * Makes the state of a new term from the record of the former one. A recorded block that no Node shows counts as freed
 * now, at `freedMs`: the former leader may have written it to a Node, and its clock is another. Without a record the
 * cursor stands after the block of the youngest Node.
 */
export function stateOf(
  blocks: CidrBlocks,
  record: PodCidrRecord | undefined,
  nodes: readonly CidrNode[],
  freedMs: number,
): BlockState {
  const empty = { owners: new Map(), given: new Map(), waitingSince: new Map() };
  if (record === undefined) return { ...empty, next: afterYoungest(blocks, nodes), held: new Map() };
  const former = numberBlocks(record);
  // The settings may have changed: a block of the record is found by its addresses.
  const presentOf = (block: number): readonly number[] =>
    block < former.count ? blocks.overlapping(former.cidrOf(block)) : [];
  const held = new Map<number, HeldBlock>();
  // A larger block than before may have been that of several nodes.
  const isLarger = blocks.settings.maskSize < record.maskSize;
  // Of several blocks of one node, the one that it had last comes first.
  for (const { block, node, machineID: machineId } of isLarger ? [] : [...record.owners, ...record.held]) {
    if (node === undefined) continue;
    for (const present of presentOf(block)) if (!held.has(present)) held.set(present, { node, machineId, freedMs });
  }
  for (const block of record.taken.flatMap(presentOf)) if (!held.has(block)) held.set(block, { freedMs });
  return { ...empty, next: presentOf(record.next)[0] ?? 0, held };
}

const MAX_WAITING_NAMES = 20;

/** Renders the state as the record of a term. */
export function recordOf(
  state: BlockState,
  facts: {
    readonly blocks: CidrBlocks;
    readonly nodes: readonly CidrNode[];
    readonly reserved: ReadonlySet<number>;
    readonly stopped: string;
  },
  now: Moment,
): Omit<PodCidrRecord, 'term'> {
  const { next, owners, given, held, waitingSince } = state;
  const { blocks, nodes, stopped } = facts;
  const waiting = nodes.filter(({ uid }) => waitingSince.has(uid)).map(({ name }) => name);
  const owned = [...owners, ...[...given.values()].map((gift) => [gift.block, gift] as const)];
  const taken = new Set([...owned.map(([block]) => block), ...held.keys()]);
  const newestFirst = [...held].sort(([, one], [, other]) => other.freedMs - one.freedMs);
  return {
    ...blocks.settings,
    next,
    taken: [...taken].sort((one, other) => one - other),
    owners: owned
      .flatMap(([block, { node, machineId }]) =>
        machineId === undefined ? [] : [{ block, node, machineID: machineId }],
      )
      .sort((one, other) => one.block - other.block),
    held: newestFirst.map(([block, { node, machineId, freedMs }]) => ({
      block,
      freedAt: timeOf(freedMs, now),
      ...(node === undefined ? {} : { node }),
      ...(machineId === undefined ? {} : { machineID: machineId }),
    })),
    blocks: countBlocks(state, facts),
    waiting: { count: waiting.length, nodes: waiting.slice(0, MAX_WAITING_NAMES) },
    stopped,
  };
}

function afterYoungest(blocks: CidrBlocks, nodes: readonly CidrNode[]): number {
  let youngest = '';
  let next = 0;
  for (const { createdAt, podCidrs } of nodes) {
    const last = podCidrs.flatMap((cidr) => blocks.overlapping(cidr)).at(-1);
    if (last === undefined || createdAt < youngest) continue;
    youngest = createdAt;
    next = (last + 1) % blocks.count;
  }
  return next;
}

const SECOND_MS = 1_000;

/** Whole seconds: the two clocks drift, and equal states are to give equal text. */
function timeOf(freedMs: number, { monotonicMs, wallMs }: Moment): string {
  const atMs = Math.round((wallMs - monotonicMs + freedMs) / SECOND_MS) * SECOND_MS;
  return new Date(atMs).toISOString();
}
