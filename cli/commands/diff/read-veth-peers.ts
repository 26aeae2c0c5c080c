import { readdirSync, readFileSync, readlinkSync, statSync } from 'node:fs';
import type { LostPeer } from '../../../inspection/judge/compare-links.ts';
import { netnsNames } from '../../../inspection/node/read-insides.ts';
import { LibcError } from '../../../netlink/errno.ts';
import type { LinkMessage } from '../../../netlink/link-message.ts';
import { NetlinkError } from '../../../netlink/netlink-error.ts';
import { NetnsError, openNetns } from '../../../netlink/netns.ts';
import { openRtnetlinkIn } from '../../../netlink/rtnetlink.ts';
import { resolveHostPath } from '../../../runtime/host-path.ts';
import type { GlobalArgs } from '../../command/command.ts';

/**
 * Finds the peers of veths: on the host, in the namespaces of /run/netns, in namespaces that are mounted anywhere, and
 * in those of processes and their threads. A veth exists only while both its namespaces exist. So a peer that is found
 * nowhere is in a namespace that only an open file descriptor keeps. Only root can read the namespaces of all
 * processes.
 */
export function readVethPeers(
  global: Pick<GlobalArgs, 'hostRoot'>,
  hostLinks: readonly LinkMessage[],
  veths: readonly { readonly ifindex: number }[],
): ReadonlyMap<number, LostPeer> {
  if (veths.length === 0) return new Map();
  const candidates = namespaces(global.hostRoot);
  return new Map(
    veths.map(({ ifindex }) => {
      const veth = hostLinks.find((link) => link.ifindex === ifindex);
      return [ifindex, veth === undefined ? { kind: 'unknown', why: 'the link is gone' } : peerOf(veth, candidates)];
    }),
  );
}

type Candidate = { readonly path: string; readonly name: string };

function peerOf(veth: LinkMessage, candidates: readonly Candidate[]): LostPeer {
  // Without a namespace id the peer is in the same namespace.
  if (veth.linkNetnsid === undefined) return { kind: 'host' };
  const found = findPeer(candidates, ({ path }) => containsPeer(path, veth));
  if (found !== undefined) return found;
  return isInHostPidNamespace()
    ? { kind: 'nowhere' }
    : { kind: 'unknown', why: 'only part of the processes are seen from here: run on the host, or with hostPID' };
}

/**
 * Returns the first namespace that has a peer; `unknown` when none has it and one could not be looked into, as one that is just going
 * away; undefined when all were looked into and none has it.
 */
export function findPeer(
  candidates: readonly Candidate[],
  contains: (candidate: Candidate) => boolean | 'unreadable',
): LostPeer | undefined {
  let unread: string | undefined;
  for (const candidate of candidates) {
    const hasPeer = contains(candidate);
    if (hasPeer === true) return { kind: 'netns', path: candidate.name };
    if (hasPeer === 'unreadable') unread ??= candidate.name;
  }
  return unread === undefined ? undefined : { kind: 'unknown', why: `${unread} could not be looked into` };
}

/** PROC_PID_INIT_INO: the PID namespace that contains every process of the machine. @see linux/proc_ns.h */
const INIT_PID_NAMESPACE = 'pid:[4026531836]';

function isInHostPidNamespace(): boolean {
  return readlinkSync('/proc/self/ns/pid') === INIT_PID_NAMESPACE;
}

/** Lists the network namespaces, each once: those with a name, then mounted ones, then those of processes. */
function namespaces(hostRoot: string): readonly Candidate[] {
  const named = netnsNames(hostRoot).map((name) => ({
    path: resolveHostPath(hostRoot, `/run/netns/${name}`),
    name: `/run/netns/${name}`,
  }));
  const pids = listOrNone('/proc').filter((name) => /^\d+$/.test(name));
  const ofProcesses = pids.flatMap((pid) =>
    [`/proc/${pid}`, ...listOrNone(`/proc/${pid}/task`).map((task) => `/proc/${pid}/task/${task}`)].map((folder) => ({
      path: `${folder}/ns/net`,
      name: `${folder}/ns/net`,
    })),
  );
  const seen = new Set<string>();
  return [...named, ...mounted(pids), ...ofProcesses].filter(({ path }) => {
    const identity = identityOf(path);
    if (identity === undefined || seen.has(identity)) return false;
    seen.add(identity);
    return true;
  });
}

/**
 * Lists network namespaces that are mounted on a file, as Docker does outside /run/netns. They are read through one
 * process of each mount namespace.
 */
function mounted(pids: readonly string[]): readonly Candidate[] {
  const seen = new Set<string>();
  return pids.flatMap((pid) => {
    const identity = identityOf(`/proc/${pid}/ns/mnt`);
    if (identity === undefined || seen.has(identity)) return [];
    seen.add(identity);
    return mountPoints(readOrEmpty(`/proc/${pid}/mountinfo`)).map((name) => ({
      path: `/proc/${pid}/root${name}`,
      name,
    }));
  });
}

/**
 * Returns the mount points of network namespaces. Root and mount point are the fourth and fifth field, with octal
 * escapes.
 * @see proc_pid_mountinfo(5)
 */
function mountPoints(mountinfo: string): readonly string[] {
  return mountinfo.split('\n').flatMap((line) => {
    const [, , , root = '', point = ''] = line.split(' ');
    if (!root.startsWith('net:[')) return [];
    return [point.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)))];
  });
}

function listOrNone(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    // The process has ended.
    return [];
  }
}

function readOrEmpty(path: string): string {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    // The process has ended.
    return '';
  }
}

function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = statSync(path);
    return `${dev}:${ino}`;
  } catch {
    // The process has ended, or the name was removed meanwhile.
    return undefined;
  }
}

function containsPeer(path: string, veth: LinkMessage): boolean | 'unreadable' {
  try {
    using netns = openNetns(path);
    using rtnetlink = openRtnetlinkIn(netns);
    const peer = rtnetlink.link.list({ kind: 'veth' }).find(({ ifindex }) => ifindex === veth.link);
    // Interface indexes are unique only within a namespace: the peer must point back to the veth.
    return peer?.link === veth.ifindex;
  } catch (error) {
    if (error instanceof NetnsError && (error.code === 'ENOENT' || error.code === 'NOT_A_NETNS')) return false;
    if (error instanceof NetnsError || error instanceof LibcError || error instanceof NetlinkError) return 'unreadable';
    throw error;
  }
}
