import { readFileSync } from 'node:fs';
import { knownFrom } from './host-tree.ts';
import type { Known } from './node-facts.ts';

/** Counters of connection tracking, summed over all processors, since boot. */
type ConntrackFacts = {
  readonly count: number;
  readonly max: number;
  readonly drop: number;
  readonly earlyDrop: number;
  readonly insertFailed: number;
};

/** Neighbour table of one address family, over all network namespaces. */
export type NeighTableFacts = { readonly entries: number; readonly tableFulls: number };

/** Facts about the kernel beside the network state. */
export type KernelFacts = {
  /** Kernel release, as in `uname -r` */
  readonly release: string;
  /** False when the kernel was booted with ipv6.disable=1, or lacks the module. */
  readonly hasIpv6: boolean;
  /** Undefined where the kernel has no connection tracking. */
  readonly conntrack: ConntrackFacts | undefined;
  readonly neigh: { readonly ipv4: NeighTableFacts | undefined; readonly ipv6: NeighTableFacts | undefined };
};

/** Facts of one network namespace from /proc, sysctls excluded. */
export type ProcFacts = {
  readonly kernel: KernelFacts;
  /** Names of the tables of iptables' legacy backend. */
  readonly legacyTables: Known<readonly string[]>;
};

/** Reads /proc in the network namespace of the calling thread. Only root can read the tables of iptables. */
export function readProc(): ProcFacts {
  return {
    kernel: {
      release: read('/proc/sys/kernel/osrelease')?.trim() ?? '',
      hasIpv6: read('/proc/thread-self/net/if_inet6') !== undefined,
      conntrack: readConntrack(),
      neigh: { ipv4: readNeighTable('arp_cache'), ipv6: readNeighTable('ndisc_cache') },
    },
    legacyTables: readLegacyTables(),
  };
}

/** Reads which tables iptables' legacy backend has in the network namespace of the calling thread; only root can. */
export function readLegacyTables(): Known<readonly string[]> {
  return knownFrom(() => [
    ...new Set(['ip_tables_names', 'ip6_tables_names'].flatMap((name) => linesOf(`/proc/thread-self/net/${name}`))),
  ]);
}

/**
 * Reads the numbers of the netfilter queues that a program reads from, in the network namespace of the calling thread;
 * only root can.
 */
export function readQueueListeners(): Known<readonly number[]> {
  return knownFrom(() =>
    linesOf('/proc/thread-self/net/netfilter/nfnetlink_queue').map((line) => Number.parseInt(line, 10)),
  );
}

function linesOf(path: string): readonly string[] {
  return (read(path) ?? '').split('\n').filter((line) => line !== '');
}

function readConntrack(): ConntrackFacts | undefined {
  const count = read('/proc/sys/net/netfilter/nf_conntrack_count');
  const max = read('/proc/sys/net/netfilter/nf_conntrack_max');
  if (count === undefined || max === undefined) return undefined;
  const sums = readStat('nf_conntrack');
  return {
    count: Number(count),
    max: Number(max),
    drop: sums?.get('drop')?.sum ?? 0,
    earlyDrop: sums?.get('early_drop')?.sum ?? 0,
    insertFailed: sums?.get('insert_failed')?.sum ?? 0,
  };
}

function readNeighTable(name: string): NeighTableFacts | undefined {
  const sums = readStat(name);
  // Every line has the total number of entries; the other columns are per processor.
  return sums === undefined
    ? undefined
    : { entries: sums.get('entries')?.first ?? 0, tableFulls: sums.get('table_fulls')?.sum ?? 0 };
}

type Column = { readonly first: number; readonly sum: number };

/**
 * Reads a file of /proc/net/stat: titles in the first line, then one line of hexadecimal numbers for each processor.
 * @see net/netfilter/nf_conntrack_standalone.c ct_cpu_seq_show
 */
function readStat(name: string): ReadonlyMap<string, Column> | undefined {
  const text = read(`/proc/thread-self/net/stat/${name}`);
  if (text === undefined) return undefined;
  const [titles = [], ...lines] = text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => line.trim().split(/\s+/));
  return new Map(
    titles.map((title, index) => {
      const numbers = lines.map((line) => Number.parseInt(line[index] ?? '0', 16));
      return [title, { first: numbers[0] ?? 0, sum: numbers.reduce((sum, value) => sum + value, 0) }];
    }),
  );
}

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}
