import { join } from 'node:path';

/** An interface of a sandbox. */
export type RecordedInterface = { readonly containerId: string; readonly ifName: string };

/** Returns the folder of records of delegations. A file of its own, because each DEL looks there and few load more. */
export function recordFolder(dataDir: string): string {
  return join(dataDir, 'delegates');
}

/** Returns the file of one. A container id has no "/", nor has the name of an interface. */
export function recordPath(folder: string, { containerId, ifName }: RecordedInterface): string {
  return join(folder, `${containerId}@${ifName}${RECORD_SUFFIX}`);
}

/** With which the name of each record ends. */
export const RECORD_SUFFIX = '.json';
