import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { parseIpv4Number } from '../../runtime/ip-text.ts';
import type { Logger } from '../../runtime/log.ts';
import { FileError, readRegularText } from '../../runtime/read-regular-file.ts';

/** An address that a file of host-local reserves. Without an owner: the file cannot be read, or is just being written. */
export type Reservation = { readonly ip: string; readonly containerId: string; readonly ifName: string };

/** The files in which the CNI project's plugin host-local records whose addresses are: one for each address. */
export type Reservations = {
  /** Returns all of them; none where there is no folder. */
  list(): readonly Reservation[];
  /**
   * Reserves an address, unless another owner has it. host-local makes its files in the same exclusive way, so both
   * may give addresses of one block at the same time. A folder that cannot be written, which is no more writable for
   * host-local, reserves nothing and is logged.
   */
  reserve(reservation: Reservation): 'reserved' | 'taken';
  /** Removes the reservation of this owner; one of another stays. Idempotent. Never throws. */
  release(reservation: Pick<Reservation, 'ip' | 'containerId'>): void;
};

/** No files: nothing is reserved. */
export const NO_RESERVATIONS: Reservations = { list: () => [], reserve: () => 'reserved', release: () => {} };

/** Largest file that is read, bytes. */
const MAX_BYTES = 1_024;
/** Most files that are read; a block has fewer addresses that serve. */
const MAX_FILES = 4_096;
/** host-local's own end of a line, on every system. @see plugins/ipam/host-local/backend/disk */
const LINE_END = '\r\n';
/** Where host-local continues its search for a free address. */
const CURSOR = 'last_reserved_ip.0';

/**
 * Opens the files of one network.
 * @param dir folder as the host names it; '' for none
 */
export function openHostLocalFiles(hostRoot: string, dir: string, log: Logger): Reservations {
  if (dir === '') return NO_RESERVATIONS;
  const pathOf = (name: string): string => join(resolveHostPath(hostRoot, dir), name);
  const read = (ip: string): Reservation | undefined => {
    const text = readIfThere(pathOf(ip));
    if (text === undefined) return undefined;
    const [containerId = '', ifName = ''] = text.split(/\r?\n/).map((line) => line.trim());
    return { ip, containerId, ifName };
  };
  return {
    list: () => addressesIn(pathOf('')).flatMap((ip) => read(ip) ?? []),
    reserve: ({ ip, containerId, ifName }) => {
      try {
        mkdirSync(pathOf(''), { recursive: true, mode: 0o755 });
        writeFileSync(pathOf(ip), `${containerId}${LINE_END}${ifName}`, { flag: 'wx', mode: 0o600 });
        writeFileSync(pathOf(CURSOR), ip, { mode: 0o600 });
      } catch (error) {
        if (!isCode(error, 'EEXIST')) {
          log.warn('an address is not reserved in the files of host-local, continuing', { dir, ip, error });
          return 'reserved';
        }
        return read(ip)?.containerId === containerId ? 'reserved' : 'taken';
      }
      return 'reserved';
    },
    release: ({ ip, containerId }) => {
      try {
        if (read(ip)?.containerId === containerId) rmSync(pathOf(ip), { force: true });
      } catch (error) {
        log.warn('an address stays reserved in the files of host-local', { dir, ip, error });
      }
    },
  };
}

/** Removes the folder if it holds no address and host-local never used it: it locks a file of its own there. */
export function removeUnusedFolder(hostRoot: string, dir: string): boolean {
  if (dir === '') return false;
  const path = resolveHostPath(hostRoot, dir);
  if (!existsSync(path)) return false;
  if (!readdirSync(path).every((name) => name === CURSOR)) return false;
  rmSync(path, { recursive: true });
  return true;
}

function addressesIn(path: string): readonly string[] {
  try {
    return readdirSync(path)
      .filter((name) => parseIpv4Number(name, name.length) >= 0)
      .slice(0, MAX_FILES);
  } catch (error) {
    if (isCode(error, 'ENOENT') || isCode(error, 'ENOTDIR')) return [];
    throw error;
  }
}

/** Returns '' for what cannot be read: whose the address is stays unknown then, and it is not free. */
function readIfThere(path: string): string | undefined {
  try {
    return readRegularText(path, MAX_BYTES);
  } catch (error) {
    if (isCode(error, 'ENOENT')) return undefined;
    if (error instanceof FileError || isCode(error, 'EACCES') || isCode(error, 'EIO')) return '';
    throw error;
  }
}

function isCode(error: unknown, code: string): boolean {
  return (error as NodeJS.ErrnoException).code === code;
}
