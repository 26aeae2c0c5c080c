import { isRecord } from '../runtime/decode.ts';
import { listOf, recordOf, textOf, textsOf, wholeNumberOf } from '../runtime/json.ts';

/** ConfigMap in which ipamd records which blocks of podCIDRs were given, so that the next leader gives none twice. */
export const POD_CIDRS_CONFIG_MAP = 'tke-eni-pod-cidrs';

/** Whose a block is. */
type OwnerRecord = { readonly block: number; readonly node: string; readonly machineID: string };

/** A block that no Node has any more. */
type HeldRecord = {
  readonly block: number;
  /** RFC 3339 */
  readonly freedAt: string;
  readonly node?: string;
  readonly machineID?: string;
};

/** Numbers of blocks, each block in one of them. */
export type BlockCounts = {
  readonly total: number;
  /** Of Services, and of subnets of the VPC. */
  readonly reserved: number;
  readonly used: number;
  readonly held: number;
  readonly free: number;
};

/** What ipamd records about podCIDRs. */
export type PodCidrRecord = {
  /** Increases with each term of a leader: a former leader's write finds another number and is not made. */
  readonly term: number;
  readonly clusterCidrs: readonly string[];
  readonly serviceCidr: string;
  readonly maskSize: number;
  /** Number of the block with which the next search begins. */
  readonly next: number;
  /** Blocks that Nodes have, are about to have, or had a short time ago. */
  readonly taken: readonly number[];
  /** Whose the blocks are that are not held; one whose machine is not known is left out. */
  readonly owners: readonly OwnerRecord[];
  /** Freed blocks, the newest first. */
  readonly held: readonly HeldRecord[];
  readonly blocks: BlockCounts;
  /** How many Nodes have no podCIDR, and the names of some. */
  readonly waiting: { readonly count: number; readonly nodes: readonly string[] };
  /** Why no block is given; '' while blocks are given. */
  readonly stopped: string;
};

/** A ConfigMap has at most 1 MiB. A block that is left out is still known to be taken, but not whose it is. */
const MAX_LIST_BYTES = 400 * 1024;

/** Renders the data of the ConfigMap. Equal records give equal text. */
export function renderPodCidrRecord(record: PodCidrRecord): Readonly<Record<string, string>> {
  const { term, next, taken, owners, held, blocks, waiting, stopped, clusterCidrs, serviceCidr, maskSize } = record;
  return {
    term: String(term),
    settings: JSON.stringify({ clusterCIDRs: clusterCidrs, serviceCIDR: serviceCidr, maskSize }),
    next: String(next),
    taken: renderNumbers(taken),
    owners: renderList(owners.map(({ block, node, machineID }) => [block, node, machineID])),
    held: renderList(held),
    blocks: JSON.stringify(blocks),
    waiting: JSON.stringify(waiting),
    stopped,
  };
}

/** Reads the data of the ConfigMap; undefined when it is not as ipamd writes it. */
export function readPodCidrRecord(data: unknown): PodCidrRecord | undefined {
  if (!isRecord(data)) return undefined;
  const settings = parsed(data['settings']);
  const blocks = parsed(data['blocks']);
  const [term, next, taken] = [countOf(data['term']), countOf(data['next']), readNumbers(data['taken'])];
  if (!isRecord(settings) || !isRecord(blocks) || term === undefined || next === undefined || taken === undefined)
    return undefined;
  const { clusterCIDRs, serviceCIDR, maskSize } = settings;
  if (!Array.isArray(clusterCIDRs) || typeof maskSize !== 'number') return undefined;
  return {
    term,
    clusterCidrs: clusterCIDRs.filter((one) => typeof one === 'string'),
    serviceCidr: textOf(serviceCIDR),
    maskSize,
    next,
    taken,
    // Releases before wrote none.
    owners: listOf(parsed(data['owners'])).flatMap(readOwner),
    held: listOf(parsed(data['held'])).flatMap(readHeld),
    blocks: {
      total: wholeNumberOf(blocks['total']),
      reserved: wholeNumberOf(blocks['reserved']),
      used: wholeNumberOf(blocks['used']),
      held: wholeNumberOf(blocks['held']),
      free: wholeNumberOf(blocks['free']),
    },
    waiting: readWaiting(parsed(data['waiting'])),
    stopped: textOf(data['stopped']),
  };
}

function readWaiting(value: unknown): PodCidrRecord['waiting'] {
  const { count, nodes } = recordOf(value);
  return { count: wholeNumberOf(count), nodes: textsOf(nodes) };
}

function readOwner(value: unknown): readonly OwnerRecord[] {
  const [block, node, machineID] = listOf(value);
  if (typeof block !== 'number' || typeof node !== 'string' || typeof machineID !== 'string') return [];
  return [{ block, node, machineID }];
}

function readHeld(value: unknown): readonly HeldRecord[] {
  if (!isRecord(value)) return [];
  const { block, freedAt, node, machineID } = value;
  if (typeof block !== 'number' || typeof freedAt !== 'string') return [];
  return [
    {
      ...{ block, freedAt },
      ...(typeof node === 'string' ? { node } : {}),
      ...(typeof machineID === 'string' ? { machineID } : {}),
    },
  ];
}

/** Renders a list as JSON, without the items that make it too long. */
function renderList(items: readonly unknown[]): string {
  const texts: string[] = [];
  let bytes = '[]'.length;
  for (const item of items) {
    const text = JSON.stringify(item);
    const more = Buffer.byteLength(text) + ','.length;
    if (bytes + more > MAX_LIST_BYTES) continue;
    bytes += more;
    texts.push(text);
  }
  return `[${texts.join(',')}]`;
}

/** Renders numbers as ranges: 0-12,14. */
function renderNumbers(numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of [...numbers].sort((one, other) => one - other)) {
    const last = ranges.at(-1);
    if (last !== undefined && number <= last[1] + 1) last[1] = number;
    else ranges.push([number, number]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

/** More blocks than any cluster has. */
const MAX_NUMBER = 2 ** 20;

function readNumbers(text: unknown): readonly number[] | undefined {
  if (text === '') return [];
  if (typeof text !== 'string') return undefined;
  const numbers: number[] = [];
  for (const part of text.split(',')) {
    const [, from, to = from] = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(part) ?? [];
    const [first, last] = [Number(from), Number(to)];
    // Not a number: neither comparison holds.
    if (!(first <= last && last <= MAX_NUMBER)) return undefined;
    for (let number = first; number <= last; number++) numbers.push(number);
    if (numbers.length > MAX_NUMBER) return undefined;
  }
  return numbers;
}

function parsed(text: unknown): unknown {
  try {
    return typeof text === 'string' ? JSON.parse(text) : undefined;
  } catch {
    return undefined;
  }
}

function countOf(text: unknown): number | undefined {
  return typeof text === 'string' && /^\d{1,15}$/.test(text) ? Number(text) : undefined;
}
