import { readdirSync } from 'node:fs';
import { resolveHostPath } from '../../runtime/host-path.ts';
import { readRegularText } from '../../runtime/read-regular-file.ts';

/** Folders of iproute2's lists of names; the later ones override. @see ip-route(8) FILES */
const FOLDERS = ['/usr/lib/iproute2', '/usr/share/iproute2', '/etc/iproute2'];

/** Names by number. */
export type NumberNames = ReadonlyMap<number, string>;

/**
 * Reads one of iproute2's lists of names (`rt_tables`, `rt_protos`, `group`…) and its folder `<list>.d`; missing files
 * are ignored.
 */
export function readIpNames(hostRoot: string, list: string): NumberNames {
  const names = new Map<number, string>();
  for (const folder of FOLDERS) {
    const file = `${folder}/${list}`;
    for (const path of [file, ...confFilesIn(hostRoot, `${file}.d`)]) {
      for (const [number, name] of parseNames(readText(resolveHostPath(hostRoot, path)))) names.set(number, name);
    }
  }
  return names;
}

/** Parses lines of a number (decimal or 0x…) and a name. Comments and all other lines are skipped, as iproute2 does. */
function parseNames(text: string): NumberNames {
  const names = new Map<number, string>();
  for (const line of text.split('\n')) {
    const [, digits, name] = /^\s*(0x[0-9a-fA-F]+|\d+)\s+([^\s#]+)/.exec(line) ?? [];
    if (digits !== undefined && name !== undefined) names.set(Number(digits), name);
  }
  return names;
}

function confFilesIn(hostRoot: string, folder: string): readonly string[] {
  try {
    return readdirSync(resolveHostPath(hostRoot, folder))
      .filter((name) => name.endsWith('.conf') && !name.startsWith('.'))
      .sort()
      .map((name) => `${folder}/${name}`);
  } catch {
    return [];
  }
}

/** Largest list of names that is read, bytes. */
const MAX_BYTES = 1024 * 1024;

function readText(path: string): string {
  try {
    return readRegularText(path, MAX_BYTES);
  } catch {
    return '';
  }
}
