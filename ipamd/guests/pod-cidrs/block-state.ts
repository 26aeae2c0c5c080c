import type { CidrBlocks } from '../../config/cidr-blocks.ts';

/** A Node, as far as its block is concerned. */
export type CidrNode = {
  readonly name: string;
  readonly uid: string;
  /** RFC 3339 */
  readonly createdAt: string;
  /** Id of the machine, by `spec.providerID`; undefined while the Node has none. */
  readonly machineId: string | undefined;
  readonly podCidrs: readonly string[];
  /** It is to have a block: no super node, and not being deleted. */
  readonly isServed: boolean;
};

/** Who has, or had, a block. */
type BlockOwner = { readonly node: string; readonly machineId: string | undefined };

/** A block that no Node has any more. It is held for no node when its node is not known, or the block was refused. */
export type HeldBlock = Partial<BlockOwner> & {
  /** Monotonic milliseconds. */
  readonly freedMs: number;
};

/** A block that was given to a Node that does not show it yet. */
type GivenBlock = BlockOwner & {
  readonly block: number;
  /**
   * When it was freed or may have been written. If the gift is taken back, the block is held from this time. Monotonic
   * milliseconds.
   */
  readonly freedMs?: number;
};

/** What the allocator has in memory; never changed in place. Keys of blocks are their numbers. */
export type BlockState = {
  /** The cursor: the block after the one that was given last. */
  readonly next: number;
  /** Blocks of Nodes, whoever wrote them. */
  readonly owners: ReadonlyMap<number, BlockOwner>;
  /** By uid of the Node. */
  readonly given: ReadonlyMap<string, GivenBlock>;
  readonly held: ReadonlyMap<number, HeldBlock>;
  /** Since when Nodes without a block are known, by uid; monotonic milliseconds. */
  readonly waitingSince: ReadonlyMap<string, number>;
};

/** A podCIDR that does not fit with the others. Its blocks are in use all the same. */
type CidrConflict = {
  readonly node: string;
  readonly uid: string;
  readonly reason: 'CIDROutOfRange' | 'CIDROverlap';
  readonly message: string;
};

/** Returns the state after the Nodes were read: who has which block, and which blocks became free. Idempotent. */
export function observeBlocks(
  blocks: CidrBlocks,
  state: BlockState,
  nodes: readonly CidrNode[],
  nowMs: number,
): { readonly state: BlockState; readonly conflicts: readonly CidrConflict[] } {
  const { owners, conflicts } = ownersOf(blocks, nodes);
  const byUid = new Map(nodes.map((node) => [node.uid, node]));
  const given = new Map<string, GivenBlock>();
  const held = new Map([...state.held].filter(([block]) => !owners.has(block)));
  for (const [uid, gift] of state.given) {
    const node = byUid.get(uid);
    if (node !== undefined && node.podCidrs.length === 0) {
      given.set(uid, gift);
      continue;
    }
    // A Node that is gone may have had the block for a moment: then there may be a route.
    const freedMs = node === undefined ? nowMs : gift.freedMs;
    if (freedMs !== undefined && !owners.has(gift.block)) held.set(gift.block, freed(gift, freedMs));
  }
  const inFlight = new Set([...given.values()].map(({ block }) => block));
  for (const [block, owner] of state.owners) {
    if (!owners.has(block) && !inFlight.has(block)) held.set(block, freed(owner, nowMs));
  }
  const waitingSince = new Map<string, number>();
  for (const { uid, podCidrs, isServed } of nodes) {
    if (isServed && podCidrs.length === 0) waitingSince.set(uid, state.waitingSince.get(uid) ?? nowMs);
  }
  return { state: { next: state.next, owners, given, held, waitingSince }, conflicts };
}

/**
 * Returns the state in which the block of a Node was not written. It is free, or held as before; one that was refused is
 * held for no node, as the same Node would get it again.
 */
export function takeBack(state: BlockState, uid: string, isRefused: boolean = false): BlockState {
  const [given, held] = [new Map(state.given), new Map(state.held)];
  const gift = given.get(uid);
  given.delete(uid);
  if (gift?.freedMs !== undefined)
    held.set(gift.block, isRefused ? { freedMs: gift.freedMs } : freed(gift, gift.freedMs));
  return { ...state, given, held };
}

/** Returns the state in which the block of a Node may have been written, or may still be. */
export function doubtGift(state: BlockState, uid: string, freedMs: number): BlockState {
  const gift = state.given.get(uid);
  return gift === undefined ? state : { ...state, given: new Map(state.given).set(uid, { ...gift, freedMs }) };
}

function freed({ node, machineId }: BlockOwner, freedMs: number): HeldBlock {
  return { node, machineId, freedMs };
}

function ownersOf(blocks: CidrBlocks, nodes: readonly CidrNode[]) {
  const owners = new Map<number, BlockOwner>();
  const conflicts: CidrConflict[] = [];
  for (const { name, uid, machineId, podCidrs } of nodes) {
    for (const cidr of podCidrs) {
      const numbers = blocks.overlapping(cidr);
      const conflict = conflictOf(blocks, owners, cidr, numbers, name);
      if (conflict !== undefined) conflicts.push({ node: name, uid, ...conflict });
      for (const block of numbers) if (!owners.has(block)) owners.set(block, { node: name, machineId });
    }
  }
  return { owners, conflicts };
}

function conflictOf(
  { settings, ofServices, contains }: CidrBlocks,
  owners: ReadonlyMap<number, BlockOwner>,
  cidr: string,
  numbers: readonly number[],
  name: string,
): Pick<CidrConflict, 'reason' | 'message'> | undefined {
  const other = numbers.map((block) => owners.get(block)?.node).find((node) => node !== undefined && node !== name);
  if (other !== undefined) {
    const message = `podCIDR ${cidr} overlaps that of Node ${other}: Pods of both have the same addresses; drain one of them, delete its Node and let it register again`;
    return { reason: 'CIDROverlap', message };
  }
  if (numbers.some((block) => ofServices.has(block))) {
    const message = `podCIDR ${cidr} overlaps the range of Services, ${settings.serviceCidr}: drain the node, delete its Node and let it register again`;
    return { reason: 'CIDROverlap', message };
  }
  // IPv6 networks are of another allocator: ours has IPv4 alone.
  if (contains(cidr) || cidr.includes(':')) return undefined;
  const message = `podCIDR ${cidr} is not within --cluster-cidr, ${settings.clusterCidrs.join(', ')}; it stays, and no other node gets it`;
  return { reason: 'CIDROutOfRange', message };
}
