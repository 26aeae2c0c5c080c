import { execFile } from 'node:child_process';
import { isNftError, NftError } from './nft-error.ts';
import { type FLOWTABLE_TABLE, NFT_TABLE } from './numbers.ts';

/**
 * Reads and loads the project's nftables table. nft(8) is the interface that nftables keeps stable; its netlink
 * protocol is bytecode.
 */
export type Nft = {
  /** Returns a table of ours as nft lists it, undefined when there is none. @throws NftError NFT_MISSING, NFT_FAILED */
  read(table?: NftTableName): Promise<string | undefined>;
  /**
   * Returns how nft would list the table that `text` defines, by trying it in a namespace of its own. Cached.
   * @throws NftError NFT_REFUSED when the text is wrong, or the kernel lacks what it needs
   */
  canonical(text: string, table?: NftTableName): Promise<string>;
  /** Runs commands in one transaction: all of them or none. @throws NftError NFT_REFUSED */
  load(commands: string): Promise<void>;
};

/** Names of our tables, which all have the family inet. */
type NftTableName = typeof NFT_TABLE | typeof FLOWTABLE_TABLE;

/** Options of `openNft`. */
export type NftOptions = {
  /** Path of the namespace to work in; absent: the process's own. */
  readonly netnsPath?: string;
  /** Time limit of one run in an existing namespace. */
  readonly timeoutMs?: number;
  /** Called with the pid of each process that will change nftables of this namespace, before it does. */
  readonly loading?: (pid: number) => void;
};

/** An nft run takes 5 ms; a stuck one must not block the agent. */
const DEFAULT_TIMEOUT_MS = 10_000;

/** The kernel creates a namespace only after it has finished deleting others: up to 10 s and more on a busy machine. */
const TRY_TIMEOUT_MS = 60_000;

/** Most cached texts: the wanted one, the previous one, and some more. */
const CACHED_TEXTS = 8;

/** Stateless and numeric: counters do not count as differences, and no name database is read. */
const LIST = ['-n', '-s', 'list', 'table', 'inet'];

/**
 * Opens nftables of one network namespace.
 *
 * To compare the kernel's table with the wanted text, both must have the same form. nft prints a rule in another form
 * than it was written in, and the form depends on the version. So the wanted text is loaded into a temporary network
 * namespace and listed there, and the two listings of the same nft are compared. Any altered, missing or added chain,
 * rule or element shows, in any version.
 */
export function openNft(options: NftOptions = {}): Nft {
  const enter = options.netnsPath === undefined ? [] : ['nsenter', `--net=${options.netnsPath}`];
  const timeoutMs = options.timeoutMs ?? DEFAULT_TIMEOUT_MS;
  const cache = new Map<string, string>();
  return {
    read: (table = NFT_TABLE) => read([...enter, 'nft', ...LIST, table], timeoutMs),
    load: async (commands) => {
      await run('load nftables', [...enter, 'nft', '-f', '-'], commands, timeoutMs, options.loading);
    },
    canonical: async (text, table = NFT_TABLE) => {
      const known = cache.get(text);
      if (known !== undefined) return known;
      const script = `nft -f - && nft ${LIST.join(' ')} ${table}`;
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

function run(
  action: string,
  command: readonly string[],
  input: string,
  timeoutMs: number,
  started?: (pid: number) => void,
): Promise<string> {
  const [file = '', ...args] = command;
  return new Promise((resolve, reject) => {
    const child = execFile(
      file,
      args,
      { timeout: timeoutMs, encoding: 'utf8', env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin', LC_ALL: 'C' } },
      (error, stdout, stderr) => {
        // At the limit Node closes the output first: of a run that had ended meanwhile there is no error, and no listing.
        if (child.killed) reject(new NftError('NFT_FAILED', action, `no end after ${timeoutMs} ms`, error));
        else if (error === null) resolve(stdout);
        else reject(new NftError(codeOf(error.code, stderr), action, stderr || error.message, error));
      },
    );
    if (child.pid !== undefined) started?.(child.pid);
    // An nft that fails at once closes its end before the write; the exit code is enough.
    child.stdin?.on('error', () => {});
    child.stdin?.end(input);
  });
}

function codeOf(code: unknown, stderr: string): NftError['code'] {
  if (code === 'ENOENT' || code === 127 || stderr.includes('failed to execute nft')) return 'NFT_MISSING';
  return code === 1 ? 'NFT_REFUSED' : 'NFT_FAILED';
}
