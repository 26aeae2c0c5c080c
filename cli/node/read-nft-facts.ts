import { execFile } from 'node:child_process';
import { type NftOptions, openNft } from '../../dataplane/nft.ts';
import { isNftError } from '../../dataplane/nft-error.ts';
import { NFT_TABLE } from '../../dataplane/numbers.ts';
import { known, unknown } from './known.ts';
import type { Known, NftFacts } from './node-facts.ts';

/** Timeout of nft, ms. On a node of many Services nft lists tens of thousands of elements, which takes seconds. */
const TIMEOUT_MS = 30_000;
/** Largest output of nft, bytes: the ruleset of such a node as JSON. */
const MAX_BYTES = 256 * 1024 * 1024;

/** Reads nftables of a namespace by nft(8). Never rejects: what cannot be read is returned as unknown. */
export async function readNftFacts(options: Pick<NftOptions, 'netnsPath'>): Promise<Known<NftFacts>> {
  try {
    const [text, ourTable] = await Promise.all([
      runNft(options.netnsPath, '-j', 'list', 'ruleset'),
      openNft(options).read(),
    ]);
    return known({ objects: objectsOf(text), ourTable });
  } catch (error) {
    return whyNot(error);
  }
}

/**
 * Reads nftables as text that `nft -f` accepts: the table of tke-eni, undefined when it does not exist, or all tables.
 * Never rejects.
 */
export async function readNftText(
  options: Pick<NftOptions, 'netnsPath'>,
  which: 'ours' | 'all',
): Promise<Known<string | undefined>> {
  // Not numeric: nft prints `fib … missing` as a number then, and reads that back as another rule.
  const what = which === 'ours' ? ['table', 'inet', NFT_TABLE] : ['ruleset'];
  try {
    return known(await runNft(options.netnsPath, '-s', 'list', ...what));
  } catch (error) {
    // Where nft itself is missing, nsenter fails with the same words.
    const isMissing = /No such file or directory/.test(String(error)) && !/failed to execute/.test(String(error));
    return isMissing ? known(undefined) : whyNot(error);
  }
}

function runNft(netnsPath: string | undefined, ...nftArgs: readonly string[]): Promise<string> {
  const command = [...(netnsPath === undefined ? [] : ['nsenter', `--net=${netnsPath}`]), 'nft', ...nftArgs];
  const [file = '', ...args] = command;
  const env = { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' };
  return new Promise((resolve, reject) => {
    execFile(
      file,
      args,
      { timeout: TIMEOUT_MS, maxBuffer: MAX_BYTES, encoding: 'utf8', env },
      (error, stdout, stderr) =>
        error === null ? resolve(stdout) : reject(new Error(stderr.trim() || error.message, { cause: error })),
    );
  });
}

function objectsOf(text: string): readonly Readonly<Record<string, unknown>>[] {
  const answer: unknown = JSON.parse(text);
  const list = isObject(answer) ? answer['nftables'] : undefined;
  if (!Array.isArray(list)) throw new Error('nft -j answered without "nftables"');
  return list.filter(isObject).filter((object) => !('metainfo' in object));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function whyNot(error: unknown): Known<never> {
  const text = error instanceof Error ? error.message : String(error);
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
