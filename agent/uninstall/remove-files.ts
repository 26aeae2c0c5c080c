import { lstatSync, readdirSync, rmdirSync, rmSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { isAside } from '../../runtime/folder.ts';
import { resolveHostPath } from '../../runtime/host-path.ts';
import type { Logger } from '../../runtime/log.ts';
import { DEFAULT_DATA_DIR } from '../api/data-dir.ts';
import { CONFLIST_FILE, endWithdrawal, removeConflist } from '../install/conflist.ts';
import type { Lease } from '../journal/lease.ts';
import { NODE_RECORD_FILE } from '../journal/node-record.ts';
import { FOUND_STATE_FILE } from '../node/found-state.ts';
import { openHostLocalFiles, removeUnusedFolder } from '../pod-cidr/host-local-files.ts';
import { NEW_SUFFIX as NEW_SOCKET_SUFFIX } from '../server/unix-socket.ts';
import type { Sweep } from './sweep.ts';

/** Removes our network configuration, and temporary files that a killed agent left beside it. Idempotent. */
export async function removeConfiguration(confDir: string, sweep: Sweep): Promise<void> {
  const path = join(confDir, CONFLIST_FILE);
  await sweep.step(path, () => {
    const isThere = lstatSync(path, { throwIfNoEntry: false }) !== undefined;
    removeConflist(confDir);
    endWithdrawal(confDir);
    if (isThere) sweep.removed('network configuration', path);
    removeMatching(confDir, (name) => name.startsWith(`${CONFLIST_FILE}.`) && name.endsWith('.tmp'), sweep);
    for (const name of namesIn(confDir))
      if (isAside(name, CONFLIST_FILE)) sweep.leave(`${join(confDir, name)}: stood in the place of our file`);
  });
}

/** Removes the sockets of the device plugin; kubelet then drops the resource. Idempotent. */
export async function removeDevicePluginSockets(kubeletDir: string, sweep: Sweep): Promise<void> {
  if (kubeletDir === '') return;
  const dir = join(kubeletDir, 'device-plugins');
  await sweep.step(dir, () => removeMatching(dir, (name) => DEVICE_SOCKET.test(name), sweep));
}

const DEVICE_SOCKET = /^tke-(eni-ip|direct-eni)\.sock(\..*)?$/;

/** Paths of the agent's own files. */
type StatePaths = { readonly socket: string; readonly stateDir: string; readonly hostRoot: string };

/**
 * Removes the agent's files: spooled DELs, the journal and those that were moved aside, the plan, then the recorded
 * settings, then the socket; at last the folders, if they are empty. Idempotent.
 */
export async function removeState({ socket, stateDir, hostRoot }: StatePaths, sweep: Sweep): Promise<void> {
  const spool = join(dirname(socket), 'deletions');
  await sweep.step(spool, () => {
    removeMatching(spool, () => true, sweep);
    removeFolder(spool, hostRoot, sweep);
  });
  await sweep.step(stateDir, () => {
    removeMatching(stateDir, (name) => JOURNAL_FILE.test(name), sweep);
    removeMatching(stateDir, (name) => NODE_RECORD.test(name), sweep);
    removeMatching(stateDir, (name) => name === FOUND_STATE_FILE || /^found\.json\.\d+\.tmp$/.test(name), sweep);
    // What stood in the places of files that are the agent's alone.
    const own = [FOUND_STATE_FILE, NODE_RECORD_FILE];
    removeMatching(stateDir, (name) => own.some((one) => isAside(name, one)), sweep);
  });
  await sweep.step(socket, () => {
    const names = [basename(socket), basename(socket) + NEW_SOCKET_SUFFIX];
    const places = [basename(socket), basename(spool)];
    const isLeft = (name: string): boolean => places.some((place) => isAside(name, place));
    removeMatching(dirname(socket), (name) => names.includes(name) || isLeft(name), sweep);
    for (const folder of new Set([stateDir, dirname(socket)])) removeFolder(folder, hostRoot, sweep);
  });
}

/**
 * Removes what the agent reserved with host-local, and the folder unless host-local used it: its own reservations are not
 * ours. Idempotent.
 */
export async function removeReservations(
  { hostRoot, grHostLocalDir: dir }: { readonly hostRoot: string; readonly grHostLocalDir: string },
  leases: readonly Lease[],
  log: Logger,
  sweep: Sweep,
): Promise<void> {
  await sweep.step(dir, () => {
    const files = openHostLocalFiles(hostRoot, dir, log);
    for (const { addresses, containerId, block } of leases) {
      if (block !== undefined) for (const { ip } of addresses) files.release({ ip, containerId });
    }
    if (removeUnusedFolder(hostRoot, dir)) sweep.removed('folder', dir);
  });
}

/**
 * Removes the folder in which the executables record networks that other plugins made. With Pods in such a network it stays:
 * the records say by which plugins they end, to an agent that is installed again or to a person.
 */
export async function removeDelegations(hostRoot: string, sweep: Sweep): Promise<void> {
  const dataDir = resolveHostPath(hostRoot, DEFAULT_DATA_DIR);
  const folder = join(dataDir, 'delegates');
  await sweep.step(folder, () => {
    const records = namesIn(folder).filter((name) => name.endsWith('.json')).length;
    if (records > 0) {
      sweep.leave(`${join(DEFAULT_DATA_DIR, 'delegates')}: ${records} interfaces of Pods that other plugins made`);
      return;
    }
    removeMatching(folder, (name) => name.endsWith('.tmp'), sweep);
    for (const one of [folder, dataDir]) removeFolder(one, '/', sweep);
  });
}

const NODE_RECORD = /^node\.json(\.\d+\.tmp)?$/;
const JOURNAL_FILE = /^journal\.db(-journal|\.new|\.new-journal|\.damaged-\d+(-journal)?)?$/;

function removeMatching(dir: string, matches: (name: string) => boolean, sweep: Sweep): void {
  for (const name of namesIn(dir).filter(matches)) {
    rmSync(join(dir, name), { force: true, recursive: true });
    sweep.removed('file', join(dir, name));
  }
}

function namesIn(dir: string): readonly string[] {
  try {
    return readdirSync(dir);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return [];
    throw error;
  }
}

/** Removes an empty folder. One that is mounted into our container is removed at its place on the host, or left. */
function removeFolder(path: string, hostRoot: string, sweep: Sweep): void {
  for (const candidate of new Set([path, resolveHostPath(hostRoot, path)])) {
    try {
      rmdirSync(candidate);
      return;
    } catch (error) {
      if (isCode(error, 'ENOENT', 'ENOTEMPTY', 'EEXIST')) return;
      // A mount point cannot be removed from where it is mounted, nor can anything on a read-only root.
      if (!isCode(error, 'EBUSY', 'EROFS')) throw error;
    }
  }
  sweep.leave(`${path}: an empty folder, mounted here`);
}

function isCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
