import { execFile } from 'node:child_process';
import { isNftError, NftError } from './nft-error.ts';
import { NFT_TABLE } from './numbers.ts';

/** Reads and loads our nftables table. nft(8) is the interface that nftables promises to keep; its netlink protocol is bytecode. */
export type Nft = {
  /** Returns our table as nft lists it, undefined when there is none. @throws NftError NFT_MISSING, NFT_FAILED */
  read(): Promise<string | undefined>;
  /** Returns how nft would list the table that `text` defines. Cached. @throws NftError NFT_REFUSED when the text is wrong */
  canonical(text: string): Promise<string>;
  /** Runs commands in one transaction: all of them or none. @throws NftError NFT_REFUSED */
  load(commands: string): Promise<void>;
};

/** Options of `openNft`. */
export type NftOptions = {
  /** Path of the namespace to work in; absent: the process's own. */
  readonly netnsPath?: string;
  /** Bound of one run on a namespace that is there. */
  readonly timeoutMs?: number;
};

/** An nft run takes 5 ms; a stuck one must not hold the agent. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** The kernel makes a namespace only when it is done with taking others down: seen to last 10 s and more on a busy machine. */
const TRY_TIMEOUT_MS = 60_000;

/** Texts that stay cached: the wanted one, the one before, and some to spare. */
const CACHED_TEXTS = 8;

/** Stateless and numeric: counters do not count as differences, and no name database is asked. */
const LIST = ['-n', '-s', 'list', 'table', 'inet', NFT_TABLE];

/**
 * Opens nftables of one network namespace.
 *
 * How to tell whether the kernel holds what we want? nft prints a rule in another form than it was written in, and each version in
 * another one. So the wanted text is loaded in a network namespace that lives for this one question, listed there, and the two
 * listings of the same nft are compared. Any altered, missing or added chain, rule or element shows, whatever the version.
 */
export function openNft(options: NftOptions = {}): Nft {
  const enter = options.netnsPath === undefined ? [] : ['nsenter', `--net=${options.netnsPath}`];
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const cache = new Map<string, string>();
  return {
    read: () => read([...enter, 'nft', ...LIST], timeoutMs),
    load: async (commands) => {
      await run('load nftables', [...enter, 'nft', '-f', '-'], commands, timeoutMs);
    },
    canonical: async (text) => {
      const known = cache.get(text);
      if (known !== undefined) return known;
      const script = `nft -f - && nft ${LIST.join(' ')}`;
      const listing = await run('try nftables', ['unshare', '--net', 'sh', '-c', script], text, TRY_TIMEOUT_MS);
      const oldest = cache.keys().next();
      if (cache.size >= CACHED_TEXTS && oldest.done !== true) cache.delete(oldest.value);
      cache.set(text, listing);
      return listing;
    },
  };
}

async function read(command: readonly string[], timeoutMs: number): Promise<string | undefined> {
  try {
    return await run('list nftables', command, '', timeoutMs);
  } catch (error) {
    if (isNftError(error, 'NFT_REFUSED') && error.stderr.includes('No such file or directory')) return undefined;
    throw error;
  }
}

function run(action: string, command: readonly string[], input: string, timeoutMs: number): Promise<string> {
  const [file = '', ...args] = command;
  return new Promise((resolve, reject) => {
    const child = execFile(
      file,
      args,
      { timeout: timeoutMs, encoding: 'utf8', env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' } },
      (error, stdout, stderr) => {
        if (error === null) resolve(stdout);
        else if (error.killed === true)
          reject(new NftError('NFT_FAILED', action, `no end after ${timeoutMs} ms`, error));
        else reject(new NftError(codeOf(error.code, stderr), action, stderr || error.message, error));
      },
    );
    // nft that fails at once closes its end before we have written; the exit code says all.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

function codeOf(code: unknown, stderr: string): NftError['code'] {
  if (code === 'ENOENT' || code === 127 || stderr.includes('failed to execute nft')) return 'NFT_MISSING';
  return code === 1 ? 'NFT_REFUSED' : 'NFT_FAILED';
}
