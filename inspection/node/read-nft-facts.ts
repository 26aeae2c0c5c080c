import { execFile } from 'node:child_process';
import { type NftOptions, openNft } from '../../dataplane/nft.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { FLOWTABLE_TABLE, NFT_TABLE } from '../../dataplane/numbers.ts';
import { isRecord } from '../../runtime/decode.ts';
import { messageOf } from '../../runtime/error-text.ts';
import { recordOf } from '../../runtime/json.ts';
import { known, unknown } from './known.ts';
import type { Known, NftFacts } from './node-facts.ts';

/** Timeout of nft, ms. On a node of many Services nft lists tens of thousands of elements, which takes seconds. */
const TIMEOUT_MS = 30_000;
/** Largest output of nft, bytes: the ruleset of such a node as JSON. */
const MAX_BYTES = 256 * 1024 * 1024;

/**
 * Reads nftables of a namespace by nft(8). Never rejects: what cannot be read is returned as unknown.
 * @param options `maxBytes`: a larger ruleset is returned as unknown
 */
export async function readNftFacts(
  options: Pick<NftOptions, 'netnsPath'> & { readonly maxBytes?: number },
): Promise<Known<NftFacts>> {
  try {
    const [text, ourTable] = await Promise.all([runNft(options, '-j', 'list', 'ruleset'), openNft(options).read()]);
    const objects = await withDevices(objectsOf(text), options);
    const flowLinks = flowLinksOf(objects);
    return known({ objects, ourTable, ...(flowLinks && { flowLinks }) });
  } catch (error) {
    return whyNot(error);
  }
}

/**
 * Reads nftables as text that `nft -f` accepts: the table of tke-eni, the one with the flowtable of the fast path, or all
 * tables. Undefined where there is no such table. Never rejects.
 */
export async function readNftText(
  options: Pick<NftOptions, 'netnsPath'>,
  which: 'ours' | 'flowtable' | 'all',
): Promise<Known<string | undefined>> {
  const what = {
    ours: ['table', 'inet', NFT_TABLE],
    flowtable: ['table', 'inet', FLOWTABLE_TABLE],
    all: ['ruleset'],
  }[which];
  try {
    // Not numeric: nft prints `fib … missing` as a number then, and reads that back as another rule.
    return known(await runNft(options, '-s', 'list', ...what));
  } catch (error) {
    // Where nft itself is missing, nsenter fails with the same words.
    const isMissing = /No such file or directory/.test(String(error)) && !/failed to execute/.test(String(error));
    return isMissing ? known(undefined) : whyNot(error);
  }
}

type NftRun = { readonly netnsPath?: string; readonly maxBytes?: number };

function runNft({ netnsPath, maxBytes = MAX_BYTES }: NftRun, ...nftArgs: readonly string[]): Promise<string> {
  const command = [...(netnsPath === undefined ? [] : ['nsenter', `--net=${netnsPath}`]), 'nft', ...nftArgs];
  const [file = '', ...args] = command;
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
  return new Promise((resolve, reject) => {
    execFile(
      file,
      args,
      { timeout: TIMEOUT_MS, maxBuffer: maxBytes, encoding: 'utf8', env },
      (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(stderr.trim() || error.message, { cause: error })),
    );
  });
}

type NftObjects = NftFacts['objects'];

/** Adds to chains at ingress and egress the links that they are for, where `nft -j` left them out (nft 1.0.6). */
async function withDevices(objects: NftObjects, options: NftRun): Promise<NftObjects> {
  if (!objects.some(lacksDevices)) return objects;
  const devices = devicesOf(await runNft(options, 'list', 'chains'));
  return objects.map((object) => {
    const { chain } = object;
    const dev = isRecord(chain) ? devices.get(`${chain['family']} ${chain['table']} ${chain['name']}`) : undefined;
    return lacksDevices(object) && dev !== undefined ? { chain: { ...recordOf(chain), dev } } : object;
  });
}

function lacksDevices({ chain }: NftObjects[number]): boolean {
  if (!isRecord(chain)) return false;
  return (chain['hook'] === 'ingress' || chain['hook'] === 'egress') && chain['dev'] === undefined;
}

/** Reads the links of chains from `nft list chains`, by `family table chain`. */
function devicesOf(text: string): ReadonlyMap<string, readonly string[]> {
  const found = new Map<string, readonly string[]>();
  let table = '';
  let chain = '';
  for (const line of text.split('\n')) {
    table = /^table (\S+ \S+) \{/.exec(line)?.[1] ?? table;
    chain = /^\s+chain (\S+) \{/.exec(line)?.[1] ?? chain;
    const list = / device(?:s = \{ ([^}]*) \}| (\S+))/.exec(line);
    const names = list?.[1] ?? list?.[2];
    if (names === undefined) continue;
    found.set(
      `${table} ${chain}`,
      names.split(',').map((name) => name.trim().replaceAll('"', '')),
    );
  }
  return found;
}

function objectsOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  const answer: unknown = JSON.parse(text);
  const list = recordOf(answer)['nftables'];
  if (!Array.isArray(list)) throw new Error('nft -j answered without "nftables"');
  return list.filter(isRecord).filter((object) => !('metainfo' in object));
}

function whyNot(error: unknown): Known<never> {
  const text = messageOf(error);
  if (isNftError(error, 'NFT_MISSING') || /ENOENT|failed to execute/.test(text)) {
    return unknown('nft is not installed', 'install nftables, or run this inside the agent’s container, which has it');
  }
  if (/permitted|Permission denied|you must be root/i.test(text)) {
    return unknown('nftables can be read by root only', 'run as root, or with CAP_NET_ADMIN');
  }
  return unknown(`nft list ruleset failed: ${firstLine(text)}`, 'try `nft list ruleset` by hand');
}

function firstLine(text: string): string {
  return text.split('\n', 1)[0] ?? text;
}

/**
 * Returns the names of the links that the flowtable of the fast path has, sorted; undefined where the node has no such table.
 * Names of links that are gone stay in it from kernel 6.16 on.
 * @param objects what `nft -j list ruleset` lists
 */
export function flowLinksOf(objects: NftFacts['objects']): readonly string[] | undefined {
  const flowtables = objects.flatMap(({ flowtable }) =>
    isRecord(flowtable) && flowtable['family'] === 'inet' && flowtable['table'] === FLOWTABLE_TABLE ? [flowtable] : [],
  );
  if (flowtables.length === 0) return undefined;
  // One device is a text, many are a list, none is left out.
  const names = flowtables.flatMap(({ dev }) => dev).filter((name) => typeof name === 'string');
  return [...new Set(names)].sort();
}
